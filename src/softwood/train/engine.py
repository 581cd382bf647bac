"""Engines: sums and steps over the rows of a source, compiled where there is a kernel, in arrays everywhere else.

Both know the same three verbs, so trainers never ask which one they have. Statistics are divided by the mean row
weight: steps then do not depend on the unit of the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood import _core
from softwood.impurity import AbstractImpurity
from softwood.objective import expected_impurity, gates, sweep_down
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit
from softwood.topology import Topology

FloatArray = npt.NDArray[np.float64]
Theta = npt.NDArray[np.float32]
CHUNK = 4096  # rows at once in the array engine's sums over all rows


@dataclass(frozen=True)
class Adam:
    """Adam with decoupled decay: weights shrink by rate * decay a step, whatever their gradient."""

    decay: float
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8


@dataclass(eq=False)
class Memory:
    """What the optimiser remembers of earlier steps, and where each row last went."""

    mean: Theta
    square: Theta
    leaf_of: npt.NDArray[np.int32]  # (n,) ordinal of each row's likeliest leaf, for lazy sweeps
    seed: int = 0  # of what is drawn in steps
    step: int = 0
    visited: list[float] = field(default_factory=list)  # share of (row, node) pairs swept, one per call

    @classmethod
    def fresh(cls, q: int, n: int, seed: int = 0) -> Memory:
        return cls(np.zeros(q, np.float32), np.zeros(q, np.float32), np.zeros(n, np.int32), seed)


class AbstractEngine(ABC):
    """Rows, topology, split and impurity put together."""

    def __init__(self, source: ArraySource, topology: Topology, split: AbstractSplit, impurity: AbstractImpurity):
        self.source, self.topology, self.split, self.impurity = source, topology, split, impurity
        self.unit = float(source.targets.weight.sum()) / source.n  # mean weight of a row

    @abstractmethod
    def descend(
        self,
        theta: Theta,  # (q,) changed in place
        memory: Memory,
        batches: npt.NDArray[np.int32],  # (steps, rows)
        rates: npt.NDArray[np.float32],  # (steps,)
        adam: Adam,
    ) -> FloatArray:
        """Take one step per batch; return the objective per row at each."""

    @abstractmethod
    def leaf_sums(self, theta: Theta) -> FloatArray:
        """(leaves, d) expected statistics over all rows."""

    @abstractmethod
    def gradient(self, theta: Theta, slope: FloatArray) -> FloatArray:
        """(q,) gradient over all rows, given the leaves' slopes."""

    def evaluate(self, theta: Theta) -> tuple[float, FloatArray]:
        """Objective and gradient over all rows, per row."""
        S = self.leaf_sums(theta)
        total = self.unit * self.source.n
        J = float(np.sum(self.impurity.phi(S))) / total
        return J, self.gradient(theta, np.asarray(self.impurity.slope(S))) / total


class CoreEngine(AbstractEngine):
    """The compiled sweeps: binary trees of linear questions, built-in impurities."""

    def __init__(
        self,
        source: ArraySource,
        topology: Topology,
        split: AbstractSplit,
        impurity: AbstractImpurity,
        tolerance: float,
    ) -> None:
        super().__init__(source, topology, split, impurity)
        codes, s = source.targets.core()
        s = s / np.float32(self.unit)
        self.rows: tuple[Any, ...] = (source.Z, codes, s, source.targets.d, topology.first_child)
        self.rank = topology.leaf_order[topology.leaves]
        self.tolerance = tolerance

    def descend(
        self,
        theta: Theta,
        memory: Memory,
        batches: npt.NDArray[np.int32],
        rates: npt.NDArray[np.float32],
        adam: Adam,
    ) -> FloatArray:
        parameters = (*self.impurity.core_parameters(), 0.0)
        objective, share = _core.descend(
            theta, memory.mean, memory.square, memory.step, batches, rates,
            adam.decay, adam.beta1, adam.beta2, adam.epsilon, *self.rows, self.rank, memory.leaf_of, self.tolerance,
            self.impurity.core_name, parameters[0] / self.unit, self.source.n_threads,
        )  # fmt: skip
        memory.step += len(rates)
        memory.visited.append(share)
        return np.asarray(objective)

    def leaf_sums(self, theta: Theta) -> FloatArray:
        return np.asarray(_core.leaf_sums(theta, *self.rows, self.source.n_threads)) * self.unit

    def gradient(self, theta: Theta, slope: FloatArray) -> FloatArray:
        per_unit = _core.gradient(theta, slope.astype(np.float32), *self.rows, self.source.n_threads)
        return np.asarray(per_unit) * self.unit


