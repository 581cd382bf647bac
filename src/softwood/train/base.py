"""The interface of a trainer, and what one run of it shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.tree import Tree


def _silent(share: float, objective: float) -> None:
    """Nobody listens."""


@dataclass(eq=False)
class Run:
    """What the trainers of one fit share: the generator, the threads, who listens, and the history."""

    rng: np.random.Generator
    n_threads: int = 1
    progress: Callable[[float, float], None] = _silent  # (share of the work done, objective per unit of weight)
    history: list[float] = field(default_factory=list)  # objective per unit of weight, one entry per step


class AbstractTrainer(ABC):
    """Turns a tree into a better one."""

    @abstractmethod
    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        """Return a tree trained on the source; the given tree is where to start and is not changed."""


@dataclass(frozen=True)
class Chain(AbstractTrainer):
    """One trainer after another."""

    trainers: Sequence[AbstractTrainer]

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        for trainer in self.trainers:
            tree = trainer.train(tree, source, impurity, run)
        return tree


def root(source: ArraySource, impurity: AbstractImpurity) -> Tree:
    """The tree of one leaf that every chain starts from."""
    total = source.targets.total()
    return Tree.stump(total, impurity.value(total), source.p)
