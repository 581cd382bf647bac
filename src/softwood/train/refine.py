"""Refine: train all questions of a tree at once by gradient descent on the expected impurity.

Tree in, tree out. The given tree's questions become the family's scores, the topology is completed where rows are
plenty, the scores are trained in float32 on standardised columns, and the questions come back in the user's units
with their sharpness. Statistics and values of the result are the soft ones: that is deliberate (recipe.md: +0.1 to
+1.0 points although routing is hard).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, minimize

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
MakesEngine = Callable[[ArraySource, Topology, AbstractSplit, AbstractImpurity, float], AbstractEngine]
CALLS = 20  # calls of the kernel in one descent: progress is told, batches drawn, validation watched, so often
DRAWN = 2**22  # row numbers drawn for one call at most, save for a batch that is larger
MOST_LEAVES = 4096  # a larger tree is refined in the shape it was grown, not completed


@dataclass(frozen=True)
class Watch:
    """Early stopping: a part of the rows is held out and looked at CALLS times in a descent."""

    fraction: float = 0.1
    patience: int = 10  # looks without a gain above tol before stopping
    tol: float = 1e-4


@dataclass(eq=False)
class Lookout:
    """One descent's watch: the expected loss of held-out rows, and the best theta seen."""

    watch: Watch
    engine: AbstractEngine  # of the rows trained on
    held_out: AbstractEngine
    best: float = np.inf
    waited: int = 0
    theta: Theta | None = None

    def stop(self, theta: Theta) -> bool:
        slope = np.asarray(self.engine.impurity.slope(self.engine.leaf_sums(theta)))
        weight = float(self.held_out.source.targets.weight.sum())
        loss = float(np.sum(slope * self.held_out.leaf_sums(theta))) / weight
        self.waited = 0 if loss < self.best - self.watch.tol else self.waited + 1
        if loss < self.best:
            self.best, self.theta = loss, theta.copy()
        return self.waited >= self.watch.patience


@dataclass(frozen=True)
class Descend:
    """Mini-batch Adam with a cosine step."""

    n_steps: int = 2000
    batch_size: int = 512
    rate: float = 0.1
    decay: float = 0.1
    tolerance: float = 1e-3  # lazy sweeps skip what a row reaches with less probability; 0: never
    engine: MakesEngine = engine_for  # exact gradients, or Sampled

    def run(self, theta: Theta, engine: AbstractEngine, lookout: Lookout | None, run: Run) -> None:
        """Train theta in place."""
        seed = int(run.rng.spawn(1)[0].integers(2**63))  # of a generator's own: exact steps draw nothing
        memory = Memory.fresh(theta.size, engine.source.n, seed)
        rates = cosine(self.rate, self.n_steps)
        batches = engine.source.batches(run.rng, self.batch_size)
        adam = Adam(self.decay)
        n_calls = max(CALLS, -(-self.n_steps * batches.size // DRAWN))
        for call in filter(len, np.array_split(np.arange(self.n_steps), n_calls)):
            objective = engine.descend(theta, memory, batches.draw(len(call)), rates[call], adam)
            run.history.extend(objective.tolist())
            run.progress(float(call[-1] + 1) / self.n_steps, float(objective[-1]))
            if lookout is not None and lookout.stop(theta):
                break


@dataclass(frozen=True)
class Lbfgs:
    """Full-batch L-BFGS with a ridge penalty / 2 |w|^2 per unit of weight."""

    n_steps: int = 200
    penalty: float = 1e-3
    tol: float = 1e-6
    tolerance: float = 0.0
    engine: MakesEngine = engine_for

    def run(self, theta: Theta, engine: AbstractEngine, lookout: Lookout | None, run: Run) -> None:
        """Train theta in place."""
        decays = engine.split.decays(engine.topology, engine.source.p)
        if self.n_steps == 0:
            return

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            J, theta_bar = engine.evaluate(x.astype(np.float32))
            return J + 0.5 * self.penalty * float(x @ (decays * x)), theta_bar + self.penalty * decays * x

        def after_step(intermediate_result: OptimizeResult) -> None:
            theta[:] = intermediate_result.x
            run.history.append(float(intermediate_result.fun))
            run.progress(min(len(run.history) / self.n_steps, 1.0), run.history[-1])
            if lookout is not None and lookout.stop(theta):
                raise StopIteration

        minimize(
            objective,
            theta.astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            options={"maxiter": self.n_steps, "ftol": self.tol, "maxcor": 20},
        )


@dataclass(frozen=True)
class Refine(AbstractTrainer):
    """Global training from the given tree."""

    max_depth: int | None = None  # complete the tree to this depth first; None: keep its shape
    split: AbstractSplit = field(default_factory=Linear)
    optimizer: Descend | Lbfgs = field(default_factory=Descend)
    watch: Watch | None = None  # early stopping

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        topology, origin = completed(tree.topology, self._depth_for(source))
        if topology.n_nodes == 1:
            return tree
        rows, held_out = source, None
        if self.watch is not None:
            held_out, rows = source.parted(self.watch.fraction, int(run.rng.integers(2**31)))
        theta = self.split.soften(asked_of(tree, origin[topology.internal]), source.units, run.rng).astype(np.float32)
        engine = self._engine(rows, topology, impurity)
        lookout = None
        if self.watch is not None and held_out is not None and held_out.n > 0:
            lookout = Lookout(self.watch, engine, self._engine(held_out, topology, impurity))
        self.optimizer.run(theta, engine, lookout, run)
        if lookout is not None and lookout.theta is not None:
            theta = lookout.theta
        return soft_tree(theta, self._engine(source, topology, impurity))

    def _engine(self, source: ArraySource, topology: Topology, impurity: AbstractImpurity) -> AbstractEngine:
        optimizer = self.optimizer
        return optimizer.engine(source, topology, self.split, impurity, optimizer.tolerance)

    def _depth_for(self, source: ArraySource) -> int:
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


def asked_of(tree: Tree, origin: npt.NDArray[np.int64]) -> Asked:
    """The questions of some nodes of a tree, -1 where there is no node yet."""
    known = np.maximum(origin, 0)
    table = np.where(origin >= 0, tree.table[known], -1).astype(np.int8)
    return Asked(tree.tables, table, np.where(table >= 0, tree.row[known], 0).astype(np.int32))
