"""The loss terms of a large document, some nodes at a time, by the rules of JSON documents.

Standard library only.
"""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any, NamedTuple

from verify.kernel import losses, work
from verify.kernel.data import ROWS, term_arrays
from verify.kernel.large.archive import Stream
from verify.kernel.large.content import Content, numbers_of
from verify.kernel.large.layout import FLOAT64, TermHead
from verify.kernel.large.ratios import RatioBalance
from verify.kernel.large.tables import Columns, Table
from verify.kernel.losses import Term
from verify.kernel.numbers import Bounds
from verify.kernel.rules import ENCLOSED
from verify.kernel.verdict import Verdict

ROWS_AT_ONCE = 1 << 12  # data rows or nodes looked at together, more where one node has more
AT_LEAST, NUMBERS = 32, 1 << 17  # at least so many, unless their numbers are more
#: Sums of more ratios than that are enclosed within 2^-FINE each, as `numbers.quotients` does it.
EXACT, FINE = 64, 256


class Part(NamedTuple):
    """Some rows of a term, all those of their nodes: where they are, and the rules for them."""

    start: int
    rows: int
    term: Term


class LargeTerm:
    """A loss term, read from its first node to its last, as often as one likes.

    Raises `Verdict` (UNPROVED) for a loss that has no rule.
    """

    def __init__(self, content: Content, head: TermHead, number: int, d: int) -> None:
        if head.kind == "opaque":
            raise Verdict("UNPROVED", f"no exact rule for the loss {head.name!r}")
        self.content, self.head, self.number, self.d = content, head, number, d
        self.node: array[int] = content.sorted_nodes[head.fields[0].name]
        self.has_rows = head.kind in ROWS
        x = content.scales[head.fields[1].name]
        self.k_x, self.bits_x = (x.exponent, x.bits) if self.has_rows else (0, 1)

    def parts(self, alone: Sequence[int] = ()) -> Iterator[Part]:
        """Yield the term in parts; no node is in two of them.

        The nodes of some rows, in increasing order, are parts of their own.
        """
        streams = [self.content.stream(field.name) for field in self.head.fields[1:]]
        start, rows = 0, self.head.rows
        while start < rows:
            some = max(1, ROWS_AT_ONCE // self.d, min(AT_LEAST, NUMBERS // self.d))
            stop = min(rows, start + some)
            at = bisect_left(alone, start)
            if at < len(alone):
                first = bisect_left(self.node, self.node[alone[at]])
                stop = min(stop, first) if first > start else start + 1
            stop = bisect_right(self.node, self.node[stop - 1])
            yield Part(start, stop - start, self._term(streams, start, stop))
            start = stop

    def _term(self, streams: list[Stream], start: int, stop: int) -> Term:
        """Return the rules for some rows, whose numbers are the next in the streams."""
        count, data = stop - start, dict[str, Any](kind=self.head.kind)
        data["node"] = self.node[start:stop].tolist()
        keys = term_arrays(*self.head.form)
        for key, stream, field in zip(keys, streams, self.head.fields[1:], strict=True):
            work.charge(8 * count * field.columns)
            values = numbers_of(stream.read(FLOAT64 * count * field.columns), "d").tolist()
            if self.head.kind == "box":  # the rules for bounds read texts, as infinity is one
                values = list(map(float.hex, values))
            data[key] = _rows(values, count, field.columns) if self._is_wide(key) else values
        return losses.term_of(data, self.d)

    def _is_wide(self, key: str) -> bool:
        wide = term_arrays(*self.head.form)[key]
        return self.head.wide if wide is None else wide

    def violation(self, w: losses.Table, k: int) -> str | None:
        """Return a constraint that the point with rows w_i 2^-k breaks."""
        if self.head.kind not in ("box", "simplex"):
            return None
        return next(filter(None, (p.term.violation(w, k) for p in self.parts())), None)

    def value(self, w: losses.Table, k: int, rational: int) -> Bounds:
        """Enclose the term at the point with rows w_i 2^-k, some of them ratios."""
        found = []
        for part in self.parts():
            part.term.charge(part.rows if rational else 0, self.d, 0)
            found.append(part.term.value(w, k))
        return Bounds(work.total(b.lo for b in found), work.total(b.hi for b in found))

    def dual(self, r: Table, balance: Columns, ratios: RatioBalance) -> Fraction:
        """Return an upper bound of h*(r), and add B^T r to a balance in units 2^-k of `ratios`."""
        reader, found = r.reader(), list[Fraction]()
        many = sorted(r.ratios) if len(r.ratios) > EXACT else []
        # Weights are denominators, too, and each part may have others.
        coarse = bool(many) or (self.head.weighted and self.head.rows > EXACT)
        for part in self.parts(many):
            columns = reader.take(part.rows)
            part.term.charge(0, 0, 0)
            self._add_image(part, columns, balance, ratios.k - r.k)
            for b in r.rows_of_ratios(part.start, part.rows):
                r.charge_conjugate(b, self.head.kind in ENCLOSED)
                ratios.add(self.node[b], r.ratios[b], self._factors(part, b, ratios.k - r.k))
            columns = r.with_ratios(columns, part.start)
            name = f"dual.r[{self.number}][{part.start}:]"
            bound = self._upper_conjugate(part.term, columns, r.k, name)
            found.append(_rounded_up(bound) if coarse else bound)
        return work.total(found)

    def _upper_conjugate(self, term: Term, columns: Columns, k: int, name: str) -> Fraction:
        if isinstance(term, losses.RowTerm):
            return term.upper_sum(columns[0], k, name)
        return term.upper_conjugate(list(map(list, zip(*columns, strict=True))), k, name)

    def _add_image(self, part: Part, columns: Columns, balance: Columns, shift: int) -> None:
        """Add B^T r of some rows, r in units that are larger by 2^shift."""
        node = self.node[part.start : part.start + part.rows]
        if isinstance(part.term, losses.RowTerm):
            shift -= part.term.k_x
            x = zip(*part.term.x, strict=True)
            columns = [list(map(operator.mul, column, columns[0])) for column in x]
        scale = 1 << shift
        for out, column in zip(balance, columns, strict=True):
            for i, v in zip(node, map(operator.mul, column, repeat(scale)), strict=True):
                out[i] += v

    def _factors(self, part: Part, b: int, shift: int) -> list[int]:
        """Return what multipliers of row b are multiplied by, r in units larger by 2^shift."""
        if not isinstance(part.term, losses.RowTerm):
            return [1 << shift] * self.d
        scale = 1 << (shift - part.term.k_x)
        return [int(x) * scale for x in part.term.x[b - part.start]]

    def lower_moduli(self) -> Iterator[tuple[int, list[Fraction]]]:
        """Yield (node, moduli of strong convexity per coordinate) where the kind proves some."""
        if self.head.kind in ("point", "ridge"):
            for part in self.parts():
                yield from part.term.lower_moduli()


def _rounded_up(x: Fraction) -> Fraction:
    return Fraction(-(-(x.numerator << FINE) // x.denominator), 1 << FINE)


def _rows(values: list[Any], count: int, width: int) -> list[list[Any]]:
    return [values[i * width : (i + 1) * width] for i in range(count)]
