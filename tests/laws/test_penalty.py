"""Laws of penalties: slopes are derivatives, proximal maps are best, and trees come out sparse."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from derivatives import check_vjp
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.train.penalty import AbstractPenalty, AxisPenalty, Lasso

PENALTIES = [Lasso(0.3), AxisPenalty(0.7)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
W = np.random.default_rng(0).normal(size=(5, 4))


@every_penalty
def test_the_slope_is_the_derivative(penalty: AbstractPenalty) -> None:
    check_vjp(lambda V: np.array([penalty.value(V)]), lambda V, bar: bar[0] * penalty.slope(V), W)


@every_penalty
@pytest.mark.parametrize("rate", [1e-3, 0.1, 2.0])
def test_no_weights_nearby_are_better_than_the_proximal_ones(penalty: AbstractPenalty, rate: float) -> None:
    V = penalty.prox(W, rate)

    def cost(U: np.ndarray) -> float:
        return float(0.5 * np.sum((U - W) ** 2)) + rate * penalty.value(U)

    for seed in range(50):
        rng = np.random.default_rng(seed)
        assert cost(V) <= cost(V + 0.01 * rng.normal(size=W.shape) * (rng.uniform(size=W.shape) < 0.3)) + 1e-12


@every_penalty
def test_no_rate_and_no_strength_change_nothing(penalty: AbstractPenalty) -> None:
    np.testing.assert_array_equal(penalty.prox(W, 0.0), W)
    np.testing.assert_array_equal(type(penalty)(0.0).prox(W, 1.0), W)


@pytest.mark.parametrize("gradient", ["exact", "sampled"])
@pytest.mark.parametrize(
    ("kind", "X", "y"),
    [(TreeClassifier, *load_iris(return_X_y=True)), (TreeRegressor, *load_diabetes(return_X_y=True))],
)
def test_trees_are_sparse(kind, X, y, gradient):  # type: ignore[no-untyped-def]
    def tree(n_jobs: int = 1, **penalties: float):  # type: ignore[no-untyped-def]
        settings = {"max_depth": 3, "search": False, "max_iter": 150, "gradient": gradient, "random_state": 0}
        return kind(**settings, n_jobs=n_jobs, **penalties).fit(X, y)

    def columns(tree) -> float:  # type: ignore[no-untyped-def]
        return float(np.mean(np.sum(tree.tree_.tables[0].weights != 0, axis=1)))

    assert columns(tree()) == X.shape[1]
    sparse = tree(l1=0.7)
    assert 1 <= columns(sparse) < 0.8 * X.shape[1] and sparse.score(X, y) > 0.3
    snapped = tree(axis_penalty=5.0)
    assert columns(snapped) == 1 and snapped.score(X, y) > 0.3
    for penalties in ({"l1": 0.7}, {"axis_penalty": 5.0}):
        one, two = tree(**penalties), tree(n_jobs=2, **penalties)
        np.testing.assert_array_equal(one.tree_.values, two.tree_.values)


def test_penalties_that_cannot_be_get_one_sentence() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="l1 and axis_penalty need solver='adam'"):
        TreeClassifier(l1=0.1, solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match="axis_penalty needs early_stopping=False"):
        TreeClassifier(axis_penalty=0.1, early_stopping=True).fit(X, y)
    with pytest.raises(ValueError, match="l1 must be a finite number >= 0"):
        TreeClassifier(l1=-1).fit(X, y)
