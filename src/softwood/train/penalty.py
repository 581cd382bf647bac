"""Penalties on the weights of questions, applied after each step by their proximal map, so that zeros are exact.

Weight decay is the optimiser's own (``Adam``); what is here comes on top of it, and works on any engine's steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit
from softwood.topology import Topology
from softwood.train.engine import AbstractEngine, Adam, Memory, Theta
from softwood.train.refine import MakesEngine

FloatArray = npt.NDArray[np.float64]


class AbstractPenalty(ABC):
    """A function of the weights W (questions, weights) of all questions."""

    @abstractmethod
    def value(self, W: FloatArray) -> float:
        """The penalty."""

    @abstractmethod
    def slope(self, W: FloatArray) -> FloatArray:
        """Its gradient, where it has one."""

    @abstractmethod
    def prox(self, W: FloatArray, rate: float) -> FloatArray:
        """The V that is best by |V - W|^2 / 2 + rate * value(V)."""

    def strengthened(self, share: float) -> AbstractPenalty:
        """The penalty after this share of all steps."""
        return self

    def last(self, W: FloatArray) -> FloatArray:
        """What the weights become after the last step."""
        return W


@dataclass(frozen=True)
class Lasso(AbstractPenalty):
    """strength * sum |w|: small weights become 0."""

    strength: float

    def value(self, W: FloatArray) -> float:
        return self.strength * float(np.abs(W).sum())

    def slope(self, W: FloatArray) -> FloatArray:
        return self.strength * np.sign(W)

    def prox(self, W: FloatArray, rate: float) -> FloatArray:
        return np.asarray(np.sign(W) * np.maximum(np.abs(W) - rate * self.strength, 0.0))


@dataclass(frozen=True)
class AxisPenalty(AbstractPenalty):
    """strength * sum over questions of (w'w - max w^2): all weights but the largest; it rises, and ends by snapping."""

    strength: float

    def value(self, W: FloatArray) -> float:
        return self.strength * float(np.sum(W * W) - np.sum(np.max(W * W, axis=1)))

    def slope(self, W: FloatArray) -> FloatArray:
        return 2 * self.strength * np.where(_is_largest(W), 0.0, W)

    def prox(self, W: FloatArray, rate: float) -> FloatArray:
        return np.where(_is_largest(W), W, W / (1 + 2 * rate * self.strength))

    def strengthened(self, share: float) -> AxisPenalty:
        return AxisPenalty(self.strength * share)

    def last(self, W: FloatArray) -> FloatArray:
        return np.where(_is_largest(W), W, 0.0)


def _is_largest(W: FloatArray) -> npt.NDArray[np.bool_]:
    """One weight of each question, the first of equals."""
    return np.asarray(np.arange(W.shape[1]) == np.abs(W).argmax(axis=1)[:, None])


@dataclass(frozen=True)
class Penalised:
    """How engines are made whose steps are followed by penalties."""

    inner: MakesEngine
    penalties: Sequence[AbstractPenalty]
    n_steps: int  # of the whole descent

    def __call__(
        self,
        source: ArraySource,
        topology: Topology,
        split: AbstractSplit,
        impurity: AbstractImpurity,
        tolerance: float,
    ) -> AbstractEngine:
        inner = self.inner(source, topology, split, impurity, tolerance)
        return PenalisedEngine(inner, self.penalties, self.n_steps)


class PenalisedEngine(AbstractEngine):
    """Another engine's steps, one at a time, each followed by the penalties."""

    def __init__(self, inner: AbstractEngine, penalties: Sequence[AbstractPenalty], n_steps: int) -> None:
        super().__init__(inner.source, inner.topology, inner.split, inner.impurity)
        self.inner, self.penalties, self.n_steps = inner, penalties, n_steps
        questions = self.topology.internal.size
        self.is_weight = self.split.decays(self.topology, self.source.p).reshape(questions, -1)

    def descend(
        self,
        theta: Theta,
        memory: Memory,
        batches: npt.NDArray[np.int32],
        rates: npt.NDArray[np.float32],
        adam: Adam,
    ) -> FloatArray:
        objective = []
        for batch, rate in zip(batches[:, None], rates[:, None], strict=True):
            objective.append(self.inner.descend(theta, memory, batch, rate, adam))
            self._penalise(theta, float(rate[0]), memory.step / self.n_steps)
        return np.concatenate(objective)

    def leaf_sums(self, theta: Theta) -> FloatArray:
        return self.inner.leaf_sums(theta)

    def gradient(self, theta: Theta, slope: FloatArray) -> FloatArray:
        return self.inner.gradient(theta, slope)

    def _penalise(self, theta: Theta, rate: float, share: float) -> None:
        table = theta.reshape(self.is_weight.shape)
        W = np.where(self.is_weight, table, 0.0).astype(np.float64)
        for penalty in self.penalties:
            W = penalty.strengthened(share).prox(W, rate)
            W = penalty.last(W) if share >= 1 else W
        table[self.is_weight] = W[self.is_weight]
