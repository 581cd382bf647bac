"""GrowGreedy: node by node, each question the best expected-impurity cut of the rows that reach it by the hard path.

Several trainers each propose a stump; the largest hard gain wins. A node becomes a leaf only when none of them gains,
so a branch never ends early because one optimiser put everything on one side.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
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


@dataclass(eq=False)
class _Node:
    rows: npt.NDArray[np.int64]
    depth: int
    stump: Tree | None = None  # the question to ask, if any gains
    child: npt.NDArray[np.int64] | None = None  # (rows,) which child each row goes to
    gain: float = 0.0
    children: tuple[_Node, ...] = ()


@dataclass(frozen=True)
class GrowGreedy(AbstractTrainer):
    """Grow by stumps; ``stumps`` are the trainers that each propose one question."""

    stumps: Sequence[AbstractTrainer]
    max_depth: int | None = 6
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        first = self._node(np.arange(source.n), 0, source, impurity, run)
        waiting = [(self._priority(first, 0), 0, first)]
        n_leaves, born = 1, 1
        while waiting and (self.max_leaf_nodes is None or n_leaves < self.max_leaf_nodes):
            node = heapq.heappop(waiting)[2]
            if node.stump is None or node.child is None:
                continue
            sides = [node.rows[node.child == each] for each in range(node.stump.n_leaves)]
            node.children = tuple(self._node(rows, node.depth + 1, source, impurity, run) for rows in sides)
            n_leaves += len(sides) - 1
            for child in node.children:
                heapq.heappush(waiting, (self._priority(child, born), born, child))
                born += 1
        return _assembled(first, source, impurity)

    def _priority(self, node: _Node, born: int) -> float:
        """The largest gain first where leaves are rationed, else in order of birth."""
        return float(born) if self.max_leaf_nodes is None else -node.gain

    def _node(
        self, rows: npt.NDArray[np.int64], depth: int, source: ArraySource, impurity: AbstractImpurity, run: Run
    ) -> _Node:
        """A node with the stump of largest hard gain, or none."""
        node, here = _Node(rows, depth), source.take(rows)
        start = root(here, impurity)
        whole = float(impurity.phi(start.statistics[0]))
        if depth == self.max_depth or here.copies.sum() < self.min_samples_split:
            return node
        if whole <= 1e-9 * here.targets.weight.sum() and not impurity.splits_pure:
            return node
        least = max(self.min_impurity_decrease * float(source.targets.weight.sum()), 1e-9 * abs(whole))
        quiet = Run(run.rng, run.n_threads)
        for trainer in self.stumps:
            stump = trainer.train(start, here, impurity, quiet)
            gain, child = self._gain(stump, here, impurity, whole)
            if gain > max(node.gain, least):
                node.stump, node.gain, node.child = stump, gain, child
        return node

    def _gain(
        self, stump: Tree, here: ArraySource, impurity: AbstractImpurity, whole: float
    ) -> tuple[float, npt.NDArray[np.int64]]:
        """The hard gain of a stump, 0 where it may not be used, and the child each row goes to."""
        child = np.maximum(here.leaf_of(stump).astype(np.int64) - 1, 0)
        copies = np.bincount(child, here.copies, stump.n_leaves)
        if stump.n_nodes == 1 or copies.min() < max(1, self.min_samples_leaf):
            return 0.0, child
        S = here.targets.sums_by(child, stump.n_leaves)
        return whole - float(np.sum(impurity.phi(S))), child


def _assembled(first: _Node, source: ArraySource, impurity: AbstractImpurity) -> Tree:
    """One tree of many stumps in breadth-first order, its questions gathered by kind."""
    nodes = [first]
    for node in nodes:
        nodes.extend(node.children)
    groups: dict[str, list[AbstractQuestions]] = {}
    table = np.full(len(nodes), -1, dtype=np.int8)
    row = np.zeros(len(nodes), dtype=np.int32)
    for at, node in enumerate(nodes):
        if node.children and node.stump is not None:
            questions, k = node.stump.question(0)
            group = groups.setdefault(questions.kind, [])
            table[at], row[at] = list(groups).index(questions.kind), len(group)
            group.append(questions.take(np.array([k])))
    tables = tuple(type(group[0]).joined(group) for group in groups.values())
    arity = np.array([len(node.children) for node in nodes], dtype=np.int32)
    S = np.stack([source.targets.take(node.rows).total() for node in nodes])
    return Tree(Topology(arity), tables, table, row, S, np.asarray(impurity.value(S)), source.p)
