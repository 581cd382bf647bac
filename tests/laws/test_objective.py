"""Laws of the expected impurity: two sweeps are the textbook's sums, its gradient the textbook's product rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import reference
import zoo
from derivatives import check_vjp
from softwood.impurity import Gini, Variance
from softwood.objective import Evaluation, expected_impurity, gates, gates_vjp, sweep_down, sweep_up
from softwood.split import Linear
from softwood.topology import Topology

every_shape = pytest.mark.parametrize("topology", zoo.TOPOLOGIES.values(), ids=zoo.TOPOLOGIES)
MIXED_LEVEL = Topology(np.array([2, 2, 3, 0, 0, 0, 0, 0]))


def scores(topology: Topology, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(0).normal(size=(zoo.N_ROWS, int(topology.n_scores.sum())))


@dataclass
class Problem:
    """One soft tree on one sample under one impurity."""

    case: zoo.ImpurityCase
    encoding: str
    family: zoo.SplitCase
    topology: Topology
    X: np.ndarray = field(default_factory=lambda: zoo.table(p=2))

    def __post_init__(self) -> None:
        self.split = self.family.make(self.topology, 2)
        self.theta = zoo.random_theta(self.family, self.topology, 2)
        self.s = zoo.statistics(self.encoding)
        self.arity = self.topology.arity.tolist()

    def at(self, theta: np.ndarray) -> Evaluation:
        return expected_impurity(theta, self.X, self.s, self.topology, self.split, self.case.impurity)

    def reference_scores(self) -> list[list[float]]:
        rows = [self.family.scores(self.theta.tolist(), x, self.topology) for x in self.X.tolist()]
        return [[z.real for z in row] for row in rows]

    def reference_gradient(self) -> list[float]:
        derivatives = [self.family.scores_gradient(self.theta.tolist(), x, self.topology) for x in self.X.tolist()]
        return reference.objective_gradient(
            self.arity, self.reference_scores(), derivatives, self.s.tolist(), self.case.slope
        )


# Every shape under two impurities, and every impurity and encoding on one shape.
PROBLEMS = {
    f"{case} of {encoding}, {family}, {shape}": Problem(case, encoding, family, topology)
    for family in zoo.SPLITS
    for shape, topology in family.topologies.items()
    for case in zoo.IMPURITIES
    for encoding in case.encodings
    if shape == "ragged" or (type(case.impurity) in (Gini, Variance) and encoding.startswith("weighted"))
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def test_every_split_meets_every_shape_and_every_impurity() -> None:
    pairs = {(str(problem.family), str(problem.case)) for problem in PROBLEMS.values()}
    assert len(pairs) == len(zoo.SPLITS) * len(zoo.IMPURITIES)
    for family in zoo.SPLITS:
        met = {id(problem.topology) for problem in PROBLEMS.values() if problem.family is family}
        assert met == {id(topology) for topology in family.topologies.values()}


@every_problem
def test_objective_and_statistics_equal_the_reference(problem: Problem) -> None:
    evaluation, Z = problem.at(problem.theta), problem.reference_scores()
    S = reference.expected_statistics(problem.arity, Z, problem.s.tolist())
    # Sums of a hundred numbers near 1 in another order, and a sigmoid by another formula.
    assert evaluation.statistics == pytest.approx(np.array(S), rel=1e-12, abs=1e-13)
    J = reference.objective(problem.arity, Z, problem.s.tolist(), problem.case.phi)
    assert evaluation.objective == pytest.approx(J, rel=1e-11, abs=1e-12)


@every_problem
def test_the_gradient_of_two_sweeps_is_the_product_rule(problem: Problem) -> None:
    expected = np.array(problem.reference_gradient())
    gradient = problem.at(problem.theta).theta_bar
    assert gradient.shape == problem.theta.shape
    # Relative to the largest entry: small ones are differences of large ones.
    assert gradient == pytest.approx(expected, rel=0, abs=1e-12 * (1 + np.abs(expected).max(initial=0.0)))


@every_problem
def test_the_gradient_is_that_of_finite_differences(problem: Problem) -> None:
    check_vjp(
        lambda theta: np.array([problem.at(theta).objective]),
        lambda theta, J_bar: J_bar[0] * problem.at(theta).theta_bar,
        problem.theta,
    )


@every_problem
def test_expected_leaf_statistics_add_up_to_the_root(problem: Problem) -> None:
    S = problem.at(problem.theta).statistics
    total = problem.s.sum(axis=0)
    assert S[0] == pytest.approx(total, rel=1e-13, abs=1e-13)  # sums in another order
    assert S[problem.topology.leaves].sum(axis=0) == pytest.approx(total, rel=1e-13, abs=1e-13)
    for node in problem.topology.internal:
        below = reference.children(problem.arity, int(node))
        assert S[below].sum(axis=0) == pytest.approx(S[node], rel=1e-13, abs=1e-13)


@every_problem
def test_the_order_of_the_rows_does_not_matter(problem: Problem) -> None:
    order = np.random.default_rng(2).permutation(zoo.N_ROWS)
    one = problem.at(problem.theta)
    other = expected_impurity(
        problem.theta, problem.X[order], problem.s[order], problem.topology, problem.split, problem.case.impurity
    )
    # The same summands in another order.
    assert other.objective == pytest.approx(one.objective, rel=1e-12, abs=1e-12)
    assert other.theta_bar == pytest.approx(one.theta_bar, rel=1e-10, abs=1e-12)


@every_problem
def test_a_weight_of_two_is_the_row_twice(problem: Problem) -> None:
    twice = np.r_[np.arange(zoo.N_ROWS), [3]]
    weight = np.ones(zoo.N_ROWS)
    weight[3] = 2
    rest = (problem.topology, problem.split, problem.case.impurity)
    weighted = expected_impurity(problem.theta, problem.X, problem.s * weight[:, None], *rest)
    repeated = expected_impurity(problem.theta, problem.X[twice], problem.s[twice], *rest)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12, abs=1e-12)
    assert weighted.theta_bar == pytest.approx(repeated.theta_bar, rel=1e-10, abs=1e-12)


@every_problem
def test_float32_agrees_and_stays_float32(problem: Problem) -> None:
    single = expected_impurity(
        problem.theta.astype(np.float32),
        problem.X.astype(np.float32),
        problem.s.astype(np.float32),
        problem.topology,
        problem.split,
        problem.case.impurity,
    )
    double = problem.at(problem.theta)
    assert single.statistics.dtype == single.theta_bar.dtype == np.float32
    assert single.statistics == pytest.approx(double.statistics, rel=1e-5, abs=1e-5)  # 100 roundings of 1e-7
    size = 1 + np.abs(double.theta_bar).max(initial=0.0)
    assert single.theta_bar == pytest.approx(double.theta_bar, rel=0, abs=1e-4 * size)  # differences of such numbers


@every_shape
def test_gates_and_reach_equal_the_reference(topology: Topology) -> None:
    Z, arity = scores(topology, 3.0), topology.arity.tolist()
    P = gates(Z, topology)
    reach = sweep_down(P, topology)
    for i, z in enumerate(Z.tolist()):
        # A sigmoid as tanh is exact to one unit of 1, not of itself.
        assert P[i] == pytest.approx(np.array(reference.edge_probabilities(arity, z)), rel=0, abs=1e-15)
        assert reach[i] == pytest.approx(np.array(reference.reach_of_row(arity, z)), rel=0, abs=1e-14)


@every_shape
def test_probabilities_of_the_children_of_a_node_sum_to_one(topology: Topology) -> None:
    P = gates(scores(topology, 5.0), topology)
    assert P.shape == (zoo.N_ROWS, topology.n_nodes)
    assert (P[:, 0] == 1).all()
    assert (P >= 0).all()
    for node in topology.internal:
        below = reference.children(topology.arity.tolist(), int(node))
        assert P[:, below].sum(axis=1) == pytest.approx(np.ones(zoo.N_ROWS), rel=1e-15, abs=1e-15)


@every_shape
def test_every_row_reaches_the_leaves_with_probability_one(topology: Topology) -> None:
    reach = sweep_down(gates(scores(topology), topology), topology)
    assert reach[:, topology.leaves].sum(axis=1) == pytest.approx(np.ones(zoo.N_ROWS), rel=1e-14)


@every_shape
def test_gates_vjp_is_the_way_back_of_gates(topology: Topology) -> None:
    check_vjp(
        lambda Z: gates(Z, topology), lambda Z, P_bar: gates_vjp(gates(Z, topology), P_bar, topology), scores(topology)
    )


@every_shape
def test_sweeping_up_gives_the_expected_cost_of_standing_at_a_node(topology: Topology) -> None:
    """By recursion; and at the root it is the sum of reach times cost over the leaves."""
    P = gates(scores(topology), topology)
    costs = np.random.default_rng(1).normal(size=(zoo.N_ROWS, topology.leaves.size))
    A = sweep_up(P, costs, topology)
    arity, leaves = topology.arity.tolist(), topology.leaves.tolist()

    def expected(i: int, node: int) -> float:
        if arity[node] == 0:
            return float(costs[i, leaves.index(node)])
        return sum(float(P[i, child]) * expected(i, child) for child in reference.children(arity, node))

    for i in range(zoo.N_ROWS):
        for node in range(topology.n_nodes):
            assert A[i, node] == pytest.approx(expected(i, node), rel=1e-13, abs=1e-14)
    reach = sweep_down(P, topology)
    assert A[:, 0] == pytest.approx((reach[:, leaves] * costs).sum(axis=1), rel=1e-12, abs=1e-13)


@every_shape
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e4, 1e30])
def test_gates_are_stable_at_huge_scores(topology: Topology, dtype: type, size: float) -> None:
    """Far out a gate is 0 or 1, exactly; and nothing is lost of its way back but the gradient that is 0."""
    Z = (size * np.sign(scores(topology))).astype(dtype)
    P = gates(Z, topology)
    assert P.dtype == dtype
    assert np.isfinite(P).all()
    for i, z in enumerate(Z.tolist()):
        # One unit of float32, from a softmax of equal scores.
        expected = reference.edge_probabilities(topology.arity.tolist(), z)
        assert P[i] == pytest.approx(np.array(expected), rel=0, abs=1e-7)
    Z_bar = gates_vjp(P, np.ones_like(P), topology)
    assert Z_bar.dtype == dtype
    assert np.abs(Z_bar).max(initial=0.0) <= 1e-6  # adding one number to all costs changes nothing


def test_a_level_with_two_arities_is_refused() -> None:
    with pytest.raises(ValueError, match="same number of children"):
        gates(np.zeros((1, int(MIXED_LEVEL.n_scores.sum()))), MIXED_LEVEL)


def test_a_tree_of_one_leaf_has_the_impurity_of_the_sample_and_no_gradient() -> None:
    s = zoo.statistics("weighted classes")
    evaluation = expected_impurity(np.zeros(0), zoo.table(), s, Topology.leaf(), Linear(), Gini())
    assert evaluation.objective == pytest.approx(reference.gini_phi(s.sum(axis=0).tolist()), rel=1e-14)
    assert evaluation.theta_bar.shape == (0,)


@every_problem
def test_splitting_softly_never_raises_the_objective_above_the_root(problem: Problem) -> None:
    """Expected impurity is a split's impurity on fractions of rows: superadditivity holds for those as well."""
    if problem.case.prior(problem.s.shape[1]).any():
        root = problem.case.impurity.phi(
            problem.s.sum(axis=0) + (problem.topology.leaves.size - 1) * problem.case.prior(problem.s.shape[1])
        )
    else:
        root = problem.case.impurity.phi(problem.s.sum(axis=0))
    assert problem.at(problem.theta).objective <= float(root) + 1e-12 * np.abs(problem.s).sum()


