"""Where the conjugates of composite losses are finite.

A multiplier of a row runs through the slopes of its scalar function, that of a coordinate through
those of its kinks and bounds. Unbounded ones let s_i move freely along their features; the bounded
ones are the generators of a polyhedron.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import pieces
from gtvcvx.losses.batched._base import FLOW_TOLERANCE, DualDomain
from gtvcvx.losses.batched._thin import SMALL
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._scalar import HUBER, KINK, LOGISTIC, POISSON, PSEUDO_HUBER

# A generator with a shorter share of it beside the free directions is one of them.
BESIDE = 1e-11
# Log-odds from which on a logistic row is as good as decided; residuals over delta from which on
# a pseudo-Huber row is.
DECIDED = 3.0


def complement(parts: Parts, rows: BoolArray, coordinates: BoolArray) -> FloatArray:
    """Projectors (k, d, d) on what is orthogonal to some rows (N,) and coordinates (k, d)."""
    k, d = coordinates.shape
    out = np.zeros((k, d, d))
    norms = np.linalg.norm(parts.X, axis=1)
    unit = parts.X / np.where(norms > 0.0, norms, 1.0)[:, None] * rows[:, None]
    open_nodes = np.flatnonzero(~coordinates.all(axis=1))
    for nodes, at in buckets(parts, open_nodes):
        stacked, given = unit[at], coordinates[nodes]
        if given.any():  # else d rows of zeros, where the nodes may have few rows and many columns
            stacked = np.concatenate([stacked, given[:, :, None] * np.eye(d)], axis=1)
        out[nodes] = _complements(stacked)
    return out


def _complements(rows: FloatArray) -> FloatArray:
    """Projectors (k, d, d) on what is orthogonal to the rows (k, m, d)."""
    k, m, d = rows.shape
    if min(m, d) == 0:
        return np.broadcast_to(np.eye(d), (k, d, d)).copy()
    basis, upper = np.linalg.qr(rows if m >= d else rows.transpose(0, 2, 1))
    full = well_conditioned(upper)
    out = np.zeros((k, d, d))
    if m < d:
        kept = basis[full]
        out[full] = np.eye(d) - kept @ kept.transpose(0, 2, 1)
    # Full rank is full rank: no rounding error may pass for a null direction.
    if not full.all():
        out[~full] = _by_singular_values(rows[~full])
    return out


def bases(rows: FloatArray) -> list[FloatArray]:
    """Orthonormal bases (r, d) of what rows (k, m, d) span, r their ranks; as `complement` has."""
    k, m, d = rows.shape
    if m == 0:
        return [np.zeros((0, d))] * k
    basis, upper = np.linalg.qr(rows.transpose(0, 2, 1))
    full = well_conditioned(upper) if m <= d else np.zeros(k, dtype=bool)
    return [basis[i].T if full[i] else _strong(rows[i]) for i in range(k)]


def _strong(rows: FloatArray) -> FloatArray:
    _, sigma, basis = np.linalg.svd(rows, full_matrices=False)
    found: FloatArray = basis[sigma > FLOW_TOLERANCE * max(float(sigma[0]), 1e-300)]
    return found


def well_conditioned(upper: FloatArray) -> BoolArray:
    """Say which triangles (k, r, r) have no singular value near what counts as zero.

    By their inverses, in a small part of the time that singular values take.
    """
    diagonal = np.abs(np.einsum("kii->ki", upper)).min(axis=1)
    size = np.linalg.norm(upper, axis=(1, 2))
    good: BoolArray = diagonal > FLOW_TOLERANCE * size
    least = 1.0 / np.linalg.norm(np.linalg.inv(upper[good]), axis=(1, 2))
    good[good] = least > FLOW_TOLERANCE * size[good]
    return good


def _by_singular_values(rows: FloatArray) -> FloatArray:
    _, sigma, basis = np.linalg.svd(rows, full_matrices=False)
    strong = sigma > FLOW_TOLERANCE * np.maximum(sigma[:, :1], 1e-300)
    kept = basis * strong[:, :, None]
    out: FloatArray = np.eye(rows.shape[2]) - kept.transpose(0, 2, 1) @ kept
    out[strong.sum(axis=1) == rows.shape[2]] = 0.0
    return out


def buckets(parts: Parts, nodes: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Nodes with equal numbers of rows, and their rows, shape (nodes, m)."""
    counts = np.diff(parts.indptr)[nodes]
    for count in np.unique(counts):
        same = nodes[counts == count]
        for piece in pieces(len(same), parts.nodes_a_look):
            yield same[piece], parts.indptr[same[piece]][:, None] + np.arange(count)


