"""Records: a fitted estimator as plain JSON types, and back. Reading executes nothing and trusts nothing."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from softwood.estimators.labels import labels_from_record, labels_record
from softwood.estimators.parameters import check_parameters
from softwood.impurity import AbstractImpurity
from softwood.record import (
    REMEDY,
    ModelFileError,
    Record,
    entry,
    kind_of,
    listing,
    number,
    numbers,
    section,
    text,
    whole_number,
)
from softwood.storage import MAX_FEATURES, tree_from_record, tree_record
from softwood.tree import Tree

Estimator = TypeVar("Estimator")


def estimator_record(estimator: Any) -> Record:
    """Class, parameters, columns, fitted numbers and the tree."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "estimator": type(estimator).__name__,
        "parameters": {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()},
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "n_iter": int(estimator.n_iter_),
        "history": estimator.history_.tolist(),
        "feature_importances": estimator.feature_importances_.tolist(),
        "agreement": None if math.isnan(estimator.agreement_) else estimator.agreement_,
        "seed": estimator.seed_,
        "tree": tree_record(estimator.tree_),
    }


def restored(cls: type[Estimator], record: Record) -> Estimator:
    """A fitted estimator of the class that the record must name."""
    name = text(record, "estimator")
    if name != cls.__name__:
        raise ModelFileError(f"the record must be of a {cls.__name__}; it is of a {name[:40]}. Use that class.")
    estimator: Any = cls(**_parameters(cls, section(record, "parameters")))
    estimator.n_features_in_ = whole_number(record, "n_features", 1, MAX_FEATURES)
    names = _feature_names(record, estimator.n_features_in_)
    if names is not None:
        estimator.feature_names_in_ = names
    estimator.n_outputs_ = 1
    estimator.n_iter_ = whole_number(record, "n_iter", 1, 2**62)
    estimator.history_ = numbers(record, "history", 1)
    estimator.feature_importances_ = numbers(record, "feature_importances", 1)
    estimator.agreement_ = math.nan if record.get("agreement") is None else number(record, "agreement")
    estimator.seed_ = whole_number({"seed": 0} | record, "seed", 0, 2**31 - 1)  # files of 0.1.0 lack both
    estimator.tree_ = tree_from_record(entry(record, "tree"))
    sizes = {"tree": estimator.tree_.n_features, "feature_importances": estimator.feature_importances_.size}
    for what, size in sizes.items():
        if size != estimator.n_features_in_:
            raise ModelFileError(f"{what} is of {size} columns, but n_features is {estimator.n_features_in_}. {REMEDY}")
    return estimator  # type: ignore[no-any-return]


def _parameters(cls: Any, record: Record) -> dict[str, Any]:
    """Known names with values of the allowed kind; what a later version adds or an older lacks has its default."""
    defaults = cls().get_params(deep=False)
    unknown = sorted(set(record) - set(defaults))
    if unknown:
        raise ModelFileError(f"{cls.__name__} has no parameter {unknown[0][:40]!r}. Install a newer softwood.")
    parameters: dict[str, Any] = defaults | {name: _read(name, value) for name, value in record.items()}
    try:
        check_parameters(parameters)
    except ValueError as error:
        raise ModelFileError(f"{error} {REMEDY}") from None
    return parameters


def _plain(name: str, value: Any) -> Any:
    """A parameter as a JSON type."""
    if isinstance(value, AbstractImpurity):
        raise ModelFileError(
            f"{name}={value!r} is an object, which a model file cannot hold. Name one of the registered impurities."
        )
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.RandomState):
        return None  # only a later fit would draw from it
    if isinstance(value, Tree | BaseEstimator):
        return "cart"  # only a later fit would start from it
    if isinstance(value, dict):
        labels = labels_record(np.array(list(value)))
        return {"labels": labels, "weights": [float(weight) for weight in value.values()]}
    return value


def _read(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        labels, weights = labels_from_record(section(value, "labels")), numbers(value, "weights", 1)
        if labels.size != weights.size:
            raise ModelFileError(f"{name} needs one weight per label. {REMEDY}")
        return dict(zip(labels.tolist(), weights.tolist(), strict=True))
    if isinstance(value, list):
        raise ModelFileError(f"the parameter {name} must not be {kind_of(value)}. {REMEDY}")
    return value


def _feature_names(record: Record, n_features: int) -> Any:
    if entry(record, "feature_names") is None:
        return None
    names = listing(record, "feature_names")
    if len(names) != n_features or any(type(name) is not str for name in names):
        raise ModelFileError(f"feature_names must be {n_features} texts or null. {REMEDY}")
    return np.array(names, dtype=object)
