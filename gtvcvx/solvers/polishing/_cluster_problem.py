"""The problem that is left once fused nodes are one: small, and solved by a conic solver.

Variables z_1, ..., z_N, each the common value of some coordinates of w, with

    min_z  (1/2) z^T P z - q^T z + sum_k c_k ||z_head(k) - z_tail(k)||_2,

where a reduced edge k joins groups of variables. Clarabel is called without CVXPY: its model would
take longer to build than to solve.
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray

# Tighter than any gap that is asked for; Clarabel's last steps are cheap.
TOLERANCE = 1e-11


class ClusterProblem(NamedTuple):
    """Quadratic loss of the variables, and the reduced edges, q coordinates wide."""

    hessian: sp.csc_array  # (N, N), upper triangle
    linear: FloatArray  # (N,)
    heads: IntArray  # (r, q)
    tails: IntArray  # (r, q)
    capacities: FloatArray  # (r,)

    def solve(self, seconds: float = np.inf) -> tuple[FloatArray, FloatArray] | None:
        """Return z (N,) and the flows (r, q) on the reduced edges; None where Clarabel fails.

        Also where it needs more than the seconds.
        """
        n_variables, n_edges = len(self.linear), len(self.heads)
        matrix, cones = self._norm_cones()
        hessian = sp.block_diag([self.hessian, sp.csc_array((n_edges, n_edges))], format="csc")
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit = False, seconds
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(hessian),
            np.concatenate([-self.linear, self.capacities]),
            sp.csc_matrix(matrix),
            np.zeros(matrix.shape[0]),
            cones,
            settings,
        )
        answer = solver.solve()
        if str(answer.status) not in ("Solved", "AlmostSolved"):
            return None
        return np.array(answer.x[:n_variables]), self._flows(np.array(answer.z))

    def _differences(self) -> sp.csr_array:
        """Matrix (r q, N) of the jumps over the reduced edges, edge by edge."""
        size = self.heads.size
        rows = np.arange(size)
        return sp.csr_array(
            (
                np.repeat([1.0, -1.0], size),
                (
                    np.concatenate([rows, rows]),
                    np.concatenate([self.heads.ravel(), self.tails.ravel()]),
                ),
            ),
            shape=(size, len(self.linear)),
        )

    def _norm_cones(self) -> tuple[sp.csr_array, list[object]]:
        """Constraints ``||jump_k||_2 <= t_k`` on (z, t); with q = 1, two inequalities each."""
        edges, width = self.heads.shape
        jumps = self._differences()
        each = sp.eye_array(edges, format="csr")
        if width > 1:
            # Rows (t_k, jump_k), interleaved: the slack of a second-order cone is minus the row.
            stacked = sp.vstack(
                [
                    sp.hstack([sp.csr_array((edges, jumps.shape[1])), -each]),
                    sp.hstack([-jumps, sp.csr_array((edges * width, edges))]),
                ],
                format="csr",
            )
            order = np.concatenate(
                [np.arange(edges)[:, None], edges + np.arange(edges * width).reshape(edges, width)],
                axis=1,
            ).ravel()
            return stacked[order], [clarabel.SecondOrderConeT(width + 1)] * edges
        matrix = sp.vstack([sp.hstack([jumps, -each]), sp.hstack([-jumps, -each])])
        return matrix.tocsr(), [clarabel.NonnegativeConeT(matrix.shape[0])]

    def _flows(self, multipliers: FloatArray) -> FloatArray:
        edges, width = self.heads.shape
        if width > 1:
            return -multipliers.reshape(edges, width + 1)[:, 1:]
        return (multipliers[: edges * width] - multipliers[edges * width :]).reshape(edges, width)
