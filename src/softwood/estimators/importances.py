"""Importances: each question's decrease of impurity, shared among the columns it looks at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


def feature_importances(
    tree: Tree,
    impurity: AbstractImpurity,
    spread: FloatArray,  # (p,) standard deviation of each column
) -> FloatArray:  # (p,)
    """Shares that add up to 1, or zeros where no question gained anything."""
    gain = decreases(tree, impurity)
    total = np.zeros(tree.n_features)
    for index, table in enumerate(tree.tables):
        nodes = np.flatnonzero(tree.table == index)
        worth = np.bincount(tree.row[nodes], gain[nodes], table.n_questions).astype(np.float64)
        total += table.importances(worth, spread)
    whole = total.sum()
    return total / whole if whole > 0 else total


def decreases(tree: Tree, impurity: AbstractImpurity) -> FloatArray:
    """(m,) how much each node's question lowers phi; 0 for leaves."""
    phi = np.asarray(impurity.phi(tree.statistics), dtype=np.float64)
    below = np.bincount(tree.topology.parent[1:], phi[1:], tree.n_nodes)
    return np.where(tree.topology.is_leaf, 0.0, np.maximum(phi - below, 0.0))
