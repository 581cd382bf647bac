"""Polish: exact search among questions that are there, on the hard global impurity.

The directions of a tree's questions, with the plain columns beside them, are the columns of a table of their own; local
search on that table moves offsets and lets a node take another node's direction or a single column. No question looks
at more columns than the widest one did before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.question import Linears, Thresholds
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Polish(AbstractTrainer):
    """Run a search over thresholds, ``search``, on the directions of a tree and the plain columns."""

    search: AbstractTrainer

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        if tree.topology.n_nodes == 1:
            return tree
        weights, bias = _slants(tree)
        directions = np.concatenate([np.diag(_steepness(weights, source)), weights])  # (p + k, p)
        columns = np.ascontiguousarray(np.asarray(source.X[source.order], dtype=np.float64) @ directions.T)
        table = ArraySource(
            columns, np.arange(source.n), source.copies, source.content, source.targets, source.n_threads
        )
        feature = (source.p + np.arange(bias.size)).astype(np.int32)
        start = Tree.of_one_kind(tree.topology, Thresholds(feature, -bias), tree.statistics, tree.values, table.p)
        found = self.search.train(start, table, impurity, run)
        if found.topology.n_nodes == 1:
            return found
        return _slanted(found, directions, source.p)


def _slants(tree: Tree) -> tuple[FloatArray, FloatArray]:
    """Weights and offsets of the questions in the order of the nodes."""
    pairs = [tree.question(int(node)) for node in tree.topology.internal]
    slants = [table.slants(np.array([row]), tree.n_features) for table, row in pairs]
    return np.concatenate([weights for weights, _ in slants]), np.concatenate([offset for _, offset in slants])


def _steepness(weights: FloatArray, source: ArraySource) -> FloatArray:
    """(p,) the weight of a plain column that is as steep as the questions are on average."""
    pull = np.sqrt(np.mean(np.sum((weights * source.units.scale) ** 2, axis=1)))
    return np.where(source.units.scale > 0, pull * source.units.per_scale, 1.0)


def _slanted(tree: Tree, directions: FloatArray, n_features: int) -> Tree:
    """A tree of thresholds on directions as one of slanted questions."""
    table = tree.tables[0].take(tree.row[tree.topology.internal])
    weights, bias = table.slants(np.arange(table.n_questions), len(directions))
    questions = Linears(directions[weights.argmax(axis=1)], bias)
    return Tree.of_one_kind(tree.topology, questions, tree.statistics, tree.values, n_features)
