"""Linear systems of integers, solved exactly by lifting a solution modulo a prime [1].

[1] J. D. Dixon, "Exact solution of linear equations using p-adic expansions", Numerische
    Mathematik 40 (1982).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from verify._arrays import IntArray
from verify._deadline import look
from verify.instance._integers import Exact

PRIME = (1 << 31) - 1  # products of two residues fit into 62 bits
LARGE = 16  # systems of this order and more; below, elimination is as fast


def solve(a: Exact, b: Exact) -> list[Fraction] | None:
    """Solve a x = b, a (d, d) and b (d,) integers; None where a is singular modulo the prime."""
    inverse = _inverse(a)
    if inverse is None:
        return None
    bound = _determinants(a, b)
    modulus, digits, rest = 1, list[IntArray](), b.copy()
    while modulus <= 2 * bound * bound:
        look()
        digit = _times(inverse, (rest % PRIME).astype(np.int64))
        rest = (rest - a @ digit.astype(object)) // PRIME
        digits.append(digit)
        modulus *= PRIME
    return _fractions(_joined(digits), modulus, a, b)


def _inverse(a: Exact) -> IntArray | None:
    """Return the inverse modulo the prime, by elimination."""
    d = len(a)
    rows = np.concatenate([(a % PRIME).astype(np.int64), np.eye(d, dtype=np.int64)], axis=1)
    for k in range(d):
        look()
        pivots = np.flatnonzero(rows[k:, k])
        if len(pivots) == 0:
            return None
        rows[[k, k + pivots[0]]] = rows[[k + pivots[0], k]]
        rows[k] = rows[k] * pow(int(rows[k, k]), -1, PRIME) % PRIME
        others = np.arange(d) != k
        rows[others] = (rows[others] - rows[others, k : k + 1] * rows[k]) % PRIME
    return rows[:, d:]


def _times(a: IntArray, b: IntArray) -> IntArray:
    return np.asarray((a * b % PRIME).sum(axis=1) % PRIME)


def _determinants(a: Exact, b: Exact) -> int:
    """Return a bound of all numerators and denominators: Hadamard's, of a with b as a column."""
    rows = [isqrt(sum(x * x for x in (*row, y))) + 1 for row, y in zip(a, b, strict=True)]
    product = 1
    for x in rows:
        product *= max(1, int(x))
    return product


def _joined(digits: list[IntArray]) -> list[int]:
    """Return the numbers with these digits, the first being the least; by halves."""
    parts, base = [digit.astype(object) for digit in digits], PRIME
    while len(parts) > 1:
        if len(parts) % 2:
            parts.append(np.zeros_like(parts[0]))
        parts = [low + base * high for low, high in zip(parts[::2], parts[1::2], strict=True)]
        base *= base
    return [int(x) for x in parts[0]]


def _fractions(x: list[int], modulus: int, a: Exact, b: Exact) -> list[Fraction] | None:
    """Return the fractions that are x modulo the modulus; None unless they solve a x = b."""
    common = 1
    for value in x:
        common *= _denominator(value * common % modulus, modulus)
    half = modulus // 2
    numerators = [(value * common + half) % modulus - half for value in x]
    if any(a @ np.array(numerators, dtype=object) != common * b):
        return None
    return [Fraction(p, common) for p in numerators]


def _denominator(value: int, modulus: int) -> int:
    """Return the q of the p/q that is the value, both below the root of half the modulus."""
    limit = isqrt(modulus // 2)
    p, q, next_p, next_q = modulus, 0, value, 1
    while next_p > limit:
        quotient = p // next_p
        p, next_p = next_p, p - quotient * next_p
        q, next_q = next_q, q - quotient * next_q
    return abs(next_q)