class ArrayEngine(AbstractEngine):
    """The array twin: any split family, any topology, any impurity."""

    def descend(
        self,
        theta: Theta,
        memory: Memory,
        batches: npt.NDArray[np.int32],
        rates: npt.NDArray[np.float32],
        adam: Adam,
    ) -> FloatArray:
        return stepped(self, self._evaluated, theta, memory, batches, rates, adam)

    def _evaluated(self, theta: FloatArray, rows: npt.NDArray[np.int32]) -> tuple[float, FloatArray]:
        """Objective and gradient of one batch."""
        s = self.source.targets.take(rows).dense()  # not divided here: an impurity's prior is in their unit
        found = expected_impurity(theta, self.source.Z[rows], s, self.topology, self.split, self.impurity)
        return found.objective, found.theta_bar

    def leaf_sums(self, theta: Theta) -> FloatArray:
        total = np.zeros((self.topology.leaves.size, self.source.targets.d))
        for rows in self._chunks():
            Z = self.split.scores(theta.astype(np.float64), self.source.Z[rows], self.topology)
            reach = sweep_down(gates(Z, self.topology), self.topology)
            total += reach[:, self.topology.leaves].T @ self.source.targets.take(rows).dense()
        return total

    def gradient(self, theta: Theta, slope: FloatArray) -> FloatArray:
        fixed = _FixedSlope(slope)
        total = np.zeros(theta.size)
        for rows in self._chunks():
            s = self.source.targets.take(rows).dense()
            total += expected_impurity(
                theta.astype(np.float64), self.source.Z[rows], s, self.topology, self.split, fixed
            ).theta_bar
        return total

    def _chunks(self) -> list[slice]:
        return [slice(first, first + CHUNK) for first in range(0, self.source.n, CHUNK)]


class _FixedSlope(AbstractImpurity):
    """Slopes known beforehand: the leaves' sums came from all rows, the gradient comes chunk by chunk."""

    def __init__(self, slopes: FloatArray) -> None:
        self.slopes = slopes

    def phi(self, S: Any) -> Any:
        return (S * self.slopes).sum(axis=-1)

    def slope(self, S: Any) -> Any:
        return self.slopes

    def value(self, S: Any) -> Any:
        return S


def stepped(
    engine: AbstractEngine,
    evaluate: Callable[[FloatArray, npt.NDArray[np.int32]], tuple[float, FloatArray]],
    theta: Theta,
    memory: Memory,
    batches: npt.NDArray[np.int32],
    rates: npt.NDArray[np.float32],
    adam: Adam,
) -> FloatArray:
    """The steps of an array engine, whichever way it finds objective and gradient of a batch."""
    decays = engine.split.decays(engine.topology, engine.source.p)
    objective = np.zeros(len(rates))
    for step, (rows, rate) in enumerate(zip(batches, rates, strict=True)):
        J, theta_bar = evaluate(theta.astype(np.float64), rows)
        weight = engine.unit * len(rows)
        adam_step(theta, theta_bar / weight, memory, float(rate), adam, decays)
        objective[step] = J / weight
    return objective


def adam_step(
    theta: Theta,
    gradient: FloatArray,
    memory: Memory,
    rate: float,
    adam: Adam,
    decays: npt.NDArray[np.bool_],
) -> None:
    """One step in place; the twin of the kernel's."""
    memory.step += 1
    memory.mean += (1 - adam.beta1) * (gradient - memory.mean)
    memory.square += (1 - adam.beta2) * (gradient * gradient - memory.square)
    corrected = memory.mean / (1 - adam.beta1**memory.step)
    root = np.sqrt(memory.square / (1 - adam.beta2**memory.step)) + adam.epsilon
    theta *= np.where(decays, 1 - rate * adam.decay, 1.0)
    theta -= rate * corrected / root


def engine_for(
    source: ArraySource,
    topology: Topology,
    split: AbstractSplit,
    impurity: AbstractImpurity,
    tolerance: float,
) -> AbstractEngine:
    """The compiled engine where its kernels know split and impurity, else the array twin."""
    if is_compiled(topology, split, impurity):
        return CoreEngine(source, topology, split, impurity, tolerance)
    return ArrayEngine(source, topology, split, impurity)


def is_compiled(topology: Topology, split: AbstractSplit, impurity: AbstractImpurity) -> bool:
    """Whether there are kernels for the three."""
    compiled = split.core_name is not None and impurity.core_name is not None
    return compiled and bool((topology.n_scores == 1).all())
