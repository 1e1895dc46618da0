"""Log-losses of rows over K classes: values, slopes and gaps, without cancellation.

A row has scores z (K,) and a class y; ``f(z) = log sum_k exp(z_k) - z_y``. Arrays have the classes
last, and any axes before; ``own`` marks the class of each row.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray

# Below this size exp(x) - 1 - x is summed up from its series, whose sixth term is the first that
# doubles cannot hold beside the first one there.
SERIES = 1e-3
# Up to this relative difference of two chances the logarithm of their ratio is taken by log1p.
CLOSE = 0.5


def probabilities(z: FloatArray) -> FloatArray:
    """Chances q of the classes, each with its own relative accuracy."""
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    out: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return out


def slopes(q: FloatArray, own: BoolArray) -> FloatArray:
    """Gradients ``q - e_y``; at y what the other chances add up to, and not one less than q_y.

    Of any numbers q: those that add up to zero and are the same for all classes but y.
    """
    out = np.where(own, 0.0, q)
    others = out.sum(axis=-1, keepdims=True)
    return np.where(own, -others, out)


def completed(p: FloatArray, own: BoolArray) -> FloatArray:
    """Chances >= 0 of sum 1: that of y is what the others leave; if they exceed 1, less of them."""
    out = np.where(own, 0.0, np.maximum(p, 0.0))
    out = out / np.maximum(out.sum(axis=-1, keepdims=True), 1.0)
    return np.where(own, np.maximum(1.0 - out.sum(axis=-1, keepdims=True), 0.0), out)


def values(z: FloatArray, own: BoolArray) -> FloatArray:
    """Log-losses of all rows."""
    ahead = z - np.sum(np.where(own, z, 0.0), axis=-1, keepdims=True)
    most = ahead.max(axis=-1)
    weights = np.exp(ahead - most[..., None])
    # Where no class is ahead of y, its own weight is 1.
    others = np.where(own, 0.0, weights).sum(axis=-1)
    return np.where(most > 0.0, most + np.log(weights.sum(axis=-1)), np.log1p(others))


def rises(q: FloatArray, change: FloatArray) -> FloatArray:
    """How far rows are above their tangents where chances were q, after a change of the scores."""
    x = change - np.sum(q * change, axis=-1, keepdims=True)
    size = np.abs(x).max(axis=-1)
    near = np.minimum(np.maximum(x, -1.0), 1.0)
    small = np.log1p(np.sum(q * _exp_above(near), axis=-1))
    most = x.max(axis=-1)
    with np.errstate(divide="ignore"):
        far = most + np.log(np.sum(q * np.exp(x - most[..., None]), axis=-1))
    return np.maximum(np.where(size <= 1.0, small, far), 0.0)


def _exp_above(x: FloatArray) -> FloatArray:
    """Return ``exp(x) - 1 - x``."""
    series = x**2 / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0))))
    return np.where(np.abs(x) <= SERIES, series, np.expm1(x) - x)


def divergences(p: FloatArray, z: FloatArray) -> FloatArray:
    """Gaps ``f(z) + f*(p - e_y) - <p - e_y, z>``: divergences of p from the chances at z."""
    return np.asarray(parts_of_divergences(p, z).sum(axis=-1))


def parts_of_divergences(p: FloatArray, z: FloatArray) -> FloatArray:
    """Return what each class has of them: ``p_k log(p_k / q_k) - p_k + q_k``, convex in p_k."""
    q = probabilities(z)
    logs = z - z.max(axis=-1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = (p - q) / q
        near = q * ((1.0 + t) * np.log1p(t) - t)
        far = np.where(p > 0.0, p * (np.log(p) - logs), 0.0) - p + q
    # Close to each other all of it is t^2 / 2, which 1 + t has lost.
    parts = np.where(np.abs(t) <= CLOSE, np.where(np.abs(t) <= SERIES, _near(q, t), near), far)
    return np.maximum(parts, 0.0)


def _near(q: FloatArray, t: FloatArray) -> FloatArray:
    """Return ``q ((1 + t) log(1 + t) - t)`` for small t, by its series."""
    with np.errstate(over="ignore", invalid="ignore"):
        series = t**2 / 2.0 * (1.0 - t / 3.0 * (1.0 - t / 2.0 * (1.0 - 0.6 * t)))
        return np.asarray(q * series)


def negative_entropies(p: FloatArray) -> FloatArray:
    """Conjugates ``f*(p - e_y) = sum_k p_k log p_k``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p > 0.0, p * np.log(p), 0.0)
    return np.asarray(parts.sum(axis=-1))
