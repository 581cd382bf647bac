"""Every figure a single tree must show, each beside its target.

    python -m benchmarks.single_tree [--data FOLDER] [--only NAME ...] [--quick] [--csv FILE]

The folder (or the environment variable SOFTWOOD_DATA) holds one Parquet file per data set: features, then ``split``
where the data's authors fixed one, then ``target``. Without it the benchmark runs on what scikit-learn ships. Settings
are the defaults except max_depth; answers are hard. ``--only`` takes names of data sets and of parts.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from benchmarks.cart import timed
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import softwood
from softwood import TreeClassifier, TreeRegressor

THREADS = 2
NAN = math.nan
SHIPPED: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}


@dataclass(frozen=True)
class Goal:
    """One line of the accuracy table."""

    data: str
    depth: int
    measure: str = "accuracy"  # or R2, RMSE
    target: float = NAN
    test: float | None = 0.2  # the share of test rows; None: the split that comes with the data
    one_hot: bool = False  # numbers are names here


GOALS = (
    Goal("satimage", 6, target=0.890, test=None),
    Goal("pendigits", 8, target=0.975, test=None),
    Goal("segment", 8, target=0.965),
    Goal("segment", 8, test=None),
    Goal("letter", 10, target=0.942, test=None),
    Goal("dry_bean", 4, target=0.920),
    Goal("optdigits", 4, target=0.932, test=None),
    Goal("kin8nm", 6, "R2", 0.815, test=0.25),
    Goal("cpu_act", 6, "RMSE", 2.62, test=0.25),
)
SMALL = tuple(
    Goal(name, depth, test=0.25, one_hot=name == "balance_scale")
    for name in ("credit_g", "blood_transfusion", "breast_w", "sonar", "balance_scale")
    for depth in (4, 6)
)
SHIPPED_GOALS = (
    *(Goal(name, depth, test=0.25) for name in ("iris", "wine", "breast_cancer", "digits") for depth in (4, 6)),
    *(Goal("diabetes", depth, "R2", test=0.25) for depth in (4, 6)),
)
BELOW_CART = 0.005  # what a small data set may lose
ABOVE_CART = 0.02  # what the small data sets must gain on the mean
FIT_TIMES = (("satimage", 6, 0.6), ("pendigits", 8, 1.5), ("letter", 10, 4.0))  # of a random forest's
SMALL_FITS = ((False, 0.1), ("auto", 0.5))  # search, seconds


@dataclass(frozen=True)
class Figure:
    """One line of the output: a value, what stands beside it, and what it must be."""

    part: str
    name: str
    measure: str
    value: float
    spread: float = NAN
    beside: float = NAN  # the same of scikit-learn
    target: float = NAN
    at_most: bool = False
    seeds: str = ""
    threads: int = THREADS
    seconds: float = NAN  # of one fit

    @property
    def verdict(self) -> str:
        if math.isnan(self.target):
            return "-"
        return "ok" if (self.value <= self.target if self.at_most else self.value >= self.target) else "SHORT"


@dataclass(frozen=True)
class Plan:
    """What to run and how long."""

    folder: Path | None
    only: tuple[str, ...]
    quick: bool

    def wants(self, part: str, name: str) -> bool:
        return not self.only or part in self.only or name in self.only

    def seeds(self, count: int) -> range:
        return range(1 if self.quick else count)

    def repeats(self, count: int) -> int:
        return 1 if self.quick else count


# Data.


@dataclass(frozen=True, eq=False)
class Table:
    X: np.ndarray  # (n, p) float64
    y: np.ndarray  # (n,)
    is_test: np.ndarray | None  # (n,) by the data's own authors


def read_shipped(name: str) -> Table:
    X, y = SHIPPED[name](return_X_y=True)
    return Table(np.ascontiguousarray(X, dtype=np.float64), y, None)


def read_table(folder: Path | None, name: str, one_hot: bool = False) -> Table:
    """Rows with missing values dropped, categories (with ``one_hot`` every column) as a column of 0 and 1 each."""
    if name in SHIPPED:
        return read_shipped(name)
    import pandas as pd

    assert folder is not None
    frame = pd.read_parquet(folder / f"{name}.parquet").dropna()
    y = frame.pop("target").to_numpy()
    is_test = (frame.pop("split") == "test").to_numpy() if "split" in frame else None
    numeric = [] if one_hot else frame.select_dtypes("number").columns
    named = [column for column in frame if column not in numeric]
    frame = pd.get_dummies(frame.astype(dict.fromkeys(named, "category")), columns=named)
    y = y.astype(np.float64) if np.issubdtype(y.dtype, np.floating) else np.asarray(y.tolist())
    return Table(np.ascontiguousarray(frame.to_numpy(dtype=np.float64)), y, is_test)


def parts_of(table: Table, test: float | None, seed: int, is_classes: bool) -> tuple[np.ndarray, ...]:
    """X to fit, X to test, y to fit, y to test."""
    if test is None:
        assert table.is_test is not None
        fit = ~table.is_test
        return table.X[fit], table.X[~fit], table.y[fit], table.y[~fit]
    stratify = table.y if is_classes else None
    return tuple(train_test_split(table.X, table.y, test_size=test, random_state=seed, stratify=stratify))


# Accuracy.


def score(model: Any, X: np.ndarray, y: np.ndarray, measure: str) -> float:
    answers = model.predict(X)
    if measure == "accuracy":
        return float((answers == y).mean())
    error = float(np.mean((answers - y) ** 2))
    return math.sqrt(error) if measure == "RMSE" else 1 - error / float(np.var(y))


def models_of(goal: Goal, seed: int) -> tuple[Any, Any]:
    """Ours and scikit-learn's tree of the same depth."""
    settings = {"max_depth": goal.depth, "random_state": seed}
    if goal.measure == "accuracy":
        return TreeClassifier(n_jobs=THREADS, **settings), DecisionTreeClassifier(**settings)
    return TreeRegressor(n_jobs=THREADS, **settings), DecisionTreeRegressor(**settings)


