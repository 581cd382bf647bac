"""Trees of depth 2 and their leaves: at most four parts of the plane, cut by lines of any slope."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plane import canvas, draw, draw_numbers, run
from softwood import TreeClassifier


def quarters(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A disc in four quarters, turned by thirty degrees; opposite quarters are of one class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    u, v = np.array([[0.87, 0.5], [-0.5, 0.87]]) @ X.T
    return X, ((u > 0) != (v > 0)).astype(int)


def example(out: Path) -> dict[str, float]:
    """What a tree answers over the plane, and which leaf answers."""
    X, y = quarters(1000, 0)
    tree = TreeClassifier(max_depth=2, random_state=0).fit(X, y)
    figure, (answers, leaves) = canvas(2)
    draw(answers, lambda Z: tree.predict_proba(Z)[:, 1], X, y, f"depth 2, accuracy {tree.score(X, y):.3f}")
    draw_numbers(leaves, tree.apply, X, f"its {tree.get_n_leaves()} leaves")
    figure.savefig(out / "slanted.png", dpi=100)
    return {"accuracy": tree.score(X, y), "leaves": float(tree.get_n_leaves())}


if __name__ == "__main__":
    run(example)
