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


@compiled(allocates=False, inner=True)
def _square(first: float, rest: FloatArray) -> float:
    """Return ``first^2 - |rest|^2``, a little above zero at least."""
    total = 0.0
    for k in range(len(rest)):
        total += rest[k] * rest[k]
    length = np.sqrt(total)
    return max((first - length) * (first + length), TINY)


@compiled(allocates=False, inner=True)
def _longest(first: float, rest: FloatArray, rise: float, step: FloatArray) -> float:
    """Return how many times (rise, step) can be added inside of the cone."""
    # The first zero of the square, a s^2 + 2 b s + c, c > 0.
    a, b = rise * rise, first * rise
    for k in range(len(rest)):
        a -= step[k] * step[k]
        b -= rest[k] * step[k]
    c = _square(first, rest)
    inner = b * b - a * c
    if inner < 0.0 or (a >= 0.0 and b >= 0.0):
        return np.inf
    return c / (np.sqrt(inner) - b)


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
        s_root, z_root = np.sqrt(_square(t[e], x[e])), np.sqrt(_square(c[e], u[e]))
        along = (t[e] / s_root) * (c[e] / z_root)
        for k in range(d):
            along -= (x[e, k] / s_root) * (u[e, k] / z_root)
        twice = np.sqrt(2.0 * (1.0 + along))
        square = 0.0
        for k in range(d):
            r[e, k] = (x[e, k] / s_root + u[e, k] / z_root) / twice
            square += r[e, k] * r[e, k]
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
        f, eta, corner, own, out = scaling[e, 0], scaling[e, 1], scaling[e, 2], r[e], offset[e]
        # The image W z of z = (c, -u): its first entry, and the others as -image * u + part * r.
        along = 0.0
        for k in range(d):
            along -= own[k] * u[e, k]
        image, part = eta * (f * c[e] + along), c[e] + along / (1.0 + f)
        missing = mu
        for k in range(d):
            out[k] = 0.0
        if corrected:
            # What the parts of the last step, W^-1 (dt, dx) and W (0, -du), multiply to.
            ahead = back = 0.0
            for k in range(d):
                ahead += own[k] * dx[e, k]
                back -= own[k] * du[e, k]
            first, other = (f * dt[e] - ahead) / eta, eta * back
            ahead, back = ahead / (1.0 + f) - dt[e], back / (1.0 + f)
            missing -= first * other
            for k in range(d):
                one = (dx[e, k] + ahead * own[k]) / eta
                two = eta * (back * own[k] - du[e, k])
                missing -= one * two
                out[k] = -(first * two + other * one)
        # What times the image would be that, less the image.
        inner, square = 0.0, 0.0
        for k in range(d):
            each = eta * (part * own[k] - u[e, k])
            inner += each * out[k]
            square += each * each
        length = np.sqrt(square)
        square = max((image - length) * (image + length), TINY)
        first = (image * missing - inner) / square
        along = 0.0
        for k in range(d):
            each = eta * (part * own[k] - u[e, k])
            out[k] = (out[k] - first * each) / image - each
            along += own[k] * out[k]
        first -= image
        # Its image under W^-1; then the first coordinate is eliminated.
        top, part = (f * first - along) / eta, along / (1.0 + f) - first
        for k in range(d):
            out[k] = (-2.0 * f / corner) * own[k] * top - (out[k] + part * own[k]) / eta
        rise[e] = top * (eta * eta) / corner


@compiled(small=True, allocates=False)
def follow(
    scaling: FloatArray,
    r: FloatArray,
    rise: FloatArray,
    offset: FloatArray,
    dx: FloatArray,
    dt: FloatArray,
    du: FloatArray,
) -> None:
    """Set the steps of t and u that go with that of x."""
    d = dx.shape[1]
    for e in range(len(dt)):
        f, eta, corner, own = scaling[e, 0], scaling[e, 1], scaling[e, 2], r[e]
        along = 0.0
        for k in range(d):
            along += own[k] * dx[e, k]
        over, share = 1.0 / (eta * eta), (2.0 / corner) * along
        for k in range(d):
            du[e, k] = over * (dx[e, k] - share * own[k]) + offset[e, k]
        dt[e] = rise[e] + f * share


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
    for e in range(len(t)):
        least = min(least, _longest(t[e], x[e], dt[e], dx[e]))
        least = min(least, _longest(c[e], u[e], 0.0, du[e]))
    return least