def scores(goal: Goal, plan: Plan, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(seeds,) scores of ours, of CART, and the seconds of one fit."""
    table = read_table(plan.folder, goal.data, goal.one_hot)
    ours, theirs, seconds = [], [], []
    for seed in plan.seeds(count):
        tree, cart = models_of(goal, seed)
        X, X_test, y, y_test = parts_of(table, goal.test, seed, is_classifier(tree))
        seconds.append(timed(partial(tree.fit, X, y))[0])
        ours.append(score(tree, X_test, y_test, goal.measure))
        theirs.append(score(cart.fit(X, y), X_test, y_test, goal.measure))
    return np.array(ours), np.array(theirs), float(np.mean(seconds))


def title(goal: Goal) -> str:
    split = "official split" if goal.test is None else f"{100 * (1 - goal.test):.0f}/{100 * goal.test:.0f}"
    return f"{goal.data}{' one-hot' * goal.one_hot} d{goal.depth}, {split}"


def compared(part: str, goal: Goal, plan: Plan, count: int, below: float | None = None) -> Figure:
    """The mean over the seeds; ``below`` says how far under CART it may be, where that is the target."""
    ours, theirs, seconds = scores(goal, plan, count)
    target = goal.target if below is None else theirs.mean() - below
    return Figure(
        part, title(goal), goal.measure, ours.mean(), ours.std(), theirs.mean(), target,
        at_most=goal.measure == "RMSE", seeds=f"0..{len(ours) - 1}", seconds=seconds,
    )  # fmt: skip


def accuracy(plan: Plan) -> Iterator[Figure]:
    for goal in GOALS if plan.folder else SHIPPED_GOALS:
        if plan.wants("accuracy", goal.data):
            yield compared("accuracy", goal, plan, 3, None if plan.folder else BELOW_CART)


def small(plan: Plan) -> Iterator[Figure]:
    """CART minus half a point each, and two points above it on the mean."""
    found = []
    for goal in SMALL if plan.folder else ():
        if plan.wants("small", goal.data):
            found.append(compared("small", goal, plan, 5, BELOW_CART))
            yield found[-1]
    if found:
        ours, theirs = (float(np.mean([getattr(each, side) for each in found])) for side in ("value", "beside"))
        yield Figure(
            "small", f"mean of the {len(found)} above", "accuracy", ours, beside=theirs,
            target=theirs + ABOVE_CART, seeds=found[0].seeds,
        )  # fmt: skip


# Time.


def alternating(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """(repeats,) seconds of each, taking turns, so that both meet the same machine."""
    pairs = [(timed(ours)[0], timed(theirs)[0]) for _ in range(repeats)]
    return np.array(pairs).T  # type: ignore[return-value]


def spread(values: np.ndarray) -> float:
    """Half the distance between the quartiles."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 2


def fit_time(plan: Plan) -> Iterator[Figure]:
    """Without the internal search, against a random forest of a hundred trees."""
    for name, depth, most in FIT_TIMES if plan.folder else ():
        if plan.wants("time", name):
            X, _, y, _ = parts_of(read_table(plan.folder, name), None, 0, True)
            tree = TreeClassifier(max_depth=depth, search=False, n_jobs=THREADS, random_state=0)
            forest = RandomForestClassifier(100, n_jobs=THREADS, random_state=0)
            ours, theirs = alternating(partial(tree.fit, X, y), partial(forest.fit, X, y), plan.repeats(5))
            yield Figure(
                "time", f"{name} d{depth}, n_jobs=2", "of a random forest's", float(np.median(ours / theirs)),
                spread(ours / theirs), target=most, at_most=True, seeds="0", seconds=float(np.median(ours)),
            )  # fmt: skip


def small_fit_time(plan: Plan) -> Iterator[Figure]:
    for name in ("iris", "wine"):
        for search, most in SMALL_FITS:
            if plan.wants("time", name):
                table = read_table(None, name)
                tree = TreeClassifier(search=search, random_state=0).fit(table.X, table.y)
                seconds = np.array([timed(partial(tree.fit, table.X, table.y))[0] for _ in range(plan.repeats(7))])
                yield Figure(
                    "time", f"{name} d6, search={search}", "seconds", float(np.median(seconds)), spread(seconds),
                    target=most, at_most=True, seeds="0", threads=1, seconds=float(np.median(seconds)),
                )  # fmt: skip


def cart(plan: Plan) -> Iterator[Figure]:
    """training="cart" on 100 000 x 50 numbers at depth 8."""
    if not plan.wants("cart", "cart"):
        return
    X, y = make_classification(120_000, 50, n_informative=20, random_state=0)
    X, X_test, y, y_test = np.ascontiguousarray(X[:100_000]), X[100_000:], y[:100_000], y[100_000:]
    tree = TreeClassifier(max_depth=8, training="cart", n_jobs=1, random_state=0)
    oracle = DecisionTreeClassifier(max_depth=8, random_state=0)
    ours, theirs = alternating(partial(tree.fit, X, y), partial(oracle.fit, X, y), plan.repeats(3))
    shared: dict[str, Any] = {"seeds": "0", "threads": 1, "seconds": float(np.median(ours))}
    ratio, name = theirs / ours, "cart 100000 x 50 d8"
    yield Figure("cart", name, "times as fast", float(np.median(ratio)), spread(ratio), target=2.0, **shared)
    value, beside = (score(each, X_test, y_test, "accuracy") for each in (tree, oracle))
    yield Figure("cart", name, "accuracy", value, beside=beside, target=beside - 0.003, **shared)


def predict(plan: Plan) -> Iterator[Figure]:
    """Rows per second of a linear tree of depth 6, over those of scikit-learn's tree of depth 6."""
    n, n_fit = 100_000, 10_000
    for p in (10, 36, 100):
        if not plan.wants("predict", "predict"):
            return
        X, y = make_classification(n, p, n_informative=10, n_redundant=0, n_classes=8, random_state=0)
        tree = TreeClassifier(max_depth=6, search=False, n_jobs=1, random_state=0).fit(X[:n_fit], y[:n_fit])
        oracle = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X[:n_fit], y[:n_fit])
        assert tree.get_depth() == oracle.get_depth() == 6
        for dtype in (np.float32, np.float64):
            rows = np.ascontiguousarray(X, dtype=dtype)
            pair = alternating(partial(tree.predict, rows), partial(oracle.predict, rows), 15)
            ours, theirs = (n / seconds / 1e6 for seconds in pair)
            yield Figure(
                "predict", f"{n} x {p} {np.dtype(dtype).name}", "million rows/s", float(np.median(ours)),
                spread(ours), float(np.median(theirs)), float(np.median(ours) / np.median(ours / theirs)),
                seeds="0", threads=1,
            )  # fmt: skip


