"""What a family's own parameters must be; one sentence for the first that is not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from softwood._activation import ACTIVATIONS


def check_count(family: str, name: str, value: Any, low: int = 1, high: int = 10**6) -> None:
    """Refuse all but an integer from ``low`` to ``high``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not low <= int(value) <= high:
        raise ValueError(f"{family}: {name} must be an integer from {low} to {high}; got {value!r}.")


def check_positive(family: str, name: str, value: Any) -> None:
    """Refuse all but a finite number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{family}: {name} must be a finite number > 0; got {value!r}.")


def check_choice(family: str, name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse all but one of some names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{family}: {name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_activation(family: str, value: Any) -> None:
    """Refuse all but the name of an activation."""
    check_choice(family, "activation", value, ACTIVATIONS)
