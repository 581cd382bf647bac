"""Sampled: steps by the gradient of sampled paths, O(depth) per row, whose noise is the price.

The leaves' sums over all rows, and with them the tree that comes out, are exact: only steps are sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from softwood import _core
from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit
from softwood.topology import Topology
from softwood.train.chance import uniforms
from softwood.train.engine import AbstractEngine, Adam, ArrayEngine, CoreEngine, Memory, Theta, is_compiled, stepped
from softwood.train.paths import Paths, draw_paths, path_gradient

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """How engines are made whose steps draw ``n_draws`` paths per row."""

    n_draws: int = 1

    def __call__(
        self,
        source: ArraySource,
        topology: Topology,
        split: AbstractSplit,
        impurity: AbstractImpurity,
        tolerance: float,
    ) -> AbstractEngine:
        if (topology.n_scores != 1).any():
            raise ValueError(
                "Sampled paths need two children per question, but a node of this tree has "
                f"{int(topology.arity.max())}. Use gradient='exact'."
            )
        if is_compiled(topology, split, impurity):
            return SampledCore(CoreEngine(source, topology, split, impurity, tolerance), self.n_draws)
        return SampledArrays(ArrayEngine(source, topology, split, impurity), self.n_draws)


Exact = TypeVar("Exact", bound=AbstractEngine)


class AbstractSampled(AbstractEngine, Generic[Exact]):
    """Exact sums; what differs is the step."""

    def __init__(self, exact: Exact, n_draws: int) -> None:
        super().__init__(exact.source, exact.topology, exact.split, exact.impurity)
        self.exact, self.n_draws = exact, n_draws

    def leaf_sums(self, theta: Theta) -> FloatArray:
        return self.exact.leaf_sums(theta)

    def gradient(self, theta: Theta, slope: FloatArray) -> FloatArray:
        return self.exact.gradient(theta, slope)


class SampledCore(AbstractSampled[CoreEngine]):
    """The compiled walks."""

    def descend(
        self,
        theta: Theta,
        memory: Memory,
        batches: npt.NDArray[np.int32],
        rates: npt.NDArray[np.float32],
        adam: Adam,
    ) -> FloatArray:
        parameter = (*self.impurity.core_parameters(), 0.0)[0] / self.unit
        objective = _core.sample_descend(
            theta, memory.mean, memory.square, memory.step, batches, rates,
            adam.decay, adam.beta1, adam.beta2, adam.epsilon, *self.exact.rows, self.n_draws, memory.seed,
            self.impurity.core_name, parameter, self.source.n_threads,
        )  # fmt: skip
        memory.step += len(rates)
        return np.asarray(objective)


class SampledArrays(AbstractSampled[ArrayEngine]):
    """The array twin."""

    def descend(
        self,
        theta: Theta,
        memory: Memory,
        batches: npt.NDArray[np.int32],
        rates: npt.NDArray[np.float32],
        adam: Adam,
    ) -> FloatArray:
        return stepped(self, partial(self._estimate, memory), theta, memory, batches, rates, adam)

    def _estimate(self, memory: Memory, theta: FloatArray, rows: npt.NDArray[np.int32]) -> tuple[float, FloatArray]:
        """Objective and gradient of one batch, from its own walks."""
        rows = np.repeat(rows, self.n_draws)
        draws = np.arange(rows.size) % self.n_draws
        X, s = self.source.Z[rows], self.source.targets.take(rows).dense() / self.n_draws
        U = uniforms(memory.seed, memory.step, rows, draws, self.topology.depth)
        paths = draw_paths(theta, X, self.topology, self.split, U)
        S = path_sums(paths, s, self.topology.n_nodes)
        J = float(np.sum(self.impurity.phi(S[self.topology.leaves])))
        slope = np.asarray(self.impurity.slope(S))
        return J, path_gradient(theta, X, s, self.topology, self.split, paths, slope)


def path_sums(paths: Paths, s: FloatArray, n_nodes: int) -> FloatArray:
    """(m, d) the statistics of what passes each node."""
    S = np.zeros((n_nodes, s.shape[1]))
    for node in paths.node:
        np.add.at(S, node[node >= 0], s[node >= 0])
    return S
