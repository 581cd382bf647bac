"""FitLines: a linear model in every leaf, by ridge regression from additive moments.

Each node's model is drawn to its parent's, the root's to its mean:

    b(node) = argmin  sum over rows of w (t - b . (1, z))^2  +  penalty |b - b(parent)|^2

so that a leaf of few rows answers nearly as its ancestors would. Everything is made of the moments of leaves and folds,
sums of w (1, z)(1, z)^T and w (1, z) t over standardised columns in float64: fitting without a fold and judging by it
are a subtraction and a quadratic form, and rows are read once. The tree's one penalty is chosen by folds drawn by
content. (Choosing the mean instead of the line in leaves where folds prefer it loses 1 % of the error.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.lines import Lines
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
FOLDS = 5
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # in rows of mean weight
MOST_MOMENTS = 2**24  # numbers: 128 MiB; where more were needed, some columns have no slopes
JITTER = 1e-9  # keeps systems regular where columns are constant


@dataclass(frozen=True)
class Moments:
    """Sums of rows (1, z) with their targets; any axes come before."""

    A: FloatArray  # (..., k, k) w (1, z)(1, z)^T
    b: FloatArray  # (..., k) w (1, z) t
    c: FloatArray  # (...) w t^2

    def losses(self, beta: FloatArray) -> FloatArray:
        """Squared errors of models, of the shape of c."""
        Ab = (self.A @ beta[..., None])[..., 0]
        return np.asarray(self.c - 2 * (beta * self.b).sum(axis=-1) + (beta * Ab).sum(axis=-1))

    def at(self, index: int) -> Moments:
        """One entry of the first axis."""
        return Moments(self.A[index], self.b[index], self.c[index])

    def summed(self) -> Moments:
        """The sums over the first axis."""
        return Moments(self.A.sum(axis=0), self.b.sum(axis=0), self.c.sum(axis=0))

    def without(self, parts: Moments) -> Moments:
        """What remains when each of some parts is left out."""
        return Moments(self.A - parts.A, self.b - parts.b, self.c - parts.c)


@dataclass(frozen=True)
class FitLines(AbstractTrainer):
    """Linear models for the leaves of a tree whose statistics are moments of a number."""

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        leaf = source.leaf_of(tree)
        columns = _columns(tree, source, leaf)
        fold = source.folds(FOLDS, int(run.rng.integers(2**31)))
        parts = leaf_moments(source, columns, leaf + tree.n_nodes * fold, (FOLDS, tree.n_nodes))
        parts = _handed_up(parts, tree.topology)
        beta = best_lines(parts, tree.topology, source.targets.weight.sum() / source.n)
        return replace(tree, lines=_in_units(beta, columns, tree, source, leaf))


def leaf_moments(
    source: ArraySource,
    columns: npt.NDArray[np.int64],  # (k - 1,)
    key: npt.NDArray[np.int64],  # (n,)
    shape: tuple[int, int],
) -> Moments:
    """The moments of the rows of each key, of that shape."""
    k = columns.size + 1
    A, b, c = np.zeros((*shape, k, k)), np.zeros((*shape, k)), np.zeros(shape)
    w, wt, wtt = source.targets.dense().T
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        at = np.unravel_index(key[rows[0]], shape)
        Z1 = np.ones((rows.size, k))
        Z1[:, 1:] = source.Z[rows][:, columns]
        A[at], b[at], c[at] = Z1.T @ (w[rows, None] * Z1), wt[rows] @ Z1, wtt[rows].sum()
    return Moments(A, b, c)


def ridge_lines(moments: Moments, topology: Topology, penalty: float) -> FloatArray:
    """(m, k) the model of each node, drawn to its parent's."""
    k = moments.b.shape[-1]
    drawn = penalty * np.eye(k)
    beta = np.zeros_like(moments.b)
    for level in topology.levels:
        above = beta[np.maximum(topology.parent[level], 0)]  # zeros for the root
        if level.start == 0:
            drawn[0, 0] = 0.0  # its mean is free
        system = moments.A[level] + drawn + JITTER * (1.0 + moments.A[0, 0, 0]) * np.eye(k)
        rest = moments.b[level] - (moments.A[level] @ above[..., None])[..., 0]
        beta[level] = above + np.linalg.solve(system, rest[..., None])[..., 0]
        drawn[0, 0] = penalty
    return beta


def best_lines(
    parts: Moments,  # (folds, m)
    topology: Topology,
    unit: float,  # weight of a row
) -> FloatArray:  # (m, k)
    """The models by the penalty that loses least on the folds they are not fitted to."""
    whole = parts.summed()

    def lost(penalty: float) -> float:
        folds = [parts.at(fold) for fold in range(FOLDS)]
        models = [ridge_lines(whole.without(fold), topology, penalty) for fold in folds]
        losses = [fold.losses(beta)[topology.leaves] for fold, beta in zip(folds, models, strict=True)]
        return float(np.sum(losses))

    return ridge_lines(whole, topology, min((unit * each for each in PENALTIES), key=lost))


def _handed_up(parts: Moments, topology: Topology) -> Moments:
    """Moments of the leaves, summed up to every node above them."""
    for level in reversed(topology.levels[1:]):
        for node in range(level.start, level.stop):
            for sums in (parts.A, parts.b, parts.c):
                sums[:, topology.parent[node]] += sums[:, node]
    return parts


def _columns(tree: Tree, source: ArraySource, leaf: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The columns that get slopes: all where memory allows, else those that go most with what constants leave."""
    most = max(1, int((MOST_MOMENTS / (FOLDS * tree.n_nodes)) ** 0.5) - 1)
    if source.p <= most:
        return np.arange(source.p)
    w, wt, _ = source.targets.dense().T
    pull = np.abs((wt - w * tree.values[leaf, 0]) @ source.Z)
    return np.sort(np.argsort(-pull, kind="stable")[:most])


def _in_units(
    beta: FloatArray,
    columns: npt.NDArray[np.int64],
    tree: Tree,
    source: ArraySource,
    leaf: npt.NDArray[np.int32],
) -> Lines:
    """Models of standardised columns as lines of the user's."""
    slopes = np.zeros((tree.n_nodes, source.p))
    slopes[:, columns] = beta[:, 1:] * source.units.per_scale[columns]
    low, high = _ranges(tree, source, leaf)
    return Lines(slopes, beta[:, 0] - slopes @ source.units.center, low, high)


def _ranges(tree: Tree, source: ArraySource, leaf: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
    """(m,) the least and the largest target of each node, its own value among them."""
    s = source.targets.dense()
    t = s[:, 1] / s[:, 0]
    low, high = tree.values[:, 0].copy(), tree.values[:, 0].copy()
    np.minimum.at(low, leaf, t)
    np.maximum.at(high, leaf, t)
    for level in reversed(tree.topology.levels[1:]):
        np.minimum.at(low, tree.topology.parent[level], low[level])
        np.maximum.at(high, tree.topology.parent[level], high[level])
    return low, high
