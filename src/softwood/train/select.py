"""Select: choose among settings by folds inside the training rows, then train the winner on all of them.

Coordinate-wise: each stage offers alternatives to the best setting so far, all judged on the same folds. A setting is
judged on held-out rows by the mean of its hard and its soft answers, which halves the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run, root
from softwood.tree import Tree

S = TypeVar("S", bound=Hashable)
Judge = Callable[[Tree, ArraySource, AbstractImpurity], float]


@dataclass(frozen=True)
class Select(AbstractTrainer, Generic[S]):
    """Settings are judged by ``build(setting, True)``, the quick form; the winner is trained in full."""

    first: S
    stages: Sequence[Callable[[S], Sequence[S]]]
    build: Callable[[S, bool], AbstractTrainer]
    n_folds: int  # 1: a holdout of a fifth
    judge: Judge  # what held-out rows say of a tree: less is better

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        best = self.choose(source, impurity, run)
        return self.build(best, False).train(tree, source, impurity, run)

    def choose(self, source: ArraySource, impurity: AbstractImpurity, run: Run) -> S:
        """The setting of least risk; the first one wins ties."""
        parts = split_rows(source, self.n_folds, int(run.rng.integers(2**31)))
        seed = int(run.rng.integers(2**31))
        judged: dict[S, float] = {}

        def risk_of(setting: S) -> float:
            if setting not in judged:
                trainer = self.build(setting, True)
                judged[setting] = float(np.mean([self._held_out(trainer, *part, impurity, seed, run) for part in parts]))
            return judged[setting]

        best = self.first
        for stage in self.stages:
            best = min([best, *stage(best)], key=risk_of)
        return best

    def _held_out(
        self,
        trainer: AbstractTrainer,
        rows: ArraySource,
        rest: ArraySource,
        impurity: AbstractImpurity,
        seed: int,
        run: Run,
    ) -> float:
        quiet = Run(np.random.default_rng(seed), run.n_threads)
        return self.judge(trainer.train(root(rows, impurity), rows, impurity, quiet), rest, impurity)


def split_rows(source: ArraySource, n_folds: int, seed: int) -> list[tuple[ArraySource, ArraySource]]:
    """(rows to train on, rows to judge by) of each fold."""
    fold = source.folds(max(n_folds, 5) if n_folds == 1 else n_folds, seed)
    return [
        (source.take(np.flatnonzero(fold != k)), source.take(np.flatnonzero(fold == k)))
        for k in range(n_folds)
        if (fold == k).any() and (fold != k).any()
    ]


def loss(tree: Tree, source: ArraySource, impurity: AbstractImpurity) -> float:
    """slope(S_leaf) . s per unit of weight, the loss the impurity stands for: mean of hard and expected soft."""
    slope = np.asarray(impurity.slope(tree.statistics))
    X, leaves = source.X[source.order], tree.topology.leaves
    costs = slope[tree.apply(X)] + tree.reach(X)[:, leaves] @ slope[leaves]
    return float(np.sum(source.targets.dense() * costs)) / 2 / float(source.targets.weight.sum())


def misses(tree: Tree, source: ArraySource, impurity: AbstractImpurity) -> float:
    """Share of the weight answered with another class than its own: mean of hard and soft answers."""
    X, s = source.X[source.order], source.targets.dense()
    leaves = tree.topology.leaves
    answers = (tree.values[tree.apply(X)], tree.reach(X)[:, leaves] @ tree.values[leaves])
    hits = sum(float(s[np.arange(len(s)), answer.argmax(axis=1)].sum()) for answer in answers)
    return 1 - hits / 2 / float(s.sum())
