"""Data files for the command line: CSV by the standard library, Parquet by pyarrow; columns by name.

Read in pieces, so that a big file costs its numbers and not its text. A column that is not numeric is no error until
somebody asks for its numbers: then the sentence names the column, the place and the cell.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
PIECE = 8192  # rows
REMEDY = "Encode it as numbers or fill the gaps; fit can leave it out with --drop."


class DataFileError(ValueError):
    """A data file that cannot be read as a table of numbers."""


@dataclass(frozen=True)
class Flaw:
    """The first cell of a column that is not a finite number."""

    place: str
    cell: str


@dataclass(frozen=True)
class DataFile:
    """The columns of a file: numbers where all cells are finite numbers, texts where asked for."""

    path: str
    n_rows: int
    numbers: dict[str, FloatArray | Flaw]
    texts: dict[str, list[str]]

    def matrix(self, names: Sequence[str]) -> FloatArray:
        """(n, p) the named columns, in that order."""
        missing = [name for name in names if name not in self.numbers]
        if missing:
            raise DataFileError(
                f"{self.path} lacks {len(missing)} of the {len(names)} columns needed, the first being '{missing[0]}'. "
                "Give a file with the columns the model was fitted on."
            )
        return np.column_stack([self._finite(name) for name in names])

    def text(self, name: str) -> list[str]:
        """The cells of a column as texts; none may be empty."""
        if name not in self.texts:
            raise DataFileError(f"{self.path} has no column '{name}'. Its columns are {_few(list(self.numbers))}.")
        cells = self.texts[name]
        if "" in cells:
            raise DataFileError(
                f"Column '{name}' of {self.path} is empty in data row {cells.index('') + 1}. "
                "Fill the gap or leave the row out."
            )
        return cells

    def _finite(self, name: str) -> FloatArray:
        column = self.numbers[name]
        if isinstance(column, Flaw):
            found = f"has the text {column.cell!r}" if column.cell.strip() else "is empty"
            raise DataFileError(f"Column '{name}' of {self.path} {found} in {column.place}. {REMEDY}")
        return column


def read_data(path: str, *, only: Iterable[str] | None = None, texts: Iterable[str] = ()) -> DataFile:
    """Read a file, or standard input for '-'.

    ``only`` names the columns whose numbers are wanted (default: all but ``texts``); ``texts`` names the columns to
    keep as they are written. Names the file lacks are no error here.
    """
    keep_texts = set(texts)
    parquet = path.lower().endswith((".parquet", ".pq"))
    header, pieces = _read_parquet(path) if parquet else _read_csv(path)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataFileError(f"{path} has two columns named '{twice}'. Rename one of them.")
    wanted = [name for name in header if (name not in keep_texts if only is None else name in set(only))]
    data = _gather(path, header, pieces, wanted, [name for name in header if name in keep_texts])
    if data.n_rows == 0:
        raise DataFileError(f"{path} has no rows of data below its header.")
    return data


def _gather(
    path: str, header: list[str], pieces: Iterator[tuple[list[str], list[Sequence[Any]]]], wanted: list[str],
    kept: list[str],
) -> DataFile:  # fmt: skip
    """Turn pieces of (places, columns) into whole columns."""
    at = {name: index for index, name in enumerate(header)}
    parts: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    flaws: dict[str, Flaw] = {}
    texts: dict[str, list[str]] = {name: [] for name in kept}
    n_rows = 0
    for places, columns in pieces:
        n_rows += len(places)
        for name in kept:
            texts[name].extend(_as_text(cell) for cell in columns[at[name]])
        for name in wanted:
            if name not in flaws:
                found = _as_numbers(columns[at[name]], places)
                if isinstance(found, Flaw):
                    flaws[name] = found
                    parts[name].clear()
                else:
                    parts[name].append(found)
    numbers = {name: flaws[name] if name in flaws else np.concatenate([*parts[name], []]) for name in wanted}
    return DataFile(path, n_rows, numbers, texts)


def _as_numbers(cells: Sequence[Any], places: list[str]) -> FloatArray | Flaw:
    try:
        column = np.array(cells, dtype=np.float64)
        if np.isfinite(column).all():
            return column
    except (TypeError, ValueError):
        pass
    index = next(index for index, cell in enumerate(cells) if not _is_number(cell))
    return Flaw(places[index], _as_text(cells[index]))


def _is_number(cell: Any) -> bool:
    try:
        return bool(np.isfinite(np.float64(cell)))
    except (TypeError, ValueError):
        return False


def _as_text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


# CSV


def _read_csv(path: str) -> tuple[list[str], Iterator[tuple[list[str], list[Sequence[Any]]]]]:
    pieces = _csv_pieces(path)
    _, header = next(pieces)
    return [str(name) for (name,) in header], pieces


def _csv_pieces(path: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
    """First the header, one name per column; then rows in pieces, column by column."""
    with _opened(path) as file:
        try:
            first = file.readline()
            if not first.strip():
                raise DataFileError(f"{path} is empty. Give a CSV file whose first line names the columns.")
            delimiter = _delimiter(first)
            header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
            yield [], [[name] for name in header]
            rows = csv.reader(file, delimiter=delimiter)
            while piece := list(islice(_full_rows(rows, len(header), path), PIECE)):
                yield [f"line {line}" for line, _ in piece], list(zip(*(row for _, row in piece), strict=True))
        except csv.Error as error:
            raise DataFileError(f"{path} is not a CSV file: {error}. Give comma-separated text or Parquet.") from None
        except UnicodeError:
            raise DataFileError(f"{path} is not text in UTF-8. Save it as CSV in UTF-8, or as Parquet.") from None


def _full_rows(rows: Any, width: int, path: str) -> Iterator[tuple[int, list[str]]]:
    for row in rows:
        if not row:
            continue
        line = rows.line_num + 1  # the header was read before
        if len(row) != width:
            raise DataFileError(
                f"Line {line} of {path} has {len(row)} cells, but its header names {width} columns. Mend that line."
            )
        yield line, row


def _delimiter(header: str) -> str:
    """A comma, unless the header has none and has semicolons or tabs."""
    return next((mark for mark in ",;\t" if mark in header), ",")


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    if path == "-":
        yield sys.stdin
        return
    with open(path, encoding="utf-8-sig", newline="") as file:
        yield file


# Parquet


def _read_parquet(path: str) -> tuple[list[str], Iterator[tuple[list[str], list[Sequence[Any]]]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataFileError(
            f"Reading {path} needs the package pyarrow, which is not installed. "
            "Install it with: pip install 'softwood[parquet]'."
        ) from None
    try:
        file = parquet.ParquetFile(os.fspath(path))
    except pyarrow.ArrowInvalid as error:
        raise DataFileError(f"{path} is not a Parquet file: {_sentence(error)}") from None
    return list(file.schema_arrow.names), _parquet_pieces(file)


def _parquet_pieces(file: Any) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
    start = 0
    for batch in file.iter_batches(batch_size=PIECE):
        places = [f"data row {start + i + 1}" for i in range(batch.num_rows)]
        yield places, [column.to_pylist() for column in batch.columns]
        start += batch.num_rows


def _sentence(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") + "."


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
