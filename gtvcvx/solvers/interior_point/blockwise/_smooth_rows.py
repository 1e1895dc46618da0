"""Smooth rows of data: logistic, Poisson and pseudo-Huber ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.batched.composite._parts import records_of
from gtvcvx.losses.node._scalar import ROW, row_value


class SmoothRows(NamedTuple):
    """Rows ``f_k(x_k^T w)`` of smooth convex functions."""

    X: FloatArray  # (N, d)
    table: Records  # (N,) of ROW
    node: IntArray  # (N,)

    @staticmethod
    def of(terms: Iterable[Term], d: int) -> SmoothRows:
        """Return the rows of some terms, perhaps none."""
        terms = list(terms)
        return SmoothRows(
            np.concatenate([np.empty((0, d)), *(term["X"] for term in terms)]),
            np.concatenate([np.empty(0, ROW), *(records_of(term) for term in terms)]),
            np.concatenate([np.empty(0, np.int64), *(term["node"] for term in terms)]),
        )

    def value(self, x: FloatArray) -> float:
        """Return the sum of all rows at x (N,)."""
        return float(np.sum(row_value(self.table, x)))
