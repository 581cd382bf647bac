"""Estimators: the scikit-learn face of the library."""

from __future__ import annotations

from softwood.estimators.classifier import TreeClassifier
from softwood.estimators.regressor import TreeRegressor

__all__ = ["TreeClassifier", "TreeRegressor"]
