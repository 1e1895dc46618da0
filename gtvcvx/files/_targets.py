"""What a target column may hold: numbers, counts, two labels, or labels of several classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.files._csv import CsvFile, is_integer, is_number

# Cells that mark a missing label as often as they are one.
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "?", "-", "."})


class Numbers:
    """Targets that are finite numbers."""

    #: The labels, that of the smallest value first; None if targets are numbers.
    labels: list[str] | None = None

    def read(
        self, file: CsvFile, cells: Sequence[str], lines: Sequence[int], column: str
    ) -> FloatArray:
        """Values of some cells, none of which is empty."""
        return file.floats(cells, lines, column)

    def finished(self, values: FloatArray) -> FloatArray:
        """Values (N,) of all cells, once all have been read."""
        return values


class Counts(Numbers):
    """Targets that are numbers and not negative."""

    def read(
        self, file: CsvFile, cells: Sequence[str], lines: Sequence[int], column: str
    ) -> FloatArray:
        """Values of some cells, none of which is empty."""
        values = file.floats(cells, lines, column)
        wrong = np.flatnonzero(values < 0)
        if wrong.size:
            k = int(wrong[0])
            raise file.error(lines[k], column, f"a count >= 0 is expected, got {cells[k]!r}")
        return values


class Labels(Numbers):
    """Targets whose cells are worth what they are worth where they are met first."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}  # of the cells met so far
        self._path = self._column = ""

    def read(
        self, file: CsvFile, cells: Sequence[str], lines: Sequence[int], column: str
    ) -> FloatArray:
        """Values of some cells, none of which is empty, before they are finished."""
        self._path, self._column = file.path, column
        for cell in dict.fromkeys(cells):
            if cell not in self._values:
                try:
                    self._values[cell] = self._value(cell)
                except ValueError as error:
                    raise file.error(lines[cells.index(cell)], column, str(error)) from None
        return np.fromiter(map(self._values.__getitem__, cells), np.float64, len(cells))

    def _value(self, cell: str) -> float:
        """Value of a cell that has not been met before; ValueError where it is no label."""
        raise NotImplementedError


class TwoLabels(Labels):
    """Targets with two values: two numbers, or two texts in alphabetical order.

    Parameters
    ----------
    low, high : int
        The numbers, and what the two texts become.
    labels : list of two str, optional
        The texts that are expected, if texts are, in their order.
    """

    def __init__(self, low: int, high: int, labels: list[str] | None = None) -> None:
        super().__init__()
        self._ends = (float(low), float(high))
        self._expected = f"{low} or {high}"
        # Values are those of numbers as they are, and of labels their position.
        self._texts: list[str] = list(labels or [])
        if labels is not None:
            self._values = {labels[0]: 0.0, labels[1]: 1.0}

    def finished(self, values: FloatArray) -> FloatArray:
        """Values (N,) of all cells, once all have been read."""
        if not self._texts:
            return values
        if len(self._texts) < 2:
            raise ValueError(
                f"{self._path}: column {self._column} holds one label only, {self._texts[0]!r}; "
                "two are expected"
            )
        self.labels = sorted(self._texts)
        ends = np.array([self._ends[self.labels.index(text)] for text in self._texts])
        return np.asarray(ends[values.astype(np.int64)])

    def _value(self, cell: str) -> float:
        """Value of a cell that has not been met before."""
        if is_number(cell) and cell.lower() not in _MISSING:
            if self._texts:
                raise ValueError(f"the number {cell!r} is among labels such as {self._texts[0]!r}")
            if float(cell) not in self._ends:
                raise ValueError(
                    f"{self._expected} is expected, or one of two labels that are no numbers, "
                    f"got {cell!r}"
                )
            return float(cell)
        if cell.lower() in _MISSING:
            raise ValueError(f"{cell!r} looks like a missing label: leave such cells empty")
        if len(self._values) > len(self._texts):
            raise ValueError(f"{self._expected} is expected as in the rows above, got {cell!r}")
        if len(self._texts) == 2:
            raise ValueError(
                f"{cell!r} is a third label besides {self._texts[0]!r} and {self._texts[1]!r}; "
                "two are expected"
            )
        self._texts.append(cell)
        return float(len(self._texts) - 1)


class ManyLabels(Labels):
    """Targets that are labels of classes: all integers, or all texts; their values are 0, 1, ...

    Integers are in order of size, texts in alphabetical order.

    Parameters
    ----------
    labels : list of str, optional
        The labels that are expected, in their order.
    """

    def __init__(self, labels: list[str] | None = None) -> None:
        super().__init__()
        self.labels = labels
        # Position of each label in order of appearance.
        self._values = {text: float(k) for k, text in enumerate(labels or [])}
        self._integers: bool | None = all(map(is_integer, labels)) if labels else None
        self._known = labels is not None

    def finished(self, values: FloatArray) -> FloatArray:
        """Values (N,) of all cells, once all have been read."""
        if self._known:
            return values
        if len(self._values) < 2:
            raise ValueError(
                f"{self._path}: column {self._column} holds one label only, "
                f"{next(iter(self._values), '')!r}; two or more are expected"
            )
        self.labels = sorted(self._values, key=int if self._integers else None)
        numbers = {text: float(k) for k, text in enumerate(self.labels)}
        return np.array([numbers[text] for text in self._values])[values.astype(np.int64)]

    def _value(self, cell: str) -> float:
        """Give a cell that has not been met before its number."""
        if cell.lower() in _MISSING:
            raise ValueError(f"{cell!r} looks like a missing label: leave such cells empty")
        if self._known:
            raise ValueError(f"{cell!r} is none of the labels of the fit")
        if is_number(cell) and not is_integer(cell):
            raise ValueError(f"a label is expected, an integer or a text, got {cell!r}")
        if self._integers is None:
            self._integers = is_integer(cell)
        if self._integers != is_integer(cell):
            raise ValueError(
                f"{cell!r} is among labels such as {next(iter(self._values))!r}; "
                "all are integers, or none is"
            )
        return float(len(self._values))
