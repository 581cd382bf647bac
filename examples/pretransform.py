"""Questions that bend: sums of a few tanh directions part two moons in two levels, where lines need more."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import make_moons

from plane import canvas, draw, run
from softwood import TreeClassifier
from softwood.split import Pretransform

TREES = {
    "lines": {"search": False},
    "4 tanh rows": {"split": Pretransform(n_rows=4)},
    "6 tanh rows": {"split": Pretransform(n_rows=6)},
    "4 rows, one question after another": {"split": Pretransform(n_rows=4), "training": "greedy"},
}


def example(out: Path) -> dict[str, float]:
    """Trees of depth 2 on 2,000 points, judged by 2,000 others; the greedy one does not end early either."""
    X, y = make_moons(2000, noise=0.2, random_state=0)
    X_test, y_test = make_moons(2000, noise=0.2, random_state=1)
    figure, axes = canvas(len(TREES), width=3.4)
    found = {}
    for picture, (name, settings) in zip(axes, TREES.items(), strict=True):
        tree = TreeClassifier(max_depth=2, random_state=0, **settings).fit(X, y)
        found[name] = tree.score(X_test, y_test)
        title = f"{name}\n{tree.get_n_leaves()} leaves: {found[name]:.3f}"
        draw(picture, lambda Z, tree=tree: tree.predict_proba(Z)[:, 1], X, y, title)
    figure.savefig(out / "pretransform.png", dpi=100)
    return found


if __name__ == "__main__":
    run(example)
