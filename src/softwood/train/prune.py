"""Cost-complexity pruning: the branch that saves least impurity per leaf goes first.

    alpha(t) = (R(t) - R(branch of t)) / (leaves of the branch - 1),    R = phi / total weight

Everything is read from the statistics in the tree; rows are not looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prune(AbstractTrainer):
    """Collapse branches while their alpha is at most ``ccp_alpha``; 0 keeps the tree as it is."""

    ccp_alpha: float = 0.0

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        if self.ccp_alpha <= 0:
            return tree
        collapse = np.zeros(tree.n_nodes, dtype=bool)
        for alpha, _, node in weakest_links(tree, impurity, float(source.targets.weight.sum())):
            if alpha > self.ccp_alpha:
                break
            collapse[node] = True
        return tree.keep(collapse)


def pruning_path(tree: Tree, impurity: AbstractImpurity, total_weight: float) -> tuple[FloatArray, FloatArray]:
    """(alphas, impurities): the total impurity of the leaves after each branch that goes, from the whole tree on."""
    alphas, impurities = [0.0], [float(impurity.phi(tree.statistics[tree.topology.leaves]).sum()) / total_weight]
    for alpha, risk, _ in weakest_links(tree, impurity, total_weight):
        alphas.append(alpha)
        impurities.append(risk)
    return np.array(alphas), np.array(impurities)


def weakest_links(tree: Tree, impurity: AbstractImpurity, total_weight: float) -> Iterator[tuple[float, float, int]]:
    """(alpha, impurity that remains, node) of one branch after another, down to the root."""
    branches = _Branches(tree, impurity, total_weight)
    waiting = [(branches.alpha(int(node)), int(node)) for node in tree.topology.internal]
    heapq.heapify(waiting)
    while waiting:
        alpha, node = heapq.heappop(waiting)
        if branches.n_leaves[node] == 1 or branches.is_gone(node) or alpha != branches.alpha(node):
            continue  # an entry that later collapses made stale
        for ancestor in branches.collapse(node):
            heapq.heappush(waiting, (branches.alpha(ancestor), ancestor))
        yield alpha, float(branches.below[0]), node


class _Branches:
    """The impurity and the leaves below each node, kept while branches collapse."""

    def __init__(self, tree: Tree, impurity: AbstractImpurity, total_weight: float) -> None:
        self.parent = tree.topology.parent
        self.risk: FloatArray = np.asarray(impurity.phi(tree.statistics)) / total_weight  # (m,)
        self.below = np.where(tree.topology.is_leaf, self.risk, 0.0)  # (m,) of the leaves of the branch
        self.n_leaves = tree.topology.is_leaf.astype(np.int64)  # (m,)
        for node in range(tree.n_nodes - 1, 0, -1):  # children before parents
            self.below[self.parent[node]] += self.below[node]
            self.n_leaves[self.parent[node]] += self.n_leaves[node]

    def alpha(self, node: int) -> float:
        return float((self.risk[node] - self.below[node]) / (self.n_leaves[node] - 1))

    def is_gone(self, node: int) -> bool:
        """Whether a node above has collapsed."""
        return any(self.n_leaves[ancestor] == 1 for ancestor in self._above(node))

    def collapse(self, node: int) -> list[int]:
        """Make a node a leaf; returns the nodes above it."""
        above = list(self._above(node))
        for place in [*above, node]:
            if place != node:
                self.below[place] += self.risk[node] - self.below[node]
                self.n_leaves[place] -= self.n_leaves[node] - 1
        self.below[node], self.n_leaves[node] = self.risk[node], 1
        return above

    def _above(self, node: int) -> Iterator[int]:
        while node > 0:
            node = int(self.parent[node])
            yield node
