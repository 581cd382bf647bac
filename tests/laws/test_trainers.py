"""Laws of every trainer on every kind of problem, by the compiled sweeps and by the array twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import zoo
from softwood.impurity import IMPURITIES, AbstractImpurity, Entropy, Gamma, Gini, Newton, Poisson, Variance
from softwood.question import Linears, Thresholds
from softwood.source import ArraySource, canonical_rows
from softwood.targets import (
    AbstractTargets,
    centred_moments,
    class_counts,
    gamma_sums,
    newton_pairs,
    poisson_sums,
    soft_labels,
)
from softwood.topology import Topology
from softwood.train import refine
from softwood.train.base import AbstractTrainer, Chain, Run, root
from softwood.train.best_of import BestOf, hard_impurity
from softwood.train.evolve import Evolve
from softwood.train.given import Given
from softwood.train.grow_greedy import GrowGreedy
from softwood.train.grow_hard import GrowHard
from softwood.train.grow_projected import GrowProjected
from softwood.train.grow_random import GrowRandom
from softwood.train.harden import Harden
from softwood.train.prune import Prune
from softwood.train.refine import CALLS, Descend, Lbfgs, Lookout, Refine, Watch, completed
from softwood.train.sampled import Sampled
from softwood.train.select import Folds, Select, Stage, class_losses, number_losses, own_losses
from softwood.tree import Tree

N, P = 240, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * RNG.normal(size=N)
LABELS = np.digitize(SCORE, [-0.7, 0.7])
Q = np.exp(np.outer(SCORE, [-1.0, 0.0, 1.0]))
Q /= Q.sum(axis=1, keepdims=True)
G, H = np.stack([SCORE, X[:, 3] - SCORE], axis=1), RNG.uniform(0.2, 1.0, (N, 2))
COUNTS, SIZES = RNG.poisson(np.exp(0.7 * SCORE)), np.exp(SCORE) * RNG.gamma(3.0, 1.0, N)


def second_order(tree: Tree, source: ArraySource) -> np.ndarray:
    """g v + h v^2 / 2 of each row under the value of its leaf."""
    s, v = source.targets.dense(), tree.values[source.leaf_of(tree)]
    return np.asarray((s[:, :2] * v + 0.5 * s[:, 2:] * v * v).sum(axis=1))


@dataclass(frozen=True)
class Problem:
    """An impurity with targets for it; ``judge`` is what Select counts."""

    name: str
    impurity: AbstractImpurity
    targets: Callable[[np.ndarray, np.ndarray], AbstractTargets]  # row numbers, weights
    judge: Callable[[Tree, ArraySource], np.ndarray]

    def source(
        self, ids: np.ndarray | None = None, weight: np.ndarray | None = None, n_threads: int = 1
    ) -> ArraySource:
        """The named rows of the table, all of them by default, in canonical order."""
        ids = np.arange(N) if ids is None else ids
        rows = np.ascontiguousarray(X[ids])
        order, copies, content, summed = canonical_rows(rows, ids, np.ones(ids.size) if weight is None else weight)
        return ArraySource(rows, order, copies, content, self.targets(ids[order], summed), n_threads)


def counts(ids: np.ndarray, w: np.ndarray) -> AbstractTargets:
    return class_counts(LABELS[ids], 3, w)


PROBLEMS = [
    Problem("gini", Gini(), counts, class_losses),
    Problem("entropy", Entropy(), counts, class_losses),
    Problem("soft labels", Gini(), lambda ids, w: soft_labels(Q[ids], w), class_losses),
    Problem("variance", Variance(), lambda ids, w: centred_moments(SCORE[ids], w)[0], number_losses),
    Problem(
        "poisson", Poisson(), lambda ids, w: poisson_sums(COUNTS[ids], w)[0], partial(own_losses, impurity=Poisson())
    ),
    Problem("gamma", Gamma(), lambda ids, w: gamma_sums(SIZES[ids], w)[0], partial(own_losses, impurity=Gamma())),
    Problem("newton", Newton(1.0), lambda ids, w: newton_pairs(G[ids], H[ids], w), second_order),
    Problem("a user's impurity", zoo.Tsallis(3.0), counts, class_losses),
]

ADAM = Descend(n_steps=60, batch_size=100, rate=0.1)
START = GrowHard(3)


def refined(optimizer: Descend | Lbfgs = ADAM, depth: int | None = 3, **settings: Any) -> AbstractTrainer:
    return Chain([START, Refine(depth, optimizer=optimizer, **settings)])


def greedy(problem: Problem) -> AbstractTrainer:
    return GrowGreedy([Chain([GrowHard(1), Refine(1, optimizer=replace(ADAM, n_steps=40))]), GrowHard(1)], 3)


def select(problem: Problem) -> AbstractTrainer:
    def build(decay: float, quick: bool) -> AbstractTrainer:
        return refined(replace(ADAM, decay=decay, n_steps=20 if quick else 60))

    stages = [Stage(lambda best: [0.01, 1.0]), Stage(lambda best: [best / 2])]
    return Select(0.1, stages, build, problem.judge, Folds(2))


TRAINERS: dict[str, Callable[[Problem], AbstractTrainer]] = {
    "grow hard": lambda problem: START,
    "grow greedy": greedy,
    "grow projected": lambda problem: GrowProjected(3),
    "grow random": lambda problem: GrowRandom(3),
    "given": lambda problem: Given(trained(START, problem.source(), problem.impurity)),
    "refine": lambda problem: refined(),
    "refine, random start": lambda problem: Chain([GrowRandom(3), Refine(3, optimizer=ADAM)]),
    "refine, full batch": lambda problem: refined(replace(ADAM, batch_size=10**6)),
    "refine, lazy": lambda problem: refined(replace(ADAM, tolerance=1e-2, n_steps=30), depth=6),
    "refine, sampled": lambda problem: refined(replace(ADAM, engine=Sampled(2))),
    "refine, l-bfgs": lambda problem: refined(Lbfgs(25)),
    "refine, stopped early": lambda problem: refined(watch=Watch(0.3, patience=3)),
    "evolve": lambda problem: Chain([GrowHard(1), Evolve(3, optimizer=ADAM)]),
    "harden soft": lambda problem: Chain([refined(), Harden("soft")]),
    "harden hard": lambda problem: Chain([refined(), Harden("hard", min_samples_leaf=5)]),
    "prune": lambda problem: Chain([GrowHard(5), Prune(0.01)]),
    "best of": lambda problem: BestOf([refined(), Chain([GrowProjected(3), Refine(3, optimizer=ADAM)]), START]),
    "select": select,
    "chain": lambda problem: Chain([refined(), Harden("hard"), Refine(None, optimizer=ADAM), Harden("soft")]),
}

every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
every_trainer = pytest.mark.parametrize("trainer", TRAINERS)


def trained(trainer: AbstractTrainer, source: ArraySource, impurity: AbstractImpurity, seed: int = 0) -> Tree:
    return trainer.train(root(source, impurity), source, impurity, Run(np.random.default_rng(seed), source.n_threads))


def bits(tree: Tree) -> tuple[Any, ...]:
    arrays = (tree.topology.arity, tree.table, tree.row, tree.statistics, tree.values)
    return *(array.tobytes() for array in arrays), [repr(table.record()) for table in tree.tables]


def per_weight(value: float, source: ArraySource) -> float:
    return value / float(source.targets.weight.sum())


def test_every_impurity_of_the_registry_has_a_problem() -> None:
    assert {type(problem.impurity) for problem in PROBLEMS} >= set(IMPURITIES.values())


@every_problem
@every_trainer
def test_same_seed_same_tree_bit_for_bit_whatever_the_threads(trainer: str, problem: Problem) -> None:
    make = TRAINERS[trainer]
    first = bits(trained(make(problem), problem.source(), problem.impurity))
    assert bits(trained(make(problem), problem.source(), problem.impurity)) == first
    assert bits(trained(make(problem), problem.source(n_threads=3), problem.impurity)) == first


@every_problem
@every_trainer
def test_weight_k_is_k_copies_bit_for_bit(trainer: str, problem: Problem) -> None:
    """Rows of weight 0 are not there."""
    times = np.random.default_rng(1).integers(0, 4, N)
    weighted = problem.source(weight=times.astype(float))
    order = np.random.default_rng(2).permutation(times.sum())
    copied = problem.source(np.repeat(np.arange(N), times)[order])
    assert copied.n < N
    a, b = (trained(TRAINERS[trainer](problem), rows, problem.impurity) for rows in (weighted, copied))
    if trainer == "harden hard":  # its limit counts rows, of which copies are many
        b = trained(TRAINERS[trainer](problem), same_copies(weighted, copied), problem.impurity)
    assert bits(a) == bits(b)


def same_copies(source: ArraySource, other: ArraySource) -> ArraySource:
    """The other source with this one's numbers of copies."""
    return ArraySource(other.X, other.order, source.copies, other.content, other.targets)


