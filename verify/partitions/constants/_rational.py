"""The constants of Theorem 2 as rational numbers, for ties that floating point cannot decide.

Quadratic losses make H_i, the cluster minimizer and its gradients rational. So are beta and alpha
for l1 and linf, and for l2 if every H_i is diagonal (point losses, d = 1, ...). The l2 norm of a
gradient is enclosed to 200 bits, and exact if it is a perfect square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from verify._arrays import IntArray
from verify.kernel.constants import SIGN_DIMENSION
from verify.kernel.matrices import inverted, largest_sign_form
from verify.partitions._data import ProblemData

Vector = list[Fraction]
Matrix = list[Vector]
_BITS = 200


@dataclass(frozen=True)
class RationalConstants:
    """alpha and minimizer of one cluster; beta and an enclosure of delta for each of its nodes."""

    alpha: Fraction
    center: Vector
    beta: Vector
    delta_lo: Vector
    delta_hi: Vector


def rational_constants(data: ProblemData, members: IntArray, norm: str) -> RationalConstants | None:
    """Compute the constants of one cluster exactly; None where they are not rational."""
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
    alpha = _alpha(total, inverse, norm, diagonal)
    if alpha is None:
        return None
    slope = [-sum((q[i] for _, q in quadratics), Fraction(0)) for i in range(d)]
    center = [_dot(row, slope) for row in inverse]
    bounds = [
        _dual_norm([_dot(row, center) + c for row, c in zip(h, q, strict=True)], norm)
        for h, q in quadratics
    ]
    beta = [_beta(h, norm) for h in hessians]
    return RationalConstants(
        alpha, center, beta, [lo for lo, _ in bounds], [hi for _, hi in bounds]
    )


def _quadratic(data: ProblemData, node: int) -> tuple[Matrix, Vector] | None:
    """Hessian H and gradient at zero q of the loss of a node; None if it is not quadratic."""
    d = data.dim
    hessian = [[Fraction(0)] * d for _ in range(d)]
    slope = [Fraction(0)] * d
    for term, rows in _terms_of(data, node):
        if term["kind"] == "point":
            for i in range(d):
                hessian[i][i] += 2
                slope[i] -= 2 * Fraction(float(term["a"][rows.start, i]))
        elif term["kind"] == "ridge":
            for i in range(d):
                hessian[i][i] += Fraction(float(term["mu"][rows.start, i]))
        elif term["kind"] == "squared":
            for r in rows:
                x = [Fraction(v) for v in term["X"][r].tolist()]
                factor = Fraction(2, len(rows))
                y = Fraction(float(term["y"][r]))
                for i in range(d):
                    slope[i] -= factor * y * x[i]
                    for j in range(d):
                        hessian[i][j] += factor * x[i] * x[j]
        else:
            return None
    return hessian, slope


def _terms_of(data: ProblemData, node: int) -> Iterator[tuple[Any, range]]:
    """Terms that name a node, each with its rows."""
    for term in data.terms:
        first, last = np.searchsorted(term["node"], [node, node + 1])
        if first < last:
            yield term, range(int(first), int(last))


def _alpha(total: Matrix, inverse: Matrix, norm: str, diagonal: bool) -> Fraction | None:
    d = len(total)
    if norm == "l2":
        return min(total[i][i] for i in range(d))
    if norm == "linf":
        return 1 / max(inverse[i][i] for i in range(d))
    if d <= SIGN_DIMENSION:
        return 1 / largest_sign_form(inverse)
    if not diagonal:
        return None
    crude = 1 / sum((abs(x) for row in inverse for x in row), Fraction(0))
    return max(min(total[i][i] for i in range(d)) / d, crude)


def _beta(hessian: Matrix, norm: str) -> Fraction:
    if norm in ("l2", "l1"):
        return max(hessian[i][i] for i in range(len(hessian)))
    if len(hessian) <= SIGN_DIMENSION:
        return largest_sign_form(hessian)
    return sum((abs(x) for row in hessian for x in row), Fraction(0))


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
