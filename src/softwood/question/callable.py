"""Questions that a user's own function scores. They live as long as the program: a function cannot be stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._frozen import frozen
from softwood.question.base import AbstractQuestions, FloatArray

NodeScores = Callable[[Any, Any], Any]  # theta (q,), standardised X (n, p) -> scores (n,)


@dataclass(frozen=True, eq=False)
class Callables(AbstractQuestions):
    """function(theta, standardised x) > 0?"""

    functions: tuple[NodeScores, ...]  # of each question
    thetas: tuple[FloatArray, ...]
    center: FloatArray  # (k, p)
    per_scale: FloatArray  # (k, p)
    kind: ClassVar[str] = "callable"

    def __post_init__(self) -> None:
        object.__setattr__(self, "thetas", tuple(frozen(theta, np.float64) for theta in self.thetas))
        for name in ("center", "per_scale"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))

    @property
    def n_questions(self) -> int:
        return len(self.functions)

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        return (self._score(X, k) > 0).astype(np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        half = 0.5 * np.tanh(0.5 * np.stack([self._score(X, int(k)) for k in rows], axis=1))
        return np.stack([0.5 - half, 0.5 + half], axis=-1)

    def features(self, k: int) -> npt.NDArray[np.int32]:
        return np.flatnonzero(self.per_scale[k]).astype(np.int32)

    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        """Nothing is known of the function: silent scores."""
        return np.zeros((len(rows), n_features)), np.zeros(len(rows))

    def text(self, k: int, names: Sequence[str]) -> str:
        columns = ", ".join([*names[:4], *(["..."] if len(names) > 4 else [])])
        return f"{self.functions[k].__name__}({columns}) > 0"

    def importances(self, gain: FloatArray, spread: FloatArray) -> FloatArray:
        """Shared evenly among the columns that vary."""
        looks = (self.per_scale != 0) & (spread > 0)
        return np.asarray(gain @ (looks / np.maximum(looks.sum(axis=1, keepdims=True), 1)))

    def take(self, rows: npt.NDArray[Any]) -> Callables:
        functions, thetas = (tuple(each[k] for k in rows) for each in (self.functions, self.thetas))
        return Callables(functions, thetas, self.center[rows], self.per_scale[rows])

    @classmethod
    def joined(cls, parts: Sequence[Callables]) -> Callables:
        return cls(
            tuple(function for t in parts for function in t.functions),
            tuple(theta for t in parts for theta in t.thetas),
            np.concatenate([t.center for t in parts]),
            np.concatenate([t.per_scale for t in parts]),
        )

    def record(self) -> dict[str, Any]:
        raise ValueError(
            "A question asked by a function of your own cannot be stored as data. Pickle the estimator, or use one of "
            "the registered split families."
        )

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Callables:
        raise ValueError("questions asked by functions are never stored.")

    def _score(self, X: npt.NDArray[Any], k: int) -> FloatArray:
        Z = (np.asarray(X, dtype=np.float64) - self.center[k]) * self.per_scale[k]
        return np.asarray(self.functions[k](self.thetas[k], Z), dtype=np.float64)
