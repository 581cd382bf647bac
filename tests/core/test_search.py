"""Local search: the compiled kernel against its array twin, and both against every single cut tried by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import reference
import zoo
from core.test_grow import CASES, columns, source, targets
from softwood import _core
from softwood.bins import Bins
from softwood.impurity import AbstractImpurity, Gini
from softwood.source import ArraySource
from softwood.targets import class_counts
from softwood.train.base import Run, root
from softwood.train.grow_hard import GrowHard, grow_compiled
from softwood.train.recut import ArraySearch, questions_of
from softwood.train.scan import GrowLimits, GrownTree
from softwood.train.search import CoordinateDescent, LocalSearch
from softwood.tree import Tree

LIMITS = {
    "depth 3": GrowLimits(3, -1, 2, 1, 0.0),
    "leaves of 10": GrowLimits(4, -1, 2, 10, 0.0),
    "7 leaves": GrowLimits(4, 7, 2, 5, 0.0),
    "splits of 60": GrowLimits(5, -1, 60, 1, 0.0),
    "decrease": GrowLimits(4, -1, 2, 1, 2.0),
}
every_case = pytest.mark.parametrize(("kind", "impurity"), CASES.values(), ids=CASES)


def rows_of(kind: str, weighted: bool, n: int = 300) -> ArraySource:
    X = columns(n)
    weight = np.random.default_rng(5).uniform(0.5, 2.0, n) if weighted else None
    return source(X, targets(kind, X, weight))


def draws(n_rounds: int) -> np.ndarray:
    return np.random.default_rng(1).integers(2**63, size=(n_rounds, 3), dtype=np.uint64)


def both(
    rows: ArraySource, impurity: AbstractImpurity, limits: GrowLimits, n_rounds: int, start: GrownTree | None = None
) -> list[tuple[GrownTree, np.ndarray]]:
    """The kernel's answer and the twin's, from one leaf or from a given tree."""
    bins = rows.bins(255)
    leaf = np.full(1, -1, dtype=np.int32), np.full(1, -1, dtype=np.int32)
    asked = leaf if start is None else questions_of(start.arity, start.feature, start.threshold, bins)
    twin = ArraySearch(bins, rows.targets.dense(), rows.copies, impurity, limits)
    return [compiled(rows, impurity, limits, asked, draws(n_rounds)), twin.run(*asked, draws(n_rounds))]


def compiled(rows: ArraySource, impurity: AbstractImpurity, limits: GrowLimits, asked: Any, drawn: np.ndarray) -> Any:
    bins = rows.bins(255)
    parameter = (*impurity.core_parameters(), 0.0)[0]
    shared = (bins.codes, bins.offsets, bins.low, bins.high, rows.copies, impurity.core_name, parameter)
    classes, _ = rows.targets.core()
    if classes is None:
        found = _core.search_dense(*shared, limits.as_tuple(), 1, *asked, drawn, rows.targets.dense())
    else:
        last = classes, rows.targets.weight, rows.targets.d
        found = _core.search_coded(*shared, limits.as_tuple(), 1, *asked, drawn, *last)
    (arity, feature, threshold, statistics), history = found
    return GrownTree(arity, feature, threshold, statistics.reshape(arity.size, -1)), history


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("weighted", [False, True], ids=["unit weights", "weights"])
@every_case
def test_the_kernel_finds_the_tree_of_its_array_twin(
    kind: str, impurity: AbstractImpurity, weighted: bool, limits: GrowLimits
) -> None:
    (a, J_a), (b, J_b) = both(rows_of(kind, weighted), impurity, limits, 5)
    np.testing.assert_allclose(J_a, J_b, rtol=1e-9)
    assert a.arity.tolist() == b.arity.tolist()
    assert a.feature.tolist() == b.feature.tolist()
    assert a.threshold.tolist() == b.threshold.tolist()
    np.testing.assert_allclose(a.statistics, b.statistics, rtol=0, atol=1e-10 * np.abs(b.statistics).max())


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@every_case
def test_no_round_raises_the_impurity(kind: str, impurity: AbstractImpurity, limits: GrowLimits) -> None:
    rows = rows_of(kind, True)
    grown = grow_compiled(rows, impurity, limits, 255, 1)
    before = float(impurity.phi(grown.statistics[grown.arity == 0]).sum())
    (found, J), _ = both(rows, impurity, limits, 8)
    if limits.min_samples_split == 2:  # small nodes that other cuts leave behind become leaves, which costs
        assert J[0] <= before + 1e-9 * abs(before)
    assert (np.diff(J) <= 1e-11 * np.abs(J[0])).all()
    leaves = found.statistics[found.arity == 0]
    np.testing.assert_allclose(float(impurity.phi(leaves).sum()), J[-1], rtol=1e-9)


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_kept(name: str) -> None:
    limits = LIMITS[name]
    rows = rows_of("3 classes", False)
    (found, _), _ = both(rows, Gini(), limits, 30)
    count = found.statistics.sum(axis=1)
    assert count[found.arity == 0].min() >= limits.min_samples_leaf
    assert count[found.arity > 0].min() >= limits.min_samples_split
    assert limits.max_leaf_nodes < 0 or (found.arity == 0).sum() <= limits.max_leaf_nodes


# A fixpoint of coordinate descent, by brute force.


def total_phi(tree: Any, X: list, s: list, phi: Any) -> float:
    S = reference.node_statistics(tree, X, s)
    return sum(phi(S[k]) for k in reference.leaves_of(tree.topology.arity))


def single_cuts(tree: Tree, X: np.ndarray) -> list[Tree]:
    """All trees that ask another question at one node, thresholds midway between values in the table."""
    table, changed = tree.tables[0], []
    for k in range(table.n_questions):
        for j in range(X.shape[1]):
            values = np.unique(X[:, j])
            for t in (values[:-1] + values[1:]) / 2:
                feature, threshold = table.feature.copy(), table.threshold.copy()
                feature[k], threshold[k] = j, t
                changed.append(replace(tree, tables=(type(table)(feature, threshold),)))
    return changed


@pytest.mark.parametrize("case", zoo.IMPURITIES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_no_single_cut_improves_a_fixpoint(case: zoo.ImpurityCase, seed: int) -> None:
    X = np.random.default_rng(seed).integers(0, 5, (zoo.N_ROWS, 2)).astype(float)
    for encoding in case.encodings:
        rows = source(X, zoo.TARGETS[encoding]())
        run = Run(np.random.default_rng(0))
        tree = root(rows, case.impurity)
        for trainer in (GrowHard(3), CoordinateDescent()):
            tree = trainer.train(tree, rows, case.impurity, run)
        s = rows.targets.dense().tolist()
        found = total_phi(tree, X.tolist(), s, case.phi)
        for other in single_cuts(tree, X):
            assert found <= total_phi(other, X.tolist(), s, case.phi) + 1e-9 * (1 + abs(found))


# What search finds.


def chessboard() -> ArraySource:
    """Four by four fields: no single cut gains anything worth having, four leaves of depth 2 are not enough."""
    i, j = (side.ravel() for side in np.meshgrid(np.arange(40), np.arange(40)))
    y = (i // 20 + j // 20) % 2
    noise = np.random.default_rng(0).normal(size=i.size)
    return source(np.column_stack([noise, i, j]).astype(float), class_counts(y, 2))


def test_search_finds_what_greedy_growth_cannot_see() -> None:
    rows = chessboard()
    phi = {}
    for name, trainer in {"greedy": GrowHard(2), "search": LocalSearch(40, 2)}.items():
        tree = trainer.train(root(rows, Gini()), rows, Gini(), Run(np.random.default_rng(0)))
        phi[name] = float(Gini().phi(tree.statistics[tree.topology.leaves]).sum())
    assert phi["search"] == pytest.approx(0, abs=1e-9)
    assert phi["greedy"] > 100


def test_other_questions_than_thresholds_are_refused() -> None:
    rows = source(columns(zoo.N_ROWS), zoo.TARGETS["class counts"]())
    tree = zoo.mixed_tree(zoo.TOPOLOGIES["complete 3"], 5)
    with pytest.raises(ValueError, match="Local search starts from trees of threshold questions"):
        CoordinateDescent().train(tree, rows, Gini(), Run(np.random.default_rng(0)))


@pytest.mark.parametrize("kind", ["2 classes", "7 classes", "moments", "newton of 3"])
def test_threads_make_no_difference(kind: str) -> None:
    impurity = {"moments": CASES["variance"][1], "newton of 3": CASES["newton"][1]}.get(kind, Gini())
    X = np.random.default_rng(0).normal(size=(6000, 13))
    rows = source(X, targets(kind, X, np.random.default_rng(1).uniform(0.1, 2.0, len(X))))
    found = [
        LocalSearch(6, 4).train(root(rows, impurity), rows, impurity, Run(np.random.default_rng(0), threads))
        for threads in (1, 3)
    ]
    assert found[0].statistics.tobytes() == found[1].statistics.tobytes()
    assert found[0].tables[0].record() == found[1].tables[0].record()


# The border.


def call(**changes: Any) -> Any:
    X = columns(20)
    rows: Bins = source(X, targets("2 classes", X, None)).bins(255)
    values: dict[str, Any] = {
        "codes": rows.codes,
        "offsets": rows.offsets,
        "low": rows.low,
        "high": rows.high,
        "copies": np.ones(20, dtype=np.int32),
        "impurity": "gini",
        "parameter": 0.0,
        "limits": (3, -1, 2.0, 1.0, 0.0),
        "n_threads": 1,
        "feature": np.array([0, -1, -1], dtype=np.int32),
        "bin": np.array([3, -1, -1], dtype=np.int32),
        "draws": draws(3),
        "classes": (X[:, 0] > 0).astype(np.int32),
        "weights": np.ones(20),
        "n_classes": 2,
    }
    return _core.search_coded(**{**values, **changes})


def test_the_right_call_is_answered() -> None:
    assert call()[0][0].size > 1
    assert call(bin=np.array([-1, -1, -1], dtype=np.int32))[0][0].size > 1  # all rows on one side
    assert call(bin=np.array([999, -1, -1], dtype=np.int32))[0][0].size > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature": np.array([0, -1], dtype=np.int32)}, "one feature and one bin per node"),
        ({"feature": np.array([5, -1, -1], dtype=np.int32)}, "a question's feature is outside X"),
        ({"feature": np.array([-2, -1, -1], dtype=np.int32)}, "a question's feature is outside X"),
        ({"feature": np.array([0, 0, -1], dtype=np.int32)}, "two children to each that asks"),
        ({"feature": np.array([-1, -1, -1], dtype=np.int32)}, "two children to each that asks"),
        ({"draws": np.zeros((3, 2), dtype=np.uint64)}, "a round needs three random numbers"),
        ({"classes": np.zeros(3, dtype=np.int32)}, "classes and weights need one entry per row"),
        ({"limits": (1, 2)}, "limits need five numbers"),
    ],
)
def test_wrong_calls_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(**changes)
