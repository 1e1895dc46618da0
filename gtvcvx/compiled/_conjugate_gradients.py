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

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, UInt32Array
from gtvcvx._deadline import look, spend
from gtvcvx.compiled import FAST, Dims, compiled, dims_of
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._laplacian import laplacian

# Multiplications between two looks at the clock: some hundredths of a second.
LOOK_WORK = 20_000_000
# Nanoseconds that one takes, with what comes along with it.
MULTIPLICATION = 1.0
_NONE = np.zeros(0, np.int64)


class Projectors(NamedTuple):
    """One projector T_i a node: multiples of the identity, and others at some nodes.

    Attributes
    ----------
    full : ndarray, shape (n, d)
        Diagonals: 1 for the identity and 0 for zero; of no account at nodes that have a matrix, or
        rows.
    partial : ndarray of int64, shape (k,)
        Nodes that have a matrix.
    matrices : ndarray, shape (k, d, d)
    thin : ndarray of int64, shape (q,)
        Nodes whose projectors are the identity less ``V^T V``.
    rows : ndarray, shape (N, d)
        The orthonormal rows V: those of node ``thin[p]`` are ``indptr[p] .. indptr[p + 1] - 1``.
    indptr : ndarray of int64, shape (q + 1,)
    """

    full: FloatArray
    partial: IntArray
    matrices: FloatArray
    thin: IntArray
    rows: FloatArray
    indptr: IntArray


class GroundRows(NamedTuple):
    """Conductances to the ground: ``sum_q g_q g_q^T`` over the rows of each node.

    Attributes
    ----------
    node : ndarray of int64, shape (Q,)
        Whose row it is.
    rows : ndarray, shape (Q, d)
    diagonal : ndarray, shape (n, d, 1), optional
        What there is beside the rows, coordinate by coordinate.
    """

    node: IntArray
    rows: FloatArray
    diagonal: FloatArray | None = None


#: Conductances to the ground as symmetric blocks (n, d, d), or as rows where these take less.
Ground = FloatArray | GroundRows


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
    ground : ndarray, shape (n, d, d), or GroundRows, optional
        Symmetric blocks on the diagonal of B, zero by default.
    normals : ndarray, shape (m, d), optional
        Vectors a_e of length at most 1: edge e conducts ``C_e (I - a_e a_e^T)``. Without R.
    """

    arcs: Arcs
    conductance: FloatArray
    degrees: FloatArray
    projectors: Projectors | None = None
    allowed: FloatArray | None = None
    ground: Ground | None = None
    normals: FloatArray | None = None

    @property
    def to_ground(self) -> tuple[FloatArray | None, IntArray | None, FloatArray | None]:
        """The ground's blocks, or diagonals, the nodes of its rows and these, or None."""
        if isinstance(self.ground, GroundRows):
            return self.ground.diagonal, self.ground.node, self.ground.rows
        return self.ground, None, None


class State(NamedTuple):
    """Where the iterations are between two calls: they go on to the last bit as if in one.

    Attributes
    ----------
    x, residual, direction : ndarray, shape (n, d)
    flow, product : ndarray, shape (n, d)
        What D^T C R D + B makes of the direction, and T of that: the same where T is the identity.
    difference : ndarray, shape (d,), or (1, d) where the compiler knows the dimension
        Room for one edge.
    turned : ndarray of bool, shape (m,), optional
        Which edges have normals that are not zero, in high dimension: few, and the others' are not
        read again and again.
    energy : ndarray, shape (1,)
        Of the residual, at the last iteration.
    """

    x: FloatArray
    residual: FloatArray
    direction: FloatArray
    flow: FloatArray
    product: FloatArray
    difference: FloatArray
    turned: BoolArray | None
    energy: FloatArray

    @staticmethod
    def of(system: System, b: FloatArray) -> State:
        """Begin at zero."""
        x, direction, flow = (np.zeros_like(b) for _ in range(3))
        product = flow if system.projectors is None else np.zeros_like(b)
        known = isinstance(dims_of(b.shape[1]), tuple)
        difference = np.zeros((1, b.shape[1]) if known else b.shape[1])
        turned = None if known or system.normals is None else np.any(system.normals != 0.0, axis=1)
        return State(x, b.copy(), direction, flow, product, difference, turned, np.ones(1))


