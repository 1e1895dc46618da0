"""The problem that is left once fused nodes are one: small, and solved by a conic solver.

Variables z_1, ..., z_N, each the common value of some coordinates of w, with

    min_z  (1/2) z^T P z + (1/2) ||R z||^2 - q^T z + sum_k c_k ||z_head(k) - z_tail(k)||,

where a reduced edge k joins groups of variables. Clarabel is called without CVXPY: its model would
take longer to build than to solve.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.solvers.interior_point._penalties import add_norms
from gtvcvx.solvers.interior_point._prices import DEFAULTS as PRICES
from gtvcvx.solvers.interior_point._program import Linear, Program

# Tighter than any gap that is asked for; Clarabel's last steps are cheap.
TOLERANCE = 1e-11


class ClusterProblem(NamedTuple):
    """Quadratic loss of the variables, and the reduced edges, q coordinates wide."""

    hessian: sp.csc_array  # (N, N), upper triangle
    linear: FloatArray  # (N,)
    heads: IntArray  # (r, q)
    tails: IntArray  # (r, q)
    capacities: FloatArray  # (r,)

    norm: str = "l2"  # of jumps over the reduced edges
    rows: sp.csr_array | None = None  # R (M, N), where there are any: P is diagonal then

    def solve(
        self, seconds: float = np.inf, most: float = np.inf
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return z (N,) and the flows (r, q) on the reduced edges; None where Clarabel fails.

        Also where it needs more than the seconds, or more than `most` nanoseconds, as counted:
        between two looks at the clock it makes a factor, which may take longer than all of them.
        """
        n_variables = len(self.linear)
        program = Program(n_variables)
        program.quadratic_cost(self.hessian)
        program.linear_cost(np.arange(n_variables), -self.linear)
        if self.rows is not None:
            _add_squares(program, self.rows)
        read = add_norms(program, self.norm, self.heads, self.tails, self.capacities)
        answer = solved(program, seconds, most=most)
        return None if answer is None else (answer[0][:n_variables], read(answer[1]))


def _add_squares(program: Program, rows: sp.csr_array) -> None:
    """Add ``(1/2) ||R z||^2``, with a variable more for each row."""
    y, R = program.variables(rows.shape[0]), rows.tocoo()
    program.square_cost(y, 1.0)
    program.constrain("zero", Linear(R.row, R.col, R.data, len(y)) + -Linear.of(y), 0.0)


def solved(
    program: Program,
    seconds: float,
    tolerance: float = TOLERANCE,
    most: float = np.inf,
    rounds: float = PRICES.rounds,
) -> tuple[FloatArray, FloatArray] | None:
    """Return the variables and the multipliers; None where Clarabel fails, or needs longer.

    Also where its factor is so large that so many rounds will take more than `most` nanoseconds, as
    counted.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit, settings.max_threads = False, seconds, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = program.solver(settings)
    if most < np.inf:
        known, size = solver.get_info().linsolver, program.size + program.n_rows
        if PRICES.by_clarabel(known.nnzA, known.nnzL, size, rounds) > most:
            return None
    answer = solver.solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    return np.array(answer.x), np.array(answer.z)
