"""Answers: which leaf speaks for a row, or how all of them do.

    hard        one path, at each question the likelier child: O(depth)
    soft        the values of all leaves, weighted by reach
    likeliest   the one leaf of the largest reach, which the hard path may miss
    sampled     one leaf drawn with the probability of its reach, from a seed and the row's content

A draw depends on nothing but the seed and the row: not on the rows beside it, their order or the threads. What needs
reach works through the rows in parts, so that memory stays bounded however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from softwood import _core
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
CELLS = 2**20  # numbers of reach at once: 8 MiB
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Found = TypeVar("Found", bound=npt.NDArray[Any])


class AbstractRouting(ABC):
    """A way from rows to answers. Each method returns None where a number of X is not finite."""

    @abstractmethod
    def leaf(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> IntArray | None:
        """(n,) the leaf that speaks for each row, or, where all do, the one with most to say."""

    def answers(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> FloatArray | None:
        """(n, v) the answer to each row."""
        leaf = self.leaf(tree, X, n_threads)
        return None if leaf is None else tree.answers_at(leaf, X)

    def choices(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[np.int64] | None:
        """(n,) the largest entry of each answer, the first of equals."""
        leaf = self.leaf(tree, X, n_threads)
        return None if leaf is None else tree.values.argmax(axis=1)[leaf]


@dataclass(frozen=True)
class Hard(AbstractRouting):
    """One path."""

    def leaf(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> IntArray | None:
        return tree.apply_finite(X, n_threads)


@dataclass(frozen=True)
class Likeliest(AbstractRouting):
    """The leaf of the largest reach, the first of equals."""

    def leaf(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> IntArray | None:
        return by_parts(tree, X, partial(likeliest_leaf, tree))


@dataclass(frozen=True)
class Soft(AbstractRouting):
    """All leaves, weighted by reach; asked for one leaf, the likeliest."""

    def leaf(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> IntArray | None:
        return by_parts(tree, X, partial(likeliest_leaf, tree))

    def answers(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> FloatArray | None:
        return by_parts(tree, X, tree.soft_answers)

    def choices(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[np.int64] | None:
        return by_parts(tree, X, lambda part: tree.soft_answers(part).argmax(axis=1))


@dataclass(frozen=True)
class Sampled(AbstractRouting):
    """One leaf drawn by reach; equal rows draw the same."""

    seed: int = 0

    def leaf(self, tree: Tree, X: npt.NDArray[Any], n_threads: int = 1) -> IntArray | None:
        return by_parts(tree, X, partial(drawn_leaf, tree, self.seed))


ROUTINGS: dict[str, type[AbstractRouting]] = {"hard": Hard, "soft": Soft, "likeliest": Likeliest, "sampled": Sampled}


def routing_of(name: str, seed: int, tree: Tree) -> AbstractRouting:
    """The routing of a name for a tree; where all questions are hard, every routing is the one path."""
    if tree.is_hard:
        return Hard()
    return Sampled(seed) if ROUTINGS[name] is Sampled else ROUTINGS[name]()


def likeliest_leaf(tree: Tree, X: npt.NDArray[Any]) -> IntArray:
    """(n,) the leaf of the largest reach."""
    leaf: IntArray = tree.topology.leaves[leaf_reach(tree, X).argmax(axis=1)].astype(np.int32)
    return leaf


def drawn_leaf(tree: Tree, seed: int, X: npt.NDArray[Any]) -> IntArray:
    """(n,) one leaf for each row, drawn by reach; a leaf of reach 0 is never drawn."""
    upto = np.cumsum(leaf_reach(tree, X), axis=1)
    share = uniforms(X, seed)[:, None] * upto[:, -1:]  # of the whole sum, which rounding leaves just beside 1
    leaf: IntArray = tree.topology.leaves[(upto <= share).sum(axis=1)].astype(np.int32)
    return leaf


def leaf_reach(tree: Tree, X: npt.NDArray[Any]) -> FloatArray:
    """(n, leaves) the probability that a row reaches each leaf."""
    return tree.reach(X)[:, tree.topology.leaves]


def uniforms(X: npt.NDArray[Any], seed: int) -> FloatArray:
    """(n,) numbers from 0 up to 1, each a function of the seed and the row's content."""
    with np.errstate(over="ignore"):  # arithmetic of hashes wraps
        mixed = _core.row_hash(np.ascontiguousarray(X), 1) + np.uint64(seed) * GOLDEN
        for factor in (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(30))) * factor
    return np.asarray((mixed >> np.uint64(12)) * 2.0**-52)


def by_parts(tree: Tree, X: npt.NDArray[Any], find: Callable[[npt.NDArray[Any]], Found]) -> Found | None:
    """What is found for parts of the rows, joined: reach has at most CELLS numbers at once, or one row."""
    size = max(1, CELLS // tree.n_nodes)
    found = []
    for first in range(0, max(len(X), 1), size):
        part = X[first : first + size]
        if not np.isfinite(part).all():
            return None
        found.append(find(part))
    return np.concatenate(found)  # type: ignore[return-value]


def agreement(
    tree: Tree,
    X: npt.NDArray[Any],
    weight: FloatArray,  # (n,)
    is_classes: bool,
) -> float:
    """How far hard and soft answers agree: the share of weight whose classes do, or R2 of the one from the other."""
    if tree.is_hard:
        return 1.0
    hard, soft = Hard().answers(tree, X), Soft().answers(tree, X)
    assert hard is not None and soft is not None
    if is_classes:
        agree = hard.argmax(axis=1) == soft.argmax(axis=1)
        return float(weight @ agree / weight.sum())
    apart = hard - weight @ hard / weight.sum()
    spread = float(weight @ (apart**2).sum(axis=1))
    return 1.0 - float(weight @ ((hard - soft) ** 2).sum(axis=1)) / spread if spread > 0 else 1.0
