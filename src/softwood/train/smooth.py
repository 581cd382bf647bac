"""Hierarchical smoothing: what a node says beyond its parent counts the less, the fewer rows the parent has.

    v(root)' = v(root)
    v(node)' = v(parent)' + (v(node) - v(parent)) / (1 + smoothing / weight(parent))

0 leaves the tree as it is; the larger, the closer every node is to the root's value. Rows' weights count, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.train.harden import taken_by
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Smooth(AbstractTrainer):
    """Shrink the values of all nodes toward their ancestors'."""

    smoothing: float = 0.0

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        if self.smoothing <= 0:
            return tree
        weight = taken_by(tree, source)[:, 1]
        return tree.with_values(tree.statistics, smoothed(tree.values, weight, tree.topology, self.smoothing))


def smoothed(
    values: FloatArray,  # (m, v)
    weight: FloatArray,  # (m,)
    topology: Topology,
    smoothing: float,
) -> FloatArray:  # (m, v)
    """The values after smoothing; nothing is learned below a node without weight."""
    kept = np.divide(weight, weight + smoothing, out=np.zeros_like(weight), where=weight > 0)[:, None]
    result = values.copy()
    for level in topology.levels[1:]:
        parent = topology.parent[level]
        result[level] = result[parent] + kept[parent] * (values[level] - values[parent])
    return result
