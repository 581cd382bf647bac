"""Trees of one-column questions trained globally, through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import softwood
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.question import Thresholds

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
BOTH = pytest.mark.parametrize(
    ("kind", "X", "y"), [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)], ids=["classes", "numbers"]
)


def axis(kind, **parameters):
    return kind(split="axis", random_state=0, **({"max_depth": 3} | parameters))


@parametrize_with_checks([axis(TreeClassifier), axis(TreeRegressor)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def impurity_of(tree):
    phi = {TreeClassifier: softwood.impurity.Gini(), TreeRegressor: softwood.impurity.Variance()}[type(tree)].phi
    return float(phi(tree.tree_.statistics)[tree.tree_.topology.leaves].sum())


@BOTH
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_without_the_search_impurity_is_no_higher_than_carts(kind, X, y, depth):
    cart = kind(training="cart", max_depth=depth).fit(X, y)
    found = axis(kind, search=False, max_depth=depth).fit(X, y)
    assert impurity_of(found) <= impurity_of(cart) * (1 + 1e-9) + 1e-9
    assert found.get_depth() <= depth
    assert {type(table) for table in found.tree_.tables} == {Thresholds}


@BOTH
def test_history_falls_to_the_impurity_of_the_tree(kind, X, y):
    tree = axis(kind, search=False, max_iter=25).fit(X, y)
    assert tree.history_.size == 26 == tree.n_iter_
    assert (np.diff(tree.history_) <= 1e-11 * tree.history_[0]).all()
    assert tree.history_[-1] == pytest.approx(impurity_of(tree) / len(y), rel=1e-6)


@BOTH
@pytest.mark.parametrize("search", [True, False])
def test_weight_k_is_k_copies_bit_for_bit(kind, X, y, search):
    times = np.random.default_rng(0).integers(0, 4, len(y))
    tree = axis(kind, search=search)
    weighted = tree.fit(X, y, sample_weight=times).predict(X)
    copied = tree.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


@BOTH
def test_same_seed_same_bits_whatever_the_threads(kind, X, y):
    one, two = (axis(kind, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.tree_.statistics, two.tree_.statistics)
    np.testing.assert_array_equal(one.history_, two.history_)


@BOTH
def test_limits_are_kept(kind, X, y):
    tree = axis(kind, search=False, max_depth=6, min_samples_leaf=9, min_samples_split=25, max_leaf_nodes=7).fit(X, y)
    count = np.bincount(tree.apply(X), minlength=tree.tree_.n_nodes)
    path = tree.decision_path(X).toarray().sum(axis=0)
    assert count[tree.tree_.topology.leaves].min() >= 9
    assert path[tree.tree_.topology.internal].min() >= 25
    assert 2 <= tree.get_n_leaves() <= 7


@BOTH
def test_greedy_axis_trees_are_carts(kind, X, y):
    greedy, cart = kind(split="axis", training="greedy", max_depth=3), kind(training="cart", max_depth=3)
    np.testing.assert_array_equal(greedy.fit(X, y).predict(X), cart.fit(X, y).predict(X))


@BOTH
def test_a_given_tree_is_searched_on(kind, X, y):
    first = axis(kind, search=False, max_iter=1).fit(X, y)
    more = axis(kind, init=first, max_iter=10).fit(X, y)
    assert impurity_of(more) <= impurity_of(first) * (1 + 1e-9)


@BOTH
def test_slanted_starts_are_refused(kind, X, y):
    with pytest.raises(ValueError, match="init='greedy' makes slanted questions, but split='axis'"):
        axis(kind, init="greedy").fit(X, y)
    slanted = kind(max_depth=2, search=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Local search starts from trees of threshold questions"):
        axis(kind, init=slanted).fit(X, y)


@BOTH
def test_model_files_keep_the_answers(kind, X, y, tmp_path):
    tree = axis(kind).fit(X, y)
    softwood.save(tree, tmp_path / "tree.json")
    np.testing.assert_array_equal(softwood.load(tmp_path / "tree.json").predict(X), tree.predict(X))


def test_noise_is_mostly_left_to_cart():
    """Two hundred rows that say nothing: what search finds in them is not there."""
    rng, n_left = np.random.default_rng(0), 0
    for _ in range(8):
        X, y = rng.normal(size=(200, 10)), rng.normal(size=200)
        cart = TreeRegressor(training="cart", max_depth=3).fit(X, y)
        assert impurity_of(axis(TreeRegressor, search=False).fit(X, y)) < impurity_of(cart)
        n_left += impurity_of(axis(TreeRegressor).fit(X, y)) == pytest.approx(impurity_of(cart))
    assert n_left >= 6
