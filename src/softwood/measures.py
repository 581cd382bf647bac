"""Measures: the impurity of a collection, of an assignment, and of one that is only probable; for models of your own.

    impurity of a collection    phi(S) / W               S = sum of the rows' statistics, W = their weight
    of an assignment            sum_k phi(S_k) / W       each part's impurity, weighted by what is in it
    expected, P(k | row)        the same with S = P^T s  differentiable in P: gradient s . slope(S_k) / W

All of them are per unit of weight, in the units of y. Gini and entropy read labels, the others numbers; a matrix y is
read as the rows' statistics themselves (soft labels, Newton pairs, what an impurity of your own reads).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood._namespace import Array, array_namespace, as_array
from softwood.impurity import AbstractImpurity, Entropy, as_impurity
from softwood.targets import AbstractTargets, centred_moments, class_counts, gamma_sums, poisson_sums, soft_labels

__all__ = [
    "ExpectedImpurity",
    "SampledImpurity",
    "assignment_impurity",
    "cross_entropy",
    "entropy",
    "expected_impurity",
    "gini",
    "impurity_of",
    "information_gain",
    "kl_divergence",
    "sampled_impurity",
    "variance",
]

FloatArray = npt.NDArray[np.float64]
SUM_TOLERANCE = 1e-5  # how far from 1 the sum of probabilities may be: float32 over many parts


@dataclass(frozen=True, eq=False)
class ExpectedImpurity:
    """The expected impurity of a stochastic assignment, and how it changes with each probability."""

    value: Array  # a number of the library of P, so that autograd may go on from it
    gradient: Array  # (n, parts) of the value with respect to P
    statistics: Array  # (parts, d) expected sums


@dataclass(frozen=True, eq=False)
class SampledImpurity:
    """Impurities of hard assignments drawn from a stochastic one, beside its expected impurity.

    A gap is how far a draw lies below the tangent plane of phi at the expected sums: never negative, since phi is
    concave, and with the same mean as ``expected - draws``, since the plane is right on average, but far less spread.
    """

    expected: float
    draws: FloatArray  # (n_draws,)
    gaps: FloatArray  # (n_draws,)

    @property
    def difference(self) -> float:
        """The estimate of the expected impurity minus the expectation of the impurity."""
        return float(self.gaps.mean())

    @property
    def standard_error(self) -> float:
        """Of the difference."""
        return float(self.gaps.std(ddof=1) / math.sqrt(self.gaps.size))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Encoded targets, and how much of the user's impurity one unit of theirs is."""

    targets: AbstractTargets
    unit: float = 1.0

    @property
    def per_phi(self) -> float:
        return self.unit / float(self.targets.weight.sum())


# Collections.


def gini(y: Any, *, sample_weight: Any = None) -> float:
    """Return the chance that two draws from a collection, with replacement, differ.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any kind.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    impurity : float
        0 where all are equal, towards 1 for many equally frequent labels.

    Examples
    --------
    >>> from softwood.measures import gini
    >>> gini(["a", "a", "b", "b"])
    0.5
    """
    return impurity_of(y, "gini", sample_weight=sample_weight)


def entropy(y: Any, base: float = 2.0, *, sample_weight: Any = None) -> float:
    """Return Shannon's entropy of a collection.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any kind.
    base : float, default=2.0
        2 measures in bits, ``math.e`` in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    entropy : float
        0 where all are equal, log(labels) where all labels are equally frequent.

    Examples
    --------
    >>> from softwood.measures import entropy
    >>> entropy(["heads", "tails"])
    1.0
    """
    return impurity_of(y, "entropy", sample_weight=sample_weight) / _log_base(base)


def variance(y: Any, *, sample_weight: Any = None) -> float:
    """Return the mean squared distance of numbers from their mean.

    Parameters
    ----------
    y : array-like of shape (n,)
        Numbers.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    variance : float
        Divided by the weight, not by the weight less one.

    Examples
    --------
    >>> from softwood.measures import variance
    >>> variance([1.0, 3.0])
    1.0
    """
    return impurity_of(y, "variance", sample_weight=sample_weight)


