"""GrowCentroids: a place to start from for questions with many answers.

Top down, CART parts a node's rows into as many groups as the node has children, and each child takes the rows that are
nearest to the center of its group. Where CART finds fewer groups, rows drawn at random stand in for the centers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.question import Layers, Networks
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run, root
from softwood.train.grow_hard import GrowHard
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
MOST_LEAVES = 4096
SHARPNESS = 2.0  # standard deviation of the scores: the gates start neither flat nor shut


@dataclass(frozen=True)
class GrowCentroids(AbstractTrainer):
    """A complete tree of the given depth whose nodes have ``n_children`` children."""

    max_depth: int
    n_children: int

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        depth = min(self.max_depth, int(np.log(min(source.n, MOST_LEAVES)) / np.log(self.n_children) + 1e-9))
        topology = Topology.complete(depth, self.n_children)
        members, networks = [np.arange(source.n)], []
        for node in topology.internal:
            rows = members[node]
            centers = self._centers(rows, source, impurity, run)
            child, layer = _nearest(source.Z[rows], centers)
            networks.append(_in_units(layer, source))
            members += [rows[child == each] for each in range(self.n_children)]
        s = source.targets.dense()
        S = np.stack([s[rows].sum(axis=0) for rows in members])
        tables = [Networks.of_layers(networks)] if networks else []
        return Tree.of_tables(topology, tables, S, np.asarray(impurity.value(S)), source.p)

    def _centers(
        self, rows: npt.NDArray[np.int64], source: ArraySource, impurity: AbstractImpurity, run: Run
    ) -> FloatArray:
        """(children, p) one center per child, in standard units."""
        centers = run.rng.normal(size=(self.n_children, source.p))
        if rows.size < 2:
            return centers
        here = source.take(rows)
        grown = GrowHard(max_leaf_nodes=self.n_children).train(root(here, impurity), here, impurity, Run(run.rng))
        leaf, w = here.leaf_of(grown), here.targets.weight
        for child, group in enumerate(np.unique(leaf)):
            inside = leaf == group
            centers[child] = w[inside] @ source.Z[rows[inside]] / w[inside].sum()
        return centers


def _nearest(Z: npt.NDArray[np.float32], centers: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The child each row takes, and the layer (children, p + 1) that scores them."""
    layer = np.concatenate([centers, -0.5 * (centers**2).sum(axis=1, keepdims=True)], axis=1)
    layer -= layer.mean(axis=0)
    scores = Z @ layer[:, :-1].T + layer[:, -1]
    spread = float(scores.std()) if len(Z) else 0.0
    return scores.argmax(axis=1), layer * (SHARPNESS / spread if spread > 1e-12 else 1.0)


def _in_units(layer: FloatArray, source: ArraySource) -> Layers:
    """The layer on the user's columns."""
    weights = layer[:, :-1] * source.units.per_scale
    offset = layer[:, -1] - weights @ source.units.center
    if len(layer) == 2:  # two children have one score
        weights, offset = weights[1:] - weights[:1], offset[1:] - offset[:1]
    return "identity", [np.concatenate([weights, offset[:, None]], axis=1)]
