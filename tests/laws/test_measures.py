"""Laws of the public measures, and the facts every textbook has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr
from sklearn.metrics import mutual_info_score

import reference
import zoo
from derivatives import check_vjp
from softwood.impurity import IMPURITIES, Entropy, Gini, Newton
from softwood.measures import (
    assignment_impurity,
    cross_entropy,
    entropy,
    expected_impurity,
    gini,
    impurity_of,
    information_gain,
    kl_divergence,
    sampled_impurity,
    variance,
)

PAIRS = [(case, encoding) for case in zoo.IMPURITIES for encoding in case.encodings]
every_pair = pytest.mark.parametrize(("case", "encoding"), PAIRS, ids=[f"{case}-{name}" for case, name in PAIRS])
RNG = np.random.default_rng(0)
N = 60
PARTS = RNG.integers(0, 3, N)
Y: dict[str, Any] = {
    "gini": RNG.integers(0, 4, N),
    "entropy": RNG.choice(["red", "green", "blue"], N),
    "variance": 1e8 + RNG.normal(size=N),
    "poisson": RNG.poisson(3.0, N),
    "gamma": 1e6 * RNG.gamma(2.0, size=N),
    "newton": np.stack([RNG.normal(size=N), RNG.uniform(0.1, 1.0, N)], axis=1),
}
every_name = pytest.mark.parametrize("name", sorted(IMPURITIES))


def assignment(n: int = N, parts: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(parts), n)


# Worked facts.


@pytest.mark.parametrize(
    ("y", "bits"),
    [
        (["heads", "tails"], 1.0),
        ([1, 2, 3, 4], 2.0),
        ([True, True, True, False], 0.811278),
        (["same"] * 5, 0.0),
        (np.arange(1024), 10.0),
    ],
)
def test_entropy_of_coins_and_dice(y: Any, bits: float) -> None:
    assert entropy(y) == pytest.approx(bits, abs=5e-7)
    assert entropy(y, base=math.e) == pytest.approx(bits * math.log(2), abs=5e-7)
    assert math.copysign(1, entropy(y)) == 1


def test_gini_and_variance_by_hand() -> None:
    assert gini([1, 1, 2, 2]) == 0.5
    assert gini(["a", "b", "c"]) == pytest.approx(2 / 3)
    assert variance([1, 2, 3, 4]) == 1.25
    assert variance(1e8 + np.array([1.0, 3.0])) == 1.0


def test_a_cut_that_tells_all_and_one_that_tells_nothing() -> None:
    y = ["a", "a", "b", "b"]
    assert information_gain([0, 0, 1, 1], y) == 1.0
    assert information_gain([0, 0, 1, 1], y, base=math.e) == pytest.approx(math.log(2))
    assert information_gain(["left", "right"] * 2, y) == pytest.approx(0.0, abs=1e-15)
    assert information_gain(np.full((4, 2), 0.5), y) == pytest.approx(0.0, abs=1e-15)


def test_codes_for_the_wrong_distribution_are_longer() -> None:
    p, q = [0.75, 0.25], [0.5, 0.5]
    assert cross_entropy(p, p) == pytest.approx(0.811278, abs=5e-7)
    assert cross_entropy(p, q) == 1.0
    assert kl_divergence(p, q) == pytest.approx(1 - 0.811278, abs=5e-7)
    assert kl_divergence(p, q, base=math.e) == pytest.approx((1 - 0.811278) * math.log(2), abs=5e-7)
    assert kl_divergence(p, p) == 0


# Laws.


@every_name
def test_a_split_costs_the_weighted_sum_of_its_parts(name: str) -> None:
    """The weighting of a split's risk, and superadditivity where no prior is paid twice."""
    y, weight = Y[name], RNG.uniform(0.2, 3.0, N)
    impurity = Newton(0.0) if name == "newton" else IMPURITIES[name]()
    parts = [
        weight[k == PARTS].sum() / weight.sum() * impurity_of(y[k == PARTS], impurity, sample_weight=weight[k == PARTS])
        for k in range(3)
    ]
    whole = impurity_of(y, impurity, sample_weight=weight)
    rounding = 1e-12 * (1 + abs(whole))
    assert assignment_impurity(PARTS, y, impurity, sample_weight=weight) == pytest.approx(sum(parts), rel=1e-9)
    assert assignment_impurity(PARTS, y, impurity, sample_weight=weight) <= whole + rounding
    assert assignment_impurity(np.zeros(N), y, impurity, sample_weight=weight) == pytest.approx(whole, rel=1e-12)


@every_name
def test_a_weight_is_that_many_copies(name: str) -> None:
    copies = RNG.integers(0, 4, N)
    many = np.repeat(np.arange(N), copies)
    weighted = impurity_of(Y[name], name, sample_weight=copies)
    copied = impurity_of(Y[name][many], name)
    assert weighted == pytest.approx(copied, rel=1e-9, abs=1e-12)


