"""Options of ``softwood fit``, made from the estimators' own signatures: names, defaults and help are said once."""

from __future__ import annotations

import argparse
import inspect
import re
from typing import Any, get_args, get_type_hints

from softwood.estimators import TreeClassifier, TreeRegressor
from softwood.split import SPLITS
from softwood.train.recipe import STARTS, Recipe

TASKS: dict[str, Any] = {"classification": TreeClassifier, "regression": TreeRegressor}
OWN_WORDS = {"random_state", "n_jobs", "verbose", "warm_start"}  # --seed, --threads, --quiet; one fit a command
CHOICES = {"split": tuple(SPLITS), "training": get_args(get_type_hints(Recipe)["training"]), "init": tuple(STARTS)}
WORDS = {"none": None, "true": True, "false": False}


def add_estimator_options(parser: argparse.ArgumentParser) -> None:
    """One option per parameter of either estimator; only those given on the command line are in the result."""
    group = parser.add_argument_group("estimator", "Parameters of the estimators, by their names.")
    for name, defaults in _defaults().items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"estimator_{name}",
            type=str if name in CHOICES else _value,
            choices=CHOICES.get(name),
            metavar=None if name in CHOICES else "VALUE",
            default=argparse.SUPPRESS,
            help=_help(name, defaults),
        )


def estimator_of(task: str, args: argparse.Namespace) -> Any:
    """The unfitted estimator that the options describe."""
    given = {name.removeprefix("estimator_"): v for name, v in vars(args).items() if name.startswith("estimator_")}
    known = _parameters(TASKS[task])
    for name in given:
        if name not in known:
            raise ValueError(f"--{name.replace('_', '-')} has no meaning for {task}. Leave it out.")
    return TASKS[task](**given, random_state=args.seed, n_jobs=args.threads, verbose=0 if args.quiet else 1)


def _parameters(estimator: Any) -> dict[str, inspect.Parameter]:
    return {name: p for name, p in inspect.signature(estimator).parameters.items() if name not in OWN_WORDS}


def _defaults() -> dict[str, dict[str, Any]]:
    """Parameter -> task -> default."""
    found: dict[str, dict[str, Any]] = {}
    for task, estimator in TASKS.items():
        for name, parameter in _parameters(estimator).items():
            found.setdefault(name, {})[task] = parameter.default
    return found


def _help(name: str, defaults: dict[str, Any]) -> str:
    said = {task: str(default).lower() for task, default in defaults.items()}
    if len(set(said.values())) > 1:
        default = ", ".join(f"{value} for {task}" for task, value in said.items())
    else:
        default = next(iter(said.values())) + ("" if len(said) > 1 else f"; {next(iter(said))} only")
    return f"{_sentence(name, next(iter(defaults)))} (default: {default})".strip().replace("%", "%%")


def _sentence(name: str, task: str) -> str:
    """The first sentence about a parameter in its estimator's docstring."""
    doc = inspect.getdoc(TASKS[task]) or ""
    found = re.search(rf"^{name} : .*\n((?:    .*\n?)+)", doc, flags=re.MULTILINE)
    return re.split(r"(?<=\.)\s", " ".join(found[1].split()))[0].rstrip(".") if found else ""


def _value(word: str) -> Any:
    """What was typed as none, true, false, an integer, a number, or a text that the estimator judges."""
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word
