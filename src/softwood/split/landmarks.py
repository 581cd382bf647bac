"""Landmarks: a few points that stand for many rows, by k-means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
SAMPLE, ROUNDS = 4096, 20


def landmarks_of(Z: npt.NDArray[np.float32], count: int, rng: np.random.Generator) -> FloatArray:
    """(at most count, p) centers of groups of a sample of the rows; none twice."""
    rows = np.asarray(Z if len(Z) <= SAMPLE else Z[rng.permutation(len(Z))[:SAMPLE]], dtype=np.float64)
    distinct = np.unique(rows, axis=0)
    centers = distinct[rng.permutation(len(distinct))[:count]]
    for _ in range(ROUNDS):
        nearest = (0.5 * (centers**2).sum(axis=1) - rows @ centers.T).argmin(axis=1)
        sizes = np.bincount(nearest, minlength=len(centers))
        sums = np.zeros_like(centers)
        np.add.at(sums, nearest, rows)
        moved = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centers)
        if (moved == centers).all():
            break
        centers = moved
    return np.unique(centers, axis=0)
