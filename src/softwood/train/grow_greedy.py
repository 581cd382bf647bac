"""GrowGreedy: node by node, each question the best expected-impurity cut of the rows that reach it by the hard path.

A node tries a refined stump from the best axis cut, then one from a projected start, and the axis cut itself; the
largest hard gain wins. It becomes a leaf only when none of them gains, so a branch never ends early because an
optimiser put everything on one side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.question import AbstractQuestions
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run, root
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GrowGreedy(AbstractTrainer):
    """Grow by stumps; ``stumps`` are the trainers that each propose one question."""

    stumps: Sequence[AbstractTrainer]
    max_depth: int | None = 6
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        members, depths = [np.arange(source.n)], [0]
        asked: list[Tree | None] = []
        quiet = Run(run.rng, run.n_threads)
        for at in _growing(members):
            best = self._question(source.take(members[at]), impurity, depths[at], source, quiet)
            asked.append(best)
            if best is not None:
                right = source.take(members[at]).leaf_of(best) == 2
                members += [members[at][~right], members[at][right]]
                depths += [depths[at] + 1] * 2
        S = np.stack([source.targets.take(rows).total() for rows in members])
        return _assembled(asked, S, np.asarray(impurity.value(S)), source.p)

    def _question(
        self, here: ArraySource, impurity: AbstractImpurity, depth: int, source: ArraySource, run: Run
    ) -> Tree | None:
        """The stump with the largest hard gain, or None for a leaf."""
        start = root(here, impurity)
        whole = float(impurity.phi(start.statistics[0]))
        if depth == self.max_depth or here.copies.sum() < self.min_samples_split:
            return None
        if whole <= 1e-9 * here.targets.weight.sum() and not impurity.splits_pure:
            return None
        least = max(self.min_impurity_decrease * float(source.targets.weight.sum()), 1e-9 * abs(whole))
        best, most = None, least
        for trainer in self.stumps:
            stump = trainer.train(start, here, impurity, run)
            if stump.n_nodes != 3:
                continue
            right = here.leaf_of(stump) == 2
            copies = here.copies[right].sum()
            if min(copies, here.copies.sum() - copies) < self.min_samples_leaf:
                continue
            S = np.stack([here.targets.take(side).total() for side in (~right, right)])
            gain = whole - float(np.sum(impurity.phi(S)))
            if gain > most:
                best, most = stump, gain
        return best


def _growing(members: list[npt.NDArray[np.int64]]) -> Iterator[int]:
    """Node numbers of a list that grows while it is walked."""
    at = 0
    while at < len(members):
        yield at
        at += 1


def _assembled(asked: Sequence[Tree | None], S: FloatArray, values: FloatArray, n_features: int) -> Tree:
    """One tree of many stumps, its tables gathered by kind."""
    stumps = [stump for stump in asked if stump is not None]
    kinds = sorted({stump.question(0)[0].kind for stump in stumps})
    groups: dict[str, list[AbstractQuestions]] = {kind: [] for kind in kinds}
    table = np.full(len(asked), -1, dtype=np.int8)
    row = np.zeros(len(asked), dtype=np.int32)
    for node, stump in enumerate(asked):
        if stump is not None:
            questions, k = stump.question(0)
            table[node], row[node] = kinds.index(questions.kind), len(groups[questions.kind])
            groups[questions.kind].append(questions.take(np.array([k])))
    tables = tuple(type(group[0]).joined(group) for group in groups.values())
    arity = np.array([0 if stump is None else 2 for stump in asked], dtype=np.int32)
    return Tree(Topology(arity), tables, table, row, S, values, n_features)
