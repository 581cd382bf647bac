"""Impurities: concave functions phi of additive statistics S, the only objective of the library.

``phi`` is extensive (impurity times weight), ``slope`` its gradient, ``value`` what a leaf then predicts:

    gini      phi = N - sum S_k^2 / N            slope = 1 - 2 q_k + sum q^2     value q = S / N
    entropy   phi = -sum S_k log(S_k / N)        slope = -log q_k                value q
    variance  phi = S_yy - S_y^2 / S_1           slope = (mu^2, -2 mu, 1)        value mu = S_y / S_1
    newton    phi = -G^2 / (2 (H + lambda))      slope = (-v, v^2 / 2)           value -v, v = G / (H + lambda)
    poisson   phi = S_ylogy - S_y log mu         slope = (mu, -1 - log mu, 1)    value mu = S_y / S_1
    gamma     phi = S_1 log mu - S_logy          slope = (log mu - 1, 1/mu, -1)  value mu

``slope(S) . s_i`` is the loss of row i under the leaf's best constant. An impurity never sees X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from softwood._namespace import Array, array_namespace

TINY = 1e-30  # keeps 0 / 0 at 0 in float32 as well
LEAST_SHARE = 1e-12  # an absent class would have an infinite slope: this caps it at 27.6 nats


class AbstractImpurity(ABC):
    """A concave, 1-homogeneous function of additive statistics. Write your own by these three methods.

    All three take statistics with the d numbers of a node on the last axis and any axes before it, and must work
    on NumPy arrays of float32 and float64; built on array API functions they work on other array libraries too.
    """

    core_name: ClassVar[str | None] = None  # the compiled kernel's name for it; None: the array twin is used
    splits_pure: ClassVar[bool] = False  # whether cutting a node of impurity 0 can still gain (newton: yes)
    encoding: ClassVar[str | None] = None  # the statistics it reads, by name; None: whatever an estimator makes of y

    @abstractmethod
    def phi(self, S: Array) -> Array:
        """Impurity times weight, shape ``S.shape[:-1]``; 0 where S is 0."""

    @abstractmethod
    def slope(self, S: Array) -> Array:
        """Gradient of phi, the shape of S; finite everywhere, 0-weight nodes included."""

    @abstractmethod
    def value(self, S: Array) -> Array:
        """Prediction of a leaf, shape ``(..., v)``; finite everywhere."""

    def loss(self, s: Array, value: Array) -> Array:
        """Loss of statistics under a leaf's value, the shape of phi; ``phi(S)`` is the least there is, at ``value(S)``.

        As it stands it is for values that are statistics themselves, such as class shares; others override it.
        """
        if value.shape[-1] != s.shape[-1]:
            raise NotImplementedError(
                f"{type(self).__name__} has {value.shape[-1]} numbers in a value and {s.shape[-1]} in a statistic, so "
                "its loss does not follow from its slope. Give it a method loss(s, value)."
            )
        return array_namespace(s).sum(s * self.slope(value), axis=-1)

    def prior(self, d: int) -> tuple[float, ...]:
        """The statistics that every leaf adds to its own."""
        return (0.0,) * d

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
    encoding: ClassVar[str | None] = "classes"

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

    def loss(self, s: Array, value: Array) -> Array:
        """The Brier score."""
        xp = array_namespace(s)
        return xp.sum(s * (1.0 - 2.0 * value + xp.sum(value * value, axis=-1, keepdims=True)), axis=-1)

    def magnitude(self, S: Array) -> Array:
        return array_namespace(S).sum(S, axis=-1)


@dataclass(frozen=True)
class Entropy(AbstractImpurity):
    """Shannon entropy in nats; equals the log loss of a node's class shares."""

    core_name: ClassVar[str | None] = "entropy"
    encoding: ClassVar[str | None] = "classes"

    def phi(self, S: Array) -> Array:
        xp = array_namespace(S)
        return xp.sum(S * self.slope(S), axis=-1)

    def slope(self, S: Array) -> Array:
        return -_log(class_shares(S))

    def value(self, S: Array) -> Array:
        return class_shares(S)

    def loss(self, s: Array, value: Array) -> Array:
        """The log loss."""
        return -array_namespace(s).sum(s * _log(value), axis=-1)

    def magnitude(self, S: Array) -> Array:
        return array_namespace(S).sum(S, axis=-1)


