"""Reading the columns of a data frame, with errors that name argument, row and column."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, real_array
from gtvcvx.interop._library import Table, as_table


class CheckedFrame:
    """A data frame whose columns are read with checks; messages begin with the argument's name.

    Parameters
    ----------
    table : Table
    argument : str
    """

    def __init__(self, table: Table, argument: str) -> None:
        self._table, self._argument = table, argument
        self.names = table.names

    @staticmethod
    def of(frame: Any, argument: str) -> CheckedFrame:
        """Take a data frame of pandas or polars."""
        return CheckedFrame(as_table(frame, argument), argument)

    def rows(self, which: IntArray) -> CheckedFrame:
        """Only these rows."""
        return CheckedFrame(self._table.rows(which), self._argument)

    def check(self, column: Any, argument: str) -> None:
        """Refuse the name of a column that is not there, or there twice."""
        count = self.names.count(column)
        if count != 1:
            there = ", ".join(map(repr, self.names))
            found = "no column" if count == 0 else f"{count} columns"
            raise ValueError(f"{self._argument}: {found} {column!r} ({argument}) in {there}")

    def error(
        self, row: int, column: Any, problem: str, kind: type[Exception] = ValueError
    ) -> Exception:
        """Error that says where in the frame the problem is."""
        place = f", column {column!r}" if column is not None else ""
        return kind(f"{self._argument}: row {self._table.place(row)!r}{place}: {problem}")

    def labels(self, column: Any) -> list[str | int]:
        """Node labels of a column, each a string or an integer."""
        self.check(column, "node column")
        missing = self._table.missing(column)
        if missing.any():
            raise self.error(int(np.argmax(missing)), column, "a node is expected, it is missing")
        labels = [x.item() if isinstance(x, np.generic) else x for x in self._table.values(column)]
        for k, label in enumerate(labels):
            if isinstance(label, bool) or not isinstance(label, (str, int)):
                problem = f"a string or an integer is expected as node label, got {label!r}"
                raise self.error(k, column, problem, TypeError)
            if label == "":
                raise self.error(k, column, "a node is expected, the text is empty")
        return labels

    def positions(
        self, positions: dict[str, int], labels: list[str | int], column: Any
    ) -> IntArray:
        """Position of the node of each row, (N,)."""
        found = np.array([positions.get(str(label), -1) for label in labels], dtype=np.int64)
        unknown = np.flatnonzero(found < 0)
        if unknown.size:
            k = int(unknown[0])
            raise self.error(k, column, f"node {labels[k]!r} is not in the graph")
        return found

    def numbers(self, column: Any, *, missing: bool = False) -> FloatArray:
        """Finite numbers of a column; with ``missing``, NaN where there is none."""
        self.check(column, "number column")
        absent = self._table.missing(column)
        if absent.any() and not missing:
            raise self.error(int(np.argmax(absent)), column, "a number is expected, it is missing")
        values = np.full(len(absent), np.nan)
        try:
            values[~absent] = real_array(self._table.array(column, ~absent), self._argument)
        except TypeError:
            given = self._table.values(column)
            k = next(k for k in np.flatnonzero(~absent).tolist() if not _is_number(given[k]))
            problem = f"a number is expected, got {given[k]!r}"
            raise self.error(k, column, problem, TypeError) from None
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            k = int(infinite[0])
            raise self.error(k, column, f"a finite number is expected, got {values[k]}")
        return values


def _is_number(value: Any) -> bool:
    try:
        real_array([value], "value")
    except TypeError:
        return False
    return True