@every_problem
@every_trainer
def test_statistics_of_children_add_up_to_their_parent(trainer: str, problem: Problem) -> None:
    """To the root, which is the total of the rows; 1e-5 of the size for sums in float32."""
    source = problem.source(weight=np.random.default_rng(3).uniform(0.5, 2.0, N))
    tree = trained(TRAINERS[trainer](problem), source, problem.impurity)
    size = np.abs(source.targets.dense()).sum(axis=0)
    assert (np.abs(tree.statistics[0] - source.targets.total()) <= 1e-5 * size).all()
    for node in tree.topology.internal:
        first = tree.topology.first_child[node]
        below = tree.statistics[first : first + 2].sum(axis=0)
        assert (np.abs(below - tree.statistics[node]) <= 1e-5 * size).all()


@every_problem
@every_trainer
def test_training_pays(trainer: str, problem: Problem) -> None:
    """The hard tree explains a good part of what the root leaves open; what only halves rows or stops early, less."""
    source = problem.source()
    start = root(source, problem.impurity)
    tree = trained(TRAINERS[trainer](problem), source, problem.impurity)
    whole = hard_impurity(start, source, problem.impurity)
    best = hard_impurity(trained(GrowHard(), source, problem.impurity), source, problem.impurity)  # all that is to gain
    share = (whole - hard_impurity(tree, source, problem.impurity)) / (whole - best)
    assert share > {"grow random": 0.0, "grow projected": 0.1, "refine, stopped early": 0.2}.get(trainer, 0.3)
    assert start.n_nodes == 1  # what a trainer is given it leaves alone


