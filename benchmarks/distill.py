"""One tree in place of a forest: fitted to a 300-tree random forest's probabilities, or to labels.

    python -m benchmarks.distill [--data FOLDER] [--only NAME ...] [--seeds 3] [--depth 6]

The forest and the trees see the same rows. "averaged" are probabilities halfway between the forest's and the labels. A
quarter of the rows judges; of data with official test rows only the training rows are used, and of every set at most
8000. (What the forest's trees say out of bag, tried once, was worse in log loss on four of six sets.)
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.recipe import table_of
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from softwood import TreeClassifier

SETS = ("spambase", "magic", "car", "churn", "telco_churn", "satimage")
MOST_ROWS = 8000
LEAST = 1e-3  # a probability of 0 would cost log loss without end


class Said(BaseEstimator):  # type: ignore[misc]
    """A teacher that has said already what it says of some rows."""

    def __init__(self, Q: Any = None, classes: Any = None) -> None:
        self.Q, self.classes = Q, classes
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Said:
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.Q


@dataclass(frozen=True)
class Score:
    """Accuracy in percent and log loss."""

    accuracy: float
    loss: float


def score_of(model: Any, X: np.ndarray, y: np.ndarray) -> Score:
    Q = np.maximum(model.predict_proba(X), LEAST)
    Q /= Q.sum(axis=1, keepdims=True)
    return Score(100 * float(np.mean(model.predict(X) == y)), float(log_loss(y, Q, labels=model.classes_)))


def scores_of(X: np.ndarray, y: np.ndarray, depth: int, seed: int) -> dict[str, Score]:
    """Every way of training on the same rows."""
    X, y = X[(order := np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS])], y[order]
    fit, judge, y_fit, y_judge = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    forest = RandomForestClassifier(300, random_state=seed, n_jobs=1).fit(fit, y_fit)
    Q, labels = forest.predict_proba(fit), (y_fit[:, None] == forest.classes_).astype(float)
    said = {"forest's": Q, "averaged": (Q + labels) / 2}
    found = {"the forest": score_of(forest, judge, y_judge)}
    found["labels"] = score_of(_tree(depth, seed).fit(fit, y_fit), judge, y_judge)
    for name, shares in said.items():
        student = _tree(depth, seed).distill(Said(shares, forest.classes_), fit)
        found[name] = score_of(student, judge, y_judge)
    return found


def _tree(depth: int, seed: int) -> TreeClassifier:
    return TreeClassifier(max_depth=depth, random_state=seed)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distill", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SOFTWOOD_DATA"), help="folder of Parquet files")
    parser.add_argument("--only", nargs="+", default=list(SETS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=6)
    options = parser.parse_args(given)
    if options.data is None:
        parser.error("a folder of Parquet files is needed (--data, SOFTWOOD_DATA).")
    for name in options.only:
        table = table_of(Path(options.data), name)
        runs = [scores_of(table.X, table.y, options.depth, seed) for seed in range(options.seeds)]
        print(f"{name}, depth {options.depth}, mean of {options.seeds}: accuracy, log loss")
        for way in runs[0]:
            accuracy, loss = (np.mean([getattr(run[way], each) for run in runs]) for each in ("accuracy", "loss"))
            print(f"    {way:<14} {accuracy:6.2f} {loss:7.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
