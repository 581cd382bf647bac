"""The linear family: score of node k = w_k . x + b_k, a logistic regression at every node.

theta is (internal nodes, p + 1) flattened, each row the weights and then the offset.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import Linears
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units
from softwood.topology import Topology

STEEPNESS = 1.0  # weight of a standardised column that starts as a threshold question
NOISE = 0.01  # breaks the symmetry of equal columns and of questions not yet asked


class Linear(AbstractSplit):
    """Slanted questions."""

    name: ClassVar[str] = "linear"
    core_name: ClassVar[str | None] = "linear"

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return int(topology.n_scores.sum()) * (n_features + 1)

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        xp = array_namespace(X)
        table = xp.reshape(theta, (-1, X.shape[1] + 1))
        return X @ table[:, :-1].T + table[:, -1]

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        xp = array_namespace(X)
        W_bar = Z_bar.T @ X  # of X @ W.T
        b_bar = xp.sum(Z_bar, axis=0)  # of + b
        return xp.reshape(xp.concat([W_bar, b_bar[:, None]], axis=1), (-1,))

    def scores_at(self, theta: Array, X: Array, topology: Topology, question: Array) -> Array:
        xp = array_namespace(X)
        asked = xp.take(xp.reshape(theta, (-1, X.shape[1] + 1)), question, axis=0)
        return xp.sum(X * asked[:, :-1], axis=1) + asked[:, -1]

    def scores_at_vjp(self, theta: Array, X: Array, topology: Topology, question: Array, z_bar: Array) -> Array:
        """Sums by question are differences of running sums over rows in the order of their questions."""
        xp = array_namespace(X)
        order = xp.argsort(question, stable=True)
        parts = z_bar[:, None] * xp.concat([X, xp.ones_like(X[:, :1])], axis=1)
        running = xp.cumulative_sum(xp.take(parts, order, axis=0), axis=0, include_initial=True)
        numbers = xp.arange(int(topology.internal.size), dtype=question.dtype, device=question.device)
        ends = [xp.searchsorted(xp.take(question, order, axis=0), numbers, side=side) for side in ("left", "right")]
        begun, ended = (xp.take(running, end, axis=0) for end in ends)
        return xp.reshape(ended - begun, (-1,))

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        mask = np.ones((int(topology.n_scores.sum()), n_features + 1), dtype=bool)
        mask[:, -1] = False
        return mask.ravel()

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        table = rng.normal(size=(int(topology.n_scores.sum()), n_features + 1))
        table[:, :-1] *= 2.0 / np.sqrt(np.sum(table[:, :-1] ** 2, axis=1, keepdims=True))
        return np.asarray(table.ravel())

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> Linears:
        if (topology.n_scores != 1).any():
            raise ValueError(
                "Hard linear questions have two children, but a node of this tree has "
                f"{int(topology.arity.max())}. Use a topology with two children per node."
            )
        table = np.asarray(theta, dtype=np.float64).reshape(-1, units.center.size + 1)
        weights = table[:, :-1] * units.per_scale
        return Linears(weights, table[:, -1] - weights @ units.center)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        table = NOISE * rng.normal(size=(asked.table.size, units.center.size + 1))
        table[:, -1] = 0
        for index, questions in enumerate(asked.tables):
            nodes = np.flatnonzero(asked.table == index)
            weights, offset = questions.slants(asked.row[nodes], units.center.size)
            if questions.is_hard:
                sharpness = STEEPNESS / np.maximum(np.abs(weights * units.scale).max(axis=1), 1e-300)
                weights, offset = weights * sharpness[:, None], offset * sharpness
            table[nodes, :-1] += weights * units.scale
            table[nodes, -1] += offset + weights @ units.center
        return table.ravel()
