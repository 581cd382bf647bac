"""Lines: what the leaves of a tree answer where they answer with a linear model each.

    answer = offset + slopes . x, held between low and high

Inert numbers, one row per node, in the user's units. The limits are those of the targets a node was fitted to: a
straight line leaves them where rows are far out, and the truth seldom does. A node with slopes of 0 is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood._frozen import frozen

FloatArray = npt.NDArray[np.float64]
CELLS = 2**20  # numbers at once


@dataclass(frozen=True, eq=False)
class Lines:
    """A linear model of every node of a tree."""

    slopes: FloatArray  # (m, p)
    offset: FloatArray  # (m,)
    low: FloatArray  # (m,)
    high: FloatArray  # (m,)

    def __post_init__(self) -> None:
        for name in ("slopes", "offset", "low", "high"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))

    def answers_at(self, node: npt.NDArray[Any], X: npt.NDArray[Any]) -> FloatArray:
        """(n,) the answer of the node given for each row."""
        answer = self.offset[node]
        size = max(1, CELLS // self.slopes.shape[1])
        for first in range(0, len(X), size):
            rows = slice(first, first + size)
            answer[rows] += (self.slopes[node[rows]] * X[rows]).sum(axis=1)
        return np.asarray(np.clip(answer, self.low[node], self.high[node]))

    def answers(self, nodes: npt.NDArray[Any], X: npt.NDArray[Any]) -> FloatArray:
        """(n, k) the answer of each of some nodes to each row."""
        answer = np.asarray(X, dtype=np.float64) @ self.slopes[nodes].T + self.offset[nodes]
        return np.asarray(np.clip(answer, self.low[nodes], self.high[nodes]))

    def take(self, nodes: npt.NDArray[Any]) -> Lines:
        """The lines of some of the nodes."""
        return Lines(self.slopes[nodes], self.offset[nodes], self.low[nodes], self.high[nodes])

    def rescaled(self, scale: float, center: float) -> Lines:
        """The lines of a target ``scale * y + center``, for a scale above 0."""
        levels = (scale * each + center for each in (self.offset, self.low, self.high))
        return Lines(scale * self.slopes, *levels)
