"""Questions: the hard, inert side of a split. A tree holds tables of them, several kinds side by side.

A question is asked of one row at one node and answered with the number of the child to go to. Tables are arrays;
they know X in the user's units and nothing else. Two children: child 1 is taken where the score is above 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._frozen import frozen

FloatArray = npt.NDArray[np.float64]
Layers = tuple[str, Sequence[FloatArray]]  # a network: its activation, and (outputs, inputs + 1) of each layer


class AbstractQuestions(ABC):
    """A table of questions of one kind."""

    kind: ClassVar[str]
    is_hard: ClassVar[bool] = False  # whether the score's scale means nothing (a step, not a slope)

    @property
    @abstractmethod
    def n_questions(self) -> int:
        """Rows of the table."""

    @abstractmethod
    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        """(n,) the child each row of X takes at question k."""

    @abstractmethod
    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        """(n, k, arity) the soft answers to some questions; hard questions answer 0 or 1."""

    @abstractmethod
    def features(self, k: int) -> npt.NDArray[np.int32]:
        """The columns question k looks at."""

    @abstractmethod
    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        """Weights (k, p) and offsets (k,) of linear scores that are above 0 just where child 1 is taken.

        Curved questions give the straight ones most like them; questions of B > 2 children give B rows each.
        """

    def n_children(self, k: int) -> int:
        """How many answers question k has."""
        return 2

    def network(self, k: int) -> Layers | None:
        """Question k as a network, or None where it is not stored as one."""
        return None

    @abstractmethod
    def text(self, k: int, names: Sequence[str]) -> str:
        """The condition under which child 1 is taken, in the user's names and units."""

    @abstractmethod
    def importances(
        self,
        gain: FloatArray,  # (k,) what each question is worth
        spread: FloatArray,  # (p,) standard deviation of each column
    ) -> FloatArray:  # (p,)
        """The worth of the questions, shared among the columns they look at."""

    @abstractmethod
    def take(self, rows: npt.NDArray[Any]) -> AbstractQuestions:
        """The table of some of the questions."""

    @classmethod
    @abstractmethod
    def joined(cls, parts: Sequence[Any]) -> AbstractQuestions:
        """One table of several of this kind."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Plain lists for a model file; ``from_record`` of the class reads it back."""

    @classmethod
    @abstractmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> AbstractQuestions:
        """Read a record, trusting nothing in it."""


@dataclass(frozen=True, eq=False)
class Thresholds(AbstractQuestions):
    """x[feature] > threshold?"""

    feature: npt.NDArray[np.int32]  # (k,)
    threshold: FloatArray  # (k,)
    kind: ClassVar[str] = "threshold"
    is_hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", frozen(self.feature, np.int32))
        object.__setattr__(self, "threshold", frozen(self.threshold, np.float64))

    @property
    def n_questions(self) -> int:
        return int(self.feature.size)

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        return np.asarray(X[:, self.feature[k]] > self.threshold[k], dtype=np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        right = (X[:, self.feature[rows]] > self.threshold[rows]).astype(np.float64)
        return np.stack([1 - right, right], axis=-1)

    def features(self, k: int) -> npt.NDArray[np.int32]:
        return self.feature[k : k + 1]

    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        weights = np.zeros((len(rows), n_features))
        weights[np.arange(len(rows)), self.feature[rows]] = 1.0
        return weights, -self.threshold[rows]

    def text(self, k: int, names: Sequence[str]) -> str:
        return f"{names[self.feature[k]]} > {self.threshold[k]:.6g}"

    def importances(self, gain: FloatArray, spread: FloatArray) -> FloatArray:
        return np.bincount(self.feature, gain, spread.size).astype(np.float64)

    def take(self, rows: npt.NDArray[Any]) -> Thresholds:
        return Thresholds(self.feature[rows], self.threshold[rows])

    @classmethod
    def joined(cls, parts: Sequence[Thresholds]) -> Thresholds:
        return cls(np.concatenate([t.feature for t in parts]), np.concatenate([t.threshold for t in parts]))

    def record(self) -> dict[str, Any]:
        return {"feature": self.feature.tolist(), "threshold": self.threshold.tolist()}

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Thresholds:
        feature = np.array(record["feature"], dtype=np.int32).reshape(-1)
        threshold = np.array(record["threshold"], dtype=np.float64).reshape(-1)
        if feature.size != threshold.size or not np.isfinite(threshold).all():
            raise ValueError("threshold questions need one finite threshold per feature number.")
        if feature.size and (feature.min() < 0 or feature.max() >= n_features):
            raise ValueError(f"threshold questions name a feature outside 0..{n_features - 1}.")
        return cls(feature, threshold)


@dataclass(frozen=True, eq=False)
class Linears(AbstractQuestions):
    """weights . x + bias > 0? The scale of the weights is the sharpness: soft answers are sigmoids of the score."""

    weights: FloatArray  # (k, p)
    bias: FloatArray  # (k,)
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, np.float64))
        object.__setattr__(self, "bias", frozen(self.bias, np.float64))

    @property
    def n_questions(self) -> int:
        return int(self.bias.size)

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        return (self._score(X, k) > 0).astype(np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        score = self.weights[rows] @ np.asarray(X, dtype=np.float64).T + self.bias[rows][:, None]
        half = 0.5 * np.tanh(0.5 * score)  # (k, n): a node's numbers next to each other
        return np.stack([0.5 - half, 0.5 + half]).transpose(2, 1, 0)

    def features(self, k: int) -> npt.NDArray[np.int32]:
        return np.flatnonzero(self.weights[k]).astype(np.int32)

    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        return self.weights[rows], self.bias[rows]

    def text(self, k: int, names: Sequence[str]) -> str:
        w = self.weights[k]
        used = self.features(k)
        terms = [f"{w[j]:+.4g} {names[j]}" for j in used[np.argsort(-np.abs(w[used]), kind="stable")]]
        return f"{' '.join(terms) or '0'} > {0.0 - self.bias[k]:.6g}"

    def importances(self, gain: FloatArray, spread: FloatArray) -> FloatArray:
        pull = np.abs(self.weights) * spread
        whole = pull.sum(axis=1)
        return np.asarray(np.divide(gain, whole, out=np.zeros_like(gain), where=whole > 0) @ pull)

    def take(self, rows: npt.NDArray[Any]) -> Linears:
        return Linears(self.weights[rows], self.bias[rows])

    @classmethod
    def joined(cls, parts: Sequence[Linears]) -> Linears:
        return cls(np.concatenate([t.weights for t in parts]), np.concatenate([t.bias for t in parts]))

    def record(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist(), "bias": self.bias.tolist()}

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Linears:
        bias = np.array(record["bias"], dtype=np.float64).reshape(-1)
        weights = np.array(record["weights"], dtype=np.float64)
        if weights.shape != (bias.size, n_features) and not (bias.size == 0 and weights.size == 0):
            raise ValueError(f"linear questions need {n_features} weights each, one row per bias.")
        if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
            raise ValueError("linear questions need finite weights.")
        return cls(weights.reshape(bias.size, n_features), bias)

    def _score(self, X: npt.NDArray[Any], k: int) -> FloatArray:
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.weights[k] + self.bias[k])
