"""GrowHard: classic CART on any impurity, on binned columns; always grown anew from the root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softwood import _core
from softwood.impurity import AbstractImpurity
from softwood.question import Thresholds
from softwood.source import ArraySource
from softwood.topology import Topology
from softwood.train.base import AbstractTrainer, Run
from softwood.train.scan import ArrayGrower, GrowLimits, GrownTree
from softwood.tree import Tree


@dataclass(frozen=True)
class GrowHard(AbstractTrainer):
    """Cut greedily while the impurity falls; with ``max_leaf_nodes`` the cut that gains most comes first.

    ``min_samples_*`` count the caller's rows; ``min_impurity_decrease`` is per unit of the total weight, as in
    scikit-learn, and in the units of the statistics (a standardised target: of its variance).
    """

    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    max_bins: int = 255

    def train(self, tree: Tree, source: ArraySource, impurity: AbstractImpurity, run: Run) -> Tree:
        grown = self._grow(source, impurity, run.n_threads)
        run.progress(1.0, float(impurity.phi(grown.statistics[grown.arity == 0]).sum()) / _total_weight(source))
        return Tree.of_one_kind(
            Topology(grown.arity),
            Thresholds(grown.feature, grown.threshold),
            grown.statistics,
            impurity.value(grown.statistics),
            source.p,
        )

    def _grow(self, source: ArraySource, impurity: AbstractImpurity, n_threads: int) -> GrownTree:
        limits = self._limits(_total_weight(source))
        if impurity.core_name is None:
            s = np.asarray(source.targets.dense(), dtype=np.float64)
            return ArrayGrower(source.bins(self.max_bins), s, source.copies, impurity, limits).grow()
        return grow_compiled(source, impurity, limits, self.max_bins, n_threads)

    def _limits(self, total_weight: float) -> GrowLimits:
        return GrowLimits(
            -1 if self.max_depth is None else self.max_depth,
            -1 if self.max_leaf_nodes is None else self.max_leaf_nodes,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_impurity_decrease * total_weight,
        )


def grow_compiled(
    source: ArraySource, impurity: AbstractImpurity, limits: GrowLimits, max_bins: int, n_threads: int
) -> GrownTree:
    """Growth in the compiled core."""
    targets, shared = source.targets, core_call(source, impurity, limits, max_bins, n_threads)
    classes, _ = targets.core()
    if classes is None:
        grown = _core.grow_dense(*shared, targets.dense())
    else:
        grown = _core.grow_coded(*shared, classes, targets.weight, targets.d)
    arity, feature, threshold, statistics = grown
    return GrownTree(arity, feature, threshold, statistics.reshape(arity.size, -1))


def core_call(
    source: ArraySource, impurity: AbstractImpurity, limits: GrowLimits, max_bins: int, n_threads: int
) -> tuple[Any, ...]:
    """What every kernel on binned columns is given first."""
    bins = source.bins(max_bins)
    parameter = (*impurity.core_parameters(), 0.0)[0]
    return (
        bins.codes,
        bins.offsets,
        bins.low,
        bins.high,
        source.copies,
        impurity.core_name,
        parameter,
        limits.as_tuple(),
        n_threads,
    )


def _total_weight(source: ArraySource) -> float:
    return float(source.targets.weight.sum())
