"""The model file: versioned JSON, read without executing anything and trusting nothing, written atomically.

    {"format": "softwood model", "version": 1, "model": {...}}

A tree is flat lists, one entry per node in breadth-first order, so a file cannot hold more nodes than it spells out.
Floats are written with the digits that read back bit-equal. Whatever is wrong with a file is one ModelFileError.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from softwood.lines import Lines
from softwood.question import QUESTIONS, AbstractQuestions
from softwood.record import (
    REMEDY,
    ModelFileError,
    Record,
    integers,
    kind_of,
    listing,
    numbers,
    plain_numbers,
    section,
    shown,
    whole_number,
)
from softwood.topology import Topology
from softwood.tree import Tree

FORMAT = "softwood model"
VERSION = 1
MAX_BYTES = 256 * 2**20
MAX_TABLES = 127  # Tree.table is int8
LINES = ("slopes", "offset", "low", "high")
MAX_FEATURES = 2**31 - 1  # a feature number is int32

StrPath = str | os.PathLike[str]


# Files


def write_json(path: StrPath, record: Record) -> None:
    """Write a record as a model file: the whole file or nothing, and an old file stays until the new one is safe."""
    data = _encoded(record)
    target = os.path.realpath(path)
    draft = f"{target}.{secrets.token_hex(8)}.tmp"
    try:
        try:
            _write_safely(draft, data, like=target)
            os.replace(draft, target)
        except BaseException:
            _remove(draft)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # the user's path, not the draft's


def read_json(path: StrPath) -> Record:
    """The record of a model file."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    try:
        return _unwrapped(_decoded(data))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} is not a usable model file: {error}") from None


def _encoded(record: Record) -> bytes:
    document = {"format": FORMAT, "version": VERSION, "model": record}
    try:
        text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"The model cannot be written as JSON: {error}. Give parameters as plain numbers, texts or None."
        ) from None


def _write_safely(draft: str, data: bytes, like: str) -> None:
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(handle, "wb") as file:
        if os.path.exists(like):
            os.chmod(draft, os.stat(like).st_mode & 0o777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _remove(draft: str) -> None:
    try:
        os.unlink(draft)
    except FileNotFoundError:
        pass


def _decoded(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise ModelFileError(f"it is larger than {MAX_BYTES // 2**20} MiB, the most a model file may be. {REMEDY}")
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_not_a_number)
        if "\\u" in text:  # half a surrogate pair is valid JSON and can never be printed
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ModelFileError(f"its text is not UTF-8 ({error.reason}). {REMEDY}") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(
            f"it is not JSON at line {error.lineno}, column {error.colno} ({error.msg}); it may be cut short. {REMEDY}"
        ) from None
    except RecursionError:
        raise ModelFileError(f"it is nested deeper than any model. {REMEDY}") from None
    except ModelFileError:
        raise
    except ValueError:  # an integer of thousands of digits
        raise ModelFileError(f"it has an integer of more digits than any model needs. {REMEDY}") from None
    return document


def _unwrapped(document: Any) -> Record:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f'it does not say "format": "{FORMAT}". Give a file that softwood saved.')
    version = whole_number(document, "version", 1, 2**31 - 1)
    if version > VERSION:
        raise ModelFileError(
            f"it has version {version}, and this softwood reads versions up to {VERSION}. Install a newer softwood."
        )
    return section(document, "model")


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in record if names.count(name) > 1)
        raise ModelFileError(f"it has the entry {shown(twice)} twice in one place. {REMEDY}")
    return record


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ModelFileError(f"the number {digits[:20]} is out of range. {REMEDY}")
    return number


def _not_a_number(literal: str) -> NoReturn:
    raise ModelFileError(f"it has {literal} where a number must stand. {REMEDY}")


# Trees


def tree_record(tree: Tree) -> Record:
    """A tree as plain lists."""
    lines = {} if tree.lines is None else {"lines": _lines_record(tree.lines)}
    return lines | {
        "n_features": tree.n_features,
        "arity": tree.topology.arity.tolist(),
        "table": tree.table.tolist(),
        "row": tree.row.tolist(),
        "statistics": tree.statistics.tolist(),
        "values": tree.values.tolist(),
        "tables": [{"kind": table.kind, **table.record()} for table in tree.tables],
    }


