"""Every impurity, split family, tree shape and target encoding there is, with parameter variants, and small data.

A new impurity or split family belongs here the day it is registered: tests/laws hold the lists against the registries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import reference
from softwood.impurity import AbstractImpurity, Entropy, Gamma, Gini, Newton, Poisson, Variance
from softwood.question import Linears, Thresholds
from softwood.split import AbstractSplit, Axis, Linear
from softwood.targets import (
    AbstractTargets,
    centred_moments,
    class_counts,
    gamma_sums,
    newton_pairs,
    poisson_sums,
    soft_labels,
)
from softwood.topology import Topology
from softwood.tree import Tree

# Targets: one small sample of each encoding.

N_ROWS, N_CLASSES = 12, 3


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _labels() -> np.ndarray:
    return np.array([0, 1, 2, 0, 1, 1, 2, 0, 0, 1, 2, 2])


def _moments(weight: np.ndarray | None = None) -> AbstractTargets:
    return centred_moments(_rng(1).normal(3.0, 2.0, N_ROWS), weight)[0]


TARGETS: dict[str, Callable[[], AbstractTargets]] = {
    "class counts": lambda: class_counts(_labels(), N_CLASSES),
    "weighted classes": lambda: class_counts(_labels(), N_CLASSES, _rng(2).uniform(0.2, 3.0, N_ROWS)),
    "soft labels": lambda: soft_labels(_rng(3).dirichlet([0.7] * N_CLASSES, N_ROWS)),
    "weighted soft labels": lambda: soft_labels(
        _rng(3).dirichlet([0.7] * N_CLASSES, N_ROWS), _rng(4).uniform(0.2, 3.0, N_ROWS)
    ),
    "moments": _moments,
    "weighted moments": lambda: _moments(_rng(5).uniform(0.2, 3.0, N_ROWS)),
    "counts": lambda: poisson_sums(_rng(9).poisson(2.0, N_ROWS))[0],
    "weighted counts": lambda: poisson_sums(_rng(9).poisson(2.0, N_ROWS), _rng(5).uniform(0.2, 3.0, N_ROWS))[0],
    "sizes": lambda: gamma_sums(_rng(10).gamma(2.0, 3.0, N_ROWS))[0],
    "weighted sizes": lambda: gamma_sums(_rng(10).gamma(2.0, 3.0, N_ROWS), _rng(5).uniform(0.2, 3.0, N_ROWS))[0],
    "newton": lambda: newton_pairs(_rng(6).normal(size=N_ROWS), _rng(7).uniform(0.1, 1.0, N_ROWS)),
    "weighted newton, three outputs": lambda: newton_pairs(
        _rng(6).normal(size=(N_ROWS, 3)), _rng(7).uniform(0.1, 1.0, (N_ROWS, 3)), _rng(8).uniform(0.2, 3.0, N_ROWS)
    ),
}
POISSON = ("counts", "weighted counts")
GAMMA = ("sizes", "weighted sizes")
CLASSES = ("class counts", "weighted classes", "soft labels", "weighted soft labels")
MOMENTS = ("moments", "weighted moments")
NEWTON = ("newton", "weighted newton, three outputs")


# Impurities.


@dataclass(frozen=True)
class Tsallis(AbstractImpurity):
    """An impurity as a user writes one: phi = N (1 - sum q^a) / (a - 1). At a = 2 it is gini."""

    order: float = 3.0

    def phi(self, S: Any) -> Any:
        return self._weight(S)[..., 0] * (1 - np.sum(self.value(S) ** self.order, axis=-1)) / (self.order - 1)

    def slope(self, S: Any) -> Any:
        q, a = self.value(S), self.order
        return (1 - a * q ** (a - 1) + (a - 1) * np.sum(q**a, axis=-1, keepdims=True)) / (a - 1)

    def value(self, S: Any) -> Any:
        N = self._weight(S)
        return S / np.where(N > 0, N, np.ones_like(N))

    def _weight(self, S: Any) -> Any:
        return np.sum(S, axis=-1, keepdims=True)


@dataclass(frozen=True)
class Spread(AbstractImpurity):
    """A user's own for numbers, by three methods: what Variance is, of S = (w, w y, w y^2)."""

    def phi(self, S: Any) -> Any:
        return S[..., 2] - self.value(S)[..., 0] * S[..., 1]

    def slope(self, S: Any) -> Any:
        mu = self.value(S)[..., 0]
        return np.stack([mu * mu, -2 * mu, np.ones_like(mu)], axis=-1)

    def value(self, S: Any) -> Any:
        w = S[..., :1]
        return S[..., 1:2] / np.where(w > 0, w, np.ones_like(w))


