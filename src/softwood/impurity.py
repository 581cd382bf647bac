"""Impurities: concave functions phi of additive statistics S, the only objective of the library.

``phi`` is extensive (impurity times weight), ``slope`` its gradient, ``value`` what a leaf then predicts:

    gini      phi = N - sum S_k^2 / N            slope = 1 - 2 q_k + sum q^2     value q = S / N
    entropy   phi = -sum S_k log(S_k / N)        slope = -log q_k                value q
    variance  phi = S_yy - S_y^2 / S_1           slope = (mu^2, -2 mu, 1)        value mu = S_y / S_1
    newton    phi = -G^2 / (2 (H + lambda))      slope = (-v, v^2 / 2)           value -v, v = G / (H + lambda)

``slope(S) . s_i`` is the loss of row i under the leaf's best constant. An impurity never sees X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from softwood._namespace import Array, array_namespace

TINY = 1e-30  # keeps 0 / 0 at 0 in float32 as well


class AbstractImpurity(ABC):
    """A concave, 1-homogeneous function of additive statistics. Write your own by these three methods.

    All three take statistics with the d numbers of a node on the last axis and any axes before it, and must work
    on NumPy arrays of float32 and float64; built on array API functions they work on other array libraries too.
    """

    core_name: ClassVar[str | None] = None  # the compiled kernel's name for it; None: the array twin is used
    splits_pure: ClassVar[bool] = False  # whether cutting a node of impurity 0 can still gain (newton: yes)

    @abstractmethod
    def phi(self, S: Array) -> Array:
        """Impurity times weight, shape ``S.shape[:-1]``; 0 where S is 0."""

    @abstractmethod
    def slope(self, S: Array) -> Array:
        """Gradient of phi, the shape of S; finite everywhere, 0-weight nodes included."""

    @abstractmethod
    def value(self, S: Array) -> Array:
        """Prediction of a leaf, shape ``(..., v)``; finite everywhere."""

    def magnitude(self, S: Array) -> Array:
        """Size of the numbers phi subtracts, the shape of phi: a gain far below it is rounding, not a gain."""
        xp = array_namespace(S)
        return xp.abs(self.phi(S)) + xp.sum(xp.abs(S * self.slope(S)), axis=-1)

    def core_parameters(self) -> tuple[float, ...]:
        """What the compiled kernel needs besides the name."""
        return ()


@dataclass(frozen=True)
class Gini(AbstractImpurity):
    """Chance that two draws from a node differ in class; equals the Brier score of its class shares."""

    core_name: ClassVar[str | None] = "gini"

    def phi(self, S: Array) -> Array:
        xp = array_namespace(S)
        N = xp.sum(S, axis=-1)
        return N - xp.sum(S * S, axis=-1) / (N + TINY)

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        q = class_shares(S)
        return 1.0 - 2.0 * q + xp.sum(q * q, axis=-1, keepdims=True)

    def value(self, S: Array) -> Array:
        return class_shares(S)

    def magnitude(self, S: Array) -> Array:
        return array_namespace(S).sum(S, axis=-1)


@dataclass(frozen=True)
class Entropy(AbstractImpurity):
    """Shannon entropy in nats; equals the log loss of a node's class shares."""

    core_name: ClassVar[str | None] = "entropy"

    def phi(self, S: Array) -> Array:
        xp = array_namespace(S)
        return xp.sum(S * self.slope(S), axis=-1)

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        q = class_shares(S)
        # An absent class would have an infinite slope: 1e-12 caps it at 27.6 nats.
        return -xp.log(xp.where(q > 1e-12, q, 1e-12 * xp.ones_like(q)))

    def value(self, S: Array) -> Array:
        return class_shares(S)

    def magnitude(self, S: Array) -> Array:
        return array_namespace(S).sum(S, axis=-1)


@dataclass(frozen=True)
class Variance(AbstractImpurity):
    """Sum of squares about the mean of S = (w, w y, w y^2); y must be centred before (see targets)."""

    core_name: ClassVar[str | None] = "variance"

    def phi(self, S: Array) -> Array:
        xp = array_namespace(S)
        rest = S[..., 2] - S[..., 1] * S[..., 1] / (S[..., 0] + TINY)
        return xp.where(rest > 0, rest, 0 * rest)  # rounding may leave -1e-17

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        mu = S[..., 1] / (S[..., 0] + TINY)
        return xp.stack([mu * mu, -2.0 * mu, xp.ones_like(mu)], axis=-1)

    def value(self, S: Array) -> Array:
        return S[..., 1:2] / (S[..., 0:1] + TINY)

    def magnitude(self, S: Array) -> Array:
        return S[..., 2]


@dataclass(frozen=True)
class Newton(AbstractImpurity):
    """Second-order model of any loss on S = (G_1 .. G_k, H_1 .. H_k); ``reg_lambda`` is a prior on each H.

    phi is negative, so it can gain by cutting and lose by the prior: that loss is the stopping rule.
    """

    reg_lambda: float = 1.0
    core_name: ClassVar[str | None] = "newton"
    splits_pure: ClassVar[bool] = True

    def phi(self, S: Array) -> Array:
        xp = array_namespace(S)
        G, v = self._steps(S)
        return -0.5 * xp.sum(G * v, axis=-1)

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        _, v = self._steps(S)
        return xp.concat([-v, 0.5 * v * v], axis=-1)

    def value(self, S: Array) -> Array:
        return -self._steps(S)[1]

    def core_parameters(self) -> tuple[float, ...]:
        return (float(self.reg_lambda),)

    def _steps(self, S: Array) -> tuple[Array, Array]:
        half = S.shape[-1] // 2
        G, H = S[..., :half], S[..., half:]
        return G, G / (H + (self.reg_lambda + TINY))


def class_shares(S: Array) -> Array:
    """q = S / N, the uniform-free shares of the classes; 0 where the node is empty."""
    xp = array_namespace(S)
    return S / (xp.sum(S, axis=-1, keepdims=True) + TINY)


IMPURITIES: dict[str, type[AbstractImpurity]] = {
    "gini": Gini,
    "entropy": Entropy,
    "variance": Variance,
    "newton": Newton,
}


def as_impurity(impurity: str | AbstractImpurity) -> AbstractImpurity:
    """Look a name up, or return the instance."""
    if isinstance(impurity, AbstractImpurity):
        return impurity
    if isinstance(impurity, str) and impurity in IMPURITIES:
        return IMPURITIES[impurity]()
    raise ValueError(
        f"impurity must be one of {sorted(IMPURITIES)} or an instance of AbstractImpurity; got {impurity!r}."
    )
