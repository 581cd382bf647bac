"""scikit-learn's own checks, nothing excused, and what our estimators promise besides."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from modes import MODES
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.record import ModelFileError

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
KINDS = [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)]


@parametrize_with_checks(
    [kind(training=training, random_state=0) for kind in (TreeClassifier, TreeRegressor) for training in MODES]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(
    params=[(*kind, training) for kind in KINDS for training in MODES], ids=lambda p: f"{p[0].__name__}-{p[3]}"
)
def fitted(request):
    kind, X, y, training = request.param
    return kind(training=training, max_depth=3, random_state=0).fit(X, y), X, y


def test_a_path_is_the_root_the_ancestors_and_the_leaf(fitted):
    tree, X, _ = fitted
    path, leaf, parent = tree.decision_path(X), tree.apply(X), tree.tree_.topology.parent
    assert path.shape == (len(X), tree.tree_.n_nodes) and path.has_sorted_indices
    np.testing.assert_array_equal(path.toarray().astype(bool), tree.tree_.visited(X))
    for row in range(0, len(X), 17):
        nodes = path[row].indices
        assert nodes[0] == 0 and nodes[-1] == leaf[row]
        np.testing.assert_array_equal(parent[nodes[1:]], nodes[:-1])


def test_answers_are_the_values_of_leaves(fitted):
    tree, X, y = fitted
    values = tree.tree_.values[tree.apply(X)]
    if isinstance(tree, TreeRegressor):
        np.testing.assert_array_equal(tree.predict(X), values[:, 0])
        assert abs(tree.predict(X).mean() - y.mean()) < 0.2 * y.std()
    else:
        np.testing.assert_array_equal(tree.predict_proba(X), values)
        np.testing.assert_array_equal(tree.predict(X), tree.classes_[values.argmax(axis=1)])
        np.testing.assert_allclose(np.exp(tree.predict_log_proba(X)), values, atol=1e-15)


def test_the_fitted_attributes_are_there(fitted):
    tree, X, _ = fitted
    assert tree.n_features_in_ == X.shape[1] and tree.n_outputs_ == 1 and tree.n_iter_ >= 1
    assert tree.get_depth() == tree.tree_.depth <= 3 and tree.get_n_leaves() == tree.tree_.n_leaves
    assert tree.history_.ndim == 1 and np.isfinite(tree.history_).all()
    assert tree.feature_importances_.shape == (X.shape[1],) and (tree.feature_importances_ >= 0).all()
    assert tree.feature_importances_.sum() == pytest.approx(1)


def test_node_statistics_are_in_the_users_units(fitted):
    tree, _, y = fitted
    root = tree.tree_.statistics[0]
    if isinstance(tree, TreeRegressor):
        np.testing.assert_allclose(root, [len(y), 0, ((y - y.mean()) ** 2).sum()], rtol=1e-9, atol=1e-6)
    else:
        np.testing.assert_allclose(root, np.bincount(y))


def test_a_record_comes_back_equal(fitted):
    tree, X, _ = fitted
    record = json.loads(json.dumps(tree.to_record(), allow_nan=False))
    again = type(tree).from_record(record)
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, tree.feature_importances_)
    assert again.get_params() == tree.get_params() and again.n_iter_ == tree.n_iter_
    assert vars(again).keys() == vars(tree).keys()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.5, 2.5]).astype(int),
        np.array([0.0, 1.0]),
        np.array([3, 2**63], dtype=np.uint64),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_come_back_equal_in_value_and_type(labels):
    X, y = np.arange(10.0)[:, None], labels[np.arange(10) // 5]
    tree = TreeClassifier(training=MODES[-1], class_weight={labels.tolist()[0]: 2.0}, random_state=0).fit(X, y)
    again = TreeClassifier.from_record(json.loads(json.dumps(tree.to_record())))
    np.testing.assert_array_equal(again.classes_, tree.classes_)
    assert again.classes_.dtype == tree.classes_.dtype and again.class_weight == tree.class_weight
    np.testing.assert_array_equal(again.predict(X), y)


def test_an_impurity_of_ones_own_cannot_be_stored():
    from softwood.impurity import Gini

    tree = TreeClassifier(training=MODES[-1], impurity=Gini()).fit(*IRIS)
    with pytest.raises(ModelFileError, match=r"impurity=Gini.* is an object"):
        tree.to_record()


def test_a_record_of_another_class_is_refused():
    record = TreeClassifier(training=MODES[-1], max_depth=0).fit(*IRIS).to_record()
    with pytest.raises(ModelFileError, match="TreeRegressor"):
        TreeRegressor.from_record(record)
    with pytest.raises(ModelFileError, match="max_depth"):
        TreeClassifier.from_record(record | {"parameters": {"max_depth": -3}})
    with pytest.raises(ModelFileError, match="label twice"):
        TreeClassifier.from_record(record | {"classes": {"dtype": "int64", "values": [1, 1, 2]}})


@pytest.mark.parametrize("training", MODES)
@pytest.mark.parametrize(("kind", "X", "y"), KINDS, ids=["classes", "numbers"])
def test_weight_k_is_k_copies_bit_for_bit(kind, X, y, training):
    times = np.random.default_rng(0).integers(0, 4, len(y))
    tree = kind(training=training, max_depth=3, random_state=0)
    weighted = tree.fit(X, y, sample_weight=times).predict(X)
    copied = tree.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


@pytest.mark.parametrize("training", MODES)
def test_units_of_y_change_nothing_but_units(training):
    X, y = DIABETES
    tree = TreeRegressor(training=training, max_depth=3, random_state=0)
    plain = tree.fit(X, y).predict(X)
    scaled = TreeRegressor(training=training, max_depth=3, random_state=0).fit(X, 8 * y + 1024)
    np.testing.assert_allclose(scaled.predict(X), 8 * plain + 1024, rtol=1e-9)
    np.testing.assert_allclose(scaled.history_, 64 * tree.history_, rtol=1e-4)


def test_balanced_weights_give_each_class_the_same_say():
    X, y = np.zeros((10, 1)), np.array([0] * 9 + [1])
    shares = TreeClassifier(training=MODES[-1], class_weight="balanced").fit(X, y).predict_proba(X[:1])
    np.testing.assert_allclose(shares, [[0.5, 0.5]])


def test_class_weights_by_label_multiply_sample_weights():
    X, y = np.zeros((4, 1)), np.array(["a", "a", "b", "b"])
    tree = TreeClassifier(training=MODES[-1], class_weight={"a": 3})
    np.testing.assert_allclose(tree.fit(X, y).predict_proba(X[:1]), [[0.75, 0.25]])
    np.testing.assert_allclose(tree.fit(X, y, sample_weight=[1, 0, 1, 2]).predict_proba(X[:1]), [[0.5, 0.5]])


def test_every_parameter_and_no_other_is_documented():
    for kind in (TreeClassifier, TreeRegressor):
        section = kind.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
        documented = [line.split(" : ")[0].strip() for line in section.splitlines() if " : " in line and line[4] != " "]
        assert documented == list(inspect.signature(kind).parameters)


def test_verbose_writes_a_line_per_tenth_to_standard_error(capsys):
    TreeClassifier(training=MODES[-1], verbose=1).fit(*IRIS)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert 1 <= len(lines) <= 10 and "100% done, objective" in lines[-1]


def test_an_estimator_that_is_not_fitted_says_so():
    for question in ("get_depth", "get_n_leaves", "to_record"):
        with pytest.raises(NotFittedError):
            getattr(TreeClassifier(), question)()


@pytest.mark.parametrize(("kind", "X", "y"), KINDS, ids=["classes", "numbers"])
def test_the_pruning_path_tells_how_many_leaves_remain(kind, X, y):
    grown = kind(training="cart", max_depth=4).fit(X, y)
    path = grown.cost_complexity_pruning_path(X, y)
    assert path.ccp_alphas[0] == 0 and (np.diff(path.ccp_alphas) >= 0).all() and (np.diff(path.impurities) >= 0).all()
    alphas = [0.0, *(path.ccp_alphas[1:-1] + path.ccp_alphas[2:]) / 2, 2 * path.ccp_alphas[-1]]
    leaves = [kind(training="cart", max_depth=4, ccp_alpha=alpha).fit(X, y).get_n_leaves() for alpha in alphas]
    assert leaves[0] == grown.get_n_leaves() and leaves[-1] == 1 and leaves == sorted(leaves, reverse=True)


@pytest.mark.parametrize("training", MODES)
def test_no_leaf_is_lighter_than_asked(training):
    X, y = IRIS
    weight = np.where(y == 1, 1e-3, 1.0)
    tree = TreeClassifier(training=training, min_weight_fraction_leaf=0.05, random_state=0)
    tree.fit(X, y, sample_weight=weight)
    shares = np.bincount(tree.apply(X), weight) / weight.sum()
    assert shares[shares > 0].min() >= 0.05


@pytest.mark.parametrize("n_draws", [1, 3])
@pytest.mark.parametrize(("kind", "X", "y"), KINDS, ids=["classes", "numbers"])
def test_sampled_gradients_train_and_repeat_bit_for_bit(kind, X, y, n_draws):
    settings = {"gradient": "sampled", "n_draws": n_draws, "max_depth": 3, "search": False, "max_iter": 200}
    trees = [kind(**settings, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    assert trees[0].score(X, y) > (0.9 if kind is TreeClassifier else 0.35)
    np.testing.assert_array_equal(trees[0].tree_.values, trees[1].tree_.values)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(trees[0]).fit(X, y, sample_weight=times).predict(X)
    copied = clone(trees[0]).fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)
