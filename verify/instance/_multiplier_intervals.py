"""Exact domains of multipliers: intervals with rational ends, one per block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.instance import _integers as integers
from verify.instance._integers import Exact
from verify.kernel.rules import SLOPES


@dataclass(frozen=True)
class Domain:
    """Intervals that contain zero, of the shape of the multipliers.

    Attributes
    ----------
    lo, hi : ndarray of int and Fraction
        The ends times m, integers in units 2^-k; zero where there is none.
    below, above : ndarray of bool
        Whether there is a lower and an upper end.
    m : ndarray of int and Fraction
        Divisors of the ends.
    """

    lo: Exact
    hi: Exact
    k: int
    below: BoolArray
    above: BoolArray
    m: Exact

    def floats(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends rounded to floats, infinite where there is none."""
        m = self.m.astype(np.float64)
        lo, hi = (integers.to_floats(v, self.k) / m for v in (self.lo, self.hi))
        return np.where(self.below, lo, -np.inf), np.where(self.above, hi, np.inf)

    def clip(self, r: Exact, k: int) -> Exact:
        """Return integers in units 2^-k moved into the intervals, ends rounded inwards."""
        up, down = 1 << max(0, k - self.k), 1 << max(0, self.k - k)
        top = (self.hi * up) // (self.m * down)
        bottom = -((-self.lo * up) // (self.m * down))
        r = np.where(self.above, np.minimum(r, top), r)
        return np.asarray(np.where(self.below, np.maximum(r, bottom), r))

    def outside(self, r: Exact, k: int) -> tuple[BoolArray, BoolArray]:
        """Return where numbers in units 2^-k are below and where they are above their interval."""
        scaled = r * self.m * (1 << self.k)
        under = self.below & (scaled < self.lo * (1 << k)).astype(bool)
        over = self.above & (scaled > self.hi * (1 << k)).astype(bool)
        return under, over

    def contains(self, r: int | Fraction, k: int, b: int) -> bool:
        """Whether r 2^-k of block b is inside."""
        lo, hi, scaled = self.lo.flat[b], self.hi.flat[b], r * self.m.flat[b] * (1 << self.k)
        under = self.below.flat[b] and scaled < lo * (1 << k)
        over = self.above.flat[b] and scaled > hi * (1 << k)
        return not (under or over)

    def recoverable(self, r: int | Fraction, k: int, b: int) -> bool:
        """Whether r 2^-k of block b is inside, or beyond an end other than zero."""
        lo, hi, scaled = self.lo.flat[b], self.hi.flat[b], r * self.m.flat[b] * (1 << self.k)
        under = self.below.flat[b] and scaled < lo * (1 << k) and lo == 0
        over = self.above.flat[b] and scaled > hi * (1 << k) and hi == 0
        return not (under or over)


def domain(lo: Exact | None, hi: Exact | None, k: int, m: Exact | int = 1) -> Domain:
    """Return intervals from integer ends in units 2^-k over m; None: no end anywhere."""
    given = lo if lo is not None else hi
    assert given is not None
    shape, none = given.shape, np.zeros(given.shape, dtype=object)
    return Domain(
        none if lo is None else lo,
        none if hi is None else hi,
        k,
        np.full(shape, lo is not None),
        np.full(shape, hi is not None),
        np.broadcast_to(np.asarray(m, dtype=object), shape),
    )


def row_domain(
    kind: str, y: FloatArray, extra: FloatArray, m: IntArray, weight: FloatArray | None = None
) -> Domain | None:
    """Return the intervals of a kind of data rows, None where they are the real line.

    The slopes come from the kernel's own table, so that what is clipped here passes there. They
    are over m, and times the weights.
    """
    found = _slopes(kind, y, extra, m)
    if found is None or weight is None:
        return found
    c, k = integers.dyadic(weight)
    return replace(found, lo=found.lo * c, hi=found.hi * c, k=found.k + k)


def _slopes(kind: str, y: FloatArray, extra: FloatArray, m: IntArray) -> Domain | None:
    each = m.astype(object)
    if kind in SLOPES:
        v, k = integers.dyadic(np.concatenate([y, extra]))
        pairs = zip(v[: len(y)], v[len(y) :], strict=True)
        ends = [SLOPES[kind](a, b, 1 << k) for a, b in pairs]
        if any(pair is None for pair in ends):
            return None
        table = np.array(ends, dtype=object).reshape(-1, 2)
        return domain(table[:, 0], table[:, 1], k, each)
    v, k = integers.dyadic(y)
    return domain(-v, (1 << k) - v if kind == "logistic" else None, k, each)
