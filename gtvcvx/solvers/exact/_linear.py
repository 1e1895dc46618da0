"""Exact solution of symmetric positive semidefinite integer systems, singular ones included.

Small systems are eliminated without fractions [1]_. Large ones are solved modulo a prime p, lifted
to a solution modulo a power of p [2]_, and read back as rationals [3]_: for K unknowns that takes
O(K) products of a matrix and a vector with small entries in place of K^3 operations on long
integers. Every answer is checked in the integers, so an unlucky prime costs time, never truth.

References
----------
.. [1] E. H. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination",
   Mathematics of Computation 22, 1968.
.. [2] J. D. Dixon, "Exact solution of linear equations using p-adic expansions", Numerische
   Mathematik 40, 1982.
.. [3] P. S. Wang, "A p-adic algorithm for univariate partial fractions", SYMSAC 1981.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx._deadline import look
from gtvcvx.solvers.exact._data import Integers, integers

PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563, 2147483549)
# Up to this many unknowns elimination is the faster way.
ELIMINATED = 10
# Bits beyond those of a numerator that make a false one improbable.
MARGIN = 64
HALF = 16  # bits; products of two halves, summed over a row, are exact in double precision


@dataclass(frozen=True)
class Rational:
    """The vector numerators / denominator, denominator > 0."""

    numerators: Integers
    denominator: int
    unique: bool = True  # as the solution of a system


@dataclass(frozen=True)
class Ray:
    """Integer vector z with A z = 0 and b^T z > 0: A x = b has no solution."""

    direction: Integers


def solve_semidefinite(A: Integers, b: Integers, start: Rational) -> Rational | Ray:
    """Solve A x = b for symmetric positive semidefinite A, or show that there is no solution.

    Where the solution is not unique, some unknowns keep their values of start and the others
    follow from them.

    Parameters
    ----------
    A : integers (K, K)
    b : integers (K,)
    start : Rational, of length K
    """
    for prime in PRIMES:
        swept, basis = _sweep(A, prime)
        free = np.setdiff1d(np.arange(len(b)), basis, assume_unique=True)
        core = _Core(A[np.ix_(basis, basis)], swept[np.ix_(basis, basis)], prime)
        found = _with_free(A, b, start, core, basis, free)
        if found is not None:
            return found
    raise ArithmeticError("no prime fits: the matrix is not symmetric positive semidefinite")


def _with_free(
    A: Integers, b: Integers, start: Rational, core: _Core, basis: IntArray, free: IntArray
) -> Rational | Ray | None:
    """Solution or ray from a largest nonsingular principal part; None if it is not the largest."""
    coupling = A[np.ix_(basis, free)]
    given = start.numerators[free]
    x = core.solve(b[basis] * start.denominator - coupling.dot(given))
    solution = integers((len(b),))
    solution[basis], solution[free] = x.numerators, given * x.denominator
    denominator = x.denominator * start.denominator
    if _is_zero(A.dot(solution) - b * denominator):
        return Rational(solution, denominator, unique=len(free) == 0)
    for position, unknown in enumerate(free):
        x = core.solve(-coupling[:, position])
        ray = integers((len(b),))
        ray[basis], ray[unknown] = x.numerators, x.denominator
        if not _is_zero(A.dot(ray)):
            return None
        gain = b.dot(ray)
        if gain != 0:
            return Ray(ray if gain > 0 else -ray)
    return None


def _is_zero(values: Integers) -> bool:
    return all(value == 0 for value in values)


def _sweep(A: Integers, prime: int) -> tuple[IntArray, IntArray]:
    """Sweep A modulo a prime on every diagonal entry that is not zero when its turn comes.

    Returns the swept matrix, whose part on the swept rows and columns is the inverse of that part
    of A, and the swept rows. A zero on the diagonal of a semidefinite Schur complement means a
    row of zeros, so no later pivot brings it back and no other pivoting is needed.
    """
    M = (A % prime).astype(np.int64)
    basis = []
    for k in range(len(M)):
        pivot = int(M[k, k])
        if pivot == 0:
            continue
        inverse = pow(pivot, -1, prime)
        column = M[:, k].copy()
        row = M[k] * inverse % prime
        M = (M - column[:, None] * row % prime) % prime
        M[:, k] = -column * inverse % prime
        M[k] = row
        M[k, k] = inverse
        basis.append(k)
    return M, np.array(basis, dtype=np.int64)


class _Core:
    """A nonsingular symmetric matrix and its inverse modulo a prime."""

    def __init__(self, A: Integers, inverse: IntArray, prime: int) -> None:
        # A common factor would only make the numbers longer.
        self._factor = max(math.gcd(*A.ravel().tolist()), 1)
        self._A = A // self._factor
        self._inverse, self._prime = inverse * (self._factor % prime) % prime, prime

    def solve(self, b: Integers) -> Rational:
        """Solve A x = b; the answer is right if A is positive definite."""
        if len(b) == 0 or _is_zero(b):
            return Rational(integers((len(b),)), 1)
        if len(b) <= ELIMINATED:
            x = _eliminate(self._A, b)
        else:
            x = _Lifting(self._A, self._inverse, self._prime).solve(b)
        return Rational(x.numerators, x.denominator * self._factor)


def _eliminate(A: Integers, b: Integers) -> Rational:
    """Solve by fraction-free Gauss-Jordan elimination; all leading minors of A are positive."""
    rows = np.column_stack([A, b])
    previous = 1
    for k in range(len(b)):
        look()
        pivot = rows[k].copy()
        column = rows[:, k].copy()
        # Every entry becomes a minor of (A, b), so the division leaves no remainder.
        rows = (pivot[k] * rows - column[:, None] * pivot[None, :]) // previous
        rows[k] = pivot
        previous = pivot[k]
    return Rational(rows[:, -1], int(previous))


class _Lifting:
    """Dixon's lifting: from the inverse modulo p to the rational solution."""

    def __init__(self, A: Integers, inverse: IntArray, prime: int) -> None:
        self._prime = prime
        self._rows, self._columns = np.nonzero(A)
        self._entries = A[self._rows, self._columns]
        self._starts = np.searchsorted(self._rows, np.arange(len(A)))
        low = inverse & ((1 << HALF) - 1)
        self._inverse = np.vstack([low, inverse >> HALF]).astype(np.float64)
        self._row_bits = [_norm_bits(row) for row in A]
        self._diagonal_bits = sum(_bits(A[i, i]) for i in range(len(A)))

    def solve(self, b: Integers) -> Rational:
        """Solve A x = b."""
        # Hadamard: determinant and, by Cramer's rule, numerators are no longer than this.
        numerator_bits = sum(self._row_bits) - min(self._row_bits) + _norm_bits(b)
        bits = numerator_bits + max(self._diagonal_bits + 2, MARGIN)
        n_digits = _n_digits(bits, self._prime)
        return _rational(self._digits(b, n_digits), self._prime, numerator_bits)

    def _digits(self, b: Integers, n_digits: int) -> list[Integers]:
        """p-adic digits of the solution, least first."""
        digits = []
        residual = b
        for _ in range(n_digits):
            look()
            digit = self._apply_inverse((residual % self._prime).astype(np.int64)).astype(object)
            digits.append(digit)
            products = self._entries * digit[self._columns]
            residual = (residual - np.add.reduceat(products, self._starts)) // self._prime
        return digits

    def _apply_inverse(self, x: IntArray) -> IntArray:
        """Inverse times x modulo p, by halves of 16 bits in double precision."""
        size = len(x)
        halves = np.column_stack([x & ((1 << HALF) - 1), x >> HALF]).astype(np.float64)
        parts = (self._inverse @ halves).astype(np.int64) % self._prime
        middle = (parts[:size, 1] + parts[size:, 0]) % self._prime
        high = (parts[size:, 1] << HALF) % self._prime
        out: IntArray = (parts[:size, 0] + ((middle + high) % self._prime << HALF)) % self._prime
        return out