@dataclass(frozen=True)
class ImpurityCase:
    """An impurity and everything that is known about it without its code."""

    impurity: AbstractImpurity
    encodings: tuple[str, ...]  # of TARGETS
    phi: Callable[[reference.Row], float]
    slope: Callable[[reference.Row], reference.Row]
    value: Callable[[reference.Row], reference.Row]
    loss: Callable[[reference.Row, reference.Row], float]  # of a statistic, under a value
    prior: Callable[[int], np.ndarray] = np.zeros  # the statistics that a leaf adds to its own, from d

    def __str__(self) -> str:
        return str(self.impurity)


def _tsallis_phi(S: reference.Row, a: float) -> float:
    return sum(S) * (1 - sum(q_k**a for q_k in reference.shares(S))) / (a - 1)


def _tsallis_slope(S: reference.Row, a: float) -> list[float]:
    q = reference.shares(S)
    return [(1 - a * q_k ** (a - 1) + (a - 1) * sum(q_j**a for q_j in q)) / (a - 1) for q_k in q]


def _tsallis_loss(s: reference.Row, value: reference.Row, a: float) -> float:
    return sum(s_k * slope_k for s_k, slope_k in zip(s, _tsallis_slope(value, a), strict=True))


def _tsallis(order: float) -> ImpurityCase:
    return ImpurityCase(
        Tsallis(order),
        CLASSES,
        partial(_tsallis_phi, a=order),
        partial(_tsallis_slope, a=order),
        reference.shares,
        partial(_tsallis_loss, a=order),
    )


