"""The expected impurity and its exact gradient: the page where impurity, split and tree meet.

    P     = gates of the scores Z                  probability of each child at its parent     (n, m), root 1
    reach = product of P down the path             one sweep down                              (n, m)
    S     = reach^T s                              statistics of each leaf                     (leaves, d)
    J     = sum over leaves of phi(S)
    A     = s . slope(S) at leaves, sum_c P_c A_c above      one sweep up                      (n, m)
    dJ/dP_c = reach_parent(c) * A_c

O(n m) and no product rule: going up, A_k is the expected cost of standing at node k. Arrays of any library; a Python
loop over levels, never over nodes. All internal nodes of one level have the same number of children.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace, as_indices
from softwood.impurity import AbstractImpurity
from softwood.split.base import AbstractSplit
from softwood.topology import Topology


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one theta, with what its making left behind."""

    objective: float
    statistics: Array  # (m, d) expected statistics of every node
    theta_bar: Array  # (q,)


def expected_impurity(
    theta: Array,  # (q,)
    X: Array,  # (n, p) standardised
    s: Array,  # (n, d)
    topology: Topology,
    split: AbstractSplit,
    impurity: AbstractImpurity,
) -> Evaluation:
    """J and its exact gradient with respect to theta."""
    xp = array_namespace(X)
    P = gates(split.scores(theta, X, topology), topology)
    reach = sweep_down(P, topology)
    S = reach.T @ s
    leaves = as_indices(topology.leaves, X)
    slope = impurity.slope(xp.take(S, leaves, axis=0))
    A = sweep_up(P, s @ slope.T, topology)
    Z_bar = gates_vjp(P, _edge_cotangents(reach, A, topology), topology)
    J = xp.sum(impurity.phi(xp.take(S, leaves, axis=0)))
    return Evaluation(float(J), S, split.scores_vjp(theta, X, topology, Z_bar))


def gates(
    Z: Array,  # (n, scores)
    topology: Topology,
) -> Array:  # (n, m)
    """Scores to the probability of each node at its parent; 1 for the root."""
    xp = array_namespace(Z)
    columns = [xp.ones((Z.shape[0], 1), dtype=Z.dtype, device=Z.device)]
    for start, stop, arity in _gate_runs(topology):
        scores = Z[:, start:stop]
        if arity == 2:
            P = _sigmoid_pair(xp, scores)
        else:
            P = _softmax(xp, xp.reshape(scores, (Z.shape[0], -1, arity)))
        columns.append(xp.reshape(P, (Z.shape[0], -1)))
    return xp.concat(columns, axis=1)


def log_gates(
    Z: Array,  # (n, scores)
    topology: Topology,
) -> Array:  # (n, m)
    """The logarithm of ``gates``, where probabilities are too small for a number."""
    xp = array_namespace(Z)
    columns = [xp.zeros((Z.shape[0], 1), dtype=Z.dtype, device=Z.device)]
    for start, stop, arity in _gate_runs(topology):
        scores = Z[:, start:stop]
        if arity == 2:
            z = xp.stack([-scores, scores], axis=-1)
            log_P = xp.where(z < 0, z, xp.zeros_like(z)) - xp.log1p(xp.exp(-xp.abs(z)))
        else:
            z = xp.reshape(scores, (Z.shape[0], -1, arity))
            z = z - xp.max(z, axis=-1, keepdims=True)
            log_P = z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))
        columns.append(xp.reshape(log_P, (Z.shape[0], -1)))
    return xp.concat(columns, axis=1)


def gates_vjp(
    P: Array,  # (n, m)
    P_bar: Array,  # (n, m)
    topology: Topology,
) -> Array:  # (n, scores)
    """Reverse of ``gates``."""
    xp = array_namespace(P)
    n, node, columns = P.shape[0], 1, []
    for start, stop, arity in _gate_runs(topology):
        width = (stop - start) * (2 if arity == 2 else 1)
        p = xp.reshape(P[:, node : node + width], (n, -1, arity))
        p_bar = xp.reshape(P_bar[:, node : node + width], (n, -1, arity))
        if arity == 2:
            columns.append(p[:, :, 0] * p[:, :, 1] * (p_bar[:, :, 1] - p_bar[:, :, 0]))
        else:
            columns.append(xp.reshape(p * (p_bar - xp.sum(p * p_bar, axis=-1, keepdims=True)), (n, -1)))
        node += width
    return xp.concat(columns, axis=1) if columns else P[:, :0]


