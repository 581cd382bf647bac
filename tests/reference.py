"""The executable definition: what the library computes, slow and obvious.

Plain floats, lists, loops and recursion; a row is a list of numbers. Only the reading of a Tree touches an object of
the library. Nothing here is clever, and nothing here may be made clever: it is what everything else is held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Row = Sequence[float]
Matrix = Sequence[Row]


# Impurities: phi, its slope, the value of a leaf, and the loss of one statistic under a value.


def shares(S: Row) -> list[float]:
    N = sum(S)
    return [S_k / N if N > 0 else 0.0 for S_k in S]


def gini_phi(S: Row) -> float:
    N = sum(S)
    return N - sum(S_k * S_k for S_k in S) / N if N > 0 else 0.0


def gini_slope(S: Row) -> list[float]:
    q = shares(S)
    return [1 - 2 * q_k + sum(q_j * q_j for q_j in q) for q_k in q]


def brier_loss(s: Row, value: Row) -> float:
    """Weight s_k on the answer 'class k', each answer costing its squared distance from the value."""
    total = 0.0
    for k in range(len(s)):
        for j in range(len(s)):
            total += s[k] * ((1.0 if j == k else 0.0) - value[j]) ** 2
    return total


def entropy_phi(S: Row) -> float:
    return sum(-S_k * math.log(q_k) for S_k, q_k in zip(S, shares(S), strict=True) if S_k > 0)


def entropy_slope(S: Row) -> list[float]:
    """Infinite for an absent class in truth; the library stops at a share of 1e-12."""
    return [-math.log(max(q_k, 1e-12)) for q_k in shares(S)]


def log_loss(s: Row, value: Row) -> float:
    return sum(-s_k * math.log(max(v_k, 1e-12)) for s_k, v_k in zip(s, value, strict=True) if s_k > 0)


def variance_phi(S: Row) -> float:
    return S[2] - S[1] * S[1] / S[0] if S[0] > 0 else 0.0


def variance_slope(S: Row) -> list[float]:
    (mu,) = mean_value(S)
    return [mu * mu, -2 * mu, 1.0]


def mean_value(S: Row) -> list[float]:
    return [S[1] / S[0] if S[0] > 0 else 0.0]


def squared_error(s: Row, value: Row) -> float:
    """w (y - v)^2 from s = (w, w y, w y^2)."""
    return s[2] - 2 * value[0] * s[1] + value[0] * value[0] * s[0]


def newton_phi(S: Row, reg_lambda: float) -> float:
    half = len(S) // 2
    return sum(-0.5 * S[k] * S[k] / (S[half + k] + reg_lambda) for k in range(half) if S[half + k] + reg_lambda > 0)


def newton_slope(S: Row, reg_lambda: float) -> list[float]:
    value = newton_value(S, reg_lambda)
    return value + [0.5 * u * u for u in value]


def newton_value(S: Row, reg_lambda: float) -> list[float]:
    half = len(S) // 2
    denominators = [S[half + k] + reg_lambda for k in range(half)]
    return [-S[k] / denominators[k] if denominators[k] > 0 else 0.0 for k in range(half)]


def second_order_loss(s: Row, value: Row) -> float:
    """g u + h u^2 / 2, summed over outputs."""
    half = len(s) // 2
    return sum(s[k] * value[k] + 0.5 * s[half + k] * value[k] ** 2 for k in range(half))


def positive_mean(S: Row) -> list[float]:
    """S_y / S_w; an empty node answers 1, the mean of all rows in the units deviances are measured in."""
    return [S[1] / S[0] if S[0] > 0 else 1.0]


def poisson_phi(S: Row) -> float:
    (mu,) = positive_mean(S)
    return S[2] - S[1] * math.log(max(mu, 1e-12))


def poisson_slope(S: Row) -> list[float]:
    """Infinite where all counts are 0 in truth; the library stops at a mean of 1e-12."""
    (mu,) = positive_mean(S)
    return [mu, -1 - math.log(max(mu, 1e-12)), 1.0]


def poisson_loss(s: Row, value: Row) -> float:
    """w (y log(y / v) - y + v) from s = (w, w y, w y log y)."""
    return s[2] - s[1] * math.log(max(value[0], 1e-12)) - s[1] + s[0] * value[0]


def gamma_phi(S: Row) -> float:
    (mu,) = positive_mean(S)
    return S[0] * math.log(mu) - S[2]


def gamma_slope(S: Row) -> list[float]:
    (mu,) = positive_mean(S)
    return [math.log(mu) - 1, 1 / mu, -1.0]


def gamma_loss(s: Row, value: Row) -> float:
    """w (y / v - log(y / v) - 1) from s = (w, w y, w log y)."""
    return s[1] / value[0] - s[2] + s[0] * math.log(value[0]) - s[0]


# The shape of a tree, from the number of children of each node, nodes numbered level by level.


def children(arity: Sequence[int], node: int) -> list[int]:
    first = 1 + sum(arity[:node])
    return list(range(first, first + arity[node]))


def path_to(arity: Sequence[int], node: int, start: int = 0) -> list[int]:
    """The nodes from ``start`` down to ``node``, both included; empty if it is not below."""
    if start == node:
        return [node]
    for child in children(arity, start):
        rest = path_to(arity, node, child)
        if rest:
            return [start, *rest]
    return []


def leaves_of(arity: Sequence[int]) -> list[int]:
    return [node for node in range(len(arity)) if arity[node] == 0]


def is_breadth_first_tree(arity: Sequence[int]) -> bool:
    """Whether a list of arities describes one tree: build it level by level and see whether the list is used up."""
    if any(count < 0 or count == 1 for count in arity):
        return False
    remaining, level = list(arity), 1
    while level > 0:
        if len(remaining) < level:
            return False
        here, remaining = remaining[:level], remaining[level:]
        level = sum(here)
    return not remaining


# Scores of one row to the probability of each child, and its derivative.


def linear_scores(theta: Row, x: Row) -> list[float]:
    width = len(x) + 1
    scores = []
    for start in range(0, len(theta), width):
        w, b = theta[start : start + len(x)], theta[start + len(x)]
        scores.append(sum(w_j * x_j for w_j, x_j in zip(w, x, strict=True)) + b)
    return scores


def linear_scores_gradient(theta: Row, x: Row) -> list[list[float]]:
    """One list per score: its derivative with respect to each parameter."""
    width, rows = len(x) + 1, []
    for start in range(0, len(theta), width):
        row = [0.0] * len(theta)
        row[start : start + width] = [*x, 1.0]
        rows.append(row)
    return rows


def axis_scores(theta: Row, x: Row, features: Sequence[int]) -> list[float]:
    return [abs(theta[2 * k]) * (x[j] - theta[2 * k + 1]) for k, j in enumerate(features)]


def axis_scores_gradient(theta: Row, x: Row, features: Sequence[int]) -> list[list[float]]:
    rows = []
    for k, j in enumerate(features):
        row = [0.0] * len(theta)
        row[2 * k] = math.copysign(1.0, theta[2 * k]) * (x[j] - theta[2 * k + 1])
        row[2 * k + 1] = -abs(theta[2 * k])
        rows.append(row)
    return rows


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def softmax(scores: Row) -> list[float]:
    top = max(scores)
    powers = [math.exp(z - top) for z in scores]
    return [power / sum(powers) for power in powers]


def child_probabilities(scores: Row) -> list[float]:
    """One score: a sigmoid, for the second of two children. More: a softmax."""
    if len(scores) == 1:
        right = sigmoid(scores[0])
        return [sigmoid(-scores[0]), right]
    return softmax(scores)


def child_probabilities_gradient(scores: Row) -> list[list[float]]:
    """One list per child: its derivative with respect to each score."""
    P = child_probabilities(scores)
    if len(scores) == 1:
        return [[-P[0] * P[1]], [P[0] * P[1]]]
    return [[P_c * ((1.0 if c == k else 0.0) - P[k]) for k in range(len(P))] for c, P_c in enumerate(P)]


def scores_at(arity: Sequence[int], Z_row: Row) -> dict[int, list[int]]:
    """Which scores belong to each internal node."""
    where, start = {}, 0
    for node, count in enumerate(arity):
        if count:
            width = 1 if count == 2 else count
            where[node] = list(range(start, start + width))
            start += width
    assert start == len(Z_row)
    return where


# Soft trees.


def edge_probabilities(arity: Sequence[int], Z_row: Row) -> list[float]:
    """Probability of each node at its parent; 1 for the root."""
    P = [1.0] * len(arity)
    for node, where in scores_at(arity, Z_row).items():
        for child, P_c in zip(children(arity, node), child_probabilities([Z_row[k] for k in where]), strict=True):
            P[child] = P_c
    return P


def reach_of_row(arity: Sequence[int], Z_row: Row) -> list[float]:
    """Probability that the row reaches each node."""
    P, reach = edge_probabilities(arity, Z_row), [0.0] * len(arity)

    def visit(node: int, probability: float) -> None:
        reach[node] = probability
        for child in children(arity, node):
            visit(child, probability * P[child])

    visit(0, 1.0)
    return reach


def expected_statistics(arity: Sequence[int], Z: Matrix, s: Matrix) -> list[list[float]]:
    S = [[0.0] * len(s[0]) for _ in arity]
    for Z_row, s_row in zip(Z, s, strict=True):
        for node, probability in enumerate(reach_of_row(arity, Z_row)):
            for k, s_k in enumerate(s_row):
                S[node][k] += probability * s_k
    return S


def objective(arity: Sequence[int], Z: Matrix, s: Matrix, phi: Callable[[Row], float]) -> float:
    S = expected_statistics(arity, Z, s)
    return sum(phi(S[leaf]) for leaf in leaves_of(arity))


def objective_gradient(
    arity: Sequence[int],
    Z: Matrix,
    Z_gradient: Sequence[Matrix],  # of each row, of each score: the derivative with respect to each parameter
    s: Matrix,
    slope: Callable[[Row], Row],
) -> list[float]:
    """dJ/dtheta by the product rule: every leaf, every row, every edge of the path with the others held."""
    S = expected_statistics(arity, Z, s)
    q = len(Z_gradient[0][0]) if Z_gradient[0] else 0
    gradient = [0.0] * q
    for leaf in leaves_of(arity):
        slope_of_leaf, path = slope(S[leaf]), path_to(arity, leaf)
        for Z_row, dZ_row, s_row in zip(Z, Z_gradient, s, strict=True):
            cost = sum(a * b for a, b in zip(slope_of_leaf, s_row, strict=True))
            P, where = edge_probabilities(arity, Z_row), scores_at(arity, Z_row)
            for parent, child in zip(path[:-1], path[1:], strict=True):
                others = math.prod(P[node] for node in path[1:] if node != child)
                which = children(arity, parent).index(child)
                dP = child_probabilities_gradient([Z_row[k] for k in where[parent]])[which]
                for dP_dz, k in zip(dP, where[parent], strict=True):
                    for parameter in range(q):
                        gradient[parameter] += cost * others * dP_dz * dZ_row[k][parameter]
    return gradient


def path_gradient(
    arity: Sequence[int],
    Z_row: Row,
    Z_gradient_row: Matrix,  # of each score: the derivative with respect to each parameter
    s_row: Row,
    slope: Sequence[Row],  # of each node, held fixed
    leaf: int,
) -> list[float]:
    """cost(leaf) * grad log p(leaf | x) of one row, nothing taken off."""
    cost = sum(a * b for a, b in zip(slope[leaf], s_row, strict=True))
    P, where, path = edge_probabilities(arity, Z_row), scores_at(arity, Z_row), path_to(arity, leaf)
    gradient = [0.0] * len(Z_gradient_row[0])
    for parent, child in zip(path[:-1], path[1:], strict=True):
        which = children(arity, parent).index(child)
        dP = child_probabilities_gradient([Z_row[k] for k in where[parent]])[which]
        for dP_dz, k in zip(dP, where[parent], strict=True):
            for parameter, dz in enumerate(Z_gradient_row[k]):
                gradient[parameter] += cost * dP_dz / P[child] * dz
    return gradient


# Hard trees.


def answer(table: object, k: int, x: Row) -> int:
    """Which child question k of a table sends the row to."""
    kind = table.kind  # type: ignore[attr-defined]
    if kind == "threshold":
        return 1 if x[int(table.feature[k])] > float(table.threshold[k]) else 0  # type: ignore[attr-defined]
    if kind == "linear":
        weights, bias = table.weights[k], table.bias[k]  # type: ignore[attr-defined]
        return 1 if sum(float(w) * x_j for w, x_j in zip(weights, x, strict=True)) + float(bias) > 0 else 0
    raise NotImplementedError(f"reference.answer does not know questions of kind {kind!r}; write down what they mean.")


def path_of_row(tree: object, x: Row) -> list[int]:
    """The nodes a row passes from the root to its leaf."""
    arity = [int(count) for count in tree.topology.arity]  # type: ignore[attr-defined]

    def visit(node: int) -> list[int]:
        if arity[node] == 0:
            return [node]
        table = tree.tables[tree.table[node]]  # type: ignore[attr-defined]
        return [node, *visit(children(arity, node)[answer(table, int(tree.row[node]), x)])]  # type: ignore[attr-defined]

    return visit(0)


def leaf_of_row(tree: object, x: Row) -> int:
    return path_of_row(tree, x)[-1]


def node_statistics(tree: object, X: Matrix, s: Matrix) -> list[list[float]]:
    """Sums of s over the rows that pass each node."""
    S = [[0.0] * len(s[0]) for _ in tree.topology.arity]  # type: ignore[attr-defined]
    for x, s_row in zip(X, s, strict=True):
        for node in path_of_row(tree, x):
            for k, s_k in enumerate(s_row):
                S[node][k] += s_k
    return S


def best_cut(
    X: Matrix,
    s: Matrix,
    phi: Callable[[Row], float],
    may_cut: Callable[[Row, Row, int, int], bool] = lambda S_left, S_right, n_left, n_right: True,
) -> tuple[float, int, float] | None:
    """(gain, feature, threshold) of the best question x[feature] > threshold: all midpoints are tried.

    Of equal gains the first is kept: lowest feature, then lowest threshold. None where nothing can be cut.
    """

    def total(rows: list[int]) -> list[float]:
        return [sum(s[i][k] for i in rows) for k in range(len(s[0]))]

    best = None
    for feature in range(len(X[0])):
        values = sorted({x[feature] for x in X})
        for low, high in zip(values[:-1], values[1:], strict=True):
            threshold = low + (high - low) / 2
            left = [i for i, x in enumerate(X) if not x[feature] > threshold]
            right = [i for i, x in enumerate(X) if x[feature] > threshold]
            S_left, S_right = total(left), total(right)
            if not may_cut(S_left, S_right, len(left), len(right)):
                continue
            gain = phi(total(list(range(len(X))))) - phi(S_left) - phi(S_right)
            if best is None or gain > best[0]:
                best = (gain, feature, threshold)
    return best