def impurity_of(y: Any, impurity: str | AbstractImpurity = "gini", *, sample_weight: Any = None) -> float:
    """Return any impurity of a collection: the least average loss of one answer to all of it.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, d)
        Labels or numbers, as the impurity reads them; or the rows' statistics.
    impurity : str or AbstractImpurity, default="gini"
        A registered name or an instance; "entropy" is in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    impurity : float
        Per unit of weight.
    """
    impurity = as_impurity(impurity)
    rows = _encoded(y, impurity, sample_weight)
    return float(impurity.phi(rows.targets.total())) * rows.per_phi + 0.0  # -0.0 is no answer


# Assignments.


def expected_impurity(
    P: Any, y: Any, impurity: str | AbstractImpurity = "gini", *, sample_weight: Any = None
) -> ExpectedImpurity:
    """Return the expected impurity of any stochastic assignment, with its gradient.

    Sums are replaced by their expectations: S = P^T s. With it any model p(k | x) of your own can be trained, by the
    gradient given here or, where P is a torch tensor, by autograd through the value.

    Parameters
    ----------
    P : array of shape (n, parts)
        The probability that a row is in a part; rows sum to 1. Of any array library.
    y : array-like of shape (n,) or (n, d)
        Labels or numbers, as the impurity reads them; or the rows' statistics.
    impurity : str or AbstractImpurity, default="gini"
        A registered name or an instance; "entropy" is in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    expected : ExpectedImpurity
        ``value`` per unit of weight, ``gradient`` with respect to P and ``statistics`` of the parts.

    Examples
    --------
    >>> from softwood.measures import expected_impurity
    >>> float(expected_impurity([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).value)
    0.0
    """
    impurity = as_impurity(impurity)
    rows = _encoded(y, impurity, sample_weight)
    return _expected(_stochastic(P, rows.targets.n), rows, impurity)


def assignment_impurity(
    assignment: Any, y: Any, impurity: str | AbstractImpurity = "gini", *, sample_weight: Any = None
) -> float:
    """Return the impurity of a collection cut into parts: each part's impurity, weighted by what is in it.

    Parameters
    ----------
    assignment : array-like of shape (n,) or (n, parts)
        The label of each row's part, or its probability of being in each.
    y : array-like of shape (n,) or (n, d)
        Labels or numbers, as the impurity reads them; or the rows' statistics.
    impurity : str or AbstractImpurity, default="gini"
        A registered name or an instance; "entropy" is in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    impurity : float
        Per unit of weight; never above that of the whole.

    Examples
    --------
    >>> from softwood.measures import assignment_impurity
    >>> assignment_impurity(["left", "left", "right", "right"], [0, 0, 0, 1])
    0.25
    """
    return float(expected_impurity(_parts(assignment), y, impurity, sample_weight=sample_weight).value)


def information_gain(assignment: Any, y: Any, base: float = 2.0, *, sample_weight: Any = None) -> float:
    """Return how much knowing the part tells about the label: the entropy of all less that of the parts.

    Parameters
    ----------
    assignment : array-like of shape (n,) or (n, parts)
        The label of each row's part, or its probability of being in each.
    y : array-like of shape (n,)
        Labels of any kind.
    base : float, default=2.0
        2 measures in bits, ``math.e`` in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.

    Returns
    -------
    gain : float
        From 0 (the part tells nothing) to the entropy of y (the part tells all).

    Examples
    --------
    >>> from softwood.measures import information_gain
    >>> information_gain([0, 0, 1, 1], ["a", "a", "b", "b"])
    1.0
    """
    parts = assignment_impurity(assignment, y, Entropy(), sample_weight=sample_weight)
    return (impurity_of(y, Entropy(), sample_weight=sample_weight) - parts) / _log_base(base)


