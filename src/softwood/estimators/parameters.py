"""Parameters: what an estimator's settings must be, checked once at the start of ``fit``.

Each rule is a sentence of what is expected and a test of one value. Nothing here knows X or y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from softwood.answers import ROUTINGS
from softwood.estimators.combinations import check_combinations
from softwood.split import SPLITS, AbstractSplit
from softwood.train.recipe import STARTS, TRAININGS, Recipe
from softwood.tree import Tree

MAX_THREADS = 4096  # what a larger n_jobs means: the answers are the same


@dataclass(frozen=True)
class Rule:
    """What a parameter must be, in words and as a test."""

    expected: str
    holds: Callable[[Any], bool]

    def or_(self, *others: str | None) -> Rule:
        """The same rule, with some values allowed besides."""
        words = " or ".join([self.expected, *map(repr, others)])
        return Rule(words, lambda value: self.holds(value) or (isinstance(value, str | None) and value in others))


def integer(low: int, high: int | None = None) -> Rule:
    words = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    return Rule(words, lambda value: is_integer(value) and low <= value and (high is None or value <= high))


def real(low: float = 0.0) -> Rule:
    return Rule(f"a finite number >= {low:g}", lambda value: is_real(value) and low <= value < math.inf)


def positive() -> Rule:
    return Rule("a finite number > 0", lambda value: is_real(value) and 0 < value < math.inf)


def inside(low: float, high: float) -> Rule:
    return Rule(f"a number between {low:g} and {high:g}", lambda value: is_real(value) and low < value < high)


def share(low: float, high: float) -> Rule:
    return Rule(f"a number from {low:g} to {high:g}", lambda value: is_real(value) and low <= value <= high)


def flag() -> Rule:
    return Rule("True or False", lambda value: isinstance(value, bool | np.bool_))


def choice(*choices: str) -> Rule:
    return Rule("one of " + ", ".join(map(repr, choices)), lambda value: isinstance(value, str) and value in choices)


def split_rule() -> Rule:
    words = "one of " + ", ".join(map(repr, SPLITS)) + " or an instance of a split family"
    return Rule(words, lambda value: isinstance(value, AbstractSplit) or (isinstance(value, str) and value in SPLITS))


def is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def start() -> Rule:
    names = choice(*STARTS)
    words = f"{names.expected}, a softwood Tree or a fitted tree estimator"
    return Rule(words, lambda value: isinstance(value, Tree | BaseEstimator) or names.holds(value))


RULES: dict[str, Rule] = {
    "training": choice(*TRAININGS),
    "split": split_rule(),
    "leaves": choice("constant", "linear"),
    "routing": choice(*ROUTINGS),
    "max_depth": integer(0).or_(None),
    "init": start(),
    "warm_start": flag(),
    "search": flag().or_("auto"),
    "n_starts": integer(1),
    "weight_decay": real().or_("auto"),
    "l1": real(),
    "axis_penalty": real(),
    "max_iter": integer(1).or_("auto"),
    "batch_size": integer(1).or_("auto"),
    "learning_rate": positive().or_("auto"),
    "solver": choice("adam", "lbfgs"),
    "gradient": choice("exact", "sampled"),
    "n_draws": integer(1, 2**20),
    "early_stopping": flag(),
    "validation_fraction": inside(0, 1),
    "n_iter_no_change": integer(1),
    "tol": real(),
    "min_samples_split": integer(2),
    "min_samples_leaf": integer(1),
    "min_weight_fraction_leaf": share(0, 0.5),
    "min_impurity_decrease": real(),
    "max_leaf_nodes": integer(2).or_(None),
    "max_bins": integer(2, 255),
    "max_features_per_split": integer(1).or_(None),
    "ccp_alpha": real(),
    "smoothing": real(),
    "verbose": Rule("True, False or an integer >= 0", lambda value: isinstance(value, bool) or integer(0).holds(value)),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise one sentence for the first parameter that breaks its rule."""
    for name in RULES:
        if name in parameters:
            check_parameter(name, parameters[name])


def check_parameter(name: str, value: Any) -> None:
    """Raise one sentence for a value that breaks the rule."""
    if not RULES[name].holds(value):
        raise ValueError(f"{name} must be {RULES[name].expected}; got {value!r}.")


def recipe_of(parameters: Mapping[str, Any]) -> Recipe:
    """The checked parameters as a recipe for trainers."""
    check_parameters(parameters)
    names = {field.name for field in fields(Recipe)} & set(parameters)
    recipe = Recipe(**{name: parameters[name] for name in names})
    check_combinations(recipe, bool(parameters["warm_start"]))
    return recipe


def threads_of(n_jobs: int | None) -> int:
    """How many threads n_jobs means here, inside joblib's parallel calls as well."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0; got {n_jobs!r}.")
    return min(int(effective_n_jobs(n_jobs)), MAX_THREADS)


def generator_of(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """The generator of one fit."""
    try:
        state = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer from 0 to 2**32 - 1 or a numpy RandomState; got {random_state!r}."
        ) from None
    return np.random.default_rng(int(state.randint(np.iinfo(np.int32).max)))
