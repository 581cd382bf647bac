"""Evolve: grow and prune while refining, with all that the optimiser remembers carried along.

The first half of the steps is cut into as many parts as the tree may have levels. After each, branches that are pure,
useless or empty go, and leaves that are still impure and heavy ask a question, the best cut of their rows; questions
that stay keep their parameters and their memory bit for bit. No cut raises the expected impurity, because phi is
superadditive (a prior in the leaves, as of Newton pairs, may). The second half of the steps trains what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit, Asked
from softwood.split.linear import Linear
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run, root
from softwood.train.engine import AbstractEngine, Adam, Memory, Theta
from softwood.train.grow_hard import GrowHard
from softwood.train.harden import expected_rows
from softwood.train.refine import Descend, asked_of, completed, soft_tree
from softwood.train.schedule import cosine
from softwood.tree import Tree

IntArray = npt.NDArray[np.int64]


@dataclass(eq=False)
class Stage:
    """A shape, its parameters and the optimiser's memory of them."""

    topology: Topology
    theta: Theta
    memory: Memory

    def carried(self, topology: Topology, origin: IntArray, fresh: Theta) -> Stage:
        """The stage of another shape: questions with an origin as they are here, the others from ``fresh``."""
        rank = np.cumsum(~self.topology.is_leaf) - 1
        was = origin[topology.internal]
        stays = (was >= 0) & ~self.topology.is_leaf[np.maximum(was, 0)]
        old = rank[was[stays]]
        new = [_blocks(fresh, topology), *(np.zeros_like(_blocks(fresh, topology)) for _ in range(2))]
        for to, here in zip(new, (self.theta, self.memory.mean, self.memory.square), strict=True):
            to[stays] = _blocks(here, self.topology)[old]
        theta, mean, square = (each.ravel() for each in new)
        leaf_of = np.zeros_like(self.memory.leaf_of)
        return Stage(topology, theta, replace(self.memory, mean=mean, square=square, leaf_of=leaf_of))


