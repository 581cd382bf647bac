"""The command line: fit, predict, show, demo. Results on stdout, narration on stderr, exit code 0, 1 or 2."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from softwood.cli.datafile import DataFileError, read_data
from softwood.cli.demo import DATA, demo
from softwood.cli.options import TASKS, add_estimator_options, estimator_of
from softwood.export.text import printable, tree_text
from softwood.persist import load, save

EXAMPLES = """\
examples:
  softwood fit flowers.csv --target species --out flowers.json
  softwood predict flowers.json new.csv --proba > answers.csv
"""
MAX_CLASSES = 20  # more distinct whole numbers than these are taken for quantities


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            if not args.debug:
                warnings.showwarning = _warn  # one line, without the place in our code
            args.run(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return _fail("Stopped.")
    except Exception as error:
        if args.debug:
            raise
        return _fail(_sentence(error))


# Commands


def _fit(args: argparse.Namespace) -> None:
    data = read_data(args.data, texts=[args.target])
    cells = data.text(args.target)
    names = _features(list(data.numbers), args)
    X = data.matrix(names)
    _check_folder(args.out)
    task, y = _target(cells, args.task)
    _say(args, f"{data.n_rows} rows, {len(names)} columns, target '{printable(args.target)}': {_reason(task, y, args)}")
    estimator = estimator_of(task, args).fit(X, y)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    save(estimator, args.out)
    _say(args, f"{_size(estimator.tree_)}, written to {args.out}")


def _predict(args: argparse.Namespace) -> None:
    estimator = load(args.model)
    names = _feature_names(estimator)
    X = read_data(args.data, only=names).matrix(names)
    vars(estimator).pop("feature_names_in_", None)  # matched here; the rows have no names any more
    header, columns = ["prediction"], [estimator.predict(X).tolist()]
    if args.proba:
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"--proba needs a model of classes, but {args.model} predicts numbers. Leave it out.")
        header += [f"probability_{label}" for label in estimator.classes_]
        columns += estimator.predict_proba(X).T.tolist()
    with _output(args.out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


def _show(args: argparse.Namespace) -> None:
    estimator = load(args.model)
    classes = getattr(estimator, "classes_", None)
    print(f"{type(estimator).__name__} on {estimator.n_features_in_} columns: {_size(estimator.tree_)}")
    if classes is not None:
        print(f"classes: {', '.join(printable(label) for label in classes)}")
    print()
    text = tree_text(
        estimator.tree_,
        feature_names=_feature_names(estimator),
        class_names=classes,
        max_terms=args.max_terms,
        max_depth=args.max_depth,
    )
    print(text, end="")


def _demo(args: argparse.Namespace) -> None:
    demo(args.data, args.max_depth, args.seed, args.threads, say=lambda line: _say(args, line))


# The parts of commands


def _features(columns: list[str], args: argparse.Namespace) -> list[str]:
    for name in args.drop:
        if name not in columns:
            raise DataFileError(f"--drop names '{name}', which is no feature column of {args.data}.")
    names = [name for name in columns if name not in args.drop]
    if not names:
        raise DataFileError(f"{args.data} has no column to learn from besides '{args.target}'.")
    return names


def _target(cells: list[str], task: str) -> tuple[str, npt.NDArray[Any]]:
    """Texts, and whole numbers of few kinds, are classes; all other numbers are quantities."""
    try:
        y = np.array(cells, dtype=np.float64)
        finite = bool(np.isfinite(y).all())
    except ValueError:
        finite = False
    if not finite:
        if task == "regression":
            cell = next(cell for cell in cells if not _is_finite(cell))
            raise DataFileError(f"--task regression needs a target of finite numbers; it has {cell!r}.")
        return "classification", np.array(cells)
    whole = bool((y == np.round(y)).all() and np.abs(y).max() < 2**53)
    if task == "auto":
        task = "classification" if whole and np.unique(y).size <= MAX_CLASSES else "regression"
    if task == "regression":
        return task, y
    return task, y.astype(np.int64) if whole else np.array(cells)


def _is_finite(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _reason(task: str, y: npt.NDArray[Any], args: argparse.Namespace) -> str:
    kinds = np.unique(y).size
    found = f"{kinds} classes" if task == "classification" else f"{kinds} different numbers"
    return f"{task} ({found}; --task {'overrides this' if args.task == 'auto' else 'as given'})"


def _feature_names(estimator: Any) -> list[str]:
    """The names the model was fitted with; a model of plain arrays calls its columns x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def _size(tree: Any) -> str:
    questions = tree.n_nodes - tree.n_leaves
    return f"depth {tree.depth}, {questions} question{'s' * (questions != 1)}, {tree.n_leaves} leaves"