@every_name
def test_a_hard_assignment_is_a_matrix_of_zeros_and_ones(name: str) -> None:
    hard = np.eye(3)[PARTS]
    by_label = assignment_impurity(PARTS, Y[name], name)
    for P in (hard, hard.astype(int), hard.tolist(), hard.astype(np.float32)):
        assert float(expected_impurity(P, Y[name], name).value) == pytest.approx(by_label, rel=1e-4)


@every_pair
def test_the_gradient_is_the_derivative_of_the_value(case: zoo.ImpurityCase, encoding: str) -> None:
    s, P = zoo.statistics(encoding), assignment(zoo.N_ROWS)
    # Probabilities of a row no longer sum to 1 on the way, by less than is forgiven.
    check_vjp(
        lambda V: float(expected_impurity(P + 1e-2 * V, s, case.impurity).value),
        lambda V, bar: 1e-2 * bar * expected_impurity(P + 1e-2 * V, s, case.impurity).gradient,
        np.zeros_like(P),
        rtol=1e-5,
    )


@every_pair
def test_the_expected_impurity_is_the_reference_of_expected_sums(case: zoo.ImpurityCase, encoding: str) -> None:
    s, P = zoo.statistics(encoding), assignment(zoo.N_ROWS)
    total = 0.0
    for k in range(P.shape[1]):
        total += case.phi([sum(P[i, k] * s[i, j] for i in range(len(s))) for j in range(s.shape[1])])
    assert float(expected_impurity(P, s, case.impurity).value) == pytest.approx(total / len(s), rel=1e-11, abs=1e-12)


