"""Class weights: the factor on each class's rows, from weighted counts, so that weight k stays k copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood.estimators.parameters import is_real

FloatArray = npt.NDArray[np.float64]


def class_factors(
    class_weight: Mapping[Any, float] | str | None,
    classes: npt.NDArray[Any],  # (K,)
    count: FloatArray,  # (K,) weight of each class's rows
) -> FloatArray | None:  # (K,)
    """What to multiply the weights of each class by; None: nothing."""
    if class_weight is None:
        return None
    if isinstance(class_weight, Mapping):
        return _named(class_weight, classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        present = count > 0
        factors = np.ones_like(count)
        factors[present] = count.sum() / (present.sum() * count[present])
        return factors
    raise ValueError(f"class_weight must be None, 'balanced' or a dict of label to weight; got {class_weight!r}.")


def _named(class_weight: Mapping[Any, float], classes: npt.NDArray[Any]) -> FloatArray:
    for label, weight in class_weight.items():
        if not (is_real(weight) and 0 <= weight < np.inf):
            raise ValueError(f"class_weight[{label!r}] must be a finite number >= 0; got {weight!r}.")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    # A fold may lack a rare class that the dict rightly names; a misspelt one leaves some class without a weight.
    if unknown and any(label not in class_weight for label in labels):
        raise ValueError(
            f"class_weight names {unknown[0]!r}, but y has only the classes {', '.join(map(repr, labels[:10]))}"
            f"{', ...' if len(labels) > 10 else ''}."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])