@every_problem
def test_no_budget_returns_what_was_given(problem: Problem) -> None:
    source = problem.source()
    start = root(source, problem.impurity)
    run = Run(np.random.default_rng(0))
    nothing = [
        GrowHard(0),
        GrowGreedy([GrowHard(1)], 0),
        GrowProjected(0),
        GrowRandom(0),
        Chain([]),
        Refine(0),
        Prune(0.0),
    ]
    for trainer in [*nothing, Harden("hard"), BestOf([Chain([])])]:
        found = trainer.train(start, source, problem.impurity, run)
        assert found.n_nodes == 1
        np.testing.assert_allclose(found.statistics, start.statistics)
        np.testing.assert_allclose(found.values, start.values)
    tree = trained(START, source, problem.impurity)
    for trainer in (Chain([]), Prune(0.0), BestOf([Chain([])])):
        assert trainer.train(tree, source, problem.impurity, run) is tree


@every_problem
@pytest.mark.parametrize("optimizer", [Descend(n_steps=0), Lbfgs(n_steps=0)], ids=["adam", "l-bfgs"])
def test_no_steps_keep_the_soft_questions(problem: Problem, optimizer: Descend | Lbfgs) -> None:
    """Slanted questions come back as they were; only float32 lies between."""
    source = problem.source()
    tree = trained(GrowProjected(3), source, problem.impurity)
    found = Refine(3, optimizer=optimizer).train(tree, source, problem.impurity, Run(np.random.default_rng(0)))
    np.testing.assert_allclose(found.reach(source.X), tree.reach(source.X), atol=0.02)  # + the noise of soften
    assert found.topology.arity.tolist() == tree.topology.arity.tolist()


@every_problem
def test_select_without_rivals_is_its_first_setting(problem: Problem) -> None:
    source = problem.source()
    only: Select[float] = Select(0.1, [], lambda decay, quick: refined(), problem.judge, Folds(2))
    picked = only.choose(source, problem.impurity, Run(np.random.default_rng(0)))
    assert picked == 0.1


