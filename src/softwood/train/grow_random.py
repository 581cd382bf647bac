"""GrowRandom: questions drawn from the split family without a look at the targets; the plainest place to start from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.split.base import AbstractSplit
from softwood.split.linear import Linear
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.train.given import Given
from softwood.tree import Tree

MOST_LEAVES = 4096


@dataclass(frozen=True)
class GrowRandom(AbstractTrainer):
    """A complete tree of the given depth, or of fewer levels where leaves would outnumber rows."""

    max_depth: int
    split: AbstractSplit = field(default_factory=Linear)

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        split = self.split.prepared(source.Z, source.units, run.rng)
        arity = split.arity
        depth = min(self.max_depth, int(np.log(min(source.n, MOST_LEAVES)) / np.log(arity) + 1e-9))
        topology = Topology.complete(depth, arity)
        theta = split.random(topology, source.p, run.rng)
        tables = split.tables(theta, topology, source.units)
        nothing = np.zeros((topology.n_nodes, 1))
        drawn = Tree.of_tables(topology, tables, nothing, nothing, source.p)
        return Given(drawn).train(tree, source, impurity, run)
