"""Bins and greedy growth: the compiled kernels against what they are to compute, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softwood import _core
from softwood.bins import Bins
from softwood.impurity import AbstractImpurity, Entropy, Gamma, Gini, Newton, Poisson, Variance
from softwood.source import ArraySource
from softwood.targets import (
    AbstractTargets,
    centred_moments,
    class_counts,
    gamma_sums,
    newton_pairs,
    poisson_sums,
    soft_labels,
)
from softwood.train.grow_hard import grow_compiled
from softwood.train.scan import ArrayGrower, GrowLimits, GrownTree

N, P = 700, 5
FREE = GrowLimits(-1, -1, 2, 1, 0.0)


def columns(n: int = N, seed: int = 0) -> np.ndarray:
    """Normal, integer, binary, constant and heavy-tailed columns."""
    rng = np.random.default_rng(seed)
    return np.stack(
        [
            rng.normal(size=n),
            rng.integers(0, 12, n),
            rng.integers(0, 2, n),
            np.full(n, 3.5),
            rng.standard_t(1, n),
        ],
        axis=1,
    )


def labels(n_classes: int, X: np.ndarray, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    score = X[:, 0] + 0.3 * X[:, 1] - 2 * X[:, 2] + rng.normal(size=len(X))
    return np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def targets(kind: str, X: np.ndarray, weight: np.ndarray | None) -> AbstractTargets:
    rng = np.random.default_rng(2)
    score = X[:, 0] + 0.3 * X[:, 1] - 2 * X[:, 2] + rng.normal(size=len(X))
    if kind == "moments":
        return centred_moments(score, weight)[0]
    if kind == "counts":
        return poisson_sums(rng.poisson(np.exp(0.5 * score)), weight)[0]
    if kind == "sizes":
        return gamma_sums(np.exp(score), weight)[0]
    if kind == "soft":
        return soft_labels(rng.dirichlet(np.ones(4), len(X)), weight)
    if kind == "newton":
        return newton_pairs(score, rng.uniform(0.1, 1.0, len(X)), weight)
    if kind == "newton of 3":
        return newton_pairs(rng.normal(size=(len(X), 3)) + score[:, None], rng.uniform(0, 1, (len(X), 3)), weight)
    n_classes = int(kind.split()[0])
    return class_counts(labels(n_classes, X), n_classes, weight)


def source(X: np.ndarray, target: AbstractTargets, copies: np.ndarray | None = None) -> ArraySource:
    n = len(X)
    copies = np.ones(n, dtype=np.int32) if copies is None else copies
    return ArraySource(X, np.arange(n), copies, np.zeros(n, dtype=np.uint64), target)


def both(rows: ArraySource, impurity: AbstractImpurity, limits: GrowLimits, max_bins: int = 255) -> list[GrownTree]:
    array = ArrayGrower(rows.bins(max_bins), rows.targets.dense(), rows.copies, impurity, limits).grow()
    return [grow_compiled(rows, impurity, limits, max_bins, 1), array]


def assert_same(a: GrownTree, b: GrownTree) -> None:
    assert a.arity.tolist() == b.arity.tolist()
    assert a.feature.tolist() == b.feature.tolist()
    assert a.threshold.tolist() == b.threshold.tolist()
    # Sums in another order: the difference is rounding, relative to the largest sum.
    np.testing.assert_allclose(a.statistics, b.statistics, rtol=0, atol=1e-11 * np.abs(b.statistics).max())


CASES: dict[str, tuple[str, AbstractImpurity]] = {
    "gini, 2 classes": ("2 classes", Gini()),
    "gini, 3 classes": ("3 classes", Gini()),
    "gini, 7 classes": ("7 classes", Gini()),
    "gini, soft labels": ("soft", Gini()),
    "entropy, 2 classes": ("2 classes", Entropy()),
    "entropy, 3 classes": ("3 classes", Entropy()),
    "entropy, 7 classes": ("7 classes", Entropy()),
    "entropy, soft labels": ("soft", Entropy()),
    "variance": ("moments", Variance()),
    "poisson": ("counts", Poisson()),
    "gamma": ("sizes", Gamma()),
    "newton": ("newton", Newton(1.0)),
    "newton, no prior": ("newton", Newton(0.0)),
    "newton, 3 outputs": ("newton of 3", Newton(1.0)),
}
LIMITS: dict[str, GrowLimits] = {
    "free": FREE,
    "depth 3": GrowLimits(3, -1, 2, 1, 0.0),
    "11 leaves": GrowLimits(-1, 11, 2, 1, 0.0),
    "leaves of 30": GrowLimits(-1, -1, 2, 30, 0.0),
    "leaves of 60, best first": GrowLimits(6, 7, 2, 60, 0.0),
    "splits of 150": GrowLimits(-1, -1, 150, 1, 0.0),
    "decrease": GrowLimits(-1, -1, 2, 1, 4.0),
    "no depth": GrowLimits(0, -1, 2, 1, 0.0),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("weighted", [False, True], ids=["unit weights", "weights"])
@pytest.mark.parametrize(("kind", "impurity"), CASES.values(), ids=CASES)
def test_the_kernel_grows_the_tree_of_its_array_twin(
    kind: str, impurity: AbstractImpurity, weighted: bool, limits: GrowLimits
) -> None:
    X = columns()
    weight = np.random.default_rng(3).uniform(0.2, 3.0, N) if weighted else None
    copies = np.random.default_rng(4).integers(1, 4, N).astype(np.int32) if weighted else None
    assert_same(*both(source(X, targets(kind, X, weight), copies), impurity, limits, 40))


@pytest.mark.parametrize("kind", ["2 classes", "moments"])
def test_a_large_table_grows_as_its_array_twin(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 9)).astype(np.float32)
    impurity = Gini() if kind == "2 classes" else Variance()
    assert_same(*both(source(X, targets(kind, X, None)), impurity, GrowLimits(8, -1, 2, 5, 0.0)))


@pytest.mark.parametrize("kind", ["2 classes", "7 classes", "moments", "newton"])
@pytest.mark.parametrize("max_leaf_nodes", [-1, 200])
def test_threads_make_no_difference(kind: str, max_leaf_nodes: int) -> None:
    X = np.random.default_rng(0).normal(size=(30_000, 13))
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(X))
    impurity: AbstractImpurity = {"moments": Variance(), "newton": Newton()}.get(kind, Gini())
    target = targets(kind, X, weight)
    order = np.arange(len(X))
    made = [_core.make_bins(X, order, weight, 255, threads) for threads in (1, 3)]
    assert all((a == b).all() for a, b in zip(*made, strict=True))
    limits = GrowLimits(-1, max_leaf_nodes, 2, 3, 0.0)
    one, three = (grow_compiled(source(X, target), impurity, limits, 255, threads) for threads in (1, 3))
    assert one.arity.tobytes() == three.arity.tobytes()
    assert one.threshold.tobytes() == three.threshold.tobytes()
    assert one.statistics.tobytes() == three.statistics.tobytes()


# Bins.


def bins(X: np.ndarray, weight: np.ndarray | None = None, max_bins: int = 255) -> Bins:
    return Bins.of(X, np.arange(len(X)), np.ones(len(X)) if weight is None else weight, max_bins)


WIDE = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.sampled_from(
    [0.0, -0.0, 5e-324, 1e-323, -5e-324, 1.7e308, -1.7e308, 1.0, np.nextafter(1.0, 2.0)]
)
NARROW = st.floats(allow_nan=False, allow_infinity=False, width=32)


def check_bins(x: np.ndarray, table: Bins) -> None:
    """Codes are an order of the values, and every threshold parts exactly the codes it should."""
    codes = table.codes[0]
    assert codes.max() < table.n_bins[0]
    assert np.isin(x, np.concatenate([table.low, table.high])).any()
    for b in range(int(table.n_bins[0]) - 1):
        for following in range(b + 1, int(table.n_bins[0])):
            t = table.threshold(0, b, following)
            assert table.high[b] <= t < table.low[following]
        assert ((x > table.thresholds(0)[b]) == (codes > b)).all()


@given(x=hnp.arrays(np.float64, st.integers(1, 40), elements=WIDE), max_bins=st.sampled_from([2, 5, 255]))
def test_codes_and_thresholds_say_the_same(x: np.ndarray, max_bins: int) -> None:
    check_bins(x, bins(x[:, None], None, max_bins))


@given(x=hnp.arrays(np.float32, st.integers(1, 40), elements=NARROW), max_bins=st.sampled_from([2, 5, 255]))
def test_codes_and_thresholds_say_the_same_of_float32(x: np.ndarray, max_bins: int) -> None:
    check_bins(x, bins(x[:, None], None, max_bins))


@pytest.mark.parametrize("n", [50, 5000, 230_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_values_have_a_bin_each(n: int, dtype: type) -> None:
    values = np.sort(np.random.default_rng(0).normal(size=40)).astype(dtype)
    x = values[np.arange(n) % 40]
    table = bins(x[:, None], None, 40)
    assert (table.low == values).all() and (table.high == values).all()
    assert (table.codes[0] == np.arange(n) % 40).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_values_are_parted_into_equal_weights(dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=60_000).astype(dtype), rng.uniform(0, 3, 60_000)
    table = bins(x[:, None], weight, 100)
    assert table.n_bins[0] == 100
    np.testing.assert_allclose(np.bincount(table.codes[0], weight) / weight.sum(), 0.01, atol=5e-4)


def test_a_heavy_value_has_a_bin_of_its_own_and_leaves_the_others_theirs() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=20_000) < 0.9, 0.0, rng.normal(size=20_000))
    table = bins(x[:, None], None, 50)
    zero = table.codes[0][x == 0][0]
    assert table.low[zero] == table.high[zero] == 0
    assert table.n_bins[0] >= 45


def test_a_weight_of_k_bins_as_k_copies() -> None:
    rng = np.random.default_rng(0)
    x, copies = rng.normal(size=3000), rng.integers(1, 5, 3000)
    weighted, copied = bins(x[:, None], copies.astype(float), 64), bins(np.repeat(x, copies)[:, None], None, 64)
    assert (weighted.low == copied.low).all() and (weighted.high == copied.high).all()


@pytest.mark.parametrize("max_bins", [1, 256, 0, -3])
def test_a_wrong_number_of_bins_is_refused(max_bins: int) -> None:
    with pytest.raises(ValueError, match="max_bins must be an integer between 2 and 255; got"):
        bins(columns(), None, max_bins)


# The border.


def call(**changes: Any) -> Any:
    X = columns(20)
    rows = bins(X)
    values: dict[str, Any] = {
        "codes": rows.codes,
        "offsets": rows.offsets,
        "low": rows.low,
        "high": rows.high,
        "copies": np.ones(20, dtype=np.int32),
        "impurity": "gini",
        "parameter": 0.0,
        "limits": FREE.as_tuple(),
        "n_threads": 1,
        "classes": labels(2, X).astype(np.int32),
        "weights": np.ones(20),
        "n_classes": 2,
    }
    return _core.grow_coded(**{**values, **changes})


def dense_call(**changes: Any) -> Any:
    rows = bins(columns(20))
    values: dict[str, Any] = {
        "codes": rows.codes,
        "offsets": rows.offsets,
        "low": rows.low,
        "high": rows.high,
        "copies": np.ones(20, dtype=np.int32),
        "impurity": "variance",
        "parameter": 0.0,
        "limits": FREE.as_tuple(),
        "n_threads": 1,
        "s": centred_moments(columns(20)[:, 0])[0].s,
    }
    return _core.grow_dense(**{**values, **changes})


def test_the_right_calls_are_answered() -> None:
    assert call()[0].size > 1
    assert dense_call()[0].size > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"copies": np.ones(19, dtype=np.int32)}, "copies need one entry per row"),
        ({"copies": np.zeros(20, dtype=np.int32)}, "every row stands for at least one"),
        ({"offsets": np.zeros(3, dtype=np.int64)}, "offsets need one entry per column and one more"),
        ({"offsets": np.full(6, 2, dtype=np.int64)}, "offsets need one entry per column"),
        ({"offsets": np.array([0, 20, 10, 40, 41, 2])}, "offsets must end with the number of bins"),
        ({"low": np.zeros(3)}, "bins need a low and a high value each"),
        ({"codes": np.full((P, 20), 254, dtype=np.uint8)}, "a code is outside its column's bins"),
        ({"codes": np.zeros((P, 0), dtype=np.uint8)}, "codes need between 1 and"),
        ({"classes": np.zeros(3, dtype=np.int32)}, "classes and weights need one entry per row"),
        ({"classes": np.full(20, 2, dtype=np.int32)}, "a class code is outside"),
        ({"classes": np.full(20, -1, dtype=np.int32)}, "a class code is outside"),
        ({"weights": np.ones(21)}, "classes and weights need one entry per row"),
        ({"impurity": "variance"}, "class codes go with the impurities gini and entropy"),
        ({"limits": (1, 2)}, "limits need five numbers"),
    ],
)
def test_wrong_calls_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"s": np.ones((19, 3))}, "s needs one row per row"),
        ({"s": np.ones((20, 0))}, "s needs one row per row"),
        ({"s": np.ones((20, 2))}, "variance needs three statistics"),
        ({"s": np.ones((20, 3)), "impurity": "newton"}, "newton needs an even number"),
        ({"impurity": "mine"}, "the compiled impurities are"),
    ],
)
def test_wrong_dense_calls_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dense_call(**changes)