def test_select_takes_the_setting_that_is_better_on_rows_not_trained_on() -> None:
    """Depth 0 against depth 4, either way round."""
    problem = PROBLEMS[0]
    for first, rival in ((0, 4), (4, 0)):
        stages = [Stage(lambda best, to=rival: [to])]
        search = Select(first, stages, lambda depth, quick: GrowHard(depth), class_losses, Folds(3))
        assert search.choose(problem.source(), problem.impurity, Run(np.random.default_rng(0))) == 4


@pytest.mark.parametrize("problem", PROBLEMS[:3], ids=lambda problem: problem.name)
def test_class_losses_are_misses_and_brier_scores_of_both_answers(problem: Problem) -> None:
    source = problem.source(weight=np.random.default_rng(3).uniform(0.5, 2.0, N))
    tree = trained(refined(), source, problem.impurity)
    s, w = source.targets.dense(), source.targets.weight
    X_rows, leaves = source.X[source.order], tree.topology.leaves
    expected = np.zeros(source.n)
    for answer in (tree.values[tree.apply(X_rows)], tree.reach(X_rows)[:, leaves] @ tree.values[leaves]):
        for i, q in enumerate(answer):
            expected[i] += 0.5 * w[i] * (1 - (s[i] / w[i])[np.argmax(q)] + ((s[i] / w[i] - q) ** 2).sum())
    np.testing.assert_allclose(class_losses(tree, source), expected, rtol=1e-9)


# The objective never rises.


@every_problem
def test_growing_never_raises_the_impurity(problem: Problem) -> None:
    """phi is superadditive, so even cuts at random cannot; a prior (newton) takes part in every leaf, and then may."""
    source = problem.source()
    start = hard_impurity(root(source, problem.impurity), source, problem.impurity)
    for grow in (GrowHard(2), GrowHard(4), greedy(problem)):
        assert hard_impurity(trained(grow, source, problem.impurity), source, problem.impurity) < start
    if problem.name != "newton":
        for seed in range(3):
            tree = trained(GrowProjected(2), source, problem.impurity, seed)
            assert hard_impurity(tree, source, problem.impurity) <= start * (1 + 1e-12)


@every_problem
def test_l_bfgs_lowers_its_objective_in_every_step(problem: Problem) -> None:
    """Impurity and penalty per unit of weight; a line search in float32 may rise by its rounding, 1e-6."""
    source = problem.source()
    run = Run(np.random.default_rng(0))
    tree = trained(START, source, problem.impurity)
    Refine(3, optimizer=Lbfgs(40)).train(tree, source, problem.impurity, run)
    assert len(run.history) > 3
    assert (np.diff(run.history) <= 1e-6 * np.abs(run.history[0])).all()
    assert run.history[-1] < run.history[0]


@every_problem
def test_full_batch_descent_ends_no_higher_than_it_began(problem: Problem) -> None:
    """Adam may rise on its way; after the last, shortest steps it is below its start, and hardly above its best."""
    source = problem.source()
    run = Run(np.random.default_rng(0))
    tree = trained(START, source, problem.impurity)
    Refine(3, optimizer=Descend(200, 10**6, rate=0.05, decay=0.0)).train(tree, source, problem.impurity, run)
    history = np.array(run.history)
    assert history.size == 200 and history[-1] < history[0]
    assert history[-1] - history.min() <= 0.02 * (history[0] - history.min())


@every_problem
def test_hard_values_on_the_hard_partition_have_its_impurity(problem: Problem) -> None:
    """Branches that no row takes go: the rows are parted as before."""
    source = problem.source()
    tree = trained(refined(depth=5), source, problem.impurity)
    hard = Harden("hard").train(tree, source, problem.impurity, Run(np.random.default_rng(0)))
    parted, before = source.leaf_of(hard), source.leaf_of(tree)
    pairs = set(zip(parted.tolist(), before.tolist(), strict=True))
    assert len({old for _, old in pairs}) == len(pairs)  # no leaf of rows was cut
    here, there = (hard_impurity(each, source, problem.impurity) for each in (hard, tree))
    assert here == pytest.approx(there, rel=1e-9, abs=1e-9)