@contextmanager
def _output(path: str) -> Iterator[TextIO]:
    if path == "-":
        yield sys.stdout
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        yield file


def _check_folder(path: str) -> None:
    """A long fit must not end with nowhere to write to."""
    if os.path.isdir(path):
        raise ValueError(f"--out {path} is a folder. Give the name of a file.")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"--out {path} is in a folder that does not exist. Make the folder first.")


# Talking


def _say(args: argparse.Namespace, line: str) -> None:
    if not args.quiet:
        print(line, file=sys.stderr, flush=True)


def _fail(sentence: str) -> int:
    print(f"softwood: {sentence}", file=sys.stderr)
    return 1


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"softwood: warning: {message}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'Input'}: {error.strerror}."
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Use fewer rows or columns."
    if isinstance(error, (ValueError, TypeError, ImportError)):
        return " ".join(str(error).split())
    return f"An unexpected {type(error).__name__}: {error}. Run again with --debug to see where."


# The parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softwood",
        usage="softwood COMMAND [options]",
        description=f"{EXAMPLES}\nDecision trees trained by calculus: soft while they learn, hard when they answer.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"softwood {version('softwood')}")
    commands = parser.add_subparsers(
        title="commands", prog="softwood", metavar="COMMAND", dest="command", required=True
    )
    _fit_parser(commands)
    _predict_parser(commands)
    _show_parser(commands)
    _demo_parser(commands)
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], None], about: str) -> Any:
    parser = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--quiet", action="store_true", help="no narration on stderr")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _fit_parser(commands: Any) -> None:
    parser = _command(commands, "fit", _fit, "Fit a tree to a table and write the model file.")
    parser.add_argument("data", help="CSV with a header line, Parquet, or - for CSV on stdin")
    parser.add_argument("--target", required=True, help="the column to predict")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the model file to write")
    parser.add_argument("--task", choices=["auto", *TASKS], default="auto", help="default: judged by the target")
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help="leave a column out; repeatable")
    _add_run_options(parser)
    add_estimator_options(parser)


def _predict_parser(commands: Any) -> None:
    parser = _command(commands, "predict", _predict, "Answer for each row of a table; columns are matched by name.")
    parser.add_argument("model", help="a model file")
    parser.add_argument("data", help="CSV with a header line, Parquet, or - for CSV on stdin")
    parser.add_argument("--proba", action="store_true", help="add the probability of each class")
    parser.add_argument("--out", default="-", metavar="FILE", help="the CSV file to write (default: - for stdout)")


def _show_parser(commands: Any) -> None:
    parser = _command(commands, "show", _show, "Print a tree as text.")
    parser.add_argument("model", help="a model file")
    parser.add_argument("--max-depth", type=int, metavar="N", help="fold branches below this depth")
    parser.add_argument(
        "--max-terms", type=int, default=4, metavar="N", help="terms of a slanted question (default: 4)"
    )


def _demo_parser(commands: Any) -> None:
    parser = _command(commands, "demo", _demo, "Compare a CART tree and a softwood tree of one depth on built-in data.")
    parser.add_argument("--data", choices=sorted(DATA), default="digits", help="default: digits")
    parser.add_argument("--max-depth", type=int, default=4, metavar="N", help="depth of both trees (default: 4)")
    _add_run_options(parser)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default: 0)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="default: 1; -1 for all cores")
