"""Laws of every split family: scores as written down, an exact way back, and hard questions that are their limit."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import zoo
from derivatives import check_vjp
from softwood import objective
from softwood.objective import gates, sweep_down
from softwood.question import QUESTIONS, Thresholds
from softwood.source import ArraySource
from softwood.split import SPLITS, AbstractSplit, Axis, Custom, Linear, Units
from softwood.targets import class_counts
from softwood.topology import Topology
from softwood.tree import Tree

P = 3  # columns

EVERY = [(case, name) for case in zoo.SPLITS for name in case.topologies]
# Hard linear and axis questions have two children.
HARD = [(case, name) for case, name in EVERY if name in zoo.BINARY or case.name not in ("linear", "axis", "layered")]
every_split = pytest.mark.parametrize("case", zoo.SPLITS, ids=str)
every_soft_tree = pytest.mark.parametrize(("case", "shape"), EVERY, ids=[f"{case}-{name}" for case, name in EVERY])
every_hard_tree = pytest.mark.parametrize(("case", "shape"), HARD, ids=[f"{case}-{name}" for case, name in HARD])


def soft_tree(case: zoo.SplitCase, shape: str) -> tuple[AbstractSplit, Topology, np.ndarray]:
    topology = case.topologies[shape]
    return case.make(topology, P), topology, zoo.random_theta(case, topology, P)


def harden(split: AbstractSplit, theta: np.ndarray, topology: Topology, units: Units) -> Tree:
    nothing = np.zeros((topology.n_nodes, 1))
    return Tree.of_tables(topology, split.tables(theta, topology, units), nothing, nothing, units.center.size)


def families(interface: type) -> set[type]:
    """The final classes of ours below an interface."""
    below = [cls for cls in interface.__subclasses__() if cls.__module__.startswith("softwood.")]
    return set().union(*(families(cls) if inspect.isabstract(cls) else {cls} for cls in below))


def test_every_registered_split_is_in_the_zoo() -> None:
    made = {type(case.make(zoo.TOPOLOGIES["stump"], P)) for case in zoo.SPLITS}
    assert made >= set(SPLITS.values())


def test_every_split_is_registered_under_its_name() -> None:
    assert families(AbstractSplit) == {*SPLITS.values(), Custom}  # Custom has no meaning without a user's functions
    assert all(cls.name == name for name, cls in SPLITS.items())


def test_every_kind_of_question_is_in_the_zoo() -> None:
    assert zoo.QUESTIONS == QUESTIONS


def test_every_reverse_pass_is_checked() -> None:
    """Whoever writes a new ``_vjp`` adds it here and a call of check_vjp to the tests of its module."""
    checked = {"scores_vjp", "gates_vjp", "score_vjp", "scores_at_vjp"}  # the last two: own_families, sampled
    found = set()
    for file in Path(objective.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_vjp"):
                found.add(node.name)
    assert found == checked


@every_soft_tree
def test_scores_equal_the_reference(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    X = zoo.table(p=P)
    Z = split.scores(theta, X, topology)
    assert Z.shape == (zoo.N_ROWS, topology.n_scores.sum())
    for x, z in zip(X, Z, strict=True):
        # A sum of a few products, in another order.
        assert z == pytest.approx(np.array(case.scores(theta.tolist(), x.tolist(), topology)), rel=1e-13, abs=1e-14)


@every_soft_tree
def test_scores_vjp_is_the_way_back_of_scores(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    X = zoo.table(p=P)
    check_vjp(
        lambda theta: split.scores(theta, X, topology),
        lambda theta, Z_bar: split.scores_vjp(theta, X, topology, Z_bar),
        theta,
    )


@every_soft_tree
def test_scores_of_a_row_do_not_depend_on_the_other_rows(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    X = zoo.table(p=P)
    order = np.random.default_rng(1).permutation(zoo.N_ROWS)
    whole = split.scores(theta, X, topology)
    # A matrix product may sum in another order for another shape.
    assert split.scores(theta, X[order], topology) == pytest.approx(whole[order], rel=1e-13, abs=1e-14)
    assert split.scores(theta, X[4:5], topology) == pytest.approx(whole[4:5], rel=1e-13, abs=1e-14)


@every_soft_tree
def test_scores_keep_float32(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    X, theta = zoo.table(p=P).astype(np.float32), theta.astype(np.float32)
    Z = split.scores(theta, X, topology)
    assert Z.dtype == np.float32
    assert split.scores_vjp(theta, X, topology, Z).dtype == np.float32


@every_soft_tree
def test_parameters_decay_and_start_as_one_flat_array(case: zoo.SplitCase, shape: str) -> None:
    split, topology, _ = soft_tree(case, shape)
    q = split.n_parameters(topology, P)
    start = split.random(topology, P, np.random.default_rng(3))
    assert start.shape == (q,)
    assert np.isfinite(start).all()
    assert (start == split.random(topology, P, np.random.default_rng(3))).all()
    assert split.decays(topology, P).shape == (q,)
    assert split.decays(topology, P).dtype == bool


@every_soft_tree
def test_weights_decay_and_offsets_do_not(case: zoo.SplitCase, shape: str) -> None:
    """And with every weight at 0, a score does not depend on the row."""
    split, topology, theta = soft_tree(case, shape)
    expected = np.ones(theta.size, dtype=bool)
    expected[case.offsets(topology, P)] = False
    assert (split.decays(topology, P) == expected).all()
    theta = np.where(split.decays(topology, P), 0.0, theta)
    Z = split.scores(theta, zoo.table(p=P), topology)
    assert (Z[:1] == Z).all()


def margins(Z: np.ndarray, topology: Topology) -> np.ndarray:
    """(n,) by how much the best child of each node leads, at the node where that is least."""
    least, start = np.full(len(Z), np.inf), 0
    for count in topology.n_scores:
        scores = np.sort(Z[:, start : start + count], axis=1)
        lead = np.abs(scores[:, 0]) if count == 1 else scores[:, -1] - scores[:, -2]
        least, start = np.minimum(least, lead), start + count
    return least


@every_hard_tree
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_sharp_limit_of_a_soft_tree_is_its_hard_tree(case: zoo.SplitCase, shape: str, seed: int) -> None:
    """In standard units, and hardened into those of a table nobody should have."""
    topology = case.topologies[shape]
    X = zoo.wild_table(200, seed)
    p = X.shape[1]
    split, theta = case.make(topology, p), zoo.random_theta(case, topology, p, seed)
    source = ArraySource(
        X, np.arange(200), np.ones(200, np.int32), np.zeros(200, np.uint64), class_counts([0] * 200, 1)
    )
    Z = (X - source.units.center) * source.units.per_scale
    scores = split.scores(theta, Z, topology)
    clear = margins(scores, topology) > 1e-6  # rows that rounding cannot move: 1e8 / 1e-3 leaves 1e-5 units of 1e-16
    assert clear.mean() > 0.95
    sharp = sweep_down(gates(split.scores(case.sharpen(theta, 1e9, topology, p), Z, topology), topology), topology)
    visited = harden(split, theta, topology, source.units).visited(X)
    np.testing.assert_allclose(sharp[clear], visited[clear], rtol=0, atol=1e-14)  # sigmoids of 1000 and more


@every_hard_tree
def test_a_sharper_tree_routes_rows_the_same_way(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    X, units = zoo.table(100, P), Units.none(P)
    leaf = harden(split, theta, topology, units).apply(X)
    assert (harden(split, case.sharpen(theta, 7.0, topology, P), topology, units).apply(X) == leaf).all()


@every_hard_tree
def test_there_is_one_hard_question_per_internal_node(case: zoo.SplitCase, shape: str) -> None:
    split, topology, theta = soft_tree(case, shape)
    tables = split.tables(theta, topology, Units.none(P))
    assert sum(table.n_questions for table in tables) == topology.internal.size


@pytest.mark.parametrize("shape", [name for name in zoo.TOPOLOGIES if name not in zoo.BINARY])
def test_linear_questions_of_many_children_are_refused(shape: str) -> None:
    topology = zoo.TOPOLOGIES[shape]
    split = Linear()
    theta = np.zeros(split.n_parameters(topology, P))
    with pytest.raises(ValueError, match=r"have two children, but a node of this tree has [35]"):
        split.questions(theta, topology, Units.none(P))


@pytest.mark.parametrize("shape", zoo.BINARY)
def test_hard_linear_questions_keep_their_soft_answers(shape: str) -> None:
    """The scale of the weights is the sharpness: the tree of the users' units reaches as the one of standard units."""
    topology = zoo.BINARY[shape]
    units = Units(np.array([5.0, -1e3, 0.1]), np.array([1e-3, 2e4, 1.0]))
    Z = zoo.table(50, P)
    split, theta = Linear(), np.random.default_rng(0).normal(size=Linear().n_parameters(topology, P))
    reach = sweep_down(gates(split.scores(theta, Z, topology), topology), topology)
    tree = harden(split, theta, topology, units)
    # A center of 5 beside a scale of 1e-3 costs four digits of sixteen.
    assert tree.reach(Z * units.scale + units.center) == pytest.approx(reach, abs=1e-11)


@pytest.mark.parametrize("steepness", [2.0, -2.0])
def test_axis_child_one_is_above_the_threshold_whatever_the_sign_of_the_steepness(steepness: float) -> None:
    topology, split = Topology.complete(1), Axis([0])
    theta, X = np.array([steepness, 0.5]), np.array([[0.0], [1.0]])
    assert (split.scores(theta, X, topology) > 0).ravel().tolist() == [False, True]
    assert split.questions(theta, topology, Units.none(1)).answer(X, 0).tolist() == [0, 1]


@pytest.mark.parametrize("threshold", [-0.7, 0.7])
def test_a_constant_column_stays_on_its_side_of_an_axis_question(threshold: float) -> None:
    topology, split, X = Topology.complete(1), Axis([0]), np.full((3, 1), 4.25)
    units = Units(np.array([4.25]), np.array([0.0]))
    theta = np.array([2.0, threshold])
    soft = split.scores(theta, (X - units.center) * units.per_scale, topology) > 0
    questions = split.questions(theta, topology, units)
    assert isinstance(questions, Thresholds)
    assert (questions.answer(X, 0) == soft[:, 0]).all()
