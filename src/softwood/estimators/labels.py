"""Labels: class labels as plain JSON types and back, equal in value and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from softwood.record import REMEDY, ModelFileError, listing, shown, text

KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}
INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
NAMES = {"str", "object", "bool", "float16", "float32", "float64"} | INTEGERS


def labels_record(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """{"dtype": ..., "values": [...]} of an array of bools, integers, floats or strings."""
    kind, values = KINDS.get(labels.dtype.kind), labels.tolist()
    if any(type(value) is not kind for value in values):
        raise ModelFileError(
            f"classes must be bools, integers, floats or strings to be stored; got labels of dtype {labels.dtype}. "
            "Fit on labels of such a kind."
        )
    return {"dtype": "str" if labels.dtype.kind == "U" else labels.dtype.name, "values": values}


def labels_from_record(record: dict[str, Any]) -> npt.NDArray[Any]:
    """Read what ``labels_record`` wrote."""
    name, values = text(record, "dtype"), listing(record, "values")
    if name not in NAMES:
        raise ModelFileError(f"classes have the unknown dtype {shown(name)}. {REMEDY}")
    kind = KINDS[np.dtype(name).kind]
    if not values or any(type(value) is not kind for value in values):
        raise ModelFileError(f"classes of dtype {name} must be a list of at least one {kind.__name__}. {REMEDY}")
    try:
        labels = np.array(values, dtype=name)
    except (OverflowError, ValueError):
        raise ModelFileError(f"classes hold a value that is no {name}. {REMEDY}") from None
    if len(set(values)) < len(values):
        raise ModelFileError(f"classes hold a label twice. {REMEDY}")
    return labels
