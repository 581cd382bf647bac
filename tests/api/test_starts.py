"""Where global training starts: by name, from a tree, from the last fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.train.recipe import STARTS

KINDS = {
    "classes": (TreeClassifier, *load_iris(return_X_y=True)),
    "numbers": (TreeRegressor, *load_diabetes(return_X_y=True)),
}
BOTH = pytest.mark.parametrize(("kind", "X", "y"), KINDS.values(), ids=KINDS)


def short(kind, **parameters):
    return kind(**({"max_depth": 3, "search": False, "max_iter": 40, "random_state": 0} | parameters))


def same_bits(one, other):
    for name in ("statistics", "values", "table", "row"):
        np.testing.assert_array_equal(getattr(one.tree_, name), getattr(other.tree_, name))


@pytest.mark.parametrize("init", STARTS)
@BOTH
def test_every_start_trains_and_repeats_bit_for_bit(kind, X, y, init):
    tree = short(kind, init=init).fit(X, y)
    assert tree.n_iter_ == 40 and tree.history_[-1] < tree.history_[0]
    same_bits(tree, short(kind, init=init, n_jobs=2).fit(X, y))
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = short(kind, init=init).fit(X, y, sample_weight=times)
    same_bits(weighted, short(kind, init=init).fit(np.repeat(X, times, axis=0), np.repeat(y, times)))


@BOTH
def test_a_tree_and_the_estimator_that_holds_it_are_one_start(kind, X, y):
    """After no more than a hair's breadth of training the questions are those that were given."""
    given = short(kind, max_iter=200).fit(X, y)
    tree = short(kind, init=given.tree_, max_iter=1, learning_rate=1e-9).fit(X, y)
    answers = tree.predict(X), given.predict(X)  # leaves may be others: where the tree was pruned questions are new
    assert np.corrcoef(*answers)[0, 1] > 0.98
    same_bits(tree, short(kind, init=given, max_iter=1, learning_rate=1e-9).fit(X, y))
    same_bits(tree, clone(tree).fit(X, y))


@BOTH
def test_greedy_then_global_is_global_from_the_greedy_tree(kind, X, y):
    greedy = kind(training="greedy", max_depth=2, max_iter=40, random_state=0).fit(X, y)
    refined = short(kind, init=greedy, max_depth=2, max_iter=400, weight_decay=0.0).fit(X, y)
    assert refined.score(X, y) > greedy.score(X, y) - 0.02
    assert refined.history_[-1] < refined.history_[0]


@BOTH
def test_a_warm_start_goes_on_from_the_last_tree(kind, X, y):
    tree = short(kind, max_iter=200, warm_start=True).fit(X, y)
    began, ended = tree.history_[0], tree.history_[-1]
    tree.set_params(max_iter=20, learning_rate=1e-3).fit(X, y)
    assert tree.n_iter_ == 20 and abs(tree.history_[0] - ended) < 0.3 * (began - ended)
    cold = clone(tree).set_params(warm_start=False).fit(X, y)
    assert abs(cold.history_[0] - began) < 0.05 * began


@BOTH
def test_a_warm_start_knows_new_rows_and_a_larger_depth(kind, X, y):
    tree = short(kind, warm_start=True, max_depth=2).fit(X, y)
    tree.set_params(max_depth=4).fit(X[::2], y[::2])
    assert 2 < tree.get_depth() <= 4 and tree.tree_.statistics[0].sum() != 0
    fresh = short(kind, max_depth=4).fit(X[::2], y[::2])
    np.testing.assert_allclose(tree.tree_.statistics[0], fresh.tree_.statistics[0], rtol=1e-9, atol=1e-6)


def test_a_model_file_keeps_the_name_of_a_start_only():
    X, y = KINDS["classes"][1:]
    tree = short(TreeClassifier, init=short(TreeClassifier).fit(X, y)).fit(X, y)
    again = TreeClassifier.from_record(tree.to_record())
    assert again.init == "cart"
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"init": "zero"}, "init must be one of 'cart', 'greedy', 'projected', 'random', a softwood Tree or"),
        ({"init": "random", "training": "cart"}, "init='random' needs training='global'"),
        ({"warm_start": True, "training": "greedy"}, "warm_start=True needs training='global'"),
        ({"init": "greedy", "search": True}, "search=True chooses the start itself"),
        ({"init": "random", "max_leaf_nodes": 4}, "init='random' makes a complete tree"),
        ({"init": DecisionTreeClassifier().fit([[0], [1]], [0, 1])}, "init must be a softwood tree"),
        ({"warm_start": 2}, "warm_start must be True or False"),
    ],
)
def test_starts_that_cannot_be_get_one_sentence(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        short(TreeClassifier, **parameters).fit(*KINDS["classes"][1:])


def test_a_start_that_does_not_fit_says_so():
    X, y = KINDS["classes"][1:]
    with pytest.raises(NotFittedError, match="clone forgets"):
        short(TreeClassifier, init=TreeClassifier()).fit(X, y)
    deep = short(TreeClassifier, max_depth=3).fit(X, y)
    with pytest.raises(ValueError, match="init has a tree of max_depth 3, but max_depth is 2"):
        short(TreeClassifier, max_depth=2, init=deep).fit(X, y)
    with pytest.raises(ValueError, match="init has a tree of 4 columns, but X has 2"):
        short(TreeClassifier, init=deep).fit(X[:, :2], y)
