"""Every split family behind the estimators: scikit-learn's checks, model files, clones, bits, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from softwood import ModelFileError, TreeClassifier, TreeRegressor, load, save
from softwood.export import tree_text
from softwood.split import SPLITS, AbstractSplit, Flowing, Kernel, Layered, Linear, Multiway, Network, Pretransform

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SMALL: list[AbstractSplit] = [
    Pretransform(2),
    Pretransform(3, "relu", n_children=3),
    Network((3, 2)),
    Multiway(2),
    Multiway(4),
    Layered((Linear(), Pretransform(2))),
    Flowing(4),
    Flowing(3, "sigmoid", n_children=3),
    Kernel(),
    Kernel("polynomial", 20, gamma=0.3),
]
EVERY = pytest.mark.parametrize("split", SMALL, ids=repr)
BOTH = pytest.mark.parametrize(
    ("kind", "X", "y"), [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)], ids=["classes", "numbers"]
)


def quick(kind, split, **parameters):
    return kind(**{"split": split, "max_depth": 2, "max_iter": 60, "random_state": 0, **parameters})


def test_every_family_with_an_array_engine_is_here():
    assert {split.name for split in SMALL} >= set(SPLITS) - {"linear", "axis"}


@parametrize_with_checks([quick(kind, split) for kind in (TreeClassifier, TreeRegressor) for split in SMALL])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@EVERY
@BOTH
def test_same_seed_same_bits_whatever_the_threads(kind, X, y, split):
    one, two = (quick(kind, split, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert repr(one.tree_.tables[0].record()) == repr(two.tree_.tables[0].record())
    np.testing.assert_array_equal(one.tree_.values, two.tree_.values)
    np.testing.assert_array_equal(one.history_, two.history_)


@EVERY
@BOTH
def test_weight_k_is_k_copies(kind, X, y, split):
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = quick(kind, split).fit(X, y, sample_weight=times)
    copied = quick(kind, split).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_array_equal(weighted.tree_.values, copied.tree_.values)
    assert repr(weighted.tree_.tables[0].record()) == repr(copied.tree_.tables[0].record())


@EVERY
@BOTH
def test_a_model_file_brings_back_answers_and_family(kind, X, y, split, tmp_path):
    tree = quick(kind, split).fit(X, y)
    save(tree, tmp_path / "tree.json")
    back = load(tmp_path / "tree.json")
    assert back.split == split
    np.testing.assert_array_equal(back.predict(X), tree.predict(X))
    np.testing.assert_array_equal(back.tree_.reach(X), tree.tree_.reach(X))


@EVERY
def test_clones_and_names(split):
    tree = quick(TreeClassifier, split)
    assert clone(tree).get_params()["split"] == split
    assert type(split).__name__ in repr(tree)
    assert eval(repr(split)) == split  # what is printed can be typed


@EVERY
@BOTH
def test_a_tree_is_refined_and_read(kind, X, y, split):
    tree = quick(kind, split).fit(X, y)
    assert tree.history_[-1] < tree.history_[0]
    assert tree_text(tree.tree_).count("\n") == tree.tree_.n_nodes
    assert tree.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("split", [each for each in SMALL if not each.spans_levels], ids=repr)
@BOTH
def test_every_family_grows_greedily(kind, X, y, split):
    tree = quick(kind, split, training="greedy").fit(X, y)
    assert tree.score(X, y) > (0.9 if kind is TreeClassifier else 0.4)


@pytest.mark.parametrize("name", sorted(set(SPLITS) - {"axis"}))
def test_a_name_is_the_family_with_its_defaults(name):
    X, y = IRIS
    named, made = (quick(TreeClassifier, split).fit(X, y) for split in (name, SPLITS[name]()))
    np.testing.assert_array_equal(named.predict_proba(X), made.predict_proba(X))


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"family": "nothing", "parameters": {}}, "unknown family 'nothing'"),
        ({"family": "pretransform"}, "'parameters' is missing"),
        ({"family": "pretransform", "parameters": {"n_rows": 0}}, "n_rows must be an integer from 1"),
        ({"family": "pretransform", "parameters": {"n_rows": True}}, "n_rows must be an integer from 1"),
        ({"family": "pretransform", "parameters": {"rows": 1}}, "split is wrong"),
        ({"family": "pretransform", "parameters": {"activation": "exec"}}, "activation must be one of"),
        ({"family": "network", "parameters": {"hidden": [3, "a"]}}, "hidden must be an integer"),
        ({"family": "multiway", "parameters": {"n_children": 1}}, "n_children must be an integer from 2"),
        ({"family": "layered", "parameters": {"families": [1]}}, "families must be instances"),
    ],
)
def test_a_family_from_a_file_is_checked(split, said):
    record = quick(TreeClassifier, Linear()).fit(*IRIS).to_record()
    record["parameters"]["split"] = split
    with pytest.raises(ModelFileError, match=said):
        TreeClassifier.from_record(record)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Pretransform(0), "n_rows must be an integer from 1"),
        (lambda: Pretransform(2, "sin"), "activation must be one of 'tanh'"),
        (lambda: Network(3), "hidden must list the units"),
        (lambda: Multiway(1), "n_children must be an integer from 2"),
        (lambda: Kernel("linear"), "kernel must be one of 'rbf', 'polynomial'"),
        (lambda: Kernel(n_landmarks=1001), "n_landmarks must be an integer from 1 to 1000"),
        (lambda: Kernel(gamma=0), "gamma must be a finite number > 0"),
        (lambda: Kernel(landmarks=[1.0]), "landmarks must be 1 to 1000 points"),
        (lambda: quick(TreeClassifier, Kernel(landmarks=[[1.0]])).fit(*IRIS), "landmarks have 1 columns, but X has 4"),
        (lambda: Flowing(0), "n_units must be an integer from 1"),
        (lambda: quick(TreeClassifier, Flowing(), training="greedy").fit(*IRIS), "needs training='global'"),
        (lambda: Layered(()), "families must be instances"),
        (lambda: Layered((Layered(),)), "layered questions depend on other levels"),
        (lambda: Layered((Linear(), Multiway(3))), "the same number of children"),
        (lambda: quick(TreeClassifier, Layered(), training="greedy").fit(*IRIS), "needs training='global'"),
        (lambda: quick(TreeClassifier, Multiway(3), max_leaf_nodes=4).fit(*IRIS), "more than two answers"),
    ],
)
def test_what_cannot_be_is_one_sentence(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("n_rows", [4, 6])
def test_bent_questions_part_the_moons(n_rows):
    """Depth 2 on noise 0.2, where the best that can be is about 0.97; linear questions reach 0.91."""
    scores = []
    for seed in range(3):
        X, y = make_moons(4000, noise=0.2, random_state=seed)
        tree = TreeClassifier(split=Pretransform(n_rows), max_depth=2, random_state=seed).fit(X[:2000], y[:2000])
        scores.append(tree.score(X[2000:], y[2000:]))
    assert np.mean(scores) >= 0.965


def test_one_multiway_question_parts_the_data():
    """Depth 1: a model that cuts the data into three by the expected impurity."""
    X, y = IRIS
    tree = TreeClassifier(split=Multiway(3), max_depth=1, random_state=0).fit(X, y)
    assert tree.get_n_leaves() == 3 and tree.score(X, y) > 0.95
