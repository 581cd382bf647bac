"""A square on its corner: no axis-parallel cut helps at first, and three levels of slanted questions are enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plane import canvas, draw, run
from softwood import TreeClassifier

SETTINGS = {"CART": {"training": "cart"}, "global": {"training": "global"}}


def points(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points of a square, half of them inside the rotated one."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, (np.abs(X).sum(axis=1) < 1).astype(int)


def example(out: Path) -> dict[str, float]:
    """Trees of depth 3 on 2,000 points, judged by 2,000 others."""
    (X, y), (X_test, y_test) = points(2000, 1), points(2000, 2)
    figure, axes = canvas(len(SETTINGS))
    found = {}
    for picture, (name, settings) in zip(axes, SETTINGS.items(), strict=True):
        tree = TreeClassifier(max_depth=3, random_state=0, **settings).fit(X, y)
        found[name] = tree.score(X_test, y_test)
        draw(picture, lambda Z, tree=tree: tree.predict_proba(Z)[:, 1], X, y, f"{name}, depth 3: {found[name]:.3f}")
    figure.savefig(out / "diamond.png", dpi=100)
    return found


if __name__ == "__main__":
    run(example)
