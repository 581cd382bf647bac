"""What each choice of the recipe gains: one change at a time, on rows that no reported figure is made of.

    python -m benchmarks.recipe --data FOLDER [--only VARIANT ...] [--sets NAME ...] [--depths 4 6] [--seeds 2]

Data sets are those that benchmarks.single_tree does not report, and the official training rows of those that come with
test rows of their own (which are never read here). A quarter of at most 12,000 rows judges; with ``--rows 300`` fits
have 300 rows and up to 8,000 others judge. Scores are 100 x accuracy or R2 of hard answers; a variant is compared with
the default on the same rows, and +- is the standard error over data sets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.cart import timed
from benchmarks.single_tree import Table, read_table

from softwood import TreeClassifier, TreeRegressor
from softwood.source import ArraySource
from softwood.train.select import Folds
from softwood.tree import Tree

CLASSES = (
    "satimage", "pendigits", "letter", "optdigits", "avila", "banknote", "climate_crashes", "magic", "mozilla4",
    "page_blocks", "shuttle", "spambase", "jm1", "car", "splice", "covertype",
)  # fmt: skip
NUMBERS = (
    "abalone", "ailerons", "airfoil", "bike_hour", "california_housing", "concrete", "electrical_grid", "elevators",
    "pol", "power_plant", "protein_casp", "puma32H", "wine_quality_red", "wine_quality_white",
)  # fmt: skip
NOISY = (  # two classes that no columns tell well apart: what a search is for
    "bank_churn", "telco_churn", "credit_default", "adult", "bank_marketing", "higgs_lightgbm_7500", "churn", "jm1",
    "compas",
)  # fmt: skip
MOST_ROWS = 12_000  # of one data set: enough to tell variants apart, and each is fitted often
HELD_OUT = 0.25
MOST_JUDGES = 8000  # rows that judge a fit to few rows


@dataclass(frozen=True)
class Case:
    """Which rows, and the seed of the fit."""

    n_rows: int | None
    seed: int


@dataclass(frozen=True)
class Variant:
    """Settings of the estimator, and constants of the library with other values."""

    settings: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)


def constant(name: str, value: Any, **settings: Any) -> Variant:
    return Variant(settings, {f"softwood.{name}": value})


def misses(tree: Tree, source: ArraySource) -> np.ndarray:
    """What the search would count without the Brier score."""
    s = source.targets.dense()
    X, leaves = source.X[source.order], tree.topology.leaves
    hard, soft = tree.values[tree.apply(X)], tree.reach(X)[:, leaves] @ tree.values[leaves]
    hits = [s[np.arange(len(s)), answer.argmax(axis=1)] for answer in (hard, soft)]
    return np.asarray(s.sum(axis=1) - np.mean(hits, axis=0))


FIXED = {"search": False}
VARIANTS: dict[str, Variant] = {
    "fixed": Variant(FIXED),
    "cart": Variant({"training": "cart"}),
    "search": Variant({"search": True}),
    "search by misses": constant("train.recipe.class_losses", misses, search=True),
    "search by a holdout": constant("train.recipe._folds", lambda n: Folds(), search=True),
    "decay 0.02": Variant(FIXED | {"weight_decay": 0.02}),
    "decay 0.05": Variant(FIXED | {"weight_decay": 0.05}),
    "decay 0.2": Variant(FIXED | {"weight_decay": 0.2}),
    "decay 0.3": Variant(FIXED | {"weight_decay": 0.3}),
    "decay 1": Variant(FIXED | {"weight_decay": 1.0}),
    "rate 0.1": Variant(FIXED | {"learning_rate": 0.1}),
    "rate 0.2": Variant(FIXED | {"learning_rate": 0.2}),
    "batch 512": Variant(FIXED | {"batch_size": 512}),
    "batch 1024": Variant(FIXED | {"batch_size": 1024}),
    "batch 2048": Variant(FIXED | {"batch_size": 2048}),
    "batch 4096": Variant(FIXED | {"batch_size": 4096}),
    "batch 8192": Variant(FIXED | {"batch_size": 8192}),
    "batch 16384": Variant(FIXED | {"batch_size": 16384}),
    "500 steps": Variant(FIXED | {"max_iter": 500}),
    "500 steps, rate 0.3": Variant(FIXED | {"max_iter": 500, "learning_rate": 0.3}),
    "2000 steps": Variant(FIXED | {"max_iter": 2000}),
    "4000 steps": Variant(FIXED | {"max_iter": 4000}),
    "3 starts": Variant(FIXED | {"n_starts": 3}),
    "from greedy": Variant(FIXED | {"init": "greedy"}),
    "from random": Variant(FIXED | {"init": "random"}),
    "grow": Variant(FIXED | {"training": "grow"}),
    "sampled, 1 draw": Variant(FIXED | {"gradient": "sampled"}),
    "sampled, 4 draws": Variant(FIXED | {"gradient": "sampled", "n_draws": 4}),
    "l1 0.03": Variant(FIXED | {"l1": 0.03}),
    "l1 0.1": Variant(FIXED | {"l1": 0.1}),
    "l1 0.3": Variant(FIXED | {"l1": 0.3}),
    "axis penalty 1": Variant(FIXED | {"axis_penalty": 1.0}),
    "axis penalty 10": Variant(FIXED | {"axis_penalty": 10.0}),
    "axis penalty 100": Variant(FIXED | {"axis_penalty": 100.0}),
    "steepness 2": constant("split.linear.STEEPNESS", 2.0, **FIXED),
    "steepness 0.5": constant("split.linear.STEEPNESS", 0.5, **FIXED),
    "noise 0.1": constant("split.linear.NOISE", 0.1, **FIXED),
}


@cache
def table_of(folder: Path, name: str) -> Table:
    """The rows to choose by."""
    table = read_table(folder, name)
    keep = np.ones(len(table.y), dtype=bool) if table.is_test is None else ~table.is_test
    return Table(table.X[keep], table.y[keep], None)


def rows_of(table: Table, n_rows: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows that judge."""
    n = len(table.y)
    order = np.random.default_rng([seed, n]).permutation(n)
    if n_rows is None:
        order = order[:MOST_ROWS]
        n_judges = round(HELD_OUT * order.size)
        return order[n_judges:], order[:n_judges]
    return order[:n_rows], order[n_rows : n_rows + MOST_JUDGES]


