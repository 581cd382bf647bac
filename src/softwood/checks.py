"""Checks: whether an impurity of your own keeps the laws that training relies on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood.impurity import AbstractImpurity
from softwood.targets import AbstractTargets, centred_moments, class_counts, gamma_sums, newton_pairs, poisson_sums

FloatArray = npt.NDArray[np.float64]
N_ROWS, N_NODES = 24, 12
STEP = 1e-5  # of central differences, as a share of the statistics
SLACK = 1e-9  # rounding that is forgiven, as a share of the summands


def check_impurity(impurity: AbstractImpurity, s: Any = None) -> None:
    """Raise one sentence for the first law that an impurity breaks, or return nothing.

    The laws, on nodes drawn from the rows: shapes; phi 0 and all finite where there is nothing; phi(c S) = c phi(S);
    cutting a node never raises phi; slope . S = phi; slope is the derivative of phi; phi lies under its tangent planes;
    and the loss, if there is one, of S under value(S) is phi(S). A leaf's ``prior`` is added to S where it matters.

    Parameters
    ----------
    impurity : AbstractImpurity
        An instance of your class.
    s : array-like of shape (n, d), default=None
        Statistics of some rows, such as the impurity is meant for. By default rows of the encoding that it names:
        three classes where it names none.

    Raises
    ------
    ValueError
        Where a law is broken: which, at what node, and by how much.

    Examples
    --------
    >>> from softwood import check_impurity
    >>> from softwood.impurity import Gini
    >>> check_impurity(Gini())
    """
    rows = _sample(impurity) if s is None else np.asarray(s, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(f"s must hold the statistics of at least one row, shape (n, d); got shape {rows.shape}.")
    rng = np.random.default_rng(0)
    trial = _Trial(impurity, rng.exponential(size=(N_NODES, len(rows))) @ rows)
    for law in LAWS:
        broken = law(trial)
        if broken is not None:
            raise ValueError(f"{type(impurity).__name__} breaks a law of impurities: {broken}")


@dataclass(frozen=True, eq=False)
class _Trial:
    """An impurity and nodes to try it on."""

    impurity: AbstractImpurity
    S: FloatArray  # (m, d)

    @property
    def prior(self) -> FloatArray:
        return np.asarray(self.impurity.prior(self.S.shape[1]))

    @property
    def filled(self) -> FloatArray:
        """(m, d) the nodes with their prior."""
        return self.S + self.prior

    def phi(self, S: FloatArray) -> FloatArray:
        return np.asarray(self.impurity.phi(S), dtype=np.float64)

    def slope(self) -> FloatArray:
        return np.asarray(self.impurity.slope(self.S), dtype=np.float64)

    def size(self) -> FloatArray:
        """(m,) of the summands that phi is made of."""
        return np.asarray(np.abs(self.slope() * self.filled).sum(axis=1) + np.abs(self.phi(self.S)))


def _shapes(trial: _Trial) -> str | None:
    S = trial.S[:6].reshape(2, 3, -1)
    phi, slope, value = (np.shape(method(S)) for method in _methods(trial.impurity))
    if phi != S.shape[:-1]:
        return f"phi of statistics of shape {S.shape} must have shape {S.shape[:-1]}; it has {phi}."
    if slope != S.shape:
        return f"slope of statistics of shape {S.shape} must have their shape; it has {slope}."
    if len(value) != 3 or value[:2] != S.shape[:-1]:
        return f"value of statistics of shape {S.shape} must have shape (2, 3, v); it has {value}."
    return None


def _empty(trial: _Trial) -> str | None:
    for dtype in (np.float64, np.float32):
        nothing = np.zeros(trial.S.shape[1], dtype=dtype)
        with np.errstate(all="ignore"):
            phi, slope, value = (np.asarray(method(nothing)) for method in _methods(trial.impurity))
        if phi != 0:
            return f"phi must be 0 where S is 0; it is {phi:g} in {dtype.__name__}."
        if not (np.isfinite(slope).all() and np.isfinite(value).all()):
            return f"slope and value must be finite where S is 0; they are {slope} and {value} in {dtype.__name__}."
    return None


def _homogeneous(trial: _Trial) -> str | None:
    twice, double = trial.phi(2 * trial.filled - trial.prior), 2 * trial.phi(trial.S)
    at = _first_not(np.abs(twice - double) <= SLACK * trial.size())
    if at is None:
        return None
    return f"phi(2 S) must be 2 phi(S); at S={trial.S[at]} they are {twice[at]:g} and {double[at]:g}."


def _superadditive(trial: _Trial) -> str | None:
    other = np.roll(trial.S, 1, axis=0)
    whole, parts = trial.phi(trial.S + other + trial.prior), trial.phi(trial.S) + trial.phi(other)
    at = _first_not(whole >= parts - SLACK * (trial.size() + np.roll(trial.size(), 1)))
    if at is None:
        return None
    return (
        "cutting a node must not raise phi (phi is concave); "
        f"S={trial.S[at]} and {other[at]} have {parts[at]:g} apart and {whole[at]:g} together."
    )


def _euler(trial: _Trial) -> str | None:
    total, phi = (trial.slope() * trial.filled).sum(axis=1), trial.phi(trial.S)
    at = _first_not(np.abs(total - phi) <= SLACK * trial.size())
    if at is None:
        return None
    return f"slope(S) . S must be phi(S); at S={trial.S[at]} they are {total[at]:g} and {phi[at]:g}."


def _derivative(trial: _Trial) -> str | None:
    slope, d = trial.slope(), trial.S.shape[1]
    step = STEP * np.abs(trial.S).mean(axis=1)
    slack = STEP * np.abs(slope).max(axis=1) + 1e-4 * SLACK * trial.size() / step
    for k in range(d):
        move = step[:, None] * np.eye(d)[k]
        difference = (trial.phi(trial.S + move) - trial.phi(trial.S - move)) / (2 * step)
        at = _first_not(np.abs(difference - slope[:, k]) <= slack)
        if at is not None:
            return (
                f"slope must be the gradient of phi; at S={trial.S[at]} its entry {k} is {slope[at, k]:g}, "
                f"and phi changes by {difference[at]:g}."
            )
    return None


def _under_planes(trial: _Trial) -> str | None:
    other = np.roll(trial.S, 1, axis=0)
    plane, phi = (trial.slope() * (other + trial.prior)).sum(axis=1), trial.phi(other)
    size = np.abs(trial.slope() * (other + trial.prior)).sum(axis=1) + np.roll(trial.size(), 1)
    at = _first_not(phi <= plane + SLACK * size)
    if at is None:
        return None
    return (
        "phi must lie under each of its tangent planes; "
        f"that at S={trial.S[at]} is {plane[at]:g} at {other[at]}, where phi is {phi[at]:g}."
    )


def _loss(trial: _Trial) -> str | None:
    phi = trial.phi(trial.S)
    try:
        loss = np.asarray(trial.impurity.loss(trial.filled, trial.impurity.value(trial.S)))
    except NotImplementedError:  # three methods are enough
        return None
    at = _first_not(np.abs(loss - phi) <= SLACK * trial.size())
    if at is None:
        return None
    return f"loss(S, value(S)) must be phi(S); at S={trial.S[at]} they are {loss[at]:g} and {phi[at]:g}."


LAWS: tuple[Callable[[_Trial], str | None], ...] = (
    _shapes,
    _empty,
    _homogeneous,
    _superadditive,
    _euler,
    _derivative,
    _under_planes,
    _loss,
)


def _methods(impurity: AbstractImpurity) -> tuple[Callable[[Any], Any], ...]:
    return impurity.phi, impurity.slope, impurity.value


def _first_not(holds: npt.NDArray[np.bool_]) -> int | None:
    """The first node at which a law does not hold; a NaN holds nowhere."""
    return None if holds.all() else int(np.argmin(holds))


def _sample(impurity: AbstractImpurity) -> FloatArray:
    """Rows of the encoding that the impurity names."""
    make = SAMPLES.get(impurity.encoding or "classes")
    if make is None:
        raise ValueError(
            f"{type(impurity).__name__} names the encoding {impurity.encoding!r}, of which there are no rows to try: "
            f"give some statistics as s, or name one of {sorted(SAMPLES)}."
        )
    return make(np.random.default_rng(1)).dense()


SAMPLES: dict[str, Callable[[np.random.Generator], AbstractTargets]] = {
    "classes": lambda rng: class_counts(np.arange(N_ROWS) % 3, 3),
    "numbers": lambda rng: centred_moments(rng.normal(size=N_ROWS))[0],
    "poisson": lambda rng: poisson_sums(rng.poisson(2.0, N_ROWS))[0],
    "gamma": lambda rng: gamma_sums(rng.gamma(2.0, size=N_ROWS))[0],
    "newton": lambda rng: newton_pairs(rng.normal(size=N_ROWS), rng.uniform(0.1, 1.0, N_ROWS)),
}
