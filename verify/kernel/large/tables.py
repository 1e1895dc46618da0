"""Tables of witness numbers and of doubles, as integers over one power of two, piece by piece.

Standard library only.
"""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import repeat
from math import lcm
from typing import Any

from verify.kernel import work
from verify.kernel.large.content import Content, Scale, numbers_of
from verify.kernel.large.layout import Field, Layer, TableHead
from verify.kernel.numbers import Number

Columns = list[list[Number]]
# Products of a double and a power of two are exact, if neither they nor the power overflow.
_LARGEST_POWER = 1000


def integers(values: Iterable[float], scale: Scale, k: int) -> list[Number]:
    """Return doubles as integers in units of 2^-k, of which they are known to be multiples."""
    own = scale.exponent
    if max(own, scale.bits) > _LARGEST_POWER:
        found: list[Number] = [n * (1 << own) // q for n, q in map(float.as_integer_ratio, values)]
    else:
        found = list(map(int, map(operator.mul, values, repeat(2.0**own))))
    return shifted(found, k - own)


def common_denominator(denominators: Iterable[int]) -> int:
    """Return a multiple of all of these, and count what it takes to find it."""
    common = 1
    for q in denominators:
        work.charge(work.addition(common.bit_length(), q.bit_length()))
        common = common if common % q == 0 else lcm(common, q)
    return common


def shifted(values: list[Number], by: int) -> list[Number]:
    """Return integers in units smaller by 2^-by, by >= 0."""
    scale = 1 << by
    return [x * scale for x in values] if by else values


class Table:
    """A table that is read from its first row to its last, as often as one likes.

    Attributes
    ----------
    k : int
        All numbers are multiples of 2^-k, but for ratios.
    bits : int
        The most that a number has in that unit, but for ratios.
    ratios : dict
        Rows of ratios, in units 2^-k, which are to be added.
    """

    def __init__(self, content: Content, head: TableHead) -> None:
        self.content, self.head = content, head
        scales = [_unit(content, layer) for layer in head.layers]
        self.k = max([0, *(k for k, _ in scales)])
        self.bits = max((bits + self.k - k for k, bits in scales), default=0) + len(scales)
        self.ratios = self._ratios()

    def reader(self) -> Reader:
        """Return a reader that begins at the first row."""
        return Reader(self)

    def _ratios(self) -> dict[int, list[Number]]:
        found: dict[int, list[Number]] = {}
        for layer in self.head.layers:
            scale = 1 << (self.k - layer.exponent) if layer.ratios else 1
            for i, row in (layer.ratios or {}).items():
                size = scale.bit_length()
                work.charge(sum(work.addition(work.length(x), size) for x in row))
                row = [_whole(x * scale) for x in row]
                if i in found:
                    work.charge(2 * self._cost(row))
                    row = [_whole(a + x) for a, x in zip(found[i], row, strict=True)]
                found[i] = row
        return found

    def _cost(self, row: list[Number]) -> int:
        """Return the steps of an operation with each of these ratios and a number of the table."""
        return sum(work.fraction(work.length(x) + self.k + self.bits) for x in row)

    def cost(self, i: int) -> int:
        """Return the steps of an operation with products of the ratios of row i."""
        return sum(work.fraction(2 * (work.length(x) + self.k + self.bits)) for x in self.ratios[i])

    def charge_conjugate(self, i: int, enclosed: bool) -> None:
        """Count what a conjugate of the ratios of row i takes: squares, or logarithms."""
        work.charge(20 * self.cost(i) if enclosed else self.cost(i) + 500 * len(self.ratios[i]))
        if len(self.ratios[i]) > 1:
            self.charge_sums(i)

    def charge_sums(self, i: int) -> None:
        """Count what sums of the ratios of row i take, and of their squares.

        They grow until they are over a common denominator.
        """
        common = common_denominator(x.denominator for x in self.ratios[i])
        work.charge(3 * len(self.ratios[i]) * work.fraction(2 * common.bit_length()))

    def columns(self) -> Columns:
        """Return the whole table, ratios included."""
        return self.with_ratios(self.reader().take(self.head.rows), 0)

    def with_ratios(self, columns: Columns, start: int) -> Columns:
        """Add the ratios of the rows in these columns, the first of which is `start`."""
        count = len(columns[0])
        for i in self.rows_of_ratios(start, count):
            row = self.ratios[i]
            work.charge(self._cost(row))
            for column, x in zip(columns, row, strict=True):
                column[i - start] += x
        return columns

    def rows_of_ratios(self, start: int, count: int) -> list[int]:
        """Return which of the rows from `start` on have ratios."""
        if not self.ratios:
            return []
        work.charge(count)
        return [i for i in range(start, start + count) if i in self.ratios]


def _unit(content: Content, layer: Layer) -> tuple[int, int]:
    """Return (k, bits) of a layer: it has integers of so many bits in units 2^-k.

    Ratios are counted where they are read; they take no part in bulk.
    """
    if layer.ratios is not None:
        return layer.exponent, 0
    if layer.words:
        return layer.exponent, 64 * layer.words
    scale = content.scales[layer.name]
    return scale.exponent, scale.bits


class Reader:
    """Reads rows of a table, one after the other."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.at = 0
        arrays = [layer for layer in table.head.layers if layer.ratios is None]
        self._layers = [_LayerReader(table, layer) for layer in arrays]

    def take(self, count: int) -> Columns:
        """Return the next rows without their ratios, as columns of integers in units 2^-k."""
        width = self.table.head.columns
        # Counted before anything is made; no other bound is on the columns of an empty table.
        work.read(count * width * max(1, len(self._layers)), self.table.bits, [], 0)
        found: Columns = []
        for layer in self._layers:
            if layer.dense:
                own = layer.take(count)
                found = [_sum(a, b) for a, b in zip(found, own, strict=True)] if found else own
        found = found or [[0] * count for _ in range(width)]
        for layer in self._layers:
            if not layer.dense:
                layer.add_to(found, self.at, count)
        self.at += count
        return found


def _sum(a: list[Number], b: list[Number]) -> list[Number]:
    return list(map(operator.add, a, b))


class _LayerReader:
    def __init__(self, table: Table, layer: Layer) -> None:
        self.layer, self.width, self.k = layer, table.head.columns, table.k
        self.dense = layer.rows is None
        self.rows: array[int] = array("I")
        content = table.content
        self.stream = content.stream(layer.name)
        self.scale = None if layer.words else content.scales[layer.name]
        if layer.rows is not None:
            work.charge(layer.rows)
            for piece in content.numbers(Field(f"{layer.name}/rows", layer.rows, 1, 4)):
                self.rows.extend(piece)

    def add_to(self, columns: Columns, start: int, count: int) -> None:
        """Add the rows of a sparse layer that are among so many, the first being `start`."""
        first, last = bisect_left(self.rows, start), bisect_left(self.rows, start + count)
        chosen = self.rows[first:last]
        if not chosen:
            return
        for column, values in zip(columns, self.take(len(chosen)), strict=True):
            for i, x in zip(chosen, values, strict=True):
                column[i - start] += x

    def take(self, count: int) -> Columns:
        """Return the next rows of a layer with arrays, by columns."""
        words, width = max(1, self.layer.words), self.width
        raw = self.stream.read(8 * words * width * count)
        if self.scale is not None:
            doubles = numbers_of(raw, "d")
            return [integers(doubles[c::width], self.scale, self.k) for c in range(width)]
        shift = self.k - self.layer.exponent
        # Read once for all columns, of which there may be more than rows.
        signed, unsigned = numbers_of(raw, "q"), numbers_of(raw, "Q")
        columns = (_words(signed, unsigned, words, width, c) for c in range(width))
        return [shifted(column, shift) for column in columns]


def _words(
    signed: array[Any], unsigned: array[Any], words: int, width: int, column: int
) -> list[Number]:
    """Return a column of integers of so many words each, the most significant one being last."""
    step = words * width
    top = list(signed[column * words + words - 1 :: step])
    for word in reversed(range(words - 1)):
        lower = unsigned[column * words + word :: step]
        top = [(high << 64) | low for high, low in zip(top, lower, strict=True)]
    return top


def _whole(x: Number) -> Number:
    return x.numerator if x.denominator == 1 else x
