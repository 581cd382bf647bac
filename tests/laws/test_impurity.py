"""Laws of every impurity. A tolerance without another reason is rounding: ROUNDING times the size of the summands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import zoo
from softwood.impurity import IMPURITIES, AbstractImpurity, as_impurity

ROUNDING = 1e-13  # 500 units in the last place of float64: sums of a few dozen numbers and one quotient

PAIRS = [(case, encoding) for case in zoo.IMPURITIES for encoding in case.encodings]
every_pair = pytest.mark.parametrize(("case", "encoding"), PAIRS, ids=[f"{case}-{name}" for case, name in PAIRS])
every_impurity = pytest.mark.parametrize("case", zoo.IMPURITIES, ids=str)

# A node holds each row of the sample so and so many times: weights 0, or far from where 0 / 0 is kept at 0.
weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e3)), min_size=zoo.N_ROWS, max_size=zoo.N_ROWS).map(
    np.array
)


def node(encoding: str, weight: np.ndarray) -> np.ndarray:
    return weight @ zoo.statistics(encoding)


def size(case: zoo.ImpurityCase, S: np.ndarray) -> float:
    """The size of the summands phi is made of."""
    total = S + case.prior(S.size)
    return float(np.abs(case.impurity.slope(S)) @ np.abs(total)) + float(np.abs(S).max())


def test_every_registered_impurity_is_in_the_zoo() -> None:
    assert {type(case.impurity) for case in zoo.IMPURITIES} >= set(IMPURITIES.values())


def test_every_public_class_of_impurity_is_registered() -> None:
    classes = AbstractImpurity.__subclasses__()
    ours = {cls for cls in classes if cls.__module__.startswith("softwood.") and not cls.__name__.startswith("_")}
    assert ours == set(IMPURITIES.values())


@every_impurity
def test_every_encoding_of_an_impurity_is_in_the_zoo(case: zoo.ImpurityCase) -> None:
    assert case.encodings and set(case.encodings) <= set(zoo.TARGETS)


@every_pair
@given(weight=weights)
def test_phi_slope_and_value_equal_the_reference(case: zoo.ImpurityCase, encoding: str, weight: np.ndarray) -> None:
    S = node(encoding, weight)
    numbers = S.tolist()
    assert float(case.impurity.phi(S)) == pytest.approx(case.phi(numbers), rel=0, abs=ROUNDING * size(case, S))
    assert case.impurity.slope(S) == pytest.approx(np.array(case.slope(numbers)), rel=ROUNDING, abs=1e-12)
    assert case.impurity.value(S) == pytest.approx(np.array(case.value(numbers)), rel=ROUNDING, abs=1e-12)


@every_pair
def test_nodes_may_be_stacked_along_any_axes(case: zoo.ImpurityCase, encoding: str) -> None:
    S = np.random.default_rng(0).uniform(0.1, 2.0, (2, 3, zoo.N_ROWS)) @ zoo.statistics(encoding)
    phi, slope, value = case.impurity.phi(S), case.impurity.slope(S), case.impurity.value(S)
    assert phi.shape == (2, 3)
    assert slope.shape == S.shape
    assert value.shape[:-1] == (2, 3)
    for where in np.ndindex(2, 3):
        # Not bit for bit: NumPy sums a stack in another order than one row.
        assert phi[where] == pytest.approx(float(case.impurity.phi(S[where])), rel=1e-12, abs=1e-12)
        assert slope[where] == pytest.approx(case.impurity.slope(S[where]), rel=1e-12, abs=1e-12)
        assert value[where] == pytest.approx(case.impurity.value(S[where]), rel=1e-12, abs=1e-12)


@every_pair
def test_an_empty_node_has_phi_zero_and_a_finite_slope_and_value(case: zoo.ImpurityCase, encoding: str) -> None:
    S = np.zeros(zoo.statistics(encoding).shape[1])
    assert float(case.impurity.phi(S)) == 0
    assert np.isfinite(case.impurity.slope(S)).all()
    assert np.isfinite(case.impurity.value(S)).all()


@every_pair
def test_a_pure_leaf_has_phi_zero(case: zoo.ImpurityCase, encoding: str) -> None:
    """Copies of one row; with soft labels no row is pure, with gradients purity means no gradient."""
    for s in zoo.statistics(encoding):
        if encoding in zoo.NEWTON:
            s = np.concatenate([0 * s[: s.size // 2], s[s.size // 2 :]])
        elif "soft" in encoding:
            s = np.eye(s.size)[int(np.argmax(s))] * s.sum()
        S = 7.3 * s
        assert float(case.impurity.phi(S)) == pytest.approx(0.0, abs=ROUNDING * size(case, S))


@every_pair
@given(weight=weights, factor=st.floats(1e-3, 1e3))
def test_phi_is_homogeneous_in_the_statistics_with_their_prior(
    case: zoo.ImpurityCase, encoding: str, weight: np.ndarray, factor: float
) -> None:
    """phi(c S) = c phi(S), where scaling a node scales its prior with it."""
    S = node(encoding, weight)
    prior = case.prior(S.size)
    scaled = factor * (S + prior) - prior
    assert float(case.impurity.phi(scaled)) == pytest.approx(
        factor * float(case.impurity.phi(S)), rel=0, abs=ROUNDING * (factor * size(case, S) + size(case, scaled))
    )


@every_pair
@given(weight=weights)
def test_slope_times_statistics_is_phi(case: zoo.ImpurityCase, encoding: str, weight: np.ndarray) -> None:
    """Euler's theorem, for the statistics with their prior."""
    S = node(encoding, weight)
    euler = float(case.impurity.slope(S) @ (S + case.prior(S.size)))
    assert float(case.impurity.phi(S)) == pytest.approx(euler, rel=0, abs=ROUNDING * size(case, S))


