"""Distilling: a tree fitted to what another classifier says, and the sentences for teachers that cannot teach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from modes import MODES
from softwood import TreeClassifier

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def forest(labels=NAMES[y]):
    return RandomForestClassifier(25, random_state=0).fit(X, labels)


def tree(**settings):
    return TreeClassifier(**({"max_depth": 3, "max_iter": 100, "search": False, "random_state": 0} | settings))


class Certain(BaseEstimator):
    """A classifier that is sure of given labels."""

    def __init__(self, codes, classes):
        self.codes, self.classes_ = codes, classes

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[self.codes]


@pytest.mark.parametrize("training", MODES)
def test_a_tree_learns_what_the_teacher_says(training):
    teacher = forest()
    student = tree(training=training).distill(teacher, X)
    np.testing.assert_array_equal(student.classes_, teacher.classes_)
    assert (student.predict(X) == teacher.predict(X)).mean() > 0.95
    assert np.abs(student.predict_proba(X) - teacher.predict_proba(X)).mean() < 0.05
    assert student.n_features_in_ == 4 and 0 < student.agreement_ <= 1


@pytest.mark.parametrize("training", MODES)
def test_a_teacher_that_is_certain_teaches_labels(training):
    student, pupil = tree(training=training).distill(Certain(y, np.unique(y)), X), tree(training=training).fit(X, y)
    np.testing.assert_allclose(student.predict_proba(X), pupil.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(student.tree_.statistics[0], pupil.tree_.statistics[0])


@pytest.mark.parametrize("training", MODES)
def test_a_weight_is_that_many_copies(training):
    copies, teacher = np.random.default_rng(0).integers(0, 4, len(X)), forest()
    weighted = tree(training=training).distill(teacher, X, sample_weight=copies)
    copied = tree(training=training).distill(teacher, np.repeat(X, copies, axis=0))
    np.testing.assert_array_equal(weighted.predict_proba(X), copied.predict_proba(X))


def test_threads_and_the_order_of_rows_do_not_matter():
    teacher, order = forest(), np.random.default_rng(0).permutation(len(X))
    one, two = tree(n_jobs=1).distill(teacher, X), tree(n_jobs=2).distill(teacher, X[order])
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_search_judges_by_the_teachers_probabilities():
    student = tree(search=True).distill(forest(), X)
    assert (student.predict(X) == NAMES[y]).mean() > 0.95


def test_class_weights_multiply_the_teachers_probabilities():
    teacher = forest()
    student = tree(class_weight={"setosa": 0.0, "virginica": 3.0}).distill(teacher, X)
    whole = teacher.predict_proba(X).sum(axis=0)
    np.testing.assert_allclose(student.tree_.statistics[0], whole * [0, 1, 3])
    with pytest.raises(ValueError, match="zero for every row"):
        tree(class_weight=dict.fromkeys(NAMES.tolist(), 0)).distill(teacher, X)


def test_rows_may_be_new_and_have_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    teacher = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    student = tree().distill(teacher, frame + 0.05)
    assert student.feature_names_in_.tolist() == list("abcd")
    assert (student.predict(frame) == teacher.predict(frame)).mean() > 0.95


@pytest.mark.parametrize(
    ("teacher", "error", "said"),
    [
        (RandomForestClassifier(), NotFittedError, "teacher must be fitted; this RandomForestClassifier is not"),
        (LinearSVC(), TypeError, "teacher must have the method predict_proba; LinearSVC has none"),
        (forest(), ValueError, "X must have the 4 columns that teacher was fitted to; got 3"),
        (forest(np.stack([y, y], axis=1)), ValueError, "teacher must give one probability per class and row"),
    ],
)
def test_a_teacher_that_cannot_teach_is_one_sentence(teacher, error, said):
    with pytest.raises(error, match=said):
        tree().distill(teacher, X[:, :3] if "columns" in said else X)


def test_what_is_no_probability_is_refused():
    teacher = Certain(y, np.unique(y))
    teacher.predict_proba = lambda X: np.full((len(X), 3), 0.5)
    with pytest.raises(ValueError, match="add up to 1 in each row"):
        tree().distill(teacher, X)


def test_a_lesson_may_start_from_a_tree_or_from_the_last_lesson():
    teacher, first = forest(), tree().distill(forest(), X)
    again = tree(init=first, max_iter=1, learning_rate=1e-9).distill(teacher, X)
    assert (again.predict(X) == first.predict(X)).mean() > 0.97
    went_on = tree(warm_start=True).distill(teacher, X).set_params(max_iter=1, learning_rate=1e-9).distill(teacher, X)
    assert (went_on.predict(X) == first.predict(X)).mean() > 0.97


def test_true_labels_are_averaged_with_the_teacher():
    teacher, labels = forest(), np.roll(NAMES[y], 7)
    student = tree(training="cart").distill(teacher, X, y=labels)
    expected = (teacher.predict_proba(X) + (labels[:, None] == NAMES)).sum(axis=0) / 2
    np.testing.assert_allclose(student.tree_.statistics[0], expected)
    copies = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = tree().distill(teacher, X, copies, y=labels)
    copied = tree().distill(teacher, np.repeat(X, copies, axis=0), y=np.repeat(labels, copies))
    np.testing.assert_array_equal(weighted.predict_proba(X), copied.predict_proba(X))


@pytest.mark.parametrize(("labels", "said"), [(["rose"] * 150, "it has .*rose"), (["setosa"], "150 rows of X; got 1")])
def test_labels_the_teacher_does_not_know_are_refused(labels, said):
    with pytest.raises(ValueError, match=said):
        tree().distill(forest(), X, y=labels)