@dataclass(frozen=True)
class Evolve(AbstractTrainer):
    """Refine from the given tree, whose shape may change on the way."""

    max_depth: int = 6
    split: AbstractSplit = field(default_factory=Linear)
    optimizer: Descend = field(default_factory=Descend)
    impure: float = 1e-3  # of the root's impurity, above which a leaf asks
    heavy: float = 0.002  # of all weight, from which on a leaf asks
    useless: float = 1e-4  # of the root's impurity, below which a branch goes that gains no more
    least_expected: float = 0.5  # rows below which a branch is empty

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        stage = self.begun(tree, source, run)
        steps, rates = np.arange(self.optimizer.n_steps), cosine(self.optimizer.rate, self.optimizer.n_steps)
        batches = source.batches(run.rng, self.optimizer.batch_size)
        half = self.optimizer.n_steps // 2
        parts = [*np.array_split(steps[:half], max(self.max_depth, 1)), steps[half:]]
        for number, part in enumerate(parts):
            engine = self.engine(stage, source, impurity)
            if part.size:
                objective = engine.descend(
                    stage.theta, stage.memory, batches.draw(part.size), rates[part], Adam(self.optimizer.decay)
                )
                run.history.extend(objective.tolist())
                run.progress(float(part[-1] + 1) / steps.size, float(objective[-1]))
            if number < len(parts) - 1:
                stage = self.changed(stage, engine, run)
        return soft_tree(stage.theta, self.engine(stage, source, impurity))

    def begun(self, tree: Tree, source: ArraySource, run: Run) -> Stage:
        """The given tree, with one question at least."""
        topology, origin = completed(tree.topology, 1)
        asked = asked_of(tree, origin[topology.internal])
        theta = self.split.soften(asked, source.units, run.rng).astype(np.float32)
        seed = int(run.rng.spawn(1)[0].integers(2**63))
        return Stage(topology, theta, Memory.fresh(theta.size, source.n, seed))

    def engine(self, stage: Stage, source: ArraySource, impurity: AbstractImpurity) -> AbstractEngine:
        return self.optimizer.engine(source, stage.topology, self.split, impurity, self.optimizer.tolerance)

    def changed(self, stage: Stage, engine: AbstractEngine, run: Run) -> Stage:
        """The stage without the branches that may go, and with questions at the leaves that should ask."""
        soft = soft_tree(stage.theta, engine)
        collapse, stand_in = self._going(soft, engine)
        nodes, arity = soft.remaining(collapse, stand_in)
        if arity[0] == 0:
            return stage  # nothing would be left to train
        kept = soft.keep(collapse, stand_in)
        stage = stage.carried(kept.topology, nodes, np.zeros(_width(stage) * kept.topology.internal.size, np.float32))
        return self._grown(stage, kept, engine, run)

    def _going(self, soft: Tree, engine: AbstractEngine) -> tuple[npt.NDArray[np.bool_], IntArray]:
        """Which nodes become leaves, and which give their place to the child that takes nearly all rows."""
        phi = np.asarray(engine.impurity.phi(soft.statistics), dtype=np.float64)
        below = np.where(soft.topology.is_leaf, phi, 0.0)
        for node in range(soft.n_nodes - 1, 0, -1):
            below[soft.topology.parent[node]] += below[node]
        collapse = ~soft.topology.is_leaf & (phi - below <= self.useless * abs(phi[0]))
        expected = expected_rows(soft, engine.source)
        stand_in = np.full(soft.n_nodes, -1, dtype=np.int64)
        for node in soft.topology.internal:
            first = int(soft.topology.first_child[node])
            rows = expected[first : first + int(soft.topology.arity[node])]
            if rows.min() < self.least_expected:
                stand_in[node] = first + int(rows.argmax())
        return collapse, stand_in

    def _grown(self, stage: Stage, kept: Tree, engine: AbstractEngine, run: Run) -> Stage:
        source = engine.source
        leaf = source.leaf_of(kept)
        stumps: dict[int, Tree] = {}
        for node in self._asking(kept, leaf, engine):
            rows = source.take(np.flatnonzero(leaf == node))
            quiet = Run(run.rng, run.n_threads)
            stump = GrowHard(1).train(root(rows, engine.impurity), rows, engine.impurity, quiet)
            if stump.n_nodes > 1:
                stumps[node] = stump
        topology, origin = with_questions(kept.topology, list(stumps))
        tables = [stump.tables[0] for stump in stumps.values()]
        which = np.array([[*stumps].index(node) if node in stumps else -1 for node in origin[topology.internal]])
        asked = Asked(tables, which.astype(np.int8), np.zeros(which.size, dtype=np.int32))
        fresh = self.split.soften(asked, source.units, run.rng).astype(np.float32)
        return stage.carried(topology, origin, fresh)

    def _asking(self, kept: Tree, leaf: npt.NDArray[np.int32], engine: AbstractEngine) -> list[int]:
        """The leaves that are impure, heavy and not too deep, most impure first; int8 numbers their tables."""
        phi = np.asarray(engine.impurity.phi(kept.statistics), dtype=np.float64)
        weight = engine.source.targets.weight
        is_heavy = np.bincount(leaf, weight, kept.n_nodes) >= self.heavy * weight.sum()
        is_impure = (phi > self.impure * abs(phi[0])) | engine.impurity.splits_pure
        may_ask = kept.topology.is_leaf & (kept.topology.level_of < self.max_depth) & is_heavy & is_impure
        found = np.flatnonzero(may_ask)
        return [int(node) for node in found[np.argsort(-phi[found], kind="stable")][: np.iinfo(np.int8).max]]


def with_questions(topology: Topology, leaves: list[int]) -> tuple[Topology, IntArray]:
    """The topology with two children at some leaves, and each node's number in the old one (or -1)."""
    asks = np.zeros(topology.n_nodes, dtype=bool)
    asks[leaves] = True
    arity: list[int] = []
    origin = [0]
    for node in origin:  # grows while it is walked
        old = int(topology.arity[node]) if node >= 0 else 0
        is_new = node >= 0 and bool(asks[node])
        arity.append(2 if is_new else old)
        first = int(topology.first_child[node]) if old else 0
        origin.extend([-1, -1] if is_new else range(first, first + old))
    return Topology(np.array(arity, dtype=np.int32)), np.array(origin)


def _width(stage: Stage) -> int:
    return stage.theta.size // stage.topology.internal.size


def _blocks(flat: Theta, topology: Topology) -> Theta:
    """(questions, parameters of one): families whose questions share parameters cannot change their shape."""
    if flat.size % topology.internal.size:
        raise ValueError(
            "Growing while refining needs as many parameters for each question; "
            f"got {flat.size} for {topology.internal.size} questions. Use training='global'."
        )
    return flat.reshape(topology.internal.size, -1).copy()
