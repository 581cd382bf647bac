"""Laws of where rows come from: content decides, and a weight of k is the row k times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from softwood import _core
from softwood.source import ArraySource, canonical_rows
from softwood.split import Units
from softwood.targets import class_counts

N = 200


def colliding(X: np.ndarray, n_threads: int) -> np.ndarray:
    """A hash that tells nothing apart."""
    return np.zeros(len(X), dtype=np.uint64)


def two_valued(X: np.ndarray, n_threads: int) -> np.ndarray:
    """A hash that tells a little: the sign of the first column."""
    return (X[:, 0] > 0).astype(np.uint64)


@pytest.fixture(params=[None, colliding, two_valued], ids=["the hash", "one hash for all rows", "two hashes"])
def any_hash(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is not None:
        monkeypatch.setattr("softwood.source._core.row_hash", request.param)


def sample(dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of few different values, so that many are equal, some with a value missing; labels; weights 0 to 3."""
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (N, 3)).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.15] = np.nan
    return X, rng.integers(0, 2, N), rng.integers(0, 4, N).astype(float)


def content(X: np.ndarray, key: np.ndarray, weight: np.ndarray) -> tuple[bytes, ...]:
    """All that training can see of the canonical rows, to the last bit."""
    order, _, hashes, summed = canonical_rows(X, key, weight)
    return X[order].tobytes(), key[order].tobytes(), hashes.tobytes(), summed.tobytes()


def counted(X: np.ndarray, key: np.ndarray, weight: np.ndarray) -> dict[tuple[Any, ...], float]:
    """Total weight of each different row, by looking at every row."""
    total: dict[tuple[Any, ...], float] = {}
    for x, label, w in zip(X.tolist(), key.tolist(), weight.tolist(), strict=True):
        if w > 0:
            row = (*("missing" if value != value else value for value in x), label)
            total[row] = total.get(row, 0.0) + w
    return total


@pytest.mark.usefixtures("any_hash")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_become_one_and_different_rows_stay_apart(dtype: type) -> None:
    X, key, weight = sample(dtype)
    order, copies, _, summed = canonical_rows(X, key, weight)
    expected = counted(X, key, weight)
    assert len(expected) < 0.6 * N  # there are equal rows
    assert counted(X[order], key[order], summed) == expected
    assert len(order) == len(expected)
    assert copies.sum() == (weight > 0).sum()


@pytest.mark.usefixtures("any_hash")
def test_a_weight_of_k_is_the_row_k_times_to_the_last_bit() -> None:
    X, key, weight = sample()
    k = weight.astype(int)
    assert content(X, key, weight) == content(np.repeat(X, k, axis=0), np.repeat(key, k), np.ones(k.sum()))


@pytest.mark.usefixtures("any_hash")
def test_the_order_of_the_callers_rows_is_irrelevant_to_the_last_bit() -> None:
    X, key, _ = sample()
    weight = np.random.default_rng(2).uniform(size=N)  # sums of such numbers depend on their order
    expected = content(X, key, weight)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(N)
        assert content(X[shuffled], key[shuffled], weight[shuffled]) == expected


@pytest.mark.usefixtures("any_hash")
def test_rows_without_weight_are_not_there() -> None:
    X, key, weight = sample()
    there = weight > 0
    assert content(X, key, weight) == content(X[there], key[there], weight[there])


def test_no_rows_at_all_are_no_rows() -> None:
    X, key, _ = sample()
    for part in canonical_rows(X, key, np.zeros(N)):
        assert part.size == 0


@pytest.mark.usefixtures("any_hash")
def test_minus_zero_is_zero() -> None:
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    order, copies, _, summed = canonical_rows(X, np.zeros(3), np.ones(3))
    assert (order.size, copies.tolist(), summed.tolist()) == (1, [3], [3.0])


@pytest.mark.usefixtures("any_hash")
def test_a_missing_value_equals_another_whatever_its_bits() -> None:
    X = np.array([[np.nan, 1.0], [np.nan, 1.0], [1.0, np.nan]])
    X.view(np.uint64)[1, 0] ^= np.uint64(0x8000000000000123)  # another sign, another payload
    assert np.isnan(X[1, 0]) and X[0].tobytes() != X[1].tobytes()
    order, copies, _, _ = canonical_rows(X, np.zeros(3), np.ones(3))
    assert sorted(copies.tolist()) == [1, 2]
    assert 2 in order


def test_rows_of_different_targets_stay_apart_and_share_their_content() -> None:
    order, _, hashes, _ = canonical_rows(np.ones((4, 2)), np.array([1, 0, 1, 0]), np.ones(4))
    assert order.size == 2
    assert hashes[0] == hashes[1]


