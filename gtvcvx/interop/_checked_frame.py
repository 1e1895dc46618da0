"""Reading the columns of a pandas data frame, with errors that name argument, row and column."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, real_array
from gtvcvx._extras import extra_module


class CheckedFrame:
    """A data frame whose columns are read with checks; messages begin with the argument's name.

    Parameters
    ----------
    frame : pandas.DataFrame
    argument : str
    """

    def __init__(self, frame: Any, argument: str) -> None:
        pandas = extra_module("pandas", "table", "data frames")
        if not isinstance(frame, pandas.DataFrame):
            raise TypeError(
                f"{argument}: a pandas DataFrame is expected, got {type(frame).__name__}"
            )
        self._frame, self._argument = frame, argument
        self.names = list(frame.columns)

    def rows(self, which: IntArray) -> CheckedFrame:
        """Only these rows."""
        return CheckedFrame(self._frame.iloc[which], self._argument)

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
        return kind(f"{self._argument}: row {self._frame.index[row]!r}{place}: {problem}")

    def labels(self, column: Any) -> list[str | int]:
        """Node labels of a column, each a string or an integer."""
        self.check(column, "node column")
        series = self._frame[column]
        missing = series.isna().to_numpy()
        if missing.any():
            raise self.error(int(np.argmax(missing)), column, "a node is expected, it is missing")
        labels = [x.item() if isinstance(x, np.generic) else x for x in series.tolist()]
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
        series = self._frame[column]
        absent = series.isna().to_numpy()
        if absent.any() and not missing:
            raise self.error(int(np.argmax(absent)), column, "a number is expected, it is missing")
        values = np.full(len(series), np.nan)
        present = series[~absent]
        try:
            values[~absent] = real_array(present.to_numpy(), self._argument)
        except TypeError:
            wrong = next(k for k, x in enumerate(present.tolist()) if not _is_number(x))
            k = int(np.flatnonzero(~absent)[wrong])
            problem = f"a number is expected, got {present.tolist()[wrong]!r}"
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
