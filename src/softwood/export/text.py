"""A tree as indented text: each question in the user's names and units, rows and answers on every line.

    petal width > 0.8  [150 rows]
    |-- no: setosa 100%  [50 rows]
    `-- yes: petal width > 1.75  [100 rows]
        |-- no: versicolor 91%, virginica 9%  [54 rows]
        `-- yes: virginica 98%, versicolor 2%  [46 rows]

Plain ASCII, so that it survives any terminal and any log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood.lines import Lines
from softwood.question import AbstractQuestions, Linears
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
MAX_CLASSES = 3  # class shares shown on a line


@dataclass(frozen=True)
class Words:
    """How to say things about one tree."""

    features: Sequence[str]
    classes: Sequence[str] | None  # None: the tree predicts numbers
    spreads: FloatArray  # (p,) how far each column varies
    max_terms: int
    digits: int  # of a predicted number


def tree_text(
    tree: Tree,
    *,
    feature_names: Sequence[object] | None = None,
    class_names: Sequence[object] | None = None,
    spreads: npt.ArrayLike | None = None,
    max_terms: int = 4,
    max_depth: int | None = None,
) -> str:
    """Write a tree as text.

    Parameters
    ----------
    tree : Tree
        The tree.
    feature_names : sequence of n_features names, optional
        Default: x0, x1, ...
    class_names : sequence of names, optional
        One per value of a leaf; without them the values are printed as numbers.
    spreads : array of n_features numbers, optional
        How far each column varies; a term's size is its absolute weight times this. Default: 1 for every column.
    max_terms : int, default 4
        Terms of a slanted question to print; the smaller ones are counted as "12 more".
    max_depth : int, optional
        Depth below which branches are folded.
    """
    words = Words(
        features=_names(feature_names, tree.n_features, "feature_names", "x"),
        classes=None if class_names is None else _names(class_names, tree.values.shape[1], "class_names", ""),
        spreads=_spreads(spreads, tree.n_features),
        max_terms=_at_least(max_terms, 1, "max_terms"),
        digits=_digits(tree.values),
    )
    limit = tree.depth if max_depth is None else _at_least(max_depth, 0, "max_depth")
    return "".join(f"{line}\n" for line in _lines(tree, words, limit))


def _lines(tree: Tree, words: Words, limit: int) -> Iterator[str]:
    stack = [(0, "", "")]  # node, what stands before its line, what stands before its branch
    while stack:
        node, lead, indent = stack.pop()
        folded = not tree.topology.is_leaf[node] and tree.topology.level_of[node] >= limit
        yield f"{lead}{_line(tree, node, words, folded)}"
        if not folded:
            stack.extend(reversed(_branches(tree, node, indent)))


def _branches(tree: Tree, node: int, indent: str) -> list[tuple[int, str, str]]:
    first, arity = int(tree.topology.first_child[node]), int(tree.topology.arity[node])
    answers = ["no", "yes"] if arity == 2 else [str(child) for child in range(arity)]
    return [
        (first + child, f"{indent}|-- {answer}: ", f"{indent}|   ")
        if child + 1 < arity
        else (first + child, f"{indent}`-- {answer}: ", f"{indent}    ")
        for child, answer in enumerate(answers)
    ]


def _line(tree: Tree, node: int, words: Words, folded: bool) -> str:
    rows = _rows(tree.statistics[node], tree.values.shape[1])
    if tree.topology.is_leaf[node]:
        said = _answer(tree.values[node], words) if tree.lines is None else _line_answer(tree.lines, node, words)
        return f"{said}  [{rows}]"
    if folded:
        return f"{_answer(tree.values[node], words)}  [{rows}; {_questions_below(tree, node)} folded]"
    table, k = tree.question(node)
    return f"{question_text(table, k, words)}  [{rows}]"


def _rows(statistics: FloatArray, n_values: int) -> str:
    """Class counts add up to the rows; of moments the first is the rows."""
    count = float(statistics.sum()) if statistics.size == n_values else float(statistics[0])
    if abs(count - round(count)) < 1e-6 * max(1.0, abs(count)):
        return f"{count:,.0f} row{'' if round(count) == 1 else 's'}"
    return f"{count:,.4g} rows"


def _answer(value: FloatArray, words: Words) -> str:
    if words.classes is None:
        return ", ".join(f"{number:.{words.digits}g}" for number in value)
    order = [int(c) for c in np.argsort(-value, kind="stable") if value[c] >= 0.005] or [int(np.argmax(value))]
    shares = ", ".join(f"{words.classes[c]} {100 * value[c]:.0f}%" for c in order[:MAX_CLASSES])
    return shares if len(order) <= MAX_CLASSES else f"{shares}, ..."


def _line_answer(lines: Lines, node: int, words: Words) -> str:
    """A linear leaf, and the limits it is held in."""
    offset, low, high = (f"{each[node]:.{words.digits}g}" for each in (lines.offset, lines.low, lines.high))
    terms = _terms(lines.slopes[node], np.flatnonzero(lines.slopes[node]), words)
    return " ".join([offset, *terms, f"within {low} to {high}"]) if terms else offset


def _questions_below(tree: Tree, node: int) -> str:
    count, level = 0, [node]
    while level:
        asking = [k for k in level if not tree.topology.is_leaf[k]]
        count += len(asking)
        level = [int(tree.topology.first_child[k]) + c for k in asking for c in range(int(tree.topology.arity[k]))]
    return f"{count} question{'' if count == 1 else 's'}"


@singledispatch
def question_text(table: AbstractQuestions, k: int, words: Words) -> str:
    """Question k of a table; kinds with many terms have a shorter way to say it."""
    return table.text(k, words.features)


@question_text.register
def _(table: Linears, k: int, words: Words) -> str:
    shown = _terms(table.weights[k], table.features(k), words)
    left = " ".join(shown).removeprefix("+ ") or "0"
    return f"{left} > {0.0 - table.bias[k]:.4g}"


def _terms(weights: FloatArray, used: npt.NDArray[Any], words: Words) -> list[str]:
    """The terms of a weighted sum, the largest first; the smallest are only counted."""
    order = used[np.argsort(-np.abs(weights[used]) * words.spreads[used], kind="stable")]
    shown = [_term(float(weights[j]), words.features[j]) for j in order[: words.max_terms]]
    if order.size > words.max_terms:
        shown.append(f"+ {order.size - words.max_terms} more")
    return shown


def _term(weight: float, name: str) -> str:
    return f"{'-' if weight < 0 else '+'} {abs(weight):.3g} {name}"


def printable(name: object) -> str:
    """A name as it may be printed: what could steer a terminal becomes a question mark."""
    return "".join(c if c.isprintable() else "?" for c in str(name))


def _names(given: Sequence[object] | None, count: int, what: str, prefix: str) -> list[str]:
    if given is None:
        return [f"{prefix}{j}" for j in range(count)]
    if len(given) != count:
        raise ValueError(f"{what} must have {count} names, one for each; got {len(given)}.")
    return [printable(name) for name in given]


def _spreads(given: npt.ArrayLike | None, n_features: int) -> FloatArray:
    spreads = np.ones(n_features) if given is None else np.asarray(given, dtype=np.float64)
    if spreads.shape != (n_features,):
        raise ValueError(f"spreads must have {n_features} numbers, one per feature; got shape {spreads.shape}.")
    return spreads


def _digits(values: FloatArray) -> int:
    """Significant digits that tell the nodes' values apart: five of what they differ by."""
    with np.errstate(over="ignore"):
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
    return 6 if not 0 < spread < largest else min(17, 5 + int(np.log10(largest / spread)))


def _at_least(value: int, low: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}; got {value!r}.")
    return int(value)
