"""The axis family: score of node k = steepness_k * (x[feature_k] - t_k), one given column per node.

theta is (internal nodes, 2) flattened: steepness, threshold. Which column a node looks at is chosen by whoever makes
the family (CART, or a search): there is no gradient with respect to it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import Thresholds
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units
from softwood.topology import Topology


class Axis(AbstractSplit):
    """One feature and a threshold."""

    name: ClassVar[str] = "axis"

    def __init__(self, feature: npt.ArrayLike = ()) -> None:
        self.feature = np.asarray(feature, dtype=np.int64)  # (internal nodes,)

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return 2 * int(topology.internal.size)

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        xp = array_namespace(X)
        table = xp.reshape(theta, (-1, 2))
        return table[:, 0] * (self._columns(X) - table[:, 1])

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        xp = array_namespace(X)
        table = xp.reshape(theta, (-1, 2))
        steepness_bar = xp.sum(Z_bar * (self._columns(X) - table[:, 1]), axis=0)
        threshold_bar = -table[:, 0] * xp.sum(Z_bar, axis=0)
        return xp.reshape(xp.stack([steepness_bar, threshold_bar], axis=1), (-1,))

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        return np.tile([True, False], topology.internal.size)

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        threshold = rng.normal(size=topology.internal.size)
        return np.stack([np.full_like(threshold, 2.0), threshold], axis=1).ravel()

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> Thresholds:
        threshold = np.asarray(theta, dtype=np.float64).reshape(-1, 2)[:, 1]
        return Thresholds(
            self.feature.astype(np.int32), threshold * units.scale[self.feature] + units.center[self.feature]
        )

    def _columns(self, X: Array) -> Array:
        xp = array_namespace(X)
        return xp.take(X, xp.asarray(self.feature), axis=1)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        table = np.tile([2.0, 0.0], (asked.table.size, 1))
        for index, questions in enumerate(asked.tables):
            nodes = np.flatnonzero(asked.table == index)
            weights, offset = questions.slants(asked.row[nodes], units.center.size)
            column = self.feature[nodes]
            weight = weights[np.arange(nodes.size), column]
            crossing = -offset / np.where(weight == 0, 1.0, weight)
            table[nodes, 1] = (crossing - units.center[column]) * units.per_scale[column]
        return table.ravel()
