"""Refine: train all questions of a tree at once by gradient descent on the expected impurity.

Tree in, tree out. The given tree's questions become the family's scores, the topology is completed where rows are
plenty, the scores are trained in float32 on standardised columns, and the questions come back in the user's units
with their sharpness. Statistics and values of the result are the soft ones: that is deliberate (recipe.md: +0.1 to
+1.0 points although routing is hard).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit, Asked
from softwood.split.linear import Linear
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.train.engine import AbstractEngine, Adam, Memory, Theta, engine_for
from softwood.train.schedule import cosine
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
CALLS = 20  # calls of the kernel in one descent: progress is told, and batches are drawn, so often
MOST_LEAVES = 4096  # a larger tree is refined in the shape it was grown, not completed


@dataclass(frozen=True)
class Descend:
    """Mini-batch Adam with a cosine step."""

    n_steps: int = 2000
    batch_size: int = 512
    rate: float = 0.1
    decay: float = 0.1
    tolerance: float = 1e-3  # lazy sweeps skip what a row reaches with less probability; 0: never

    def run(self, theta: Theta, engine: AbstractEngine, start: npt.NDArray[np.int32], run: Run) -> Theta:
        memory = Memory.fresh(theta.size, engine.source.n)
        memory.leaf_of[:] = start
        rates = cosine(self.rate, self.n_steps)
        batches = engine.source.batches(run.rng, self.batch_size)
        adam = Adam(self.decay)
        for call in np.array_split(np.arange(self.n_steps), CALLS):
            if call.size:
                drawn = np.stack([next(batches) for _ in call])
                objective = engine.descend(theta, memory, drawn, rates[call], adam)
                run.history.extend(objective.tolist())
                run.progress(float(call[-1] + 1) / self.n_steps, float(objective[-1]))
        return theta


@dataclass(frozen=True)
class Lbfgs:
    """Full-batch L-BFGS with the decay as a ridge penalty: decay / 2 |w|^2 per row at a rate of one."""

    n_steps: int = 200
    penalty: float = 1e-4
    tol: float = 1e-6

    def run(self, theta: Theta, engine: AbstractEngine, start: npt.NDArray[np.int32], run: Run) -> Theta:
        decays = engine.split.decays(engine.topology, engine.source.p)

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            J, theta_bar = engine.evaluate(x.astype(np.float32))
            run.history.append(J)
            run.progress(min(len(run.history) / self.n_steps, 1.0), J)
            return J + 0.5 * self.penalty * float(x @ (decays * x)), theta_bar + self.penalty * decays * x

        found = minimize(
            objective,
            theta.astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.n_steps, "ftol": self.tol, "maxcor": 20},
        )
        return np.asarray(found.x, dtype=np.float32)


@dataclass(frozen=True)
class Refine(AbstractTrainer):
    """Global training from the given tree."""

    max_depth: int | None = None  # complete the tree to this depth first; None: keep its shape
    split: AbstractSplit = field(default_factory=Linear)
    optimizer: Descend | Lbfgs = field(default_factory=Descend)

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        topology, origin = completed(tree.topology, self._depth_for(tree, source))
        if topology.n_nodes == 1:
            return tree
        asked = _asked(tree, origin[topology.internal])
        theta = self.split.soften(asked, source.units, run.rng).astype(np.float32)
        engine = engine_for(source, topology, self.split, impurity, getattr(self.optimizer, "tolerance", 0.0))
        theta = self.optimizer.run(theta, engine, _start_leaves(topology, source), run)
        return soft_tree(theta, engine)

    def _depth_for(self, tree: Tree, source: ArraySource) -> int:
        """The depth to complete to; the tree's own shape where leaves would outnumber rows."""
        depth = self.max_depth or 0
        return depth if self.split.arity**depth <= min(source.n, MOST_LEAVES) else 0


def completed(topology: Topology, depth: int) -> tuple[Topology, npt.NDArray[np.int64]]:
    """The topology with every leaf above ``depth`` cut in two, and each node's number in the old one (or -1)."""
    arity, origins = [], []
    level = np.zeros(1, dtype=np.int64)
    at = 0
    while level.size:
        old = np.where(level >= 0, topology.arity[np.maximum(level, 0)], 0)
        here = np.where((old == 0) & (at < depth), 2, old)
        arity.append(here)
        origins.append(level)
        first = np.where(old > 0, topology.first_child[np.maximum(level, 0)], -1)
        rank = np.arange(here.sum()) - np.repeat(np.cumsum(here) - here, here)
        base = np.repeat(first, here)
        level = np.where(base >= 0, base + rank, -1)
        at += 1
    return Topology(np.concatenate(arity).astype(np.int32)), np.concatenate(origins)


def soft_tree(theta: Theta, engine: AbstractEngine) -> Tree:
    """A tree of the trained questions, its statistics and values those of the soft sums."""
    topology, source = engine.topology, engine.source
    S = np.zeros((topology.n_nodes, source.targets.d))
    S[topology.leaves] = engine.leaf_sums(theta)
    for node in topology.internal[::-1]:
        first = topology.first_child[node]
        S[node] = S[first : first + topology.arity[node]].sum(axis=0)
    questions = engine.split.questions(theta.astype(np.float64), topology, source.units)
    values = np.asarray(engine.impurity.value(S))
    return Tree.of_one_kind(topology, questions, S, values, source.p)


def _asked(tree: Tree, origin: npt.NDArray[np.int64]) -> Asked:
    known = np.maximum(origin, 0)
    table = np.where(origin >= 0, tree.table[known], -1).astype(np.int8)
    return Asked(tree.tables, table, np.where(table >= 0, tree.row[known], 0).astype(np.int32))


def _start_leaves(topology: Topology, source: ArraySource) -> npt.NDArray[np.int32]:
    """Where rows are before the first step: unknown, so all in the first leaf."""
    return np.zeros(source.n, dtype=np.int32)
