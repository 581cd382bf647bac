"""Sampled paths: each row walks down the tree by chance, and only what it passes is computed: O(depth) per row.

With the statistics of the nodes held fixed, the estimate of one row

    sum over the nodes k of its path of  (cost(leaf) - cost(k)) * d log P(side taken at k) / d theta

is unbiased. ``cost(leaf) * grad log p(leaf)`` alone would be too (weighting by ``grad p`` would not); what the row
costs under the constant of node k is taken off because it lowers the variance, and may be, because a baseline that
depends on the row and the node but not on what is drawn there has expectation 0. Binary trees; arrays of any library.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softwood._namespace import Array, array_namespace, as_indices
from softwood.split.base import AbstractSplit
from softwood.topology import Topology


@dataclass(frozen=True, eq=False)
class Paths:
    """One walk per row, a level at a time; -1 where a walk has ended."""

    node: Array  # (depth + 1, n) the node that is passed
    question: Array  # (depth, n) its number among the internal nodes; 0 where the walk has ended
    pull: Array  # (depth, n) d log P / d score of the side taken; 0 where the walk has ended
    leaf: Array  # (n,)


def draw_paths(
    theta: Array,  # (q,)
    X: Array,  # (n, p)
    topology: Topology,
    split: AbstractSplit,
    U: Array,  # (n, depth) uniform in [0, 1)
) -> Paths:
    """Walk to child 1 where the uniform number is below its probability."""
    xp = array_namespace(X)
    rank = as_indices(np.maximum(np.cumsum(~topology.is_leaf) - 1, 0), X)
    first, is_leaf = as_indices(topology.first_child, X), xp.asarray(np.array(topology.is_leaf), device=X.device)
    node = as_indices(np.zeros(X.shape[0], dtype=np.int64), X)
    gone = node < 0
    nodes, questions, pulls = [node], [], []
    for level in range(topology.depth):
        ends = xp.take(is_leaf, node, axis=0)
        question = xp.where(ends, xp.zeros_like(node), xp.take(rank, node, axis=0))
        P = 0.5 + 0.5 * xp.tanh(0.5 * split.scores_at(theta, X, topology, question))
        right = U[:, level] < P
        pulls.append(xp.where(ends, xp.zeros_like(P), xp.where(right, 1.0 - P, -P)))
        child = xp.take(first, node, axis=0) + xp.where(right, xp.ones_like(node), xp.zeros_like(node))
        gone, node = ends, xp.where(ends, node, child)
        nodes.append(xp.where(gone, -xp.ones_like(node), node))
        questions.append(question)
    if not questions:
        return Paths(xp.stack(nodes), node[None][:0], U.T[:0], node)
    return Paths(xp.stack(nodes), xp.stack(questions), xp.stack(pulls), node)


def path_gradient(
    theta: Array,  # (q,)
    X: Array,  # (n, p)
    s: Array,  # (n, d)
    topology: Topology,
    split: AbstractSplit,
    paths: Paths,
    slope: Array,  # (m, d) of every node
) -> Array:  # (q,)
    """The estimates of all rows, summed."""
    xp = array_namespace(X)
    cost = xp.sum(s * xp.take(slope, paths.leaf, axis=0), axis=-1)
    theta_bar = xp.zeros_like(theta)
    for node, question, pull in zip(paths.node[:-1, :], paths.question, paths.pull, strict=True):
        here = xp.take(slope, xp.where(node < 0, paths.leaf, node), axis=0)
        Z_bar = (cost - xp.sum(s * here, axis=-1)) * pull
        theta_bar = theta_bar + split.scores_at_vjp(theta, X, topology, question, Z_bar)
    return theta_bar
