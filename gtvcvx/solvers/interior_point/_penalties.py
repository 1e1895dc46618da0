"""Penalties as blocks of a conic program, and the flow in the multipliers of their rows.

The Lagrangian has ``<u, D w - z>`` where z stands for the jumps, as in `GTVProblem.cvxpy`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._program import Linear, Program, interleaved

#: Reads the flow (m, d) from the point w (n, d) and the multipliers of all constraints.
ReadFlow = Callable[[FloatArray, FloatArray], FloatArray]

PENALTY_KINDS = frozenset({"l1", "l2", "linf", "squared", "quadratic"})


def add_penalty(program: Program, problem: GTVProblem) -> ReadFlow:
    """Add the penalties of all edges; the coordinates of w are the first variables."""
    data = problem.penalty.to_data()
    kind, m, d = data["kind"], problem.graph.n_edges, problem.dim
    if m == 0:
        return lambda w, multipliers: np.zeros((0, d))
    if kind in ("squared", "quadratic"):
        return _add_quadratic(program, problem, data.get("Q", np.eye(d)))
    if kind == "l2" and d > 1:
        return _add_lengths(program, problem)
    return _add_moduli(program, problem, apart=kind == "l1")


def _jumps(problem: GTVProblem) -> Linear:
    """Jumps (D w)_e, coordinate by coordinate, edge after edge."""
    identity = sp.eye_array(problem.dim, format="csr")
    return Linear.of_matrix(sp.kron(problem.graph.incidence, identity, format="csr"))


def _add_moduli(program: Program, problem: GTVProblem, apart: bool) -> ReadFlow:
    """Bound moduli of the jumps by variables; each by its own, or all of an edge by one."""
    m, d = problem.graph.n_edges, problem.dim
    jumps = _jumps(problem)
    if apart:
        t = program.variables(m * d)
        program.linear_cost(t, np.repeat(problem.capacities, d))
    else:
        t = program.variables(m)
        program.linear_cost(t, problem.capacities)
        t = np.repeat(t, d)
    up = program.constrain("nonneg", jumps + -Linear.of(t), 0.0)
    down = program.constrain("nonneg", -jumps + -Linear.of(t), 0.0)

    def read(w: FloatArray, multipliers: FloatArray) -> FloatArray:
        flow = multipliers[program.place(up)] - multipliers[program.place(down)]
        return flow.reshape(m, d)

    return read


def _add_lengths(program: Program, problem: GTVProblem) -> ReadFlow:
    """Bound lengths of the jumps by variables."""
    m, d = problem.graph.n_edges, problem.dim
    t = program.variables(m)
    program.linear_cost(t, problem.capacities)
    edge_matrix = sp.kron(problem.graph.incidence, np.eye(1), format="csr")
    edge = Linear.of_matrix(edge_matrix)
    parts = [Linear(edge.row, edge.column * d + k, -edge.value, m) for k in range(d)]
    cones = program.constrain("soc", interleaved([-Linear.of(t), *parts]), 0.0, rows=d + 1)

    def read(w: FloatArray, multipliers: FloatArray) -> FloatArray:
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
