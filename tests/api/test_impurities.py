"""Impurities through the estimators: deviances of positive targets, and a user's own in every kind of training."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import softwood
import zoo
from modes import MODES
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.impurity import Gamma, Gini, Newton, Poisson, Variance

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 4))
RATE = np.exp(0.5 + 0.8 * np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]))
COUNTS = RNG.poisson(RATE).astype(float)
SIZES = 1e6 * RATE * RNG.gamma(3.0, 1 / 3.0, N)
DEVIANCES = {
    "poisson": (Poisson(), COUNTS, mean_poisson_deviance),
    "gamma": (Gamma(), SIZES, mean_gamma_deviance),
}
every_deviance = pytest.mark.parametrize("impurity", DEVIANCES)
every_training = pytest.mark.parametrize("training", MODES)


def fitted(kind, y, **settings):
    return kind(**{"max_depth": 3, "random_state": 0, "search": False, **settings}).fit(X, y)


@parametrize_with_checks([TreeRegressor(impurity=name, training="cart", random_state=0) for name in DEVIANCES])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_deviance
@every_training
def test_the_impurity_of_a_tree_is_half_its_mean_deviance(impurity, training):
    phi, y, deviance = DEVIANCES[impurity]
    weight = RNG.integers(1, 4, N).astype(float)
    tree = TreeRegressor(impurity=impurity, training=training, max_depth=3, random_state=0, search=False)
    tree.fit(X, y, sample_weight=weight)
    leaves = tree.tree_.topology.leaves
    whole = float(np.sum(phi.phi(tree.tree_.statistics[leaves]))) / weight.sum()
    constants = phi.value(tree.tree_.statistics)[:, 0][tree.apply(X)]
    positive = np.maximum(constants, 1e-300)  # a leaf of zeros answers 0, of which scikit-learn has no deviance
    assert 2 * whole == pytest.approx(deviance(y, positive, sample_weight=weight), rel=1e-9)
    assert tree.tree_.statistics[0][:2] == pytest.approx([weight.sum(), weight @ y])


@every_deviance
@every_training
def test_the_tree_is_better_by_its_own_deviance_than_the_mean(impurity, training):
    _, y, deviance = DEVIANCES[impurity]
    predicted = np.maximum(fitted(TreeRegressor, y, impurity=impurity, training=training).predict(X), 1e-9 * y.mean())
    assert deviance(y, predicted) < 0.7 * deviance(y, np.full(N, y.mean()))


@every_deviance
def test_the_search_judges_by_the_deviance(impurity):
    _, y, deviance = DEVIANCES[impurity]
    tree = fitted(TreeRegressor, y, impurity=impurity, search=True, max_iter=60)
    assert deviance(y, np.maximum(tree.predict(X), 1e-9 * y.mean())) < 0.7 * deviance(y, np.full(N, y.mean()))


def test_cart_on_counts_is_scikit_learns_poisson_tree():
    # Leaves of zeros are allowed here and not there: leaves of 20 rows have some count.
    settings = {"max_depth": 4, "min_samples_leaf": 20}
    ours = TreeRegressor(impurity="poisson", training="cart", random_state=0, **settings)
    theirs = DecisionTreeRegressor(criterion="poisson", random_state=0, **settings)
    X_32 = X[:250].astype(np.float32)
    for name, value in {"min_impurity_decrease": 0.0, "ccp_alpha": 0.03}.items():
        ours.set_params(**{name: value}).fit(X_32, COUNTS[:250])
        theirs.set_params(**{name: value}).fit(X_32, COUNTS[:250])
        np.testing.assert_allclose(ours.predict(X_32), theirs.predict(X_32), rtol=1e-12)
    assert ours.get_n_leaves() == theirs.get_n_leaves() < 12


@every_deviance
@every_training
def test_the_unit_of_the_target_does_not_matter(impurity, training):
    _, y, _ = DEVIANCES[impurity]
    ours, theirs = (fitted(TreeRegressor, c * y, impurity=impurity, training=training) for c in (1.0, 1024.0))
    np.testing.assert_allclose(theirs.predict(X), 1024 * ours.predict(X), rtol=1e-12)


@every_deviance
def test_equal_targets_are_one_leaf_that_answers_them(impurity):
    tree = fitted(TreeRegressor, np.full(N, 0.1), impurity=impurity)
    assert tree.get_n_leaves() == 1 and (tree.predict(X) == 0.1).all()


def test_counts_may_all_be_zero():
    assert (fitted(TreeRegressor, np.zeros(N), impurity="poisson").predict(X) == 0).all()


@pytest.mark.parametrize(
    ("impurity", "wrong", "sentence"),
    [
        ("poisson", -1.5, r"y must not be negative with the Poisson deviance; got -1.5\. Use impurity='variance'"),
        ("gamma", 0.0, r"y must be above 0 with the gamma deviance; got 0\. Use impurity='poisson'"),
        (Poisson(), -2.0, "y must not be negative"),
    ],
)
def test_targets_out_of_range_are_refused_unless_they_weigh_nothing(impurity, wrong, sentence):
    y, weight = np.where(np.arange(N) == 7, wrong, SIZES), np.ones(N)
    tree = TreeRegressor(impurity=impurity, max_depth=1, training="cart")
    with pytest.raises(ValueError, match=sentence):
        tree.fit(X, y)
    weight[7] = 0
    assert tree.fit(X, y, sample_weight=weight).get_n_leaves() == 2


@pytest.mark.parametrize(
    ("kind", "impurity"),
    [
        (TreeClassifier, Variance()),
        (TreeClassifier, Poisson()),
        (TreeRegressor, Gini()),
        (TreeRegressor, Newton()),
    ],
)
def test_an_impurity_of_other_statistics_is_refused(kind, impurity):
    with pytest.raises(ValueError, match=r"reads statistics of the encoding '\w+', which .* does not make of y"):
        kind(impurity=impurity).fit(X, COUNTS)


@every_deviance
def test_a_saved_tree_answers_the_same(impurity, tmp_path):
    tree = fitted(TreeRegressor, DEVIANCES[impurity][1], impurity=impurity)
    softwood.save(tree, tmp_path / "model.json")
    again = softwood.load(tmp_path / "model.json")
    assert again.impurity == impurity
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


@every_training
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(
    ("kind", "users", "ours", "y"),
    [(TreeClassifier, zoo.Tsallis(2.0), Gini(), COUNTS > 1), (TreeRegressor, zoo.Spread(), Variance(), np.log(SIZES))],
    ids=["classes", "numbers"],
)
def test_a_users_impurity_trains_like_ours(training, search, kind, users, ours, y):
    """Three methods of Python in every training: the same formulas learn as well as the compiled ones."""
    scores = [
        fitted(kind, y, impurity=each, training=training, search=search, max_iter=60).score(X, y)
        for each in (users, ours)
    ]
    assert scores[0] > 0.15 and abs(scores[0] - scores[1]) < 0.1


@every_deviance
def test_lines_in_leaves_go_with_squared_errors_only(impurity):
    _, y, _ = DEVIANCES[impurity]
    with pytest.raises(ValueError, match="leaves='linear' needs impurity='variance'"):
        fitted(TreeRegressor, y, impurity=impurity, leaves="linear")