@every_pair
@given(left=weights, right=weights)
def test_cutting_a_node_never_raises_phi(
    case: zoo.ImpurityCase, encoding: str, left: np.ndarray, right: np.ndarray
) -> None:
    """Superadditivity. Two leaves carry two priors, so it is the parent with both that they are held against."""
    S_left, S_right = node(encoding, left), node(encoding, right)
    S = S_left + S_right + case.prior(S_left.size)
    phis = [float(case.impurity.phi(each)) for each in (S, S_left, S_right)]
    assert phis[0] >= phis[1] + phis[2] - ROUNDING * sum(size(case, each) for each in (S, S_left, S_right))


@pytest.mark.parametrize("encoding", zoo.NEWTON)
def test_a_prior_on_each_leaf_can_make_a_cut_lose(encoding: str) -> None:
    """The stopping rule of boosting: two equal halves gain nothing and pay the prior twice."""
    case = next(case for case in zoo.IMPURITIES if case.prior(2).any())
    S = zoo.statistics(encoding).sum(axis=0)
    assert float(case.impurity.phi(S)) < 2 * float(case.impurity.phi(S / 2))


@every_pair
@given(weight=weights, other=weights)
def test_phi_lies_under_each_of_its_supporting_planes(
    case: zoo.ImpurityCase, encoding: str, weight: np.ndarray, other: np.ndarray
) -> None:
    """Concavity: the loss under somebody else's constant is no less than under one's own."""
    S, S_other = node(encoding, weight), node(encoding, other)
    slope, total = case.impurity.slope(S), S_other + case.prior(S.size)
    # The slope of a class that is absent from S is capped at a share of 1e-12, which costs this much at most.
    capped = 1e-11 * np.abs(total).sum()
    plane, phi = float(slope @ total), float(case.impurity.phi(S_other))
    assert phi <= plane + ROUNDING * (size(case, S_other) + float(np.abs(slope) @ np.abs(total))) + capped


@every_pair
def test_slope_is_the_derivative_of_phi(case: zoo.ImpurityCase, encoding: str) -> None:
    s = zoo.statistics(encoding)
    for seed in range(3):
        S = np.random.default_rng(seed).uniform(0.5, 2.0, zoo.N_ROWS) @ s
        step = 1e-5
        for k in range(S.size):
            up, down = S.copy(), S.copy()
            up[k] += step
            down[k] -= step
            difference = float(case.impurity.phi(up) - case.impurity.phi(down)) / (2 * step)
            # Central differences: rounding of phi over the step, 1e-15 / 1e-5, and the square of the step.
            assert float(case.impurity.slope(S)[k]) == pytest.approx(difference, rel=1e-7, abs=1e-8)


@every_pair
@given(weight=weights)
def test_slope_times_a_row_is_the_loss_of_the_row(case: zoo.ImpurityCase, encoding: str, weight: np.ndarray) -> None:
    """The equivalence of impurity and loss: gini and Brier, entropy and log loss, variance and squared error."""
    S = node(encoding, weight)
    slope, value = case.impurity.slope(S), case.impurity.value(S)
    for s in zoo.statistics(encoding):
        expected = case.loss(s.tolist(), value.tolist())
        assert float(slope @ s) == pytest.approx(expected, rel=0, abs=1e-12 * (1 + float(np.abs(slope) @ np.abs(s))))


@every_pair
def test_phi_is_the_loss_of_the_rows_under_the_leafs_value(case: zoo.ImpurityCase, encoding: str) -> None:
    s = zoo.statistics(encoding)
    S = s.sum(axis=0)
    value = case.impurity.value(S).tolist()
    losses = [case.loss(row.tolist(), value) for row in s] + [case.loss(case.prior(S.size).tolist(), value)]
    assert float(case.impurity.phi(S)) == pytest.approx(sum(losses), rel=0, abs=ROUNDING * size(case, S))