def sweep_down(
    P: Array,  # (n, m)
    topology: Topology,
) -> Array:  # (n, m)
    """reach: products of P down the path."""
    xp = array_namespace(P)
    reach = [P[:, :1]]
    for above, level in zip(topology.levels[:-1], topology.levels[1:], strict=True):
        parent = as_indices(topology.parent[level] - above.start, P)
        reach.append(xp.take(reach[-1], parent, axis=1) * P[:, level])
    return xp.concat(reach, axis=1)


def log_reach(
    Z: Array,  # (n, scores)
    topology: Topology,
) -> Array:  # (n, m)
    """The logarithm of reach by sums down the path: finite where the product is 0, as after many shut gates."""
    xp = array_namespace(Z)
    log_P = log_gates(Z, topology)
    reach = [log_P[:, :1]]
    for above, level in zip(topology.levels[:-1], topology.levels[1:], strict=True):
        parent = as_indices(topology.parent[level] - above.start, Z)
        reach.append(xp.take(reach[-1], parent, axis=1) + log_P[:, level])
    return xp.concat(reach, axis=1)


def sweep_up(
    P: Array,  # (n, m)
    leaf_costs: Array,  # (n, leaves)
    topology: Topology,
) -> Array:  # (n, m)
    """A: the expected cost of standing at each node."""
    xp = array_namespace(P)
    first_leaf: npt.NDArray[np.int64] = np.cumsum(topology.is_leaf) - topology.is_leaf
    costs: list[Array] = []
    below: Array | None = None
    for level in reversed(topology.levels):
        is_leaf = topology.is_leaf[level]
        start = int(first_leaf[level.start])
        parts = [leaf_costs[:, start : start + int(is_leaf.sum())]]
        if below is not None:
            children = slice(level.stop, level.stop + below.shape[1])
            weighted = P[:, children] * below
            parts.insert(0, xp.sum(xp.reshape(weighted, (P.shape[0], int((~is_leaf).sum()), -1)), axis=-1))
        order = np.argsort(np.argsort(is_leaf, kind="stable"), kind="stable")  # internal columns first, then leaves
        below = xp.take(xp.concat(parts, axis=1), as_indices(order, P), axis=1)
        costs.insert(0, below)
    return xp.concat(costs, axis=1)


def _edge_cotangents(reach: Array, A: Array, topology: Topology) -> Array:
    xp = array_namespace(A)
    parent = as_indices(np.maximum(topology.parent, 0), A)
    return xp.take(reach, parent, axis=1) * A


def _gate_runs(topology: Topology) -> list[tuple[int, int, int]]:
    """(first score, end, arity) of each level's gates; one run for an all-binary tree."""
    if (topology.arity[topology.internal] == 2).all():
        return [(0, int(topology.internal.size), 2)] if topology.internal.size else []
    runs, start = [], 0
    for level in topology.levels:
        arity = topology.arity[level]
        arity = arity[arity > 0]
        if arity.size:
            if (arity != arity[0]).any():
                raise ValueError("All questions of one level must have the same number of children.")
            stop = start + arity.size * (1 if arity[0] == 2 else int(arity[0]))
            runs.append((start, stop, int(arity[0])))
            start = stop
    return runs


def _sigmoid_pair(xp: Array, Z: Array) -> Array:
    """(n, nodes, 2) the two sides of each gate, both to full precision: 1 - P would lose the smaller one."""
    bound = 0.9 * math.log(xp.finfo(Z.dtype).max)  # exp must be a number
    odds = xp.exp(xp.clip(Z, -bound, bound))
    left = 1.0 / (1.0 + odds)
    return xp.stack([left, odds * left], axis=-1)


def _softmax(xp: Array, Z: Array) -> Array:
    e = xp.exp(Z - xp.max(Z, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)
