"""RefineLines: train questions for leaves that will answer with lines.

The impurity of a leaf is what its ridge line leaves unexplained, so that questions no longer cut where one line would
do. Its statistics are all products of (1, z, t), their number grows with the square of the columns: for few columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace
from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit
from softwood.split.linear import Linear
from softwood.targets import DenseTargets
from softwood.train.base import AbstractTrainer, Run
from softwood.train.refine import Descend, Refine
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
MOST_COLUMNS = 30  # 1,024 statistics of a row


@dataclass(frozen=True)
class _LinearResidual(AbstractImpurity):
    """Squared error of the ridge line of a node; S holds the products w (1, z, t)(1, z, t)^T, row by row."""

    penalty: float = 1.0  # on slopes, in the unit of weights; the mean is nearly free
    splits_pure: ClassVar[bool] = True

    def phi(self, S: Array) -> Array:
        M, beta = self._solved(S)
        return M[..., -1, -1] - array_namespace(S).sum(beta * M[..., :-1, -1], axis=-1)

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        _, beta = self._solved(S)
        v = xp.concat([-beta, xp.ones_like(beta[..., :1])], axis=-1)
        return xp.reshape(v[..., :, None] * v[..., None, :], S.shape)

    def value(self, S: Array) -> Array:
        return self._solved(S)[1]

    def _solved(self, S: Array) -> tuple[Array, Array]:
        """The products as a matrix, and the ridge line (offset, slopes)."""
        xp = array_namespace(S)
        k = round(S.shape[-1] ** 0.5)
        M = xp.reshape(S, (*S.shape[:-1], k, k))
        prior = self.penalty * xp.eye(k - 1, dtype=S.dtype, device=S.device)
        prior[0, 0] = 1e-6 * self.penalty
        beta = xp.linalg.solve(M[..., :-1, :-1] + prior, M[..., :-1, -1:])[..., 0]
        return M, beta


@dataclass(frozen=True)
class RefineLines(AbstractTrainer):
    """Global training of a tree's questions by the residuals of its leaves' lines."""

    split: AbstractSplit = field(default_factory=Linear)
    optimizer: Descend = field(default_factory=Descend)
    penalty: float = 3.0  # in rows of mean weight

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        if tree.n_nodes == 1 or source.p > MOST_COLUMNS:
            return tree
        residual = _LinearResidual(self.penalty * float(source.targets.weight.sum()) / source.n)
        products = source.with_targets(line_products(source))
        quiet = Run(run.rng, run.n_threads)  # the history is of one objective
        refined = Refine(None, self.split, self.optimizer).train(tree, products, residual, quiet)
        S = refined.statistics.reshape(refined.n_nodes, source.p + 2, source.p + 2)
        moments = np.stack([S[:, 0, 0], S[:, 0, -1], S[:, -1, -1]], axis=1)
        return refined.with_values(moments, np.asarray(impurity.value(moments)))


def line_products(source: ArraySource) -> DenseTargets:
    """s = w (1, z, t)(1, z, t)^T of every row."""
    w, wt, _ = source.targets.dense().T
    row = np.column_stack([np.ones(source.n), source.Z, wt / w])
    return DenseTargets((w[:, None, None] * row[:, :, None] * row[:, None, :]).reshape(source.n, -1), w)
