"""Euclidean projections of many rows at once on balls of the q-norms.

Entries inside their ball are returned unchanged; the others land on its surface. What leaves the
ball by rounding is scaled back, so that the excess stays within about an ulp.

References
----------
J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient projections onto the l1-ball for
learning in high dimensions", ICML 2008 (the threshold by sorting).
S. Sra, "Fast projections onto mixed-norm balls with applications", Data Mining and Knowledge
Discovery 25, 2012 (root finding on the multiplier).
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import row_norm_1, row_norm_2, row_norm_p
from gtvcvx.penalties._checks import EPS

_MAX_OUTER = 120  # bisection alone ends after about 60 halvings
_MAX_INNER = 60


def project_l2_ball(z: FloatArray, radius: FloatArray) -> FloatArray:
    """Project z_e (m, d) on ||.||_2 <= radius_e, radius (m,) >= 0."""
    norms = row_norm_2(z)
    x = z.copy()
    out = np.flatnonzero(norms > radius)
    if out.size:
        x[out] = z[out] / norms[out, None] * radius[out, None]
    return x


def project_l1_ball(z: FloatArray, radius: FloatArray) -> FloatArray:
    """Project z_e (m, d) on ||.||_1 <= radius_e, radius (m,) >= 0, in O(m d log d).

    The projection is max(|z| - theta, 0) with the sign of z. Here theta is measured from the
    row's largest entry, so the error is relative to the radius and not to z.
    """
    x = z.copy()
    out = np.flatnonzero(row_norm_1(z) > radius)
    if out.size == 0:
        return x
    magnitude, r = np.abs(z[out]), radius[out]
    # Entries further than r below the top are zero in the answer; 2 r stands for all of them.
    below = np.minimum(magnitude.max(axis=1, keepdims=True) - magnitude, 2.0 * r[:, None])
    ordered = np.sort(below, axis=1)
    total = np.cumsum(ordered, axis=1)
    rank = np.arange(1, z.shape[1] + 1)
    support = np.maximum((rank * ordered < r[:, None] + total).sum(axis=1), 1)
    level = (r + np.take_along_axis(total, support[:, None] - 1, axis=1)[:, 0]) / support
    kept = np.maximum(level[:, None] - below, 0.0)
    x[out] = np.copysign(_inside(kept, r, 1.0), z[out])
    return x


def project_lq_ball(z: FloatArray, radius: FloatArray, q: float) -> FloatArray:
    """Project z_e (m, d) on ||.||_q <= radius_e, 1 < q < inf, radius (m,) >= 0.

    With y = |z|, a row outside has x + nu (x / r)^(q-1) = y and ||x||_q = r for one nu > 0,
    found by a safeguarded Newton method on all rows together.
    """
    x = z.copy()
    out = np.flatnonzero(row_norm_p(z, q) > radius)
    if out.size == 0:
        return x
    magnitude, r = np.abs(z[out]), radius[out]
    top = magnitude.max(axis=1)
    unit = _solve_unit(magnitude / top[:, None], r / top, q)
    shape = unit if q >= 2.0 else np.power(unit, 1.0 / (q - 1.0))
    x[out] = np.copysign(_inside(np.minimum(r[:, None] * shape, magnitude), r, q), z[out])
    return x


def _inside(x: FloatArray, radius: FloatArray, q: float) -> FloatArray:
    """Scale back the rows that rounding left outside."""
    norms = row_norm_p(x, q)
    shrink = np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
    return x * shrink[:, None]


def _solve_unit(y: FloatArray, rho: FloatArray, q: float) -> FloatArray:
    """Solve the optimality system in a smooth variable t with ||t||_k = 1, k = max(p, q) >= 2.

    For q >= 2, t = x / r and rho t + nu t^(k-1) = y; for q < 2, t = (x / r)^(q-1) is the smooth
    one, k = p and nu t + rho t^(k-1) = y. Either way the left side is convex and increasing in
    t, and ||t||_k decreases in nu. Rows of y have maximum 1 and ||y||_q > rho.
    """
    p = q / (q - 1.0)
    k = max(p, q)
    power = 1.0 if q < 2.0 else k - 1.0  # 1 / ||t||^power is linear in nu when rho = 0
    high = row_norm_p(y, p)  # nu = ||y - x||_p <= ||y||_p
    low = np.zeros_like(high)
    nu = high * (1.0 - rho / row_norm_p(y, q))
    nu = np.where(nu > 0.0, nu, 0.5 * EPS * high)
    t = np.ones_like(y)
    answer = np.empty_like(y)
    live = np.arange(len(y))
    for _ in range(_MAX_OUTER):
        a, b = (nu, rho) if q < 2.0 else (rho, nu)
        t = _solve_entries(y, a[:, None], b[:, None], k, t)
        norm = row_norm_p(t, k)
        answer[live] = t / norm[:, None]
        low, high = np.where(norm > 1.0, nu, low), np.where(norm > 1.0, high, nu)
        go = (np.abs(norm - 1.0) > 4.0 * EPS) & (high - low > 2.0 * EPS * high)
        if not go.any():
            break
        slope = _norm_slope(t, norm, a, b, k, in_b=q >= 2.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            step = nu + norm * (1.0 - np.power(norm, power)) / (power * slope)
        # A step that is not a number fails both comparisons and is replaced as well.
        nu = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        y, rho, t, live = y[go], rho[go], t[go], live[go]
        nu, low, high = nu[go], low[go], high[go]
    return answer


def _norm_slope(
    t: FloatArray, norm: FloatArray, a: FloatArray, b: FloatArray, k: float, *, in_b: bool
) -> FloatArray:
    """Differentiate ||t||_k by nu, which is b if ``in_b`` and else a (implicit function)."""
    flat = np.power(t, k - 2.0)
    curvature = a[:, None] + (k - 1.0) * b[:, None] * flat
    rate = -t * (flat if in_b else 1.0)
    velocity = np.divide(rate, curvature, out=np.zeros_like(t), where=curvature > 0.0)
    slope: FloatArray = (np.power(t / norm[:, None], k - 1.0) * velocity).sum(axis=1)
    return slope


def _solve_entries(
    y: FloatArray, a: FloatArray, b: FloatArray, k: float, start: FloatArray
) -> FloatArray:
    """Solve a t + b t^(k-1) = y entry by entry, t >= 0, by Newton from ``start``.

    The left side is convex and increasing: after one step the iterates are right of the root and
    decrease to it. Either term alone gives an upper bound, which caps the first step.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        bound = np.fmin(y / a, np.power(y / b, 1.0 / (k - 1.0)))
    t = np.minimum(start, bound)
    for _ in range(_MAX_INNER):
        flat = np.power(t, k - 2.0)
        slope = a + (k - 1.0) * b * flat
        excess = t * (a + b * flat) - y
        step = np.divide(excess, slope, out=np.zeros_like(t), where=slope > 0.0)
        new = np.clip(t - step, 0.0, bound)
        done = bool(np.all(np.abs(new - t) <= 4.0 * EPS * new))
        t = new
        if done:
            break
    return t
