"""Validation: the user's X, y and weights as the arrays the core reads, or one clear sentence.

X stays in float32 or float64 and is copied only where it is not row by row in memory already. scikit-learn's
``validate_data`` does the shapes and the feature names; what it would say about NaN or strings without naming the
column is said here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

FloatArray = npt.NDArray[np.float64]


def read_rows(estimator: BaseEstimator, X: Any) -> npt.NDArray[Any]:
    """X to predict on: (n, p) float32 or float64, C order. Routing finds out whether it is finite."""
    return _checked(estimator, X, reset=False)  # type: ignore[no-any-return]


def read_training(estimator: BaseEstimator, X: Any, y: Any) -> tuple[npt.NDArray[Any], Any]:
    """X and y to fit on; remembers the number and the names of the columns."""
    X, y = _checked(estimator, X, y=y)
    check_finite(estimator, X)
    return X, y


def read_training_rows(estimator: BaseEstimator, X: Any) -> npt.NDArray[Any]:
    """X to fit on, without targets; remembers the number and the names of the columns."""
    X = _checked(estimator, X, reset=True)
    check_finite(estimator, X)
    return X  # type: ignore[no-any-return]


def read_numbers(y: npt.NDArray[Any]) -> FloatArray:
    """(n,) a regressor's targets in float64."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold one number per row; got {y.dtype} values such as {y.flat[0]!r}.") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"y contains {_word(numbers[row])} at row {row}; targets must be finite.")
    return numbers


def read_weight(sample_weight: Any, n: int) -> FloatArray:
    """(n,) float64 weights: finite, none negative; ones where None."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold one number per row; it cannot be read as numbers.") from None
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number per row, shape ({n},); got shape {weight.shape}.")
    _check_weight(weight)
    return np.ascontiguousarray(weight)


def check_finite(estimator: BaseEstimator, X: npt.NDArray[Any]) -> None:
    """Name the first number that is not finite; a sum is finite where every number is, save for overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    for start in range(0, X.shape[0], 4096):
        block = X[start : start + 4096]
        bad = ~np.isfinite(block)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"X contains {_word(block[row, column])} in column {_column(estimator, column)}, first at row "
                f"{start + row}; {type(estimator).__name__} needs finite numbers. Fill the gaps or drop the rows "
                "before fitting, for instance with sklearn.impute.SimpleImputer."
            )


def check_some_weight(weight: FloatArray) -> None:
    """Refuse weights that leave no row."""
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one row needs a weight above zero.")


def _check_weight(weight: FloatArray) -> None:
    if not np.isfinite(weight).all():
        row = int(np.flatnonzero(~np.isfinite(weight))[0])
        raise ValueError(f"sample_weight contains {_word(weight[row])} at row {row}; weights must be finite.")
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"sample_weight must not be negative; got {weight[row]:g} at row {row}.")
    check_some_weight(weight)


def _checked(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    if issparse(X):
        raise TypeError(
            f"X is a sparse {type(X).__name__}, but {type(estimator).__name__} needs dense rows. Pass X.toarray()."
        )
    half = getattr(X, "dtype", None) == np.float16
    dtype = np.float32 if half else [np.float64, np.float32]
    try:
        return validate_data(estimator, X, dtype=dtype, order="C", ensure_all_finite=False, **options)
    except (TypeError, ValueError) as error:
        _explain_unreadable(estimator, X, error)
        raise


def _explain_unreadable(estimator: BaseEstimator, X: Any, error: Exception) -> None:
    """Name the column that holds something other than numbers, if that is what went wrong."""
    cells = np.asarray(X) if not isinstance(X, list) else np.asarray(X, dtype=object)
    if cells.ndim != 2 or cells.dtype.kind not in "OUS":
        return
    for j in range(cells.shape[1]):
        for i, cell in enumerate(cells[:, j]):
            try:
                float(cell)
            except (TypeError, ValueError) as reason:
                raise type(reason)(
                    f"X contains the {type(cell).__name__} {cell!r} in column {_column(estimator, j)}, row {i}, which "
                    f"is not a number ({reason}). Encode such columns as numbers first, for instance with "
                    "sklearn.preprocessing.OrdinalEncoder."
                ) from error


def _column(estimator: BaseEstimator, column: int) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    return f"{column}" if names is None else f"{str(names[column])!r} (index {column})"


def _word(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity (inf)"
