"""The compiled walks of sampled paths: against the array twin, for any threads, columns, targets and draws."""

from __future__ import annotations

import numpy as np
import pytest

from soft_problems import CASES, PROMISE, SHAPES, Problem, error
from softwood.split import Linear
from softwood.targets import class_counts
from softwood.topology import Topology
from softwood.train.engine import Adam, ArrayEngine, CoreEngine, Memory
from softwood.train.sampled import AbstractSampled, SampledArrays, SampledCore

ADAM = Adam(decay=0.3, beta1=0.9, beta2=0.99, epsilon=1e-3)


def core(problem: Problem, n_draws: int) -> SampledCore:
    return SampledCore(CoreEngine(problem.source, problem.topology, Linear(), problem.impurity, 0.0), n_draws)


def arrays(problem: Problem, n_draws: int) -> SampledArrays:
    return SampledArrays(ArrayEngine(problem.source, problem.topology, Linear(), problem.impurity), n_draws)


def steps_of(
    engine: AbstractSampled, theta: np.ndarray, batches: np.ndarray, seed: int = 7, adam: Adam = ADAM
) -> list[np.ndarray]:
    theta, memory = theta.copy(), Memory.fresh(theta.size, engine.source.n, seed)
    rates = np.linspace(0.1, 0.05, len(batches)).astype(np.float32)
    objective = engine.descend(theta, memory, batches, rates, adam)
    assert memory.step == len(batches)
    return [theta, memory.mean, memory.square, objective]


def batches_of(n: int, steps: int, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, n, (steps, count)).astype(np.int32)  # some rows twice


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("shape", "p"), [("stump", 2), ("ragged", 5), ("complete 3", 37), ("left chain", 16)])
@pytest.mark.parametrize("n_draws", [1, 3])
def test_steps_are_the_twins(case: str, shape: str, p: int, n_draws: int) -> None:
    """A choice turns where a probability differs in its last bit from the number drawn: not for these seeds."""
    problem = Problem.of(case, SHAPES[shape], 230, p)
    batches = batches_of(230, 3, 101)
    found = steps_of(core(problem, n_draws), problem.theta, batches)
    exact = steps_of(arrays(problem, n_draws), problem.theta, batches)
    for mine, theirs in zip(found[1:], exact[1:], strict=True):
        assert error(mine, theirs) <= 10 * PROMISE
    assert error(found[0] - problem.theta, exact[0] - problem.theta) <= 10 * PROMISE


@pytest.mark.parametrize("case", ["gini, 70 classes", "variance"])
@pytest.mark.parametrize("n_draws", [1, 4])
def test_threads_change_no_bit(case: str, n_draws: int) -> None:
    results = []
    for n_threads in (1, 2, 3):
        problem = Problem.of(case, Topology.complete(7), 1500, 9, 3.0, n_threads)
        parts = steps_of(core(problem, n_draws), problem.theta, batches_of(1500, 6, 700))
        results.append([part.tobytes() for part in parts])
    assert results[0] == results[1] == results[2]


def test_the_seed_and_only_the_seed_changes_what_is_drawn() -> None:
    problem = Problem.of("gini, coded", SHAPES["complete 6"], 300, 4)
    batches = batches_of(300, 2, 100)
    one, same, other = (steps_of(core(problem, 1), problem.theta, batches, seed)[0] for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()


def test_averaged_over_draws_a_step_is_the_exact_one() -> None:
    """4096 draws: leaf statistics, and with them slopes, are then nearly the expected ones."""
    problem = Problem.of("gini, coded", SHAPES["complete 3"], 200, 4)
    batch, still = np.arange(200, dtype=np.int32)[None], np.zeros(1, np.float32)
    memory = Memory.fresh(problem.theta.size, 200, 3)
    J = core(problem, 4096).descend(problem.theta.copy(), memory, batch, still, Adam(0.0, beta1=0.0))
    exact_J, gradient = problem.core().evaluate(problem.theta)
    assert error(J[0] / problem.source.targets.weight.mean(), exact_J / problem.source.targets.weight.mean()) < 5e-3
    assert error(memory.mean, gradient) < 0.05


def test_many_steps_lower_the_objective() -> None:
    problem = Problem.of("gini, coded", SHAPES["complete 3"], 400, 5)
    problem.source.targets = class_counts((problem.source.X[:, 0] * problem.source.X[:, 1] > 0).astype(int), 2)
    batches = np.arange(400, dtype=np.int32)[None].repeat(300, axis=0)
    objective = steps_of(core(problem, 1), problem.theta, batches, adam=Adam(decay=0.0))[-1]
    assert objective[-20:].mean() < 0.4 * objective[:3].mean()
