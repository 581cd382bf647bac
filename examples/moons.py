"""Two moons by trees of one depth: CART, one slanted question after another, and all questions at once."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import make_moons

from plane import canvas, draw, run
from softwood import TreeClassifier


def example(out: Path) -> dict[str, float]:
    """Trees of depth 3 on 1,000 points, judged by 4,000 others."""
    X, y = make_moons(1000, noise=0.2, random_state=0)
    X_test, y_test = make_moons(4000, noise=0.2, random_state=1)
    figure, axes = canvas(3)
    found = {}
    for picture, training in zip(axes, ("cart", "greedy", "global"), strict=True):
        tree = TreeClassifier(max_depth=3, training=training, random_state=0).fit(X, y)
        found[training] = tree.score(X_test, y_test)
        title = f"{training}, {tree.get_n_leaves()} leaves: {found[training]:.3f}"
        draw(picture, lambda Z, tree=tree: tree.predict_proba(Z)[:, 1], X, y, title)
    figure.savefig(out / "moons.png", dpi=100)
    return found


if __name__ == "__main__":
    run(example)
