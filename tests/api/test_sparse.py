"""Slanted questions about few columns, through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.utils.estimator_checks import parametrize_with_checks

from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.train.sparsify import stages

BOTH = pytest.mark.parametrize(
    ("kind", "X", "y"),
    [(TreeClassifier, *load_breast_cancer(return_X_y=True)), (TreeRegressor, *load_diabetes(return_X_y=True))],
    ids=["classes", "numbers"],
)


def sparse(kind, most, **parameters):
    settings = {"max_depth": 3, "search": False, "max_iter": 200, "random_state": 0}
    return kind(max_features_per_split=most, **(settings | parameters))


@parametrize_with_checks([sparse(TreeClassifier, 1), sparse(TreeRegressor, 1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@BOTH
@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("search", [False, True])
def test_no_question_looks_at_more_columns(kind, X, y, most, search):
    if search and most != 2:
        pytest.skip("one number of columns is enough")
    tree = sparse(kind, most, search=search).fit(X, y).tree_
    for node in tree.topology.internal:
        table, k = tree.question(int(node))
        assert len(table.features(k)) <= most


@BOTH
def test_a_limit_of_all_columns_is_none(kind, X, y):
    np.testing.assert_array_equal(
        sparse(kind, X.shape[1]).fit(X, y).predict(X), sparse(kind, None).fit(X, y).predict(X)
    )


@BOTH
def test_three_columns_explain_more_than_one(kind, X, y):
    cart = kind(training="cart", max_depth=2).fit(X, y).score(X, y)
    assert sparse(kind, 3, max_depth=2, max_iter=1000).fit(X, y).score(X, y) > cart


@BOTH
def test_weight_k_is_k_copies_bit_for_bit(kind, X, y):
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = sparse(kind, 2).fit(X, y, sample_weight=times).predict(X)
    copied = sparse(kind, 2).fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


@BOTH
@pytest.mark.parametrize("setting", [{"training": "cart"}, {"training": "greedy"}, {"split": "axis"}], ids=str)
def test_other_trees_have_no_such_limit(kind, X, y, setting):
    with pytest.raises(ValueError, match="max_features_per_split needs training='global' and split='linear'"):
        sparse(kind, 2, **setting).fit(X, y)


def test_stages_fall_to_the_last() -> None:
    assert stages(64, 3) == [32, 16, 8, 5, 3]
    assert stages(9, 3) == [8, 5, 4, 3]
    assert stages(4, 3) == [3]
    assert stages(2, 1) == [1]
