"""Laws of answers: what each routing says is what its definition says, whatever rows stand beside a row."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from softwood import answers
from softwood.answers import ROUTINGS, Hard, Likeliest, Sampled, Soft, agreement, leaf_reach, routing_of, uniforms
from softwood.question import Thresholds
from softwood.topology import Topology
from softwood.tree import Tree

every_tree = pytest.mark.parametrize("tree", zoo.TREES.values(), ids=zoo.TREES)
every_routing = pytest.mark.parametrize("name", ROUTINGS)


def rows(n: int = 60, seed: int = 1) -> np.ndarray:
    return zoo.table(n, 5, seed)


def hard_tree() -> Tree:
    questions = Thresholds(np.arange(3), np.zeros(3))
    values = np.arange(14.0).reshape(7, 2)
    return Tree.of_one_kind(Topology.complete(2), questions, values, values, 5)


def slanted_tree(seed: int = 0) -> Tree:
    """Only questions with soft answers, and each leaf a class of its own."""
    tree = zoo.mixed_tree(Topology.complete(2), 5, seed)
    values = np.eye(7)
    return Tree.of_one_kind(tree.topology, tree.tables[1], values, values, 5)


@every_tree
def test_soft_answers_are_the_leaves_values_weighted_by_reach(tree: Tree) -> None:
    found, reach = Soft().answers(tree, rows()), tree.reach(rows())
    for i in range(60):
        expected = sum(reach[i, leaf] * tree.values[leaf] for leaf in tree.topology.leaves)
        assert found is not None and found[i] == pytest.approx(expected, rel=1e-13)


@every_tree
def test_the_likeliest_leaf_has_the_largest_reach(tree: Tree) -> None:
    leaf, reach = Likeliest().leaf(tree, rows()), leaf_reach(tree, rows())
    assert leaf is not None and tree.topology.is_leaf[leaf].all()
    assert (tree.reach(rows())[np.arange(60), leaf] == reach.max(axis=1)).all()


@every_tree
@every_routing
def test_choices_are_the_largest_entries_of_answers(tree: Tree, name: str) -> None:
    routing = routing_of(name, 3, tree)
    said, chosen = routing.answers(tree, rows()), routing.choices(tree, rows())
    assert said is not None and (said.argmax(axis=1) == chosen).all()


@every_tree
@every_routing
def test_answers_do_not_depend_on_the_rows_beside_or_on_threads(tree: Tree, name: str, monkeypatch) -> None:
    routing, X = routing_of(name, 3, tree), rows(200)
    whole, order = routing.answers(tree, X), np.random.default_rng(0).permutation(200)
    monkeypatch.setattr(answers, "CELLS", 50)
    again = routing.answers(tree, X[order], 2)
    assert whole is not None and again is not None
    np.testing.assert_allclose(again, whole[order], rtol=1e-13)  # products of parts add up in another order
    assert (routing.leaf(tree, X[order]) == routing.leaf(tree, X)[order]).all()


@every_routing
def test_a_tree_of_hard_questions_has_one_answer(name: str) -> None:
    tree, X = hard_tree(), rows()
    hard = Hard().leaf(tree, X)
    for routing in (routing_of(name, 0, tree), ROUTINGS[name]()):
        assert (routing.leaf(tree, X) == hard).all()
        assert (routing.answers(tree, X) == tree.values[hard]).all()
    assert agreement(tree, X, np.ones(60), True) == 1.0


@every_tree
@every_routing
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_noticed(tree: Tree, name: str, bad: float) -> None:
    X = rows()
    X[-1, 2] = bad
    for ask in (ROUTINGS[name]().leaf, ROUTINGS[name]().answers, ROUTINGS[name]().choices):
        assert ask(tree, X) is None


@every_routing
def test_no_rows_have_no_answers(name: str) -> None:
    found = ROUTINGS[name]().answers(slanted_tree(), np.empty((0, 5)))
    assert found is not None and found.shape == (0, 7)


def test_leaves_are_drawn_as_often_as_they_are_reached() -> None:
    tree, X, n_draws = slanted_tree(), rows(8), 4000
    drawn = np.zeros((8, tree.n_nodes))
    for seed in range(n_draws):
        drawn[np.arange(8), Sampled(seed).leaf(tree, X)] += 1
    reach = tree.reach(X) * tree.topology.is_leaf
    error = np.sqrt(reach * (1 - reach) / n_draws)
    assert (np.abs(drawn / n_draws - reach) <= 4.5 * error + 1e-9).all()


def test_draws_are_spread_evenly_and_differ_by_seed() -> None:
    u, other = uniforms(rows(20_000), 0), uniforms(rows(20_000), 1)
    assert u.min() >= 0 and u.max() < 1
    assert np.abs(np.histogram(u, 20, (0, 1))[0] - 1000).max() < 150
    assert abs(np.corrcoef(u, other)[0, 1]) < 0.03


def test_equal_rows_draw_the_same() -> None:
    X = np.repeat(rows(10), 3, axis=0)
    leaf = Sampled(5).leaf(slanted_tree(), X)
    assert leaf is not None and (leaf.reshape(10, 3) == leaf[::3, None]).all()


def test_agreement_of_classes_is_the_weight_answered_alike() -> None:
    tree, X, w = slanted_tree(), rows(300), np.random.default_rng(0).uniform(0.1, 2, 300)
    hard, soft = Hard().choices(tree, X), Soft().choices(tree, X)
    assert agreement(tree, X, w, True) == pytest.approx(w[hard == soft].sum() / w.sum())
    assert 0 < agreement(tree, X, w, True) < 1


def test_agreement_of_numbers_is_r2() -> None:
    from sklearn.metrics import r2_score

    tree, X, w = zoo.mixed_tree(Topology.complete(3), 5), rows(300), np.random.default_rng(0).uniform(0.1, 2, 300)
    tree = tree.with_values(tree.statistics, tree.values[:, :1])
    expected = r2_score(Hard().answers(tree, X), Soft().answers(tree, X), sample_weight=w)
    assert agreement(tree, X, w, False) == pytest.approx(expected)


def test_a_tree_that_says_one_thing_agrees() -> None:
    tree = slanted_tree().with_values(np.ones((7, 1)), np.ones((7, 1)))
    assert agreement(tree, rows(), np.ones(60), False) == 1.0
