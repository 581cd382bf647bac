"""Split families as plain JSON types: a built-in family by its name and parameters, never by its code."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from softwood.record import REMEDY, ModelFileError, Record, section, shown, text
from softwood.split import SPLITS, AbstractSplit

DEEPEST = 8  # families within families


def split_record(split: AbstractSplit) -> Record:
    """Name and parameters of a built-in family."""
    if SPLITS.get(split.name) is not type(split) or not is_dataclass(split):
        raise ModelFileError(
            f"split={split!r} asks questions of your own, which a model file cannot hold. Use one of the registered "
            "families, or pickle the estimator."
        )
    return {
        "family": split.name,
        "parameters": {field.name: _plain(getattr(split, field.name)) for field in fields(split) if field.compare},
    }


def split_from_record(record: Record, depth: int = 0) -> AbstractSplit:
    """The family a record names; its own checks judge the parameters."""
    name = text(record, "family")
    if name not in SPLITS or depth > DEEPEST:
        raise ModelFileError(f"split names the unknown family {shown(name)}. Install a newer softwood.")
    parameters = {key: _read(value, depth) for key, value in section(record, "parameters").items()}
    try:
        return SPLITS[name](**parameters)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"split is wrong: {error} {REMEDY}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, AbstractSplit):
        return split_record(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return split_from_record(value, depth + 1)
    return tuple(_read(each, depth) for each in value) if isinstance(value, list) and depth <= DEEPEST else value
