"""Laws of hierarchical smoothing: between the tree as it is and the root's value everywhere, by weight."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import reference
import zoo
from softwood import TreeClassifier, TreeRegressor
from softwood.impurity import Gini
from softwood.source import ArraySource, canonical_rows
from softwood.targets import class_counts
from softwood.train.base import Run
from softwood.train.harden import taken_by
from softwood.train.smooth import Smooth, smoothed
from softwood.tree import Tree

every_tree = pytest.mark.parametrize("tree", zoo.TREES.values(), ids=zoo.TREES)


def source_of(weight: np.ndarray, copies: int = 1) -> ArraySource:
    X, codes = zoo.table(40, 5), np.arange(40) % 2
    X, codes, weight = (np.repeat(each, copies, axis=0) for each in (X, codes, weight))
    order, counts, content, weight = canonical_rows(X, codes, weight)
    return ArraySource(X, order, counts, content, class_counts(codes[order], 2, weight))


def smooth(tree: Tree, smoothing: float, source: ArraySource) -> Tree:
    return Smooth(smoothing).train(tree, source, Gini(), Run(np.random.default_rng(0)))


@every_tree
@pytest.mark.parametrize("smoothing", [0.5, 20.0])
def test_each_step_down_counts_by_the_weight_above(tree: Tree, smoothing: float) -> None:
    source = source_of(np.random.default_rng(0).uniform(0.1, 3, 40))
    weight, found = taken_by(tree, source)[:, 1], smooth(tree, smoothing, source).values
    for node in range(tree.n_nodes):
        path = reference.path_to(tree.topology.arity.tolist(), node)
        expected = tree.values[0].copy()
        for above, below in zip(path[:-1], path[1:], strict=True):
            if weight[above] > 0:
                expected += (tree.values[below] - tree.values[above]) / (1 + smoothing / weight[above])
        assert found[node] == pytest.approx(expected, rel=1e-12)


@every_tree
def test_nothing_is_smoothed_by_zero_and_all_by_infinity(tree: Tree) -> None:
    source = source_of(np.ones(40))
    assert smooth(tree, 0.0, source) is tree
    weight = taken_by(tree, source)[:, 1]
    assert (smoothed(tree.values, weight, tree.topology, np.inf) == tree.values[0]).all()


@every_tree
def test_copies_are_weights_bit_for_bit(tree: Tree) -> None:
    copied, weighted = (smooth(tree, 3.0, each) for each in (source_of(np.ones(40), 3), source_of(np.full(40, 3.0))))
    assert copied.values.tobytes() == weighted.values.tobytes()


@every_tree
def test_shares_stay_shares(tree: Tree) -> None:
    shares = tree.values / tree.values.sum(axis=1, keepdims=True)
    found = smooth(tree.with_values(tree.statistics, shares), 5.0, source_of(np.ones(40))).values
    assert found.sum(axis=1) == pytest.approx(np.ones(tree.n_nodes)) and (found >= 0).all()


@pytest.mark.parametrize("training", ["cart", "greedy", "global"])
@pytest.mark.parametrize(("kind", "data"), [(TreeClassifier, load_iris), (TreeRegressor, load_diabetes)])
def test_estimators_smooth(kind, data, training: str) -> None:
    X, y = data(return_X_y=True)
    settings = {"training": training, "max_depth": 3, "search": False, "max_iter": 50, "random_state": 0}
    plain, mild, flat = (kind(smoothing=each, **settings).fit(X, y).tree_ for each in (0.0, 10.0, 1e15))
    assert (
        0 < mild.values[mild.topology.leaves].std(axis=0).max() < plain.values[plain.topology.leaves].std(axis=0).max()
    )
    np.testing.assert_allclose(flat.values, np.broadcast_to(flat.values[0], flat.values.shape), rtol=1e-9)
