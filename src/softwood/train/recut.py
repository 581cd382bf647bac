"""The array twin of local search: any impurity, the same rules and the same random numbers as the compiled kernel.

To recut a node is to choose its question anew while the subtrees below it stay: each of its rows would end in one leaf
through child 0 and in one through child 1, and the impurity of all these leaves is taken behind every bin of every
column, from prefix sums of what the rows of a bin add to a leaf and take from another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from softwood.bins import Bins
from softwood.impurity import AbstractImpurity
from softwood.train.scan import ROUNDING, ArrayGrower, Cut, FloatArray, GrowLimits, GrownTree, RowArray

DrawArray = npt.NDArray[np.uint64]


@dataclass(eq=False)
class Branch:
    """A node with its rows and what is below it."""

    rows: RowArray
    depth: int
    feature: int = -1  # -1: a leaf
    bin: int = 0
    children: tuple[Branch, ...] = ()
    is_stale: bool = True  # whether its question, or being a leaf, may not be the best any more
    J: float = 0.0  # of the leaves below it

    def copy(self) -> Branch:
        return replace(self, children=tuple(child.copy() for child in self.children))

    def below(self) -> Iterator[Branch]:
        """The branch and all nodes below it, breadth first."""
        queue = [self]
        for node in queue:  # grows while it is walked
            queue.extend(node.children)
        return iter(queue)

    def leaves(self) -> list[Branch]:
        return [node for node in self.below() if not node.children]

    def path_to(self, target: Branch) -> list[Branch]:
        """The nodes above ``target``, from its parent up."""
        above = {id(child): node for node in self.below() for child in node.children}
        path, node = [], target
        while id(node) in above:
            node = above[id(node)]
            path.append(node)
        return path


class ArraySearch:
    """Local search in NumPy."""

    def __init__(
        self,
        bins: Bins,
        s: FloatArray,  # (n, d)
        copies: npt.NDArray[np.int32],  # (n,)
        impurity: AbstractImpurity,
        limits: GrowLimits,
    ) -> None:
        self.bins, self.s, self.copies = bins, s, copies
        self.impurity, self.limits = impurity, limits

    def run(
        self,
        feature: npt.NDArray[np.int32],  # (m,) -1 at leaves
        bin: npt.NDArray[np.int32],  # (m,)
        draws: DrawArray,  # (rounds, 3)
    ) -> tuple[GrownTree, FloatArray]:
        """The tree found, and J after coordinate descent and after each round."""
        best = self._planted(feature, bin)
        self._settle(best)
        history, tolerance = [best.J], self._tolerance(best.rows)
        for draw in draws:
            tree = best.copy()
            if self._redraw(tree, *(int(number) for number in draw)):
                self._settle(tree)
            best = tree if tree.J <= best.J + tolerance else best
            history.append(best.J)
        return self._listed(best), np.array(history)

    def _planted(self, feature: npt.NDArray[np.int32], bin: npt.NDArray[np.int32]) -> Branch:
        root = Branch(np.arange(self.bins.n), 0)
        self._ask(root, feature, bin)
        self._part(root)
        return root

    def _ask(self, top: Branch, feature: Sequence[int] | RowArray, bin: Sequence[int] | RowArray) -> None:
        """Give a branch new questions, listed breadth first."""
        queue = [top]
        for node, j, b in zip(queue, feature, bin, strict=False):  # grows while it is walked
            node.feature, node.bin, node.children = int(j), int(b), ()
            if j >= 0:
                node.children = (Branch(node.rows, 0), Branch(node.rows, 0))
                queue.extend(node.children)

    def _part(self, node: Branch) -> None:
        """Hand rows down and take costs; a node with an empty child gives its place to the other."""
        node.is_stale = True
        while node.children:
            right = self.bins.codes[node.feature, node.rows] > node.bin
            if right.any() and not right.all():
                break
            full = node.children[int(right.all())]
            node.feature, node.bin, node.children = full.feature, full.bin, full.children
        if not node.children:
            node.feature, node.J = -1, self._phi(node.rows)
            return
        node.bin = bin_of(self._threshold(node), node.feature, self.bins)
        for child, rows in zip(node.children, (node.rows[~right], node.rows[right]), strict=True):
            child.rows, child.depth = rows, node.depth + 1
            self._part(child)
        node.J = node.children[0].J + node.children[1].J

    def _phi(self, rows: RowArray) -> float:
        return float(self.impurity.phi(self.s[rows].sum(axis=0))) if rows.size else 0.0

    def _tolerance(self, rows: RowArray) -> float:
        return ROUNDING * float(self.impurity.magnitude(self.s[rows].sum(axis=0)))

    def _settle(self, root: Branch) -> None:
        """Recut stale nodes and grow stale leaves until nothing is stale."""
        node = _first_stale(root)
        while node is not None:
            node.is_stale = False
            if self._recut(node) if node.children else self._grow_out(root, node):
                self._carry_up(root, node)
            node = _first_stale(root)
        self._collapse_small(root)

    def _carry_up(self, root: Branch, changed: Branch) -> None:
        for node in root.path_to(changed):
            node.J, node.is_stale = node.children[0].J + node.children[1].J, True

    def _collapse_small(self, root: Branch) -> None:
        """Nodes that other cuts left with too few rows to ask become leaves."""
        for node in [*root.below()][::-1]:
            if node.children and self.copies[node.rows].sum() < self.limits.min_samples_split:
                node.children = ()
                self._part(node)
                self._carry_up(root, node)

    def _recut(self, node: Branch) -> bool:
        tolerance = self._tolerance(node.rows)
        cuts = [cut for cut in self._cuts(node, tolerance) if cut]
        least = min((-cut.gain for cut in cuts), default=np.inf)
        if not least < node.J - tolerance:
            return False
        cut = next(cut for cut in cuts if -cut.gain <= least + tolerance)
        before = node.copy()
        node.feature, node.bin = cut.feature, cut.bin
        self._part(node)
        is_better = node.J < before.J
        if not is_better:
            node.__dict__.update(before.__dict__)
        node.is_stale = False
        return is_better

    def _cuts(self, node: Branch, tolerance: float) -> Iterator[Cut | None]:
        leaves = [leaf for child in node.children for leaf in child.leaves()]
        number = {id(leaf): k for k, leaf in enumerate(leaves)}
        through = [self._leaf_numbers(child, node.rows, number) for child in node.children]
        amounts = np.column_stack([self.s[node.rows], self.copies[node.rows]])
        start = np.zeros((len(leaves), amounts.shape[1]))
        np.add.at(start, through[1], amounts)
        for j in range(self.bins.p):
            codes = self.bins.codes[j, node.rows].astype(np.int64)
            moved = np.zeros((int(self.bins.n_bins[j]), *start.shape))
            np.add.at(moved, (codes, through[0]), amounts)
            np.subtract.at(moved, (codes, through[1]), amounts)
            yield self._best(j, codes, start + np.cumsum(moved, axis=0), tolerance)

    def _leaf_numbers(self, top: Branch, rows: RowArray, number: dict[int, int]) -> RowArray:
        out = np.empty(rows.size, dtype=np.int64)
        waiting = [(top, np.arange(rows.size))]
        for node, places in waiting:  # grows while it is walked
            if not node.children:
                out[places] = number[id(node)]
                continue
            right = self.bins.codes[node.feature, rows[places]] > node.bin
            waiting += [(node.children[0], places[~right]), (node.children[1], places[right])]
        return out

    def _best(self, feature: int, codes: RowArray, sums: FloatArray, tolerance: float) -> Cut | None:
        """The first of the least costs behind the bins; ``sums`` (bins, leaves, d + 1) end with numbers of rows."""
        count = np.rint(sums[..., -1])
        S = np.where(count[..., None] > 0, sums[..., :-1], 0.0)
        cost = np.where(count > 0, self.impurity.phi(S), 0.0).sum(axis=1)
        is_thin = ((count > 0) & (count < self.limits.min_samples_leaf)).any(axis=1)
        held = np.zeros(len(sums), dtype=bool)
        held[codes] = True
        held[codes.max()] = False  # nothing is behind it
        cost[is_thin | ~held] = np.inf
        if not np.isfinite(cost).any():
            return None
        bin = int(np.argmax(cost <= cost.min() + tolerance))
        return Cut(-float(cost.min()), feature, bin, bin + 1)

    def _grow_out(self, root: Branch, leaf: Branch) -> bool:
        limits = self.limits
        open_ = limits.max_depth < 0 or leaf.depth < limits.max_depth
        if not open_ or self.copies[leaf.rows].sum() < limits.min_samples_split or leaf.rows.size < 2:
            return False
        return self._plant(root, leaf, None)

    def _plant(self, root: Branch, node: Branch, first: Cut | None) -> bool:
        """Grow what is below a node anew."""
        limits, bins, rows = self.limits, self.bins, node.rows
        spare = limits.max_leaf_nodes - len(root.leaves()) + len(node.leaves())
        here = replace(
            limits,
            max_depth=-1 if limits.max_depth < 0 else limits.max_depth - node.depth,
            max_leaf_nodes=-1 if limits.max_leaf_nodes < 0 else spare,
        )
        part = Bins(np.ascontiguousarray(bins.codes[:, rows]), bins.offsets, bins.low, bins.high)
        grown = ArrayGrower(part, self.s[rows], self.copies[rows], self.impurity, here).grow(first)
        if grown.arity[0] == 0:
            return False
        self._ask(node, *questions_of(grown.arity, grown.feature, grown.threshold, bins))
        self._part(node)
        return True

    def _redraw(self, root: Branch, which: int, feature: int, row: int) -> bool:
        """A question at random above the last level, and greedy growth below it."""
        asking = [node for node in root.below() if node.children]
        if not asking:
            return False
        n_levels = max(1, asking[-1].depth)
        here = [node for node in asking if node.depth == which % n_levels]
        node = here[which // n_levels % len(here)]
        cut = self._drawn_cut(node.rows, feature % self.bins.p, row)
        if cut is None or not self._plant(root, node, cut):
            return False
        self._carry_up(root, node)
        return True

    def _drawn_cut(self, rows: RowArray, feature: int, number: int) -> Cut | None:
        """Behind the bin of one of the rows that are not in the last; None where a side has too few rows."""
        codes = np.sort(self.bins.codes[feature, rows])
        inner = codes[codes < codes[-1]]
        if not inner.size:
            return None
        bin = int(inner[number % inner.size])
        goes_right = self.bins.codes[feature, rows] > bin
        right, count = self.copies[rows[goes_right]].sum(), self.copies[rows].sum()
        allowed = min(right, count - right) >= max(1, self.limits.min_samples_leaf)
        return Cut(0.0, feature, bin, bin + 1) if allowed else None

    def _listed(self, root: Branch) -> GrownTree:
        nodes = [*root.below()]
        asking = [node for node in nodes if node.children]
        return GrownTree(
            np.array([2 if node.children else 0 for node in nodes], dtype=np.int32),
            np.array([node.feature for node in asking], dtype=np.int32),
            np.array([self._threshold(node) for node in asking], dtype=np.float64),
            np.stack([self.s[node.rows].sum(axis=0) for node in nodes]),
        )

    def _threshold(self, node: Branch) -> float:
        """Between the two bins next to the cut that the node has rows in."""
        codes = self.bins.codes[node.feature, node.rows]
        right = codes > node.bin
        return self.bins.threshold(node.feature, int(codes[~right].max()), int(codes[right].min()))


def _first_stale(root: Branch) -> Branch | None:
    return next((node for node in root.below() if node.is_stale), None)


def questions_of(
    arity: npt.NDArray[np.int32],  # (m,)
    feature: npt.NDArray[np.int32],  # (internal nodes,)
    threshold: FloatArray,  # (internal nodes,)
    bins: Bins,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(m,) the feature of each node, -1 at leaves, and the last bin that does not pass its threshold."""
    features, last = (np.full(arity.size, -1, dtype=np.int32) for _ in range(2))
    features[arity > 0] = feature
    for node, j, t in zip(np.flatnonzero(arity), feature, threshold, strict=True):
        last[node] = bin_of(t, j, bins)
    return features, last


def bin_of(threshold: float, feature: int, bins: Bins) -> int:
    """The last bin of a column that does not pass a threshold."""
    high = bins.high[bins.offsets[feature] : bins.offsets[feature + 1]]
    return int(np.searchsorted(high, threshold, side="right")) - 1