def sampled_impurity(
    P: Any,
    y: Any,
    n_draws: int = 100,
    impurity: str | AbstractImpurity = "gini",
    *,
    sample_weight: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> SampledImpurity:
    """Return the impurities of hard assignments drawn from a stochastic one.

    The expected impurity takes the expectation of each sum; it is not the expectation of the impurity, but above it,
    by an amount that falls like 1 / n. This measures by how much.

    Parameters
    ----------
    P : array-like of shape (n, parts)
        The probability that a row is in a part; rows sum to 1.
    y : array-like of shape (n,) or (n, d)
        Labels or numbers, as the impurity reads them; or the rows' statistics.
    n_draws : int, default=100
        Assignments drawn, 2 or more.
    impurity : str or AbstractImpurity, default="gini"
        A registered name or an instance; "entropy" is in nats.
    sample_weight : array-like of shape (n,), default=None
        A weight of k is the row k times.
    random_state : int, Generator or None, default=None
        The source of chance: an integer draws the same each time.

    Returns
    -------
    sampled : SampledImpurity
        ``expected``, the ``draws``, the ``difference`` and its ``standard_error``.
    """
    if n_draws < 2:
        raise ValueError(f"n_draws must be 2 or more, so that their spread can be measured; got {n_draws}.")
    impurity = as_impurity(impurity)
    rows = _encoded(y, impurity, sample_weight)
    P = np.asarray(_stochastic(P, rows.targets.n), dtype=np.float64)
    rng, bounds = np.random.default_rng(random_state), np.cumsum(P, axis=1)[:, :-1]
    expected = _expected(P, rows, impurity)
    S = np.stack([_drawn(rows.targets, bounds, rng) for _ in range(n_draws)])
    draws = np.sum(impurity.phi(S), axis=1) * rows.per_phi
    moves = np.sum((S - expected.statistics) * impurity.slope(expected.statistics), axis=(1, 2)) * rows.per_phi
    return SampledImpurity(float(expected.value), draws, expected.value + moves - draws)


# Distributions.


def cross_entropy(p: Any, q: Any, base: float = 2.0) -> Array:
    """Return the mean length of draws from p in the code that is best for q: -sum p log q.

    Parameters
    ----------
    p, q : array-like of shape (..., k)
        Probabilities along the last axis. Of any array library.
    base : float, default=2.0
        2 measures in bits, ``math.e`` in nats.

    Returns
    -------
    cross_entropy : array of shape (...)
        Infinite where q excludes what p allows.
    """
    p, q = _distributions(p, q)
    xp = array_namespace(p)
    return -xp.sum(p * _log_where(p, q), axis=-1) / _log_base(base)


def kl_divergence(p: Any, q: Any, base: float = 2.0) -> Array:
    """Return what it costs to take q for p: sum p log(p / q), the cross entropy less the entropy of p.

    Parameters
    ----------
    p, q : array-like of shape (..., k)
        Probabilities along the last axis. Of any array library.
    base : float, default=2.0
        2 measures in bits, ``math.e`` in nats.

    Returns
    -------
    divergence : array of shape (...)
        0 where the two are equal, infinite where q excludes what p allows.
    """
    p, q = _distributions(p, q)
    xp = array_namespace(p)
    return xp.sum(p * (_log_where(p, p) - _log_where(p, q)), axis=-1) / _log_base(base)


# From what users give to statistics and probabilities.


def _expected(P: Array, rows: _Rows, impurity: AbstractImpurity) -> ExpectedImpurity:
    """S = P^T s, J = sum phi(S_k), dJ/dP = s . slope(S_k)."""
    xp = array_namespace(P)
    s = xp.asarray(rows.targets.dense(), dtype=P.dtype, device=P.device)
    S = P.T @ s
    gradient = s @ impurity.slope(S).T
    return ExpectedImpurity(xp.sum(impurity.phi(S)) * rows.per_phi, gradient * rows.per_phi, S)


def _drawn(targets: AbstractTargets, bounds: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(parts, d) the sums of one hard assignment."""
    part = (rng.random((len(bounds), 1)) >= bounds).sum(axis=1)
    return targets.sums_by(part, bounds.shape[1] + 1)


def _encoded(y: Any, impurity: AbstractImpurity, sample_weight: Any) -> _Rows:
    """The rows' statistics: made of a vector as the impurity reads it, taken as they are from a matrix."""
    y = np.asarray(y)
    if y.ndim not in (1, 2) or y.shape[0] == 0:
        raise ValueError(f"y must hold one entry per row, at least one row; got shape {y.shape}.")
    weight = _weights(sample_weight, y.shape[0])
    if y.ndim == 2:
        return _Rows(soft_labels(_numbers(y), weight))
    encode = ENCODINGS.get(impurity.encoding or "classes")
    if encode is None:
        raise ValueError(
            f"y must be the rows' statistics, shape ({y.shape[0]}, d), for {impurity!r}; got shape {y.shape}."
        )
    return encode(y, weight)


def _labels(y: npt.NDArray[Any], weight: FloatArray) -> _Rows:
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        raise ValueError("y must hold labels of one kind; got kinds that cannot be put in order.") from None
    return _Rows(class_counts(codes, classes.size, weight))


def _moments(y: npt.NDArray[Any], weight: FloatArray) -> _Rows:
    return _Rows(centred_moments(_numbers(y), weight, standardise=False)[0])


def _counts(y: npt.NDArray[Any], weight: FloatArray) -> _Rows:
    numbers = _numbers(y)
    if (numbers < 0).any():
        raise ValueError(f"y must not be negative with the Poisson deviance; got {numbers.min():g}.")
    return _Rows(*poisson_sums(numbers, weight))


def _sizes(y: npt.NDArray[Any], weight: FloatArray) -> _Rows:
    numbers = _numbers(y)
    if (numbers <= 0).any():
        raise ValueError(f"y must be above 0 with the gamma deviance; got {numbers.min():g}.")
    return _Rows(gamma_sums(numbers, weight)[0])


ENCODINGS: dict[str, Callable[[npt.NDArray[Any], FloatArray], _Rows]] = {
    "classes": _labels,
    "numbers": _moments,
    "poisson": _counts,
    "gamma": _sizes,
}


def _numbers(y: npt.NDArray[Any]) -> FloatArray:
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers for this impurity; got {y.dtype} such as {y.flat[0]!r}.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y must be finite; got {numbers[~np.isfinite(numbers)][0]}.")
    return numbers


def _weights(sample_weight: Any, n: int) -> FloatArray:
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number per row, shape ({n},); got shape {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite, not negative, and above 0 for at least one row.")
    return weight


def _parts(assignment: Any) -> Array:
    """A matrix as it is; labels of parts as zeros and ones."""
    P = as_array(assignment)
    if P.ndim != 1:
        return P
    labels, part = np.unique(np.asarray(P), return_inverse=True)
    return np.eye(labels.size)[part]


def _stochastic(P: Any, n: int) -> Array:
    """P (n, parts) checked."""
    P = _probabilities("P", P)
    if P.ndim != 2 or P.shape[0] != n:
        raise ValueError(f"P must be a matrix of one row per entry of y, shape ({n}, parts); got {tuple(P.shape)}.")
    return P


def _distributions(p: Any, q: Any) -> tuple[Array, Array]:
    p, q = _probabilities("p", p), _probabilities("q", q)
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p and q must have equally many probabilities; got {p.shape[-1]} and {q.shape[-1]}.")
    return p, q


def _probabilities(name: str, values: Any) -> Array:
    """Floats along the last axis that are no less than 0 and sum to 1."""
    P = as_array(values)
    xp = array_namespace(P)
    if not xp.isdtype(P.dtype, "real floating"):
        P = xp.astype(P, xp.float64)
    if P.ndim == 0 or P.shape[-1] == 0:
        raise ValueError(f"{name} must hold at least one probability along its last axis; got {tuple(P.shape)}.")
    if not bool(xp.all(P >= 0)):
        raise ValueError(f"{name} must hold probabilities; got a number below 0 or NaN.")
    if not bool(xp.all(xp.abs(xp.sum(P, axis=-1) - 1) <= SUM_TOLERANCE)):
        raise ValueError(f"{name} must sum to 1 along its last axis; got a sum that does not. Divide by the sum.")
    return P


def _log_where(p: Array, q: Array) -> Array:
    """log q where p is above 0, minus infinity where q is 0 there; 0 elsewhere."""
    xp = array_namespace(q)
    log = xp.log(xp.where(q > 0, q, xp.ones_like(q)))
    log = xp.where(q > 0, log, xp.full_like(q, -math.inf))
    return xp.where(p > 0, log, xp.zeros_like(log))


def _log_base(base: float) -> float:
    if not (base > 0 and base != 1 and base < math.inf):
        raise ValueError(f"base must be a number above 0 other than 1 (2 for bits, math.e for nats); got {base!r}.")
    return math.log(base)