@compiled(fastmath=FAST, allocates=False, inner=True)
def project_nodes(
    x: FloatArray,
    out: FloatArray,
    full: FloatArray,
    partial: IntArray,
    matrices: FloatArray,
    thin: IntArray,
    rows: FloatArray,
    indptr: IntArray,
) -> None:
    """Write T_i x_i of x (n, d) to out (n, d); see `Projectors`."""
    n, d = x.shape
    for i in range(n):
        for k in range(d):
            out[i, k] = full[i, k] * x[i, k]
    for p in range(len(partial)):
        i = partial[p]
        for k in range(d):
            total = 0.0
            for j in range(d):
                total += matrices[p, k, j] * x[i, j]
            out[i, k] = total
    for p in range(len(thin)):
        i = thin[p]
        for k in range(d):
            out[i, k] = x[i, k]
        for r in range(indptr[p], indptr[p + 1]):
            along = 0.0
            for k in range(d):
                along += rows[r, k] * x[i, k]
            for k in range(d):
                out[i, k] -= along * rows[r, k]


@compiled(fastmath=FAST, allocates=False)
def write_projected(
    x: FloatArray,
    out: FloatArray,
    full: FloatArray,
    partial: IntArray,
    matrices: FloatArray,
    thin: IntArray,
    rows: FloatArray,
    indptr: IntArray,
) -> None:
    """Write T_i x_i, as `project_nodes` does, for callers in Python."""
    project_nodes(x, out, full, partial, matrices, thin, rows, indptr)


@compiled(small=True, allocates=False)
def add_blocks(node: IntArray, vectors: FloatArray, ground: FloatArray, out: FloatArray) -> None:
    """Add ``c_q g_q g_q^T`` to the block (n, d, d) of the node of each generator g_q (Q, d)."""
    d = vectors.shape[1]
    for q in range(len(node)):
        for j in range(d):
            for k in range(d):
                out[node[q], j, k] += ground[q] * vectors[q, j] * vectors[q, k]


