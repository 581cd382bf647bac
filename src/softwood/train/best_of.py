"""BestOf: several starts, and the stated rule for choosing among them.

Every trainer runs from the same tree; the result with the least hard impurity on the training rows is kept, the
earliest of equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run
from softwood.tree import Tree


@dataclass(frozen=True)
class BestOf(AbstractTrainer):
    """The best of several trainers by hard training impurity."""

    trainers: Sequence[AbstractTrainer]

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        found = [trainer.train(tree, source, impurity, run) for trainer in self.trainers]
        return min(found, key=lambda each: hard_impurity(each, source, impurity))


def hard_impurity(tree: Tree, source: ArraySource, impurity: AbstractImpurity) -> float:
    """phi summed over the leaves of the hard partition."""
    leaf, s = source.leaf_of(tree), source.targets.dense()
    S = np.stack([np.bincount(leaf, s[:, c], tree.n_nodes) for c in range(s.shape[1])], axis=1)
    return float(np.sum(impurity.phi(S)))
