"""How freely flows and multipliers change: the weights of corrections.

A change delta costs the dual objective about delta^2 / (2 W), with W the inverse curvature of the
conjugates beside that of a logarithmic barrier of weight mu, room^2 / mu: what is close to an end
moves little, and along the sphere of a capacity more than across.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray
from verify.instance._blocks import Part
from verify.instance._penalties import Penalty, QuadraticPenalty, RescaledPenalty, norms

LARGE, LEAST = 1e150, 1e-135  # instead of infinity and zero, where their squares are taken


def interval_weights(
    part: Part,
    r: FloatArray,
    typical: FloatArray,
    barrier: float,
    least: float,
    own: FloatArray | float = np.inf,
) -> FloatArray:
    """Return the weights of the multipliers r of one part, inside their intervals.

    Parameters
    ----------
    part : Part
    r : ndarray
        Of `part.shape`.
    typical : ndarray
        Lengths that stand for those of intervals with an infinite end; broadcasts to the shape.
    barrier : float
        Weight mu.
    least : float
        Share of an interval that counts as room at its ends.
    own : ndarray
        At an end that is zero, the share is of no more than this.
    """
    f = part.function
    both = np.isfinite(f.lo) & np.isfinite(f.hi)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        span = np.where(both, f.hi - f.lo, typical)
        below, above = r - f.lo, f.hi - r
        zero = np.where(below < above, f.lo, f.hi) == 0
        length = np.where(zero & both, np.minimum(span, own), span)
        room = np.minimum(np.minimum(below, above), span)
        bend = 1 / f.stiffness(r)
        ends = np.isfinite(f.lo) | np.isfinite(f.hi) | (bend == 0)
        room = np.where(ends, np.maximum(room, least * length), LARGE)
        return np.where(f.lo < f.hi, 1 / (bend + barrier / np.square(room)), 0.0)


def limited(room: FloatArray, barrier: float) -> FloatArray:
    """Return the weights of what has that room."""
    return np.maximum(np.square(np.minimum(room, LARGE)) / barrier, LEAST)


def edge_weights(
    penalty: Penalty,
    u: FloatArray,
    cap: FloatArray,
    barrier: float,
    least: float,
    most: FloatArray,
) -> FloatArray:
    """Return blocks (m, d, d) of the weights of flows u (m, d) inside their capacities (m,).

    Parameters
    ----------
    penalty : Penalty
    u, cap : ndarray
    barrier, least : float
        As above.
    most : ndarray, shape (d,)
        No coordinate moves more freely; infinite: no limit.
    """
    if isinstance(penalty, QuadraticPenalty) and penalty.matrix is not None:
        return np.asarray(cap[:, None, None] * penalty.matrix)
    units = penalty.units if isinstance(penalty, RescaledPenalty) else np.ones(u.shape[1])
    own, v = _precisions(penalty, u * units, cap, barrier, least)
    free = 1 / (own * units**2 + 1 / most)
    v = v * units
    moved = free * v
    moved /= np.sqrt(1 + (v * moved).sum(axis=1))[:, None]
    return np.asarray(free[:, :, None] * np.eye(len(most)) - moved[:, :, None] * moved[:, None, :])


def _precisions(
    penalty: Penalty, u: FloatArray, cap: FloatArray, barrier: float, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return a and v, (m, d) each, of the inverse weights diag(a) + v v^T."""
    cap = np.maximum(cap, LEAST)
    if not penalty.bounded:
        return np.broadcast_to(1 / cap[:, None], u.shape), np.zeros(u.shape)
    if penalty.q in (1, np.inf):
        a, v = (_box if penalty.q == np.inf else _octahedron)(u, cap, least)
    else:
        a, v = _ball(u, cap, least, penalty.q)
    return barrier * a, np.sqrt(barrier) * v


def _box(u: FloatArray, cap: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Room of the coordinates, each by itself."""
    room = np.maximum(cap[:, None] - np.abs(u), least * cap[:, None])
    return 1 / np.square(room), np.zeros(u.shape)


def _ball(u: FloatArray, cap: FloatArray, least: float, q: float) -> tuple[FloatArray, FloatArray]:
    """Room along the sphere of a q-norm grows with the root of that across."""
    length = norms(u, q)
    across = np.maximum(cap - length, least * cap)
    along = across * cap
    unit = u / np.maximum(length, np.finfo(np.float64).tiny)[:, None]
    if q != 2:  # the normal of the sphere, of length 1
        unit = np.sign(unit) * np.abs(unit) ** (q - 1)
        unit /= np.maximum(np.linalg.norm(unit, axis=1), np.finfo(np.float64).tiny)[:, None]
    rest = np.sqrt(np.maximum(1 / across**2 - 1 / along, 0))
    return np.broadcast_to(1 / along[:, None], u.shape), rest[:, None] * unit


def _octahedron(u: FloatArray, cap: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Positive and negative parts and what is left are numbers >= 0 with the capacity as sum."""
    left = np.maximum(cap - np.abs(u).sum(axis=1), least * cap)
    share = (left / (2 * u.shape[1]))[:, None]
    above, below = (np.square(np.maximum(part, 0.0) + share) for part in (u, -u))
    both = above + below
    rest = left**2 + (4 * above * (below / both)).sum(axis=1)
    return 1 / both, (above - below) / both / np.sqrt(rest)[:, None]