def test_a_hash_is_that_of_the_numbers_in_any_width_and_by_any_threads() -> None:
    X = np.random.default_rng(0).normal(size=(9000, 4)).astype(np.float32)
    hashes = _core.row_hash(X, 1)
    assert np.unique(hashes).size == 9000
    assert (hashes == _core.row_hash(X.astype(np.float64), 3)).all()
    assert (hashes[::-1] == _core.row_hash(np.ascontiguousarray(X[::-1]), 1)).all()


def test_a_hash_feels_every_bit_in_its_column() -> None:
    x = np.array([[1.0, 2.0, 3.0]])
    changed = [x, x[:, ::-1].copy(), x[:, :2].copy(), np.nextafter(x, 9)]
    for j in range(3):
        one = x.copy()
        one[0, j] = -one[0, j]
        changed.append(one)
    assert len({int(_core.row_hash(each, 1)[0]) for each in changed}) == len(changed)


# Units.


def source_of(X: np.ndarray, weight: np.ndarray | None = None, order: np.ndarray | None = None) -> ArraySource:
    order = np.arange(len(X)) if order is None else order
    weight = np.ones(len(X)) if weight is None else weight
    targets = class_counts(np.zeros(order.size, dtype=int), 1, weight)
    return ArraySource(X, order, np.ones(order.size, np.int32), _core.row_hash(X, 1)[order], targets)


