"""Select: choose among settings by folds inside the training rows, then train the winner on all of them.

Coordinate-wise: each stage offers alternatives to the best setting so far, all judged on the same held-out rows by the
mean of their hard and soft answers, which halves the noise. An alternative wins only by more than ``caution`` standard
errors of the row-by-row difference, so that luck on a few rows does not undo a good default.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run, root
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
S = TypeVar("S", bound=Hashable)
Judge = Callable[[Tree, ArraySource], FloatArray]  # (n,) the loss of each row, times its weight


@dataclass(frozen=True)
class Select(AbstractTrainer, Generic[S]):
    """Settings are judged by ``build(setting, True)``, the quick form; the winner is trained in full."""

    first: S
    stages: Sequence[Callable[[S], Sequence[S]]]
    build: Callable[[S, bool], AbstractTrainer]
    judge: Judge
    n_folds: int = 1  # 1: a holdout of a fifth
    caution: float = 0.5

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        best = self.choose(source, impurity, run)
        return self.build(best, False).train(tree, source, impurity, run)

    def choose(self, source: ArraySource, impurity: AbstractImpurity, run: Run) -> S:
        """The best setting found, stage by stage."""
        parts = split_rows(source, self.n_folds, int(run.rng.integers(2**31)))
        if not parts:
            return self.first
        seed = int(run.rng.integers(2**31))
        best, losses = self.first, self._losses(self.first, parts, impurity, seed, run)
        for stage in self.stages:
            rivals = [each for each in stage(best) if each != best]
            judged = [(each, self._losses(each, parts, impurity, seed, run)) for each in rivals]
            for rival, rival_losses in judged:
                if is_better(losses - rival_losses, self.caution):
                    best, losses = rival, rival_losses
        return best

    def _losses(
        self,
        setting: S,
        parts: Sequence[tuple[ArraySource, ArraySource]],
        impurity: AbstractImpurity,
        seed: int,
        run: Run,
    ) -> FloatArray:
        trainer, found = self.build(setting, True), []
        for rows, rest in parts:
            quiet = Run(np.random.default_rng(seed), run.n_threads)
            found.append(self.judge(trainer.train(root(rows, impurity), rows, impurity, quiet), rest))
        return np.concatenate(found)


def is_better(gains: FloatArray, caution: float) -> bool:
    """Whether row-by-row gains are above 0 by more than ``caution`` standard errors of their sum."""
    return bool(gains.sum() > caution * np.sqrt(gains.size) * gains.std())


def split_rows(source: ArraySource, n_folds: int, seed: int) -> list[tuple[ArraySource, ArraySource]]:
    """(rows to train on, rows to judge by) of each fold."""
    fold = source.folds(max(n_folds, 5) if n_folds == 1 else n_folds, seed)
    return [
        (source.take(np.flatnonzero(fold != k)), source.take(np.flatnonzero(fold == k)))
        for k in range(n_folds)
        if (fold == k).any() and (fold != k).any()
    ]


def misses(tree: Tree, source: ArraySource) -> FloatArray:
    """The weight answered with another class than its own; s are class weights."""
    s = source.targets.dense()
    rows = np.arange(len(s))
    hits = [s[rows, answer.argmax(axis=1)] for answer in _answers(tree, source)]
    return np.asarray(s.sum(axis=1) - np.mean(hits, axis=0))


def squares(tree: Tree, source: ArraySource) -> FloatArray:
    """Squared errors; s are moments (w, w y, w y^2)."""
    w, wy, wyy = source.targets.dense().T
    return np.asarray(np.mean([w * v[:, 0] ** 2 - 2 * wy * v[:, 0] + wyy for v in _answers(tree, source)], axis=0))


def _answers(tree: Tree, source: ArraySource) -> tuple[FloatArray, FloatArray]:
    """The hard and the soft answer to each row."""
    X, leaves = source.X[source.order], tree.topology.leaves
    return tree.values[tree.apply(X)], tree.reach(X)[:, leaves] @ tree.values[leaves]
