"""Compiled passes over pairs of vectors of second-order cones, (t, x) and (c, -u), an edge each.

Nesterov's and Todd's scaling W takes one to the inverse of the other's image: W^-1 (t, x) and
W (c, -u) are the same vector. It is eta times a reflection, given by a vector (f, r) of length one
in the sense of ``f^2 - |r|^2``: W (z, v) is eta times ``f z + <r, v>`` and
``v + (z + <r, v> / (1 + f)) r``.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import compiled

TINY = float(np.finfo(np.float64).tiny)


@compiled(small=True, allocates=False, inner=True)
def _square(first: float, rest: float) -> float:
    """Return ``first^2 - rest``, a little above zero at least, for a squared length."""
    length = np.sqrt(rest)
    return max((first - length) * (first + length), TINY)


@compiled(small=True, allocates=False)
def scale(
    t: FloatArray,
    x: FloatArray,
    c: FloatArray,
    u: FloatArray,
    scaling: FloatArray,
    r: FloatArray,
    weights: FloatArray,
) -> None:
    """Set the scaling of all pairs: columns f, eta and ``1 + 2 |r|^2`` (m, 3), and r (m, d).

    And the weights (m, d, d): what is left of W^-2 when the first coordinate is eliminated.
    """
    d = x.shape[1]
    for e in range(len(t)):
        xx = uu = xu = 0.0
        for k in range(d):
            xx += x[e, k] * x[e, k]
            uu += u[e, k] * u[e, k]
            xu += x[e, k] * u[e, k]
        s_root, z_root = np.sqrt(_square(t[e], xx)), np.sqrt(_square(c[e], uu))
        along = (t[e] / s_root) * (c[e] / z_root) - xu / s_root / z_root
        twice = np.sqrt(2.0 * (1.0 + along))
        square = 0.0
        for k in range(d):
            each = (x[e, k] / s_root + u[e, k] / z_root) / twice
            r[e, k] = each
            square += each * each
        eta = np.sqrt(s_root / z_root)
        corner = 1.0 + 2.0 * square
        scaling[e, 0], scaling[e, 1], scaling[e, 2] = np.sqrt(1.0 + square), eta, corner
        over = 1.0 / (eta * eta)
        for k in range(d):
            for h in range(d):
                own = 1.0 if h == k else 0.0
                weights[e, k, h] = over * (own - (2.0 / corner) * r[e, k] * r[e, h])


@compiled(small=True, allocates=False)
def aim(
    c: FloatArray,
    u: FloatArray,
    scaling: FloatArray,
    r: FloatArray,
    mu: float,
    corrected: bool,
    dt: FloatArray,
    dx: FloatArray,
    du: FloatArray,
    rise: FloatArray,
    offset: FloatArray,
) -> None:
    """Set the steps of t (m,) and u (m, d) towards products of mu, where x rests.

    Corrected: less the products of the last steps dt, dx and du.
    """
    d = u.shape[1]
    for e in range(len(c)):
        f, eta, corner = scaling[e, 0], scaling[e, 1], scaling[e, 2]
        # The image W z of z = (c, -u): its first entry; the others are eta (part r - u).
        along = 0.0
        for k in range(d):
            along -= r[e, k] * u[e, k]
        image, part = eta * (f * c[e] + along), c[e] + along / (1.0 + f)
        missing = mu
        for k in range(d):
            offset[e, k] = 0.0
        if corrected:
            # What the parts of the last step, W^-1 (dt, dx) and W (0, -du), multiply to.
            ahead = back = 0.0
            for k in range(d):
                ahead += r[e, k] * dx[e, k]
                back -= r[e, k] * du[e, k]
            first, other = (f * dt[e] - ahead) / eta, eta * back
            ahead, back = ahead / (1.0 + f) - dt[e], back / (1.0 + f)
            missing -= first * other
            for k in range(d):
                one = (dx[e, k] + ahead * r[e, k]) / eta
                two = eta * (back * r[e, k] - du[e, k])
                missing -= one * two
                offset[e, k] = -(first * two + other * one)
        # What times the image would be that, less the image.
        inner, square = 0.0, 0.0
        for k in range(d):
            each = eta * (part * r[e, k] - u[e, k])
            inner += each * offset[e, k]
            square += each * each
        first = (image * missing - inner) / _square(image, square)
        along = 0.0
        for k in range(d):
            each = eta * (part * r[e, k] - u[e, k])
            offset[e, k] = (offset[e, k] - first * each) / image - each
            along += r[e, k] * offset[e, k]
        first -= image
        # Its image under W^-1; then the first coordinate is eliminated.
        top, part = (f * first - along) / eta, along / (1.0 + f) - first
        for k in range(d):
            offset[e, k] = (-2.0 * f / corner) * r[e, k] * top - (
                offset[e, k] + part * r[e, k]
            ) / eta
        rise[e] = top * (eta * eta) / corner


@compiled(small=True, allocates=False)
def longest(
    t: FloatArray,
    x: FloatArray,
    c: FloatArray,
    u: FloatArray,
    dt: FloatArray,
    dx: FloatArray,
    du: FloatArray,
) -> float:
    """Return how many times a step can be taken before the first vector leaves its cone."""
    least = np.inf
    for turn in range(2 * len(t)):
        # Both vectors of an edge, one after the other: the second one's first entry rests.
        e, first, rise = turn // 2, t[turn // 2], dt[turn // 2]
        rest, step = x, dx
        if turn % 2:
            first, rise, rest, step = c[e], 0.0, u, du
        square, a, b = 0.0, rise * rise, first * rise
        for k in range(x.shape[1]):
            square += rest[e, k] * rest[e, k]
            a -= step[e, k] * step[e, k]
            b -= rest[e, k] * step[e, k]
        # The first zero of the square, a s^2 + 2 b s + now, now > 0.
        now = _square(first, square)
        inner = b * b - a * now
        if inner >= 0.0 and (a < 0.0 or b < 0.0):
            least = min(least, now / (np.sqrt(inner) - b))
    return least
