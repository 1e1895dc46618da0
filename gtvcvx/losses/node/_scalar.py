"""The scalar functions of row losses, at many rows at once: value, slope, conjugate, gap.

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
far off. The functions take rows (N,) of ROW and points or multipliers (N,), and return (N,); one
row and a number do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, Records

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

# Rates of larger exponents are infinite: the exponential overflows a little later.
LARGEST_EXPONENT = 709.0

# Log-odds and log-rates that are as good as infinite: the exponential is below the last digit of 1.
DECIDED = 40.0

Formula = Callable[..., FloatArray]


def by_kind(formulas: Sequence[Formula], rows: Records, *arguments: FloatArray) -> FloatArray:
    """Evaluate the formula of each row's kind; mostly there is one kind."""
    kinds = np.flatnonzero(np.bincount(np.atleast_1d(rows["kind"]), minlength=len(formulas)))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        if len(kinds) == 1:
            return formulas[int(kinds[0])](rows, *arguments)
        out = np.empty(len(rows))
        for kind in kinds.tolist():
            at = np.flatnonzero(rows["kind"] == kind)
            out[at] = formulas[kind](rows[at], *(argument[at] for argument in arguments))
        return out


def exponential(z: FloatArray) -> FloatArray:
    """Return exp(z), infinite where it overflows."""
    return np.where(z < LARGEST_EXPONENT, np.exp(z), np.inf)


def softplus(z: FloatArray) -> FloatArray:
    """Return log(1 + exp(z)) without overflow, to full relative precision."""
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def sigmoid(z: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-z)) without overflow, to full relative precision."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0.0, 1.0, e) / (1.0 + e)


def entropy_cost(v: FloatArray) -> FloatArray:
    """Return v log v - v for v >= 0, the conjugate of exp."""
    return np.where(v > 0.0, v * np.log(np.where(v > 0.0, v, 1.0)) - v, 0.0)


def divergence(v: FloatArray, log_u: FloatArray) -> FloatArray:
    """Return v log(v / u) - v + u >= 0 for v >= 0 and u = exp(log_u), without cancellation."""
    u = exponential(log_u)
    x = (v - u) / u
    # u ((1 + x) log(1 + x) - x), and its series
    series = u * x * x * (0.5 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x / 30))))
    near = np.maximum(u * ((1.0 + x) * np.log1p(x) - x), 0.0)
    far = np.maximum(v * (np.log(v) - log_u) - v + u, 0.0)
    size = np.where((u > 0.0) & (u < np.inf), np.abs(x), np.inf)
    best = np.where(size < 1e-3, series, np.where(size < 0.5, near, far))
    return np.where(v <= 0.0, u, best)


def angle_gap(r: FloatArray, b: FloatArray, delta: FloatArray) -> FloatArray:
    """Return psi(z) + psi*(b) - b z >= 0 of a pseudo-Huber row, |b| <= delta, stably.

    It is ``delta hypot(delta, r) (1 - cos)`` of the angle between (delta, r) and
    (sqrt(delta^2 - b^2), b): at the slope both have one direction.
    """
    q, s = np.hypot(delta, r), np.sqrt(np.maximum((delta - b) * (delta + b), 0.0))
    sine, cosine = (b - s * (r / delta)) / q, (s + b * (r / delta)) / q
    turn = np.where(cosine > 0.0, sine * sine / (1.0 + cosine), 1.0 - cosine)
    return np.asarray(delta * q * turn)


def _signed(rows: Records, z: FloatArray) -> FloatArray:
    """Return z with the sign with which a logistic row's loss rises with it."""
    return np.where(rows["y"] > 0.5, -z, z)


def _residual(rows: Records, z: FloatArray) -> FloatArray:
    return np.asarray(z - rows["y"])


def _clipped(rows: Records, z: FloatArray) -> FloatArray:
    """Residuals of Huber rows, at most delta."""
    return np.clip(_residual(rows, z), -rows["delta"], rows["delta"])


