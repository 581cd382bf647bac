"""The shuffle that batches are drawn by, against the same in plain integers."""

from __future__ import annotations

import numpy as np
import pytest

from softwood import _core

MASK = 2**64 - 1


def shuffled(numbers: list[int], drawn: int, seed: int) -> list[int]:
    numbers = list(numbers)
    for i in range(drawn):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        x = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        j = i + (((x ^ (x >> 31)) >> 32) * (len(numbers) - i) >> 32)
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers


@pytest.mark.parametrize("seed", [0, 1, 2**63, MASK])
@pytest.mark.parametrize(("n", "drawn"), [(0, 0), (1, 1), (5, 0), (40, 17), (40, 40)])
def test_the_kernel_is_the_plain_shuffle(n: int, drawn: int, seed: int) -> None:
    numbers = np.arange(n, dtype=np.int32)
    _core.shuffle(numbers, drawn, seed)
    assert numbers.tolist() == shuffled(list(range(n)), drawn, seed)


def test_every_number_is_equally_often_in_every_place() -> None:
    n, repeats = 6, 6000
    counts = np.zeros((n, n))
    for seed in range(repeats):
        numbers = np.arange(n, dtype=np.int32)
        _core.shuffle(numbers, n, seed)
        counts[np.arange(n), numbers] += 1
    expected = repeats / n
    assert ((counts - expected) ** 2 / expected).sum() < 60  # chi squared with 25 degrees of freedom: 1e-4 is 60


@pytest.mark.parametrize("drawn", [-1, 6])
def test_more_than_there_is_cannot_be_drawn(drawn: int) -> None:
    with pytest.raises(ValueError, match="drawn must be from 0 to the count"):
        _core.shuffle(np.arange(5, dtype=np.int32), drawn, 0)


@pytest.mark.parametrize("numbers", [np.arange(5), np.arange(10, dtype=np.int32)[::2], np.zeros((2, 2), np.int32)])
def test_other_arrays_are_refused_and_not_copied(numbers: np.ndarray) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.shuffle(numbers, 1, 0)
