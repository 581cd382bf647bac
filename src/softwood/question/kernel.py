"""Questions about how near a row is to landmarks: weighted kernels > 0?

Everything is in the user's units. With t = (x - center) * slope, a column at a time, a landmark's kernel is
exp(-|t|^2) where its degree is 0 (RBF), else (1 + sum of t)^degree (polynomial).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._frozen import frozen
from softwood.question.base import AbstractQuestions, FloatArray

MOST_DEGREE = 10


@dataclass(frozen=True, eq=False)
class Kernels(AbstractQuestions):
    """weights . kernels + bias > 0? A weight of 0: the question does not look at that landmark."""

    centers: FloatArray  # (landmarks, p)
    slopes: FloatArray  # (landmarks, p)
    degrees: npt.NDArray[np.int32]  # (landmarks,)
    weights: FloatArray  # (k, landmarks)
    bias: FloatArray  # (k,)
    kind: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        for name in ("centers", "slopes", "weights", "bias"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        object.__setattr__(self, "degrees", frozen(self.degrees, np.int32))

    @property
    def n_questions(self) -> int:
        return int(self.bias.size)

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        return (self._score(X, k) > 0).astype(np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        scores = [self._score(X, int(k)) for k in rows]
        half = 0.5 * np.tanh(0.5 * np.stack(scores, axis=1))
        return np.stack([0.5 - half, 0.5 + half], axis=-1)

    def features(self, k: int) -> npt.NDArray[np.int32]:
        return np.flatnonzero(np.abs(self.weights[k]) @ np.abs(self.slopes)).astype(np.int32)

    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        """Tangents at the middle of the landmarks."""
        middle = self.centers.mean(axis=0) if self.centers.size else np.zeros(n_features)
        t = (middle - self.centers) * self.slopes
        curved = -2 * np.exp(-(t**2).sum(axis=1, keepdims=True)) * t
        base = 1 + t.sum(axis=1, keepdims=True)
        straight = self.degrees[:, None] * base ** np.maximum(self.degrees - 1, 0)[:, None]
        weights = self.weights[rows] @ (np.where(self.degrees[:, None] == 0, curved, straight) * self.slopes)
        level = np.array([self._score(middle[None], int(k))[0] for k in rows])
        return weights, level - weights @ middle

    def text(self, k: int, names: Sequence[str]) -> str:
        used, columns = np.flatnonzero(self.weights[k]), self.features(k)
        degrees = sorted({"rbf" if d == 0 else f"degree {d}" for d in self.degrees[used]})
        looks = ", ".join(names[j] for j in columns[:4]) + (f" and {columns.size - 4} more" if columns.size > 4 else "")
        return f"{' and '.join(degrees)} kernel of {used.size} landmarks in {looks} > {0.0 - self.bias[k]:.6g}"

    def importances(self, gain: FloatArray, spread: FloatArray) -> FloatArray:
        pull = np.abs(self.weights) @ np.abs(self.slopes) * spread
        whole = pull.sum(axis=1)
        return np.asarray(np.divide(gain, whole, out=np.zeros_like(gain), where=whole > 0) @ pull)

    def take(self, rows: npt.NDArray[Any]) -> Kernels:
        used = np.flatnonzero((self.weights[rows] != 0).any(axis=0))
        weights = self.weights[rows][:, used]
        return Kernels(self.centers[used], self.slopes[used], self.degrees[used], weights, self.bias[rows])

    @classmethod
    def joined(cls, parts: Sequence[Kernels]) -> Kernels:
        weights = np.zeros((sum(t.n_questions for t in parts), sum(t.degrees.size for t in parts)))
        row = column = 0
        for part in parts:
            weights[row : row + part.n_questions, column : column + part.degrees.size] = part.weights
            row, column = row + part.n_questions, column + part.degrees.size
        centers, slopes = (np.concatenate([getattr(t, name) for t in parts]) for name in ("centers", "slopes"))
        degrees, bias = np.concatenate([t.degrees for t in parts]), np.concatenate([t.bias for t in parts])
        return cls(centers, slopes, degrees, weights, bias)

    def record(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in ("centers", "slopes", "degrees", "weights", "bias")}

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Kernels:
        degrees = np.array(record["degrees"], dtype=np.int32).reshape(-1)
        bias = np.array(record["bias"], dtype=np.float64).reshape(-1)
        shapes = {"centers": (degrees.size, n_features), "slopes": (degrees.size, n_features)}
        shapes["weights"] = (bias.size, degrees.size)
        arrays = {name: np.array(record[name], dtype=np.float64) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape and not arrays[name].size == np.prod(shape) == 0:
                raise ValueError(f"kernel questions need {name} of shape {shape}.")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"kernel questions need finite {name}.")
        if not np.isfinite(bias).all() or (degrees < 0).any() or (degrees > MOST_DEGREE).any():
            raise ValueError(f"kernel questions need finite bias and degrees from 0 to {MOST_DEGREE}.")
        return cls(degrees=degrees, bias=bias, **{name: array.reshape(shapes[name]) for name, array in arrays.items()})

    def _score(self, X: npt.NDArray[Any], k: int) -> FloatArray:
        X, total = np.asarray(X, dtype=np.float64), np.full(len(X), self.bias[k])
        for j in np.flatnonzero(self.weights[k]):
            t = (X - self.centers[j]) * self.slopes[j]
            kernel = (1 + t.sum(axis=1)) ** self.degrees[j] if self.degrees[j] else np.exp(-(t**2).sum(axis=1))
            total += self.weights[k, j] * kernel
        return total
