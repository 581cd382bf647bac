"""Schedules: the step size of each step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def cosine(rate: float, n_steps: int) -> npt.NDArray[np.float32]:
    """From ``rate`` to 0 along half a cosine."""
    return (0.5 * rate * (1 + np.cos(np.pi * np.arange(n_steps) / max(n_steps, 1)))).astype(np.float32)