def solve(system: System, b: FloatArray, goal: float, max_iter: int) -> FloatArray:
    """Solve ``T (D^T C R D + B) T x = b`` for b (n, d) in the range, to a residual of norm goal.

    Returns x (n, d) with T x = x.

    Raises
    ------
    Expired, Unaffordable
        Time or work is over, see `gtvcvx._deadline`.
    """
    state, first = State.of(system, b), 0
    work = multiplications(system, b.shape[1])
    steps = max(LOOK_WORK // work, 1)
    while first < max_iter:
        last = min(first + steps, max_iter)
        done = _continue(system, state, goal, first, last)
        spend(MULTIPLICATION * work * done)
        if done < last - first:
            break
        look()
        first = last
    return state.x


def multiplications(system: System, d: int) -> int:
    """Return what an iteration takes, at least 1."""
    ground, _, grounded = system.to_ground
    # Blocks, or diagonals: each coordinate of a node has that many entries.
    entries = 0 if ground is None else len(ground) * ground.shape[2]
    entries += 0 if system.projectors is None else len(system.projectors.partial) * d
    rows = 0 if system.projectors is None else 2 * len(system.projectors.rows)
    rows += 0 if grounded is None else 2 * len(grounded)
    edge = d if system.allowed is None else d * d
    nodes = (len(system.degrees) + rows + entries) * d
    return max(len(system.conductance) * edge + nodes, 1)


def _continue(system: System, state: State, goal: float, first: int, last: int) -> int:
    """Run iterations first to last - 1; return how many it took: fewer if nothing is left to do."""
    ground, grounded, ground_rows = system.to_ground
    if system.projectors is not None and grounded is None:
        # Where there are projectors rows come and go: no rows are some, and not compiled anew.
        grounded, ground_rows = _NONE, np.empty((0, state.x.shape[1]))
    # Field by field: numba looks up the types of nested structures slowly, and calls are many.
    done: int = _iterate(
        dims_of(state.x.shape[1]),
        *state,
        goal,
        first,
        last,
        system.arcs.starts,
        system.arcs.tails,
        system.conductance,
        1.0 / system.degrees,
        *(system.projectors or (None,) * 6),
        system.allowed,
        ground,
        grounded,
        ground_rows,
        system.normals,
    )
    return done


# What an iteration does between sums over all nodes. Loops take the place of operations on whole
# arrays, which numba compiles slowly.


@compiled(fastmath=FAST, allocates=False, inline="always")
def energies(dims: Dims, residual: FloatArray, inverse: FloatArray) -> tuple[float, float]:
    """Return the squared norm of the residual (n, d), and that with weights (n,)."""
    n, d = len(residual), len(dims)
    square, energy = 0.0, 0.0
    for i in range(n):
        part = 0.0
        for k in range(d):
            part += residual[i, k] * residual[i, k]
        square += part
        energy += part * inverse[i]
    return square, energy


@compiled(fastmath=FAST, allocates=False, inline="always")
def turn(
    dims: Dims, direction: FloatArray, residual: FloatArray, inverse: FloatArray, beta: float
) -> None:
    """Make the direction (n, d) the preconditioned residual and beta times what it was."""
    n, d = len(direction), len(dims)
    for i in range(n):
        for k in range(d):
            direction[i, k] = residual[i, k] * inverse[i] + beta * direction[i, k]


@compiled(fastmath=FAST, allocates=False, inline="always")
def multiply(
    dims: Dims,
    direction: FloatArray,
    flow: FloatArray,
    product: FloatArray,
    difference: FloatArray,
    turned: BoolArray | None,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    full: FloatArray | None,
    partial: IntArray | None,
    matrices: FloatArray | None,
    thin: IntArray | None,
    rows: FloatArray | None,
    indptr: IntArray | None,
    allowed: FloatArray | None,
    ground: FloatArray | None,
    grounded: IntArray | None,
    ground_rows: FloatArray | None,
    normals: FloatArray | None,
) -> float:
    """Write the matrix times the direction to product; return its product with the direction."""
    n, d = len(direction), len(dims)
    laplacian(
        dims, direction, flow, difference, turned, starts, tails, conductance, allowed, normals
    )
    if ground is not None and ground.shape[2] == 1:
        for i in range(n):
            for k in range(d):
                flow[i, k] += ground[i, k, 0] * direction[i, k]
    elif ground is not None:
        for i in range(n):
            for k in range(d):
                for j in range(d):
                    flow[i, k] += ground[i, k, j] * direction[i, j]
    if grounded is not None and ground_rows is not None:
        for q in range(len(grounded)):
            i = grounded[q]
            along = 0.0
            for k in range(d):
                along += ground_rows[q, k] * direction[i, k]
            for k in range(d):
                flow[i, k] += along * ground_rows[q, k]
    if full is not None:
        project_nodes(flow, product, full, partial, matrices, thin, rows, indptr)
    curvature = 0.0
    for i in range(n):
        for k in range(d):
            curvature += direction[i, k] * product[i, k]
    return curvature


@compiled(fastmath=FAST, allocates=False, inline="always")
def advance(
    dims: Dims,
    x: FloatArray,
    residual: FloatArray,
    direction: FloatArray,
    product: FloatArray,
    length: float,
) -> None:
    """Go along the direction, and take what that makes up from the residual; all (n, d)."""
    n, d = len(x), len(dims)
    for i in range(n):
        for k in range(d):
            x[i, k] += length * direction[i, k]
            residual[i, k] -= length * product[i, k]


@compiled(fastmath=FAST, allocates=False)
def _iterate(
    dims: Dims,
    x: FloatArray,
    residual: FloatArray,
    direction: FloatArray,
    flow: FloatArray,
    product: FloatArray,
    difference: FloatArray,
    turned: BoolArray | None,
    last_energy: FloatArray,
    goal: float,
    first: int,
    last: int,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    inverse: FloatArray,
    full: FloatArray | None,
    partial: IntArray | None,
    matrices: FloatArray | None,
    thin: IntArray | None,
    rows: FloatArray | None,
    indptr: IntArray | None,
    allowed: FloatArray | None,
    ground: FloatArray | None,
    grounded: IntArray | None,
    ground_rows: FloatArray | None,
    normals: FloatArray | None,
) -> int:
    """Run conjugate gradients; see `State`, and `System` for the matrix.

    Returns how many iterations it took: fewer than asked for where there is nothing left to do.
    """
    previous = last_energy[0]
    for iteration in range(first, last):
        square, energy = energies(dims, residual, inverse)
        if not square > goal * goal:
            return iteration - first
        beta = energy / previous if previous > 0.0 and iteration else 0.0
        turn(dims, direction, residual, inverse, beta)
        previous = energy
        curvature = multiply(
            dims,
            direction,
            flow,
            product,
            difference,
            turned,
            starts,
            tails,
            conductance,
            full,
            partial,
            matrices,
            thin,
            rows,
            indptr,
            allowed,
            ground,
            grounded,
            ground_rows,
            normals,
        )
        if not curvature > 0.0:
            return iteration - first
        advance(dims, x, residual, direction, product, energy / curvature)
    last_energy[0] = previous
    return last - first
