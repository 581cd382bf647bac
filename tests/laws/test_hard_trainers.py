"""Laws of the trainers of hard trees: grow, prune, harden; scikit-learn's trees as an oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import zoo
from softwood.impurity import AbstractImpurity, Entropy, Gini, Variance
from softwood.question import Linears, Thresholds
from softwood.source import ArraySource, canonical_rows
from softwood.targets import AbstractTargets, centred_moments, class_counts
from softwood.topology import Topology
from softwood.train.base import Run, root
from softwood.train.grow_hard import GrowHard
from softwood.train.harden import Harden
from softwood.train.prune import Prune, pruning_path
from softwood.tree import Tree

N = 600


def run() -> Run:
    return Run(np.random.default_rng(0))


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of few values, so that bins are exact; a class and a number to predict; weights without ties."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, (N, 4)).astype(np.float64) / 7
    score = np.sin(X[:, 0]) + 0.5 * X[:, 1] - 0.2 * X[:, 2] * X[:, 3] + rng.normal(scale=0.5, size=N)
    return X, score, rng.uniform(0.5, 2.0, N)


def source(X: np.ndarray, y: np.ndarray, target: AbstractTargets) -> ArraySource:
    n = len(X)
    return ArraySource(X, np.arange(n), np.ones(n, np.int32), np.zeros(n, np.uint64), target)


def grow(rows: ArraySource, impurity: AbstractImpurity, **settings: Any) -> Tree:
    return GrowHard(**settings).train(root(rows, impurity), rows, impurity, run())


@dataclass(frozen=True)
class Task:
    """An impurity with the scikit-learn tree that has it."""

    name: str
    impurity: AbstractImpurity
    criterion: str

    @property
    def is_classifier(self) -> bool:
        return self.criterion != "squared_error"

    def problem(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, AbstractTargets]:
        X, score, weight = data()
        if self.is_classifier:
            y = np.digitize(score, np.quantile(score, [0.4, 0.7]))
            return X, y, weight, class_counts(y, 3, weight)
        return X, score, weight, centred_moments(score, weight, standardise=False)[0]

    def oracle(self, **settings: Any) -> Any:
        kind = DecisionTreeClassifier if self.is_classifier else DecisionTreeRegressor
        return kind(criterion=self.criterion, random_state=0, **settings)

    @property
    def unit(self) -> float:
        """Their entropy is in bits, ours in nats."""
        return float(np.log(2)) if self.criterion == "entropy" else 1.0


TASKS = [
    Task("gini", Gini(), "gini"),
    Task("entropy", Entropy(), "entropy"),
    Task("variance", Variance(), "squared_error"),
]
LIMITS: list[dict[str, Any]] = [
    {"max_depth": 4},
    {"max_depth": 7, "min_samples_leaf": 12},
    {"max_depth": 6, "min_samples_split": 40},
    {"max_leaf_nodes": 14},
    {"max_leaf_nodes": 9, "min_samples_leaf": 20},
    {"max_depth": 9, "min_impurity_decrease": 0.004, "min_samples_leaf": 5},
    {"max_leaf_nodes": 60, "min_impurity_decrease": 0.01, "min_samples_leaf": 5},
]
tasks = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def assert_same_nodes(tree: Tree, oracle: Any, impurity: AbstractImpurity, unit: float) -> None:
    """Walk both trees together."""
    theirs, total = oracle.tree_, oracle.tree_.weighted_n_node_samples[0]
    pairs = [(0, 0)]
    for ours, other in pairs:  # grows while it is walked
        weight = theirs.weighted_n_node_samples[other]
        phi = float(impurity.phi(tree.statistics[ours]))
        np.testing.assert_allclose(phi / unit / total, theirs.impurity[other] * weight / total, atol=1e-10)
        is_leaf = theirs.children_left[other] < 0
        assert is_leaf == (tree.topology.arity[ours] == 0)
        if not is_leaf:
            table, k = tree.question(ours)
            assert isinstance(table, Thresholds)
            assert table.feature[k] == theirs.feature[other]
            np.testing.assert_allclose(table.threshold[k], theirs.threshold[other], rtol=1e-6)  # they read float32
            first = int(tree.topology.first_child[ours])
            pairs += [(first, theirs.children_left[other]), (first + 1, theirs.children_right[other])]
    assert len(pairs) == tree.n_nodes


@tasks
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_growth_is_scikit_learns_node_by_node(task: Task, limits: dict[str, Any]) -> None:
    X, y, weight, target = task.problem()
    settings = dict(limits)
    if "min_impurity_decrease" in settings:
        settings["min_impurity_decrease"] *= task.unit
    tree = grow(source(X, y, target), task.impurity, **settings)
    oracle = task.oracle(**limits).fit(X, y, sample_weight=weight)
    assert tree.n_nodes > 3
    assert_same_nodes(tree, oracle, task.impurity, task.unit)


@tasks
def test_the_pruning_path_is_scikit_learns(task: Task) -> None:
    X, y, weight, target = task.problem()
    tree = grow(source(X, y, target), task.impurity, max_depth=6, min_samples_leaf=8)
    oracle = task.oracle(max_depth=6, min_samples_leaf=8)
    path = oracle.cost_complexity_pruning_path(X, y, sample_weight=weight)
    alphas, impurities = pruning_path(tree, task.impurity, float(weight.sum()))
    gains = np.append(True, path.ccp_alphas[1:] > 1e-12)  # they also make cuts that gain nothing
    np.testing.assert_allclose(alphas / task.unit, path.ccp_alphas[gains], atol=1e-10)
    np.testing.assert_allclose(impurities / task.unit, path.impurities[gains], atol=1e-10)


@tasks
@pytest.mark.parametrize("quantile", [0.3, 0.7, 0.95])
def test_pruned_trees_are_scikit_learns(task: Task, quantile: float) -> None:
    X, y, weight, target = task.problem()
    rows = source(X, y, target)
    tree = grow(rows, task.impurity, max_depth=6, min_samples_leaf=8)
    alphas = np.unique(pruning_path(tree, task.impurity, float(weight.sum()))[0])
    at = int(quantile * (alphas.size - 1))
    alpha = float(alphas[at : at + 2].mean())  # between two: not decided by rounding
    pruned = Prune(alpha).train(tree, rows, task.impurity, run())
    oracle = task.oracle(max_depth=6, min_samples_leaf=8, ccp_alpha=alpha / task.unit).fit(X, y, sample_weight=weight)
    assert 1 < pruned.n_nodes < tree.n_nodes
    assert_same_nodes(pruned, oracle, task.impurity, task.unit)


def test_pruning_by_nothing_returns_its_input_and_by_everything_one_leaf() -> None:
    X, y, _, target = TASKS[0].problem()
    rows = source(X, y, target)
    tree = grow(rows, Gini(), max_depth=5)
    assert Prune(0.0).train(tree, rows, Gini(), run()) is tree
    stump = Prune(1e9).train(tree, rows, Gini(), run())
    assert stump.n_nodes == 1 and stump.tables == ()
    assert (stump.statistics[0] == tree.statistics[0]).all()


@tasks
def test_growth_never_raises_the_impurity_and_leaves_add_up_to_the_root(task: Task) -> None:
    X, y, _, target = task.problem()
    tree = grow(source(X, y, target), task.impurity)
    leaves = tree.statistics[tree.topology.leaves]
    np.testing.assert_allclose(leaves.sum(axis=0), target.total(), rtol=1e-12, atol=1e-9)
    phi = task.impurity.phi(tree.statistics)
    for node in tree.topology.internal:
        first = int(tree.topology.first_child[node])
        assert phi[first] + phi[first + 1] < phi[node]


@tasks
def test_statistics_are_those_of_the_rows_that_take_each_node(task: Task) -> None:
    X, y, _, target = task.problem()
    rows = source(X, y, target)
    tree = grow(rows, task.impurity, max_depth=7)
    expected = tree.visited(X).T.astype(float) @ target.dense()
    np.testing.assert_allclose(tree.statistics, expected, atol=1e-9)
    hardened = Harden("hard").train(tree, rows, task.impurity, run())
    assert hardened.topology.arity.tolist() == tree.topology.arity.tolist()
    np.testing.assert_allclose(hardened.statistics, expected, atol=1e-9)


@tasks
def test_a_weight_of_k_grows_the_tree_of_k_copies(task: Task) -> None:
    X, y, _, _ = task.problem()
    copies = np.random.default_rng(1).integers(1, 4, N)

    def tree(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Tree:
        order, count, content, summed = canonical_rows(X, y, weight)
        target: AbstractTargets
        if task.is_classifier:
            target = class_counts(y[order], 3, summed)
        else:
            target = centred_moments(y[order], summed)[0]
        rows = ArraySource(X, order, count, content, target)
        return grow(rows, task.impurity, max_depth=6)

    weighted, copied = (
        tree(X, y, copies.astype(float)),
        tree(X.repeat(copies, 0), y.repeat(copies), np.ones(copies.sum())),
    )
    assert weighted.statistics.tobytes() == copied.statistics.tobytes()
    assert weighted.tables[0].record() == copied.tables[0].record()


def test_a_users_impurity_grows_by_the_array_twin() -> None:
    """Tsallis of order 2 is gini."""
    X, y, _, target = TASKS[0].problem()
    rows = source(X, y, target)
    ours, users = (grow(rows, impurity, max_depth=5) for impurity in (Gini(), zoo.Tsallis(2.0)))
    assert ours.tables[0].record() == users.tables[0].record()
    np.testing.assert_allclose(ours.statistics, users.statistics)


def test_the_eight_row_table_asks_its_third_feature_first() -> None:
    """Root gini 0.46875; the costs of the three questions are 0.4375, 0.4375 and 0.1875."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=float)
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0])
    tree = grow(source(X, y, class_counts(y, 2)), Gini(), max_depth=1)
    assert Gini().phi(tree.statistics[0]) / 8 == 0.46875
    assert tree.tables[0].record() == {"feature": [2], "threshold": [0.5]}
    assert Gini().phi(tree.statistics[1:]).sum() / 8 == 0.1875


