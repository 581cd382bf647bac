"""check_impurity: silent for every impurity there is, one sentence for each way to be none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import zoo
from softwood import check_impurity, checks
from softwood.impurity import IMPURITIES, AbstractImpurity, Gini

Method = Callable[[Any], Any]
GINI = Gini()
PAIRS = [(case, encoding) for case in zoo.IMPURITIES for encoding in case.encodings]


@dataclass(frozen=True)
class Broken(AbstractImpurity):
    """Gini with some of its methods replaced."""

    phi_: Method = GINI.phi
    slope_: Method = GINI.slope
    value_: Method = GINI.value

    def phi(self, S: Any) -> Any:
        return self.phi_(S)

    def slope(self, S: Any) -> Any:
        return self.slope_(S)

    def value(self, S: Any) -> Any:
        return self.value_(S)


@dataclass(frozen=True)
class Mistaken(Broken):
    """And a loss of something else."""

    def loss(self, s: Any, value: Any) -> Any:
        return s.sum(axis=-1)


@dataclass(frozen=True)
class Unknown(Broken):
    encoding = "ranks"


@pytest.mark.parametrize("name", sorted(IMPURITIES))
def test_every_registered_impurity_passes(name: str) -> None:
    check_impurity(IMPURITIES[name]())


@pytest.mark.parametrize(("case", "encoding"), PAIRS, ids=[f"{case}-{name}" for case, name in PAIRS])
def test_every_impurity_of_the_zoo_passes_on_its_encodings(case: zoo.ImpurityCase, encoding: str) -> None:
    check_impurity(case.impurity, zoo.statistics(encoding))


def test_a_users_impurity_for_numbers_passes_on_moments() -> None:
    check_impurity(zoo.Spread(), zoo.statistics("moments"))


def _turned(S: Any) -> Any:
    """Another slope with the same product with S."""
    a, b = S[..., :1], S[..., 1:2]
    return GINI.slope(S) + np.concatenate([b, -a, 0 * S[..., 2:]], axis=-1) / (S.sum(axis=-1, keepdims=True) + 1e-30)


@pytest.mark.parametrize(
    ("impurity", "sentence"),
    [
        (
            Broken(phi_=GINI.slope),
            r"phi of statistics of .* must have shape \(2, 3\); it has \(2, 3, 3\)",
        ),
        (Broken(slope_=GINI.phi), r"slope of statistics .* must have their shape; it has \(2, 3\)"),
        (Broken(value_=GINI.phi), r"value of statistics .* must have shape \(2, 3, v\); it has \(2, 3\)"),
        (Broken(phi_=lambda S: GINI.phi(S) + 1), "phi must be 0 where S is 0; it is 1"),
        (Broken(value_=lambda S: S / S.sum(axis=-1, keepdims=True)), "slope and value must be finite where S is 0"),
        (Broken(phi_=lambda S: GINI.phi(S) / (S.sum(axis=-1) + 1)), r"phi\(2 S\) must be 2 phi\(S\)"),
        (Broken(phi_=lambda S: -GINI.phi(S)), r"cutting a node must not raise phi \(phi is concave\)"),
        (Broken(slope_=lambda S: 2 * GINI.slope(S)), r"slope\(S\) \. S must be phi\(S\)"),
        (Broken(slope_=_turned), "slope must be the gradient of phi"),
        (Broken(value_=lambda S: GINI.value(S) ** 2), r"loss\(S, value\(S\)\) must be phi\(S\)"),
        (Mistaken(), r"loss\(S, value\(S\)\) must be phi\(S\)"),
        (Broken(phi_=lambda S: GINI.phi(S) * np.where(S[..., 0] > 20, np.nan, 1)), r"phi\(2 S\) must be 2 phi\(S\)"),
    ],
)
def test_the_first_law_broken_is_named_in_a_sentence(impurity: AbstractImpurity, sentence: str) -> None:
    with pytest.raises(ValueError, match=rf"^{type(impurity).__name__} breaks a law of impurities: .*{sentence}"):
        check_impurity(impurity)


def test_a_convex_function_lies_above_its_tangent_planes() -> None:
    """What superadditivity says first, for whoever breaks only the planes."""
    convex = Broken(lambda S: -GINI.phi(S), lambda S: -GINI.slope(S))
    S = np.random.default_rng(0).exponential(size=(5, 3))
    assert "must lie under each of its tangent planes" in str(checks._under_planes(checks._Trial(convex, S)))


def test_an_encoding_without_rows_asks_for_statistics() -> None:
    with pytest.raises(ValueError, match=r"Unknown names the encoding 'ranks'.*give some statistics as s"):
        check_impurity(Unknown())
    check_impurity(Unknown(), np.eye(4))


@pytest.mark.parametrize("s", [np.ones(3), np.ones((0, 3)), 1.0])
def test_statistics_of_another_shape_are_refused(s: Any) -> None:
    with pytest.raises(ValueError, match="s must hold the statistics of at least one row"):
        check_impurity(GINI, s)


def test_a_law_holds_within_rounding_only() -> None:
    """One part in a thousand is found."""
    off = Broken(slope_=lambda S: GINI.slope(S) * (1 + 1e-3))
    with pytest.raises(ValueError, match=r"slope\(S\) \. S must be phi\(S\)"):
        check_impurity(off)
