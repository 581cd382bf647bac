"""The recipe: estimator parameters, and the chain of trainers that they and the data call for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softwood.source import ArraySource
from softwood.train.base import AbstractTrainer

Auto = Literal["auto"]


@dataclass(frozen=True)
class Recipe:
    """Validated settings of one fit, by the estimators' names."""

    training: Literal["global", "greedy", "cart"] = "global"
    split: str = "linear"
    max_depth: int | None = 6
    search: bool | Auto = "auto"
    n_starts: int = 1
    weight_decay: float | Auto = "auto"
    max_iter: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    learning_rate: float | Auto = "auto"
    solver: Literal["adam", "lbfgs"] = "adam"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    max_bins: int = 255
    ccp_alpha: float = 0.0


def trainer_of(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    """The chain that a recipe means for this data."""
    raise ValueError(f"no trainer yet for {recipe.training!r} on {source.n} rows")
