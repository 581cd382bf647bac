"""The compiled sweeps: against the reference and the float64 array twin, for any threads, dense and lazy.

Relative errors are of norms: |a - b| / |b|. Kernels compute in float32 (6e-8 per operation) and add in float64; a sum
over nodes down a path and over rows leaves about 1e-6 of that, and 1e-5 is what the kernels promise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reference
from soft_problems import CASES, PROMISE, SHAPES, Problem, error
from softwood import _core
from softwood.split import Linear
from softwood.targets import class_counts
from softwood.topology import Topology
from softwood.train.engine import Adam, ArrayEngine, CoreEngine, Memory


def assert_promise(problem: Problem) -> None:
    J, gradient = problem.core().evaluate(problem.theta)
    exact_J, exact_gradient = problem.exact()
    assert error(J, exact_J) <= PROMISE
    assert error(gradient, exact_gradient) <= PROMISE


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_objective_and_gradient_are_the_twins(case: str, shape: str) -> None:
    assert_promise(Problem.of(case, SHAPES[shape], 203, 5))


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 16, 33, 70])
@pytest.mark.parametrize("case", ["gini, coded", "variance"])
@pytest.mark.parametrize("shape", ["stump", "complete 6", "left chain"])
def test_any_number_of_columns(case: str, shape: str, p: int) -> None:
    """33 and 70 columns are more than one block of the gradient; 1 to 5 are all remainders of four."""
    assert_promise(Problem.of(case, SHAPES[shape], 150, p))


@pytest.mark.parametrize("n", [2, 15, 16, 17, 63, 64, 65, 127, 700, 2048, 2049, 5000])
@pytest.mark.parametrize("case", ["gini, 70 classes", "entropy, dense"])
def test_any_number_of_rows(case: str, n: int) -> None:
    """A tile has 64 rows, a chunk 2048."""
    assert_promise(Problem.of(case, SHAPES["complete 3"], n, 7))


@pytest.mark.parametrize("sharpness", [0.0, 0.1, 8.0])
def test_flat_and_steep_gates(sharpness: float) -> None:
    problem = Problem.of("gini, coded", SHAPES["complete 6"], 300, 4, sharpness)
    problem.theta += np.float32(0.01)
    assert_promise(problem)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", ["stump", "ragged", "complete 3"])
def test_sums_and_gradient_are_the_references(case: str, shape: str) -> None:
    """Plain loops and the product rule; few rows, because it is slow."""
    problem = Problem.of(case, SHAPES[shape], 11, 3)
    arity, theta = problem.topology.arity.tolist(), problem.theta.astype(float).tolist()
    rows, s = problem.source.Z.astype(float).tolist(), problem.source.targets.dense().tolist()
    Z = [reference.linear_scores(theta, x) for x in rows]
    S = np.array(reference.expected_statistics(arity, Z, s))[problem.topology.leaves]
    assert error(problem.core().leaf_sums(problem.theta), S) <= PROMISE

    def slope(S: reference.Row) -> reference.Row:
        return problem.impurity.slope(np.array(S)).tolist()

    Z_gradient = [reference.linear_scores_gradient(theta, x) for x in rows]
    exact = reference.objective_gradient(arity, Z, Z_gradient, s, slope)
    slopes = np.array([slope(row) for row in S])
    assert error(problem.core().gradient(problem.theta, slopes), exact) <= PROMISE


def test_scores_beyond_the_range_of_an_exponential() -> None:
    """exp(1000) is infinite in float32: gates must still be 0 and 1, and nothing NaN."""
    problem = Problem.of("gini, coded", SHAPES["complete 3"], 100, 2, sharpness=3000.0)
    S = problem.core().leaf_sums(problem.theta)
    right = Linear().scores(problem.theta.astype(float), problem.source.Z.astype(float), problem.topology) > 0
    node = np.zeros(100, dtype=int)
    for _ in range(3):
        node = 2 * node + 1 + right[np.arange(100), node]
    hard = problem.source.targets.sums_by(node - 7, 8)
    np.testing.assert_allclose(S, hard, atol=1e-4)
    J, gradient = problem.core().evaluate(problem.theta)
    assert np.isfinite(J) and np.isfinite(gradient).all()


# Steps.


def steps_of(engine: CoreEngine | ArrayEngine, theta: np.ndarray, batches: np.ndarray, adam: Adam) -> Any:
    theta = theta.copy()
    memory = Memory.fresh(theta.size, engine.source.n)
    rates = np.linspace(0.1, 0.05, len(batches)).astype(np.float32)
    half = len(batches) // 2
    parts = [engine.descend(theta, memory, batches[:half], rates[:half], adam)]  # memory is kept between calls
    parts.append(engine.descend(theta, memory, batches[half:], rates[half:], adam))
    return theta, memory, np.concatenate(parts)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("shape", "p"), [("stump", 2), ("ragged", 5), ("complete 3", 37), ("left chain", 4)])
@pytest.mark.parametrize("n_steps", [1, 6])
def test_steps_are_the_twins(case: str, shape: str, p: int, n_steps: int) -> None:
    """Adam divides by the size of the gradient; epsilon 1e-3 keeps rounding of tiny gradients from becoming steps."""
    problem = Problem.of(case, SHAPES[shape], 230, p)
    batches = np.random.default_rng(0).integers(0, 230, (n_steps, 150)).astype(np.int32)  # some rows twice
    adam = Adam(decay=0.3, beta1=0.9, beta2=0.99, epsilon=1e-3)
    theta, memory, objective = steps_of(problem.core(), problem.theta, batches, adam)
    exact_theta, exact_memory, exact_objective = steps_of(problem.arrays(), problem.theta, batches, adam)
    assert memory.step == exact_memory.step == n_steps
    assert error(objective, exact_objective) <= PROMISE
    assert error(memory.mean, exact_memory.mean) <= 10 * PROMISE
    assert error(memory.square, exact_memory.square) <= 10 * PROMISE
    moved = exact_theta - problem.theta
    assert np.linalg.norm(moved) > 0.01 and error(theta - problem.theta, moved) <= 10 * PROMISE


def test_decay_shrinks_weights_and_spares_offsets() -> None:
    """One class only: no gradient, so what moves is decay."""
    problem = Problem.of("gini, coded", SHAPES["complete 3"], 100, 4)
    problem.source.targets = class_counts(np.zeros(100, dtype=int), 3)
    batches = np.arange(100, dtype=np.int32)[None].repeat(2, axis=0)
    theta, _, _ = steps_of(problem.core(), problem.theta, batches, Adam(decay=0.5))
    shrunk, given = theta.reshape(-1, 5), problem.theta.reshape(-1, 5)
    np.testing.assert_allclose(shrunk[:, :4], given[:, :4] * (1 - 0.1 * 0.5) * (1 - 0.05 * 0.5), rtol=1e-5)
    np.testing.assert_allclose(shrunk[:, 4], given[:, 4], rtol=1e-6)


def test_many_steps_lower_the_objective() -> None:
    problem = Problem.of("gini, coded", SHAPES["complete 3"], 400, 5)
    problem.source.targets = class_counts((problem.source.X[:, 0] * problem.source.X[:, 1] > 0).astype(int), 2)
    batches = np.arange(400, dtype=np.int32)[None].repeat(200, axis=0)
    _, _, objective = steps_of(problem.core(), problem.theta, batches, Adam(decay=0.0))
    assert objective[-1] < 0.3 * objective[0]


# Threads.


@pytest.mark.parametrize("case", ["gini, coded", "variance"])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3], ids=["dense", "lazy"])
def test_threads_change_no_bit_of_a_descent(case: str, tolerance: float) -> None:
    results = []
    for n_threads in (1, 2, 3):
        problem = Problem.of(case, Topology.complete(8), 1500, 9, 300.0, n_threads)
        batches = np.random.default_rng(0).integers(0, 1500, (12, 1000)).astype(np.int32)
        theta, memory, objective = steps_of(problem.core(tolerance), problem.theta, batches, Adam(decay=0.1))
        parts = (theta, memory.mean, memory.square, memory.leaf_of, objective, np.array(memory.visited))
        results.append([part.tobytes() for part in parts])
        assert (memory.visited[-1] < 0.25) == (tolerance > 0)  # lazy where it may be: rows are in order by now
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("case", ["gini, 70 classes", "variance"])
def test_threads_change_no_bit_of_sums_and_gradients(case: str) -> None:
    results = set()
    for n_threads in (1, 2, 3):
        problem = Problem.of(case, SHAPES["complete 6"], 5000, 35, n_threads=n_threads)
        J, gradient = problem.core().evaluate(problem.theta)
        results.add((J, gradient.tobytes()))
    assert len(results) == 1


# Lazy sweeps.
#
# A tile of rows skips a child that each of them reaches with probability <= t. Take one row of weight w. The topmost
# nodes it reaches with <= t are disjoint; every branch skipped for it lies in one of them, so the mass it loses is at
# most  m = sum of reach over those topmost nodes  <= t * their number  <= t * (leaves - 1).
#
# Objective. The lazy leaf sums are S' = S - D, where D sums the statistics that got lost. phi is superadditive and
# never negative, so phi(S') <= phi(S); it is concave, so phi(S) <= phi(S') + slope(S') . D. Hence
#     0 <= J - J' <= c * sum of w m,      c the largest loss of a row per weight: gini 2, entropy -log(1e-12),
#                                         variance the square of the range of the target.
#
# Gradient, gini, of one column whose values are at most x in size, summed over nodes:
#   - Slopes lie in [0, 2]. A branch that is skipped is taken to cost what its sibling costs: an error of at most 2 in
#     each node above it, times the branch's reach; and its own nodes' gradient of at most 2 / 4 times their reach per
#     level. Together at most 2 x depth * w m.
#   - Shares of a leaf change by at most D / N, slopes by at most 4 D / N; the derivatives of reach by the scores of
#     the nodes above a leaf add up to at most depth * reach: with N summed back, 4 x depth * sum of w m.
#   So  sum over nodes |gradient - gradient'| <= 6 x depth * sum of w m.

BATCH_OF_ALL = Adam(decay=0.0, beta1=0.0)  # then the optimiser's mean is the gradient itself
LARGEST_LOSS = {"gini, coded": 2.0, "entropy, coded": -np.log(1e-12)}


def swept(problem: Problem, tolerance: float) -> tuple[float, np.ndarray, float]:
    """Objective and gradient per unit of weight of one sweep over all rows, and the share of visits."""
    engine, n = problem.core(tolerance), problem.source.n
    memory = Memory.fresh(problem.theta.size, n)
    order = np.argsort(problem.reach()[:, problem.topology.leaves].argmax(axis=1), kind="stable")
    memory.leaf_of[:] = problem.reach()[:, problem.topology.leaves].argmax(axis=1)
    batch = order.astype(np.int32)[None]
    objective = engine.descend(problem.theta.copy(), memory, batch, np.zeros(1, np.float32), BATCH_OF_ALL)
    return float(objective[0]), memory.mean.copy(), memory.visited[0]


def lost_mass(problem: Problem, tolerance: float) -> np.ndarray:
    """(n,) m of each row: reach of the topmost nodes reached with at most the tolerance."""
    reach = problem.reach()
    above = reach[:, np.maximum(problem.topology.parent, 0)]
    return np.where((reach <= tolerance) & (above > tolerance), reach, 0.0).sum(axis=1)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("case", ["gini, coded", "entropy, coded", "variance"])
@pytest.mark.parametrize("shape", ["complete 6", "complete 8"])
def test_the_error_of_a_lazy_sweep_is_bounded(case: str, shape: str, tolerance: float) -> None:
    topology = Topology.complete(int(shape[-1]))
    problem = Problem.of(case, topology, 1200, 6, sharpness=20.0)
    w, s = problem.source.targets.weight, problem.source.targets.dense()
    exact_J, exact_gradient = problem.exact()
    J, gradient, share = swept(problem, tolerance)
    assert share < 0.75  # much is skipped
    lost = float(w @ lost_mass(problem, tolerance)) / w.sum()
    assert lost <= tolerance * (topology.leaves.size - 1)
    c = LARGEST_LOSS.get(case) or np.ptp(s[:, 1] / s[:, 0]) ** 2
    rounding = PROMISE * exact_J
    assert -rounding <= exact_J - J <= c * lost + rounding
    if case == "gini, coded":
        x = np.append(np.abs(problem.source.Z).max(axis=0), 1.0)
        gaps = np.abs(gradient - exact_gradient).reshape(-1, 7).sum(axis=0)
        rounding = PROMISE * np.abs(exact_gradient).sum()
        assert (gaps <= 6 * x * topology.depth * lost + rounding).all()


def test_a_lazy_sweep_is_not_the_dense_one_in_disguise() -> None:
    """Were nothing skipped, the bound above would test nothing: a coarse tolerance must show."""
    problem = Problem.of("gini, coded", SHAPES["complete 6"], 1200, 6, sharpness=20.0)
    exact_J, exact_gradient = problem.exact()
    J, gradient, _ = swept(problem, 0.1)
    assert error(J, exact_J) > 10 * PROMISE and error(gradient, exact_gradient) > 10 * PROMISE


@pytest.mark.parametrize("case", CASES)
def test_as_the_tolerance_vanishes_lazy_becomes_dense(case: str) -> None:
    """Below the smallest reach nothing is skipped; what a row reaches with 1e-30 does not count in float32."""
    problem = Problem.of(case, SHAPES["complete 6"], 500, 6, sharpness=4.0)
    J, gradient, _ = swept(problem, 1e-30)
    exact_J, exact_gradient = swept(problem, 0.0)[:2]
    assert error(J, exact_J) <= PROMISE and error(gradient, exact_gradient) <= PROMISE


def test_lazy_errors_shrink_with_the_tolerance() -> None:
    problem = Problem.of("gini, coded", Topology.complete(8), 1200, 6, sharpness=20.0)
    exact = problem.exact()[1]
    errors = [error(swept(problem, tolerance)[1], exact) for tolerance in (1e-1, 1e-2, 1e-3, 1e-5)]
    assert errors == sorted(errors, reverse=True) and errors[-1] <= 1e-3 * errors[0]


def test_rows_remember_their_likeliest_leaf() -> None:
    problem = Problem.of("gini, coded", SHAPES["complete 6"], 300, 6, sharpness=6.0)
    engine, memory = problem.core(1e-6), Memory.fresh(problem.theta.size, 300)
    batch = np.arange(300, dtype=np.int32)[None]
    engine.descend(problem.theta.copy(), memory, batch, np.zeros(1, np.float32), BATCH_OF_ALL)
    reach = problem.reach()[:, problem.topology.leaves]
    np.testing.assert_allclose(reach[np.arange(300), memory.leaf_of], reach.max(axis=1), rtol=1e-5)


def test_the_kernels_take_what_the_engine_gives() -> None:
    """The engine adds nothing to leaf_sums but the unit of weights."""
    problem = Problem.of("gini, coded", SHAPES["ragged"], 90, 3)
    codes, weights = problem.source.targets.core()
    rows = (problem.source.Z, codes, weights, problem.source.targets.d, problem.topology.first_child)
    sums = _core.leaf_sums(problem.theta, *rows, 1)
    np.testing.assert_allclose(sums, problem.core().leaf_sums(problem.theta), rtol=1e-5)
    np.testing.assert_allclose(sums.sum(axis=0), problem.source.targets.total(), rtol=1e-5)
