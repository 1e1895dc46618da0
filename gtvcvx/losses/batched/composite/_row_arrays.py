"""Smooth rows of many nodes as arrays, for NumPy: `gtvcvx.losses.node._scalar` without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx.losses.node._scalar import HUBER, LOGISTIC, POISSON, PSEUDO_HUBER, SQUARED


class RowArrays(NamedTuple):
    """Rows of k nodes with m rows each, field by field, (k, m)."""

    kind: IntArray
    y: FloatArray
    c: FloatArray
    delta: FloatArray
    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(rows: Records) -> RowArrays:
        """Take a table of rows apart."""
        kind, y, c, delta, low, high = (
            np.ascontiguousarray(rows[field]) for field in RowArrays._fields
        )
        return RowArrays(kind, y, c, delta, low, high)

    def at(self, nodes: BoolArray) -> RowArrays:
        """Return the rows of some nodes."""
        return RowArrays(
            self.kind[nodes],
            self.y[nodes],
            self.c[nodes],
            self.delta[nodes],
            self.low[nodes],
            self.high[nodes],
        )

    def slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f'(z) and f''(z)."""
        slope, curvature = np.empty_like(z), np.empty_like(z)
        for kind, scalar in _SCALARS.items():
            here = self.kind == kind
            if here.all():
                return scalar(z, self.y, self.c, self.delta)
            if not here.any():
                continue
            slope[here], curvature[here] = scalar(
                z[here], self.y[here], self.c[here], self.delta[here]
            )
        return slope, curvature

    @property
    def piecewise_linear(self) -> BoolArray:
        """Nodes (k,) whose rows have slopes that are piecewise linear, all of them."""
        out: BoolArray = ((self.kind == SQUARED) | (self.kind == HUBER)).all(axis=1)
        return out

    @property
    def spans(self) -> FloatArray:
        """What is typical of the multipliers: all that they may be, or the slope at zero."""
        slope, _ = self.slopes(np.zeros_like(self.y))
        width = self.high - self.low
        return np.where(np.isfinite(width), width, np.abs(slope) + self.c)


Scalar = Callable[
    [FloatArray, FloatArray, FloatArray, FloatArray],
    tuple[FloatArray, FloatArray],
]


def _squared(
    z: FloatArray, y: FloatArray, c: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return 2.0 * c * (z - y), 2.0 * c


def _huber(
    z: FloatArray, y: FloatArray, c: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r = z - y
    return 2.0 * c * np.clip(r, -delta, delta), np.where(np.abs(r) <= delta, 2.0 * c, 0.0)


def _logistic(
    z: FloatArray, y: FloatArray, c: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    e = np.exp(-np.abs(z))
    # The chances of the likelier and of the other outcome.
    near, far = 1.0 / (1.0 + e), e / (1.0 + e)
    up, down = np.where(z >= 0.0, near, far), np.where(z >= 0.0, far, near)
    return c * np.where(y > 0.5, -down, up), c * near * far


def _poisson(
    z: FloatArray, y: FloatArray, c: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    rate = np.exp(z)
    return c * (rate - y), c * rate


def _pseudo_huber(
    z: FloatArray, y: FloatArray, c: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    cosine = delta / np.hypot(delta, z - y)
    return c * (z - y) * cosine, c * cosine**3


_SCALARS: dict[int, Scalar] = {
    SQUARED: _squared,
    HUBER: _huber,
    LOGISTIC: _logistic,
    POISSON: _poisson,
    PSEUDO_HUBER: _pseudo_huber,
}
