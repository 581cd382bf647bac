"""One check for every reverse pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def check_vjp(
    forward: Callable[[np.ndarray], Any],
    vjp: Callable[[np.ndarray, np.ndarray], np.ndarray],  # (input, cotangent of the output) -> cotangent of the input
    x: np.ndarray,
    seed: int = 0,
    rtol: float = 1e-6,
) -> None:
    """<cotangent, central difference along a direction> against <vjp, direction>, for four random directions.

    With a step of 1e-5 in float64 the difference is wrong by about 1e-10 (the cube of the step beside it, rounding
    divided by it), so 1e-6 of the size of the two sides leaves room for curvature and none for a wrong formula.
    """
    rng, step = np.random.default_rng(seed), 1e-5
    for _ in range(4):
        direction = rng.normal(size=x.shape)
        change = (np.asarray(forward(x + step * direction)) - np.asarray(forward(x - step * direction))) / (2 * step)
        cotangent = rng.normal(size=change.shape)
        returned = vjp(x, cotangent)
        assert returned.shape == x.shape
        size = np.abs(cotangent * change).sum() + np.abs(returned * direction).sum()
        assert abs((cotangent * change).sum() - (returned * direction).sum()) <= rtol * size
