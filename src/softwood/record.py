"""Entries of a record, each checked: a record comes from a file, and nothing in it is believed.

Every function takes the record and the name of the entry, and raises ModelFileError with what is wrong, where, and
what to do. A boolean is not a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

REMEDY = "Save the model again, or restore the file from a copy."

Record = dict[str, Any]


class ModelFileError(ValueError):
    """A model file, or a part of one, that cannot be written or must not be believed."""


def entry(record: Mapping[str, Any], name: str) -> Any:
    """An entry that must be there."""
    if name not in record:
        raise ModelFileError(f"the entry '{name}' is missing. {REMEDY}")
    return record[name]


def section(record: Mapping[str, Any], name: str) -> Record:
    """An entry that is an object."""
    value = entry(record, name)
    if not isinstance(value, dict):
        raise ModelFileError(f"{name} must be an object, not {kind_of(value)}. {REMEDY}")
    return value


def listing(record: Mapping[str, Any], name: str) -> list[Any]:
    """An entry that is a list."""
    value = entry(record, name)
    if not isinstance(value, list):
        raise ModelFileError(f"{name} must be a list, not {kind_of(value)}. {REMEDY}")
    return value


def text(record: Mapping[str, Any], name: str) -> str:
    """An entry that is a text."""
    value = entry(record, name)
    if not isinstance(value, str):
        raise ModelFileError(f"{name} must be a text, not {kind_of(value)}. {REMEDY}")
    return value


def number(record: Mapping[str, Any], name: str) -> float:
    """An entry that is a finite number."""
    return float(numbers({name: [entry(record, name)]}, name, 1)[0])


def whole_number(record: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """An entry that is an integer from low to high."""
    value = entry(record, name)
    if type(value) is not int:
        raise ModelFileError(f"{name} must be an integer, not {kind_of(value)}. {REMEDY}")
    if not low <= value <= high:
        raise ModelFileError(f"{name} must be from {low} to {high}; it is {shown(value)}. {REMEDY}")
    return value


def integers(record: Mapping[str, Any], name: str, low: int, high: int) -> npt.NDArray[np.int64]:
    """(k,) an entry that is a list of integers from low to high."""
    values = listing(record, name)
    for index, value in enumerate(values):
        if type(value) is not int or not low <= value <= high:
            raise ModelFileError(
                f"{name}[{index}] must be an integer from {low} to {high}; it is {shown(value)}. {REMEDY}"
            )
    return np.array(values, dtype=np.int64)


def numbers(record: Mapping[str, Any], name: str, ndim: int) -> npt.NDArray[np.float64]:
    """(k,) or (k, l) an entry that is a list of finite numbers, or of equally long lists of them."""
    values = listing(record, name)
    plain_numbers(values, name, depth=ndim)
    try:
        array = np.array(values, dtype=np.float64)
    except (ValueError, OverflowError):
        raise ModelFileError(f"{name} has lists of unequal length or a number out of range. {REMEDY}") from None
    if array.ndim != ndim:
        raise ModelFileError(f"{name} must be {'a list' if ndim == 1 else 'lists'} of numbers. {REMEDY}")
    if not np.isfinite(array).all():
        raise ModelFileError(f"{name} has a number that is not finite. {REMEDY}")
    return array


def plain_numbers(values: Any, where: str, depth: int) -> None:
    """Refuse all but lists of numbers, at most ``depth`` deep; a boolean is not a number."""
    if not isinstance(values, list):
        raise ModelFileError(f"{where} must be a list, not {kind_of(values)}. {REMEDY}")
    for index, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            if depth == 1:
                raise ModelFileError(f"{where}[{index}] must be a number, not {kind_of(value)}. {REMEDY}")
            plain_numbers(value, f"{where}[{index}]", depth - 1)


def kind_of(value: Any) -> str:
    """What a value is, in JSON's words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def shown(value: Any) -> str:
    """A value for an error sentence, never a dump."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return "an enormous integer"
    if isinstance(value, (list, dict)):
        return kind_of(value)
    code = repr(value)
    return code if len(code) <= 40 else f"{code[:37]}..."
