"""Laws of linear leaves: ridge regression by moments is ridge regression, and lines are inert, checked numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import zoo
from softwood import TreeRegressor
from softwood.export import tree_text
from softwood.impurity import Variance
from softwood.lines import Lines
from softwood.question import Thresholds
from softwood.record import ModelFileError
from softwood.source import ArraySource, canonical_rows
from softwood.storage import tree_from_record, tree_record
from softwood.targets import centred_moments
from softwood.topology import Topology
from softwood.train import fit_lines
from softwood.train.base import Run
from softwood.train.fit_lines import FitLines, leaf_moments, ridge_lines
from softwood.tree import Tree

X, y = load_diabetes(return_X_y=True)
every_tree = pytest.mark.parametrize("tree", zoo.TREES.values(), ids=zoo.TREES)
MODES = pytest.mark.parametrize("training", ["global", "greedy", "cart"])


def source_of(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> ArraySource:
    order, copies, content, weight = canonical_rows(X, y, np.ones(len(y)) if weight is None else weight)
    return ArraySource(X, order, copies, content, centred_moments(y[order], weight, standardise=False)[0])


def with_one_value(tree: Tree) -> Tree:
    return tree.with_values(tree.statistics, tree.values[:, :1])


def lined(tree: Tree, seed: int = 0) -> Tree:
    rng, m = np.random.default_rng(seed), tree.n_nodes
    low = rng.normal(size=m) - 1
    return replace(with_one_value(tree), lines=Lines(rng.normal(size=(m, 5)), rng.normal(size=m), low, low + 2))


def fitted(**settings) -> TreeRegressor:
    usual = {"leaves": "linear", "max_depth": 2, "search": False, "max_iter": 50, "random_state": 0}
    return TreeRegressor(**(usual | settings)).fit(X, y)


@every_tree
def test_a_line_answers_row_by_row(tree: Tree) -> None:
    tree, rows = lined(tree), zoo.table(50, 5)
    leaf, lines = tree.apply(rows), tree.lines
    expected = [
        min(max(lines.offset[k] + lines.slopes[k] @ x, lines.low[k]), lines.high[k])
        for k, x in zip(leaf, rows, strict=True)
    ]  # type: ignore[union-attr]
    assert tree.answers_at(leaf, rows)[:, 0] == pytest.approx(np.array(expected))


@every_tree
def test_soft_answers_weight_lines_by_reach(tree: Tree) -> None:
    tree, rows = lined(tree), zoo.table(50, 5)
    leaves, reach = tree.topology.leaves, tree.reach(zoo.table(50, 5))
    each = [tree.answers_at(np.full(50, leaf), rows)[:, 0] * reach[:, leaf] for leaf in leaves]
    assert tree.soft_answers(rows)[:, 0] == pytest.approx(np.sum(each, axis=0))


@every_tree
def test_lines_come_back_bit_equal(tree: Tree) -> None:
    tree = lined(tree)
    back = tree_from_record(json.loads(json.dumps(tree_record(tree))))
    assert back.lines is not None and tree.lines is not None
    for name, array in vars(tree.lines).items():
        assert getattr(back.lines, name).tobytes() == array.tobytes()
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("slopes", [[1.0] * 4] * 3, "5 slopes"),
        ("offset", [1.0] * 2, "for 3 nodes"),
        ("low", [9.0] * 3, "no low above its high"),
        ("high", [float("nan")] * 3, "not finite"),
        ("offset", ["1"] * 3, "must be a number"),
    ],
)
def test_lines_that_cannot_be_are_refused(name: str, value: list, said: str) -> None:
    record = tree_record(lined(zoo.TREES["stump"]))
    record["lines"][name] = value
    with pytest.raises(ModelFileError, match=said):
        tree_from_record(record)


def test_lines_of_several_values_are_refused() -> None:
    record = tree_record(lined(zoo.TREES["stump"]))
    record["values"] = [[1.0, 2.0]] * 3
    with pytest.raises(ModelFileError, match="lines must have"):
        tree_from_record(record)


def test_a_tree_that_loses_nodes_keeps_the_lines_of_the_rest() -> None:
    tree = lined(zoo.TREES["complete 3"])
    kept = tree.keep(np.arange(tree.n_nodes) == 2)
    rows = zoo.table(50, 5)
    left = tree.visited(rows)[:, 1]
    assert (kept.answers_at(kept.apply(rows), rows)[left] == tree.answers_at(tree.apply(rows), rows)[left]).all()
    assert kept.lines is not None and len(kept.lines.offset) == kept.n_nodes


@every_tree
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_each_node_is_ridge_regression_drawn_to_its_parent(tree: Tree, penalty: float) -> None:
    rows, weight = zoo.table(200, 5), np.random.default_rng(1).uniform(0.2, 3, 200)
    target = rows[:, 0] * rows[:, 1] + rows[:, 2]
    source = source_of(rows, target, weight)
    leaf = source.leaf_of(tree).astype(np.int64)
    parts = fit_lines._handed_up(leaf_moments(source, np.arange(5), leaf, (1, tree.n_nodes)), tree.topology)
    beta = ridge_lines(parts.summed(), tree.topology, penalty)
    visited = tree.visited(rows)[source.order]
    Z1, w, t = np.c_[np.ones(200), source.Z.astype(float)], *(source.targets.dense().T[:2])
    for node, above in enumerate(tree.topology.parent):
        on, start = visited[:, node], np.zeros(6) if node == 0 else beta[above]
        root = np.sqrt(w[on])[:, None]
        extra = np.sqrt(penalty) * np.eye(6)[1 if node == 0 else 0 :]
        left = np.vstack([root * Z1[on], extra])
        right = np.r_[root[:, 0] * (t[on] / w[on]), extra @ start]
        assert beta[node] == pytest.approx(np.linalg.lstsq(left, right, rcond=None)[0], abs=1e-5)


def test_a_straight_line_is_found_whatever_the_units() -> None:
    rows = zoo.table(300, 3) * [1e6, 1e-6, 1.0] + [0, 5.0, 1e4]
    target = 1e8 + 3e-6 * rows[:, 0] + 2e6 * rows[:, 1]
    tree = TreeRegressor(leaves="linear", training="cart", max_depth=1).fit(rows, target)
    assert np.abs(tree.predict(rows) - target).max() < 0.05 * target.std()


def test_a_tree_of_one_leaf_is_nearly_least_squares() -> None:
    source = source_of(X, y)
    stump = Tree.stump(source.targets.total(), np.zeros(1), X.shape[1])
    tree = FitLines().train(stump, source, Variance(), Run(np.random.default_rng(0)))
    expected = LinearRegression().fit(X, y - y.mean()).predict(X)
    assert np.corrcoef(tree.answers_at(tree.apply(X), X)[:, 0], expected)[0, 1] > 0.99


@MODES
def test_copies_are_weights_bit_for_bit(training: str) -> None:
    copies = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"leaves": "linear", "max_depth": 2, "search": False, "max_iter": 50, "training": training}
    weighted = TreeRegressor(**settings, random_state=0).fit(X, y, sample_weight=copies)
    copied = TreeRegressor(**settings, random_state=0).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    assert weighted.predict(X).tobytes() == copied.predict(X).tobytes()


@MODES
def test_threads_do_not_matter(training: str) -> None:
    one, two = fitted(training=training, n_jobs=1), fitted(training=training, n_jobs=2)
    assert one.predict(X).tobytes() == two.predict(X).tobytes()


@MODES
def test_answers_stay_within_the_leafs_targets(training: str) -> None:
    tree = fitted(training=training)
    said = tree.predict(100 * X)
    assert said.min() >= y.min() and said.max() <= y.max()


@MODES
def test_lines_explain_more_than_constants(training: str) -> None:
    assert fitted(training=training).score(X, y) > fitted(training=training, leaves="constant").score(X, y) + 0.02


@pytest.mark.parametrize("routing", ["hard", "soft", "likeliest", "sampled"])
def test_a_record_comes_back_equal(routing: str) -> None:
    tree = fitted(routing=routing)
    again = TreeRegressor.from_record(json.loads(json.dumps(tree.to_record())))
    assert again.predict(X).tobytes() == tree.predict(X).tobytes()


def test_columns_without_room_have_no_slopes(monkeypatch) -> None:
    monkeypatch.setattr(fit_lines, "MOST_MOMENTS", 5 * 7 * 4**2)
    slopes = fitted(training="cart").tree_.lines.slopes
    assert (slopes != 0).any(axis=0).sum() == 3


def test_text_says_the_line_and_its_limits() -> None:
    lines = Lines(
        np.array([[0.0, 0.0], [0.5, -2.0], [0.0, 0.0]]), np.array([0.0, 1.0, 4.0]), np.zeros(3), np.full(3, 9.0)
    )
    moments = np.array([[4.0, 10.0, 30.0], [2.0, 3.0, 5.0], [2.0, 7.0, 25.0]])
    questions = Thresholds(np.array([1]), np.array([0.5]))
    tree = Tree.of_one_kind(Topology.complete(1), questions, moments, np.array([[2.0], [1.0], [4.0]]), 2)
    assert tree_text(replace(tree, lines=lines), feature_names=["age", "debt"]) == (
        "debt > 0.5  [4 rows]\n|-- no: 1 - 2 debt + 0.5 age within 0 to 9  [2 rows]\n`-- yes: 4  [2 rows]\n"
    )
