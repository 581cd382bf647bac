"""The layered family: another family at each depth, for instance linear questions above and bent ones below.

theta is the levels' thetas one after another. A level is shown to its family as a chain of as many questions: a family
that works node by node cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import AbstractQuestions
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units
from softwood.split.linear import Linear
from softwood.split.pretransform import Pretransform
from softwood.topology import Topology


@dataclass(frozen=True)
class _Level:
    """The questions of one depth."""

    family: AbstractSplit
    nodes: slice  # internal nodes
    topology: Topology  # a chain of them


@dataclass(frozen=True)
class Layered(AbstractSplit):
    """A family for each depth.

    Parameters
    ----------
    families : sequence of split families, default=(Linear(), Pretransform())
        From the root down; the last one serves all depths below it.
    """

    families: tuple[AbstractSplit, ...] = (Linear(), Pretransform())
    name: ClassVar[str] = "layered"
    spans_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", tuple(self.families))
        if not self.families or not all(isinstance(family, AbstractSplit) for family in self.families):
            raise ValueError(f"Layered: families must be instances of split families; got {self.families!r}.")
        whole = [family.name for family in self.families if family.spans_levels]
        if whole:
            raise ValueError(f"Layered: {whole[0]} questions depend on other levels and cannot be one level of a tree.")
        if len({family.arity for family in self.families}) > 1:
            raise ValueError("Layered: all families must have the same number of children.")

    @property
    def arity(self) -> int:
        return self.families[0].arity

    def at_depth(self, depth: int) -> AbstractSplit:
        return self.families[min(depth, len(self.families) - 1)]

    def prepared(self, Z: npt.NDArray[np.float32], units: Units, rng: np.random.Generator) -> AbstractSplit:
        return replace(self, families=tuple(family.prepared(Z, units, rng) for family in self.families))

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return sum(level.family.n_parameters(level.topology, n_features) for level in self._levels(topology))

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        levels = self._parted(theta, topology, X.shape[1])
        columns = [level.family.scores(part, X, level.topology) for level, part in levels]
        return array_namespace(X).concat([X[:, :0], *columns], axis=1)

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        parts, start = [theta[:0]], 0
        for level, part in self._parted(theta, topology, X.shape[1]):
            stop = start + int(level.topology.n_scores.sum())
            parts.append(level.family.scores_vjp(part, X, level.topology, Z_bar[:, start:stop]))
            start = stop
        return array_namespace(X).concat(parts)

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        parts = [level.family.decays(level.topology, n_features) for level in self._levels(topology)]
        return np.concatenate([np.zeros(0, dtype=bool), *parts])

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        parts = [level.family.random(level.topology, n_features, rng) for level in self._levels(topology)]
        return np.concatenate([np.zeros(0), *parts])

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        tables = self.tables(theta, topology, units)
        if len({table.kind for table in tables}) != 1:
            raise ValueError("A layered tree asks questions of several kinds. Use tables instead of questions.")
        return type(tables[0]).joined(tables)

    def tables(self, theta: FloatArray, topology: Topology, units: Units) -> Sequence[AbstractQuestions]:
        levels = self._parted(np.asarray(theta, dtype=np.float64), topology, units.center.size)
        return [level.family.questions(part, level.topology, units) for level, part in levels]

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        parts = []
        for level in self._levels(asked.topology):
            here = Asked(asked.tables, asked.table[level.nodes], asked.row[level.nodes], level.topology)
            parts.append(level.family.soften(here, units, rng))
        return np.concatenate([np.zeros(0), *parts])

    def _parted(self, theta: Any, topology: Topology, n_features: int) -> list[tuple[_Level, Any]]:
        """Each level with its part of theta."""
        parts, start = [], 0
        for level in self._levels(topology):
            stop = start + level.family.n_parameters(level.topology, n_features)
            parts.append((level, theta[start:stop]))
            start = stop
        return parts

    def _levels(self, topology: Topology) -> list[_Level]:
        levels, start = [], 0
        for depth, nodes in enumerate(topology.levels):
            arity = topology.arity[nodes]
            stop = start + int((arity > 0).sum())
            if stop > start:
                levels.append(_Level(self.at_depth(depth), slice(start, stop), _chain(arity[arity > 0])))
            start = stop
        return levels


def _chain(arity: npt.NDArray[np.int32]) -> Topology:
    """A tree of as many questions with as many answers, each below the first answer of the one before."""
    counts, leaves = [], 0
    for n_children in arity:
        counts += [int(n_children), *[0] * leaves]
        leaves = int(n_children) - 1
    return Topology(np.array([*counts, *[0] * (leaves + 1)], dtype=np.int32))
