"""Laws of targets: whatever holds the statistics, they are the same sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import zoo
from softwood.targets import AbstractTargets, centred_moments, class_counts, newton_pairs, soft_labels

every_encoding = pytest.mark.parametrize("make", zoo.TARGETS.values(), ids=zoo.TARGETS)
Make = Callable[[], AbstractTargets]


def test_every_class_of_targets_is_in_the_zoo() -> None:
    assert {type(make()) for make in zoo.TARGETS.values()} == set(AbstractTargets.__subclasses__())


@every_encoding
def test_sizes_agree(make: Make) -> None:
    targets = make()
    assert targets.dense().shape == (targets.n, targets.d)
    assert targets.weight.shape == (targets.n,)
    assert targets.total().shape == (targets.d,)


@every_encoding
def test_the_total_is_the_sum_of_the_rows(make: Make) -> None:
    targets = make()
    # Sums of a dozen numbers in two orders.
    assert targets.total() == pytest.approx(targets.dense().sum(axis=0), rel=1e-14, abs=1e-14)
    assert targets.total().dtype == np.float64


@every_encoding
@pytest.mark.parametrize("rows", [np.array([3, 0, 3, 11]), slice(2, 9, 3), np.arange(zoo.N_ROWS) % 2 == 0], ids=repr)
def test_taking_rows_takes_their_statistics_and_weights(make: Make, rows: np.ndarray | slice) -> None:
    targets = make()
    part = targets.take(rows)
    assert (part.dense() == targets.dense()[rows]).all()
    assert (part.weight == targets.weight[rows]).all()
    assert part.d == targets.d


@every_encoding
def test_dense_statistics_are_in_double(make: Make) -> None:
    targets = make()
    assert targets.dense().dtype == np.float64 and targets.dense().shape == (targets.n, targets.d)


@every_encoding
def test_the_kernels_read_the_same_statistics(make: Make) -> None:
    targets = make()
    codes, numbers = targets.core()
    assert numbers.dtype == np.float32 and numbers.flags.c_contiguous
    if codes is None:
        s = numbers
    else:
        assert codes.dtype == np.int32
        s = np.zeros((targets.n, targets.d), dtype=np.float32)
        s[np.arange(targets.n), codes] = numbers
    assert (s == targets.dense().astype(np.float32)).all()


def test_class_counts_are_weighted_one_hot_rows() -> None:
    s = class_counts([2, 0], 3, [0.5, 4.0]).dense()
    assert s.tolist() == [[0, 0, 0.5], [4.0, 0, 0]]


def test_a_sure_soft_label_is_a_class() -> None:
    codes, weight = np.array([2, 0, 1]), np.array([0.5, 4.0, 1.0])
    assert (soft_labels(np.eye(3)[codes], weight).dense() == class_counts(codes, 3, weight).dense()).all()


def test_newton_pairs_put_gradients_before_hessians() -> None:
    assert newton_pairs([1.0, -2.0], [3.0, 4.0], [1.0, 10.0]).dense().tolist() == [[1, 3], [-20, 40]]
    assert newton_pairs([[1.0, 2.0]], [[3.0, 4.0]]).dense().tolist() == [[1, 2, 3, 4]]


WEIGHTED: dict[str, Callable[[np.ndarray, np.ndarray | None], AbstractTargets]] = {
    "class counts": lambda y, w: class_counts((y > 0).astype(int), 2, w),
    "soft labels": lambda y, w: soft_labels(np.stack([y * y, 1 - y * y], axis=1), w),
    "moments": lambda y, w: centred_moments(y, w)[0],
    "newton": lambda y, w: newton_pairs(y, 1 + y * y, w),
}


@pytest.mark.parametrize("make", WEIGHTED.values(), ids=WEIGHTED)
def test_a_weight_of_k_is_the_row_k_times(make: Callable[..., AbstractTargets]) -> None:
    y, k = np.random.default_rng(0).normal(size=9), np.array([1, 2, 3, 0, 1, 5, 0, 2, 1])
    weighted, repeated = make(y, k.astype(float)), make(np.repeat(y, k), None)
    # Means of the weighted and of the repeated numbers differ in the order of their sums.
    assert weighted.total() == pytest.approx(repeated.total(), rel=1e-13, abs=1e-13)
    assert (weighted.dense()[k == 0] == 0).all()


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
def test_moments_are_those_of_the_centred_target(offset: float) -> None:
    noise = np.round(np.random.default_rng(0).normal(size=50), 3)
    y, w = offset + noise, np.random.default_rng(1).uniform(0.5, 2.0, 50)
    targets, center, scale = centred_moments(y, w)
    total = targets.total()
    # The mean of t is 0 and its variance 1, as far as the center is a number: float64 at 1e12 has steps of 1.2e-4.
    step = float(np.spacing(abs(offset)))
    assert total == pytest.approx([w.sum(), 0.0, w.sum()], rel=1e-10, abs=1e-10 + w.sum() * step / scale)
    assert center == pytest.approx(np.average(y, weights=w), rel=1e-15, abs=1e-10 + step)
    spread = np.sqrt(np.average((noise - np.average(noise, weights=w)) ** 2, weights=w))
    assert scale == pytest.approx(spread, rel=1e-12 + 2 * step)


@pytest.mark.parametrize("y", [np.full(7, 0.1), np.full(7, 1e8 / 3), np.zeros(7)], ids=["0.1", "1e8 / 3", "0"])
def test_a_constant_target_is_exactly_its_center(y: np.ndarray) -> None:
    targets, center, scale = centred_moments(y, np.linspace(0.1, 0.9, 7))
    assert (center, scale) == (y[0], 1.0)
    assert (targets.dense()[:, 1:] == 0).all()


def test_moments_in_the_targets_own_units_are_only_centred() -> None:
    _, center, scale = centred_moments([1.0, 5.0], standardise=False)
    assert (center, scale) == (3.0, 1.0)


@pytest.mark.parametrize("where", [0, 3])
def test_a_row_without_weight_moves_neither_center_nor_scale(where: int) -> None:
    y, w = np.array([5.1, 5.1, 5.1, 5.1, 5.1]), np.ones(5)
    y[where], w[where] = 1e30, 0.0
    targets, center, scale = centred_moments(y, w)
    assert (center, scale) == (5.1, 1.0)
    assert (targets.dense()[where] == 0).all()