def bounded(parts: Parts) -> tuple[BoolArray, BoolArray]:
    """Rows (N,) and coordinates (k, d) whose multipliers are bounded, on one side at least."""
    low, high = parts.intervals
    fixed = np.isfinite(low) | np.isfinite(high)
    row = np.isfinite(parts.rows["low"]) | np.isfinite(parts.rows["high"])
    return row, fixed & ~((low == 0.0) & (high == 0.0))


def dual_domain(parts: Parts) -> tuple[DualDomain, BoolArray] | None:
    """Return generators and free directions, and which bounded rows and coordinates they are.

    None where there is no generator.
    """
    t_low, t_high = parts.intervals
    rows, coordinates = bounded(parts)
    free = np.isinf(t_low) & np.isinf(t_high) | ~np.isnan(parts.totals)[:, None]
    if free.all():  # ridges beside l1 terms, say: nothing is bounded, and matrices would be zero
        return None
    k, d = free.shape
    if rows.all() and k * d * d > SMALL:
        projector: FloatArray = np.where(free, 0.0, 1.0)
    else:
        projector = complement(parts, ~rows, free)
    generators = _generators(parts, projector, rows, coordinates)
    size = np.linalg.norm(generators[0], axis=1)
    original = np.concatenate([np.linalg.norm(parts.X, axis=1)[rows], np.ones(coordinates.sum())])
    chosen = size > BESIDE * original
    if not chosen.any():
        return None
    vectors, owner, low, high, scale = (array[chosen] for array in generators)
    return DualDomain(projector, owner, vectors, low, high, scale), chosen


def _generators(
    parts: Parts, projector: FloatArray, rows: BoolArray, coordinates: BoolArray
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, FloatArray]:
    node, j = np.nonzero(coordinates)
    vectors = _projected(parts, projector)[rows]
    if projector.ndim == 2:
        along = np.zeros((len(node), parts.X.shape[1]))
        along[np.arange(len(node)), j] = projector[node, j]
    else:
        along = projector[node, :, j]
    return (
        np.concatenate([vectors, along]),
        np.concatenate([parts.owner[rows], node]),
        *ends(parts, rows, coordinates),
    )


def ends(
    parts: Parts, rows: BoolArray, coordinates: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both ends of the generators' intervals, and their lengths or what is typical."""
    low, high = parts.intervals
    node, j = np.nonzero(coordinates)
    table = parts.rows[rows]
    # A Poisson rate is at least of the order of its count.
    high_end = np.where(np.isinf(table["high"]), table["c"], table["high"])
    # Where only a bound presses, what a row may press is typical.
    typical = float(np.max(table["c"] * np.linalg.norm(parts.X[rows], axis=1), initial=0.0))
    span = np.where(np.isfinite(low) & np.isfinite(high), high - low, typical or 1.0)[node, j]
    return (
        np.concatenate([table["low"], low[node, j]]),
        np.concatenate([table["high"], high[node, j]]),
        np.concatenate([high_end - table["low"], span]),
    )


def _projected(parts: Parts, projector: FloatArray) -> FloatArray:
    """Features (N, d) of the rows, projected by their nodes' projectors (k, d, d) or (k, d)."""
    if projector.ndim == 2:
        return np.asarray(parts.X * projector[parts.owner])
    out = np.zeros_like(parts.X)
    for nodes, at in buckets(parts, np.flatnonzero(projector.any(axis=(1, 2)))):
        out[at] = parts.X[at] @ projector[nodes]
    return out


def firmness(
    parts: Parts, w: FloatArray, a: FloatArray, t: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the generators' multipliers among a (N,) and t (k, d), and how firm they are.

    A kink is left when the residual vanishes, and so on: the distance of <x, w>, or of w_j.
    """
    rows, coordinates = bounded(parts)
    table = parts.rows[rows]
    image = np.einsum("qj,qj->q", parts.X[rows], w[parts.owner[rows]])
    residual = np.abs(image - table["y"])
    distance = np.select(
        [table["kind"] == kind for kind in (KINK, HUBER, PSEUDO_HUBER, LOGISTIC, POISSON)],
        [
            residual,
            np.maximum(residual - table["delta"], 0.0),
            np.maximum(residual - DECIDED * table["delta"], 0.0),
            np.maximum(np.abs(image) - DECIDED, 0.0),
            np.maximum(np.log1p(np.maximum(table["y"], 0.0)) - DECIDED - image, 0.0),
        ],
    )
    node, j = np.nonzero(coordinates)
    c = parts.coordinates[node, j]
    with np.errstate(invalid="ignore"):
        inner = np.minimum(np.abs(w[node, j] - c["lower"]), np.abs(c["upper"] - w[node, j]))
    kinked = np.minimum(np.abs(w[node, j]), inner)
    away = np.where(c["kappa"] > 0.0, kinked, inner)
    return np.concatenate([a[rows], t[node, j]]), np.concatenate([distance, away])
