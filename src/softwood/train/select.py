"""Select: choose among settings by folds inside the training rows, then train the winner on all of them.

Coordinate-wise: each stage offers rivals to the best setting so far, all judged on the same held-out rows by the mean
of their hard and soft answers, which halves the noise. Where rivals are many they race: the first folds judge all of
them, the rest only the few that did best. The best rival wins only by more than its stage's caution, in standard errors
of the row-by-row difference: a simpler tree need only be no worse, another start must be better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer, Run, root
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
CHUNK = 4096  # rows judged at once
KEPT = 3  # rivals of a stage that all folds judge
S = TypeVar("S", bound=Hashable)
Judge = Callable[[Tree, ArraySource], FloatArray]  # (n,) the loss of each row, times its weight


@dataclass(frozen=True)
class Stage(Generic[S]):
    """Alternatives to a setting, and by how many standard errors one must win."""

    rivals: Callable[[S], Sequence[S]]
    caution: float = 0.0


@dataclass(frozen=True)
class Folds:
    """How many parts of the rows judge in turn, and how many of them judge every rival."""

    count: int = 1  # 1: a holdout of a fifth
    first: int = 1


@dataclass(frozen=True)
class Select(AbstractTrainer, Generic[S]):
    """Settings are judged by ``build(setting, True)``, the quick form; the winner is trained in full."""

    first: S
    stages: Sequence[Stage[S]]
    build: Callable[[S, bool], AbstractTrainer]
    judge: Judge
    folds: Folds = field(default_factory=Folds)

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        best = self.choose(source, impurity, run)
        return self.build(best, False).train(tree, source, impurity, run)

    def choose(self, source: ArraySource, impurity: AbstractImpurity, run: Run) -> S:
        """The best setting found, stage by stage."""
        parts = split_rows(source, self.folds.count, int(run.rng.integers(2**31)))
        trials = _Trials(self, parts, impurity, int(run.rng.integers(2**31)), run.n_threads)
        best = self.first
        for stage in self.stages if parts else ():  # no parts, every row has the same x: nothing to judge by
            rivals = [each for each in stage.rivals(best) if each != best]
            if len(rivals) > KEPT:
                rivals = sorted(rivals, key=lambda each: trials.losses(each, self.folds.first).sum())[:KEPT]
            rival = min(rivals, key=lambda each: trials.losses(each).sum(), default=best)
            if is_better(trials.losses(best) - trials.losses(rival), stage.caution):
                best = rival
        return best


class _Trials(Generic[S]):
    """What settings lose on each part of the rows, found once."""

    def __init__(
        self,
        select: Select[S],
        parts: Sequence[tuple[ArraySource, ArraySource]],
        impurity: AbstractImpurity,
        seed: int,
        n_threads: int,
    ) -> None:
        self.select, self.parts, self.impurity = select, parts, impurity
        self.seed, self.n_threads = seed, n_threads
        self.found: dict[S, list[FloatArray]] = {}

    def losses(self, setting: S, n_parts: int | None = None) -> FloatArray:
        """The loss of each row of the first parts."""
        wanted = len(self.parts) if n_parts is None else min(n_parts, len(self.parts))
        found = self.found.setdefault(setting, [])
        found += [self._losses(setting, *part) for part in self.parts[len(found) : wanted]]
        return np.concatenate(found[:wanted])

    def _losses(self, setting: S, rows: ArraySource, rest: ArraySource) -> FloatArray:
        quiet = Run(np.random.default_rng(self.seed), self.n_threads)
        trainer = self.select.build(setting, True)
        tree = trainer.train(root(rows, self.impurity), rows, self.impurity, quiet)
        return np.concatenate([self.select.judge(tree, part) for part in rest.chunks(CHUNK)])


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


def class_losses(tree: Tree, source: ArraySource) -> FloatArray:
    """The weight answered with another class than its own, and the Brier score; s are class weights.

    Misses are what is asked for, but a few hundred rows can hardly count them; the Brier score knows by how much.
    """
    s = source.targets.dense()
    rows, w = np.arange(len(s)), s.sum(axis=1)
    losses = []
    for q in _answers(tree, source):
        misses = w - s[rows, q.argmax(axis=1)]
        brier = (s * s).sum(axis=1) / w - 2 * (s * q).sum(axis=1) + w * (q * q).sum(axis=1)
        losses.append(misses + brier)
    return np.asarray(np.mean(losses, axis=0))


def number_losses(tree: Tree, source: ArraySource) -> FloatArray:
    """Squared errors; s are moments (w, w y, w y^2)."""
    w, wy, wyy = source.targets.dense().T
    return np.asarray(np.mean([w * v[:, 0] ** 2 - 2 * wy * v[:, 0] + wyy for v in _answers(tree, source)], axis=0))


def own_losses(tree: Tree, source: ArraySource, impurity: AbstractImpurity) -> FloatArray:
    """The loss that the impurity itself stands for."""
    s = source.targets.dense()
    return np.asarray(np.mean([impurity.loss(s, v) for v in _answers(tree, source)], axis=0))


def _answers(tree: Tree, source: ArraySource) -> tuple[FloatArray, FloatArray]:
    """The hard and the soft answer to each row."""
    X = source.X[source.order]
    return tree.answers_at(tree.apply(X), X), tree.soft_answers(X)
