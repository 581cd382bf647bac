"""GrowProjected: a second place to start from, not a way to a good tree by itself.

Top down, each node cuts its rows at the median of one slanted direction: the ridge-whitened cross-covariance of the
columns with a random direction of the statistics (what a least-squares fit of that direction would use).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.question import Linears
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
MOST_LEAVES = 4096
RIDGE = 0.1  # added to the variances of standardised columns
SHARPNESS = 2.0  # standard deviation of the scores: the gates start neither flat nor shut


@dataclass(frozen=True)
class GrowProjected(AbstractTrainer):
    """A complete tree of the given depth, each node halving its rows."""

    max_depth: int

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        s, w = source.targets.dense(), source.targets.weight
        depth = min(self.max_depth, int(np.log2(min(source.n, MOST_LEAVES))))  # no more leaves than rows
        members, arity, weights, offsets = [np.arange(source.n)], [], [], []
        for at in range(2 ** (depth + 1) - 1):
            rows = members[at]
            if at >= 2**depth - 1:
                arity.append(0)
                continue
            direction, offset = _median_cut(source.Z[rows], s[rows], w[rows], run.rng)
            right = source.Z[rows] @ direction + offset > 0
            arity.append(2)
            weights.append(direction)
            offsets.append(offset)
            members += [rows[~right], rows[right]]
        S = np.stack([s[rows].sum(axis=0) for rows in members])
        slanted = np.stack(weights) * source.units.per_scale if weights else np.zeros((0, source.p))
        questions = Linears(slanted, np.array(offsets) - slanted @ source.units.center)
        return Tree.of_one_kind(Topology(np.array(arity)), questions, S, np.asarray(impurity.value(S)), source.p)


def _median_cut(
    Z: npt.NDArray[np.float32],  # (n, p)
    s: FloatArray,  # (n, d)
    w: FloatArray,  # (n,)
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Direction (p,) and offset of one node's question."""
    p = Z.shape[1]
    wish = rng.normal(size=s.shape[1])
    noise: FloatArray = np.asarray(rng.normal(size=p))
    if len(Z) < 2:
        return _blind(noise)
    share = w / w.sum()
    root = np.sqrt(share)
    target = s @ wish / np.maximum(w, 1e-300)
    direction = _ridge(root[:, None] * (Z - share @ Z), root * (target - share @ target))
    direction += 1e-3 * np.linalg.norm(direction) * noise
    score = Z @ direction
    spread = float(np.sqrt(share @ (score - share @ score) ** 2))
    if spread < 1e-12:
        return _blind(noise)
    direction *= SHARPNESS / spread
    return direction, -_weighted_median(Z @ direction, w)


def _ridge(A: FloatArray, b: FloatArray) -> FloatArray:
    """A^T (A A^T + RIDGE)^-1 b = (A^T A + RIDGE)^-1 A^T b, by the smaller of the two systems."""
    n, p = A.shape
    if n < p:
        return np.asarray(A.T @ np.linalg.solve(A @ A.T + RIDGE * np.eye(n), b))
    return np.asarray(np.linalg.solve(A.T @ A + RIDGE * np.eye(p), A.T @ b))


def _blind(noise: FloatArray) -> tuple[FloatArray, float]:
    """A question where the rows suggest none."""
    return np.asarray(noise * SHARPNESS / np.linalg.norm(noise)), 0.0


def _weighted_median(values: FloatArray, w: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(w[order])
    at = int(np.searchsorted(passed, passed[-1] / 2))
    return float(values[order[min(at, len(values) - 1)]])
