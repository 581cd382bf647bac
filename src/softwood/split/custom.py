"""A user's own family: two functions of one question, its scores and their reverse, serve every question of a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.question import AbstractQuestions
from softwood.question.callable import Callables, NodeScores
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units
from softwood.topology import Topology

NOISE = 0.1  # of a start that the user does not give


@dataclass(frozen=True)
class Custom(AbstractSplit):
    """Questions scored by your own function, trained with your own derivative.

    Parameters
    ----------
    score : callable
        ``score(theta, X) -> (n,)``: the scores of one question; child 1 is taken above 0. X are standardised rows.
    score_vjp : callable
        ``score_vjp(theta, X, z_bar) -> (q,)``: the cotangent of theta from the (n,) cotangent of the scores.
    n_theta : callable
        ``n_theta(n_features) -> q``: how many parameters a question has.
    start : callable or None, default=None
        ``start(n_features, rng) -> (q,)``: where training starts; None: small normal numbers.
    is_weight : callable or None, default=None
        ``is_weight(n_features) -> (q,)`` bool: which parameters weight decay shrinks; None: all of them.

    Notes
    -----
    The functions must be importable for pickle. A model file cannot hold them.
    """

    score: NodeScores
    score_vjp: Callable[[Any, Any, Any], Any]
    n_theta: Callable[[int], int]
    start: Callable[[int, np.random.Generator], npt.ArrayLike] | None = None
    is_weight: Callable[[int], npt.ArrayLike] | None = None
    name: ClassVar[str] = "custom"

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return int(topology.internal.size) * int(self.n_theta(n_features))

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        xp = array_namespace(X)
        columns = [xp.expand_dims(self.score(each, X), axis=1) for each in self._each(theta, X.shape[1])]
        return xp.concat([X[:, :0], *columns], axis=1)

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        parts = [self.score_vjp(each, X, Z_bar[:, k]) for k, each in enumerate(self._each(theta, X.shape[1]))]
        return array_namespace(X).concat([theta[:0], *parts])

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        mask = np.ones(self.n_theta(n_features)) if self.is_weight is None else self.is_weight(n_features)
        return np.tile(np.asarray(mask, dtype=bool), topology.internal.size)

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        starts = [self._start(n_features, rng) for _ in topology.internal]
        return np.concatenate([np.zeros(0), *starts])

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        if (topology.n_scores != 1).any():
            raise ValueError("Custom questions have two children. Use a topology with two children per node.")
        thetas = self._each(np.asarray(theta, dtype=np.float64), units.center.size)
        center, per_scale = (np.tile(each, (len(thetas), 1)) for each in (units.center, units.per_scale))
        return Callables((self.score,) * len(thetas), tuple(thetas), center, per_scale)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        """A function cannot be made to ask a given question: a fresh start."""
        return self.random(asked.topology, units.center.size, rng)

    def _start(self, n_features: int, rng: np.random.Generator) -> FloatArray:
        if self.start is None:
            return np.asarray(NOISE * rng.normal(size=self.n_theta(n_features)))
        return np.asarray(self.start(n_features, rng), dtype=np.float64)

    def _each(self, theta: Any, n_features: int) -> list[Any]:
        """theta of each question."""
        q = int(self.n_theta(n_features))
        return [theta[first : first + q] for first in range(0, theta.shape[0], q)]
