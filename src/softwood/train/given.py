"""Given: start from a tree that is there already, whatever rows it was trained on."""

from __future__ import annotations

from dataclasses import dataclass

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run
from softwood.train.harden import on_partition
from softwood.tree import Tree


@dataclass(frozen=True)
class Given(AbstractTrainer):
    """The questions of a tree; statistics and values are those of the rows."""

    tree: Tree

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        found = on_partition(self.tree, source)
        return found.with_values(found.statistics, impurity.value(found.statistics))
