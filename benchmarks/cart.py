"""CART against scikit-learn's DecisionTreeClassifier: same run, one thread, numeric columns.

    python benchmarks/cart.py [rows]

Prints seconds to fit (ours from the array: canonical rows, bins, growth), their ratio, and test accuracy.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_iris, make_classification
from sklearn.tree import DecisionTreeClassifier

from softwood.impurity import Gini
from softwood.source import ArraySource, canonical_rows
from softwood.targets import class_counts
from softwood.train.base import Run, root
from softwood.train.grow_hard import GrowHard
from softwood.tree import Tree


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def source_of(X: np.ndarray, y: np.ndarray) -> ArraySource:
    order, copies, content, weight = canonical_rows(X, y, np.ones(len(y)))
    return ArraySource(X, order, copies, content, class_counts(y[order], int(y.max()) + 1, weight))


def grow(source: ArraySource, depth: int | None) -> Tree:
    return GrowHard(max_depth=depth).train(root(source, Gini()), source, Gini(), Run(np.random.default_rng(0)))


def accuracy(tree: Tree, X: np.ndarray, y: np.ndarray) -> float:
    return float((tree.values[tree.apply(X)].argmax(axis=1) == y).mean())


def compare(n: int, depth: int) -> str:
    X, y = make_classification(n + 20_000, 50, n_informative=20, random_state=0)
    X_test, y_test, X, y = X[n:], y[n:], np.ascontiguousarray(X[:n]), y[:n]
    prepare, source = timed(lambda: source_of(X, y))
    bins, _ = timed(source.bins)
    growth, tree = timed(lambda: grow(source, depth))
    theirs, oracle = timed(lambda: DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y))
    ours = prepare + bins + growth
    return (
        f"{n} x 50, depth {depth}: softwood {ours:.3f} s (rows {prepare:.3f}, bins {bins:.3f}, growth {growth:.3f}), "
        f"scikit-learn {theirs:.3f} s, ratio {theirs / ours:.1f}, "
        f"accuracy {accuracy(tree, X_test, y_test):.4f} against {oracle.score(X_test, y_test):.4f}"
    )


def tiny(n_calls: int = 300) -> str:
    X, y = load_iris(return_X_y=True)
    source = source_of(np.ascontiguousarray(X), y)
    cached, _ = timed(lambda: [grow(source, 4) for _ in range(n_calls)])
    whole, _ = timed(lambda: [grow(source_of(source.X, y), 4) for _ in range(n_calls)])
    return f"iris, depth 4: {1e6 * cached / n_calls:.0f} us on bins, {1e6 * whole / n_calls:.0f} us from the array"


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for depth in (8, 10):
        print(compare(rows, depth), flush=True)
    print(tiny())
