"""Target encodings: what a regressor's numbers become for each impurity, with the way back to their units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softwood.estimators.target_units import TargetUnits
from softwood.targets import DenseTargets, centred_moments, gamma_sums, poisson_sums

FloatArray = npt.NDArray[np.float64]
Encoded = tuple[DenseTargets, TargetUnits]


def numbers(y: FloatArray, weight: FloatArray) -> Encoded:
    """Moments of any numbers."""
    targets, center, scale = centred_moments(y, weight)
    return targets, TargetUnits(center, scale)


def counts(y: FloatArray, weight: FloatArray) -> Encoded:
    """What the Poisson deviance reads."""
    if (y < 0).any():
        raise ValueError(
            f"y must not be negative with the Poisson deviance; got {y[y < 0][0]:g}. "
            "Use impurity='variance' for targets of either sign."
        )
    targets, scale = poisson_sums(y, weight)
    return targets, TargetUnits(0.0, scale, power=1)


def sizes(y: FloatArray, weight: FloatArray) -> Encoded:
    """What the gamma deviance reads."""
    if (y <= 0).any():
        raise ValueError(
            f"y must be above 0 with the gamma deviance; got {y[y <= 0][0]:g}. "
            "Use impurity='poisson' where targets may be 0, or 'variance' for targets of either sign."
        )
    targets, scale = gamma_sums(y, weight)
    return targets, TargetUnits(0.0, scale, power=0)


ENCODINGS: dict[str, Callable[[FloatArray, FloatArray], Encoded]] = {
    "numbers": numbers,
    "poisson": counts,
    "gamma": sizes,
}
