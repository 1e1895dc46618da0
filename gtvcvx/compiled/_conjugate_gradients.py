"""Compiled conjugate gradients for the projection on flow conservation; the twin is in the tests.

The matrix is ``T (D^T C R D + B) T``: D the incidence matrix, C the conductances of the edges, T_i
a projector at each node, R a projector on the flows that the penalty allows, B conductances from
the nodes to the ground. An edge may also conduct less, or not at all, in one direction of its own.
The matrix is singular and the systems are consistent. NumPy's and SciPy's vector
operations would call threaded BLAS for every inner product, which stalls when another process has
the second core.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, UInt32Array
from gtvcvx.compiled import FAST, compiled
from gtvcvx.compiled._arcs import Arcs


class Projectors(NamedTuple):
    """One projector T_i a node: multiples of the identity, and matrices at some nodes.

    Attributes
    ----------
    full : ndarray, shape (n,)
        1 for the identity and 0 for zero; of no account at the nodes that have a matrix.
    partial : ndarray of int64, shape (k,)
        Nodes that have a matrix.
    matrices : ndarray, shape (k, d, d)
    """

    full: FloatArray
    partial: IntArray
    matrices: FloatArray


class System(NamedTuple):
    """The matrix ``T (D^T C R D + B) T``, and what preconditions it.

    Attributes
    ----------
    arcs : Arcs
    conductance : ndarray, shape (m,)
        C.
    degrees : ndarray, shape (n,), > 0
        The preconditioner: sums of conductances around each node, and what B adds.
    projectors : Projectors, optional
        T, the identity by default.
    allowed : ndarray, shape (d, d), optional
        R, the identity by default.
    ground : ndarray, shape (n, d, d), optional
        Symmetric blocks on the diagonal of B, zero by default.
    normals : ndarray, shape (m, d), optional
        Vectors a_e of length at most 1: edge e conducts ``C_e (I - a_e a_e^T)``. Without R.
    """

    arcs: Arcs
    conductance: FloatArray
    degrees: FloatArray
    projectors: Projectors | None = None
    allowed: FloatArray | None = None
    ground: FloatArray | None = None
    normals: FloatArray | None = None


@compiled(fastmath=FAST, error_model="python")
def project_nodes(
    x: FloatArray, out: FloatArray, full: FloatArray, partial: IntArray, matrices: FloatArray
) -> None:
    """Write T_i x_i of x (n, d) to out (n, d); see `Projectors`."""
    n, d = x.shape
    for i in range(n):
        for k in range(d):
            out[i, k] = full[i] * x[i, k]
    for p in range(len(partial)):
        i = partial[p]
        for k in range(d):
            total = 0.0
            for j in range(d):
                total += matrices[p, k, j] * x[i, j]
            out[i, k] = total


@compiled(fastmath=FAST, error_model="python")
def _laplacian(
    dims: tuple[int, ...],
    x: FloatArray,
    out: FloatArray,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    allowed: FloatArray | None,
    normals: FloatArray | None,
) -> None:
    """Write ``D^T C R D x`` to out (n, d), or ``D^T C (I - a a^T) D x`` with normals a_e (m, d)."""
    n, d = len(x), len(dims)
    difference = np.empty(d)
    out[:] = 0.0
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            j, c = tails[e], conductance[e]
            if normals is not None:
                along = 0.0
                for k in range(d):
                    difference[k] = x[i, k] - x[j, k]
                    along += normals[e, k] * difference[k]
                for k in range(d):
                    step = c * (difference[k] - along * normals[e, k])
                    out[i, k] += step
                    out[j, k] -= step
            elif allowed is None:
                for k in range(d):
                    step = c * (x[i, k] - x[j, k])
                    out[i, k] += step
                    out[j, k] -= step
            else:
                for k in range(d):
                    difference[k] = c * (x[i, k] - x[j, k])
                for k in range(d):
                    step = 0.0
                    for q in range(d):
                        step += allowed[k, q] * difference[q]
                    out[i, k] += step
                    out[j, k] -= step


def solve(system: System, b: FloatArray, goal: float, max_iter: int) -> FloatArray:
    """Solve ``T (D^T C R D + B) T x = b`` for b (n, d) in the range, to a residual of norm goal.

    Returns x (n, d) with T x = x.
    """
    # Field by field: numba looks up the types of nested structures slowly, and calls are many.
    x: FloatArray = _solve(
        (0,) * b.shape[1],
        b,
        goal,
        max_iter,
        *system.arcs,
        system.conductance,
        system.degrees,
        *(system.projectors or (None, None, None)),
        system.allowed,
        system.ground,
        system.normals,
    )
    return x


@compiled(fastmath=FAST, error_model="python")
def _solve(
    dims: tuple[int, ...],
    b: FloatArray,
    goal: float,
    max_iter: int,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    degrees: FloatArray,
    full: FloatArray | None,
    partial: IntArray | None,
    matrices: FloatArray | None,
    allowed: FloatArray | None,
    ground: FloatArray | None,
    normals: FloatArray | None,
) -> FloatArray:
    """Run conjugate gradients; see `System` for the matrix."""
    n, d = len(b), len(dims)
    x = np.zeros((n, d))
    residual = b.copy()
    direction, product, flow = np.zeros((n, d)), np.empty((n, d)), np.empty((n, d))
    inverse = 1.0 / degrees
    previous = 1.0
    for iteration in range(max_iter):
        square, energy = 0.0, 0.0
        for i in range(n):
            for k in range(d):
                part = residual[i, k] * residual[i, k]
                square += part
                energy += part * inverse[i]
        if not square > goal * goal:
            break
        beta = energy / previous if previous > 0.0 and iteration else 0.0
        previous = energy
        for i in range(n):
            for k in range(d):
                direction[i, k] = residual[i, k] * inverse[i] + beta * direction[i, k]
        _laplacian(dims, direction, flow, starts, tails, conductance, allowed, normals)
        if ground is not None:
            for i in range(n):
                for k in range(d):
                    for j in range(d):
                        flow[i, k] += ground[i, k, j] * direction[i, j]
        if full is None:
            # numba takes seconds to compile an assignment of whole arrays, for its error message.
            for i in range(n):
                for k in range(d):
                    product[i, k] = flow[i, k]
        else:
            project_nodes(flow, product, full, partial, matrices)
        curvature = 0.0
        for i in range(n):
            for k in range(d):
                curvature += direction[i, k] * product[i, k]
        if not curvature > 0.0:
            break
        length = energy / curvature
        for i in range(n):
            for k in range(d):
                x[i, k] += length * direction[i, k]
                residual[i, k] -= length * product[i, k]
    return x
