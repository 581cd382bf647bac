"""Save and load estimators: which class a model file holds, and its record. The file itself is storage's business."""

from __future__ import annotations

import os
from typing import Any

from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.record import REMEDY, ModelFileError, shown, text
from softwood.storage import StrPath, read_json, write_json

ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (TreeClassifier, TreeRegressor)}


def save(estimator: Any, path: StrPath) -> None:
    """Write a fitted estimator as a model file: versioned JSON, the whole file or nothing.

    Parameters
    ----------
    estimator : TreeClassifier or TreeRegressor
        The fitted estimator.
    path : str or path-like
        Where to write; an existing file is replaced once the new one is complete.
    """
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(f"save needs one of {', '.join(ESTIMATORS)}; got {name}.")
    write_json(path, estimator.to_record())


def load(path: StrPath) -> Any:
    """Read the estimator that ``save`` wrote. Nothing in the file is executed, and nothing is believed unchecked.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    TreeClassifier or TreeRegressor
        The fitted estimator.
    """
    record = read_json(path)
    try:
        name = text(record, "estimator")
        if name not in ESTIMATORS:
            raise ModelFileError(f"estimator {shown(name)} is unknown. Install a newer softwood.")
        return ESTIMATORS[name].from_record(record)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} is not a usable model file: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} is not a usable model file: {type(error).__name__}: {error}. {REMEDY}"
        ) from error
