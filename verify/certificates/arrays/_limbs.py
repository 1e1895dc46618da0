"""Long integers in compiled code: words of 64 bits, least significant first, two's complement.

All sums are taken modulo 2^(64 W), W the number of words: what overflows on the way does no harm
where the result is shorter. Conservation residuals are: their terms cancel.
"""

from __future__ import annotations

import math

import numpy as np

from verify._arrays import FloatArray
from verify._compiled import compiled
from verify.certificates.arrays._archive import Array

_LOW = np.uint64(0xFFFFFFFF)
_HALF, _WORD, _ZERO, _ONE = np.uint64(32), np.uint64(64), np.uint64(0), np.uint64(1)


@compiled(inner=True)
def _add_word(out, at, word):  # type: ignore[no-untyped-def]
    """Add a word at a place, with carries."""
    while at < len(out) and word != _ZERO:
        total = out[at] + word
        word = _ONE if total < word else _ZERO
        out[at] = total
        at += 1


@compiled(inner=True)
def _subtract_word(out, at, word):  # type: ignore[no-untyped-def]
    """Subtract a word at a place, with borrows."""
    while at < len(out) and word != _ZERO:
        before = out[at]
        out[at] = before - word
        word = _ONE if before < word else _ZERO
        at += 1


@compiled(inner=True)
def _add_product(out, a, b, shift):  # type: ignore[no-untyped-def]
    """Add a b 2^shift, a and b of 64 bits with signs, neither of them -2^63."""
    negative = (a < 0) != (b < 0)
    x, y = np.uint64(abs(a)), np.uint64(abs(b))
    x0, x1, y0, y1 = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    low = x0 * y0
    middle = x1 * y0 + (low >> _HALF)
    other = x0 * y1 + (middle & _LOW)
    high = x1 * y1 + (middle >> _HALF) + (other >> _HALF)
    low = (other << _HALF) | (low & _LOW)
    at, left = shift >> 6, np.uint64(shift & 63)
    top = _ZERO
    if left != _ZERO:
        right = _WORD - left
        top = high >> right
        high = (high << left) | (low >> right)
        low = low << left
    if negative:
        _subtract_word(out, at, low)
        _subtract_word(out, at + 1, high)
        _subtract_word(out, at + 2, top)
    else:
        _add_word(out, at, low)
        _add_word(out, at + 1, high)
        _add_word(out, at + 2, top)


@compiled(inner=True)
def _add(out, other):  # type: ignore[no-untyped-def]
    """Add a long integer."""
    for at in range(len(out)):
        _add_word(out, at, other[at])


@compiled(allocates=False)
def split(x, mantissa, exponent):  # type: ignore[no-untyped-def]
    """Write doubles as odd mantissas times powers of two; zero is 0 times 1."""
    for i in range(len(x)):
        fraction, e = math.frexp(x[i])
        m = np.int64(fraction * 9007199254740992.0)  # 2^53
        e -= 53
        if m == 0:
            e = 0
        else:
            while m & 1 == 0:
                m >>= 1
                e += 1
        mantissa[i], exponent[i] = m, e


@compiled(allocates=False)
def add_rows(out, node, mantissa, exponent, r, shift):  # type: ignore[no-untyped-def]
    """Add B^T r of data rows: x = mantissa 2^exponent, r integers; `shift` makes units equal."""
    for b in range(len(node)):
        for j in range(mantissa.shape[1]):
            if mantissa[b, j] != 0 and r[b] != 0:
                _add_product(out[node[b], j], mantissa[b, j], r[b], exponent[b, j] + shift)


@compiled(allocates=False)
def add_identity(out, node, r, shift):  # type: ignore[no-untyped-def]
    """Add r of identity blocks, integers in units 2^shift."""
    for b in range(len(node)):
        for j in range(r.shape[1]):
            if r[b, j] != 0:
                _add_product(out[node[b], j], r[b, j], 1, shift)


@compiled(allocates=False)
def add_divergence(out, edges, u, shift):  # type: ignore[no-untyped-def]
    """Add D^T u, u integers in units 2^shift."""
    for e in range(len(edges)):
        for j in range(u.shape[1]):
            if u[e, j] != 0:
                _add_product(out[edges[e, 0], j], u[e, j], 1, shift)
                _add_product(out[edges[e, 1], j], -u[e, j], 1, shift)


@compiled(allocates=False)
def route(rho, flow, order, parent, parent_edge, sign):  # type: ignore[no-untyped-def]
    """Carry what is at each node to its parent, leaves first, and note the flow on that edge."""
    for p in range(len(order) - 1, -1, -1):
        i = order[p]
        if parent_edge[i] < 0:
            continue
        for j in range(rho.shape[1]):
            _add(rho[parent[i], j], rho[i, j])
            for k in range(rho.shape[2]):
                if sign[i] > 0:
                    _subtract_word(flow[i, j], k, rho[i, j, k])
                else:
                    _add_word(flow[i, j], k, rho[i, j, k])
                rho[i, j, k] = _ZERO


@compiled(allocates=False)
def to_doubles(long, out, exponent):  # type: ignore[no-untyped-def]
    """Round long integers times 2^-exponent to doubles (within a few units of the last place)."""
    for i in range(len(long)):
        words = long[i]
        last = len(words) - 1
        negative = words[last] >> np.uint64(63) != _ZERO
        total = 0.0
        for k in range(last, -1, -1):
            word = ~words[k] if negative else words[k]
            total += math.ldexp(float(word), 64 * k - exponent)
        out[i] = -total - math.ldexp(1.0, -exponent) if negative else total


def doubles(long: Array, exponent: int) -> FloatArray:
    """Return long integers (..., W) times 2^-exponent, rounded."""
    out = np.empty(long.shape[:-1])
    to_doubles(long.reshape(-1, long.shape[-1]), out.reshape(-1), exponent)
    return out


def integer(words: Array) -> int:
    """Return one long integer as Python has it."""
    return int.from_bytes(np.ascontiguousarray(words, dtype="<u8").tobytes(), "little", signed=True)


def negated(long: Array) -> Array:
    """Return long integers (..., W) times -1."""
    return plus(~long, np.eye(1, long.shape[-1], dtype=np.uint64)[0])


def plus(a: Array, b: Array) -> Array:
    """Return the sums of long integers (..., W)."""
    out = a + b
    carry = out < b
    for k in range(1, out.shape[-1]):
        more = carry[..., k - 1].astype(np.uint64)
        out[..., k] += more
        carry[..., k] |= out[..., k] < more
    return out
