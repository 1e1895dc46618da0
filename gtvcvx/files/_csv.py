"""Reading tables of text in chunks, with errors that name file, line and column.

Cells are separated by commas or, where the first line is, by semicolons or tabs. They are stripped
of surrounding blanks, blank lines are skipped; `gtvcvx.files._text` opens the file, gzipped or not.
Nothing here knows what the columns mean.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TextIO

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.files._text import BadText, explained

Label = str | int

# Small, because Python's garbage collector walks over all rows held at a time, again and again.
_CHUNK_ROWS = 512
# Only what str() of the integer gives back: '01', '+1' and '1.0' are strings. Longer digit strings
# are identifiers, and would not fit into an int64.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
# Numbers as spreadsheets of some languages write them: 3,14; and with groups of digits.
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+\.\d*|[-+]?\d{1,3}(?:\.\d{3})+,\d*")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file: their line numbers and their cells, column by column."""

    lines: list[int]
    columns: list[list[str]]


class CsvFile:
    """An open table that is read once, from top to bottom.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    handle : text file
        The open file.
    separator : str
        What stands between cells.
    """

    #: Whether the first row is known to be one of names; in text it may be data.
    named = False

    def __init__(self, path: str, handle: TextIO, separator: str = ",") -> None:
        self.path, self._separator = path, separator
        self._reader = csv.reader(
            handle, strict=True, skipinitialspace=separator != "\t", delimiter=separator
        )

    def first(self) -> tuple[int, list[str]]:
        """Line number and cells of the first row; an empty file is refused."""
        for lines, rows in self._blocks(1):
            if rows:
                return lines[0], list(map(str.strip, rows[0]))
        raise ValueError(f"{self.path}: the file is empty")

    def chunks(self, n_fields: int) -> Iterator[Chunk]:
        """Give the remaining rows; each of them must have ``n_fields`` cells."""
        for lines, rows in self._blocks(_CHUNK_ROWS):
            for line, row in zip(lines, rows, strict=True):
                if len(row) != n_fields:
                    problem = f"{n_fields} cells are expected, found {len(row)}"
                    raise self.error(line, None, problem + self._why_not(n_fields, row))
            columns = [list(map(str.strip, column)) for column in zip(*rows, strict=True)]
            if columns:
                yield Chunk(lines, columns)

    def _why_not(self, n_fields: int, row: Sequence[str]) -> str:
        """Say what is known to lead to a wrong number of cells."""
        if len(row) == n_fields + 1 and not row[-1].strip():
            return ": the line ends in a separator, the first line does not"
        if len(row) > n_fields and self._separator == ",":
            return "; a cell with a comma in it must be quoted, numbers need a decimal point"
        if len(row) == 1 and n_fields > 1:
            for other, name in _SEPARATORS.items():
                if other != self._separator and row[0].count(other) == n_fields - 1:
                    own = _SEPARATORS[self._separator]
                    return f": this line is separated by {name}, the first line by {own}"
        return ""

    def error(self, line: int, column: str | None, problem: str) -> ValueError:
        """Error that says where in the file the problem is."""
        place = f", column {column}" if column is not None else ""
        return ValueError(f"{self.path}, line {line}{place}: {problem}")

    def refuse_empty(self, cells: Sequence[str], lines: Sequence[int], column: str) -> None:
        """Raise when a cell that must hold something is empty."""
        if "" in cells:
            raise self.error(lines[cells.index("")], column, "the cell is empty")

    def floats(self, cells: Sequence[str], lines: Sequence[int], column: str) -> FloatArray:
        """Cells as finite numbers."""
        self.refuse_empty(cells, lines, column)
        try:
            _refuse_python_only(cells)
            values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            k = next(k for k, cell in enumerate(cells) if not is_number(cell))
            raise self.error(lines[k], column, _no_number(cells[k])) from None
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            k = int(wrong[0])
            raise self.error(lines[k], column, f"{cells[k]!r} is not a finite number")
        return values

    def _blocks(self, size: int) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Give blocks of rows that are not blank and the line numbers on which they end."""
        reader = self._reader
        try:
            start = reader.line_num
            while rows := list(islice(reader, size)):
                lines = _line_numbers(rows, start, reader.line_num)
                kept = [k for k, row in enumerate(rows) if len(row) > 1 or "".join(row).strip()]
                if len(kept) < len(rows):
                    lines, rows = [lines[k] for k in kept], [rows[k] for k in kept]
                yield lines, rows
                start = reader.line_num
        except csv.Error as error:
            raise self.error(reader.line_num, None, f"not valid CSV: {error}") from error
        except (UnicodeDecodeError, *BadText) as error:
            raise ValueError(explained(self.path, error)) from error


def _no_number(cell: str) -> str:
    """Say why a cell is not a number, where the reason is a known one."""
    if _GROUPED.fullmatch(cell):
        return f"{cell!r} is not a number here: digits must not be grouped"
    if _DECIMAL_COMMA.fullmatch(cell):
        point = cell.replace(",", ".")
        return (
            f"{cell!r} has a decimal comma, {point} is expected; export with decimal points, or "
            "convert the file, as by pandas.read_csv(..., decimal=',').to_csv(...)"
        )
    return f"{cell!r} is not a number"


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number; NaN and infinities do."""
    try:
        _refuse_python_only([cell])
        float(cell)
    except ValueError:
        return False
    return True


def is_integer(cell: str) -> bool:
    """Whether a cell is an integer in its usual form, without leading zeros or a plus sign."""
    return _INTEGER.fullmatch(cell) is not None


def as_labels(tokens: Iterable[str]) -> list[Label]:
    """Labels as integers if every token is one (``is_integer``), as strings otherwise."""
    strings = list(tokens)
    if all(map(_INTEGER.fullmatch, strings)):
        return list(map(int, strings))
    return list(strings)


def _line_numbers(rows: list[list[str]], start: int, end: int) -> list[int]:
    """Give the last line of each of the rows that fill the lines ``start + 1``, ..., ``end``."""
    if end - start == len(rows):
        return list(range(start + 1, end + 1))
    # Some quoted cell has line breaks in it.
    lengths = (1 + sum(len(_LINE_BREAK.findall(cell)) for cell in row) for row in rows)
    return list(accumulate(lengths, initial=start))[1:]


def node_positions(nodes: Sequence[Label]) -> dict[str, int]:
    """Position of each node label of the graph, by the label's text."""
    positions = {str(label): k for k, label in enumerate(nodes)}
    if len(positions) < len(nodes):
        twice = next(x for k, x in enumerate(nodes) if positions[str(x)] != k)
        raise ValueError(f"nodes: two labels read {str(twice)!r}, a file cannot tell them apart")
    return positions


def _refuse_python_only(cells: Sequence[str]) -> None:
    """Raise on what only Python reads as a number: '1_000', digits of other scripts."""
    text = "".join(cells)
    if "_" in text or not text.isascii():
        for cell in cells:
            if "_" in cell or not cell.isascii():
                raise ValueError(cell)
