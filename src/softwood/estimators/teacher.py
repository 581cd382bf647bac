"""Teacher: the class probabilities of another classifier, read once and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d

FloatArray = npt.NDArray[np.float64]


def taught(teacher: Any, X: Any, width: int) -> tuple[FloatArray, npt.NDArray[Any]]:
    """(n, K) what the teacher says of the rows of X, and the (K,) classes it speaks of."""
    name = type(teacher).__name__
    try:
        ask = teacher.predict_proba
    except AttributeError:
        raise TypeError(
            f"teacher must have the method predict_proba; {name} has none. Give a classifier that has it."
        ) from None
    try:
        check_is_fitted(teacher)
    except NotFittedError:
        raise NotFittedError(f"teacher must be fitted; this {name} is not. Call its fit first.") from None
    _check_width(teacher, width)
    return _checked(np.asarray(ask(X)), np.asarray(teacher.classes_), name)


def averaged(Q: FloatArray, y: Any, classes: npt.NDArray[Any]) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """(n, K) halfway between probabilities and true labels, and the (n,) numbers of the labels' classes."""
    labels = column_or_1d(y)
    if len(labels) != len(Q):
        raise ValueError(f"y must have one label for each of the {len(Q)} rows of X; got {len(labels)}.")
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        raise ValueError(f"y must hold classes that teacher knows; it has {labels[unknown][0]!r}. Leave such rows out.")
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, labels, sorter=order)]
    return (Q + np.eye(classes.size)[codes]) / 2, codes


def _check_width(teacher: Any, width: int) -> None:
    expected = getattr(teacher, "n_features_in_", width)  # not every classifier says
    if expected != width:
        raise ValueError(
            f"X must have the {expected} columns that teacher was fitted to; got {width}. Give the teacher's columns."
        )


def _checked(Q: npt.NDArray[Any], classes: npt.NDArray[Any], name: str) -> tuple[FloatArray, npt.NDArray[Any]]:
    if classes.ndim != 1 or Q.ndim != 2 or Q.shape[1] != classes.size:
        raise ValueError(
            f"teacher must give one probability per class and row; the predict_proba of {name} gives shape {Q.shape} "
            f"for {classes.size} classes. Give a teacher of one output."
        )
    Q = Q.astype(np.float64)
    if not (np.isfinite(Q).all() and (Q >= 0).all() and np.allclose(Q.sum(axis=1), 1, atol=1e-3)):
        raise ValueError(
            f"teacher must give probabilities that add up to 1 in each row; those of {name} do not. "
            "Calibrate it, for instance with sklearn.calibration.CalibratedClassifierCV."
        )
    return Q / Q.sum(axis=1, keepdims=True), classes
