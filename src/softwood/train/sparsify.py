"""Sparsify: slanted questions about few columns, by pruning weights while they are trained.

The weights of each question are cut down stage by stage to its largest ones, with steps in between in which the rest
take over; in the last stage the gates grow sharper, so that the soft tree ends near the hard one. The kernel knows no
mask: what is pruned is set back to 0 every few steps, and is exactly 0 at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.linear import Linear
from softwood.train.base import AbstractTrainer, Run
from softwood.train.engine import AbstractEngine, Adam, Memory, Theta, engine_for
from softwood.train.refine import asked_of, soft_tree
from softwood.train.schedule import cosine
from softwood.tree import Tree

COUNTS = (8, 5, 3, 2)  # columns left after a half and a quarter of all
EVERY = 5  # steps between two times that pruned weights are set to 0
SHARPNESS = 4.0  # of the gates at the end


@dataclass(frozen=True)
class Sparsify(AbstractTrainer):
    """Train on with fewer and fewer columns in each question, in the end at most ``most``."""

    most: int
    n_steps: int = 300  # of each stage
    batch_size: int = 512
    rate: float = 0.1
    decay: float = 0.1

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        topology, split = tree.topology, Linear()
        if topology.n_nodes == 1:
            return tree
        theta = split.soften(asked_of(tree, topology.internal, topology), source.units, run.rng).astype(np.float32)
        engine = engine_for(source, topology, split, impurity, 0.0)
        for count in stages(source.p, self.most):
            mask = largest(theta.reshape(-1, source.p + 1), count)
            self._descend(theta, mask, engine, SHARPNESS if count == self.most else 1.0, run)
        return soft_tree(theta, engine)

    def _descend(self, theta: Theta, mask: Theta, engine: AbstractEngine, sharpness: float, run: Run) -> None:
        """One stage: theta is trained in place and ends with zeros where the mask has them."""
        memory, adam = Memory.fresh(theta.size, engine.source.n), Adam(self.decay)
        batches, rates = engine.source.batches(run.rng, self.batch_size), cosine(self.rate, self.n_steps)
        theta *= mask
        n_calls = -(-self.n_steps // EVERY)
        for call in np.array_split(np.arange(self.n_steps), n_calls):
            J = engine.descend(theta, memory, batches.draw(len(call)), rates[call], adam)
            run.history.extend(J.tolist())
            theta *= mask * np.float32(sharpness ** (1 / n_calls))
            memory.mean *= mask


def stages(p: int, most: int) -> list[int]:
    """How many columns are left after each stage, down to ``most``."""
    counts = [count for count in (p // 2, p // 4, *COUNTS) if most < count < p]
    return [*sorted(set(counts), reverse=True), most]


def largest(table: Theta, count: int) -> npt.NDArray[np.float32]:
    """(q,) 1 at the ``count`` largest weights of each question and at its offset, 0 elsewhere."""
    mask = np.zeros_like(table)
    mask[:, -1] = 1
    order = np.argsort(-np.abs(table[:, :-1]), axis=1, kind="stable")[:, :count]
    np.put_along_axis(mask, order, 1, axis=1)
    return mask.ravel()