def test_nothing_is_asked_where_nothing_improves() -> None:
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = np.array([0, 1, 1, 0])  # no single question tells anything
    assert grow(source(X, y, class_counts(y, 2)), Gini()).n_nodes == 1


ODD = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308])


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 25), st.integers(1, 4)), elements=ODD),
    seed=st.integers(0, 1000),
    n_classes=st.sampled_from([1, 2, 3, 40]),
    max_leaf_nodes=st.sampled_from([None, 2, 5]),
)
def test_any_table_grows_a_tree_whose_leaves_hold_their_rows(
    X: np.ndarray, seed: int, n_classes: int, max_leaf_nodes: int | None
) -> None:
    y = np.random.default_rng(seed).integers(0, n_classes, len(X))
    rows = source(X, y, class_counts(y, n_classes))
    tree = grow(rows, Gini(), max_leaf_nodes=max_leaf_nodes)
    leaf = rows.leaf_of(tree)
    for node in tree.topology.leaves:
        assert np.bincount(y[leaf == node], minlength=n_classes).tolist() == tree.statistics[node].tolist()
    assert max_leaf_nodes is None or tree.n_leaves <= max_leaf_nodes
    assert np.isfinite(tree.values).all()


@given(
    y=hnp.arrays(np.float64, st.integers(1, 25), elements=st.floats(-1e6, 1e6)),
    scale=st.sampled_from([1e-200, 1.0, 1e150]),
)
def test_any_numbers_grow_a_regression_tree(y: np.ndarray, scale: float) -> None:
    X = scale * np.arange(len(y), dtype=float)[:, None]
    rows = source(X, y, centred_moments(y)[0])
    tree = grow(rows, Variance())
    assert np.isfinite(tree.values).all()
    assert tree.n_leaves <= len(y)


