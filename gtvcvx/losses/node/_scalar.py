"""The scalar functions of row losses, compiled: value, slope, curvature, conjugate, gap.

A row (x, y) of weight c contributes ``f(z) = c psi(z)`` at z = <x, w>:

============  =====================================  =================================
kind          psi(z), with r = z - y                 multipliers b with psi*(b) < inf
============  =====================================  =================================
SQUARED       r^2                                    all
LOGISTIC      log(1 + exp(z)) - y z, y in {0, 1}     [-y, 1 - y]
POISSON       exp(z) - y z                           [-y, inf)
HUBER         r^2 where |r| <= delta, else           [-2 delta, 2 delta]
              2 delta |r| - delta^2
PSEUDO_HUBER  delta (sqrt(delta^2 + r^2) - delta)    [-delta, delta]
KINK          max(low r, high r) / c                 [low / c, high / c]
============  =====================================  =================================

Absolute, quantile and hinge losses are kinks. Infinite values are no errors here: a point may be
far off.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx.compiled import compiled

SQUARED, LOGISTIC, POISSON, HUBER, PSEUDO_HUBER, KINK = range(6)

# One row but its features: [low, high] are the multipliers of f (not of psi) with f* < inf.
ROW = np.dtype(
    [
        ("kind", np.int64),
        ("y", np.float64),
        ("c", np.float64),
        ("delta", np.float64),
        ("low", np.float64),
        ("high", np.float64),
    ]
)


@compiled
def sigmoid(z: float) -> float:
    """Return 1 / (1 + exp(-z)) without overflow, to full relative precision."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@compiled
def softplus(z: float) -> float:
    """Return log(1 + exp(z)) without overflow, to full relative precision."""
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@compiled
def exponential(z: float) -> float:
    """Return exp(z), infinite where it overflows."""
    return math.exp(z) if z < 709.0 else math.inf


@compiled
def entropy_cost(v: float) -> float:
    """Return v log v - v for v >= 0, the conjugate of exp."""
    return v * math.log(v) - v if v > 0.0 else 0.0


@compiled
def divergence(v: float, log_u: float) -> float:
    """Return v log(v / u) - v + u >= 0 for v >= 0 and u = exp(log_u), without cancellation."""
    u = exponential(log_u)
    if v <= 0.0:
        return u
    if 0.0 < u < math.inf:
        x = (v - u) / u
        if abs(x) < 1e-3:
            # u ((1 + x) log(1 + x) - x) by its series
            return u * x * x * (0.5 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x / 30))))
        if abs(x) < 0.5:
            return max(u * ((1.0 + x) * math.log1p(x) - x), 0.0)
    return max(v * (math.log(v) - log_u) - v + u, 0.0)


@compiled
def angle_gap(r: float, b: float, delta: float) -> float:
    """Return psi(z) + psi*(b) - b z >= 0 of a pseudo-Huber row, |b| <= delta, stably.

    It is ``delta hypot(delta, r) (1 - cos)`` of the angle between (delta, r) and
    (sqrt(delta^2 - b^2), b): at the slope both have one direction.
    """
    q, s = math.hypot(delta, r), math.sqrt(max((delta - b) * (delta + b), 0.0))
    sine, cosine = (b - s * (r / delta)) / q, (s + b * (r / delta)) / q
    turn = sine * sine / (1.0 + cosine) if cosine > 0.0 else 1.0 - cosine
    return delta * q * turn


@compiled
def row_value(row: Any, z: float) -> float:
    """Return f(z)."""
    y, c, delta = row.y, row.c, row.delta
    r = z - y
    if row.kind == SQUARED:
        return c * r * r
    if row.kind == LOGISTIC:
        return c * softplus(-z if y > 0.5 else z)
    if row.kind == POISSON:
        return c * (exponential(z) - y * z)
    if row.kind == HUBER:
        return c * (r * r if abs(r) <= delta else delta * (2.0 * abs(r) - delta))
    if row.kind == PSEUDO_HUBER:
        return c * delta * abs(r) * (abs(r) / (math.hypot(delta, r) + delta))
    return max(row.low * r, row.high * r)


@compiled
def row_slope(row: Any, z: float) -> float:
    """Return f'(z); at a kink the subgradient closest to zero."""
    y, c, delta = row.y, row.c, row.delta
    r = z - y
    if row.kind == SQUARED:
        return 2.0 * c * r
    if row.kind == LOGISTIC:
        return -c * sigmoid(-z) if y > 0.5 else c * sigmoid(z)
    if row.kind == POISSON:
        return c * (exponential(z) - y)
    if row.kind == HUBER:
        return 2.0 * c * min(max(r, -delta), delta)
    if row.kind == PSEUDO_HUBER:
        return c * delta * min(max(r / math.hypot(delta, r), -1.0), 1.0)
    if r > 0.0:
        return row.high
    return row.low if r < 0.0 else min(max(0.0, row.low), row.high)


@compiled
def row_curvature(row: Any, z: float) -> float:
    """Return f''(z), zero for a kink."""
    c = row.c
    if row.kind == SQUARED:
        return 2.0 * c
    if row.kind == LOGISTIC:
        return c * sigmoid(z) * sigmoid(-z)
    if row.kind == POISSON:
        return c * exponential(z)
    if row.kind == HUBER and abs(z - row.y) <= row.delta:
        return 2.0 * c
    if row.kind == PSEUDO_HUBER:
        return c * (row.delta / math.hypot(row.delta, z - row.y)) ** 3
    return 0.0


@compiled
def row_conjugate(row: Any, a: float) -> float:
    """Return f*(a) for a multiplier in [low, high]."""
    y, c = row.y, row.c
    if row.kind == SQUARED or row.kind == HUBER:
        return a * y + a * a / (4.0 * c)
    if row.kind == LOGISTIC:
        # the probability that is not y; it may be tiny
        p = -a / c if y > 0.5 else a / c
        return c * (entropy_cost(p) + entropy_cost(1.0 - p) + 1.0)
    if row.kind == POISSON:
        return c * entropy_cost(a / c + y)
    if row.kind == PSEUDO_HUBER:
        b, delta = a / c, row.delta
        return a * y + a * delta * (b / (delta + math.sqrt(max((delta - b) * (delta + b), 0.0))))
    return a * y


@compiled
def row_gap(row: Any, z: float, a: float) -> float:
    """Return f(z) + f*(a) - a z >= 0 for a in [low, high], without cancellation."""
    y, c, delta = row.y, row.c, row.delta
    r = z - y
    if row.kind == SQUARED:
        return c * (r - 0.5 * a / c) ** 2
    if row.kind == LOGISTIC:
        # the divergence of (p, 1 - p) from (sigmoid(t), sigmoid(-t))
        p, t = (-a / c, -z) if y > 0.5 else (a / c, z)
        return c * (divergence(p, -softplus(-t)) + divergence(1.0 - p, -softplus(t)))
    if row.kind == POISSON:
        return c * divergence(a / c + y, z)
    if row.kind == PSEUDO_HUBER:
        return c * angle_gap(r, min(max(a / c, -delta), delta), delta)
    if row.kind == HUBER:
        inner = min(max(r, -delta), delta)
        outer = r - inner
        b = a / c
        return c * ((inner - 0.5 * b) ** 2 + max(2.0 * delta * abs(outer) - b * outer, 0.0))
    return max((row.high - a) * r, (row.low - a) * r, 0.0)


@compiled
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
        rate = exponential(z)
        return c * (rate - y), c * rate
    cosine = row.delta / math.hypot(row.delta, r)
    return c * r * cosine, c * cosine * cosine * cosine
