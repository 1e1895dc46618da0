"""Data frames of pandas and polars: which library a frame is of, its columns, and new ones.

No package that speaks to both stands between: what is needed of a frame is a handful of calls, and
the interchange protocol of data frames is gone from polars 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gtvcvx._arrays import BoolArray, IntArray
from gtvcvx._extras import extra_module

#: Libraries, and the extras that install them.
EXTRAS = {"pandas": "table", "polars": "polars"}


class Table(Protocol):
    """What reading needs of a data frame."""

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""

    def rows(self, which: IntArray) -> Table:
        """Take these rows only."""

    def place(self, row: int) -> object:
        """Return what a row is called in messages."""

    def missing(self, column: Any) -> BoolArray:
        """Say where a column has no value: None, NaN, NA."""

    def values(self, column: Any) -> list[Any]:
        """Return the values of a column as objects of Python."""

    def array(self, column: Any, which: BoolArray) -> Any:
        """Return the values of a column in these rows as an array."""


class PandasTable:
    """A DataFrame of pandas."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = list(frame.columns)

    def rows(self, which: IntArray) -> PandasTable:
        """Take these rows only."""
        return PandasTable(self._frame.iloc[which])

    def place(self, row: int) -> object:
        """Return the label of a row."""
        return self._frame.index[row]

    def missing(self, column: Any) -> BoolArray:
        """Say where a column has no value."""
        return np.asarray(self._frame[column].isna().to_numpy())

    def values(self, column: Any) -> list[Any]:
        """Return the values of a column."""
        return list(self._frame[column].tolist())

    def array(self, column: Any, which: BoolArray) -> Any:
        """Return the values in these rows."""
        return self._frame[column][which].to_numpy()


class PolarsTable:
    """A DataFrame of polars; rows, which have no labels, are called by their numbers from 0."""

    def __init__(self, frame: Any, numbers: IntArray | None = None) -> None:
        self._frame = frame
        self._numbers = np.arange(frame.height) if numbers is None else numbers
        self.names = list(frame.columns)

    def rows(self, which: IntArray) -> PolarsTable:
        """Take these rows only; they keep their numbers."""
        return PolarsTable(self._frame[which], self._numbers[which])

    def place(self, row: int) -> object:
        """Return the number of a row."""
        return int(self._numbers[row])

    def missing(self, column: Any) -> BoolArray:
        """Say where a column has no value; NaN is none, as in pandas."""
        series = self._frame[column]
        absent = series.is_null()
        if series.dtype.is_float():
            absent = absent | series.is_nan().fill_null(True)
        return np.asarray(absent.to_numpy())

    def values(self, column: Any) -> list[Any]:
        """Return the values of a column."""
        return list(self._frame[column].to_list())

    def array(self, column: Any, which: BoolArray) -> Any:
        """Return the values in these rows."""
        series = self._frame[column]
        kept = series.gather(np.flatnonzero(which))
        # Arrays of text are not real numbers, whatever polars makes of them.
        return kept.to_numpy() if series.dtype.is_numeric() else np.array(kept.to_list(), object)


def as_table(frame: Any, argument: str) -> Table:
    """Take a data frame of either library.

    Raises
    ------
    TypeError
        It is none; what is needed of a library is not imported, since whoever has a frame has it.
    """
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(frame).__mro__}
    if ("pandas", "DataFrame") in kinds:
        return PandasTable(frame)
    if ("polars", "DataFrame") in kinds:
        return PolarsTable(frame)
    hint = "; collect it first" if ("polars", "LazyFrame") in kinds else ""
    raise TypeError(
        f"{argument}: a DataFrame of pandas or polars is expected, got {type(frame).__name__}{hint}"
    )


def check_library(library: str) -> Any:
    """Return the module that makes data frames.

    Raises
    ------
    ValueError, ImportError
        No such library; it is not there.
    """
    if library not in EXTRAS:
        raise ValueError(f"library: one of {tuple(EXTRAS)} is expected, got {library!r}")
    return extra_module(library, EXTRAS[library], f"data frames of {library}")


def polars_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels that one column of polars can hold: integers, or text."""
    for kind in (int, str):
        if all(isinstance(label, kind) and not isinstance(label, bool) for label in labels):
            return list(labels)
    return [str(label) for label in labels]


def new_frame(columns: Mapping[str, Any], library: str) -> Any:
    """Make a data frame of columns of equal length, without an index of its own."""
    return check_library(library).DataFrame(dict(columns))