def _hessian_prior(d: int, reg_lambda: float) -> np.ndarray:
    return np.repeat([0.0, reg_lambda], d // 2)


def _newton(reg_lambda: float) -> ImpurityCase:
    return ImpurityCase(
        Newton(reg_lambda),
        NEWTON,
        partial(reference.newton_phi, reg_lambda=reg_lambda),
        partial(reference.newton_slope, reg_lambda=reg_lambda),
        partial(reference.newton_value, reg_lambda=reg_lambda),
        reference.second_order_loss,
        partial(_hessian_prior, reg_lambda=reg_lambda),
    )


IMPURITIES: list[ImpurityCase] = [
    ImpurityCase(Gini(), CLASSES, reference.gini_phi, reference.gini_slope, reference.shares, reference.brier_loss),
    ImpurityCase(
        Entropy(), CLASSES, reference.entropy_phi, reference.entropy_slope, reference.shares, reference.log_loss
    ),
    ImpurityCase(
        Variance(),
        MOMENTS,
        reference.variance_phi,
        reference.variance_slope,
        reference.mean_value,
        reference.squared_error,
    ),
    ImpurityCase(
        Poisson(),
        POISSON,
        reference.poisson_phi,
        reference.poisson_slope,
        reference.positive_mean,
        reference.poisson_loss,
    ),
    ImpurityCase(
        Gamma(), GAMMA, reference.gamma_phi, reference.gamma_slope, reference.positive_mean, reference.gamma_loss
    ),
    _newton(0.0),
    _newton(1.0),
    _newton(25.0),
    _tsallis(3.0),
    _tsallis(1.5),
]


def statistics(encoding: str) -> np.ndarray:
    """(N_ROWS, d) the rows' statistics of an encoding."""
    return TARGETS[encoding]().dense()


# Tree shapes. Children of nodes on one level are equally many.

TOPOLOGIES: dict[str, Topology] = {
    "leaf": Topology.leaf(),
    "stump": Topology.complete(1),
    "complete 3": Topology.complete(3),
    "ragged": Topology(np.array([2, 0, 2, 2, 2, 0, 0, 2, 0, 0, 0])),
    "left chain": Topology(np.array([2, 2, 0, 2, 0, 2, 0, 2, 0, 0, 0])),
    "right chain": Topology(np.array([2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 0])),
    "three children": Topology.complete(2, 3),
    "five children": Topology.complete(1, 5),
    "ragged three children": Topology(np.array([3, 0, 3, 0, 0, 3, 0, 0, 0, 0])),
    "mixed by level": Topology(np.array([3, 2, 0, 2, 5, 0, 0, 5] + [0] * 10)),
}
BINARY = {name: shape for name, shape in TOPOLOGIES.items() if (shape.n_scores == 1).all()}


# Split families.


@dataclass(frozen=True)
class SplitCase:
    """A family, and what its scores mean without its code."""

    name: str
    make: Callable[[Topology, int], AbstractSplit]  # from a shape and a number of columns
    scores: Callable[..., list[float]]  # theta, x -> the row's scores
    scores_gradient: Callable[..., list[list[float]]]
    sharpen: Callable[[np.ndarray, float], np.ndarray]  # theta with its scores that many times as large
    offsets: Callable[[int, int], slice]  # which of q parameters place a question and do not turn it; q, columns
    topologies: dict[str, Topology] = field(default_factory=lambda: TOPOLOGIES)

    def __str__(self) -> str:
        return self.name


def _axis_features(topology: Topology, n_features: int) -> np.ndarray:
    return np.arange(topology.internal.size) % n_features


def _axis_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reference scores of the family that ``make`` makes: columns in turn."""
    return lambda theta, x: function(theta, x, [k % len(x) for k in range(len(theta) // 2)])


SPLITS: list[SplitCase] = [
    SplitCase(
        "linear",
        lambda topology, n_features: Linear(),
        reference.linear_scores,
        reference.linear_scores_gradient,
        lambda theta, factor: theta * factor,
        lambda q, n_features: slice(n_features, q, n_features + 1),
    ),
    SplitCase(
        "axis",
        lambda topology, n_features: Axis(_axis_features(topology, n_features)),
        _axis_rows(reference.axis_scores),
        _axis_rows(reference.axis_scores_gradient),
        lambda theta, factor: (theta.reshape(-1, 2) * [factor, 1.0]).ravel(),
        lambda q, n_features: slice(1, q, 2),
        BINARY,
    ),
]


def random_theta(case: SplitCase, topology: Topology, n_features: int, seed: int = 0) -> np.ndarray:
    """Any theta: normal numbers, so that no parameter has a sign or a size of its own."""
    split = case.make(topology, n_features)
    return _rng(seed).normal(size=split.n_parameters(topology, n_features))


# Data.


def table(n: int = N_ROWS, p: int = 3, seed: int = 0) -> np.ndarray:
    """Standard normal rows."""
    return _rng(seed).normal(size=(n, p))


def wild_table(n: int = 600, seed: int = 0) -> np.ndarray:
    """Columns nobody should have: huge beside tiny, far from zero, constant, two values, heavy tails, integers."""
    rng = _rng(seed)
    return np.stack(
        [
            1e12 * rng.normal(size=n),
            1e-12 * rng.normal(size=n),
            1e8 + rng.normal(size=n),
            -1e8 + 1e-3 * rng.normal(size=n),
            np.full(n, 0.1),
            np.full(n, -3e7),
            rng.integers(0, 2, n).astype(float),
            rng.standard_t(2, n),
            rng.poisson(3.0, n).astype(float),
        ],
        axis=1,
    )


# Hard trees with questions of several kinds side by side.


def mixed_tree(topology: Topology, n_features: int, seed: int = 0) -> Tree:
    """Threshold and linear questions in turn, rows of the tables in no order."""
    rng = _rng(seed)
    internal = topology.internal
    thresholds = Thresholds(rng.integers(0, n_features, internal.size).astype(np.int32), rng.normal(size=internal.size))
    linears = Linears(rng.normal(size=(internal.size, n_features)), 0.3 * rng.normal(size=internal.size))
    kind = np.full(topology.n_nodes, -1, dtype=np.int8)
    kind[internal] = np.arange(internal.size) % 2
    row = np.zeros(topology.n_nodes, dtype=np.int32)
    row[internal] = rng.permutation(internal.size)
    return Tree(
        topology,
        (thresholds, linears),
        kind,
        row,
        rng.uniform(size=(topology.n_nodes, 2)),
        rng.uniform(size=(topology.n_nodes, 2)),
        n_features,
    )


QUESTIONS = {Thresholds.kind: Thresholds, Linears.kind: Linears}
TREES: dict[str, Tree] = {name: mixed_tree(shape, 5, seed) for seed, (name, shape) in enumerate(BINARY.items())}
