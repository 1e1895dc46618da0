"""Exact gradients of the losses at a rational point."""

from __future__ import annotations

import math

import numpy as np

from gtvcvx.solvers.exact._data import ExactData
from gtvcvx.solvers.exact._faces import Point


class Gradient:
    """Derivatives of the losses by single entries of w; called with node i and coordinate k."""

    def __init__(self, data: ExactData, point: Point) -> None:
        self._data, self._point = data, point
        n, d = data.shape
        self._terms: list[list[list[int]]] = [[[] for _ in range(d)] for _ in range(n)]
        for i, k, other in np.argwhere(data.quadratic != 0).tolist():
            self._terms[i][k].append(other)

    def __call__(self, i: int, k: int) -> tuple[int, int]:
        """Return numerator and denominator of S times the derivative of L_i by w_ik."""
        data, point, terms = self._data, self._point, self._terms[i][k]
        denominators = point.denominators[i]
        common = math.lcm(*(denominators[other] for other in terms))
        total = -data.linear[i, k] * common
        for other in terms:
            scaled = point.numerators[i, other] * (common // denominators[other])
            total += data.quadratic[i, k, other] * scaled
        return total, common