def columns_as_numpy(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and deviation in float64 about the first row, constant columns of scale 0."""
    gap = X.astype(np.float64) - X[0].astype(np.float64)
    mean = np.average(gap, axis=0, weights=weight)
    scale = np.sqrt(np.average((gap - mean) ** 2, axis=0, weights=weight))
    return X[0].astype(np.float64) + mean, np.where((X[0] == X).all(axis=0), 0.0, scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 600, 10_000])
def test_units_are_numpys_weighted_moments(dtype: type, n: int) -> None:
    X = zoo.wild_table(n).astype(dtype)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, n)
    center, scale = columns_as_numpy(X, weight)
    units = source_of(X, weight).units
    # The center rounds to float64 where the column is: 1e8 has steps of 1.5e-8, and -1e8 + 1e-3 noise 1e-5 of a scale.
    step = np.spacing(np.abs(center))
    assert (np.abs(units.center - center) <= 2 * step + 1e-13 * scale).all()
    assert (np.abs(units.scale - scale) <= 1e-12 * scale + 2 * step * step / np.where(scale > 0, scale, 1)).all()
    assert ((units.scale == 0) == (X[0] == X).all(axis=0)).all()
    assert ((units.per_scale == 0) == (units.scale == 0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standardised_rows_are_numpys_to_float32(dtype: type) -> None:
    X = zoo.wild_table().astype(dtype)
    center, scale = columns_as_numpy(X, np.ones(600))
    constant = scale == 0
    gap = X.astype(np.float64) - center
    Z = source_of(X).Z
    assert Z.dtype == np.float32
    # One rounding to float32, and the rounding of the center as above: 1.5e-8 beside a scale of 1e-3.
    rounding = np.spacing(np.abs(center)) / np.where(constant, 1, scale)
    expected = np.where(constant, 0, gap / np.where(constant, 1, scale))
    assert (np.abs(Z - expected) <= 1.2e-7 * np.abs(expected) + 2 * rounding + 1e-12).all()
    assert (Z[:, constant] == 0).all()
    assert Z[:, ~constant].astype(np.float64).std(axis=0) == pytest.approx(np.ones((~constant).sum()), rel=1e-6)


def test_units_and_rows_do_not_depend_on_the_number_of_threads() -> None:
    X, order, weight = zoo.wild_table(10_000), np.arange(10_000), np.random.default_rng(1).uniform(size=10_000)
    center, scale = _core.column_moments(X, order, weight, 1)
    for n_threads in (0, 2, 5):
        again = _core.column_moments(X, order, weight, n_threads)
        assert (again[0] == center).all() and (again[1] == scale).all()
        Z = _core.standardise(X, order, center, scale, n_threads)
        assert (_core.standardise(X, order, center, scale, 1) == Z).all()


def test_units_count_a_row_of_weight_k_k_times() -> None:
    X, k = zoo.wild_table(300), np.random.default_rng(1).integers(1, 4, 300)
    weighted, repeated = source_of(X, k.astype(float)).units, source_of(np.repeat(X, k, axis=0)).units
    # Sums in another order, about the same first row.
    assert weighted.center == pytest.approx(repeated.center, rel=1e-12)
    assert weighted.scale == pytest.approx(repeated.scale, rel=1e-12)


def test_only_the_rows_in_order_count() -> None:
    X, order = zoo.wild_table(300), np.array([7, 3, 250, 3])
    some, all_of_some = source_of(X, np.ones(4), order), source_of(X[order])
    assert (some.units.center == all_of_some.units.center).all()
    assert (some.Z == all_of_some.Z).all()


@pytest.mark.filterwarnings("error")
def test_a_constant_column_has_no_per_scale_and_no_warning() -> None:
    units = Units(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
    assert units.per_scale.tolist() == [0.0, 0.25]
    assert Units.none(3).per_scale.tolist() == [1.0, 1.0, 1.0]


def test_taking_rows_gives_them_units_of_their_own() -> None:
    source = source_of(zoo.table(50), np.linspace(1, 2, 50))
    rows = np.array([4, 40, 7])
    part = source.take(rows)
    assert (part.n, part.p) == (3, 3)
    assert (part.targets.weight == source.targets.weight[rows]).all()
    assert (part.content == source.content[rows]).all()
    assert not (part.units.center == source.units.center).any()


def test_leaves_come_in_the_order_of_the_source() -> None:
    X, order = zoo.table(50, 5), np.random.default_rng(0).permutation(50)[:20]
    tree = zoo.TREES["complete 3"]
    assert (source_of(X, np.ones(20), order).leaf_of(tree) == tree.apply(X[order])).all()


# Folds.


def folds_of(n: int = 300, n_folds: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Folds of a table in which every row is there twice, under two labels."""
    X = np.repeat(zoo.table(n // 2), 2, axis=0)
    order, copies, hashes, weight = canonical_rows(X, np.arange(n) % 2, np.ones(n))
    source = ArraySource(X, order, copies, hashes, class_counts(np.zeros(n, dtype=int), 1, weight))
    return source.folds(n_folds, seed), order // 2


@pytest.mark.parametrize("seed", [0, 1, 12345])
@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_keep_equal_rows_together_and_are_balanced(n_folds: int, seed: int) -> None:
    fold, row = folds_of(n_folds=n_folds, seed=seed)
    assert all(np.unique(fold[row == each]).size == 1 for each in range(150))
    sizes = np.bincount(fold, minlength=n_folds)
    assert sizes.size == n_folds
    assert sizes.max() - sizes.min() <= 2  # one row, twice


def test_folds_depend_on_the_seed_and_on_nothing_else() -> None:
    fold, row = folds_of(seed=0)
    assert (fold == folds_of(seed=0)[0]).all()
    first = np.argsort(row, kind="stable")[::2]
    for seed in (1, 2, 3, 1000):
        # Two independent draws of five folds agree on a fifth of 150 rows: 30 give or take 5, and 5 times that.
        assert np.abs((folds_of(seed=seed)[0][first] == fold[first]).sum() - 30) < 25


def test_folds_do_not_follow_the_order_of_the_rows() -> None:
    X, shuffled = zoo.table(100), np.random.default_rng(0).permutation(100)
    fold = source_of(X).folds(3, 7)
    assert (source_of(np.ascontiguousarray(X[shuffled])).folds(3, 7) == fold[shuffled]).all()


# Batches.


def some_batches(seed: int, size: int, n: int = 50, count: int = 12) -> list[np.ndarray]:
    batches = source_of(zoo.table(n)).batches(np.random.default_rng(seed), size)
    return list(batches.draw(count))


@pytest.mark.parametrize("size", [1, 7, 25, 49])
def test_batches_are_a_pure_function_of_the_generator(size: int) -> None:
    one, again, other = some_batches(0, size), some_batches(0, size), some_batches(1, size)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("size", [1, 7, 25, 49])
def test_an_epoch_has_no_row_twice_and_batches_are_full(size: int) -> None:
    per_epoch = 50 // size
    batches = some_batches(0, size, count=2 * per_epoch)
    assert all(batch.size == size for batch in batches)
    for epoch in (batches[:per_epoch], batches[per_epoch:]):
        rows = np.concatenate(epoch)
        assert np.unique(rows).size == rows.size == per_epoch * size
        assert rows.min() >= 0 and rows.max() < 50
    assert (np.concatenate(batches[:per_epoch]) != np.concatenate(batches[per_epoch:])).any()


@pytest.mark.parametrize("size", [7, 25])
def test_batches_do_not_depend_on_how_many_are_drawn_at_once(size: int) -> None:
    batches = source_of(zoo.table(50)).batches(np.random.default_rng(0), size)
    parts = [batches.draw(count) for count in (1, 5, 2, 4)]
    assert (np.concatenate(parts) == some_batches(0, size)).all()


@pytest.mark.parametrize("size", [50, 51, 10_000])
def test_a_batch_is_all_rows_in_order_where_they_fit(size: int) -> None:
    generator = np.random.default_rng(0)
    drawn = source_of(zoo.table(50)).batches(generator, size).draw(3)
    assert (drawn == np.arange(50)).all() and drawn.shape == (3, 50)
    assert generator.integers(1000) == np.random.default_rng(0).integers(1000)  # nothing was drawn