# Memory.

MODELS: dict[str, Callable[..., Any]] = {"classifier": TreeClassifier, "regressor": TreeRegressor}
HOLD = "hold"  # the process that only holds the data


def held(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Float32 rows and a target with noise, made without a temporary of their size."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=np.float32)
    rng.standard_normal(out=X, dtype=np.float32)
    return X, X[:, 0] + np.abs(X[:, 1]) + rng.standard_normal(n, dtype=np.float32)


def peak_bytes() -> int:
    """The most memory this process ever held."""
    try:  # a process made by another may inherit that one's ru_maxrss
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory_child(kind: str, settings: dict[str, Any], n: int, p: int) -> None:
    """Hold the data, fit where asked to, and print the peak and the seconds."""
    X, y = held(n, p)
    target = (y > 0.8).astype(np.int64) if kind == "classifier" else y.astype(np.float64)
    seconds = 0.0
    if settings.pop("fits"):
        seconds, _ = timed(lambda: MODELS[kind](n_jobs=THREADS, random_state=0, **settings).fit(X, target))
    print(peak_bytes(), seconds)


def peak_of(kind: str, settings: dict[str, Any], n: int, p: int) -> tuple[float, float]:
    """Peak bytes and seconds of a fit in a process of its own."""
    call = f"from benchmarks.single_tree import memory_child; memory_child({kind!r}, {settings!r}, {n}, {p})"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the fit measured for its memory failed:\n{done.stderr}")
    peak, seconds = done.stdout.split()
    return float(peak), float(seconds)


def memory(plan: Plan) -> Iterator[Figure]:
    """Default fits on 1 000 000 x 50 float32: the peak beyond the data, over the data."""
    n, p = (100_000 if plan.quick else 1_000_000), 50
    fits = ({"training": "global"}, {"training": "global", "search": False}, {"training": "cart"})
    for kind in MODELS if plan.wants("memory", "memory") else ():
        base, _ = peak_of(kind, {"fits": False}, n, p)
        for settings in fits:
            peak, seconds = peak_of(kind, settings | {"fits": True}, n, p)
            label = ", ".join(f"{key}={value}" for key, value in settings.items())
            yield Figure(
                "memory", f"{kind} {n} x {p}, {label}", "of the data", (peak - base) / (4.0 * n * p),
                target=2.0, at_most=True, seeds="0", seconds=seconds,
            )  # fmt: skip


# Output.

PARTS = (memory, cart, predict, small_fit_time, fit_time, accuracy, small)
COLUMNS = "{:<9} {:<58} {:<21} {:>9} {:>8} {:>9} {:>9} {:>6} {:>8}"


def shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}" if abs(value) >= 10 else f"{value:.4f}"


