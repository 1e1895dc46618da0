"""Compiled passes of the balance of a flow inside clusters; their NumPy twins are in the tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs

# A flow at capacity keeps this share of its conductance along itself, so that no edge is lost.
ALONG = 1e-4


class Clipped(NamedTuple):
    """A flow inside the capacities, and the derivative of the projection that led to it.

    The derivative is ``conductance (I - normal normal^T)`` on each edge, nearly.

    Attributes
    ----------
    flow : ndarray, shape (m, q)
    conductance : ndarray, shape (m,)
    normals : ndarray, shape (m, q)
    degrees : ndarray, shape (n,)
        Sums of the edges' mean conductances around each node.
    """

    flow: FloatArray
    conductance: FloatArray
    normals: FloatArray
    degrees: FloatArray


@compiled(fastmath=FAST, error_model="python")
def clip(
    dims: Dims,
    arcs: Arcs,
    capacities: FloatArray,
    inner: BoolArray,
    z: FloatArray,
    clipped: Clipped,
    missing: FloatArray,
) -> float:
    """Project z (m, q) on the capacities (m,) edge by edge, and linearize the projection there.

    In place, for the `inner` edges (m,): `clipped` is written, and the flow's divergence is taken
    from `missing` (n, q). Returns the sum of the Huber functions whose gradient the projection is.
    """
    q = len(dims)
    starts, tails = arcs.starts, arcs.tails
    flow, conductance = clipped.flow, clipped.conductance
    normals, degrees = clipped.normals, clipped.degrees
    total = 0.0
    degrees[:] = 0.0
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            if not inner[e]:
                continue
            j, cap = tails[e], capacities[e]
            square = 0.0
            for k in range(q):
                square += z[e, k] * z[e, k]
            scale, along, mean = 1.0, 0.0, 1.0
            if square > cap * cap:
                norm = np.sqrt(square)
                total += cap * norm - 0.5 * cap * cap
                scale = cap / norm
                along = np.sqrt(1.0 - ALONG) / norm
                mean = scale * (1.0 - (1.0 - ALONG) / q)
            else:
                total += 0.5 * square
            conductance[e] = scale
            degrees[i] += mean
            degrees[j] += mean
            for k in range(q):
                normals[e, k] = along * z[e, k]
                flow[e, k] = scale * z[e, k]
                missing[i, k] -= flow[e, k]
                missing[j, k] += flow[e, k]
    return total


@compiled(error_model="python")
def shift(
    arcs: Arcs,
    inner: BoolArray,
    z: FloatArray,
    potential: FloatArray,
    length: float,
    out: FloatArray,
) -> None:
    """Write ``z + length (x_head - x_tail)`` of a potential x (n, q) to out (m, q), inner edges."""
    starts, tails = arcs.starts, arcs.tails
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            if inner[e]:
                j = tails[e]
                for k in range(z.shape[1]):
                    out[e, k] = z[e, k] + length * (potential[i, k] - potential[j, k])


@compiled(fastmath=FAST, error_model="python")
def masked_laplacian(
    arcs: Arcs, x: FloatArray, weights: FloatArray, normals: FloatArray, out: FloatArray
) -> None:
    """Write ``D^T (W - a a^T) D x`` to out (n, q), the weights W_e (m, q) being diagonal."""
    starts, tails = arcs.starts, arcs.tails
    q = x.shape[1]
    out[:] = 0.0
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            j, along = tails[e], 0.0
            for k in range(q):
                along += normals[e, k] * (x[i, k] - x[j, k])
            for k in range(q):
                step = weights[e, k] * (x[i, k] - x[j, k]) - along * normals[e, k]
                out[i, k] += step
                out[j, k] -= step
