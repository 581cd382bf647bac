"""Harden: from the soft answers a tree was trained on to the one path a row takes.

Statistics become those of the hard partition. A dead branch gives its place to its sibling, and a question whose
children answer the same gives its place to one of them: no question is left that changes nothing. Dead is what no row
takes and hardly any is expected in: an empty leaf next to which rows pass has learned its soft value from them, and
new rows do come. It goes all the same where it learned nothing of its own, that is where its sibling answers nearly so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
NEAR = 0.05  # of the range of a tree's answers: what the reader of a tree would not call another answer
SAMPLE, CHUNK = 8192, 1024  # rows that tell what is expected in empty branches, and rows at once


@dataclass(frozen=True)
class Harden(AbstractTrainer):
    """Exact statistics, no dead branches. ``values``: keep the soft leaf values, or take those of the partition."""

    values: Literal["soft", "hard"] = "soft"
    min_samples_leaf: int = 1  # of the caller's rows; more than 1 leaves no leaf with fewer
    min_weight_fraction_leaf: float = 0.0  # of the weight of all rows
    least_expected: float = 0.1  # rows that must be expected in a branch which none takes

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        tree = self._without_thin_branches(tree, source)
        if self.values == "hard":
            tree = on_partition(tree, source)
            tree = tree.with_values(tree.statistics, impurity.value(tree.statistics))
        idle = _idle(tree, taken_by(tree, source)[:, 0])
        return on_partition(tree.keep(np.zeros(tree.n_nodes, dtype=bool), idle), source)

    def _without_thin_branches(self, tree: Tree, source: ArraySource) -> Tree:
        """Rows of a branch that goes take its sibling, so that counts change: again until none is thin.

        What is expected hardly changes when a branch goes in which nothing is expected: that is found once.
        """
        expected = expected_rows(tree, source) if self._spares_empty else np.zeros(tree.n_nodes)
        while True:
            taken = taken_by(tree, source)
            least = np.array([max(1, self.min_samples_leaf), self.min_weight_fraction_leaf * taken[0, 1]])
            is_thin = np.asarray((taken < least).any(axis=1)) & (expected < self.least_expected)
            stand_in = _fullest(tree, taken[:, 0], is_thin, self._spares_empty)
            if (stand_in < 0).all():
                return tree
            nowhere = np.zeros(tree.n_nodes, dtype=bool)
            expected = expected[tree.remaining(nowhere, stand_in)[0]]
            tree = tree.keep(nowhere, stand_in)

    @property
    def _spares_empty(self) -> bool:
        return self.values == "soft" and self.min_samples_leaf <= 1 and self.min_weight_fraction_leaf <= 0


def expected_rows(tree: Tree, source: ArraySource) -> FloatArray:
    """(m,) rows expected at each node by the soft answers, from a sample where rows are many."""
    rows = source.order[:: -(-source.n // SAMPLE)]
    reach = np.zeros(tree.n_nodes)
    for first in range(0, rows.size, CHUNK):
        reach += tree.reach(source.X[rows[first : first + CHUNK]]).sum(axis=0)
    return reach * source.n / rows.size


def taken_by(tree: Tree, source: ArraySource) -> FloatArray:
    """(m, 2) how many of the caller's rows take each node, and their weight."""
    leaf, amounts = source.leaf_of(tree), (source.copies, source.targets.weight)
    at_leaves = [np.bincount(leaf, amount, tree.n_nodes).astype(np.float64) for amount in amounts]
    return _summed_up(tree, np.stack(at_leaves, axis=1))


def on_partition(tree: Tree, source: ArraySource) -> Tree:
    """The tree with the statistics of the rows that take each node."""
    leaf_sums = source.targets.sums_by(source.leaf_of(tree), tree.n_nodes)
    return tree.with_values(_summed_up(tree, leaf_sums), tree.values)


def _summed_up(tree: Tree, S: FloatArray) -> FloatArray:
    """Sums of the leaves handed up to every node above them."""
    for level in reversed(tree.topology.levels[1:]):
        np.add.at(S, tree.topology.parent[level], S[level])
    return S


def _fullest(
    tree: Tree, counts: FloatArray, is_thin: npt.NDArray[np.bool_], spares_empty: bool
) -> npt.NDArray[np.int64]:
    """(m,) the child with most rows, one that is not thin if there is one, of nodes with a thin child; -1 elsewhere.

    Where thin children do no harm, a node of many stays as long as two of them are not thin.
    """
    worth = np.where(is_thin, counts - counts[0], counts)
    stand_in = np.full(tree.n_nodes, -1, dtype=np.int64)
    for node in tree.topology.internal:
        first = int(tree.topology.first_child[node])
        children = slice(first, first + int(tree.topology.arity[node]))
        n_thin = int(is_thin[children].sum())
        if n_thin and not (spares_empty and is_thin[children].size - n_thin > 1):
            stand_in[node] = first + int(np.argmax(worth[children]))
    return stand_in


def _idle(tree: Tree, taken: FloatArray) -> npt.NDArray[np.int64]:
    """(m,) the fullest child, of nodes all of whose leaves answer the same; -1 elsewhere.

    Where rows take one child only, nearly the same is the same.
    """
    stand_in = np.full(tree.n_nodes, -1, dtype=np.int64)
    answers_one = tree.topology.is_leaf.copy()
    values = tree.values.copy()
    near = NEAR * np.ptp(tree.values[tree.topology.leaves], axis=0).max()
    for node in tree.topology.internal[::-1]:  # children before parents
        first = int(tree.topology.first_child[node])
        children = slice(first, first + int(tree.topology.arity[node]))
        allowed = near if np.count_nonzero(taken[children]) <= 1 else 0.0
        if answers_one[children].all() and np.ptp(values[children], axis=0).max() <= allowed:
            stand_in[node] = first + int(np.argmax(taken[children]))
            answers_one[node], values[node] = True, values[stand_in[node]]
    return stand_in
