"""Families that users bring: a pair of functions, a torch module, and the worked example of CONTRIBUTING.md."""

from __future__ import annotations

import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

import zoo
from derivatives import check_vjp
from softwood import ModelFileError, TreeClassifier, TreeRegressor, load, save
from softwood.export import tree_text
from softwood.objective import gates, sweep_down
from softwood.split import SPLITS, torch_split
from softwood.storage import tree_record
from softwood.train.recipe import TRAININGS
from softwood.tree import Tree

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)


def quick(kind, split, **parameters):
    return kind(**{"split": split, "max_depth": 2, "max_iter": 60, "random_state": 0, **parameters})


@parametrize_with_checks([quick(kind, zoo.CONE, max_iter=200) for kind in (TreeClassifier, TreeRegressor)])
def test_scikit_learn_checks_of_a_users_functions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("training", ["global", "greedy"])
@pytest.mark.parametrize(("kind", "X", "y"), [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)])
def test_a_users_functions_train_and_answer(kind, X, y, training):
    tree = quick(kind, zoo.CONE, training=training).fit(X, y)
    assert tree.score(X, y) > (0.9 if kind is TreeClassifier else 0.4)
    again = pickle.loads(pickle.dumps(tree))
    for other in (again, clone(tree).fit(X, y), quick(kind, zoo.CONE, training=training, n_jobs=2).fit(X, y)):
        np.testing.assert_array_equal(other.predict(X), tree.predict(X))
    assert "cone(x0" in tree_text(tree.tree_)


def test_a_function_cannot_be_stored(tmp_path):
    tree = quick(TreeClassifier, zoo.CONE).fit(*IRIS)
    with pytest.raises(ModelFileError, match="questions of your own, which a model file cannot hold"):
        save(tree, tmp_path / "tree.json")
    with pytest.raises(ValueError, match="function of your own cannot be stored"):
        tree_record(tree.tree_)


def perceptron(n_features):
    torch = pytest.importorskip("torch")
    return torch.nn.Sequential(torch.nn.Linear(n_features, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))


def test_a_torch_module_has_the_gradient_of_autograd():
    pytest.importorskip("torch")
    split, topology, X = torch_split(perceptron), zoo.TOPOLOGIES["ragged"], zoo.table()
    theta = split.random(topology, 3, np.random.default_rng(0))
    check_vjp(
        lambda theta: split.scores(theta, X, topology),
        lambda theta, Z_bar: split.scores_vjp(theta, X, topology, Z_bar),
        theta,
    )


@pytest.mark.parametrize("training", ["global", "greedy"])
def test_a_torch_module_parts_the_moons(training):
    pytest.importorskip("torch")
    X, y = make_moons(1500, noise=0.2, random_state=0)
    split = torch_split(perceptron)
    one, two = (
        TreeClassifier(split=split, max_depth=2, max_iter=40, random_state=0, training=training, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert one.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.85
    np.testing.assert_array_equal(two.fit(X[:500], y[:500]).predict_proba(X), one.predict_proba(X))


@pytest.fixture
def example(monkeypatch):
    """The family that CONTRIBUTING.md writes, registered for the length of a test."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1]
    assert len(code.splitlines()) <= 40
    module = types.ModuleType("slab")
    monkeypatch.setitem(sys.modules, "slab", module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)
    monkeypatch.setitem(SPLITS, module.Slab.name, module.Slab)
    return module.Slab()


@pytest.mark.parametrize("shape", zoo.BINARY)
def test_the_worked_example_obeys_the_laws(example, shape):
    topology, X = zoo.BINARY[shape], zoo.table(60)
    theta = np.random.default_rng(1).normal(size=example.n_parameters(topology, 3))
    check_vjp(
        lambda theta: example.scores(theta, X, topology),
        lambda theta, Z_bar: example.scores_vjp(theta, X, topology, Z_bar),
        theta,
    )
    from softwood.split import Units

    units, nothing = Units(np.array([5.0, -1e3, 0.1]), np.array([1e-3, 2e4, 1.0])), np.zeros((topology.n_nodes, 1))
    tree = Tree.of_tables(topology, example.tables(theta, topology, units), nothing, nothing, 3)
    reach = sweep_down(gates(example.scores(theta, X, topology), topology), topology)
    assert tree.reach(X * units.scale + units.center) == pytest.approx(reach, abs=1e-10)
    assert (
        example.decays(topology, 3).shape == example.random(topology, 3, np.random.default_rng(0)).shape == theta.shape
    )


@pytest.mark.parametrize("training", sorted(set(TRAININGS) & {"global", "greedy"}))
@pytest.mark.parametrize(("kind", "X", "y"), [(TreeClassifier, *IRIS), (TreeRegressor, *DIABETES)])
def test_the_worked_example_serves_the_estimators(example, kind, X, y, training, tmp_path):
    tree = quick(kind, "slab", training=training).fit(X, y)
    assert tree.score(X, y) > (0.9 if kind is TreeClassifier else 0.4)
    save(tree, tmp_path / "tree.json")
    np.testing.assert_array_equal(load(tmp_path / "tree.json").predict(X), tree.predict(X))
    save(quick(kind, example).fit(X, y), tmp_path / "instance.json")
    assert load(tmp_path / "instance.json").split == example
