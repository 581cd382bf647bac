"""Laws of training with every split family: bits, weights, what it gains, and trees that are started from."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from laws.test_trainers import PROBLEMS, N, Problem, bits, root, same_copies, trained
from softwood.split import AbstractSplit, Flowing, Kernel, Layered, Linear, Multiway, Network, Pretransform
from softwood.train.base import AbstractTrainer, Chain, Run
from softwood.train.best_of import hard_impurity
from softwood.train.grow_centroids import GrowCentroids
from softwood.train.grow_greedy import GrowGreedy
from softwood.train.grow_hard import GrowHard
from softwood.train.harden import Harden
from softwood.train.refine import Descend, Lbfgs, Refine

FAMILIES: list[AbstractSplit] = [
    Pretransform(3),
    Pretransform(2, "relu"),
    Network((3, 2), "sigmoid"),
    Multiway(3),
    Network((3,), n_children=3),
    Layered((Linear(), Pretransform(2), Linear())),
    Flowing(4),
    Flowing(3, "relu", n_children=3),
    Kernel(n_landmarks=10),
    Layered((Kernel("polynomial"), Pretransform(2))),
]
STEADY = [split for split in FAMILIES if "Kernel" not in repr(split)]  # landmarks are chosen anew each time
ADAM = Descend(n_steps=60, batch_size=100, rate=0.1)
every_family = pytest.mark.parametrize("split", FAMILIES, ids=repr)
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)


def start(split: AbstractSplit, depth: int = 2) -> AbstractTrainer:
    return GrowHard(depth) if split.arity == 2 else GrowCentroids(depth, split.arity)


def refined(split: AbstractSplit, optimizer: Descend | Lbfgs = ADAM) -> AbstractTrainer:
    return Chain([start(split), Refine(2, split, optimizer), Harden()])


@every_problem
@every_family
def test_same_seed_same_tree_bit_for_bit_whatever_the_threads(split: AbstractSplit, problem: Problem) -> None:
    first = bits(trained(refined(split), problem.source(), problem.impurity))
    assert bits(trained(refined(split), problem.source(n_threads=3), problem.impurity)) == first


@every_problem
@every_family
def test_weight_k_is_k_copies_bit_for_bit(split: AbstractSplit, problem: Problem) -> None:
    times = np.random.default_rng(1).integers(0, 4, N)
    weighted = problem.source(weight=times.astype(float))
    copied = problem.source(np.repeat(np.arange(N), times))
    found = [trained(refined(split), rows, problem.impurity) for rows in (weighted, same_copies(weighted, copied))]
    assert bits(found[0]) == bits(found[1])


@every_problem
@every_family
@pytest.mark.parametrize("optimizer", [ADAM, Lbfgs(25)], ids=["adam", "l-bfgs"])
def test_training_pays(split: AbstractSplit, problem: Problem, optimizer: Descend | Lbfgs) -> None:
    source = problem.source()
    whole = hard_impurity(root(source, problem.impurity), source, problem.impurity)
    best = hard_impurity(trained(GrowHard(), source, problem.impurity), source, problem.impurity)
    tree = trained(refined(split, optimizer), source, problem.impurity)
    assert (whole - hard_impurity(tree, source, problem.impurity)) / (whole - best) > 0.1  # two levels are not many


@every_problem
@pytest.mark.parametrize("split", STEADY, ids=repr)
def test_no_steps_keep_the_familys_own_questions(split: AbstractSplit, problem: Problem) -> None:
    """Only float32 lies between, and the noise on units that nothing is asked of."""
    source = problem.source()
    tree = trained(Chain([start(split), Refine(2, split, ADAM)]), source, problem.impurity)
    found = Refine(None, split, Descend(0)).train(tree, source, problem.impurity, Run(np.random.default_rng(0)))
    np.testing.assert_allclose(found.reach(source.X), tree.reach(source.X), atol=0.02)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
@pytest.mark.parametrize("hidden", [(), (3,), (4, 2)])
def test_a_straight_question_starts_at_the_same_place(hidden: tuple[int, ...], activation: str) -> None:
    """A network carries the score of a slanted question through the straightest part of its activation."""
    problem = PROBLEMS[0]
    source, run = problem.source(), Run(np.random.default_rng(0))
    tree = trained(GrowHard(2), source, problem.impurity)
    soft = Refine(None, Network(hidden, activation), Descend(0)).train(tree, source, problem.impurity, run)
    assert (soft.apply(source.X) == tree.apply(source.X)).mean() > 0.9


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
def test_straight_questions_flow_down_the_tree(activation: str) -> None:
    problem = PROBLEMS[0]
    source, run = problem.source(), Run(np.random.default_rng(0))
    tree = trained(GrowHard(2), source, problem.impurity)
    soft = Refine(None, Flowing(5, activation), Descend(0)).train(tree, source, problem.impurity, run)
    assert (soft.apply(source.X) == tree.apply(source.X)).mean() > 0.9


@every_family
def test_a_familys_tree_starts_a_linear_one(split: AbstractSplit) -> None:
    if split.arity > 2:
        pytest.skip("hard linear questions have two children")
    problem = PROBLEMS[0]
    source, run = problem.source(), Run(np.random.default_rng(0))
    tree = trained(refined(split), source, problem.impurity)
    found = Refine(None, Linear(), Descend(60, 10**6, 0.05, decay=0.0)).train(tree, source, problem.impurity, run)
    assert run.history[-1] < 1.001 * run.history[0] and found.n_nodes == tree.n_nodes


@every_problem
@pytest.mark.parametrize("n_children", [2, 3, 5])
def test_grow_centroids_makes_complete_trees_that_part_the_rows(problem: Problem, n_children: int) -> None:
    source = problem.source()
    tree = trained(GrowCentroids(2, n_children), source, problem.impurity)
    assert tree.topology.arity.tolist() == zoo.Topology.complete(2, n_children).arity.tolist()
    whole = hard_impurity(root(source, problem.impurity), source, problem.impurity)
    assert hard_impurity(tree, source, problem.impurity) < whole
    np.testing.assert_allclose(tree.statistics[0], source.targets.total(), rtol=1e-9, atol=1e-9)


@every_problem
def test_greedy_growth_takes_questions_with_many_answers(problem: Problem) -> None:
    source = problem.source()
    stump = Chain([GrowCentroids(1, 3), Refine(1, Multiway(3), ADAM)])
    tree = trained(GrowGreedy([stump, GrowHard(1)], 2), source, problem.impurity)
    assert 3 in tree.topology.arity
    for node in tree.topology.internal:
        first = tree.topology.first_child[node]
        below = tree.statistics[first : first + tree.topology.arity[node]].sum(axis=0)
        np.testing.assert_allclose(below, tree.statistics[node], rtol=1e-9, atol=1e-9)
