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
from gtvcvx.conic._form import Cone, located
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
# Exponentials of no more are finite; the least number whose logarithm has all digits.
LARGEST, SMALLEST = 700.0, float(np.finfo(np.float64).tiny)
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
    moved = inside(z, cones)
    if moved is None:
        return None
    z = moved
    # Sums are exact but for the machine's widest numbers, which may be no wider than others.
    wide = np.longdouble
    x, wz, wP = absorbing(program, x, z), z.astype(wide), P.astype(wide)
    wx = x.astype(wide)
    Px = wP @ wx
    r = Px + q + A.T.astype(wide) @ wz
    value = -0.5 * (wx @ Px) - b.astype(wide) @ wz
    sizes = abs(P) @ np.abs(x) + np.abs(q) + abs(A).T @ np.abs(z)
    if not (np.abs(r) <= MISSED * sizes + ROUNDING * sizes.max(initial=0.0)).all():
        return None
    # Of each column what its own entries lose, products and sums, and those of P, q and A to each
    # other.
    terms = np.diff(P.indptr) + np.diff(A.indptr) + 4.0
    lost = float(np.finfo(wide).eps) * float((terms * sizes) @ np.abs(reach))
    leak = SAFETY * (float(np.abs(r).astype(np.float64) @ np.abs(reach)) + lost)
    products = np.abs(x) @ (abs(P) @ np.abs(x)) + np.abs(b) @ np.abs(z)
    return Bound(float(value), leak + ULPS * EPS * float(products))


def absorbing(program: ConeProgram, x: FloatArray, z: FloatArray) -> FloatArray:
    """Return the y (N,) near x that make up for r where a variable has a curvature of its own."""
    P, q, A, _, _ = program
    alone = np.diff(P.indptr) == 1
    curvature = np.where(alone, P.diagonal(), 0.0)
    r = P @ x + q + A.T @ z
    return x - np.divide(r, curvature, out=np.zeros_like(r), where=curvature > 0.0)


def inside(z: FloatArray, cones: Sequence[Cone]) -> FloatArray | None:
    """Return multipliers near z that are in the dual cones; None where there are none so near."""
    if not np.isfinite(z).all():
        return None
    z = z.copy()
    for rows, cone in located(cones):
        part = z[rows]
        if cone.kind == "nonneg":
            np.maximum(part, 0.0, out=part)
        elif cone.kind == "soc":
            part[0] = max(part[0], (1.0 + INSIDE) * float(np.linalg.norm(part[1:])))
        elif not decided(cone):
            return None
        elif cone.kind != "zero" and not _surely(part, cone):
            part[:] = _beside(part, cone)
            if not _surely(part, cone):
                return None
    return z


def decided(cone: Cone) -> bool:
    """Say whether it is known of multipliers if they are in the dual of a cone."""
    return cone.kind in ("zero", "nonneg", "soc", "exp") or (
        cone.kind == "power" and cone.rows == 3
    )


def _surely(z: FloatArray, cone: Cone) -> bool:
    """Say whether multipliers of an exponential or power cone are inside, rounding or not."""
    first, second, third = z
    if cone.kind == "exp":
        # -z_0 exp(z_1 / z_0) <= e z_2, or a face
        if first == 0.0:
            return bool(second >= 0.0 and third >= 0.0)
        if not (first < 0.0 and third > 0.0):
            return False
        exponent = second / first - 1.0
        room = math.log(third) - math.log(-first) - exponent
        return room >= INSIDE * (1.0 + abs(exponent) + abs(math.log(third)))
    if third == 0.0:
        return bool(first >= 0.0 and second >= 0.0)
    if not (first > 0.0 and second > 0.0):
        return False
    logs = _logs_of_sides(z, cone)
    height = math.log(abs(third))
    return _mean(logs, cone) - height >= INSIDE * (1.0 + max(map(abs, [*logs, height])))


def _beside(z: FloatArray, cone: Cone) -> FloatArray:
    """Return multipliers inside the dual of an exponential or power cone, near ones beside it.

    Solvers end close to the boundary, on either side of it. What is not near has no use, as the
    multipliers miss their equations then.
    """
    first, second, third = z
    if cone.kind == "power":
        if not (first > 0.0 and second > 0.0):
            return np.array([max(first, 0.0), max(second, 0.0), 0.0])
        logs = _logs_of_sides(z, cone)
        height = _mean(logs, cone)
        height -= 2.0 * INSIDE * (2.0 + max(map(abs, [*logs, height])))
        return np.array([first, second, math.copysign(math.exp(min(height, LARGEST)), third)])
    face = np.array([0.0, max(second, 0.0), max(third, 0.0)])
    if not first < 0.0:
        return face
    exponent = second / first - 1.0
    height = exponent + math.log(-first)
    height += 2.0 * INSIDE * (2.0 + abs(exponent) + abs(height))
    if not height < LARGEST:
        return face
    above = np.array([first, second, max(math.exp(height), SMALLEST)])
    return above if np.abs(above - z).sum() < np.abs(face - z).sum() else face


def _logs_of_sides(z: FloatArray, cone: Cone) -> list[float]:
    alpha = cone.exponents[0]
    return [math.log(z[0] / alpha), math.log(z[1] / (1.0 - alpha))]


def _mean(logs: Sequence[float], cone: Cone) -> float:
    alpha = cone.exponents[0]
    return alpha * logs[0] + (1.0 - alpha) * logs[1]


def products_of_rows(
    program: ConeProgram, x: FloatArray, z: FloatArray, columns: sp.csr_array
) -> FloatArray:
    """Return slacks times multipliers, summed over the rows in which columns (N, k) are."""
    products = np.maximum(z * (program.b - program.A @ x), 0.0)
    return np.asarray((abs(program.A) @ columns > 0.0).T @ products)
