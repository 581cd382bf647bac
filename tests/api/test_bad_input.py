"""Bad input: each case is a right answer or one clear sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from modes import MODES
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.split import Axis, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = (X[:, 0] + X[:, 1] > 0).astype(int)
Y = X[:, 0] + 2 * X[:, 1]
BOTH = pytest.mark.parametrize(
    ("kind", "y"), [(TreeClassifier, LABELS), (TreeRegressor, Y)], ids=["classes", "numbers"]
)
EVERY = pytest.mark.parametrize("training", MODES)


def tree_of(kind, training=MODES[-1], **parameters):
    return kind(training=training, random_state=0, **({"max_depth": 3} | parameters))


@BOTH
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_numbers_that_are_not_finite_are_named_by_column(kind, y, value, word):
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    frame.loc[7, "income"] = value
    with pytest.raises(ValueError, match=rf"X contains .*{word}.* in column 'income' \(index 1\), first at row 7"):
        tree_of(kind).fit(frame, y)
    with pytest.raises(ValueError, match=rf"{word}.* in column 1, first at row 7"):
        tree_of(kind).fit(frame.to_numpy(), y)
    with pytest.raises(ValueError, match=rf"{word}.* in column 'income'"):
        tree_of(kind).fit(pd.DataFrame(X, columns=frame.columns), y).predict(frame)


@BOTH
def test_huge_finite_numbers_are_not_taken_for_infinite(kind, y):
    big = X.astype(np.float32)
    big[:, 2] = np.finfo(np.float32).max
    tree_of(kind).fit(big, y).predict(big)


def test_y_must_be_finite_numbers():
    with pytest.raises(ValueError, match="y contains NaN"):
        tree_of(TreeRegressor).fit(X, np.where(np.arange(60) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="y must hold one number per row"):
        tree_of(TreeRegressor).fit(X, np.where(LABELS == 1, "yes", "no"))
    with pytest.raises(ValueError, match="Unknown label type"):
        tree_of(TreeClassifier).fit(X, Y)


@EVERY
@BOTH
def test_constant_columns_are_never_asked_about(kind, y, training):
    wide = np.column_stack([np.full(60, 3.0), X, np.zeros(60)])
    tree = tree_of(kind, training).fit(wide, y)
    assert tree.feature_importances_[[0, 4]].tolist() == [0, 0]
    assert tree_of(kind, training).fit(np.ones((60, 2)), y).get_n_leaves() == 1


@EVERY
def test_one_class_is_a_tree_of_one_leaf(training):
    tree = tree_of(TreeClassifier, training).fit(X, np.full(60, "only"))
    assert tree.get_n_leaves() == 1 and tree.n_classes_ == 1
    assert set(tree.predict(X)) == {"only"} and (tree.predict_proba(X) == 1).all()
    assert tree_of(TreeRegressor, training).fit(X, np.full(60, 0.1)).predict(X).tolist() == [0.1] * 60


@EVERY
@BOTH
@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_rows_are_enough(kind, y, n, training):
    tree = tree_of(kind, training).fit(X[:n], y[:n])
    np.testing.assert_allclose(tree.predict(X[:n]), y[:n], atol=0.5 * np.ptp(y[:n]) + 1e-9)
    assert tree_of(kind, training, max_depth=20).fit(X[:n], y[:n]).tree_.n_nodes <= 3


@BOTH
@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (np.zeros(60), "sample_weight is zero for every row"),
        (np.where(np.arange(60) == 5, -1.0, 1.0), "sample_weight must not be negative; got -1 at row 5"),
        (np.where(np.arange(60) == 5, np.nan, 1.0), "sample_weight contains NaN at row 5"),
        (np.where(np.arange(60) == 5, np.inf, 1.0), "sample_weight contains infinity"),
        (np.ones(59), r"shape \(60,\); got shape \(59,\)"),
        (np.ones((60, 2)), r"shape \(60,\); got shape \(60, 2\)"),
        (["heavy"] * 60, "cannot be read as numbers"),
    ],
)
def test_weights_that_cannot_be(kind, y, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        tree_of(kind).fit(X, y, sample_weight=weight)


def test_class_weights_that_cannot_be():
    for given, sentence in [
        ({0: -1}, r"class_weight\[0\] must be a finite number >= 0; got -1"),
        ({"zero": 1}, "class_weight names 'zero', but y has only the classes 0, 1"),
        ("even", "class_weight must be None, 'balanced' or a dict"),
        ({0: 0, 1: 0}, "zero for every row"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            tree_of(TreeClassifier, class_weight=given).fit(X, LABELS)


@EVERY
def test_more_classes_than_leaves(training):
    y = np.arange(60) % 20
    tree = tree_of(TreeClassifier, training, max_depth=2).fit(X, y)
    assert tree.get_n_leaves() <= 4 and tree.predict_proba(X).shape == (60, 20)
    np.testing.assert_allclose(tree.predict_proba(X).sum(axis=1), 1)


@EVERY
def test_a_target_far_from_zero_is_learnt_like_one_near_it(training):
    near = tree_of(TreeRegressor, training).fit(X, Y)
    far = tree_of(TreeRegressor, training).fit(X, Y + 1e8)
    np.testing.assert_allclose(far.predict(X) - 1e8, near.predict(X), atol=1e-5)
    assert far.score(X, Y + 1e8) > 0.6


@EVERY
@BOTH
def test_columns_of_scale_1e12_beside_1e_12(kind, y, training):
    scales = np.array([1e12, 1e-12, 1.0])
    assert tree_of(kind, training).fit(X * scales, y).score(X * scales, y) > 0.6


@EVERY
@BOTH
def test_layouts_and_types_of_numbers_agree(kind, y, training, tmp_path):
    whole = np.round(4 * X)
    expected = tree_of(kind, training).fit(whole, y).predict(whole)
    np.save(tmp_path / "X.npy", whole)
    forms = [
        np.asfortranarray(whole),
        whole.astype(np.float16),
        whole.astype(np.float32),
        whole.astype(int),
        whole.astype(np.int8),
        whole.astype(object),
        whole.tolist(),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        whole[::-1][::-1],
        whole.astype(">f8"),
    ]
    for form in forms:
        tree = tree_of(kind, training).fit(form, y)
        np.testing.assert_allclose(tree.predict(form), expected, rtol=1e-6, atol=1e-12)


@EVERY
@BOTH
def test_booleans_are_numbers(kind, y, training):
    bits = X > 0
    tree = tree_of(kind, training).fit(bits, y)
    np.testing.assert_array_equal(tree.predict(bits), tree.predict(bits.astype(float)))


def test_rows_in_c_order_are_not_copied():
    from softwood.estimators import validation

    for dtype in (np.float32, np.float64):
        given = X.astype(dtype)
        read, _ = validation.read_training(TreeClassifier(), given, LABELS)
        assert np.shares_memory(read, given) and read.dtype == dtype


@BOTH
def test_strings_are_named_by_column(kind, y):
    frame = pd.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0, "Bern", "Basel")})
    with pytest.raises(
        ValueError, match=r"X contains the str 'B\w+' in column 'town' \(index 1\), row 0.*not a number"
    ):
        tree_of(kind).fit(frame, y)
    with pytest.raises(ValueError, match="in column 1, row 0"):
        tree_of(kind).fit(frame.to_numpy(), y)


@BOTH
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_matrices_are_refused_with_a_remedy(kind, y, form):
    with pytest.raises(TypeError, match=r"X is a sparse .*needs dense rows. Pass X.toarray\(\)"):
        tree_of(kind).fit(form(X), y)


@BOTH
def test_complex_numbers_are_refused(kind, y):
    with pytest.raises(ValueError, match="Complex data not supported"):
        tree_of(kind).fit(X.astype(complex), y)


@EVERY
@BOTH
def test_depth_zero_is_one_leaf(kind, y, training):
    tree = tree_of(kind, training, max_depth=0).fit(X, y)
    assert tree.get_depth() == 0 and tree.get_n_leaves() == 1 and tree.n_iter_ == 1
    assert (tree.feature_importances_ == 0).all()
    answer = y.mean() if kind is TreeRegressor else np.bincount(y).argmax()
    np.testing.assert_allclose(tree.predict(X), answer, atol=1e-9)


@EVERY
@BOTH
def test_depth_twenty_holds_no_more_leaves_than_rows(kind, y, training):
    tree = tree_of(kind, training, max_depth=20).fit(X, y)
    assert tree.get_n_leaves() <= 60


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("max_depth", -1, "max_depth must be an integer >= 0 or None; got -1"),
        ("max_depth", 2.5, "max_depth must be an integer"),
        ("max_depth", True, "max_depth must be an integer"),
        ("training", "boost", "training must be one of 'global', 'grow', 'greedy', 'cart'; got 'boost'"),
        ("split", "round", "split must be one of"),
        ("impurity", "newton", "impurity must be one of 'gini', 'entropy' or an instance of AbstractImpurity"),
        ("impurity", 3, "impurity must be one of"),
        ("search", "often", "search must be True or False or 'auto'"),
        ("n_starts", 0, "n_starts must be an integer >= 1"),
        ("weight_decay", -0.1, "weight_decay must be a finite number >= 0 or 'auto'"),
        ("max_iter", 0, "max_iter must be an integer >= 1 or 'auto'"),
        ("batch_size", "all", "batch_size must be"),
        ("learning_rate", 0, "learning_rate must be a finite number > 0 or 'auto'"),
        ("solver", "sgd", "solver must be one of 'adam', 'lbfgs'"),
        ("gradient", "noisy", "gradient must be one of 'exact', 'sampled'"),
        ("n_draws", 0, "n_draws must be an integer from 1 to"),
        ("early_stopping", 1, "early_stopping must be True or False"),
        ("validation_fraction", 1.0, "validation_fraction must be a number between 0 and 1"),
        ("tol", np.nan, "tol must be a finite number >= 0"),
        ("min_samples_split", 1, "min_samples_split must be an integer >= 2"),
        ("min_samples_leaf", 0.5, "min_samples_leaf must be an integer >= 1"),
        ("min_impurity_decrease", np.inf, "min_impurity_decrease must be a finite number"),
        ("min_weight_fraction_leaf", 0.6, "min_weight_fraction_leaf must be a number from 0 to 0.5"),
        ("max_leaf_nodes", 1, "max_leaf_nodes must be an integer >= 2 or None"),
        ("max_bins", 256, "max_bins must be an integer from 2 to 255"),
        ("ccp_alpha", -1, "ccp_alpha must be"),
        ("n_jobs", 0, "n_jobs must be None or an integer other than 0"),
        ("n_jobs", 1.5, "n_jobs must be None or an integer"),
        ("random_state", "lucky", "random_state must be None, an integer"),
        ("verbose", -1, "verbose must be"),
    ],
)
def test_parameters_out_of_range_get_one_sentence(parameter, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        TreeClassifier(**({"training": MODES[-1]} | {parameter: value})).fit(X, LABELS)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"split": "layered", "l1": 0.1}, "for the weights of slanted questions; got split='layered'"),
        ({"split": "flowing", "axis_penalty": 1.0}, "for the weights of slanted questions; got split='flowing'"),
        ({"training": "grow", "max_leaf_nodes": 3}, "training='grow' decides itself .* got max_leaf_nodes=3"),
        ({"training": "grow", "split": "network"}, "grows slanted questions only; got split='network'"),
        ({"training": "greedy", "split": "flowing"}, "split='flowing' needs training='global'"),
        ({"max_features_per_split": 2, "split": "axis"}, "max_features_per_split needs training='global'"),
        ({"split": Axis()}, "an estimator searches them. Use split='axis'"),
    ],
)
def test_settings_that_contradict_each_other_get_one_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        TreeClassifier(**settings).fit(X, LABELS)


def test_a_family_is_the_same_by_name_and_as_an_instance():
    settings = {"max_depth": 2, "max_iter": 20, "max_features_per_split": 2, "random_state": 0}
    trees = [TreeClassifier(split=split, **settings).fit(X, LABELS) for split in ("linear", Linear())]
    np.testing.assert_array_equal(trees[0].predict_proba(X), trees[1].predict_proba(X))


@pytest.mark.parametrize("init", ["cart", "greedy", "projected", "random"])
def test_questions_about_landmarks_start_anywhere(init):
    tree = TreeClassifier(split="kernel", init=init, max_depth=2, max_iter=5, random_state=0).fit(X, LABELS)
    assert tree.get_depth() <= 2


def test_combinations_that_cannot_be():
    with pytest.raises(ValueError, match="split='axis' needs training='global', 'greedy' or 'cart'"):
        TreeClassifier(split="axis", training="grow").fit(X, LABELS)
    with pytest.raises(ValueError, match="solver='lbfgs' needs gradient='exact'"):
        TreeClassifier(solver="lbfgs", gradient="sampled").fit(X, LABELS)
    with pytest.raises(ValueError, match="max_depth=None needs training='cart' or 'greedy'"):
        TreeClassifier(max_depth=None).fit(X, LABELS)


def test_another_number_of_columns_or_other_names():
    tree = tree_of(TreeClassifier).fit(pd.DataFrame(X, columns=["a", "b", "c"]), LABELS)
    with pytest.raises(ValueError, match="X has 2 features, but TreeClassifier is expecting 3 features"):
        tree_of(TreeClassifier).fit(X, LABELS).predict(X[:, :2])
    with pytest.raises(ValueError, match="feature names"):
        tree.predict(pd.DataFrame(X, columns=["a", "b", "d"]))