@every_name
def test_on_torch_value_and_gradient_are_those_of_numpy_and_of_autograd(name: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    P = torch.asarray(assignment()).requires_grad_(True)
    found, expected = expected_impurity(P, Y[name], name), expected_impurity(assignment(), Y[name], name)
    found.value.backward()
    assert float(found.value.detach()) == pytest.approx(float(expected.value), rel=1e-12)
    np.testing.assert_allclose(found.gradient.detach().numpy(), expected.gradient, rtol=1e-9, atol=1e-15)
    # The gradient is of phi's tangent plane; autograd differentiates phi itself.
    np.testing.assert_allclose(P.grad.numpy(), expected.gradient, rtol=1e-6, atol=1e-9 * abs(expected.gradient).max())


def test_on_torch_distributions_are_differentiable() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    p, q = assignment(4), assignment(4, seed=1)
    variable = torch.asarray(q).requires_grad_(True)
    found = kl_divergence(torch.asarray(p), variable, base=math.e)
    np.testing.assert_allclose(found.detach().numpy(), rel_entr(p, q).sum(axis=1), rtol=1e-12)
    found.sum().backward()
    np.testing.assert_allclose(variable.grad.numpy(), -p / q, rtol=1e-12)


def test_divergence_is_never_negative_and_what_scipy_says() -> None:
    p, q = assignment(200), assignment(200, seed=1)
    p[::3, 0], p[::3, 1] = 0.0, p[::3, 0] + p[::3, 1]
    found = kl_divergence(p, q, base=math.e)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, rel_entr(p, q).sum(axis=1), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(cross_entropy(p, q), cross_entropy(p, p) + kl_divergence(p, q), rtol=1e-9)


def test_what_q_excludes_costs_without_end_if_p_allows_it() -> None:
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf == cross_entropy([0.5, 0.5], [1.0, 0.0])
    assert kl_divergence([1.0, 0.0], [1.0, 0.0]) == 0 == cross_entropy([1.0, 0.0], [1.0, 0.0])


def test_information_gain_is_mutual_information() -> None:
    y = Y["entropy"]
    assert information_gain(PARTS, y, base=math.e) == pytest.approx(mutual_info_score(PARTS, y), rel=1e-9)
    impurities = [entropy(y) - assignment_impurity(PARTS, y, Entropy()) / math.log(2)]
    assert information_gain(PARTS, y) == pytest.approx(impurities[0], rel=1e-12)


# Draws.


@every_name
def test_drawn_assignments_are_below_the_expected_impurity_on_average(name: str) -> None:
    """Jensen: phi is concave, so the expectation of phi is below phi of the expectation."""
    found = sampled_impurity(assignment(), Y[name], 400, name, random_state=0)
    assert found.difference > 3 * found.standard_error
    assert (found.gaps >= -1e-12 * (1 + abs(found.expected))).all()
    plain = found.expected - found.draws
    assert abs(plain.mean() - found.difference) < 4 * plain.std() / 20
    assert found.draws.shape == found.gaps.shape == (400,)


def test_the_mean_of_all_assignments_is_what_the_draws_estimate() -> None:
    """Three rows and two parts: eight assignments, each with its probability."""
    P, y = assignment(3, 2), [0, 1, 1]
    exact = 0.0
    for code in range(8):
        part = [code >> i & 1 for i in range(3)]
        chance = math.prod(P[i, k] for i, k in enumerate(part))
        sums = [[float(sum(part[i] == k and y[i] == c for i in range(3))) for c in range(2)] for k in range(2)]
        exact += chance * sum(reference.gini_phi(S) for S in sums) / 3
    found = sampled_impurity(P, y, 20_000, random_state=0)
    assert abs(found.expected - found.difference - exact) < 4 * found.standard_error
    assert abs(found.draws.mean() - exact) < 4 * found.draws.std() / math.sqrt(20_000)


def test_the_difference_falls_like_one_over_the_rows() -> None:
    differences = []
    for n in (100, 400, 1600):
        y, P = np.arange(n) % 2, np.tile([[0.8, 0.2], [0.3, 0.7]], (n // 2, 1))
        differences.append(n * sampled_impurity(P, y, 1000, random_state=0).difference)
    assert differences == pytest.approx([differences[-1]] * 3, rel=0.1)


def test_a_hard_assignment_leaves_nothing_to_chance() -> None:
    found = sampled_impurity(np.eye(3)[PARTS], Y["gini"], 5)
    assert found.difference == pytest.approx(0, abs=1e-15) and found.standard_error == pytest.approx(0, abs=1e-15)


def test_the_same_seed_draws_the_same() -> None:
    a, b = (sampled_impurity(assignment(), Y["gini"], 9, random_state=4).draws for _ in range(2))
    assert (a == b).all()
    assert (sampled_impurity(assignment(), Y["gini"], 9, random_state=5).draws != a).any()


# Bad input.


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gini([]), r"y must hold one entry per row, at least one row; got shape \(0,\)"),
        (lambda: gini(3), r"y must hold one entry per row"),
        (lambda: gini(np.array([1, "a", None], dtype=object)), "y must hold labels of one kind"),
        (lambda: variance(["a", "b"]), r"y must hold numbers for this impurity; got <U1 such as np.str_\('a'\)"),
        (lambda: variance([1.0, np.nan]), "y must be finite; got nan"),
        (lambda: impurity_of([1, -2], "poisson"), "y must not be negative with the Poisson deviance; got -2"),
        (lambda: impurity_of([1, 0], "gamma"), "y must be above 0 with the gamma deviance; got 0"),
        (lambda: impurity_of([1, 0], "newton"), r"y must be the rows' statistics, shape \(2, d\), for Newton"),
        (lambda: impurity_of([1, 0], "mean"), "impurity must be one of"),
        (lambda: gini([1, 2], sample_weight=[1]), r"sample_weight must hold one number per row, shape \(2,\); got"),
        (lambda: gini([1, 2], sample_weight=[1, -1]), "sample_weight must be finite, not negative"),
        (lambda: gini([1, 2], sample_weight=[0, 0]), "above 0 for at least one row"),
        (lambda: entropy([1, 2], base=1), "base must be a number above 0 other than 1"),
        (lambda: entropy([1, 2], base=-2), "base must be a number above 0 other than 1"),
        (lambda: expected_impurity(np.ones(2), [0, 1]), r"P must be a matrix .* shape \(2, parts\)|must sum to 1"),
        (lambda: expected_impurity(np.eye(2), [0, 1, 1]), r"shape \(3, parts\); got \(2, 2\)"),
        (lambda: expected_impurity(2 * np.eye(2), [0, 1]), "P must sum to 1 along its last axis"),
        (lambda: expected_impurity([[1.5, -0.5]], [0]), "P must hold probabilities; got a number below 0"),
        (lambda: expected_impurity([[np.nan, 1.0]], [0]), "P must hold probabilities"),
        (lambda: sampled_impurity(np.eye(2), [0, 1], 1), "n_draws must be 2 or more"),
        (lambda: assignment_impurity([0, 1, 1], [0, 1]), r"shape \(2, parts\); got \(3, 2\)"),
        (lambda: cross_entropy([0.5, 0.5], [1.0]), "p and q must have equally many probabilities; got 2 and 1"),
        (lambda: cross_entropy([0.5, 0.6], [0.5, 0.5]), "p must sum to 1"),
        (lambda: kl_divergence([0.5, 0.5], []), "q must hold at least one probability"),
    ],
)
def test_bad_input_is_named_in_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_impurity_may_be_an_instance() -> None:
    assert impurity_of(Y["gini"], Gini()) == impurity_of(Y["gini"], "gini") == gini(Y["gini"])
    assert impurity_of(Y["gini"], zoo.Tsallis(2.0)) == pytest.approx(gini(Y["gini"]), rel=1e-12)
