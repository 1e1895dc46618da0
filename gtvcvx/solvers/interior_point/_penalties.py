"""Penalties as blocks of a conic program, and the flow in the multipliers of their rows.

The Lagrangian has ``<u, D w - z>`` where z stands for the jumps, as in `GTVProblem.cvxpy`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.conic._form import Cone, ConicForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._program import Linear, Program, interleaved
from gtvcvx.solvers.interior_point._written import add_written_penalty

#: Reads the flow (m, d) from the point w (n, d) and the multipliers of all constraints.
ReadFlow = Callable[[FloatArray, FloatArray], FloatArray]
#: Reads the flow (m, d) from the multipliers alone.
ReadMultipliers = Callable[[FloatArray], FloatArray]

PENALTY_KINDS = frozenset({"l1", "l2", "linf", "squared", "quadratic"})


def add_penalty(program: Program, problem: GTVProblem) -> ReadFlow:
    """Add the penalties of all edges; the coordinates of w are the first variables."""
    data = problem.penalty.to_data()
    kind, m, d = data["kind"], problem.graph.n_edges, problem.dim
    if m == 0:
        return lambda w, multipliers: np.zeros((0, d))
    if kind in ("squared", "quadratic"):
        Q = data.get("Q", np.eye(d))
        if any(batch.written() is not None for _, batch in problem.losses.parts):
            return _add_squares(program, problem, Q)
        return _add_quadratic(program, problem, Q)
    written = problem.penalty.written(d)
    if written is not None:
        return _add_written(program, problem, written.form)
    coordinates = np.arange(d)
    heads, tails = (end[:, None] * d + coordinates for end in problem.graph.edges.T)
    if kind == "pnorm":
        read = _add_p_norms(program, data["p"], heads, tails, problem.capacities)
    else:
        read = add_norms(program, kind, heads, tails, problem.capacities)
    return lambda w, multipliers: read(multipliers)


def _add_written(program: Program, problem: GTVProblem, form: ConicForm) -> ReadFlow:
    equal, shape = add_written_penalty(program, problem, form), (-1, problem.dim)
    return lambda w, multipliers: multipliers[program.place(equal)].reshape(shape)


def _add_p_norms(
    program: Program, p: float, heads: IntArray, tails: IntArray, capacities: FloatArray
) -> ReadMultipliers:
    """Bound p-norms of the jumps by variables t.

    ``|jump_k| <= share_k^(1/p) t^(1 - 1/p)``, a power cone for each coordinate, with shares that
    add up to t for each edge.
    """
    m, d = heads.shape
    jumps = Linear.of(heads.ravel()) + -Linear.of(tails.ravel())
    t, shares = program.variables(m), program.variables(m * d)
    program.linear_cost(t, capacities)
    total = Linear(np.repeat(np.arange(m), d), shares, np.ones(m * d), m)
    program.constrain("zero", total + -Linear.of(t), 0.0)
    forms = interleaved([-Linear.of(shares), -Linear.of(np.repeat(t, d)), -jumps])
    cones = program.constrain_in([Cone("power", 3, (1.0 / p, 1.0 - 1.0 / p))] * (m * d), forms, 0.0)

    def read(multipliers: FloatArray) -> FloatArray:
        return -multipliers[program.place(cones)].reshape(m, d, 3)[:, :, 2]

    return read


def add_norms(
    program: Program, kind: str, heads: IntArray, tails: IntArray, capacities: FloatArray
) -> ReadMultipliers:
    """Add ``c_e ||x[heads_e] - x[tails_e]||`` for variables (m, d), one edge a row."""
    jumps = Linear.of(heads.ravel()) + -Linear.of(tails.ravel())
    if kind == "l2" and heads.shape[1] > 1:
        return _add_lengths(program, jumps, heads.shape[1], capacities)
    return _add_moduli(program, jumps, heads.shape[1], capacities, apart=kind == "l1")


def _add_moduli(
    program: Program, jumps: Linear, d: int, capacities: FloatArray, apart: bool
) -> ReadMultipliers:
    """Bound moduli of the jumps by variables; each by its own, or all of an edge by one."""
    m = len(capacities)
    if apart:
        t = program.variables(m * d)
        program.linear_cost(t, np.repeat(capacities, d))
    else:
        t = program.variables(m)
        program.linear_cost(t, capacities)
        t = np.repeat(t, d)
    up = program.constrain("nonneg", jumps + -Linear.of(t), 0.0)
    down = program.constrain("nonneg", -jumps + -Linear.of(t), 0.0)

    def read(multipliers: FloatArray) -> FloatArray:
        flow = multipliers[program.place(up)] - multipliers[program.place(down)]
        return flow.reshape(m, d)

    return read


def _add_lengths(
    program: Program, jumps: Linear, d: int, capacities: FloatArray
) -> ReadMultipliers:
    """Bound lengths of the jumps by variables."""
    m = len(capacities)
    t = program.variables(m)
    program.linear_cost(t, capacities)
    # Of each edge first the length, then the jump.
    length = Linear(np.arange(m) * (d + 1), t, -np.ones(m), m * (d + 1))
    row = jumps.row + jumps.row // d + 1
    forms = length + Linear(row, jumps.column, -jumps.value, m * (d + 1))
    cones = program.constrain("soc", forms, 0.0, rows=d + 1)

    def read(multipliers: FloatArray) -> FloatArray:
        return -multipliers[program.place(cones)].reshape(m, d + 1)[:, 1:]

    return read


def _add_quadratic(program: Program, problem: GTVProblem, Q: FloatArray) -> ReadFlow:
    """Add ``(c_e / 2) z_e^T Q z_e``; the flow is the gradient at the jumps."""
    incidence, capacities = problem.graph.incidence, problem.capacities
    laplacian = incidence.T @ sp.diags_array(capacities) @ incidence
    program.quadratic_cost(sp.kron(laplacian, Q, format="coo"))

    def read(w: FloatArray, multipliers: FloatArray) -> FloatArray:
        return capacities[:, None] * (problem.differences(w) @ Q)

    return read


def _add_squares(program: Program, problem: GTVProblem, Q: FloatArray) -> ReadFlow:
    """Do the same with variables for roots of the costs; the flow is a sum of multipliers.

    Where points are large and jumps small, differences of points are no flow any more.
    """
    m, d = problem.graph.n_edges, problem.dim
    values, vectors = np.linalg.eigh(Q)
    R = vectors * np.sqrt(np.maximum(values, 0.0))  # Q = R R^T
    root = np.sqrt(problem.capacities)
    z = program.variables(m * d)
    program.square_cost(z, 1.0)
    heads, tails = (end[:, None] * d + np.arange(d) for end in problem.graph.edges.T)
    # Row (e, k): sqrt(c_e) sum_j R_jk jump_ej.
    row = np.repeat(np.arange(m * d), d)
    value = (root[:, None, None] * R.T).ravel()
    along = [
        Linear(row, np.repeat(end, d, axis=0).ravel(), sign * value, m * d)
        for end, sign in ((heads, 1.0), (tails, -1.0))
    ]
    equal = program.constrain("zero", along[0] + along[1] + -Linear.of(z), 0.0)

    def read(w: FloatArray, multipliers: FloatArray) -> FloatArray:
        found = multipliers[program.place(equal)].reshape(m, d)
        flow: FloatArray = root[:, None] * (found @ R.T)
        return flow

    return read
