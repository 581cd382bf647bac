"""A tree that grows while it is refined, beside one of a fixed shape: the expected impurity after each step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from plane import canvas, run
from softwood import TreeClassifier

MEAN_OF = 25  # steps: a batch's objective is noisy


def example(out: Path) -> dict[str, float]:
    """Depth 6 on handwritten digits, both ways."""
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    figure, (axes,) = canvas(1, width=6)
    found = {}
    for name, training in (("fixed shape", "global"), ("grown and pruned", "grow")):
        tree = TreeClassifier(max_depth=6, training=training, search=False, random_state=0).fit(X, y)
        found[name], found[f"{name}, leaves"] = tree.score(X_test, y_test), float(tree.get_n_leaves())
        smooth = np.convolve(tree.history_, np.full(MEAN_OF, 1 / MEAN_OF), mode="valid")
        axes.plot(smooth, label=f"{name}: {tree.get_n_leaves()} leaves, test accuracy {found[name]:.3f}")
    axes.set(xlabel="step", ylabel="expected impurity (gini)", yscale="log", title="digits, depth 6")
    axes.legend(frameon=False)
    figure.savefig(out / "growing.png", dpi=100)
    return found


if __name__ == "__main__":
    run(example)