@every_pair
def test_the_loss_of_the_library_is_the_reference(case: zoo.ImpurityCase, encoding: str) -> None:
    s = zoo.statistics(encoding)
    value = case.impurity.value(s.sum(axis=0))
    expected = [case.loss(row.tolist(), value.tolist()) for row in s]
    # Of the summands, which may be larger than what is left of them.
    rounding = 1e-12 * (1 + float(np.abs(s).max()))
    assert case.impurity.loss(s, value) == pytest.approx(np.array(expected), rel=1e-12, abs=rounding)
    answers = np.stack([value] * len(s))
    assert case.impurity.loss(s, answers).tolist() == case.impurity.loss(s, value).tolist()
    assert case.impurity.prior(s.shape[1]) == tuple(case.prior(s.shape[1]))


@every_pair
def test_impurity_is_the_least_loss_of_a_constant(case: zoo.ImpurityCase, encoding: str) -> None:
    """The equivalence in the library's own words, at any constant some other node would answer with."""
    s, rng = zoo.statistics(encoding), np.random.default_rng(0)
    total = np.concatenate([s, [case.impurity.prior(s.shape[1])]])
    S = s.sum(axis=0)
    phi, rounding = float(case.impurity.phi(S)), ROUNDING * size(case, S)
    assert float(case.impurity.loss(total, case.impurity.value(S)).sum()) == pytest.approx(phi, rel=0, abs=rounding)
    for _ in range(50):
        other = case.impurity.value(rng.dirichlet(np.full(zoo.N_ROWS, 0.3)) @ s)
        assert float(case.impurity.loss(total, other).sum()) >= phi - rounding


def test_an_impurity_whose_value_is_no_statistic_must_bring_its_loss() -> None:
    """Three methods are enough to train by; where the loss does not follow from them, it is said how to add it."""
    with pytest.raises(NotImplementedError, match=r"Spread has 1 numbers in a value and 3 in a statistic"):
        zoo.Spread().loss(np.ones(3), np.ones(1))


@every_pair
def test_value_minimises_the_matching_loss(case: zoo.ImpurityCase, encoding: str) -> None:
    rng = np.random.default_rng(0)
    s = zoo.statistics(encoding)
    total = [*s.tolist(), case.prior(s.shape[1]).tolist()]
    value = case.impurity.value(s.sum(axis=0))
    best = sum(case.loss(row, value.tolist()) for row in total)
    for distance in (1e-3, 0.1, 0.5):
        for _ in range(20):
            other = value + distance * rng.normal(size=value.size)
            if encoding in zoo.CLASSES:
                other = np.abs(other) / np.abs(other).sum()
            if encoding in zoo.POISSON + zoo.GAMMA:
                other = np.abs(other)
            if np.abs(other - value).max() > 1e-6:
                # The loss is strictly convex: a step of 1e-6 costs about its square, above the rounding of the sums.
                assert sum(case.loss(row, other.tolist()) for row in total) > best


@every_pair
@pytest.mark.parametrize("power", [-20, -6, 0, 6, 15])
def test_float32_stays_finite_and_float32(case: zoo.ImpurityCase, encoding: str, power: int) -> None:
    s = zoo.statistics(encoding)
    for S in (10.0**power * s.sum(axis=0), 10.0**power * s[0], 0 * s[0]):
        single = S.astype(np.float32)
        for result in (case.impurity.phi(single), case.impurity.slope(single), case.impurity.value(single)):
            assert result.dtype == np.float32
            assert np.isfinite(result).all()


@every_pair
def test_float32_agrees_with_float64(case: zoo.ImpurityCase, encoding: str) -> None:
    S = zoo.statistics(encoding).sum(axis=0)
    single = float(case.impurity.phi(S.astype(np.float32)))
    # float32 has 1.2e-7 per operation, of the size of the summands.
    assert single == pytest.approx(float(case.impurity.phi(S)), rel=0, abs=1e-6 * size(case, S))


@every_impurity
def test_nothing_is_written_into_the_statistics(case: zoo.ImpurityCase) -> None:
    S = zoo.statistics(case.encodings[0])
    before = S.copy()
    S.setflags(write=False)
    for method in (case.impurity.phi, case.impurity.slope, case.impurity.value):
        method(S)
    assert (before == S).all()


def test_tsallis_of_order_two_is_gini() -> None:
    """The user's impurity of the zoo against one of ours."""
    S = zoo.statistics("weighted classes").sum(axis=0)
    assert float(zoo.Tsallis(2.0).phi(S)) == pytest.approx(reference.gini_phi(S.tolist()), rel=1e-14)


@pytest.mark.parametrize("name", sorted(IMPURITIES))
def test_a_name_or_an_instance_names_an_impurity(name: str) -> None:
    assert type(as_impurity(name)) is IMPURITIES[name]
    instance = IMPURITIES[name]()
    assert as_impurity(instance) is instance


@pytest.mark.parametrize("wrong", ["Gini", "", None, 3, zoo.Tsallis])
def test_an_unknown_impurity_is_refused_with_the_choices(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"impurity must be one of \['entropy', 'gamma', 'gini'"):
        as_impurity(wrong)
