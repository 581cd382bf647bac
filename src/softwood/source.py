"""Sources: where rows come from. Trainers never index X; they ask a source for batches and for sums over all rows.

Rows are put in an order drawn from their own content, and equal rows (same x, same y) become one row with the sum of
their weights. So a weight of k and k copies of a row are the same data to every trainer, bit for bit; the order of
the caller's rows does not matter; folds drawn by content never have a row on one side and its copy on the other.
X itself is not copied: training reads one standardised float32 copy and, for hard growth, one byte per cell of bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood import _core
from softwood.bins import MAX_BINS, Bins
from softwood.split.base import Units
from softwood.targets import AbstractTargets
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.int64]


class Batches:
    """Shuffled epochs cut into full batches; all rows in order when they fit in one."""

    def __init__(self, n: int, size: int, rng: np.random.Generator) -> None:
        self.size, self._rng = min(size, n), rng
        self._rows = np.arange(n, dtype=np.int32)
        self._per_epoch = n // self.size
        self._left = 0  # batches of this epoch not yet drawn

    def draw(self, count: int) -> npt.NDArray[np.int32]:
        """(count, size) the rows of the next batches."""
        if self.size == self._rows.size:
            return np.tile(self._rows, (count, 1))
        drawn, made = np.empty((count, self.size), dtype=np.int32), 0
        while made < count:
            if not self._left:
                self._left = self._per_epoch
                _core.shuffle(self._rows, self._per_epoch * self.size, int(self._rng.integers(2**63)))
            taken = min(self._left, count - made)
            first = (self._per_epoch - self._left) * self.size
            drawn[made : made + taken] = self._rows[first : first + taken * self.size].reshape(taken, self.size)
            made, self._left = made + taken, self._left - taken
        return drawn


class ArraySource:
    """A table in memory: user's X, the rows of it that count in canonical order, and their targets."""

    def __init__(
        self,
        X: npt.NDArray[Any],  # (rows, p) float32 or float64, C order
        order: RowArray,  # (n,) rows of X
        copies: npt.NDArray[np.int32],  # (n,) how many of the caller's rows each stands for
        content: npt.NDArray[np.uint64],  # (n,) hash of each row of X
        targets: AbstractTargets,  # of the n rows
        n_threads: int = 1,
    ) -> None:
        self.X, self.order, self.copies, self.content = X, order, copies, content
        self.targets, self.n_threads = targets, n_threads
        self._bins: dict[int, Bins] = {}

    @property
    def n(self) -> int:
        return int(self.order.size)

    @property
    def p(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def units(self) -> Units:
        """Weighted center and scale of each column."""
        return Units(*_core.column_moments(self.X, self.order, self.targets.weight, self.n_threads))

    @cached_property
    def Z(self) -> npt.NDArray[np.float32]:
        """(n, p) the standardised rows."""
        units = self.units
        Z: npt.NDArray[np.float32] = _core.standardise(
            self.X, self.order, units.center, units.per_scale, self.n_threads
        )
        return Z

    def bins(self, max_bins: int = MAX_BINS) -> Bins:
        """One byte per cell, by weighted quantiles; made once for each number of bins."""
        if max_bins not in self._bins:
            self._bins[max_bins] = Bins.of(self.X, self.order, self.targets.weight, max_bins, self.n_threads)
        return self._bins[max_bins]

    def batches(self, rng: np.random.Generator, size: int) -> Batches:
        """Row numbers of one batch after another, for ever, drawn from the generator."""
        return Batches(self.n, size, rng)

    def leaf_of(self, tree: Tree) -> npt.NDArray[np.int32]:
        """(n,) the leaf of each row by the tree's hard questions."""
        return tree.apply(self.X, self.n_threads)[self.order]

    def take(self, rows: RowArray) -> ArraySource:
        """Some of the rows as a source of their own, with units of their own."""
        return ArraySource(
            self.X, self.order[rows], self.copies[rows], self.content[rows], self.targets.take(rows), self.n_threads
        )

    def with_targets(self, targets: AbstractTargets) -> ArraySource:
        """The same rows, measured the same way, with other statistics."""
        other = ArraySource(self.X, self.order, self.copies, self.content, targets, self.n_threads)
        other.__dict__.update(units=self.units, Z=self.Z)  # cached properties: made once for both
        return other

    def chunks(self, size: int) -> Iterator[ArraySource]:
        """The rows in parts of at most ``size``."""
        for first in range(0, self.n, size):
            yield self.take(np.arange(first, min(first + size, self.n)))

    def parted(self, fraction: float, seed: int) -> tuple[ArraySource, ArraySource]:
        """About ``fraction`` of the rows and the rest, drawn by content and measured in the units of the whole.

        Where all rows are equal, nothing is held out.
        """
        fold = self.folds(self.n, seed)
        held_out = fold < min(max(1, round(fraction * fold.max())), fold.max())
        return self._part(held_out), self._part(~held_out)

    def _part(self, rows: npt.NDArray[np.bool_]) -> ArraySource:
        part = self.take(np.flatnonzero(rows))
        part.__dict__["units"] = self.units  # a cached property: the part is measured like the whole
        return part

    def folds(self, n_folds: int, seed: int) -> npt.NDArray[np.int64]:
        """(n,) a fold number per row, drawn by content: balanced over the rows, copies stay together."""
        mixed = (self.content ^ np.uint64(seed)) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
        _, group = np.unique(mixed, return_inverse=True)
        fold: npt.NDArray[np.int64] = group % n_folds
        return fold


def canonical_rows(
    X: npt.NDArray[Any],  # (rows, p) float32 or float64, C order
    key: npt.NDArray[Any],  # (rows,) what else makes rows different: the target
    weight: FloatArray,  # (rows,)
    n_threads: int = 1,
) -> tuple[RowArray, npt.NDArray[np.int32], npt.NDArray[np.uint64], FloatArray]:
    """Order rows by content and merge equal ones: (row numbers, copies, content hashes, summed weights)."""
    content: npt.NDArray[np.uint64] = _core.row_hash(X, n_threads)
    order = _by_content(content, key, weight)
    order = order[weight[order] > 0]
    same, collided = _same_as_before(X, key, content, order)
    if collided:  # two rows with one hash: sort by everything
        order = order[np.lexsort((weight[order], key[order], *X[order].T, content[order]))]
        same, _ = _same_as_before(X, key, content, order)
    starts = np.flatnonzero(~same)
    copies = np.diff(np.append(starts, order.size)).astype(np.int32)
    summed = np.add.reduceat(weight[order], starts) if order.size else np.zeros(0)
    return order[starts], copies, content[order[starts]], summed


def _by_content(content: npt.NDArray[np.uint64], key: npt.NDArray[Any], weight: FloatArray) -> RowArray:
    """``lexsort((weight, key, content))``; few rows share a hash, so only those are sorted by all three.

    Weights of equal rows are sorted too: a sum of floats depends on its order.
    """
    order = np.argsort(content)
    hashes = content[order]
    tied = np.zeros(order.size, dtype=bool)
    tied[1:] = hashes[1:] == hashes[:-1]
    tied[:-1] |= tied[1:]
    places = np.flatnonzero(tied)
    rows = np.sort(order[places])
    order[places] = rows[np.lexsort((weight[rows], key[rows], content[rows]))]
    return order


def _same_as_before(
    X: npt.NDArray[Any], key: npt.NDArray[Any], content: npt.NDArray[np.uint64], order: RowArray
) -> tuple[npt.NDArray[np.bool_], bool]:
    """(n,) whether a row equals the one before it, missing values included; and whether only their hashes did."""
    hashes, keys = content[order], key[order]
    same = np.zeros(order.size, dtype=bool)
    same[1:] = (hashes[1:] == hashes[:-1]) & (keys[1:] == keys[:-1])
    doubtful = np.flatnonzero(same)
    row, before = X[order[doubtful]], X[order[doubtful - 1]]
    equal = ((row == before) | (np.isnan(row) & np.isnan(before))).all(axis=1)
    same[doubtful] = equal
    return same, not equal.all()
