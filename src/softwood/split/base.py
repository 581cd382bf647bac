"""The interface of a split family: rows in, the scores of all nodes out, and the way back.

A family sees standardised X and never y, w or s. ``theta`` is one flat array for the whole tree; its first axis is
parameters, whatever they mean. Scores of a two-children node are one number (sigmoid of child 1), of a node with
B > 2 children B numbers (softmax); ``topology.n_scores`` lists how many, in the order of the internal nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import AbstractQuestions
from softwood.topology import Topology

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Units:
    """How standardised columns are made: z = (x - center) / scale; a constant column has scale 0 and z = 0."""

    center: FloatArray  # (p,)
    scale: FloatArray  # (p,)

    @property
    def per_scale(self) -> FloatArray:
        """1 / scale, and 0 for constant columns."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    @classmethod
    def none(cls, n_features: int) -> Units:
        return cls(np.zeros(n_features), np.ones(n_features))


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions in the order of a topology's internal nodes: a table and a row of it, or -1 for none yet."""

    tables: Sequence[AbstractQuestions]
    table: npt.NDArray[np.int8]  # (internal nodes,)
    row: npt.NDArray[np.int32]  # (internal nodes,)


class AbstractSplit(ABC):
    """A family of differentiable questions with one flat parameter array for all nodes of a tree."""

    name: ClassVar[str]
    arity: ClassVar[int] = 2  # children of each node
    core_name: ClassVar[str | None] = None  # the compiled sweep's name for it; None: the array twin is used

    @abstractmethod
    def n_parameters(self, topology: Topology, n_features: int) -> int:
        """q, the length of theta."""

    @abstractmethod
    def scores(
        self,
        theta: Array,  # (q,)
        X: Array,  # (n, p)
        topology: Topology,
    ) -> Array:  # (n, scores)
        """Scores of all internal nodes, in their order."""

    @abstractmethod
    def scores_vjp(
        self,
        theta: Array,  # (q,)
        X: Array,  # (n, p)
        topology: Topology,
        Z_bar: Array,  # (n, scores)
    ) -> Array:  # (q,)
        """Cotangent of theta from the cotangent of the scores."""

    def scores_at(
        self,
        theta: Array,  # (q,)
        X: Array,  # (n, p)
        topology: Topology,
        question: Array,  # (n,) number of an internal node; all nodes have two children
    ) -> Array:  # (n,)
        """The score of one question per row. A family that can should compute no other."""
        xp = array_namespace(X)
        Z = self.scores(theta, X, topology)
        return xp.sum(xp.where(_chosen(question, Z.shape[1]), Z, xp.zeros_like(Z)), axis=1)

    def scores_at_vjp(
        self,
        theta: Array,  # (q,)
        X: Array,  # (n, p)
        topology: Topology,
        question: Array,  # (n,)
        z_bar: Array,  # (n,)
    ) -> Array:  # (q,)
        """Reverse of ``scores_at``."""
        xp = array_namespace(X)
        chosen = _chosen(question, int(topology.internal.size))
        return self.scores_vjp(theta, X, topology, xp.where(chosen, z_bar[:, None], xp.zeros_like(z_bar[:, None])))

    @abstractmethod
    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        """(q,) which parameters weight decay shrinks: weights, never offsets."""

    @abstractmethod
    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        """A random theta for standardised columns."""

    @abstractmethod
    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        """The hard questions in the user's units, one per internal node, sharpness kept."""

    @abstractmethod
    def soften(
        self,
        asked: Asked,
        units: Units,
        rng: np.random.Generator,
    ) -> FloatArray:  # (q,)
        """The way back: scores that ask given hard questions, and near-silent ones where there is no question."""


def _chosen(question: Array, count: int) -> Array:  # (n, count)
    xp = array_namespace(question)
    return question[:, None] == xp.arange(count, device=question.device)[None, :]
