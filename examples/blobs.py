"""A logistic split learnt by the expected Gini impurity: one slanted question between two blobs, soft and hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from plane import canvas, draw, run
from softwood import TreeClassifier


def example(out: Path) -> dict[str, float]:
    """Fit one question; draw its soft and its hard answers."""
    X, y = make_blobs(400, centers=[[-1.2, -0.8], [1.2, 1.0]], cluster_std=1.0, random_state=0)
    tree = TreeClassifier(max_depth=1, random_state=0).fit(X, y)
    figure, (soft, hard) = canvas(2)
    reached = tree.tree_.topology.leaves
    draw(soft, lambda Z: tree.tree_.reach(Z)[:, reached] @ tree.tree_.values[reached, 1], X, y, "soft: while it learns")
    draw(hard, lambda Z: (tree.predict(Z) == 1).astype(float), X, y, "hard: when it answers")
    figure.savefig(out / "blobs.png", dpi=100)
    first, last = (float(np.mean(part)) for part in (tree.history_[:5], tree.history_[-5:]))
    return {"accuracy": tree.score(X, y), "expected impurity at first": first, "at last": last}


if __name__ == "__main__":
    run(example)
