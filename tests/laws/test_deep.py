"""Deep trees: products of many probabilities, against decimals of 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import zoo
from softwood.impurity import Gini, Variance
from softwood.objective import expected_impurity, gates, log_gates, log_reach, sweep_down
from softwood.split import Linear
from softwood.targets import centred_moments, class_counts
from softwood.topology import Topology

DEPTH = 200
CHAIN = Topology(np.array([2] + [0, 2] * (DEPTH - 1) + [0, 0]))  # right children ask on
X = np.array([[0.3], [-0.7], [1.1], [0.2]])


def decimal_sigmoid(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


def gradient_of_a_chain(theta: np.ndarray, s: np.ndarray, slope) -> list[Decimal]:
    """dJ/dtheta by hand, in decimals: dJ/dz_k = reach_k P (1 - P) (cost beyond k - cost of the leaf at k)."""
    with localcontext() as context:
        context.prec = 60
        table = [[Decimal(float(t)) for t in row] for row in theta.reshape(-1, 2)]
        rows = [Decimal(float(x)) for x in X[:, 0]]
        P = [[decimal_sigmoid(w * x + b) for w, b in table] for x in rows]
        reach = []
        for chances in P:
            here, reached = Decimal(1), []
            for p in chances:
                reached.append(here)
                here *= p
            reach.append([*reached, here])
        S = [
            [sum(reach[i][k] * ((1 - P[i][k]) if k < DEPTH else 1) * Decimal(float(s[i, c])) for i in range(len(X)))
             for c in range(s.shape[1])]
            for k in range(DEPTH + 1)
        ]  # fmt: skip
        slopes = [slope(S_k) for S_k in S]
        bar = [[Decimal(0), Decimal(0)] for _ in table]
        for i, x in enumerate(rows):
            costs = [sum(a * Decimal(float(b)) for a, b in zip(slopes[k], s[i], strict=True)) for k in range(DEPTH + 1)]
            beyond = costs[DEPTH]
            for k in reversed(range(DEPTH)):
                p = P[i][k]
                z_bar = reach[i][k] * p * (1 - p) * (beyond - costs[k])
                bar[k][0] += z_bar * x
                bar[k][1] += z_bar
                beyond = p * beyond + (1 - p) * costs[k]
        return [entry for row in bar for entry in row]


def gini_slope(S):
    q = [S_k / sum(S) for S_k in S]
    return [1 - 2 * q_k + sum(q_j * q_j for q_j in q) for q_k in q]


def variance_slope(S):
    mu = S[1] / S[0]
    return [mu * mu, -2 * mu, Decimal(1)]


CASES = {
    "gini": (Gini(), class_counts([0, 1, 1, 0], 2, [1.0, 2.0, 0.5, 1.5]).dense(), gini_slope),
    "variance": (Variance(), centred_moments([0.3, -2.0, 1.0, 4.0])[0].dense(), variance_slope),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("offset", [12.0, 30.0, 45.0])
def test_a_chain_of_200_saturated_gates_has_correct_gradients(case: str, offset: float) -> None:
    """Each parameter's to nine digits of its own, down to the 1e-20 of a gate shut by 45."""
    impurity, s, slope = CASES[case]
    theta = np.stack([np.full(DEPTH, 1.0), np.full(DEPTH, offset)], axis=1).ravel()
    theta += 0.1 * np.random.default_rng(0).normal(size=theta.size)
    found = expected_impurity(theta, X, s, CHAIN, Linear(), impurity)
    expected = np.array([float(entry) for entry in gradient_of_a_chain(theta, s, slope)])
    assert np.abs(expected).min() > 0
    np.testing.assert_allclose(found.theta_bar, expected, rtol=1e-8)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("offset", [-1000.0, -30.0, -5.0, 700.0, 1e5])
def test_what_underflows_is_zero_and_nothing_is_not_a_number(case: str, offset: float) -> None:
    impurity, s, slope = CASES[case]
    theta = np.tile([1.0, offset], DEPTH)
    for dtype in (np.float64, np.float32):
        parts = [part.astype(dtype) for part in (theta, X, s)]
        found = expected_impurity(*parts, CHAIN, Linear(), impurity)
        assert np.isfinite(found.theta_bar).all() and np.isfinite(found.objective)
    if -100 < offset < 0:
        expected = np.array([float(entry) for entry in gradient_of_a_chain(theta, s, slope)])
        found = expected_impurity(theta, X, s, CHAIN, Linear(), impurity)
        # A leaf of weight 1e-30 or less counts as empty.
        np.testing.assert_allclose(found.theta_bar, expected, rtol=1e-8, atol=1e-28)


@pytest.mark.parametrize("offset", [-1000.0, -30.0, 30.0])
def test_reach_in_log_space_is_that_of_decimals(offset: float) -> None:
    Z = X + np.linspace(offset, 0.9 * offset, DEPTH)
    found = log_reach(Z, CHAIN)
    with localcontext() as context:
        context.prec = 60
        context.Emin = -(10**9)
        for i, z in enumerate(Z):
            here = Decimal(0)
            for k, score in enumerate(z):
                right, left = (decimal_sigmoid(Decimal(float(sign * score))).ln() for sign in (1, -1))
                assert found[i, CHAIN.first_child[CHAIN.internal[k]]] == pytest.approx(float(here + left), rel=1e-12)
                here += right
            assert found[i, -1] == pytest.approx(float(here), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("topology", zoo.TOPOLOGIES.values(), ids=zoo.TOPOLOGIES)
def test_logarithms_are_those_of_gates_and_reach(topology: Topology) -> None:
    Z = 3 * np.random.default_rng(0).normal(size=(zoo.N_ROWS, int(topology.n_scores.sum())))
    P = gates(Z, topology)
    np.testing.assert_allclose(np.exp(log_gates(Z, topology)), P, rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_reach(Z, topology)), sweep_down(P, topology), rtol=1e-12)


def test_both_sides_of_a_gate_keep_their_digits() -> None:
    Z = np.array([[-600.0], [-40.0], [-1.0], [0.0], [1.0], [40.0], [600.0]])
    P = gates(Z, Topology.complete(1))
    np.testing.assert_allclose(P[:, 2], [float(decimal_sigmoid(Decimal(z))) for z in Z[:, 0].tolist()], rtol=1e-14)
    np.testing.assert_allclose(P[:, 1], P[::-1, 2], rtol=1e-14)
    np.testing.assert_allclose(P[:, 1] + P[:, 2], 1.0, rtol=1e-15)
