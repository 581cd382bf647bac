"""Every impurity, split family, tree shape and target encoding there is, with parameter variants, and small data.

A new impurity or split family belongs here the day it is registered: tests/laws hold the lists against the registries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import reference
from softwood._namespace import array_namespace
from softwood.impurity import AbstractImpurity, Entropy, Gamma, Gini, Newton, Poisson, Variance
from softwood.question import Kernels, Linears, Networks, Thresholds
from softwood.split import (
    AbstractSplit,
    Axis,
    Custom,
    Flowing,
    Kernel,
    Layered,
    Linear,
    Multiway,
    Network,
    Pretransform,
)
from softwood.split.dense import AbstractDense
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
SOME = {name: TOPOLOGIES[name] for name in ("leaf", "ragged", "ragged three children", "mixed by level")}


# Split families.


@dataclass(frozen=True)
class SplitCase:
    """A family, and what its scores mean without its code."""

    name: str
    make: Callable[[Topology, int], AbstractSplit]  # from a shape and a number of columns
    scores: Callable[..., list[Any]]  # theta, x, shape -> the row's scores
    scores_gradient: Callable[..., list[list[float]]]
    sharpen: Callable[..., np.ndarray]  # theta, factor, shape, columns -> theta with scores that much larger
    offsets: Callable[[Topology, int], Any]  # which parameters place a question and do not turn it; shape, columns
    topologies: dict[str, Topology] = field(default_factory=lambda: TOPOLOGIES)

    def __str__(self) -> str:
        return self.name


def _axis_features(topology: Topology, n_features: int) -> np.ndarray:
    return np.arange(topology.internal.size) % n_features


def _axis_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reference scores of the family that ``make`` makes: columns in turn."""
    return lambda theta, x, topology: function(theta, x, [k % len(x) for k in range(len(theta) // 2)])


def _linear_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda theta, x, topology: function(theta, x)


def _dense_blocks(split: AbstractDense, topology: Topology, p: int) -> list[tuple[int, int]]:
    """(units of all nodes, numbers of each) of one layer after another."""
    sizes, n_nodes = (p, *split.hidden), topology.internal.size
    hidden = [(n_nodes * units, width + 1) for width, units in pairwise(sizes)]
    return [*hidden, (int(topology.n_scores.sum()), sizes[-1] + 1)]


def _dense(name: str, split: AbstractDense, topologies: dict[str, Topology] = TOPOLOGIES) -> SplitCase:
    """A family of networks, each node its own."""

    def scores(theta: list[Any], x: list[float], topology: Topology) -> list[Any]:
        return reference.network_scores(theta, x, topology.n_scores.tolist(), split.hidden, split.activation)

    def sharpened(theta: np.ndarray, factor: float, topology: Topology, p: int) -> np.ndarray:
        outputs = np.prod(_dense_blocks(split, topology, p)[-1])
        return np.concatenate([theta[: theta.size - outputs], theta[theta.size - outputs :] * factor])

    def offsets(topology: Topology, p: int) -> np.ndarray:
        return np.cumsum(np.repeat(*np.array(_dense_blocks(split, topology, p)).T[::-1])) - 1

    return _case(name, split, scores, sharpened, offsets, topologies)


def _case(
    name: str,
    split: AbstractSplit,
    scores: Callable[..., list[Any]],
    sharpen: Callable[..., np.ndarray],
    offsets: Callable[[Topology, int], Any],
    topologies: dict[str, Topology],
) -> SplitCase:
    """A family whose reference scores are written for complex numbers as well."""
    return SplitCase(
        name,
        lambda topology, n_features: split,
        scores,
        lambda theta, x, topology: reference.complex_step(lambda moved: scores(moved, x, topology), theta),
        sharpen,
        offsets,
        topologies,
    )


def _flowing(name: str, split: Flowing) -> SplitCase:
    def scores(theta: list[Any], x: list[float], topology: Topology) -> list[Any]:
        return reference.flowing_scores(theta, x, topology.arity.tolist(), split.n_units, split.activation)

    def sharpened(theta: np.ndarray, factor: float, topology: Topology, p: int) -> np.ndarray:
        at = theta.size - int(topology.n_scores.sum()) * (split.n_units + 1)
        return np.concatenate([theta[:at], theta[at:] * factor])

    def offsets(topology: Topology, p: int) -> np.ndarray:
        m, h = topology.internal.size, split.n_units
        first, rest = h * min(m, 1), h * max(m - 1, 0) + int(topology.n_scores.sum())
        return np.cumsum([p + 1] * first + [h + 1] * rest, dtype=int) - 1

    return _case(name, split, scores, sharpened, offsets, TOPOLOGIES)


def cone(theta: Any, X: Any) -> Any:
    """A user's question: weights . x - |weight_0 x_0| + offset."""
    xp = array_namespace(X)
    return X @ theta[:-1] - xp.abs(X[:, 0] * theta[0]) + theta[-1]


def cone_vjp(theta: Any, X: Any, z_bar: Any) -> Any:
    xp = array_namespace(X)
    bent = -xp.sign(theta[:1]) * xp.sum(z_bar * xp.abs(X[:, 0]))
    straight = X.T @ z_bar
    return xp.concat([straight[:1] + bent, straight[1:], xp.sum(z_bar)[None]])


def n_cone(n_features: int) -> int:
    return n_features + 1


def cone_weights(n_features: int) -> list[bool]:
    return [True] * n_features + [False]


CONE = Custom(cone, cone_vjp, n_cone, is_weight=cone_weights)


def _cone_scores(theta: list[Any], x: list[float], topology: Topology) -> list[Any]:
    rows = [theta[start : start + len(x) + 1] for start in range(0, len(theta), len(x) + 1)]
    sizes = [abs(x[0]) * (row[0] if row[0].real > 0 else -row[0]) for row in rows]
    return [reference.layer([row], x)[0] - size for row, size in zip(rows, sizes, strict=True)]


def _kernel(name: str, kernel: str, gamma: float, degree: int) -> SplitCase:
    """Four landmarks."""

    def scores(theta: list[Any], x: list[float], topology: Topology) -> list[Any]:
        return reference.kernel_scores(theta, x, table(4, len(x), 9).tolist(), kernel, gamma, degree)

    return replace(
        _case(
            name,
            Kernel(),
            scores,
            lambda theta, factor, topology, p: theta * factor,
            lambda topology, p: slice(4, None, 5),
            BINARY,
        ),
        make=lambda topology, p: Kernel(kernel, gamma=gamma, degree=degree, points=table(4, p, 9)),
    )


def _layered(name: str, *cases: SplitCase) -> SplitCase:
    """The families of some cases from the root down; a level is a chain of its questions."""
    split = Layered(tuple(case.make(TOPOLOGIES["leaf"], 0) for case in cases))

    def parts(theta: Any, topology: Topology, p: int) -> Iterator[tuple[SplitCase, Topology, Any, int]]:
        """Case, chain, theta of each level, and where it starts."""
        start = 0
        for depth, nodes in enumerate(topology.levels[:-1]):
            case, arity = cases[min(depth, len(cases) - 1)], topology.arity[nodes]
            chain = _chain(arity[arity > 0].tolist())
            stop = start + case.make(chain, p).n_parameters(chain, p)
            yield case, chain, theta[start:stop], start
            start = stop

    def scores(theta: list[Any], x: list[float], topology: Topology) -> list[Any]:
        levels = parts(theta, topology, len(x))
        return [score for case, chain, part, _ in levels for score in case.scores(part, x, chain)]

    def sharpened(theta: np.ndarray, factor: float, topology: Topology, p: int) -> np.ndarray:
        levels = parts(theta, topology, p)
        return np.concatenate([theta[:0], *(case.sharpen(part, factor, chain, p) for case, chain, part, _ in levels)])

    def offsets(topology: Topology, p: int) -> np.ndarray:
        places = np.arange(split.n_parameters(topology, p))
        levels = parts(places, topology, p)
        return np.concatenate([places[:0], *(part[case.offsets(chain, p)] for case, chain, part, _ in levels)])

    return _case(name, split, scores, sharpened, offsets, SOME)


def _chain(arity: list[int]) -> Topology:
    """A tree of one question per level."""
    levels = [[count] + [0] * (above - 1) for count, above in zip(arity, [1, *arity[:-1]], strict=True)]
    return Topology(np.concatenate([*levels, [0] * arity[-1]]))


LINEAR = SplitCase(
    "linear",
    lambda topology, n_features: Linear(),
    _linear_rows(reference.linear_scores),
    _linear_rows(reference.linear_scores_gradient),
    lambda theta, factor, topology, p: theta * factor,
    lambda topology, n_features: slice(n_features, None, n_features + 1),
)
SPLITS: list[SplitCase] = [
    LINEAR,
    SplitCase(
        "axis",
        lambda topology, n_features: Axis(_axis_features(topology, n_features)),
        _axis_rows(reference.axis_scores),
        _axis_rows(reference.axis_scores_gradient),
        lambda theta, factor, topology, p: (theta.reshape(-1, 2) * [factor, 1.0]).ravel(),
        lambda topology, n_features: slice(1, None, 2),
        BINARY,
    ),
    _dense("pretransform", Pretransform(3)),
    *(
        _dense(f"pretransform, {activation}", Pretransform(2, activation), SOME)
        for activation in ("relu", "sigmoid", "identity")
    ),
    _dense("network", Network((3, 2)), SOME),
    _dense("network, relu, three hidden", Network((2, 3, 2), "relu"), SOME),
    _dense("multiway", Multiway(3)),
    _flowing("flowing", Flowing(2)),
    replace(_flowing("flowing, relu", Flowing(3, "relu")), topologies=SOME),
    _kernel("kernel, rbf", "rbf", 0.1, 1),
    _kernel("kernel, polynomial", "polynomial", 0.4, 3),
    _case(
        "a user's functions",
        CONE,
        _cone_scores,
        lambda theta, factor, topology, p: theta * factor,
        lambda topology, p: slice(p, None, p + 1),
        {name: BINARY[name] for name in ("leaf", "stump", "ragged")},
    ),
    _layered("layered", LINEAR, _dense("below", Pretransform(2))),
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


QUESTIONS = {kind.kind: kind for kind in (Thresholds, Linears, Networks, Kernels)}
TREES: dict[str, Tree] = {name: mixed_tree(shape, 5, seed) for seed, (name, shape) in enumerate(BINARY.items())}
