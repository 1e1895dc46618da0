"""The CVXPY atom (||V_1||_p, ..., ||V_m||_p) of the rows of a matrix, for 1 < p < inf.

CVXPY's own ``pnorm`` takes an axis for p = 2 only, and one atom per row would be a loop over the
edges. This one is vectorized: all rows share three constraints on power cones.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy import atoms as cvxpy_atoms
from cvxpy.atoms.atom import Atom
from cvxpy.reductions.dcp2cone.canonicalizers import CANON_METHODS

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import row_norm_p


class RowPNorms(Atom):
    """Row norms ||V_e||_p of an affine expression V (m, d): shape (m,), convex, nonnegative."""

    def __init__(self, V: cp.Expression, p: float) -> None:
        self.p = p
        super().__init__(V)

    def numeric(self, values: list[FloatArray]) -> FloatArray:
        """Return the norms at a value of V."""
        return row_norm_p(np.asarray(values[0], dtype=np.float64), self.p)

    def shape_from_args(self) -> tuple[int, ...]:
        """Return (m,)."""
        return (self.args[0].shape[0],)

    def sign_from_args(self) -> tuple[bool, bool]:
        """Return (is nonnegative, is nonpositive)."""
        return (True, False)

    def is_atom_convex(self) -> bool:
        """Return True: every norm is convex."""
        return True

    def is_atom_concave(self) -> bool:
        """Return False."""
        return False

    def is_incr(self, idx: int) -> bool:
        """Return whether the norms increase with every entry."""
        return bool(self.args[0].is_nonneg())

    def is_decr(self, idx: int) -> bool:
        """Return whether the norms decrease with every entry."""
        return bool(self.args[0].is_nonpos())

    def get_data(self) -> list[float]:
        """Return the constructor's arguments after V."""
        return [self.p]

    def _grad(self, values: list[FloatArray]) -> list[sp.csc_array]:
        # Jacobian (m d, m) with V in column-major order; 0 is a subgradient at a zero row.
        V = np.asarray(values[0], dtype=np.float64)
        m, d = V.shape
        norms = row_norm_p(V, self.p)
        unit = V / np.where(norms > 0.0, norms, 1.0)[:, None]
        slopes = np.sign(unit) * np.power(np.abs(unit), self.p - 1.0)
        entries = (slopes.ravel(order="F"), (np.arange(m * d), np.tile(np.arange(m), d)))
        return [sp.csc_array(entries, shape=(m * d, m))]


def power_cones(V: cp.Expression, bound: cp.Expression, p: float) -> list[cp.Constraint]:
    """||V_e||_p <= bound_e for all rows, 1 < p < inf, V (m, d) and bound (m,) affine.

    |V_ek| <= share_ek^(1/p) bound_e^(1 - 1/p) with sum_k share_ek = bound_e. (With <= the
    sets are the same, but interior-point methods fail more often.)
    """
    m, d = V.shape
    share = cp.Variable((m, d))
    wide = cp.reshape(bound, (m, 1), order="F") @ np.ones((1, d))
    cones = cp.PowCone3D(
        cp.vec(share, order="F"), cp.vec(wide, order="F"), cp.vec(V, order="F"), 1.0 / p
    )
    return [cp.sum(share, axis=1) == bound, cones]


def _canonicalize(
    expr: RowPNorms, args: list[cp.Expression], solver_context: Any = None
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """Replace the norms by an epigraph variable; called by CVXPY."""
    bound = cp.Variable(expr.shape)
    return bound, power_cones(args[0], bound, expr.p)


CANON_METHODS[RowPNorms] = _canonicalize
# Tells CVXPY (from the version that has this list) to choose a solver that knows power cones.
getattr(cvxpy_atoms, "POWCONE_ATOMS", []).append(RowPNorms)
