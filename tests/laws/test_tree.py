"""Laws of hard trees: one path per row, the same by every way of walking it, and nothing can be written into them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import reference
import zoo
from softwood.question import Linears, Thresholds
from softwood.topology import Topology
from softwood.tree import Tree

every_tree = pytest.mark.parametrize("tree", zoo.TREES.values(), ids=zoo.TREES)


def rows(n: int = 60, seed: int = 1) -> np.ndarray:
    return zoo.table(n, 5, seed)


class Residues(Thresholds):
    """A kind of question that no kernel knows, with as many children as you like: which third is the feature in?"""

    kind = "residue"

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        return (np.floor(X[:, self.feature[k]] * 10) % 3).astype(np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.stack([np.eye(3)[self.answer(X, k)] for k in rows], axis=1)


@every_tree
def test_rows_end_in_the_leaf_of_the_reference(tree: Tree) -> None:
    X = rows()
    expected = [reference.leaf_of_row(tree, x) for x in X.tolist()]
    assert tree.apply(X).tolist() == expected
    assert tree.apply_by_level(X).tolist() == expected


@every_tree
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_and_its_array_twin_route_alike(tree: Tree, dtype: type) -> None:
    X = rows(3000).astype(dtype)
    leaf = tree.apply_by_level(X)
    for n_threads in (0, 1, 3):
        assert (tree.apply(X, n_threads) == leaf).all()


@every_tree
@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda X: X[::-1][::-1],
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: (X * 10).astype(int),
    ],
    ids=["columns first", "reversed twice", "every other row", "integers"],
)
def test_any_layout_of_rows_is_routed(tree: Tree, change: Any) -> None:
    X = change(rows())
    assert tree.apply(X).tolist() == [reference.leaf_of_row(tree, x) for x in X.tolist()]


@every_tree
def test_rows_exactly_on_a_threshold_go_to_child_zero(tree: Tree) -> None:
    X = rows()
    for k, feature in enumerate(tree.tables[0].feature if tree.tables else []):  # type: ignore[attr-defined]
        X[k, feature] = tree.tables[0].threshold[k]  # type: ignore[attr-defined]
    expected = [reference.leaf_of_row(tree, x) for x in X.tolist()]
    assert tree.apply(X).tolist() == tree.apply_by_level(X).tolist() == expected


def test_the_threshold_itself_is_not_above_the_threshold() -> None:
    tree = Tree.of_one_kind(
        Topology.complete(1), Thresholds(np.array([0]), np.array([0.5])), np.zeros((3, 1)), np.zeros((3, 1)), 1
    )
    X = np.array([[0.5], [np.nextafter(0.5, 1)], [np.nan], [np.inf], [-np.inf]])
    assert tree.apply(X).tolist() == tree.apply_by_level(X).tolist() == [1, 2, 1, 2, 1]


def test_a_threshold_is_compared_in_float64_with_a_float32_column() -> None:
    """0.1 in float32 is above 0.1 in float64."""
    tree = Tree.of_one_kind(
        Topology.complete(1), Thresholds(np.array([0]), np.array([0.1])), np.zeros((3, 1)), np.zeros((3, 1)), 1
    )
    X = np.array([[0.1]], dtype=np.float32)
    assert tree.apply(X).tolist() == tree.apply_by_level(X).tolist() == [2]


@every_tree
def test_missing_values_take_child_zero_of_threshold_and_linear_questions(tree: Tree) -> None:
    X = np.full((1, 5), np.nan)
    node = 0
    while tree.topology.arity[node]:
        node = int(tree.topology.first_child[node])
    assert tree.apply(X).tolist() == tree.apply_by_level(X).tolist() == [node]


@every_tree
def test_no_rows_end_in_no_leaves(tree: Tree) -> None:
    assert tree.apply(np.empty((0, 5))).shape == tree.apply_by_level(np.empty((0, 5))).shape == (0,)


@every_tree
def test_visited_is_the_path_of_the_reference(tree: Tree) -> None:
    X = rows()
    visited = tree.visited(X)
    for i, x in enumerate(X.tolist()):
        assert np.flatnonzero(visited[i]).tolist() == sorted(reference.path_of_row(tree, x))


@every_tree
def test_leaf_statistics_add_up_to_the_root(tree: Tree) -> None:
    X, s = rows(zoo.N_ROWS), zoo.statistics("weighted classes")
    S = tree.visited(X).T @ s
    assert pytest.approx(np.array(reference.node_statistics(tree, X.tolist(), s.tolist())), rel=1e-13, abs=1e-14) == S
    assert S[tree.topology.leaves].sum(axis=0) == pytest.approx(s.sum(axis=0), rel=1e-13)  # sums in another order


@every_tree
def test_soft_reach_sums_to_one_over_the_leaves(tree: Tree) -> None:
    reach = tree.reach(rows())
    assert reach[:, tree.topology.leaves].sum(axis=1) == pytest.approx(np.ones(60), rel=1e-14)


@every_tree
def test_soft_reach_is_the_product_of_the_questions_answers(tree: Tree) -> None:
    X = rows(10)
    arity, reach = tree.topology.arity.tolist(), tree.reach(X)
    for i, x in enumerate(X.tolist()):
        for leaf in reference.leaves_of(arity):
            expected, path = 1.0, reference.path_to(arity, leaf)
            for parent, child in zip(path[:-1], path[1:], strict=True):
                table, k = tree.question(parent)
                which = reference.children(arity, parent).index(child)
                if isinstance(table, Linears):
                    score = sum(float(w) * x_j for w, x_j in zip(table.weights[k], x, strict=True)) + float(
                        table.bias[k]
                    )
                    expected *= reference.child_probabilities([score])[which]
                else:
                    expected *= float(reference.answer(table, k, x) == which)
            assert reach[i, leaf] == pytest.approx(expected, rel=0, abs=1e-14)


@pytest.mark.parametrize("shape", zoo.BINARY)
def test_questions_without_soft_answers_reach_exactly_where_they_route(shape: str) -> None:
    topology = zoo.BINARY[shape]
    m = topology.internal.size
    questions = Thresholds(np.arange(m) % 5, np.linspace(-1, 1, m))
    tree = Tree.of_one_kind(topology, questions, np.zeros((topology.n_nodes, 1)), np.zeros((topology.n_nodes, 1)), 5)
    assert (tree.reach(rows()) == tree.visited(rows())).all()


@pytest.mark.parametrize("first", [Thresholds, Linears], ids=lambda cls: cls.kind)
def test_tables_may_come_in_any_order_and_any_number(first: type) -> None:
    """Two tables of one kind are beyond the kernel, and routed all the same."""
    tree = zoo.mixed_tree(Topology.complete(3), 5)
    second = tree.tables[0] if isinstance(tree.tables[0], first) else tree.tables[1]
    swapped = Tree(
        tree.topology,
        (tree.tables[1], tree.tables[0]),
        np.where(tree.table < 0, -1, 1 - tree.table).astype(np.int8),
        tree.row,
        tree.statistics,
        tree.values,
        5,
    )
    # Every question of this kind after the root's level moves to a table of its own, whose rows are in reverse.
    moved = (tree.table == tree.tables.index(second)) & (np.arange(tree.n_nodes) > 2)
    assert moved.any()
    doubled = Tree(
        tree.topology,
        (*tree.tables, second.take(np.arange(second.n_questions)[::-1])),
        np.where(moved, 2, tree.table).astype(np.int8),
        np.where(moved, second.n_questions - 1 - tree.row, tree.row).astype(np.int32),
        tree.statistics,
        tree.values,
        5,
    )
    leaf = tree.apply(rows()).tolist()
    assert swapped.apply(rows()).tolist() == leaf
    assert doubled.apply(rows()).tolist() == leaf


def test_questions_no_kernel_knows_are_routed_by_level() -> None:
    topology = Topology(np.array([3, 0, 3, 0, 0, 0, 0]))
    nothing = np.zeros((7, 1))
    tree = Tree.of_one_kind(topology, Residues(np.array([0, 1]), np.zeros(2)), nothing, nothing, 5)
    X = rows()
    third = np.floor(X * 10) % 3
    expected = np.where(third[:, 0] == 1, 4 + third[:, 1], np.where(third[:, 0] == 0, 1, 3))
    assert (tree.apply(X) == expected).all()
    assert (tree.reach(X) == tree.visited(X)).all()


def test_a_stump_of_one_leaf_takes_every_row() -> None:
    tree = Tree.stump(np.array([3.0, 1.0]), np.array([0.75, 0.25]), 5)
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (1, 1, 0)
    assert tree.apply(rows()).tolist() == [0] * 60
    assert tree.reach(rows()).tolist() == [[1.0]] * 60
    assert tree.values.tolist() == [[0.75, 0.25]]


def test_one_table_is_asked_in_the_order_of_the_internal_nodes() -> None:
    topology = zoo.TOPOLOGIES["ragged"]
    questions = Thresholds(np.arange(5), np.zeros(5))
    tree = Tree.of_one_kind(topology, questions, np.zeros((11, 1)), np.zeros((11, 1)), 5)
    assert [tree.question(int(node)) for node in topology.internal] == [(questions, k) for k in range(5)]


@every_tree
def test_the_arrays_of_a_tree_cannot_be_written(tree: Tree) -> None:
    arrays = [getattr(tree, name) for name in ("table", "row", "statistics", "values")]
    arrays += [tree.topology.arity, tree.topology.first_child, tree.topology.parent]
    arrays += [array for table in tree.tables for array in vars(table).values()]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for field in fields(tree):
        with pytest.raises(FrozenInstanceError):
            setattr(tree, field.name, None)


def test_a_tree_keeps_its_own_copy_of_what_it_was_made_from() -> None:
    feature, threshold = np.array([0], dtype=np.int32), np.array([0.5])
    weights, bias = np.ones((1, 1)), np.zeros(1)
    statistics, values = np.ones((3, 1)), np.ones((3, 1))
    Linears(weights, bias)
    tree = Tree.of_one_kind(Topology.complete(1), Thresholds(feature, threshold), statistics, values, 1)
    for array in (feature, threshold, weights, bias, statistics, values):
        array[...] = 7  # still the caller's
    assert tree.apply(np.array([[1.0]])).tolist() == [2]
    assert (tree.statistics == 1).all() and (tree.values == 1).all()


def test_new_values_make_a_new_tree() -> None:
    tree = zoo.TREES["stump"]
    other = tree.with_values(np.ones((3, 2)), np.zeros((3, 2)))
    assert (other.values == 0).all() and (other.statistics == 1).all()
    assert not (tree.values == 0).any()
    assert (other.apply(rows()) == tree.apply(rows())).all()


# Tables of questions.


@every_tree
def test_a_record_reads_back_as_the_same_questions(tree: Tree) -> None:
    for table in tree.tables:
        back = type(table).from_record(table.record(), 5)
        for name, array in vars(table).items():
            assert (getattr(back, name) == array).all()


@pytest.mark.parametrize(
    "record",
    [
        {"feature": [0, 5], "threshold": [0.0, 1.0]},
        {"feature": [-1], "threshold": [0.0]},
        {"feature": [0, 1], "threshold": [0.0]},
        {"feature": [0], "threshold": [float("nan")]},
        {"feature": [0], "threshold": [float("inf")]},
    ],
)
def test_threshold_records_that_cannot_be_are_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="threshold questions"):
        Thresholds.from_record(record, 5)


@pytest.mark.parametrize(
    "record",
    [
        {"weights": [[1.0, 2.0]], "bias": [0.0]},
        {"weights": [[1.0] * 5], "bias": [0.0, 1.0]},
        {"weights": [1.0] * 5, "bias": [0.0]},
        {"weights": [[1.0] * 4 + [float("inf")]], "bias": [0.0]},
        {"weights": [[1.0] * 5], "bias": [float("nan")]},
    ],
)
def test_linear_records_that_cannot_be_are_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="linear questions need"):
        Linears.from_record(record, 5)


@every_tree
def test_taking_questions_and_naming_their_features(tree: Tree) -> None:
    for table in tree.tables:
        order = np.arange(table.n_questions)[::-1]
        for new, old in enumerate(order):
            assert (table.take(order).answer(rows(), new) == table.answer(rows(), int(old))).all()
            others = [j for j in range(5) if j not in table.features(int(old))]
            changed = rows()
            changed[:, others] = 1e3  # what a question does not look at does not matter
            assert (table.answer(changed, int(old)) == table.answer(rows(), int(old))).all()


def test_texts_name_the_condition_of_child_one() -> None:
    names = ["age", "income"]
    assert Thresholds(np.array([1]), np.array([0.5])).text(0, names) == "income > 0.5"
    assert Linears(np.array([[1.0, -2.0]]), np.array([3.0])).text(0, names) == "-2 income +1 age > -3"
    assert Linears(np.array([[0.0, 0.0]]), np.array([0.0])).text(0, names) == "0 > 0"


# The reference's own search for a cut has an oracle as well.


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_the_best_cut_by_brute_force_is_that_of_scikit_learn(criterion: str) -> None:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X, rng = zoo.table(40, 3), np.random.default_rng(4)
    if criterion == "squared_error":
        y = X[:, 1] ** 3 + rng.normal(size=40)
        s, phi = np.stack([np.ones(40), y, y * y], axis=1), reference.variance_phi
        oracle: Any = DecisionTreeRegressor(max_depth=1, random_state=0)
    else:
        y = (X[:, 2] + rng.normal(size=40) > 0.3).astype(int)
        s = np.eye(2)[y]
        phi = reference.gini_phi if criterion == "gini" else reference.entropy_phi
        oracle = DecisionTreeClassifier(max_depth=1, criterion=criterion, random_state=0)
    oracle.fit(X.astype(np.float32), y)
    cut = reference.best_cut(X.astype(np.float32).astype(float).tolist(), s.tolist(), phi)
    assert cut is not None
    assert cut[1] == oracle.tree_.feature[0]
    assert cut[2] == pytest.approx(oracle.tree_.threshold[0], rel=1e-6)  # scikit-learn cuts between float32 numbers
