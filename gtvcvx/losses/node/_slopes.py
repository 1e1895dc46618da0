"""The slope and curvature of one row, compiled; those of many rows are in `_scalar`."""

from __future__ import annotations

import math
from typing import Any

from gtvcvx.compiled import compiled
from gtvcvx.losses.node._scalar import HUBER, LARGEST_EXPONENT, LOGISTIC, POISSON, SQUARED


@compiled(small=True, allocates=False, inner=True)
def slope_and_curvature(row: Any, z: float) -> tuple[float, float]:
    """Return f'(z) and f''(z) of a row that is no kink, with one exponential or root."""
    y, c, kind = row.y, row.c, row.kind
    r = z - y
    if kind == SQUARED:
        return 2.0 * c * r, 2.0 * c
    if kind == HUBER:
        inner = min(max(r, -row.delta), row.delta)
        return 2.0 * c * inner, (2.0 * c if inner == r else 0.0)
    if kind == LOGISTIC:
        e = math.exp(-abs(z))
        # The chances of the likelier and of the other outcome.
        near, far = 1.0 / (1.0 + e), e / (1.0 + e)
        if y > 0.5:
            return -c * (far if z >= 0.0 else near), c * near * far
        return c * (near if z >= 0.0 else far), c * near * far
    if kind == POISSON:
        rate = math.exp(z) if z < LARGEST_EXPONENT else math.inf
        return c * (rate - y), c * rate
    cosine = row.delta / math.hypot(row.delta, r)
    # Rounding must not lead beyond the slopes at the ends.
    return min(max(c * r * cosine, row.low), row.high), c * cosine * cosine * cosine
