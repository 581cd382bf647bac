"""What the examples share: points of the plane, answers as colours behind them, and one PNG per example."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = np.array([[0.13, 0.40, 0.67], [0.84, 0.38, 0.30]])  # of class 0 and class 1; told apart by the colour-blind
GRID = 240  # points along each side of a picture


def canvas(n: int, width: float = 4.0) -> tuple[Figure, Sequence[Axes]]:
    """Some square pictures side by side."""
    figure, axes = plt.subplots(1, n, figsize=(width * n, width + 0.5), squeeze=False, layout="constrained")
    return figure, list(axes[0])


def lattice(X: np.ndarray) -> tuple[np.ndarray, tuple[float, float, float, float]]:
    """(GRID * GRID, 2) points over the plane that the rows take up, and its edges."""
    low, high = X.min(axis=0), X.max(axis=0)
    edge = 0.06 * (high - low)
    (left, bottom), (right, top) = low - edge, high + edge
    x, y = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    return np.column_stack([x.ravel(), y.ravel()]), (left, right, bottom, top)


def draw(axes: Axes, share: Callable[[np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray, title: str) -> None:
    """The share of class 1 as the mixture of two colours, and the points of both classes."""
    points, extent = lattice(X)
    q = share(points).reshape(GRID, GRID)
    mixed = (1 - q)[:, :, None] * COLOURS[0] + q[:, :, None] * COLOURS[1]
    axes.imshow(0.45 * mixed + 0.55, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
    for k, marker in enumerate("os"):
        axes.scatter(*X[y == k].T, s=9, marker=marker, color=COLOURS[k], linewidths=0, alpha=0.8)
    frame(axes, title)


def draw_numbers(axes: Axes, number: Callable[[np.ndarray], np.ndarray], X: np.ndarray, title: str) -> None:
    """A whole number of each point, such as the leaf it ends in, as a colour of its own."""
    points, extent = lattice(X)
    _, rank = np.unique(number(points), return_inverse=True)
    colours = plt.get_cmap("tab20")(rank % 20).reshape(GRID, GRID, 4)
    axes.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest", alpha=0.6)
    axes.scatter(*X.T, s=4, color="black", linewidths=0, alpha=0.4)
    frame(axes, title)


def frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])


def run(example: Callable[[Path], Mapping[str, Any]]) -> None:
    """Run an example from a terminal: figures to the screen, the picture into the folder ``--out``."""
    parser = argparse.ArgumentParser(description=sys.modules[example.__module__].__doc__)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args()
    for name, value in example(options.out).items():
        print(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