def line(figure: Figure) -> str:
    sign = "<= " if figure.at_most else ">= "
    target = "" if math.isnan(figure.target) else sign + shown(figure.target)
    return COLUMNS.format(
        figure.part, figure.name, figure.measure, shown(figure.value), shown(figure.spread), shown(figure.beside),
        target, figure.verdict, shown(figure.seconds),
    )  # fmt: skip


def versions() -> dict[str, str]:
    return {
        "softwood": softwood.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def write_csv(file: Path, figures: Sequence[Figure]) -> None:
    names = [field.name for field in fields(Figure)]
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, [*names, "verdict", *versions()])
        writer.writeheader()
        for figure in figures:
            writer.writerow(asdict(figure) | {"verdict": figure.verdict} | versions())


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single_tree", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SOFTWOOD_DATA"), help="folder of Parquet files")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="data sets or parts: accuracy, small, "
                        "time, cart, predict, memory")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="one seed, one repeat, a tenth of the rows for memory")
    parser.add_argument("--csv", type=Path, help="also write the rows to this file")
    return parser.parse_args(given)


def run(plan: Plan) -> Iterable[Figure]:
    for part in PARTS:
        yield from part(plan)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    folder = None if options.data is None else Path(options.data)
    if folder is None:
        print("No data folder (--data, SOFTWOOD_DATA): only what scikit-learn ships is measured.\n")
    print(", ".join(f"{name} {version}" for name, version in versions().items()) + "\n")
    print(COLUMNS.format("part", "what", "measure", "softwood", "spread", "sklearn", "target", "", "fit s"), flush=True)
    start, figures = time.perf_counter(), []
    for figure in run(Plan(folder, tuple(options.only), options.quick)):
        figures.append(figure)
        print(line(figure), flush=True)
    count = sum(figure.verdict == "SHORT" for figure in figures)
    print(f"\n{len(figures)} figures, {count} short, {time.perf_counter() - start:.0f} s")
    if options.csv:
        write_csv(options.csv, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