@pytest.mark.parametrize("center", [0.0, 0.1, -3e7, 1e15])
def test_a_constant_target_is_not_split(center: float) -> None:
    X, _, weight = data()
    y = np.full(N, center)
    rows = source(X, y, centred_moments(y, weight)[0])
    assert grow(rows, Variance()).n_nodes == 1


# Harden.


def slanted(topology: Topology, seed: int = 0) -> tuple[Tree, ArraySource]:
    X, score, _ = data()
    y = (score > np.median(score)).astype(int)
    tree = zoo.mixed_tree(topology, X.shape[1], seed)
    return tree, source(X, y, class_counts(y, 2))


@pytest.mark.parametrize("least", [1, 25])
@pytest.mark.parametrize("seed", range(4))
def test_hardening_leaves_no_thin_branch_and_exact_statistics(seed: int, least: int) -> None:
    tree, rows = slanted(Topology.complete(5), seed)
    hard = Harden("hard", least).train(tree, rows, Gini(), run())
    expected = hard.visited(rows.X).T.astype(float) @ rows.targets.dense()
    np.testing.assert_array_equal(hard.statistics, expected)
    assert hard.statistics.sum(axis=1).min() >= least
    assert 1 <= hard.n_nodes < tree.n_nodes
    np.testing.assert_array_equal(
        hard.values[hard.topology.leaves], Gini().value(hard.statistics)[hard.topology.leaves]
    )