def _huber_value(rows: Records, z: FloatArray) -> FloatArray:
    size, delta = np.abs(_residual(rows, z)), rows["delta"]
    inside = np.minimum(size, delta)
    return np.asarray(rows["c"] * inside * (2.0 * size - inside))


def _pseudo_huber_value(rows: Records, z: FloatArray) -> FloatArray:
    size, delta = np.abs(_residual(rows, z)), rows["delta"]
    return np.asarray(rows["c"] * delta * size * (size / (np.hypot(delta, size) + delta)))


def _kink_value(rows: Records, z: FloatArray) -> FloatArray:
    r = _residual(rows, z)
    return np.maximum(rows["low"] * r, rows["high"] * r)


def row_value(rows: Records, z: FloatArray) -> FloatArray:
    """Return f(z)."""
    return by_kind(_VALUES, rows, z)


_VALUES = (
    lambda rows, z: rows["c"] * _residual(rows, z) ** 2,
    lambda rows, z: rows["c"] * softplus(_signed(rows, z)),
    lambda rows, z: rows["c"] * (exponential(z) - rows["y"] * z),
    _huber_value,
    _pseudo_huber_value,
    _kink_value,
)


def _logistic_slope(rows: Records, z: FloatArray) -> FloatArray:
    return _signed(rows, rows["c"] * sigmoid(_signed(rows, z)))


def _cosine(rows: Records, z: FloatArray) -> FloatArray:
    """Of the angle that a pseudo-Huber row's slope is the sine of."""
    return np.asarray(rows["delta"] / np.hypot(rows["delta"], _residual(rows, z)))


def _pseudo_huber_slope(rows: Records, z: FloatArray) -> FloatArray:
    r, delta = _residual(rows, z), rows["delta"]
    return np.asarray(rows["c"] * delta * np.clip(r / np.hypot(delta, r), -1.0, 1.0))


def _kink_slope(rows: Records, z: FloatArray) -> FloatArray:
    r = _residual(rows, z)
    at_kink = np.clip(0.0, rows["low"], rows["high"])
    return np.where(r > 0.0, rows["high"], np.where(r < 0.0, rows["low"], at_kink))


def row_slope(rows: Records, z: FloatArray) -> FloatArray:
    """Return f'(z); at a kink the subgradient closest to zero."""
    return by_kind(_SLOPES, rows, z)


_SLOPES = (
    lambda rows, z: 2.0 * rows["c"] * _residual(rows, z),
    _logistic_slope,
    lambda rows, z: rows["c"] * (exponential(z) - rows["y"]),
    lambda rows, z: 2.0 * rows["c"] * _clipped(rows, z),
    _pseudo_huber_slope,
    _kink_slope,
)


def row_point(rows: Records, a: FloatArray) -> FloatArray:
    """Return z with f'(z) = a, for smooth rows and a in ]low, high[."""
    return by_kind(_POINTS, rows, a)


def _square_point(rows: Records, a: FloatArray) -> FloatArray:
    return np.asarray(rows["y"] + 0.5 * a / rows["c"])


def _logistic_point(rows: Records, a: FloatArray) -> FloatArray:
    p = _signed(rows, a) / rows["c"]
    return _signed(rows, np.log(p) - np.log1p(-p))


def _pseudo_huber_point(rows: Records, a: FloatArray) -> FloatArray:
    b, delta = a / rows["c"], rows["delta"]
    return np.asarray(rows["y"] + delta * b / np.sqrt((delta - b) * (delta + b)))


_POINTS = (
    _square_point,
    _logistic_point,
    lambda rows, a: np.log(a / rows["c"] + rows["y"]),
    _square_point,
    _pseudo_huber_point,
    lambda rows, a: rows["y"],
)