@dataclass(frozen=True)
class Variance(AbstractImpurity):
    """Sum of squares about the mean of S = (w, w y, w y^2); y must be centred before (see targets)."""

    core_name: ClassVar[str | None] = "variance"
    encoding: ClassVar[str | None] = "numbers"

    def phi(self, S: Array) -> Array:
        return _not_below_zero(S[..., 2] - S[..., 1] * S[..., 1] / (S[..., 0] + TINY))

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        mu = S[..., 1] / (S[..., 0] + TINY)
        return xp.stack([mu * mu, -2.0 * mu, xp.ones_like(mu)], axis=-1)

    def value(self, S: Array) -> Array:
        return S[..., 1:2] / (S[..., 0:1] + TINY)

    def loss(self, s: Array, value: Array) -> Array:
        """The squared error."""
        mu = value[..., 0]
        return s[..., 2] - 2.0 * mu * s[..., 1] + mu * mu * s[..., 0]

    def magnitude(self, S: Array) -> Array:
        return S[..., 2]


@dataclass(frozen=True)
class Newton(AbstractImpurity):
    """Second-order model of any loss on S = (G_1 .. G_k, H_1 .. H_k); ``reg_lambda`` is a prior on each H.

    phi is negative, so it can gain by cutting and lose by the prior: that loss is the stopping rule.
    """

    reg_lambda: float = 1.0
    core_name: ClassVar[str | None] = "newton"
    encoding: ClassVar[str | None] = "newton"
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

    def loss(self, s: Array, value: Array) -> Array:
        """g u + h u^2 / 2: the loss's second-order model, where a leaf adds u."""
        half = s.shape[-1] // 2
        return array_namespace(s).sum(s[..., :half] * value + 0.5 * s[..., half:] * value * value, axis=-1)

    def prior(self, d: int) -> tuple[float, ...]:
        return (0.0,) * (d // 2) + (float(self.reg_lambda),) * (d // 2)

    def core_parameters(self) -> tuple[float, ...]:
        return (float(self.reg_lambda),)

    def _steps(self, S: Array) -> tuple[Array, Array]:
        half = S.shape[-1] // 2
        G, H = S[..., :half], S[..., half:]
        return G, G / (H + (self.reg_lambda + TINY))


@dataclass(frozen=True)
class Poisson(AbstractImpurity):
    """Half the Poisson deviance about the mean of S = (w, w y, w y log y), y >= 0: for counts and rates."""

    encoding: ClassVar[str | None] = "poisson"

    def phi(self, S: Array) -> Array:
        return _not_below_zero(S[..., 2] - S[..., 1] * _log(_mean(S)))

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        mu = _mean(S)
        return xp.stack([mu, -1.0 - _log(mu), xp.ones_like(mu)], axis=-1)

    def value(self, S: Array) -> Array:
        return _mean(S)[..., None]

    def loss(self, s: Array, value: Array) -> Array:
        """Half the Poisson deviance: y log(y / mu) - y + mu."""
        mu = value[..., 0]
        return s[..., 2] - s[..., 1] * (1.0 + _log(mu)) + s[..., 0] * mu


@dataclass(frozen=True)
class Gamma(AbstractImpurity):
    """Half the gamma deviance about the mean of S = (w, w y, w log y), y > 0: for sizes told apart by their ratio."""

    encoding: ClassVar[str | None] = "gamma"

    def phi(self, S: Array) -> Array:
        return _not_below_zero(S[..., 0] * _log(_mean(S), TINY) - S[..., 2])

    def slope(self, S: Array) -> Array:
        xp = array_namespace(S)
        mu = _mean(S)
        return xp.stack([_log(mu, TINY) - 1.0, 1.0 / (mu + TINY), -xp.ones_like(mu)], axis=-1)

    def value(self, S: Array) -> Array:
        return _mean(S)[..., None]

    def loss(self, s: Array, value: Array) -> Array:
        """Half the gamma deviance: y / mu - log(y / mu) - 1."""
        mu = value[..., 0]
        return s[..., 1] / (mu + TINY) - s[..., 2] + s[..., 0] * (_log(mu, TINY) - 1.0)


def class_shares(S: Array) -> Array:
    """q = S / N, the uniform-free shares of the classes; 0 where the node is empty."""
    xp = array_namespace(S)
    return S / (xp.sum(S, axis=-1, keepdims=True) + TINY)


def _mean(S: Array) -> Array:
    """S_y / S_1; 1 where the node is empty, since deviances are measured in units of the mean of all rows."""
    xp = array_namespace(S)
    w = S[..., 0]
    return xp.where(w > 0, S[..., 1] / (w + TINY), xp.ones_like(w))


def _log(x: Array, least: float = LEAST_SHARE) -> Array:
    """log x, capped where x is 0."""
    xp = array_namespace(x)
    return xp.log(xp.where(x > least, x, least * xp.ones_like(x)))


def _not_below_zero(x: Array) -> Array:
    """Rounding may leave -1e-17."""
    return array_namespace(x).where(x > 0, x, 0 * x)


IMPURITIES: dict[str, type[AbstractImpurity]] = {
    "gini": Gini,
    "entropy": Entropy,
    "variance": Variance,
    "newton": Newton,
    "poisson": Poisson,
    "gamma": Gamma,
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
