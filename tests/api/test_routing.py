"""Routing through the estimators: what it changes, what it leaves alone, and what a model file keeps of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from softwood import TreeClassifier, TreeRegressor
from softwood.answers import ROUTINGS

KINDS = [(TreeClassifier, load_iris), (TreeRegressor, load_diabetes)]
every_kind = pytest.mark.parametrize(("kind", "data"), KINDS, ids=["classes", "numbers"])


@parametrize_with_checks(
    [
        TreeClassifier(routing="soft", smoothing=1.0, search=False, max_iter=50, random_state=0),
        TreeClassifier(routing="sampled", search=False, max_iter=50, random_state=0),
        TreeClassifier(routing="likeliest", search=False, max_iter=50, random_state=0),
        TreeRegressor(routing="soft", leaves="linear", search=False, max_iter=50, random_state=0),
        TreeRegressor(routing="sampled", smoothing=1.0, search=False, max_iter=50, random_state=0),
        TreeRegressor(leaves="linear", training="cart"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def fitted(kind, data, **settings):
    X, y = data(return_X_y=True)
    return kind(max_depth=3, search=False, max_iter=100, random_state=0, **settings).fit(X, y), X, y


@every_kind
@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_routing_does_not_change_the_tree_and_may_be_set_later(kind, data, routing):
    tree, X, _ = fitted(kind, data)
    other, _, _ = fitted(kind, data, routing=routing)
    np.testing.assert_array_equal(tree.tree_.values, other.tree_.values)
    tree.set_params(routing=routing)
    np.testing.assert_array_equal(tree.predict(X), other.predict(X))
    np.testing.assert_array_equal(tree.apply(X), other.apply(X))


@every_kind
@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_path_leads_to_the_leaf_that_answers(kind, data, routing):
    tree, X, _ = fitted(kind, data, routing=routing)
    path, leaf = tree.decision_path(X), tree.apply(X)
    assert [path[row].indices[-1] for row in range(len(X))] == leaf.tolist()


@every_kind
@pytest.mark.parametrize("routing", ROUTINGS)
def test_answers_come_back_from_a_record(kind, data, routing):
    tree, X, _ = fitted(kind, data, routing=routing)
    again = kind.from_record(json.loads(json.dumps(tree.to_record())))
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))
    assert again.agreement_ == tree.agreement_ and again.seed_ == tree.seed_


@every_kind
def test_a_record_without_agreement_is_read(kind, data):
    tree, X, _ = fitted(kind, data)
    record = tree.to_record()
    for name in ("agreement", "seed"):
        del record[name]
    again = kind.from_record(record)
    assert np.isnan(again.agreement_) and again.to_record()["agreement"] is None
    np.testing.assert_array_equal(again.set_params(routing="sampled").predict(X).shape, (len(X),))


def test_soft_shares_add_up_and_name_the_prediction():
    tree, X, _ = fitted(TreeClassifier, load_iris, routing="soft")
    shares = tree.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(tree.predict(X), tree.classes_[shares.argmax(axis=1)])


@every_kind
def test_agreement_is_what_it_says(kind, data):
    tree, X, _ = fitted(kind, data)
    hard, soft = tree.predict(X), tree.set_params(routing="soft").predict(X)
    if kind is TreeClassifier:
        assert tree.agreement_ == pytest.approx((hard == soft).mean())
    else:
        assert tree.agreement_ == pytest.approx(1 - ((hard - soft) ** 2).sum() / ((hard - hard.mean()) ** 2).sum())
    assert kind(training="cart").fit(*data(return_X_y=True)).agreement_ == 1.0


@every_kind
def test_draws_depend_on_the_seed(kind, data):
    tree, X, _ = fitted(kind, data, routing="sampled")
    first = tree.apply(X)
    tree.seed_ += 1
    assert (tree.apply(X) != first).any()


@every_kind
def test_an_unknown_routing_is_refused_when_fitting_and_when_asked(kind, data):
    X, y = data(return_X_y=True)
    with pytest.raises(ValueError, match="routing must be one of 'hard', 'soft', 'likeliest', 'sampled'; got 'fuzzy'"):
        kind(routing="fuzzy").fit(X, y)
    with pytest.raises(ValueError, match="routing must be one of"):
        fitted(kind, data)[0].set_params(routing="fuzzy").predict(X)


@every_kind
@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_gap_in_new_rows_is_named(kind, data, routing):
    tree, X, _ = fitted(kind, data, routing=routing)
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in column 1, first at row 3"):
        tree.predict(X)
