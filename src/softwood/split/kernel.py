"""The kernel family: score of node k = sum_j a_kj K(x, landmark_j) + b_k; all nodes share the landmarks.

K is exp(-gamma |x - l|^2) or (1 + gamma x . l)^degree on standardised columns. theta is that of linear questions whose
columns are the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import AbstractQuestions, Kernels
from softwood.question.kernel import MOST_DEGREE
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units
from softwood.split.checks import check_choice, check_count, check_positive
from softwood.split.landmarks import landmarks_of
from softwood.split.linear import NOISE, STEEPNESS, Linear
from softwood.topology import Topology

ON_KERNELS = Linear()
RIDGE = 1e-3  # of the interpolation that starts a question
MOST_LANDMARKS = 1000


@dataclass(frozen=True)
class Kernel(AbstractSplit):
    """Questions about how near a row is to landmarks.

    Parameters
    ----------
    kernel : {"rbf", "polynomial"}, default="rbf"
        exp(-gamma |x - l|^2), or (1 + gamma x . l)^degree.
    n_landmarks : int, default=20
        The most landmarks, at most 1000; chosen by k-means on the rows.
    gamma : float or None, default=None
        On standardised columns; None is 1 / number of columns.
    degree : int, default=2
        Of the polynomial, at most 10.
    landmarks : sequence of points or None, default=None
        Landmarks in the units of the columns instead of chosen ones.
    """

    kernel: str = "rbf"
    n_landmarks: int = 20
    gamma: float | None = None
    degree: int = 2
    landmarks: tuple[tuple[float, ...], ...] | None = None
    points: FloatArray | None = field(default=None, repr=False, compare=False)  # the landmarks in standard units
    name: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        check_choice("Kernel", "kernel", self.kernel, ("rbf", "polynomial"))
        check_count("Kernel", "n_landmarks", self.n_landmarks, 1, MOST_LANDMARKS)
        check_count("Kernel", "degree", self.degree, 1, MOST_DEGREE)
        if self.gamma is not None:
            check_positive("Kernel", "gamma", self.gamma)
        if self.landmarks is not None:
            object.__setattr__(self, "landmarks", _points(self.landmarks))

    def prepared(self, Z: npt.NDArray[np.float32], units: Units, rng: np.random.Generator) -> Kernel:
        if self.landmarks is None:
            return replace(self, points=landmarks_of(Z, self.n_landmarks, rng))
        given = np.array(self.landmarks)
        if given.shape[1] != units.center.size:
            raise ValueError(f"Kernel: landmarks have {given.shape[1]} columns, but X has {units.center.size}.")
        return replace(self, points=(given - units.center) * units.per_scale)

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return ON_KERNELS.n_parameters(topology, len(self._points()))

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        return ON_KERNELS.scores(theta, self._kernels(X), topology)

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        return ON_KERNELS.scores_vjp(theta, self._kernels(X), topology, Z_bar)

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        return ON_KERNELS.decays(topology, len(self._points()))

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        return ON_KERNELS.random(topology, len(self._points()), rng)

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        on_kernels = ON_KERNELS.questions(theta, topology, Units.none(len(self._points())))
        weights, bias = on_kernels.weights, on_kernels.bias
        points, gamma = self._points(), self._gamma(units.center.size)
        if self.kernel == "rbf":
            centers = points * units.scale + units.center
            slopes = np.tile(np.sqrt(gamma) * units.per_scale, (len(points), 1))
            off = (points[:, units.scale == 0] ** 2).sum(axis=1)  # how far constant columns are, whatever the row
            return Kernels(centers, slopes, np.zeros(len(points), np.int32), weights * np.exp(-gamma * off), bias)
        centers = np.tile(units.center, (len(points), 1))
        slopes = gamma * points * units.per_scale
        return Kernels(centers, slopes, np.full(len(points), self.degree, np.int32), weights, bias)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        """Kernels that interpolate, at the landmarks, the scores of what is asked."""
        points = self._points()
        table = NOISE * rng.normal(size=(int(asked.topology.n_scores.sum()), len(points) + 1))
        table[:, -1] = 0
        K = np.asarray(self._kernels(points))
        solved = np.linalg.inv(K.T @ K + RIDGE * np.trace(K.T @ K) / len(K) * np.eye(len(K))) @ K.T
        for index, questions in enumerate(asked.tables):
            nodes = np.flatnonzero(asked.table == index)
            wanted = _scores_at(points, questions, asked.row[nodes], units)
            level = wanted.mean(axis=1)
            table[nodes, :-1] += (wanted - level[:, None]) @ solved.T
            table[nodes, -1] += level
        return table.ravel()

    def _kernels(self, X: Array) -> Array:
        """(n, landmarks)"""
        xp = array_namespace(X)
        points = xp.asarray(self._points(), dtype=X.dtype, device=X.device)
        gamma, products = self._gamma(X.shape[1]), X @ points.T
        if self.kernel == "polynomial":
            return (1 + gamma * products) ** self.degree
        squares = xp.sum(X * X, axis=1, keepdims=True) + xp.sum(points * points, axis=1) - 2 * products
        return xp.exp(-gamma * xp.where(squares > 0, squares, xp.zeros_like(squares)))

    def _gamma(self, n_features: int) -> float:
        return 1.0 / n_features if self.gamma is None else float(self.gamma)

    def _points(self) -> FloatArray:
        if self.points is None:
            raise ValueError("Kernel has no landmarks yet. Call prepared with the rows to learn from.")
        return self.points


def _scores_at(
    points: FloatArray,  # (landmarks, p) in standard units
    questions: AbstractQuestions,
    rows: npt.NDArray[np.int32],
    units: Units,
) -> FloatArray:  # (k, landmarks)
    """What questions say of points: their log-odds, or of hard ones a score that crosses 0 where they do."""
    X = points * units.scale + units.center
    if questions.is_hard:
        weights, offset = questions.slants(rows, units.center.size)
        size = np.maximum(np.abs(weights * units.scale).max(axis=1), 1e-300)
        return np.asarray((weights @ X.T + offset[:, None]) * (STEEPNESS / size)[:, None])
    right = np.clip(questions.probabilities(X, rows)[:, :, 1].T, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(right / (1 - right)))


def _points(landmarks: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    try:
        given = np.array(landmarks, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.ndim != 2 or not given.size or len(given) > MOST_LANDMARKS or not np.isfinite(given).all():
        raise ValueError(f"Kernel: landmarks must be 1 to {MOST_LANDMARKS} points of finite numbers.")
    return tuple(map(tuple, given.tolist()))