def score_of(variant: Variant, table: Table, is_classes: bool, depth: int, case: Case) -> tuple[float, float]:
    """The held-out score of one fit, and its seconds."""
    fit, judge = rows_of(table, case.n_rows, case.seed)
    model: Callable[..., Any] = TreeClassifier if is_classes else TreeRegressor
    tree = model(**({"max_depth": depth, "random_state": case.seed} | variant.settings))
    with ExitStack() as stack:
        for name, value in variant.constants.items():
            stack.enter_context(patch(name, value))
        seconds, _ = timed(partial(tree.fit, table.X[fit], table.y[fit]))
    return 100 * float(tree.score(table.X[judge], table.y[judge])), seconds


def scores_of(
    variant: Variant, folder: Path, names: Sequence[str], depths: Sequence[int], cases: Sequence[Case]
) -> np.ndarray:
    """(sets, depths, 2): mean score and seconds over the cases."""
    found = np.empty((len(names), len(depths), 2))
    for i, name in enumerate(names):
        table, is_classes = table_of(folder, name), name not in NUMBERS
        for k, depth in enumerate(depths):
            found[i, k] = np.mean([score_of(variant, table, is_classes, depth, case) for case in cases], axis=0)
    return found


def line(name: str, found: np.ndarray, base: np.ndarray, depths: Sequence[int]) -> str:
    difference = found[:, :, 0] - base[:, :, 0]
    by_depth = "  ".join(
        f"d{depth} {found[:, k, 0].mean():6.2f} {difference[:, k].mean():+5.2f}" for k, depth in enumerate(depths)
    )
    of_sets = difference.mean(axis=1)
    error = of_sets.std(ddof=1) / np.sqrt(len(of_sets)) if len(of_sets) > 1 else 0.0
    better, worse = int((of_sets > 0.05).sum()), int((of_sets < -0.05).sum())
    time = float(np.exp(np.mean(np.log(found[:, :, 1] / base[:, :, 1]))))
    return (
        f"{name:<16} {by_depth}   all {of_sets.mean():+5.2f} +- {error:.2f}   better {better:>2} worse {worse:>2}"
        f"   time x{time:.2f}"
    )


def details(names: Sequence[str], found: np.ndarray, base: np.ndarray) -> str:
    """The difference on each set and at each depth."""
    difference = found[:, :, 0] - base[:, :, 0]
    return "\n".join(
        f"    {name:<20} " + " ".join(f"{each:+6.2f}" for each in row)
        for name, row in zip(names, difference, strict=True)
    )


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipe", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SOFTWOOD_DATA"), help="folder of Parquet files")
    parser.add_argument("--only", nargs="+", default=list(VARIANTS), metavar="VARIANT", choices=list(VARIANTS))
    parser.add_argument("--sets", nargs="+", default=[*CLASSES, *NUMBERS], metavar="NAME", help="also "
                        + ", ".join(NOISY))  # fmt: skip
    parser.add_argument("--depths", nargs="+", type=int, default=[4, 6, 8])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, help="rows to fit")
    parser.add_argument("--base", default="fixed", help="the variant that others are compared with")
    parser.add_argument("--detail", action="store_true", help="also each data set's difference")
    options = parser.parse_args(given)
    if options.data is None:
        parser.error("a folder of Parquet files is needed (--data, SOFTWOOD_DATA).")
    base = np.empty(0)
    for name in dict.fromkeys([options.base, *options.only]):
        cases = [Case(options.rows, seed) for seed in range(options.seeds)]
        found = scores_of(VARIANTS[name], Path(options.data), options.sets, options.depths, cases)
        base = base if base.size else found
        print(line(name, found, base, options.depths), flush=True)
        if options.detail and found is not base:
            print(details(options.sets, found, base), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
