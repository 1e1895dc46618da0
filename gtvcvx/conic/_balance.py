"""Multipliers of cone programs, moved such that they meet their equations.

Where interior-point methods end, multipliers miss the equations by what was asked for, and beside
solutions that are large a bound by weak duality is lost in that, though much room may be left in
the cones. Solving again for more digits takes longer than one linear system.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse.linalg import splu

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import sp
from gtvcvx.conic._form import Cone, located
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.conic._weak_duality import absorbing, inside

# Entries of the system up to which it takes less than the solve before.
MOST = 2_000_000
# Share of the diagonal that is added to it, and how often what that leaves is moved once more.
SHIFT, ROUNDS = 1e-13, 3


def balanced(program: ConeProgram, x: FloatArray, z: FloatArray) -> FloatArray | None:
    """Return multipliers (M,) in the dual cones near z that meet the equations at x (N,).

    As far as they can: those move most that have most room in their cones, and those on the
    boundary stay. The change dz is the least of ``sum (dz / room)^2`` with ``A^T dz = -r``, where r
    is what z misses. None where z is in no dual cone, or the system is large or singular.
    """
    A = program.A
    moved = inside(z, program.cones)
    if moved is None or float(np.sum(np.diff(A.tocsr().indptr).astype(float) ** 2)) > MOST:
        return None
    z = moved
    square = _room(z, program.cones) ** 2
    H = (A.T @ (sp.diags_array(square) @ A) + sp.diags_array(program.P.diagonal())).tocsc()
    diagonal = H.diagonal()
    if not np.isfinite(diagonal).all():
        return None
    # In units in which the diagonal is one; what nothing moves is left alone.
    units = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0.0)
    scales = sp.diags_array(units)
    shift = sp.diags_array(np.where(units > 0.0, SHIFT, 1.0))
    try:
        factor = splu(
            (scales @ H @ scales + shift).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # singular, for all that was added
        return None
    for _ in range(ROUNDS):
        r = program.P @ absorbing(program, x, z) + program.q + A.T @ z
        moved = inside(z - square * (A @ (units * factor.solve(units * r))), program.cones)
        if moved is None:
            return None
        z = moved
    return z


def _room(z: FloatArray, cones: Sequence[Cone]) -> FloatArray:
    """Return how far multipliers (M,) in the dual cones can move, about; zero in cones of others.

    Those of equations go anywhere.
    """
    room = np.zeros(len(z))
    typical = float(np.mean(np.abs(z))) if len(z) else 0.0
    for rows, cone in located(cones):
        part = z[rows]
        if cone.kind == "zero":
            room[rows] = np.maximum(np.abs(part), typical)
        elif cone.kind == "nonneg":
            room[rows] = part
        elif cone.kind == "soc":
            room[rows] = max(part[0] - float(np.linalg.norm(part[1:])), 0.0)
    return room
