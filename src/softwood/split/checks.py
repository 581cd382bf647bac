"""What a family's own parameters must be; one sentence for the first that is not."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from softwood._activation import ACTIVATIONS


def check_count(family: str, name: str, value: Any, low: int = 1) -> None:
    """Refuse all but an integer from ``low`` to a million."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not low <= int(value) <= 10**6:
        raise ValueError(f"{family}: {name} must be an integer from {low} to 1000000; got {value!r}.")


def check_activation(family: str, value: Any) -> None:
    """Refuse all but the name of an activation."""
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise ValueError(f"{family}: activation must be one of {', '.join(map(repr, ACTIVATIONS))}; got {value!r}.")