def row_curvature(rows: Records, z: FloatArray) -> FloatArray:
    """Return f''(z), zero for a kink."""
    return by_kind(_CURVATURES, rows, z)


_CURVATURES = (
    lambda rows, z: 2.0 * rows["c"] * np.ones_like(z),
    lambda rows, z: rows["c"] * sigmoid(z) * sigmoid(-z),
    lambda rows, z: rows["c"] * exponential(z),
    lambda rows, z: np.where(np.abs(_residual(rows, z)) <= rows["delta"], 2.0 * rows["c"], 0.0),
    lambda rows, z: rows["c"] * _cosine(rows, z) ** 3,
    lambda rows, z: np.zeros_like(z),
)


def _logistic_conjugate(rows: Records, a: FloatArray) -> FloatArray:
    # the probability that is not y; it may be tiny
    p = _signed(rows, a) / rows["c"]
    return np.asarray(rows["c"] * (entropy_cost(p) + entropy_cost(1.0 - p) + 1.0))


def _pseudo_huber_conjugate(rows: Records, a: FloatArray) -> FloatArray:
    b, delta = a / rows["c"], rows["delta"]
    root = np.sqrt(np.maximum((delta - b) * (delta + b), 0.0))
    return np.asarray(a * rows["y"] + a * delta * (b / (delta + root)))


def _square_conjugate(rows: Records, a: FloatArray) -> FloatArray:
    return np.asarray(a * rows["y"] + a * a / (4.0 * rows["c"]))


def row_conjugate(rows: Records, a: FloatArray) -> FloatArray:
    """Return f*(a) for a multiplier in [low, high]."""
    return by_kind(_CONJUGATES, rows, a)


_CONJUGATES = (
    _square_conjugate,
    _logistic_conjugate,
    lambda rows, a: rows["c"] * entropy_cost(a / rows["c"] + rows["y"]),
    _square_conjugate,
    _pseudo_huber_conjugate,
    lambda rows, a: a * rows["y"],
)


def _logistic_gap(rows: Records, z: FloatArray, a: FloatArray) -> FloatArray:
    # the divergence of (p, 1 - p) from (sigmoid(t), sigmoid(-t))
    p, t = _signed(rows, a) / rows["c"], _signed(rows, z)
    gap = divergence(p, -softplus(-t)) + divergence(1.0 - p, -softplus(t))
    return np.asarray(rows["c"] * gap)


def _huber_gap(rows: Records, z: FloatArray, a: FloatArray) -> FloatArray:
    inner, b = _clipped(rows, z), a / rows["c"]
    outer = _residual(rows, z) - inner
    bent = np.maximum(2.0 * rows["delta"] * np.abs(outer) - b * outer, 0.0)
    return np.asarray(rows["c"] * ((inner - 0.5 * b) ** 2 + bent))


def _pseudo_huber_gap(rows: Records, z: FloatArray, a: FloatArray) -> FloatArray:
    delta = rows["delta"]
    b = np.clip(a / rows["c"], -delta, delta)
    return np.asarray(rows["c"] * angle_gap(_residual(rows, z), b, delta))


def _kink_gap(rows: Records, z: FloatArray, a: FloatArray) -> FloatArray:
    r = _residual(rows, z)
    return np.maximum(np.maximum((rows["high"] - a) * r, (rows["low"] - a) * r), 0.0)


def row_gap(rows: Records, z: FloatArray, a: FloatArray) -> FloatArray:
    """Return f(z) + f*(a) - a z >= 0 for a in [low, high], without cancellation."""
    return by_kind(_GAPS, rows, z, a)


_GAPS = (
    lambda rows, z, a: rows["c"] * (_residual(rows, z) - 0.5 * a / rows["c"]) ** 2,
    _logistic_gap,
    lambda rows, z, a: rows["c"] * divergence(a / rows["c"] + rows["y"], z),
    _huber_gap,
    _pseudo_huber_gap,
    _kink_gap,
)