def _bits(x: int) -> int:
    return abs(x).bit_length()


def _norm_bits(row: Integers) -> int:
    """Bits of a bound on the Euclidean norm."""
    return math.isqrt(int(row.dot(row))).bit_length() + 1


def _n_digits(bits: int, prime: int) -> int:
    """Return how many digits make a modulus of more than so many bits."""
    return bits // (prime.bit_length() - 1) + 1


def _joined(digits: Sequence[Integers], prime: int) -> Integers:
    """Numbers with these digits, least first."""
    while len(digits) > 1:
        pairs = [low + prime * high for low, high in zip(digits[::2], digits[1::2], strict=False)]
        digits = pairs + list(digits[2 * len(pairs) :])
        prime *= prime
    return digits[0]


def _rational(digits: Sequence[Integers], prime: int, bits: int) -> Rational:
    """Rationals with a common denominator, numerators of at most so many bits, from p-adic digits.

    One entry tells the denominator. For the others the digits of a numerator are enough; so many
    more that a short number does not come about by chance show where the denominator has to grow.
    """
    few = _n_digits(bits + MARGIN, prime)
    modulus, short = prime ** len(digits), prime**few
    residues = _joined(digits[:few], prime)
    denominator = 1
    found = []
    for position, residue in enumerate(residues):
        numerator = _balanced(denominator * residue, short)
        if numerator.bit_length() > bits:
            full = _joined([digit[position : position + 1] for digit in digits], prime)[0]
            denominator *= _denominator(denominator * full % modulus, modulus, 1 << bits)
            numerator = _balanced(denominator * residue, short)
        found.append((numerator, denominator))
    numerators = integers((len(found),))
    for position, (numerator, at_the_time) in enumerate(found):
        numerators[position] = numerator * (denominator // at_the_time)
    return Rational(numerators, denominator)


def _balanced(x: int, modulus: int) -> int:
    """Return the residue of x of least absolute value."""
    x %= modulus
    return x - modulus if 2 * x > modulus else x


def _denominator(residue: int, modulus: int, bound: int) -> int:
    """Return the least q > 0 for which q times the residue is at most bound: Euclid, half way."""
    a, b = modulus, residue
    before, q = 0, 1
    while b > bound:
        quotient, rest = divmod(a, b)
        a, b = b, rest
        before, q = q, before - quotient * q
    return abs(q)
