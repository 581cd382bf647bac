"""The array twin of greedy growth: one node at a time, any impurity, the same rules as the compiled kernel.

gain = phi(S) - phi(S_left) - phi(S - S_left) on the prefix sums of each column's histogram. Gains within
``ROUNDING * magnitude`` of each other are equal, and the first feature and then the first bin of them is taken.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softwood.bins import Bins
from softwood.impurity import AbstractImpurity

ROUNDING = 1e-12  # gains closer than this share of the magnitude are equal
FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GrowLimits:
    """When growth stops; rows are the caller's, -1 stands for no limit."""

    max_depth: int
    max_leaf_nodes: int
    min_samples_split: float
    min_samples_leaf: float
    min_decrease: float  # of phi: the decrease per unit of weight times the total weight

    def as_tuple(self) -> tuple[int, int, float, float, float]:
        return (
            self.max_depth,
            self.max_leaf_nodes,
            float(self.min_samples_split),
            float(self.min_samples_leaf),
            float(self.min_decrease),
        )


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A grown tree as arrays, breadth first, children side by side."""

    arity: npt.NDArray[np.int32]  # (m,)
    feature: npt.NDArray[np.int32]  # (internal nodes,)
    threshold: FloatArray  # (internal nodes,)
    statistics: FloatArray  # (m, d)


@dataclass(frozen=True)
class Cut:
    """A question on codes: code > bin?"""

    gain: float
    feature: int
    bin: int
    following: int  # the next bin this node has rows in


@dataclass(eq=False)
class _Node:
    rows: RowArray
    depth: int
    S: FloatArray
    cut: Cut | None = None
    children: tuple[_Node, _Node] | None = None


class ArrayGrower:
    """Growth in NumPy."""

    def __init__(
        self,
        bins: Bins,
        s: FloatArray,  # (n, d)
        copies: npt.NDArray[np.int32],  # (n,)
        impurity: AbstractImpurity,
        limits: GrowLimits,
    ) -> None:
        self.bins, self.s, self.copies = bins, s, copies.astype(np.float64)
        self.impurity, self.limits = impurity, limits

    def grow(self, first: Cut | None = None) -> GrownTree:
        """Grow a tree; the first question is given, or searched like the others."""
        root = self._examined(np.arange(self.bins.n), 0)
        if first is not None and self._is_open(root):
            root.cut = first
        waiting, made, n_leaves = [(self._rank(root), 0, root)] if root.cut else [], 1, 1
        while waiting and n_leaves != self.limits.max_leaf_nodes:
            node = heapq.heappop(waiting)[2]
            node.children = self._children(node)
            n_leaves += 1
            for child in node.children:
                if child.cut:
                    heapq.heappush(waiting, (self._rank(child), made, child))
                made += 1
        return self._listed(root)

    def _rank(self, node: _Node) -> float:
        """Best first: the greatest gain, and of equals the oldest."""
        assert node.cut is not None
        return -node.cut.gain

    def _children(self, node: _Node) -> tuple[_Node, _Node]:
        assert node.cut is not None
        right = self.bins.codes[node.cut.feature, node.rows] > node.cut.bin
        return self._examined(node.rows[~right], node.depth + 1), self._examined(node.rows[right], node.depth + 1)

    def _examined(self, rows: RowArray, depth: int) -> _Node:
        S = self.s[rows].sum(axis=0)
        node = _Node(rows, depth, S)
        if self._is_open(node):
            node.cut = self._best_cut(node)
        return node

    def _is_open(self, node: _Node) -> bool:
        limits, count = self.limits, self.copies[node.rows].sum()
        return bool(
            node.depth != limits.max_depth
            and node.rows.size > 1
            and count >= limits.min_samples_split
            and count >= 2 * limits.min_samples_leaf
            and (self.impurity.splits_pure or self.impurity.phi(node.S) > self._tolerance(node.S))
        )

    def _tolerance(self, S: FloatArray) -> float:
        return ROUNDING * float(self.impurity.magnitude(S))

    def _best_cut(self, node: _Node) -> Cut | None:
        tolerance = self._tolerance(node.S)
        cuts = [self._cut(node, j, tolerance) for j in range(self.bins.p)]
        most = max((cut.gain for cut in cuts if cut), default=-np.inf)
        if not most > tolerance or most + tolerance < self.limits.min_decrease:
            return None
        return next(cut for cut in cuts if cut and cut.gain >= most - tolerance)

    def _cut(self, node: _Node, feature: int, tolerance: float) -> Cut | None:
        codes = self.bins.codes[feature, node.rows]
        counts = np.bincount(codes, self.copies[node.rows])
        held = np.flatnonzero(counts)
        if held.size < 2:
            return None
        cells = np.stack([np.bincount(codes, column)[held] for column in self.s[node.rows].T], axis=1)
        left = np.cumsum(cells, axis=0)[:-1]
        before = np.cumsum(counts[held])
        cost = self.impurity.phi(left) + self.impurity.phi(node.S - left)
        least_rows = max(1.0, self.limits.min_samples_leaf)
        allowed = (before[:-1] >= least_rows) & (before[-1] - before[:-1] >= least_rows)
        if not allowed.any():
            return None
        cost = np.where(allowed, cost, np.inf)
        at = int(np.argmax(cost <= cost.min() + tolerance))
        gain = float(self.impurity.phi(node.S) - cost.min())
        return Cut(gain, feature, int(held[at]), int(held[at + 1]))

    def _listed(self, root: _Node) -> GrownTree:
        queue = [root]
        for node in queue:  # grows while it is walked: breadth first
            queue.extend(node.children or ())
        cuts = [node.cut for node in queue if node.children and node.cut]
        return GrownTree(
            np.array([2 if node.children else 0 for node in queue], dtype=np.int32),
            np.array([cut.feature for cut in cuts], dtype=np.int32),
            np.array([self.bins.threshold(cut.feature, cut.bin, cut.following) for cut in cuts], dtype=np.float64),
            np.stack([node.S for node in queue]),
        )
