"""Laws of the impurity of linear leaves: it is the loss of the best line, and training by it lowers that loss."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from softwood.impurity import Variance
from softwood.source import ArraySource, canonical_rows
from softwood.targets import centred_moments
from softwood.topology import Topology
from softwood.train.base import Chain, Run, root
from softwood.train.grow_hard import GrowHard
from softwood.train.refine import Descend
from softwood.train.refine_lines import RefineLines, _LinearResidual, line_products
from softwood.tree import Tree

PENALTIES = pytest.mark.parametrize("penalty", [1e-3, 1.0, 50.0])


def source_of(n: int = 300, p: int = 3) -> ArraySource:
    X, weight = zoo.table(n, p), np.random.default_rng(1).uniform(0.2, 3.0, n)
    y = np.where(X[:, 0] + X[:, 1] > 0, 2 * X[:, 2], -X[:, 2]) + 0.1 * zoo.table(n, 1, 9)[:, 0]
    order, copies, content, weight = canonical_rows(X, y, weight)
    return ArraySource(X, order, copies, content, centred_moments(y[order], weight)[0])


def loss_of(source: ArraySource, beta: np.ndarray, penalty: float) -> float:
    w, wt, _ = source.targets.dense().T
    rest = wt / w - np.column_stack([np.ones(source.n), source.Z]) @ beta
    return float(w @ rest**2 + penalty * (beta[1:] @ beta[1:] + 1e-6 * beta[0] ** 2))


@PENALTIES
def test_phi_is_the_least_penalised_loss(penalty: float) -> None:
    source, impurity = source_of(), _LinearResidual(penalty)
    S = line_products(source).total()
    beta, phi = impurity.value(S), float(impurity.phi(S))
    assert phi == pytest.approx(loss_of(source, beta, penalty), rel=1e-9)
    for seed in range(5):
        assert phi <= loss_of(source, beta + 0.01 * np.random.default_rng(seed).normal(size=4), penalty)


@PENALTIES
def test_the_slope_is_the_gradient_and_phi_is_concave(penalty: float) -> None:
    s, impurity = line_products(source_of()).dense(), _LinearResidual(penalty)
    S, other = s[:100].sum(axis=0), s[100:].sum(axis=0)
    step = (impurity.phi(S + 1e-5 * other) - impurity.phi(S - 1e-5 * other)) / 2e-5
    assert float(impurity.slope(S) @ other) == pytest.approx(float(step), rel=1e-6)
    assert impurity.phi(S + other) <= impurity.phi(S) + impurity.slope(S) @ other


@PENALTIES
def test_rows_are_charged_their_squared_error(penalty: float) -> None:
    source, impurity = source_of(), _LinearResidual(penalty)
    s = line_products(source).dense()
    w, wt, _ = source.targets.dense().T
    rest = wt / w - np.column_stack([np.ones(source.n), source.Z]) @ impurity.value(s.sum(axis=0))
    assert s @ impurity.slope(s.sum(axis=0)) == pytest.approx(w * rest**2, abs=1e-9)


def test_an_empty_node_is_finite() -> None:
    S, impurity = np.zeros((2, 25)), _LinearResidual(1.0)
    assert (impurity.phi(S) == 0).all() and np.isfinite(impurity.slope(S)).all() and not impurity.value(S).any()


def unexplained(tree: Tree, source: ArraySource) -> float:
    S = line_products(source).sums_by(source.leaf_of(tree), tree.n_nodes)
    return float(_LinearResidual(1.0).phi(S).sum())


def test_training_finds_where_lines_change() -> None:
    source, steps = source_of(), Descend(200, 512, 0.1, 0.01)
    start = GrowHard(1).train(root(source, Variance()), source, Variance(), Run(np.random.default_rng(0)))
    trained = RefineLines(optimizer=steps).train(start, source, Variance(), Run(np.random.default_rng(0)))
    assert unexplained(trained, source) < 0.5 * unexplained(start, source)
    assert trained.statistics.shape == (3, 3) and trained.values.shape == (3, 1)
    assert trained.statistics[0] == pytest.approx(source.targets.total(), rel=1e-5, abs=1e-3)


def test_many_columns_are_left_as_they_are() -> None:
    source = source_of(100, 31)
    run = Run(np.random.default_rng(0))
    start = Chain([GrowHard(2)]).train(root(source, Variance()), source, Variance(), run)
    assert RefineLines().train(start, source, Variance(), run) is start
    assert start.topology.arity.tolist() == Topology.complete(2).arity.tolist()
