"""Targets: what y and w become, the additive statistic s of each row.

Class labels stay as codes with weights (s = w * onehot(code) is made where it is needed: a million rows of
26 classes would be 200 MB of zeros); everything else is a dense s (n, d). Statistics are scaled by the
sample weight, so a weight of k is the row k times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class AbstractTargets(ABC):
    """The statistics s (n, d) of n rows, however they are held."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Rows."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Numbers per row."""

    @property
    @abstractmethod
    def weight(self) -> FloatArray:
        """(n,) the weight of each row, for weighted quantiles and standardising."""

    @abstractmethod
    def take(self, rows: npt.NDArray[Any] | slice) -> AbstractTargets:
        """The targets of some rows."""

    @abstractmethod
    def dense(self) -> FloatArray:
        """s as one (n, d) array."""

    @abstractmethod
    def total(self) -> FloatArray:
        """(d,) the sum of s over the rows, in float64."""

    @abstractmethod
    def sums_by(self, key: npt.NDArray[Any], n_keys: int) -> FloatArray:
        """(n_keys, d) the sums of s over the rows of each key, in float64."""

    @abstractmethod
    def core(self) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.float32]]:
        """What kernels read: (codes, weights) of class counts or (None, s)."""


@dataclass(frozen=True, eq=False)
class CodedTargets(AbstractTargets):
    """Class counts: s_i = w_i * onehot(code_i)."""

    codes: npt.NDArray[np.int32]  # (n,)
    weights: npt.NDArray[np.float64]  # (n,)
    n_classes: int

    @property
    def n(self) -> int:
        return int(self.codes.size)

    @property
    def d(self) -> int:
        return self.n_classes

    @property
    def weight(self) -> FloatArray:
        return self.weights

    def take(self, rows: npt.NDArray[Any] | slice) -> CodedTargets:
        return CodedTargets(self.codes[rows], self.weights[rows], self.n_classes)

    def dense(self) -> FloatArray:
        s = np.zeros((self.n, self.d))
        s[np.arange(self.n), self.codes] = self.weights
        return s

    def total(self) -> FloatArray:
        return np.bincount(self.codes, self.weights, self.n_classes).astype(np.float64)

    def sums_by(self, key: npt.NDArray[Any], n_keys: int) -> FloatArray:
        cell = key.astype(np.int64) * self.n_classes + self.codes
        sums = np.bincount(cell, self.weights, n_keys * self.n_classes).astype(np.float64)
        return sums.reshape(n_keys, self.n_classes)

    def core(self) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.float32]]:
        return self.codes, self.weights.astype(np.float32)


@dataclass(frozen=True, eq=False)
class DenseTargets(AbstractTargets):
    """Any statistic: s as given, with the row weights it was made with."""

    s: npt.NDArray[np.float64]  # (n, d)
    weights: npt.NDArray[np.float64]  # (n,)

    @property
    def n(self) -> int:
        return int(self.s.shape[0])

    @property
    def d(self) -> int:
        return int(self.s.shape[1])

    @property
    def weight(self) -> FloatArray:
        return self.weights

    def take(self, rows: npt.NDArray[Any] | slice) -> DenseTargets:
        return DenseTargets(self.s[rows], self.weights[rows])

    def dense(self) -> FloatArray:
        return self.s

    def total(self) -> FloatArray:
        return np.asarray(self.s.sum(axis=0))

    def sums_by(self, key: npt.NDArray[Any], n_keys: int) -> FloatArray:
        return np.stack([np.bincount(key, column, n_keys) for column in self.s.T], axis=1)

    def core(self) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.float32]]:
        return None, np.ascontiguousarray(self.s, dtype=np.float32)


def class_counts(codes: npt.ArrayLike, n_classes: int, weight: npt.ArrayLike | None = None) -> CodedTargets:
    """s = w * onehot(code)."""
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    return CodedTargets(codes, _weights(weight, codes.size), int(n_classes))


def centred_moments(
    y: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, standardise: bool = True
) -> tuple[DenseTargets, float, float]:
    """s = w * (1, t, t^2) of t = (y - center) / scale, with that center and scale.

    Raw moments of y = 1e8 + noise would lose the noise; scaling keeps squares inside float32.
    """
    y = np.asarray(y, dtype=np.float64)
    w = _weights(weight, y.size)
    counts = w > 0
    origin, share = y[counts][0], w[counts] / w.sum()
    center = float(origin + share @ (y[counts] - origin))
    spread = float(np.sqrt(share @ (y[counts] - center) ** 2))
    scale = spread if standardise and spread > 0 and np.ptp(y[counts]) > 0 else 1.0
    t = (y - center) / scale
    return DenseTargets(np.stack([w, w * t, w * t * t], axis=1), w), center, scale


def poisson_sums(y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> tuple[DenseTargets, float]:
    """s = w * (1, t, t log t) of t = y / scale, y >= 0, with the mean of y as that scale.

    Near the mean, where most rows are, log t is near 0: nothing is lost between large numbers.
    """
    w, t, scale = _per_mean(y, weight)
    logs = np.log(np.where(t > 0, t, 1.0))
    return DenseTargets(np.stack([w, w * t, w * t * logs], axis=1), w), scale


def gamma_sums(y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> tuple[DenseTargets, float]:
    """s = w * (1, t, log t) of t = y / scale, y > 0, with the mean of y as that scale."""
    w, t, scale = _per_mean(y, weight)
    return DenseTargets(np.stack([w, w * t, w * np.log(t)], axis=1), w), scale


def newton_pairs(g: npt.ArrayLike, h: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> DenseTargets:
    """s = w * (g, h); g and h may have a column per output."""
    pairs = np.concatenate([np.asarray(a, dtype=np.float64).reshape(len(np.asarray(a)), -1) for a in (g, h)], axis=1)
    w = _weights(weight, pairs.shape[0])
    return DenseTargets(pairs * w[:, None], w)


def soft_labels(Q: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> DenseTargets:
    """s = w * q_i: a row of class probabilities instead of one label."""
    Q = np.asarray(Q, dtype=np.float64)
    w = _weights(weight, Q.shape[0])
    return DenseTargets(Q * w[:, None], w)


def _per_mean(y: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray, float]:
    """Weights, y in units of its weighted mean, and that mean; exactly 1 where all rows have the same y."""
    y = np.asarray(y, dtype=np.float64)
    w = _weights(weight, y.size)
    counted = y[w > 0]
    same = bool((counted == counted[0]).all())
    scale = float(counted[0] if same else w @ y / w.sum()) or 1.0  # counts may all be 0
    return w, y / scale, scale


def _weights(weight: npt.ArrayLike | None, n: int) -> npt.NDArray[np.float64]:
    return np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