@pytest.mark.parametrize("seed", range(4))
def test_hardening_with_soft_values_changes_no_answer(seed: int) -> None:
    """A branch without rows gives way, and the rows there are keep their values."""
    tree, rows = slanted(Topology.complete(6), seed)
    hard = Harden("soft").train(tree, rows, Gini(), run())
    assert hard.n_nodes < tree.n_nodes
    np.testing.assert_array_equal(hard.values[hard.apply(rows.X)], tree.values[tree.apply(rows.X)])


def test_questions_whose_children_answer_the_same_go() -> None:
    tree, rows = slanted(Topology.complete(3))
    same = tree.with_values(tree.statistics, np.ones((tree.n_nodes, 2)))
    assert Harden("soft").train(same, rows, Gini(), run()).n_nodes == 1


@pytest.mark.parametrize(("empty", "n_leaves"), [(0.38, 2), (0.62, 3)], ids=["nearly the same", "another"])
def test_an_empty_leaf_stays_only_where_it_answers_otherwise_than_its_sibling(empty: float, n_leaves: int) -> None:
    """Node 3 is a leaf that no row takes, though each passes near; its sibling 4 and the leaf 2 have rows."""
    _, rows = slanted(Topology.leaf())
    least = float(rows.X[:, 0].min())
    questions = Linears(np.array([[4.0, 0, 0, 0], [0.1, 0, 0, 0]])[:, : rows.p], np.array([0.0, 0.01 - 0.1 * least]))
    share = np.array([0.5, 0.4, 0.9, empty, 0.4])  # of class 0
    values = np.stack([share, 1 - share], axis=1)
    tree = Tree.of_one_kind(Topology(np.array([2, 2, 0, 0, 0])), questions, np.zeros((5, 2)), values, rows.p)
    assert not (tree.apply(rows.X) == 3).any()
    hard = Harden("soft").train(tree, rows, Gini(), run())
    assert hard.n_leaves == n_leaves
    np.testing.assert_array_equal(hard.values[hard.apply(rows.X)], tree.values[tree.apply(rows.X)])


# Tree.keep.


def test_keep_drops_the_questions_nobody_asks() -> None:
    tree, rows = slanted(Topology.complete(4))
    collapse = np.zeros(tree.n_nodes, dtype=bool)
    collapse[[1, 5]] = True
    kept = tree.keep(collapse)
    assert sum(table.n_questions for table in kept.tables) == kept.topology.internal.size < 15
    passed = tree.visited(rows.X)
    merged = np.where(passed[:, 1], 1, np.where(passed[:, 5], 5, tree.apply(rows.X)))
    np.testing.assert_array_equal(kept.values[kept.apply(rows.X)], tree.values[merged])


def test_keep_of_everything_is_the_same_tree() -> None:
    tree, rows = slanted(zoo.TOPOLOGIES["ragged"])
    kept = tree.keep(np.zeros(tree.n_nodes, dtype=bool))
    np.testing.assert_array_equal(kept.apply(rows.X), tree.apply(rows.X))
    np.testing.assert_array_equal(kept.values, tree.values)
