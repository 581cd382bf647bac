"""Soft trees on rows for tests of kernels: every kind of targets, shapes of all sorts, and both ways to sweep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import zoo
from softwood.impurity import AbstractImpurity, Entropy, Gini, Newton, Variance
from softwood.objective import expected_impurity, gates, sweep_down
from softwood.source import ArraySource
from softwood.split import Linear
from softwood.targets import AbstractTargets, centred_moments, class_counts, newton_pairs, soft_labels
from softwood.topology import Topology
from softwood.train.engine import ArrayEngine, CoreEngine

PROMISE = 1e-5

SHAPES: dict[str, Topology] = {
    "stump": Topology.complete(1),
    "complete 3": Topology.complete(3),
    "complete 6": Topology.complete(6),
    "ragged": zoo.TOPOLOGIES["ragged"],
    "left chain": Topology(np.array([2] + [2, 0] * 12 + [0, 0])),
    "right chain": Topology(np.array([2] + [0, 2] * 12 + [0, 0])),
    "deep and ragged": Topology(np.array([2, 2, 2, 2, 0, 2, 2] + [0, 2] * 5 + [2, 0] * 5 + [0] * 6)),
}


def targets(kind: str, X: np.ndarray, seed: int = 1) -> AbstractTargets:
    """Targets that the columns tell something about: the gradient of noise is a small difference of large sums."""
    rng, n = np.random.default_rng(seed), len(X)
    weight = rng.uniform(0.3, 2.0, n)
    score = X[:, 0] - X[:, -1] * X[:, 0] + 0.3 * rng.normal(size=n)
    if kind.startswith("classes"):
        n_classes = int(kind.split()[1])
        return class_counts(np.digitize(score, np.linspace(-2, 2, n_classes - 1)), n_classes, weight)
    if kind == "soft labels":
        Q = rng.dirichlet(np.full(5, 0.7), n) * np.exp(score[:, None] * np.linspace(-1, 1, 5))
        return soft_labels(Q / Q.sum(axis=1, keepdims=True), weight)
    if kind == "moments":
        return centred_moments(1e6 + 2 * score, weight)[0]
    outputs = int(kind.split()[1])
    return newton_pairs(
        rng.normal(0.5, 1.0, (n, outputs)) + score[:, None], rng.uniform(0.1, 1.0, (n, outputs)), weight
    )


CASES: dict[str, tuple[str, AbstractImpurity]] = {
    "gini, coded": ("classes 3", Gini()),
    "gini, 70 classes": ("classes 70", Gini()),
    "gini, dense": ("soft labels", Gini()),
    "entropy, coded": ("classes 3", Entropy()),
    "entropy, 70 classes": ("classes 70", Entropy()),
    "entropy, dense": ("soft labels", Entropy()),
    "variance": ("moments", Variance()),
    "newton": ("newton 1", Newton(0.0)),
    "newton of 3, prior": ("newton 3", Newton(2.5)),
}


@dataclass
class Problem:
    """Rows, a tree and a theta, with both ways to sweep them."""

    source: ArraySource
    topology: Topology
    impurity: AbstractImpurity
    theta: np.ndarray

    @classmethod
    def of(cls, case: str, shape: Topology, n: int, p: int, sharpness: float = 1.5, n_threads: int = 1) -> Problem:
        kind, impurity = CASES[case]
        rng = np.random.default_rng(n + p)
        rows = np.arange(n)
        ones, content = np.ones(n, np.int32), rows.astype(np.uint64)
        X = rng.normal(size=(n, p))
        source = ArraySource(X, rows, ones, content, targets(kind, X), n_threads)
        theta = sharpness / np.sqrt(p) * rng.normal(size=(shape.internal.size, p + 1))
        return cls(source, shape, impurity, theta.astype(np.float32).ravel())

    def core(self, tolerance: float = 0.0) -> CoreEngine:
        return CoreEngine(self.source, self.topology, Linear(), self.impurity, tolerance)

    def arrays(self) -> ArrayEngine:
        return ArrayEngine(self.source, self.topology, Linear(), self.impurity)

    def exact(self) -> tuple[float, np.ndarray]:
        """Objective and gradient per unit of weight, in float64 throughout."""
        Z, s = self.source.Z.astype(np.float64), self.source.targets.dense()
        found = expected_impurity(self.theta.astype(np.float64), Z, s, self.topology, Linear(), self.impurity)
        weight = self.source.targets.weight.sum()
        return found.objective / weight, found.theta_bar / weight

    def reach(self) -> np.ndarray:
        Z = Linear().scores(self.theta.astype(np.float64), self.source.Z.astype(np.float64), self.topology)
        return sweep_down(gates(Z, self.topology), self.topology)


def error(found: Any, exact: Any) -> float:
    return float(np.linalg.norm(np.subtract(found, exact)) / np.linalg.norm(exact))