@every_problem
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 0.1])
def test_pruning_lowers_impurity_and_the_price_of_leaves_together(problem: Problem, alpha: float) -> None:
    source = problem.source()
    tree = trained(GrowHard(6), source, problem.impurity)
    pruned = Prune(alpha).train(tree, source, problem.impurity, Run(np.random.default_rng(0)))
    cost = [
        per_weight(hard_impurity(each, source, problem.impurity), source) + alpha * each.n_leaves
        for each in (pruned, tree)
    ]
    assert cost[0] <= cost[1] + 1e-12 and pruned.n_leaves <= tree.n_leaves


@every_problem
def test_the_best_of_several_is_none_worse_than_any(problem: Problem) -> None:
    source = problem.source()
    starts = [GrowHard(1), GrowProjected(3), GrowHard(3), GrowHard(2)]
    best = hard_impurity(trained(BestOf(starts), source, problem.impurity), source, problem.impurity)
    run = Run(np.random.default_rng(0))
    each = [start.train(root(source, problem.impurity), source, problem.impurity, run) for start in starts]
    assert best == min(hard_impurity(tree, source, problem.impurity) for tree in each)


# Refine starts from any tree.


def starts(source: ArraySource, impurity: AbstractImpurity) -> dict[str, Tree]:
    mixed = zoo.mixed_tree(zoo.TOPOLOGIES["ragged"], P)
    return {
        "thresholds": trained(GrowHard(3), source, impurity),
        "slanted": trained(GrowProjected(3), source, impurity),
        "mixed": mixed,
        "chain": zoo.mixed_tree(zoo.TOPOLOGIES["left chain"], P),
        "one leaf": root(source, impurity),
        "hardened": trained(Chain([refined(), Harden("soft")]), source, impurity),
    }


@every_problem
@pytest.mark.parametrize("start", ["thresholds", "slanted", "mixed", "chain", "one leaf", "hardened"])
@pytest.mark.parametrize("depth", [None, 3])
def test_any_tree_is_refined(problem: Problem, start: str, depth: int | None) -> None:
    source, run = problem.source(), Run(np.random.default_rng(0))
    tree = starts(source, problem.impurity)[start]
    given = bits(tree)
    found = Refine(depth, optimizer=Descend(80, 10**6, 0.1)).train(tree, source, problem.impurity, run)
    assert bits(tree) == given
    if depth is None and start == "one leaf":
        assert found is tree
        return
    assert found.topology.arity.tolist() == completed(tree.topology, depth or 0)[0].arity.tolist()
    assert all(isinstance(table, Linears) for table in found.tables)
    assert run.history[-1] < run.history[0] and len(run.history) == 80


def test_a_threshold_starts_as_a_steep_question_at_the_same_place() -> None:
    source = PROBLEMS[0].source()
    tree = trained(GrowHard(3), source, Gini())
    assert isinstance(tree.tables[0], Thresholds)
    run = Run(np.random.default_rng(0))
    soft = Refine(None, optimizer=Descend(0)).train(tree, source, Gini(), run)
    assert (soft.apply(source.X) == tree.apply(source.X)).mean() > 0.9  # the noise of soften moves a few rows


def test_a_users_impurity_descends_like_the_built_in_one() -> None:
    """Tsallis of order 2 is gini: float64 arrays against the float32 kernel, over 60 steps."""
    histories = []
    for impurity in (Gini(), zoo.Tsallis(2.0)):
        source, run = PROBLEMS[0].source(), Run(np.random.default_rng(0))
        refined().train(root(source, impurity), source, impurity, run)
        histories.append(run.history)
    np.testing.assert_allclose(histories[0], histories[1], rtol=2e-3)
    np.testing.assert_allclose(histories[0][:5], histories[1][:5], rtol=1e-5)


# Early stopping.


@every_problem
@pytest.mark.parametrize("optimizer", [Descend(2000, 100, 0.3), Lbfgs(400, tol=0.0)], ids=["adam", "l-bfgs"])
def test_the_watch_stops_and_keeps_the_best_it_saw(
    problem: Problem, optimizer: Descend | Lbfgs, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, np.ndarray, Lookout]] = []
    stop = Lookout.stop

    def watched(lookout: Lookout, theta: np.ndarray) -> bool:
        slope = np.asarray(lookout.engine.impurity.slope(lookout.engine.leaf_sums(theta)))
        seen.append((float(np.sum(slope * lookout.held_out.leaf_sums(theta))), theta.copy(), lookout))
        return stop(lookout, theta)

    monkeypatch.setattr(Lookout, "stop", watched)
    source, run = problem.source(), Run(np.random.default_rng(0))
    tree = trained(START, source, problem.impurity)
    watch = Watch(0.3, patience=2, tol=10.0)  # no gain counts after the first look
    found = Refine(3, optimizer=optimizer, watch=watch).train(tree, source, problem.impurity, run)
    assert len(seen) == 3 < CALLS and len(run.history) < optimizer.n_steps
    losses, thetas, lookouts = zip(*seen, strict=True)
    best = thetas[int(np.argmin(losses))]
    lookout = lookouts[0]
    assert lookout.engine.source.n + lookout.held_out.source.n == source.n
    questions = lookout.engine.split.questions(best.astype(float), found.topology, source.units)
    assert found.tables[0].record() == questions.record()


