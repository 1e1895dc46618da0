"""Lower bounds on the optimal values of cone programs, from points that are only nearly dual.

For the program ``minimize (1/2) x^T P x + q^T x`` subject to ``b - A x`` in K, any y, any z in K*
and any feasible x,

    (1/2) x^T P x + q^T x >= -(1/2) y^T P y - b^T z + r^T x,   r = P y + q + A^T z.

With the multipliers inside their cones, all that is in doubt is r, which pairs with a solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import sp
from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram

EPS = float(np.finfo(np.float64).eps)
# Multipliers are moved so far inside their cones that rounding is no question.
INSIDE = 8.0 * EPS
# Solutions may be so many times as large as the point that is taken for one: as small as the middle
# of a face of solutions may be beside its end.
SAFETY = 4.0
# So much of what a column adds up to, and of the largest column, may be missing: far from the
# optimum points do not tell how large solutions are. Of 359 points on the way 3 had bounds above
# the optimum otherwise; all of a column was missing there.
MISSED, ROUNDING = 1e-5, 1e-12
# Units in the last place by which products and what they are made of may be wrong.
ULPS = 4.0


class Bound(NamedTuple):
    """A lower bound on the optimal value, but for what is in doubt."""

    value: float
    doubt: float  # what r, and rounding, may take off it


def weak_duality(
    program: ConeProgram, x: FloatArray, z: FloatArray, reach: FloatArray
) -> Bound | None:
    """Return the bound that multipliers z (M,) give beside a point x (N,).

    Solutions have entries of at most `SAFETY` times reach (N,). None where z is in no dual cone,
    or it is not known to be, and where r is more than what ends of iterations leave.
    """
    P, q, A, b, cones = program
    moved = _inside(z, cones)
    if moved is None:
        return None
    z = moved
    # Sums are exact but for the machine's widest numbers, which may be no wider than others.
    wide = np.longdouble
    x, wz, wP = _absorbing(program, x, z), z.astype(wide), P.astype(wide)
    wx = x.astype(wide)
    Px = wP @ wx
    r = Px + q + A.T.astype(wide) @ wz
    value = -0.5 * (wx @ Px) - b.astype(wide) @ wz
    sizes = abs(P) @ np.abs(x) + np.abs(q) + abs(A).T @ np.abs(z)
    if not (np.abs(r) <= MISSED * sizes + ROUNDING * sizes.max(initial=0.0)).all():
        return None
    lost = float(np.finfo(wide).eps) * len(z) * float(sizes @ np.abs(reach))
    leak = SAFETY * (float(np.abs(r).astype(np.float64) @ np.abs(reach)) + lost)
    products = np.abs(x) @ (abs(P) @ np.abs(x)) + np.abs(b) @ np.abs(z)
    return Bound(float(value), leak + ULPS * EPS * float(products))


def _absorbing(program: ConeProgram, x: FloatArray, z: FloatArray) -> FloatArray:
    """Return the y (N,) near x that make up for r where a variable has a curvature of its own."""
    P, q, A, _, _ = program
    alone = np.diff(P.indptr) == 1
    curvature = np.where(alone, P.diagonal(), 0.0)
    r = P @ x + q + A.T @ z
    return x - np.divide(r, curvature, out=np.zeros_like(r), where=curvature > 0.0)


def _inside(z: FloatArray, cones: Sequence[Cone]) -> FloatArray | None:
    """Return multipliers near z that are in the dual cones; None where there are none so near."""
    z, start = z.copy(), 0
    for cone in cones:
        rows = slice(start, start + cone.rows)
        start += cone.rows
        part = z[rows]
        if cone.kind == "nonneg":
            np.maximum(part, 0.0, out=part)
        elif cone.kind == "soc":
            part[0] = max(part[0], (1.0 + INSIDE) * float(np.linalg.norm(part[1:])))
        elif cone.kind != "zero" and not _surely(part, cone):
            return None
    return z


def _surely(z: FloatArray, cone: Cone) -> bool:
    """Say whether multipliers of an exponential or power cone are inside, rounding or not."""
    if cone.kind == "exp":
        # -z_0 exp(z_1 / z_0) <= e z_2
        first, second, third = z
        if not (first < 0.0 and third > 0.0):
            return False
        exponent = second / first - 1.0
        room = math.log(third) - math.log(-first) - exponent
        return room >= INSIDE * (1.0 + abs(exponent) + abs(math.log(third)))
    if cone.kind == "power" and cone.rows == 3:
        alpha = cone.exponents[0]
        if not (z[0] > 0.0 and z[1] > 0.0):
            return False
        if z[2] == 0.0:
            return True
        logs = np.log([z[0] / alpha, z[1] / (1.0 - alpha), abs(z[2])])
        room = alpha * logs[0] + (1.0 - alpha) * logs[1] - logs[2]
        return bool(room >= INSIDE * (1.0 + np.abs(logs).max()))
    return False


def products_of_rows(
    program: ConeProgram, x: FloatArray, z: FloatArray, columns: sp.csr_array
) -> FloatArray:
    """Return slacks times multipliers, summed over the rows in which columns (N, k) are."""
    products = np.maximum(z * (program.b - program.A @ x), 0.0)
    return np.asarray((abs(program.A) @ columns > 0.0).T @ products)
