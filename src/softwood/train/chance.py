"""Chance by counting: a number for one row's choice at one level of one step, whoever asks and in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(
    seed: int,
    step: int,
    rows: npt.NDArray[np.integer[Any]],  # (n,)
    draws: npt.NDArray[np.integer[Any]],  # (n,) which draw of the row
    depth: int,
) -> npt.NDArray[np.float32]:  # (n, depth) in [0, 1), of 24 bits
    """The numbers that the compiled walks draw."""
    start = _mixed(np.array([seed], dtype=np.uint64) + np.array([step], dtype=np.uint64) * GOLDEN)  # wraps around
    key = _mixed(start ^ (rows.astype(np.uint64) << np.uint64(24) ^ draws.astype(np.uint64)))
    levels = np.arange(depth, dtype=np.uint64) * GOLDEN
    return (_mixed(key[:, None] + levels) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
