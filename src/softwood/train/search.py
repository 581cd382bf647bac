"""CoordinateDescent and LocalSearch: exact search on the hard global impurity of a tree of threshold questions.

The gradient is the wrong tool for trees that must stay axis-aligned: the optimum of the soft objective is not near a
question of one column, and snapping to one costs more than training gains. Here the objective is the impurity of the
hard leaves itself, and one scan finds the best question of a node while everything below it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softwood import _core
from softwood.impurity import AbstractImpurity
from softwood.question import Thresholds
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.train.grow_hard import core_call
from softwood.train.recut import ArraySearch, DrawArray, questions_of
from softwood.train.scan import FloatArray, GrowLimits, GrownTree
from softwood.tree import Tree


@dataclass(frozen=True)
class CoordinateDescent(AbstractTrainer):
    """Recut node after node while that lowers the impurity of the leaves; no leaf is cut further.

    The result cannot be improved by another question at any one node. Branches that lose all rows go.
    """

    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_bins: int = 255

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        limits = GrowLimits(0, -1, self.min_samples_split, self.min_samples_leaf, 0.0)
        return searched(tree, source, impurity, run, limits, self.max_bins, n_rounds=0)


@dataclass(frozen=True)
class LocalSearch(AbstractTrainer):
    """Iterated local search: grow, recut to a fixpoint, then ``n_rounds`` times draw one question anew.

    A round draws a node above the last level, a column and one of the node's rows as the threshold, grows what is
    below it greedily, recuts to a fixpoint, and is kept if the impurity of the leaves has not risen. The limits are
    those of GrowHard.
    """

    n_rounds: int = 20
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    max_bins: int = 255

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        limits = GrowLimits(
            -1 if self.max_depth is None else self.max_depth,
            -1 if self.max_leaf_nodes is None else self.max_leaf_nodes,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_impurity_decrease * float(source.targets.weight.sum()),
        )
        return searched(tree, source, impurity, run, limits, self.max_bins, self.n_rounds)


def searched(
    tree: Tree,
    source: ArraySource,
    impurity: AbstractImpurity,
    run: Run,
    limits: GrowLimits,
    max_bins: int,
    n_rounds: int,
) -> Tree:
    """The best tree found from the given one."""
    start = _thresholds(tree)
    draws = run.rng.integers(2**63, size=(n_rounds, 3), dtype=np.uint64)
    search = _search_compiled if impurity.core_name else _search_arrays
    found, J = search(start, source, impurity, limits, max_bins, draws, run.n_threads)
    per_weight = J / float(source.targets.weight.sum())
    run.history.extend(per_weight.tolist())
    run.progress(1.0, float(per_weight[-1]))
    questions = Thresholds(found.feature, found.threshold)
    S = found.statistics
    return Tree.of_one_kind(Topology(found.arity), questions, S, impurity.value(S), source.p)


def _thresholds(tree: Tree) -> GrownTree:
    """The tree's questions in the order of its nodes; other kinds than thresholds are refused."""
    feature = np.zeros(tree.topology.internal.size, dtype=np.int32)
    threshold = np.zeros(feature.size)
    for k, node in enumerate(tree.topology.internal):
        table, row = tree.question(int(node))
        if table.kind != Thresholds.kind:
            raise ValueError(
                f"Local search starts from trees of threshold questions; this one asks a {table.kind} question. "
                "Start it from a tree of one leaf or from GrowHard."
            )
        weights, offset = table.slants(np.array([row]), tree.n_features)
        feature[k], threshold[k] = int(np.argmax(weights[0])), -offset[0]
    return GrownTree(tree.topology.arity, feature, threshold, tree.statistics)


def _search_compiled(
    start: GrownTree,
    source: ArraySource,
    impurity: AbstractImpurity,
    limits: GrowLimits,
    max_bins: int,
    draws: DrawArray,
    n_threads: int,
) -> tuple[GrownTree, FloatArray]:
    questions = questions_of(start.arity, start.feature, start.threshold, source.bins(max_bins))
    shared = core_call(source, impurity, limits, max_bins, n_threads)
    classes, _ = source.targets.core()
    if classes is None:
        found = _core.search_dense(*shared, *questions, draws, source.targets.dense())
    else:
        found = _core.search_coded(*shared, *questions, draws, classes, source.targets.weight, source.targets.d)
    (arity, feature, threshold, statistics), history = found
    return GrownTree(arity, feature, threshold, statistics.reshape(arity.size, -1)), history


def _search_arrays(
    start: GrownTree,
    source: ArraySource,
    impurity: AbstractImpurity,
    limits: GrowLimits,
    max_bins: int,
    draws: DrawArray,
    n_threads: int,
) -> tuple[GrownTree, FloatArray]:
    bins = source.bins(max_bins)
    s = np.asarray(source.targets.dense(), dtype=np.float64)
    twin = ArraySearch(bins, s, source.copies, impurity, limits)
    return twin.run(*questions_of(start.arity, start.feature, start.threshold, bins), draws)
