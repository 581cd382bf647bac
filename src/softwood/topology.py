"""Topology: the shape of a tree, and nothing else.

Nodes are numbered level by level (breadth first), children of a node side by side in their parent's order.
Then the number of children of every node says everything: node k's children are
``first_child[k] ... first_child[k] + arity[k] - 1`` with ``first_child = 1 + cumsum(arity) - arity``.
Parents come before children; a level is a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from softwood._frozen import frozen

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Topology:
    """The shape of a tree from the number of children of each node, in breadth-first order."""

    arity: IntArray  # (m,) 0 for a leaf

    def __post_init__(self) -> None:
        arity = np.asarray(self.arity)
        if arity.ndim != 1 or arity.size == 0 or arity.dtype.kind not in "iu" or arity.min() < 0 or (arity == 1).any():
            raise ValueError("A tree's arity must list 0 (leaf) or at least 2 (children) for each of its nodes.")
        object.__setattr__(self, "arity", frozen(np.minimum(arity, arity.size), np.int32))  # more cannot fit anyway
        reachable = 1 + np.cumsum(self.arity, dtype=np.int64)
        if reachable[-1] != arity.size or (reachable[:-1] <= np.arange(1, arity.size)).any():
            raise ValueError("A tree's arity must describe exactly one tree, its nodes listed level by level.")

    @classmethod
    def leaf(cls) -> Topology:
        """The tree of one node."""
        return cls(np.zeros(1, dtype=np.int32))

    @classmethod
    def complete(cls, depth: int, arity: int = 2) -> Topology:
        """All nodes have ``arity`` children down to ``depth``."""
        n_internal = (arity**depth - 1) // (arity - 1)
        counts = np.zeros(n_internal * arity + 1, dtype=np.int32)
        counts[:n_internal] = arity
        return cls(counts)

    @property
    def n_nodes(self) -> int:
        return int(self.arity.size)

    @cached_property
    def first_child(self) -> IntArray:
        """(m,) the first child of each node; 0 for a leaf."""
        first = 1 + np.cumsum(self.arity, dtype=np.int32) - self.arity
        return frozen(np.where(self.arity > 0, first, 0), np.int32)

    @cached_property
    def parent(self) -> IntArray:
        """(m,) the parent of each node; -1 for the root."""
        nodes = np.arange(self.n_nodes, dtype=np.int32)
        return frozen(np.concatenate([[-1], np.repeat(nodes, self.arity)]), np.int32)

    @cached_property
    def level_of(self) -> IntArray:
        """(m,) the depth of each node; 0 for the root."""
        level = np.zeros(self.n_nodes, dtype=np.int32)
        for depth, nodes in enumerate(self.levels):
            level[nodes] = depth
        return frozen(level)

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """One slice of nodes per level."""
        out, start, stop = [], 0, 1
        while start < stop:
            out.append(slice(start, stop))
            start, stop = stop, stop + int(self.arity[start:stop].sum())
        return tuple(out)

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        return frozen(self.arity == 0)

    @cached_property
    def internal(self) -> npt.NDArray[np.int64]:
        """The nodes that ask a question, in order."""
        return frozen(np.flatnonzero(self.arity > 0))

    @cached_property
    def leaves(self) -> npt.NDArray[np.int64]:
        return frozen(np.flatnonzero(self.arity == 0))

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    @cached_property
    def n_scores(self) -> IntArray:
        """Scores of each internal node: one for two children (sigmoid), else one per child (softmax)."""
        arity = self.arity[self.internal]
        return frozen(np.where(arity == 2, 1, arity), np.int32)

    @cached_property
    def leaf_order(self) -> IntArray:
        """(m,) left-to-right rank of each leaf (-1 for internal nodes): leaves of one branch are neighbours."""
        rank = np.full(self.n_nodes, -1, dtype=np.int32)
        stack, count = [0], 0
        while stack:
            node = stack.pop()
            if self.arity[node] == 0:
                rank[node], count = count, count + 1
            else:
                first = int(self.first_child[node])
                stack.extend(range(first + int(self.arity[node]) - 1, first - 1, -1))
        return frozen(rank)