# The same file on another array library.


@pytest.mark.parametrize("shape", zoo.TOPOLOGIES)
@pytest.mark.parametrize("name", ["gini", "entropy", "variance", "newton", "poisson", "gamma"])
def test_on_torch_the_gradient_is_that_of_autograd(shape: str, name: str) -> None:
    """Autograd of a plain torch tree: every leaf, a product over the edges of its path."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    from softwood.impurity import as_impurity

    case = next(case for case in zoo.IMPURITIES if case.impurity == as_impurity(name))
    topology, arity = zoo.TOPOLOGIES[shape], zoo.TOPOLOGIES[shape].arity.tolist()
    X = torch.asarray(zoo.table(p=2))
    s = torch.asarray(zoo.statistics(case.encodings[1]))
    theta = torch.asarray(np.random.default_rng(0).normal(size=Linear().n_parameters(topology, 2)))

    def plain(theta):  # type: ignore[no-untyped-def]
        P, start = {0: torch.ones(len(X), dtype=torch.float64)}, 0
        rows = theta.reshape(-1, 3)
        for node, count in enumerate(arity):
            width = {0: 0, 2: 1}.get(count, count)
            Z = X @ rows[start : start + width, :2].T + rows[start : start + width, 2]
            if width == 1:
                Z = torch.cat([torch.zeros_like(Z), Z], dim=1)
            for which, child in enumerate(reference.children(arity, node)):
                P[child] = torch.softmax(Z, dim=1)[:, which]
            start += width
        J = 0.0
        for leaf in reference.leaves_of(arity):
            reach = torch.stack([P[node] for node in reference.path_to(arity, leaf)]).prod(dim=0)
            S = reach @ s
            N = S.sum()
            J = (
                J
                + {
                    "gini": lambda S=S, N=N: N - (S * S).sum() / N,
                    "entropy": lambda S=S, N=N: -(S * torch.log(S / N)).sum(),
                    "variance": lambda S=S: S[2] - S[1] ** 2 / S[0],
                    "poisson": lambda S=S: S[2] - S[1] * torch.log(S[1] / S[0]),
                    "gamma": lambda S=S: S[0] * torch.log(S[1] / S[0]) - S[2],
                    "newton": lambda S=S: -0.5 * (S[: len(S) // 2] ** 2 / (S[len(S) // 2 :] + 1.0)).sum(),
                }[name]()
            )
        return J

    evaluation = expected_impurity(theta, X, s, topology, Linear(), case.impurity)
    variable = theta.clone().requires_grad_(True)
    J = plain(variable)
    expected = torch.autograd.grad(J, variable, allow_unused=True)[0] if arity != [0] else torch.zeros(0)
    assert isinstance(evaluation.theta_bar, torch.Tensor)
    assert evaluation.theta_bar.dtype == torch.float64
    # Two orders of the same sums.
    assert evaluation.objective == pytest.approx(float(J.detach()), rel=1e-12, abs=1e-12)
    assert evaluation.theta_bar.numpy() == pytest.approx(expected.numpy(), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("family", zoo.SPLITS, ids=str)
def test_torch_and_numpy_agree_on_every_split(family: zoo.SplitCase) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    problem = Problem(zoo.IMPURITIES[0], "weighted classes", family, family.topologies["ragged"])
    tensors = [torch.asarray(array.copy()) for array in (problem.theta, problem.X, problem.s)]
    on_torch = expected_impurity(*tensors, problem.topology, problem.split, problem.case.impurity)
    on_numpy = problem.at(problem.theta)
    assert on_torch.objective == pytest.approx(on_numpy.objective, rel=1e-13)
    assert on_torch.theta_bar.numpy() == pytest.approx(on_numpy.theta_bar, rel=1e-11, abs=1e-13)
