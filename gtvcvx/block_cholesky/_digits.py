"""Arithmetic with twice the digits: each number is a sum of two.

Sums and products of two numbers are exact as sums of two [1]_, from which the arithmetic follows;
what a product is rounded by is a fused multiplication and addition. Not associative on purpose: no
compiler may reorder it.

.. [1] T. J. Dekker, A floating-point technique for extending the available precision, Numerische
   Mathematik 18 (1971).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from gtvcvx.compiled import compiled
from verify._compiled import intrinsic


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Return a b + c, rounded once: one instruction, and a call where processors do not know it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), code


@compiled(allocates=False, inner=True)
def sum_of(a: float, b: float) -> tuple[float, float]:
    """Return a + b and what it is rounded by."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


@compiled(allocates=False, inner=True)
def short(a: float, b: float) -> tuple[float, float]:
    """Return a + b and what it is rounded by, where a is larger."""
    total = a + b
    return total, b - (total - a)


@compiled(allocates=False, inner=True)
def product_of(a: float, b: float) -> tuple[float, float]:
    """Return a b and what it is rounded by."""
    product = a * b
    return product, fused(a, b, -product)


@compiled(allocates=False, inner=True)
def times(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Return the product."""
    product, rest = product_of(a, b)
    return short(product, rest + (a * b_rest + a_rest * b))


@compiled(allocates=False, inner=True)
def plus(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Return the sum."""
    total, rest = sum_of(a, b)
    return short(total, rest + (a_rest + b_rest))


@compiled(allocates=False, inner=True)
def less(
    a: float, a_rest: float, factor: float, factor_rest: float, b: float, b_rest: float
) -> tuple[float, float]:
    """Return a less the product of two numbers.

    What the product is rounded by, and what the rests add to it, need not become a sum of two
    before it goes into one.
    """
    product, rest = product_of(factor, b)
    rest = fused(factor, b_rest, fused(factor_rest, b, rest))
    total, lost = sum_of(a, -product)
    return short(total, lost + (a_rest - rest))


@compiled(allocates=False, inner=True)
def over(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    """Return the quotient."""
    first = a / b
    product, rest = times(b, b_rest, first, 0.0)
    left, left_rest = plus(a, a_rest, -product, -rest)
    return short(first, (left + left_rest) / b)


@compiled(allocates=False, inner=True)
def root(a: float, a_rest: float) -> tuple[float, float]:
    """Return the square root."""
    first = np.sqrt(a)
    product, rest = product_of(first, first)
    left, left_rest = plus(a, a_rest, -product, -rest)
    return short(first, (left + left_rest) / (2.0 * first))
