"""Which array library an array belongs to, so that one file serves NumPy, CuPy and torch.

NumPy (2.0 and later) and CuPy carry their own namespace; torch needs the optional array-api-compat.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = Any  # an array of any library that follows the array API standard


def array_namespace(array: Array) -> ModuleType:
    """Return the array API namespace of ``array``."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()  # type: ignore[no-any-return]
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            f"Arrays of type {type(array).__name__} need the package array-api-compat, which is not installed. "
            "Install it with: pip install 'softwood[torch]'."
        ) from None
    namespace: ModuleType = array_api_compat.array_namespace(array)
    return namespace


def as_array(values: Any) -> Array:
    """An array as it is, whatever its library; NumPy's of everything else."""
    is_array = hasattr(values, "__array_namespace__") or type(values).__module__.partition(".")[0] == "torch"
    return values if is_array else np.asarray(values)


def as_indices(
    numbers: npt.NDArray[np.integer[Any]],
    like: Array,
) -> Array:
    """Row or column numbers as an array of the library and on the device of ``like``."""
    # A copy: torch cannot share memory that must not be written.
    return array_namespace(like).asarray(np.array(numbers), device=like.device)
