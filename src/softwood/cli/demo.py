"""The demonstration: CART and a softwood tree of the same depth on data that comes with scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split

from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.export.text import tree_text

DATA: dict[str, Callable[[], Any]] = {
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
    "wine": load_wine,
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    estimator: Any
    score: float
    seconds: float

    def line(self) -> str:
        tree = self.estimator.tree_
        questions = tree.n_nodes - tree.n_leaves
        return (
            f"{self.name:<10}{self.score:>10.3f}{tree.depth:>7}{questions:>11}{tree.n_leaves:>8}{self.seconds:>10.3f}"
        )


def demo(data: str, max_depth: int, seed: int, threads: int | None, say: Callable[[str], None]) -> None:
    """Fit both trees, and print their table and the softwood tree."""
    bunch = DATA[data]()
    names = getattr(bunch, "target_names", None)
    split = train_test_split(bunch.data, bunch.target, test_size=0.25, random_state=seed, stratify=_strata(bunch))
    kind: Any = TreeRegressor if names is None else TreeClassifier
    settings = {"max_depth": max_depth, "random_state": seed, "n_jobs": threads}
    say(f"{data}: {len(split[0])} rows to learn from, {len(split[1])} to test on, {bunch.data.shape[1]} columns")
    rows = [
        _measured("CART", kind(**settings, training="cart"), split),
        _measured("softwood", kind(**settings), split),
    ]
    score = "R2" if names is None else "accuracy"
    print(f"{'tree':<10}{score:>10}{'depth':>7}{'questions':>11}{'leaves':>8}{'seconds':>10}")
    for row in rows:
        print(row.line())
    print(f"\nThe softwood tree ({score} is on the rows it never saw):\n")
    spreads = np.asarray(split[0]).std(axis=0)
    text = tree_text(
        rows[-1].estimator.tree_, feature_names=bunch.feature_names, class_names=names, spreads=spreads, max_terms=3
    )
    print(text, end="")


def _strata(bunch: Any) -> Any:
    return bunch.target if "target_names" in bunch else None


def _measured(name: str, estimator: Any, split: list[Any]) -> Row:
    X, X_test, y, y_test = split
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    return Row(name, estimator, estimator.score(X_test, y_test), seconds)
