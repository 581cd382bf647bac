"""Growing and pruning while refining: what stays keeps its bits, and the objective does not rise."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from softwood.impurity import Gini, Variance
from softwood.source import ArraySource, canonical_rows
from softwood.targets import centred_moments, class_counts
from softwood.topology import Topology
from softwood.train.base import Run, root
from softwood.train.engine import Adam, Memory
from softwood.train.evolve import Evolve, Stage, with_questions
from softwood.train.grow_hard import GrowHard
from softwood.train.refine import Descend

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * RNG.normal(size=400)
order, copies, content, weight = canonical_rows(X, np.arange(400), np.ones(400))
SOURCES = {
    "classes": (
        ArraySource(X, order, copies, content, class_counts(np.digitize(SCORE[order], [-0.7, 0.7]), 3)),
        Gini(),
    ),
    "numbers": (ArraySource(X, order, copies, content, centred_moments(SCORE[order])[0]), Variance()),
}
every_source = pytest.mark.parametrize("kind", SOURCES)
EVOLVE = Evolve(5, optimizer=Descend(200, 200, 0.1))


def trained_stage(kind: str, evolve: Evolve = EVOLVE, depth: int = 2, steps: int = 20) -> tuple[Stage, Run]:
    source, impurity = SOURCES[kind]
    run = Run(np.random.default_rng(0))
    stage = evolve.begun(GrowHard(depth).train(root(source, impurity), source, impurity, run), source, run)
    engine, batches = evolve.engine(stage, source, impurity), source.batches(run.rng, 200)
    rates = np.full(steps, 0.05, np.float32)
    engine.descend(stage.theta, stage.memory, batches.draw(steps), rates, Adam(0.1))
    return stage, run


def blocks(stage: Stage) -> list[np.ndarray]:
    shape = (stage.topology.internal.size, -1)
    return [each.reshape(shape) for each in (stage.theta, stage.memory.mean, stage.memory.square)]


@every_source
def test_growing_keeps_what_is_there_bit_for_bit_and_never_raises_the_objective(kind: str) -> None:
    stage, run = trained_stage(kind)
    source, impurity = SOURCES[kind]
    before = EVOLVE.engine(stage, source, impurity)
    grown = EVOLVE.changed(stage, before, run)
    assert grown.topology.n_nodes > stage.topology.n_nodes
    assert grown.memory.step == stage.memory.step and grown.memory.seed == stage.memory.seed
    for new, old in zip(blocks(grown), blocks(stage), strict=True):
        assert {row.tobytes() for row in old} <= {row.tobytes() for row in new}
    added = grown.topology.internal.size - stage.topology.internal.size
    assert (blocks(grown)[1] == 0).all(axis=1).sum() == added  # new questions remember nothing
    after = EVOLVE.engine(grown, source, impurity)
    assert after.evaluate(grown.theta)[0] <= before.evaluate(stage.theta)[0] + 1e-6


@every_source
def test_a_change_that_changes_nothing_is_not_felt(kind: str) -> None:
    """Descents with and without a carried stage between them end in the same bits."""
    still = Evolve(2, heavy=10**6, useless=-1.0, least_expected=0.0, optimizer=EVOLVE.optimizer)
    source, impurity = SOURCES[kind]
    ends = []
    for carries in (False, True):
        stage, _ = trained_stage(kind, still)
        if carries:
            stage = still.changed(stage, still.engine(stage, source, impurity), Run(np.random.default_rng(5)))
        batches = source.batches(np.random.default_rng(1), 200).draw(30)
        rates = np.full(30, 0.05, np.float32)
        still.engine(stage, source, impurity).descend(stage.theta, stage.memory, batches, rates, Adam(0.1))
        ends.append([each.tobytes() for each in blocks(stage)])
    assert ends[0] == ends[1]


@every_source
def test_useless_and_empty_branches_go(kind: str) -> None:
    """A question that sends every row one way, and one that parts rows by nothing."""
    stage, run = trained_stage(kind, depth=3)
    source, impurity = SOURCES[kind]
    table = stage.theta.reshape(-1, 4)
    table[1] = [0, 0, 0, 50.0]  # all rows to the right
    table[2] = 0  # a coin
    stage.topology = Topology.complete(3) if stage.topology.internal.size == 7 else stage.topology
    pruned = Evolve(3, heavy=10**6).changed(stage, EVOLVE.engine(stage, source, impurity), run)
    assert pruned.topology.internal.size < stage.topology.internal.size
    rows = {row.tobytes() for row in blocks(pruned)[0]}
    assert table[1].tobytes() not in rows and table[0].tobytes() in rows


@every_source
def test_the_trained_tree_is_no_deeper_than_asked_and_better_than_its_start(kind: str) -> None:
    source, impurity = SOURCES[kind]
    for depth in (1, 3, 5):
        run = Run(np.random.default_rng(0))
        start = GrowHard(1).train(root(source, impurity), source, impurity, run)
        tree = Evolve(depth, optimizer=Descend(300, 200, 0.1)).train(start, source, impurity, run)
        assert tree.depth <= depth and len(run.history) == 300
        assert run.history[-1] < run.history[0]


@pytest.mark.parametrize("shape", zoo.BINARY)
def test_questions_are_added_where_asked(shape: str) -> None:
    old = zoo.BINARY[shape]
    leaves = old.leaves[::2].tolist()
    new, origin = with_questions(old, leaves)
    assert new.n_nodes == old.n_nodes + 2 * len(leaves)
    assert sorted(origin[origin >= 0].tolist()) == list(range(old.n_nodes))
    for node, was in enumerate(origin):
        assert new.arity[node] == (0 if was < 0 else 2 if was in leaves else old.arity[was])


def test_families_whose_questions_share_parameters_are_refused() -> None:
    stage = Stage(Topology.complete(2), np.zeros(7, np.float32), Memory.fresh(7, 4))
    with pytest.raises(ValueError, match="as many parameters for each question"):
        stage.carried(Topology.complete(2), np.arange(7), np.zeros(7, np.float32))
