"""Exact arithmetic in bulk: arrays of Python integers over one power of two.

A float array becomes an object array of integers, value v 2^-k; sums and products of such arrays
are exact and vectorized. Where a division was needed an entry may be a Fraction instead.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify._arrays import FloatArray

Exact = NDArray[Any]  # dtype object: int, or Fraction where a division was needed


def dyadic(a: FloatArray) -> tuple[Exact, int]:
    """Return (v, k), k >= 0 least, with a = v 2^-k exactly."""
    mantissa, exponent = np.frexp(a)
    whole = (mantissa * 2.0**53).astype(np.int64)
    low = np.bitwise_and(whole, -whole)  # lowest set bit
    zeros = np.where(low > 0, np.log2(np.maximum(low, 1)), 0).astype(np.int64)
    shift = np.where(whole == 0, 0, exponent.astype(np.int64) - 53 + zeros)
    k = int(max(0, -shift.min(initial=0)))
    return (whole >> zeros).astype(object) << (shift + k).astype(object), k


def to_grid(a: FloatArray, k: int) -> Exact:
    """Return the integers closest to a 2^k."""
    mantissa, exponent = np.frexp(a)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = np.where(whole == 0, 0, exponent.astype(np.int64) - 53 + k)
    right = np.clip(-shift, 0, 62)
    rounded = (whole + np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0)) >> right
    return rounded.astype(object) << np.maximum(shift, 0).astype(object)


def to_floats(v: Exact, k: int) -> FloatArray:
    """Return v 2^-k rounded to floats; tiny values underflow to zero."""
    if v.size == 0:
        return np.zeros(v.shape)
    dropped = max(0, int(np.abs(v).max()).bit_length() - 1000)
    small = v // (1 << dropped) if dropped else v
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(small.astype(np.float64), dropped - k)


def grid_exponent(a: FloatArray, bits: int) -> int:
    """Return k >= 0 such that 2^-k is 2^-bits of the largest |a|."""
    top = float(np.abs(a).max(initial=0.0))
    return bits if top == 0 else max(0, bits - int(np.frexp(top)[1]))


def text(v: int | Fraction, k: int) -> str:
    """Return v 2^-k as a witness number of SCHEMA.md: hexadecimal, or a ratio."""
    if not isinstance(v, int):
        x = Fraction(v) / (1 << k)
        return f"{x.numerator:#x}/{x.denominator:#x}"
    if v == 0:
        return "0x0p+0"
    zeros = (v & -v).bit_length() - 1
    return f"{v >> zeros:#x}p{zeros - k:+d}"


def texts(v: Exact, k: int) -> list[Any]:
    """Return a 1-d or 2-d array as nested lists of witness numbers."""
    if v.ndim == 1:
        return [text(x, k) for x in v.tolist()]
    return [[text(x, k) for x in row] for row in v.tolist()]


def solve(a: Exact, b: Exact) -> list[Fraction] | None:
    """Solve a x = b exactly, a (d, r) and b (d,) integers; None where there is no solution.

    Fraction-free elimination (Bareiss): every division is exact, entries stay minors of (a, b).
    Columns that depend on earlier ones get x = 0.
    """
    d, r = a.shape
    rows = np.concatenate([a, b[:, None]], axis=1)
    pivots: list[int] = []
    previous = 1
    for column in range(r):
        top = len(pivots)
        below = [i for i in range(top, d) if rows[i, column]]
        if not below:
            continue
        best = min(below, key=lambda i: abs(rows[i, column]))
        rows[[top, best]] = rows[[best, top]]
        head = rows[top]
        lower = rows[top + 1 :]
        lower[:] = (lower * head[column] - lower[:, column : column + 1] * head) // previous
        previous = head[column]
        pivots.append(column)
        if len(pivots) == d:
            break
    if any(rows[i, r] for i in range(len(pivots), d)):
        return None
    x = [Fraction(0)] * r
    for top in reversed(range(len(pivots))):
        column = pivots[top]
        rest = rows[top, r] - sum(rows[top, c] * x[c] for c in pivots[top + 1 :])
        x[column] = Fraction(rest) / rows[top, column]
    return x
