"""Trees of one-column questions trained globally, against CART of the same depth.

    python -m benchmarks.axis --data FOLDER [--depths 3 4 6] [--seeds 3] [--only NAME ...] [--sparse K]

75/25 splits; accuracy or R2 of hard answers on the quarter, in percent; one thread. ``gain`` is the tree of
``split="axis"`` less that of ``training="cart"``; ``times`` is the ratio of their fits, and ``sklearn`` that of the
global fit and scikit-learn's DecisionTree. Medians of seconds, means of the rest, over the seeds. ``--sparse`` is
about slanted questions of at most K columns: which share of the gain of all columns over CART they keep.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from benchmarks.cart import timed
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from softwood import TreeClassifier, TreeRegressor

CLASSES = [
    "satimage",
    "pendigits",
    "letter",
    "optdigits",
    "segment",
    "dry_bean",
    "avila",
    "page_blocks",
    "magic",
    "spambase",
    "banknote",
    "breast_w",
    "sonar",
    "credit_g",
    "balance_scale",
    "car",
]
NUMBERS = ["kin8nm", "cpu_act", "wine_quality_white", "airfoil"]
MOST = 12_000  # rows of a set


@dataclass(frozen=True)
class Result:
    cart: float
    found: float
    seconds: tuple[float, float, float]  # our CART, global, scikit-learn's CART


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows without missing values, names as 0/1 columns, at most MOST of them."""
    import pandas as pd

    table = pd.read_parquet(folder / f"{name}.parquet").drop(columns="split", errors="ignore").dropna()
    table = table.sample(min(len(table), MOST), random_state=0)
    y = table.pop("target").to_numpy()
    return np.ascontiguousarray(pd.get_dummies(table).to_numpy(dtype=float)), y if name in NUMBERS else y.astype(str)


def compare(X: np.ndarray, y: np.ndarray, is_numbers: bool, depth: int, seed: int) -> Result:
    ours, theirs = (TreeRegressor, DecisionTreeRegressor) if is_numbers else (TreeClassifier, DecisionTreeClassifier)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=None if is_numbers else y)
    models = [
        ours(training="cart", max_depth=depth, n_jobs=1),
        ours(split="axis", max_depth=depth, random_state=seed, n_jobs=1),
        theirs(max_depth=depth, random_state=seed),
    ]
    models[0].fit(X, y)  # warm
    seconds = [timed(lambda model=model: model.fit(X, y))[0] for model in models]
    cart, found, _ = (100 * model.score(X_test, y_test) for model in models)
    return Result(cart, found, (seconds[0], seconds[1], seconds[2]))


def line(name: str, depth: int, results: list[Result]) -> tuple[str, list[float]]:
    cart, found = (float(np.mean([getattr(result, key) for result in results])) for key in ("cart", "found"))
    plain, search, sklearn = np.median([result.seconds for result in results], axis=0)
    figures = [cart, found, found - cart, search, search / plain, search / sklearn]
    columns = f"{name:20} {depth:2} {cart:8.2f} {found:8.2f} {found - cart:+7.2f}"
    return f"{columns} {search:9.3f} {search / plain:7.1f} {search / sklearn:7.1f}", figures


def sparse_scores(X: np.ndarray, y: np.ndarray, is_numbers: bool, depth: int, seed: int, most: int) -> list[float]:
    """CART, slanted questions of all columns, of at most ``most``; none searched."""
    tree = TreeRegressor if is_numbers else TreeClassifier
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=None if is_numbers else y)
    models = [
        tree(training="cart", max_depth=depth),
        tree(max_depth=depth, search=False, random_state=seed),
        tree(max_depth=depth, search=False, random_state=seed, max_features_per_split=most),
    ]
    return [100 * model.fit(X, y).score(X_test, y_test) for model in models]


def compare_sparse(folder: Path, names: list[str], depths: list[int], seeds: int, most: int) -> None:
    print(f"{'data':20} {'d':>2} {'cart':>8} {'all':>8} {most:8}")
    for depth in depths:
        rows = []
        for name in names:
            X, y = read(folder, name)
            scores = [sparse_scores(X, y, name in NUMBERS, depth, seed, most) for seed in range(seeds)]
            rows.append(np.mean(scores, axis=0))
            print(f"{name:20} {depth:2} " + " ".join(f"{score:8.2f}" for score in rows[-1]), flush=True)
        cart, dense, sparse = np.mean(rows, axis=0)
        print(f"depth {depth}, {len(rows)} sets: {(sparse - cart) / (dense - cart):.0%} of the gain of all columns\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 6])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[*CLASSES, *NUMBERS])
    parser.add_argument("--sparse", type=int)
    options = parser.parse_args()
    if options.sparse:
        compare_sparse(options.data, options.only, options.depths, options.seeds, options.sparse)
        return
    print(f"{'data':20} {'d':>2} {'cart':>8} {'global':>8} {'gain':>7} {'seconds':>9} {'times':>7} {'sklearn':>7}")
    for depth in options.depths:
        rows = []
        for name in options.only:
            X, y = read(options.data, name)
            results = [compare(X, y, name in NUMBERS, depth, seed) for seed in range(options.seeds)]
            text, figures = line(name, depth, results)
            rows.append(figures)
            print(text, flush=True)
        mean, least = np.mean(rows, axis=0), np.min(rows, axis=0)
        print(
            f"depth {depth}, {len(rows)} sets: mean gain {mean[2]:+.2f}, least {least[2]:+.2f}, "
            f"median times {np.median(rows, axis=0)[4]:.1f} (sklearn {np.median(rows, axis=0)[5]:.1f})\n",
            flush=True,
        )


if __name__ == "__main__":
    main()
