"""Decision trees trained by calculus: soft while they learn, hard when they answer."""

from __future__ import annotations

from importlib.metadata import version

from softwood import measures
from softwood.checks import check_impurity
from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.impurity import AbstractImpurity
from softwood.persist import load, save
from softwood.record import ModelFileError
from softwood.split import AbstractSplit

__version__ = version("softwood")

__all__ = [
    "AbstractImpurity",
    "AbstractSplit",
    "ModelFileError",
    "TreeClassifier",
    "TreeRegressor",
    "__version__",
    "check_impurity",
    "load",
    "measures",
    "save",
]