def tree_from_record(record: Any) -> Tree:
    """Read a tree, trusting nothing in the record."""
    if not isinstance(record, dict):
        raise ModelFileError(f"the tree must be an object, not {kind_of(record)}. {REMEDY}")
    n_features = whole_number(record, "n_features", 1, MAX_FEATURES)
    topology = _topology(record)
    tables = _tables(record, n_features)
    m = topology.n_nodes
    table, row = _links(record, topology, tables)
    statistics, values = numbers(record, "statistics", 2), numbers(record, "values", 2)
    for name, array in (("statistics", statistics), ("values", values)):
        if array.shape[0] != m or array.shape[1] == 0:
            raise ModelFileError(f"{name} must be {m} lists of at least one number, one list per node. {REMEDY}")
    lines = _lines(section(record, "lines"), values, n_features) if "lines" in record else None
    return Tree(topology, tables, table, row, statistics, values, n_features, lines)


def _lines_record(lines: Lines) -> Record:
    return {name: getattr(lines, name).tolist() for name in LINES}


def _lines(record: Record, values: npt.NDArray[np.float64], n_features: int) -> Lines:
    """Lines of as many nodes as there are values, one value each."""
    m = values.shape[0]
    slopes, levels = numbers(record, "slopes", 2), [numbers(record, name, 1) for name in LINES[1:]]
    if values.shape[1] != 1 or slopes.shape != (m, n_features) or any(each.shape != (m,) for each in levels):
        raise ModelFileError(f"lines must have {n_features} slopes and one of each level for {m} nodes. {REMEDY}")
    if (levels[1] > levels[2]).any():
        raise ModelFileError(f"lines must have no low above its high. {REMEDY}")
    return Lines(slopes, *levels)


def _topology(record: Mapping[str, Any]) -> Topology:
    arity = integers(record, "arity", 0, 2)
    if (arity == 1).any():
        raise ModelFileError(f"arity must be 0 (leaf) or 2 for every node, as all questions have two answers. {REMEDY}")
    try:
        return Topology(arity.astype(np.int32))
    except ValueError as error:
        raise ModelFileError(f"{error} {REMEDY}") from None


def _tables(record: Mapping[str, Any], n_features: int) -> tuple[AbstractQuestions, ...]:
    entries = listing(record, "tables")
    if len(entries) > MAX_TABLES:
        raise ModelFileError(f"tables has {len(entries)} entries; at most {MAX_TABLES} are allowed. {REMEDY}")
    return tuple(_questions(entry, f"tables[{index}]", n_features) for index, entry in enumerate(entries))


def _questions(entry: Any, where: str, n_features: int) -> AbstractQuestions:
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        raise ModelFileError(f"{where} must be an object with the text 'kind'. {REMEDY}")
    kind = entry["kind"]
    if kind not in QUESTIONS:
        raise ModelFileError(
            f"{where} has questions of the unknown kind {shown(kind)}; known are {', '.join(sorted(QUESTIONS))}. "
            "Install a newer softwood."
        )
    fields = {name: value for name, value in entry.items() if name != "kind"}
    for name in fields:
        plain_numbers(fields[name], f"{where}.{name}", depth=2)
    try:
        table = QUESTIONS[kind].from_record(fields, n_features)
    except KeyError as error:
        raise ModelFileError(f"{where} lacks the entry {error}. {REMEDY}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{where} is wrong: {error} {REMEDY}") from None
    if not _same(table.record(), fields):  # what was cut, rounded or reshaped on the way in was not a table
        raise ModelFileError(f"{where} is wrong: its lists are not a table of {kind} questions. {REMEDY}")
    return table


def _same(made: Record, given: Record) -> bool:
    return made.keys() == given.keys() and all(
        made[name] == given[name] or (_empty(made[name]) and _empty(given[name])) for name in made
    )


def _empty(rows: list[Any]) -> bool:
    return not rows or all(isinstance(row, list) and not row for row in rows)


def _links(
    record: Mapping[str, Any], topology: Topology, tables: tuple[AbstractQuestions, ...]
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    table = integers(record, "table", -1, len(tables) - 1)
    row = integers(record, "row", 0, 2**31 - 1)
    if table.shape != topology.arity.shape or row.shape != topology.arity.shape:
        raise ModelFileError(f"table and row must have {topology.n_nodes} entries, one per node. {REMEDY}")
    if ((table < 0) != topology.is_leaf).any():
        raise ModelFileError(f"table must be -1 at the leaves and name a table at all other nodes. {REMEDY}")
    sizes = np.array([*(t.n_questions for t in tables), 1])  # the last one serves the leaves' -1
    outside = np.flatnonzero(row >= sizes[table])
    if outside.size:
        raise ModelFileError(f"row[{outside[0]}] is {row[outside[0]]}, outside its table of questions. {REMEDY}")
    return table.astype(np.int8), row.astype(np.int32)