def test_rows_held_out_are_not_trained_on() -> None:
    """Copies stay together, so no held-out row is among those trained on."""
    source = PROBLEMS[0].source()
    held_out, rest = source.parted(0.25, 7)
    assert not set(held_out.content.tolist()) & set(rest.content.tolist())
    assert 0.15 * N < held_out.n < 0.35 * N and held_out.n + rest.n == N
    assert held_out.units is source.units and rest.units is source.units


def test_equal_rows_cannot_be_held_out() -> None:
    """One distinct row: nothing to watch by, so all is trained on."""
    ids = np.zeros(8, dtype=int)
    order, copies, content, summed = canonical_rows(X[ids], np.arange(8), np.ones(8))
    source = ArraySource(X[ids], order, copies, content, class_counts(np.arange(8) % 2, 2, summed))
    held_out, rest = source.parted(0.5, 0)
    assert (held_out.n, rest.n) == (0, 8)
    found = trained(Refine(1, optimizer=ADAM, watch=Watch()), source, Gini())
    assert np.isfinite(found.values).all()


# Completed topologies.


@pytest.mark.parametrize("shape", zoo.BINARY)
@pytest.mark.parametrize("depth", range(6))
def test_a_completed_shape_holds_the_old_one(shape: str, depth: int) -> None:
    old = zoo.BINARY[shape]
    new, origin = completed(old, depth)
    assert origin.size == new.n_nodes and origin[0] == 0
    assert sorted(origin[origin >= 0].tolist()) == list(range(old.n_nodes))  # each old node once
    assert (new.level_of[new.leaves] >= depth).all()  # no leaf too early
    assert new.depth == max(old.depth, depth)
    for node in range(new.n_nodes):
        was = int(origin[node])
        asks = was >= 0 and old.arity[was] > 0
        assert (new.arity[node] > 0) == (asks or new.level_of[node] < depth)
        for child in range(new.arity[node]):
            expected = old.first_child[was] + child if asks else -1
            assert origin[new.first_child[node] + child] == expected


def test_a_shape_complete_to_no_depth_is_itself() -> None:
    for old in zoo.TOPOLOGIES.values():
        new, origin = completed(old, 0)
        assert new.arity.tolist() == old.arity.tolist() and origin.tolist() == list(range(old.n_nodes))


def test_leaves_never_outnumber_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A depth with more leaves than rows keeps the shape that was grown."""
    source = PROBLEMS[0].source()
    tree = trained(START, source, Gini())
    run = Run(np.random.default_rng(0))
    assert Refine(20, optimizer=Descend(1)).train(tree, source, Gini(), run).n_leaves == tree.n_leaves
    assert Refine(7, optimizer=Descend(1)).train(tree, source, Gini(), run).n_leaves == 2**7
    monkeypatch.setattr(refine, "MOST_LEAVES", 64)
    assert Refine(7, optimizer=Descend(1)).train(tree, source, Gini(), run).n_leaves == tree.n_leaves


def test_progress_is_told_and_history_kept() -> None:
    source, told = PROBLEMS[0].source(), []
    run = Run(np.random.default_rng(0), progress=lambda share, objective: told.append((share, objective)))
    tree = trained(START, source, Gini())
    Refine(3, optimizer=Descend(50)).train(tree, source, Gini(), run)
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(told) == CALLS
    assert len(run.history) == 50 and told[-1][1] == run.history[-1]


def test_a_stump_is_complete() -> None:
    assert completed(Topology.leaf(), 1)[0].arity.tolist() == [2, 0, 0]
