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
from softwood.split import SPLITS, AbstractSplit
from softwood.train.recipe import STARTS, TRAININGS, Recipe, split_of
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
    if recipe.split == "axis" and recipe.training == "grow":
        raise ValueError(
            "split='axis' needs training='global', 'greedy' or 'cart'; got training='grow'. "
            "Use training='global', or split='linear'."
        )
    if recipe.training == "grow" and split_of(recipe).core_name is None:
        raise ValueError(
            f"training='grow' grows slanted questions only; got split={recipe.split!r}. "
            "Use training='global', or split='linear'."
        )
    if recipe.training == "greedy" and split_of(recipe).spans_levels:
        raise ValueError(
            f"split={recipe.split!r} needs training='global', because its questions depend on their depth or on those "
            "above them. Use training='global', or another family."
        )
    if recipe.max_leaf_nodes is not None and recipe.training == "global" and split_of(recipe).arity > 2:
        raise ValueError(
            f"max_leaf_nodes={recipe.max_leaf_nodes} has no meaning for questions with more than two answers; got "
            f"split={recipe.split!r}. Leave it None and choose max_depth."
        )
    if recipe.max_depth is None and recipe.training in ("global", "grow"):
        raise ValueError(
            "max_depth=None needs training='cart' or 'greedy', because training all questions at once needs a bound "
            "on their number. Give max_depth an integer."
        )
    if recipe.gradient == "sampled" and recipe.solver == "lbfgs":
        raise ValueError(
            "solver='lbfgs' needs gradient='exact', because a line search cannot work with noise; got "
            "gradient='sampled'. Use solver='adam'."
        )
    if recipe.max_features_per_split is not None and (recipe.training, recipe.split) != ("global", "linear"):
        raise ValueError(
            "max_features_per_split needs training='global' and split='linear'; got "
            f"training={recipe.training!r} and split={recipe.split!r}. Leave it out."
        )
    _check_penalties(recipe)
    _check_start(recipe, bool(parameters["warm_start"]))
    return recipe


def _check_penalties(recipe: Recipe) -> None:
    """Penalties follow Adam's steps; the best tree on held-out rows may be one that has not been snapped."""
    if recipe.solver == "lbfgs" and (recipe.l1 > 0 or recipe.axis_penalty > 0):
        raise ValueError(
            "l1 and axis_penalty need solver='adam'; got solver='lbfgs'. Use solver='adam', or leave them 0."
        )
    if recipe.early_stopping and recipe.axis_penalty > 0:
        raise ValueError(
            "axis_penalty needs early_stopping=False, because only the last step leaves one column to a question; "
            "got early_stopping=True. Leave one of them out."
        )


def _check_start(recipe: Recipe, warm_start: bool) -> None:
    """Only global training starts from anything, and only where the search does not choose the start."""
    start = f"init={recipe.init!r}" if isinstance(recipe.init, str) else f"init=a {type(recipe.init).__name__}"
    is_named = start != "init='cart'"
    if recipe.training != "global" and (is_named or warm_start):
        setting = "warm_start=True" if warm_start else start
        raise ValueError(
            f"{setting} needs training='global'; got training={recipe.training!r}, which always grows from the root. "
            "Leave it out, or use training='global'."
        )
    if is_named and recipe.search is True:
        raise ValueError(
            f"search=True chooses the start itself, but {start} names one. "
            "Set search to 'auto' or False, or leave init out."
        )
    if recipe.split == "axis" and isinstance(recipe.init, str) and is_named:
        raise ValueError(
            f"{start} makes slanted questions, but split='axis' asks about one column. "
            "Use init='cart' or give a tree whose questions are thresholds."
        )
    if start in ("init='random'", "init='projected'") and recipe.max_leaf_nodes is not None:
        raise ValueError(
            f"{start} makes a complete tree, but max_leaf_nodes={recipe.max_leaf_nodes} rations leaves. "
            "Use init='cart' or 'greedy', or leave max_leaf_nodes out."
        )


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
