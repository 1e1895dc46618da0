"""The constants of Theorem 2 as rational numbers, for ties that floating point cannot decide.

Quadratic losses make H_i, the cluster minimizer and its gradients rational. So are beta and alpha
for l1 and linf, and for l2 if every H_i is diagonal (point losses, d = 1, ...). The l2 norm of a
gradient is enclosed to 200 bits, and exact if it is a perfect square. Maxima over sign vectors in
more than `SIGN_DIMENSION` dimensions are enclosed too, and often exactly: the bounds of a diagonal
matrix are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from verify._arrays import IntArray
from verify.instance._roots import inverted
from verify.kernel.constants import SIGN_DIMENSION
from verify.kernel.quadratic_forms import largest_sign_form
from verify.partitions._data import ProblemData
from verify.partitions.constants._directions import best_signs

Vector = list[Fraction]
Matrix = list[Vector]
_BITS = 200


@dataclass(frozen=True)
class RationalConstants:
    """Enclosures of alpha of one cluster, and of beta and delta of each of its nodes; minimizer.

    The directions prove alpha <= alpha_hi and beta >= beta_lo.
    """

    alpha_lo: Fraction
    alpha_hi: Fraction
    center: Vector
    beta_lo: Vector
    beta_hi: Vector
    delta_lo: Vector
    delta_hi: Vector
    alpha_direction: Vector
    beta_directions: Matrix


def rational_constants(data: ProblemData, members: IntArray, norm: str) -> RationalConstants | None:
    """Enclose the constants of one cluster in rationals; None where they are not rational."""
    d = data.dim
    local = [_quadratic(data, int(node)) for node in members]
    quadratics = [part for part in local if part is not None]
    if len(quadratics) < len(local):
        return None
    hessians = [h for h, _ in quadratics]
    diagonal = all(h[i][j] == 0 for h in hessians for i in range(d) for j in range(d) if i != j)
    if norm == "l2" and not diagonal:
        return None
    total = [[sum((h[i][j] for h in hessians), Fraction(0)) for j in range(d)] for i in range(d)]
    inverse = inverted(total)
    if inverse is None:
        return None
    slope = [-sum((q[i] for _, q in quadratics), Fraction(0)) for i in range(d)]
    center = [_dot(row, slope) for row in inverse]
    delta = [
        _dual_norm([_dot(row, center) + c for row, c in zip(h, q, strict=True)], norm)
        for h, q in quadratics
    ]
    alpha_lo, alpha_hi, along = _alpha(total, inverse, norm)
    beta = [_beta(h, norm) for h in hessians]
    return RationalConstants(
        alpha_lo,
        alpha_hi,
        center,
        [lo for lo, _, _ in beta],
        [hi for _, hi, _ in beta],
        [lo for lo, _ in delta],
        [hi for _, hi in delta],
        along,
        [s for _, _, s in beta],
    )


def _quadratic(data: ProblemData, node: int) -> tuple[Matrix, Vector] | None:
    """Hessian H and gradient at zero q of the loss of a node; None if it is not quadratic."""
    d = data.dim
    hessian = [[Fraction(0)] * d for _ in range(d)]
    slope = [Fraction(0)] * d
    for term, rows in _terms_of(data, node):
        if term["kind"] == "point":
            twice = 2 * _weight(term, rows.start)
            for i in range(d):
                hessian[i][i] += twice
                slope[i] -= twice * Fraction(float(term["a"][rows.start, i]))
        elif term["kind"] == "ridge":
            for i in range(d):
                hessian[i][i] += Fraction(float(term["mu"][rows.start, i]))
        elif term["kind"] == "squared":
            for r in rows:
                x = [Fraction(v) for v in term["X"][r].tolist()]
                factor = 2 * _weight(term, r) / (1 if "weight" in term else len(rows))
                y = Fraction(float(term["y"][r]))
                for i in range(d):
                    slope[i] -= factor * y * x[i]
                    for j in range(d):
                        hessian[i][j] += factor * x[i] * x[j]
        else:
            return None
    return hessian, slope


def _weight(term: Any, row: int) -> Fraction:
    """Return the weight of a row, 1 where the term has none."""
    return Fraction(float(term["weight"][row])) if "weight" in term else Fraction(1)


def _terms_of(data: ProblemData, node: int) -> Iterator[tuple[Any, range]]:
    """Terms that name a node, each with its rows."""
    for term in data.terms:
        first, last = np.searchsorted(term["node"], [node, node + 1])
        if first < last:
            yield term, range(int(first), int(last))


#: Lower and upper bound of a constant, and the direction that proves the one that is attained.
Directed = tuple[Fraction, Fraction, Vector]


def _alpha(total: Matrix, inverse: Matrix, norm: str) -> Directed:
    """Enclose alpha; its upper bound is the quotient of the direction."""
    d = len(total)
    if norm == "l2":  # diagonal
        j = min(range(d), key=lambda i: total[i][i])
        return total[j][j], total[j][j], _unit(j, d)
    if norm == "linf":
        j = max(range(d), key=lambda i: inverse[i][i])
        return 1 / inverse[j][j], 1 / inverse[j][j], inverse[j]
    lo, hi, signs = _sign_form(inverse)
    return 1 / hi, 1 / lo, [_dot(row, signs) for row in inverse]


def _beta(hessian: Matrix, norm: str) -> Directed:
    """Enclose beta; its lower bound is the quotient of the direction."""
    if norm in ("l2", "l1"):
        d = len(hessian)
        j = max(range(d), key=lambda i: hessian[i][i])
        return hessian[j][j], hessian[j][j], _unit(j, d)
    return _sign_form(hessian)


def _unit(j: int, d: int) -> Vector:
    return [Fraction(i == j) for i in range(d)]


def _sign_form(matrix: Matrix) -> Directed:
    """Enclose max_s s^T M s, with a sign vector that attains the lower bound."""
    size = max(abs(x) for row in matrix for x in row) or Fraction(1)
    floats = np.array([[[float(x / size) for x in row] for row in matrix]])
    signs = [Fraction(int(s)) for s in best_signs(floats)[0]]
    lower = _form(matrix, signs)
    if len(matrix) <= SIGN_DIMENSION:
        top = largest_sign_form(matrix)
        if lower < top:  # a local search missed it, as good as never
            signs = next(s for s in _sign_vectors(len(matrix)) if _form(matrix, s) == top)
        return top, top, signs
    return lower, sum((abs(x) for row in matrix for x in row), Fraction(0)), signs


def _sign_vectors(d: int) -> Iterator[Vector]:
    return ([Fraction(x) for x in s] for s in itertools.product((1, -1), repeat=d))


def _form(matrix: Matrix, v: Vector) -> Fraction:
    return _dot(v, [_dot(row, v) for row in matrix])


def _dual_norm(g: Vector, norm: str) -> tuple[Fraction, Fraction]:
    """Enclose the dual norm of a gradient."""
    if norm == "l1":
        size = max(abs(x) for x in g)
        return size, size
    if norm == "linf":
        size = sum((abs(x) for x in g), Fraction(0))
        return size, size
    square = _dot(g, g)
    root = Fraction(isqrt(square.numerator), isqrt(square.denominator))
    if root * root == square:
        return root, root
    bits = _BITS + max(square.denominator.bit_length() - square.numerator.bit_length(), 0)
    floor = isqrt((square.numerator << 2 * bits) // square.denominator)
    return Fraction(floor, 1 << bits), Fraction(floor + 1, 1 << bits)


def _dot(a: list[Any], b: list[Any]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
