"""Bins: the table as one byte per cell, which is what a hard tree is grown on.

A column with few distinct values has one bin per value; another has bins of about equal weight. Every bin remembers
its least and greatest value, so that a cut between any two bins becomes a threshold in the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood import _core

MAX_BINS = 255
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bins:
    """Codes of every cell, and the values each bin holds."""

    codes: npt.NDArray[np.uint8]  # (p, n)
    offsets: npt.NDArray[np.int64]  # (p + 1,) where a column's bins start in low and high
    low: FloatArray  # (bins,) least value
    high: FloatArray  # (bins,) greatest value

    @classmethod
    def of(
        cls,
        X: npt.NDArray[Any],  # (rows, p) float32 or float64, finite
        order: npt.NDArray[np.int64],  # (n,) rows of X
        weight: npt.NDArray[Any],  # (n,)
        max_bins: int = MAX_BINS,
        n_threads: int = 1,
    ) -> Bins:
        """Bin the rows ``order`` of X by weighted quantiles."""
        if not 2 <= max_bins <= MAX_BINS:
            raise ValueError(f"max_bins must be an integer between 2 and {MAX_BINS}; got {max_bins!r}.")
        return cls(*_core.make_bins(X, order, weight, max_bins, n_threads))

    @property
    def n(self) -> int:
        return int(self.codes.shape[1])

    @property
    def p(self) -> int:
        return int(self.codes.shape[0])

    @property
    def n_bins(self) -> npt.NDArray[np.int64]:
        """(p,) bins of each column."""
        return np.diff(self.offsets)

    def threshold(self, feature: int, bin: int, following: int) -> float:
        """t with high[bin] <= t < low[following]: the midpoint, kept in its place where halves round or underflow."""
        start = self.offsets[feature]
        a, b = float(self.high[start + bin]), float(self.low[start + following])
        t = 0.5 * a + 0.5 * b
        return t if a <= t < b else a

    def thresholds(self, feature: int) -> FloatArray:
        """The thresholds between neighbouring bins of a column, in increasing order."""
        n_bins = int(self.n_bins[feature])
        return np.array([self.threshold(feature, b, b + 1) for b in range(n_bins - 1)], dtype=np.float64)
