"""Linear leaves beside constant ones: the figures they must show.

    python -m benchmarks.leaves [--data FOLDER] [--only NAME ...] [--seeds 3]

A quarter of the rows judges, categories are one-hot, settings are the defaults except max_depth. With ``--choose`` the
sets are those on which the defaults of linear leaves were chosen, and no figure is made of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cart import timed
from benchmarks.recipe import MOST_ROWS, table_of
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import train_test_split

from softwood import TreeRegressor

FIGURES = {
    "abalone": (4, "RMSE at most 2.13"),
    "cpu_act": (5, "RMSE at most 2.55"),
    "elevators": (5, "R2 at least 0.90"),
}
CHOOSE = dict.fromkeys(
    ("airfoil", "bike_hour", "california_housing", "concrete", "energy_heating", "puma32H", "wine_quality_white",
     "wage", "insurance", "kin8nm", "power_plant"), (5, "-"),
)  # fmt: skip


def scores_of(X: np.ndarray, y: np.ndarray, settings: dict[str, Any], seed: int) -> tuple[float, float, float]:
    """RMSE, R2 and seconds of one fit."""
    fit, judge, y_fit, y_judge = train_test_split(X, y, test_size=0.25, random_state=seed)
    tree = TreeRegressor(**settings, random_state=seed)
    seconds, _ = timed(partial(tree.fit, fit[:MOST_ROWS], y_fit[:MOST_ROWS]))
    said = tree.predict(judge)
    return float(root_mean_squared_error(y_judge, said)), float(r2_score(y_judge, said)), seconds


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaves", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SOFTWOOD_DATA"), help="folder of Parquet files")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true", help="the sets to choose defaults on")
    parser.add_argument("--search", choices=["auto", "off"], default="auto")
    options = parser.parse_args(given)
    if options.data is None:
        parser.error("a folder of Parquet files is needed (--data, SOFTWOOD_DATA).")
    sets = CHOOSE if options.choose else FIGURES
    for name in options.only or sets:
        table, (depth, wanted) = table_of(Path(options.data), name), sets[name]
        for leaves in ("constant", "linear"):
            settings = {"max_depth": depth, "leaves": leaves, "search": "auto" if options.search == "auto" else False}
            runs = [scores_of(table.X, table.y, settings, seed) for seed in range(options.seeds)]
            rmse, r2, seconds = np.mean(runs, axis=0)
            goal = wanted if leaves == "linear" else "-"
            print(f"{name:<20} d{depth} {leaves:<9} RMSE {rmse:.5g}  R2 {r2:.4f}  {seconds:.2f} s  {goal}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
