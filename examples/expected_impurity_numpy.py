"""A model of one's own, trained by the expected impurity in plain NumPy: p(part | x) is a logistic regression.

Nobody tells it the boundary; it only has to make two parts whose labels are as pure as can be.
"""

from __future__ import annotations

import numpy as np

from softwood.measures import assignment_impurity, expected_impurity, gini


def blobs(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two round clouds."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + np.where(y[:, None] == 1, [1.5, 1.0], [-1.5, -1.0]), y


def probabilities(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(n, 2) of two parts."""
    p = 1 / (1 + np.exp(-(X @ theta[:2] + theta[2])))
    return np.stack([1 - p, p], axis=1)


def descend(X: np.ndarray, y: np.ndarray, n_steps: int = 200, rate: float = 2.0) -> tuple[np.ndarray, list[float]]:
    """Gradient descent from a question that is nearly blind."""
    theta, history = np.array([0.1, -0.1, 0.0]), []
    for _ in range(n_steps):
        P = probabilities(theta, X)
        found = expected_impurity(P, y)
        scores_bar = P[:, 0] * P[:, 1] * (found.gradient[:, 1] - found.gradient[:, 0])
        theta = theta - rate * np.append(X.T @ scores_bar, scores_bar.sum())
        history.append(float(found.value))
    return theta, history


def main() -> None:
    X, y = blobs()
    theta, history = descend(X, y)
    hard = probabilities(theta, X).argmax(axis=1)
    print(f"Gini of all rows {gini(y):.3f}, expected at the start {history[0]:.3f}, at the end {history[-1]:.3f}")
    print(f"Gini of the two hard parts {assignment_impurity(hard, y):.3f}")


if __name__ == "__main__":
    main()
