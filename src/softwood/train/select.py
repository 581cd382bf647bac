"""Select: choose among settings by folds inside the training rows, then train the winner on all of them.

Coordinate-wise: each stage offers alternatives to the best setting so far, all judged on the same held-out rows by the
mean of their hard and soft answers, which halves the noise. An alternative wins only by more than its stage's caution,
in standard errors of the row-by-row difference: a simpler tree need only be no worse, another start must be better.
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
CHUNK = 4096  # rows judged at once
S = TypeVar("S", bound=Hashable)
Judge = Callable[[Tree, ArraySource], FloatArray]  # (n,) the loss of each row, times its weight


@dataclass(frozen=True)
class Stage(Generic[S]):
    """Alternatives to a setting, and by how many standard errors one must win."""

    rivals: Callable[[S], Sequence[S]]
    caution: float = 0.0


@dataclass(frozen=True)
class Select(AbstractTrainer, Generic[S]):
    """Settings are judged by ``build(setting, True)``, the quick form; the winner is trained in full."""

    first: S
    stages: Sequence[Stage[S]]
    build: Callable[[S, bool], AbstractTrainer]
    judge: Judge
    n_folds: int = 1  # 1: a holdout of a fifth

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        best = self.choose(source, impurity, run)
        return self.build(best, False).train(tree, source, impurity, run)

    def choose(self, source: ArraySource, impurity: AbstractImpurity, run: Run) -> S:
        """The best setting found, stage by stage."""
        parts = split_rows(source, self.n_folds, int(run.rng.integers(2**31)))
        seed = int(run.rng.integers(2**31))
        if not parts:  # every row has the same x: nothing to judge by
            return self.first
        best, losses = self.first, self._losses(self.first, parts, impurity, seed, run)
        for stage in self.stages:
            for rival in [each for each in stage.rivals(best) if each != best]:
                rival_losses = self._losses(rival, parts, impurity, seed, run)
                if is_better(losses - rival_losses, stage.caution):
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
            tree = trainer.train(root(rows, impurity), rows, impurity, quiet)
            found += [self.judge(tree, part) for part in rest.chunks(CHUNK)]
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
