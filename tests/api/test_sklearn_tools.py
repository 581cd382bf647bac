"""Our estimators inside other people's tools."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from modes import MODES
from softwood.estimators import TreeClassifier, TreeRegressor

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
EVERY = pytest.mark.parametrize("training", MODES)
BOTH = pytest.mark.parametrize(
    ("kind", "X", "y"), [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)], ids=["classes", "numbers"]
)


def quick(kind, training=MODES[-1], **parameters):
    return kind(training=training, max_depth=3, random_state=0, search=False, **parameters)


@EVERY
@BOTH
def test_clone_pickle_and_joblib_keep_the_answers(kind, X, y, training, tmp_path):
    tree = quick(kind, training).fit(X, y)
    joblib.dump(tree, tmp_path / "tree.joblib")
    for again in (pickle.loads(pickle.dumps(tree)), joblib.load(tmp_path / "tree.joblib"), clone(tree).fit(X, y)):
        np.testing.assert_array_equal(again.predict(X), tree.predict(X))
        assert not again.tree_.values.flags.writeable or again.tree_ is not tree.tree_


@EVERY
@BOTH
def test_same_seed_same_bits_whatever_the_threads(kind, X, y, training):
    one = quick(kind, training, n_jobs=1).fit(X, y)
    two = quick(kind, training, n_jobs=2).fit(X, y)
    for attribute in ("values", "statistics"):
        np.testing.assert_array_equal(getattr(one.tree_, attribute), getattr(two.tree_, attribute))
    np.testing.assert_array_equal(one.history_, two.history_)
    np.testing.assert_array_equal(one.apply(X), two.apply(X))


@EVERY
def test_a_random_state_object_is_drawn_from(training):
    state = np.random.RandomState(3)
    quick(TreeClassifier, training).set_params(random_state=state).fit(*IRIS)
    assert state.randint(2**31) != np.random.RandomState(3).randint(2**31)


@EVERY
def test_pipeline_grid_search_and_cross_validation(training):
    X, y = IRIS
    pipe = make_pipeline(StandardScaler(), quick(TreeClassifier, training))
    grid = GridSearchCV(pipe, {"treeclassifier__max_depth": [1, 2]}, cv=3).fit(X, y)
    assert grid.best_params_ == {"treeclassifier__max_depth": 2} and grid.best_score_ > 0.9
    assert cross_val_score(quick(TreeRegressor, training), *DIABETES, cv=3).mean() > 0.15


@EVERY
def test_ensembles_of_scikit_learn_around_our_trees(training):
    stump = quick(TreeClassifier, training).set_params(max_depth=1)
    assert AdaBoostClassifier(stump, n_estimators=5, random_state=0).fit(*IRIS).score(*IRIS) > 0.9
    assert BaggingClassifier(stump, n_estimators=5, random_state=0).fit(*IRIS).score(*IRIS) > 0.6
    tree = quick(TreeRegressor, training)
    assert AdaBoostRegressor(tree, n_estimators=5, random_state=0).fit(*DIABETES).score(*DIABETES) > 0.3
    assert BaggingRegressor(tree, n_estimators=5, random_state=0).fit(*DIABETES).score(*DIABETES) > 0.3


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@BOTH
def test_frames_keep_their_names(kind, X, y, frame):
    columns = {f"column {j}": X[:, j] for j in range(X.shape[1])}
    tree = quick(kind).fit(frame(columns), y)
    assert tree.feature_names_in_.tolist() == list(columns)
    np.testing.assert_array_equal(tree.predict(frame(columns)), quick(kind).fit(X, y).predict(X))
    again = kind.from_record(tree.to_record())
    np.testing.assert_array_equal(again.predict(frame(columns)), tree.predict(frame(columns)))


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1, 2]),
        np.array([7, -3, 100]),
        np.array([0.0, 1.0, 2.0]),
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["a", "b", "c"], dtype=object),
    ],
    ids=lambda names: str(names.dtype),
)
def test_labels_of_every_kind(names):
    X, codes = IRIS
    y = names[codes]
    tree = quick(TreeClassifier).fit(X, y)
    np.testing.assert_array_equal(tree.classes_, np.unique(y))
    assert tree.predict(X).dtype == tree.classes_.dtype and tree.score(X, y) > 0.95


def test_labels_as_booleans_series_and_columns():
    X, codes = IRIS
    tree = quick(TreeClassifier).fit(X, codes == 0)
    assert tree.classes_.tolist() == [False, True] and tree.score(X, codes == 0) == 1
    assert quick(TreeClassifier).fit(X, pd.Series(codes).map({0: "a", 1: "b", 2: "c"})).classes_.tolist() == [
        "a",
        "b",
        "c",
    ]
    assert quick(TreeClassifier).fit(X, pl.Series(codes)).classes_.tolist() == [0, 1, 2]
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = quick(TreeClassifier).fit(X, codes[:, None])
    np.testing.assert_array_equal(column.predict(X), quick(TreeClassifier).fit(X, codes).predict(X))


def test_metadata_routing_knows_the_weights():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        tree = quick(TreeClassifier).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_val_score(tree, *IRIS, params={"sample_weight": np.ones(150)})
    assert scores.mean() > 0.9


def test_callbacks_hear_of_each_tenth():
    pytest.importorskip("sklearn.callback")

    class Listener:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            self.heard.append("setup")

        def on_fit_task_begin(self, estimator, context):
            self.heard.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            self.heard.append(f"end {context.task_name}")

        def teardown(self, estimator, context):
            self.heard.append("teardown")

    listener = Listener()
    quick(TreeClassifier).set_callbacks(listener).fit(*IRIS)
    assert listener.heard[:2] == ["setup", "begin fit"] and listener.heard[-2:] == ["end fit", "teardown"]
    assert listener.heard.count("end tenth of the work") == 10
