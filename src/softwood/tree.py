"""Tree: a trained tree as inert arrays. Prediction, export, plots and storage know only this.

Every node keeps its statistics and its value; internal nodes point at a question in one of the tables. A tree knows
no impurity, no split family and no data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood import _core
from softwood._frozen import frozen
from softwood.lines import Lines
from softwood.question import AbstractQuestions, Linears, Thresholds
from softwood.topology import Topology

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tree:
    """Frozen arrays of a tree with questions of any kind side by side."""

    topology: Topology
    tables: tuple[AbstractQuestions, ...]
    table: npt.NDArray[np.int8]  # (m,) which table a node's question is in; -1 at leaves
    row: npt.NDArray[np.int32]  # (m,) which row of it; 0 at leaves
    statistics: FloatArray  # (m, d) sums of s over the rows that reach each node
    values: FloatArray  # (m, v) what each node would answer
    n_features: int
    lines: Lines | None = None  # what leaves answer instead of their values

    def __post_init__(self) -> None:
        for name in ("table", "row", "statistics", "values"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def stump(cls, statistics: FloatArray, value: FloatArray, n_features: int) -> Tree:
        """The tree of one leaf."""
        return cls(
            Topology.leaf(),
            (),
            np.array([-1], dtype=np.int8),
            np.zeros(1, dtype=np.int32),
            np.asarray(statistics, dtype=np.float64).reshape(1, -1),
            np.asarray(value, dtype=np.float64).reshape(1, -1),
            n_features,
        )

    @classmethod
    def of_one_kind(
        cls, topology: Topology, table: AbstractQuestions, statistics: FloatArray, values: FloatArray, n_features: int
    ) -> Tree:
        """A tree whose k-th internal node asks question k of the only table."""
        row = np.zeros(topology.n_nodes, dtype=np.int32)
        row[topology.internal] = np.arange(topology.internal.size)
        kind = np.where(topology.is_leaf, -1, 0).astype(np.int8)
        return cls(topology, (table,), kind, row, statistics, values, n_features)

    @property
    def n_nodes(self) -> int:
        return self.topology.n_nodes

    @property
    def n_leaves(self) -> int:
        return int(self.topology.leaves.size)

    @property
    def is_hard(self) -> bool:
        """Whether no question has a soft answer: then a row reaches one leaf and no other."""
        return all(table.is_hard for table in self.tables)

    @property
    def depth(self) -> int:
        return self.topology.depth

    def question(self, node: int) -> tuple[AbstractQuestions, int]:
        """The table and row of an internal node's question."""
        return self.tables[self.table[node]], int(self.row[node])

    def apply(self, X: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[np.int32]:
        """(n,) the leaf each row ends in: one path, O(depth)."""
        packed = self._packed()
        if packed is None or X.dtype not in (np.float32, np.float64):
            return self.apply_by_level(X)
        leaf: npt.NDArray[np.int32] = _core.route(np.ascontiguousarray(X), *packed, n_threads)
        return leaf

    def apply_finite(self, X: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[np.int32] | None:
        """``apply``, or None where a number of X is not finite: known from the same pass over the rows."""
        packed = self._packed()
        if packed is None or X.dtype not in (np.float32, np.float64):
            return self.apply_by_level(X) if np.isfinite(X).all() else None
        leaf: npt.NDArray[np.int32] | None = _core.route(np.ascontiguousarray(X), *packed, n_threads, True)
        return leaf

    def apply_by_level(self, X: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The array twin of ``apply``, for questions of any kind."""
        node = np.zeros(X.shape[0], dtype=np.int32)
        for rows, here in self._visits(node):
            table, k = self.question(here)
            node[rows] = self.topology.first_child[here] + table.answer(X[rows], k)
        return node

    def reach(self, X: npt.NDArray[Any]) -> FloatArray:
        """(n, m) the probability that a row reaches a node by the soft answers."""
        P = np.ones((self.n_nodes, X.shape[0]))  # a node's numbers next to each other
        for index, questions in enumerate(self.tables):
            nodes = np.flatnonzero(self.table == index)
            answers = questions.probabilities(X, self.row[nodes])
            for child in range(answers.shape[2]):
                P[self.topology.first_child[nodes] + child] = answers[:, :, child].T
        for level in self.topology.levels[1:]:
            P[level] *= P[self.topology.parent[level]]
        return P.T

    def soft_answers(self, X: npt.NDArray[Any]) -> FloatArray:
        """(n, v) what all leaves answer, weighted by reach."""
        leaves = self.topology.leaves
        reach = self.reach(X)[:, leaves]
        if self.lines is None:
            return reach @ self.values[leaves]
        return np.asarray(np.sum(reach * self.lines.answers(leaves, X), axis=1, keepdims=True))

    def answers_at(self, leaf: npt.NDArray[np.int32], X: npt.NDArray[Any]) -> FloatArray:
        """(n, v) what each row hears in the leaf given for it."""
        return self.values[leaf] if self.lines is None else self.lines.answers_at(leaf, X)[:, None]

    def visited(self, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """(n, m) whether a row passes a node on its one path."""
        out = np.zeros((X.shape[0], self.n_nodes), dtype=bool)
        node = self.apply(X)
        rows = np.arange(X.shape[0])
        for _ in range(self.depth + 1):
            out[rows, node] = True
            node = np.where(node > 0, self.topology.parent[node], 0)
        return out

    def keep(
        self,
        collapse: npt.NDArray[np.bool_],  # (m,) becomes a leaf
        stand_in: npt.NDArray[Any] | None = None,  # (m,) the child that takes a node's place; -1: the node stays
    ) -> Tree:
        """The tree of the nodes that remain, with the rows of the question tables that they ask."""
        instead = np.full(self.n_nodes, -1) if stand_in is None else stand_in
        nodes, arity = self.remaining(collapse, instead)
        asking = arity > 0
        table = np.where(asking, self.table[nodes], -1).astype(np.int8)
        row = np.zeros(nodes.size, dtype=np.int32)
        tables: list[AbstractQuestions] = []
        for index in np.unique(table[asking]):
            here = table == index
            row[here] = np.arange(here.sum())
            tables.append(self.tables[index].take(self.row[nodes[here]]))
            table[here] = len(tables) - 1
        values, statistics = self.values[nodes], self.statistics[nodes]
        lines = None if self.lines is None else self.lines.take(nodes)
        return Tree(Topology(arity), tuple(tables), table, row, statistics, values, self.n_features, lines)

    def remaining(
        self, collapse: npt.NDArray[np.bool_], stand_in: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The nodes that remain, breadth first, and how many children each keeps."""
        nodes, arity = [0], []
        for place, node in enumerate(nodes):  # grows while it is walked
            while stand_in[node] >= 0:
                node = int(stand_in[node])
            nodes[place] = node
            arity.append(0 if collapse[node] else int(self.topology.arity[node]))
            first = int(self.topology.first_child[node])
            nodes.extend(range(first, first + arity[-1]))
        return np.array(nodes), np.array(arity, dtype=np.int32)

    def with_values(self, statistics: FloatArray, values: FloatArray) -> Tree:
        return replace(self, statistics=statistics, values=values)

    def _visits(self, node: npt.NDArray[np.int32]) -> Iterator[tuple[npt.NDArray[Any], int]]:
        for level in self.topology.levels:
            for here in range(level.start, level.stop):
                rows = np.flatnonzero(node == here) if self.topology.arity[here] else np.empty(0, dtype=np.int64)
                if rows.size:
                    yield rows, here

    def _packed(self) -> tuple[Any, ...] | None:
        """The arrays the routing kernel reads, or None where a kind of question is unknown to it."""
        feature = np.zeros(0, dtype=np.int32)
        threshold = bias = np.zeros(0)
        weights = np.zeros((0, self.n_features))
        kind = np.zeros(len(self.tables) + 1, dtype=np.int8)
        kind[-1] = -1
        for index, table in enumerate(self.tables):
            if type(table) is Thresholds and not feature.size:
                kind[index], feature, threshold = 0, table.feature, table.threshold
            elif type(table) is Linears and not bias.size:
                kind[index], weights, bias = 1, table.weights, table.bias
            else:
                return None
        return self.topology.first_child, kind[self.table], self.row, feature, threshold, weights, bias
