r"""One node's problem as compiled code sees it: its loss plus a strongly convex quadratic.

.. math:: \min_z \sum_r f_r(x_r^T z) + \sum_j \tfrac12 q_j z_j^2 - p_j z_j + k_j |z_j|
          \quad\text{with } l_j \le z_j \le h_j, \; \sum_j z_j = T

with q > 0 and f_r as in `gtvcvx.losses.node._scalar`. Multipliers a of the rows, t of the
coordinates (of their absolute values and bounds) and nu of the sum are optimal with z where
``X^T a + t + nu + q z - p = 0`` and each is a subgradient.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._scalar import KINK, POISSON
from gtvcvx.losses.node._slopes import slope_and_curvature

# What a node has for one coordinate: mu/2 w^2 - linear w + kappa |w| on [lower, upper].
COORDINATE = np.dtype([(name, np.float64) for name in ("mu", "linear", "kappa", "lower", "upper")])

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
# Rows at their kinks beyond the number of coordinates depend on each other; a few of them do no
# harm.
MANY_TIES, MORE_TIES = 3, 8
# Logarithm of how much larger than its count a rate may be on the way.
LARGEST_RATE = 20.0


class Node(NamedTuple):
    """One node's problem."""

    X: FloatArray  # (m, d)
    rows: Records  # (m,) of ROW
    coordinates: Records  # (d,) of COORDINATE
    q: FloatArray  # (d,), > 0
    p: FloatArray  # (d,)
    total: float  # T, NaN where the sum is free


class Point(NamedTuple):
    """A point and multipliers; where a method starts, and then its result."""

    z: FloatArray  # (d,)
    a: FloatArray  # (m,), of the rows
    t: FloatArray  # (d,), of the coordinates' kappa |.| and bounds
    nu: FloatArray  # (1,), of the sum


class System(NamedTuple):
    """Room for the linear system of a step: what is used of it are leading parts."""

    place: IntArray  # (d,), coordinates that move
    rows: IntArray  # (m,), those with weights
    tied: IntArray  # (ties,)
    B: FloatArray  # (m, d)
    scale: FloatArray  # (m,)
    inner: FloatArray  # (d,)
    y: FloatArray  # (d,)
    inside: FloatArray  # (m,)
    H: FloatArray  # (min(m, d), min(m, d)) at least
    A: FloatArray  # (ties, d)
    V: FloatArray  # (ties, d)
    M: FloatArray  # (ties, ties)
    b: FloatArray  # (ties,)


class Room(NamedTuple):
    """Room for the work at one node: what allocates takes several times as long to compile."""

    trial: Point
    centre: Point
    penalties: Point  # of the rows and coordinates
    gradient: FloatArray  # (d,)
    size: FloatArray  # (d,), of what cancels in the gradient
    diagonal: FloatArray  # (d,), curvatures of single coordinates
    step: FloatArray  # (d,)
    moving: BoolArray  # (d,)
    active: BoolArray  # (m,), rows at their kinks
    image: FloatArray  # (m,)
    change: FloatArray  # (m,), of the images, or of multipliers
    offset: FloatArray  # (m,)
    weight: FloatArray  # (m,), curvatures of the rows
    system: System


def system_of(d: int, m: int, ties: int) -> System:
    """Return room for systems of d coordinates, at most m rows, and so many constraints."""
    side = max(min(m, d), 1)
    return System(
        place=np.zeros(d, dtype=np.int64),
        rows=np.zeros(m, dtype=np.int64),
        tied=np.zeros(ties, dtype=np.int64),
        B=np.zeros((m, d)),
        scale=np.zeros(m),
        inner=np.zeros(d),
        y=np.zeros(d),
        inside=np.zeros(m),
        H=np.zeros((side, side)),
        A=np.zeros((ties, d)),
        V=np.zeros((ties, d)),
        M=np.zeros((ties, ties)),
        b=np.zeros(ties),
    )


def room_of(d: int, m: int) -> Room:
    """Return room for nodes of d coordinates and at most m rows."""

    def point() -> Point:
        return Point(np.zeros(d), np.zeros(m), np.zeros(d), np.zeros(1))

    # Of more ties than that the active-set method makes nothing.
    ties = min(m, MANY_TIES * d + MORE_TIES) + 1
    return Room(
        trial=point(),
        centre=point(),
        penalties=point(),
        gradient=np.zeros(d),
        size=np.zeros(d),
        diagonal=np.zeros(d),
        step=np.zeros(d),
        moving=np.ones(d, dtype=bool),
        active=np.zeros(m, dtype=bool),
        image=np.zeros(m),
        change=np.zeros(m),
        offset=np.zeros(m),
        weight=np.zeros(m),
        system=system_of(d, m, ties),
    )


@compiled(small=True)
def shrink(v: float, threshold: float, lower: float, upper: float) -> float:
    """Return ``argmin_y threshold |y| + (y - v)^2 / 2`` over [lower, upper]."""
    y = max(v - threshold, 0.0) + min(v + threshold, 0.0)
    return min(max(y, lower), upper)


@compiled(small=True, allocates=False, inner=True)
def is_free(coordinate: Any) -> bool:
    """Say whether a coordinate has neither kappa nor bounds."""
    unbounded = coordinate.lower == -math.inf and coordinate.upper == math.inf
    return bool(unbounded and coordinate.kappa == 0.0)


@compiled(small=True, allocates=False, inner=True)
def subgradients(coordinate: Any, z: float) -> tuple[float, float]:
    """Return the ends of the subdifferential of kappa |.| on [lower, upper] at z."""
    k = coordinate.kappa
    low, high = (k if z > 0.0 else -k), (-k if z < 0.0 else k)
    if z <= coordinate.lower:
        low = -math.inf
    if z >= coordinate.upper:
        high = math.inf
    return low, high


@compiled(small=True, allocates=False, inner=True)
def is_smooth(node: Node) -> bool:
    """Say whether there are neither kinks nor constraints."""
    for r in range(len(node.rows)):
        if node.rows[r].kind == KINK:
            return False
    for j in range(len(node.q)):
        if not is_free(node.coordinates[j]):
            return False
    return math.isnan(node.total)


@compiled(small=True, allocates=False, inner=True)
def dot(x: FloatArray, z: FloatArray) -> float:
    """Return <x, z>."""
    total = 0.0
    for j in range(len(z)):
        total += x[j] * z[j]
    return total


@compiled(small=True, allocates=False, inner=True)
def copy_to(target: FloatArray, source: FloatArray) -> None:
    """Write one vector to another; assigning to a slice takes seconds to compile."""
    for j in range(len(target)):
        target[j] = source[j]


@compiled(small=True, allocates=False, inner=True)
def copy_point(target: Point, source: Point) -> None:
    """Write one point and its multipliers to another, which has room for as many rows."""
    copy_to(target.z, source.z)
    copy_to(target.t, source.t)
    target.nu[0] = source.nu[0]
    for r in range(min(len(target.a), len(source.a))):
        target.a[r] = source.a[r]


@compiled(small=True, allocates=False, inner=True)
def smooth_rows(node: Node, z: FloatArray, a: FloatArray, weight: FloatArray) -> None:
    """Write slopes and curvatures of the rows that have them."""
    for r in range(len(node.rows)):
        if node.rows[r].kind != KINK:
            a[r], weight[r] = slope_and_curvature(node.rows[r], dot(node.X[r], z))


@compiled(small=True, allocates=False, inner=True)
def residual_size(row: Any, x: FloatArray, z: FloatArray, reach: float) -> float:
    """Size of what cancels in the residual of a row, for points with entries up to reach."""
    size = abs(row.y)
    for j in range(len(z)):
        size += abs(x[j]) * max(abs(z[j]), reach)
    return size


@compiled(small=True, allocates=False, inner=True)
def largest_entry(z: FloatArray, least: float) -> float:
    """Return the largest of the |z_j| and a least value."""
    for j in range(len(z)):
        least = max(least, abs(z[j]))
    return least


@compiled(small=True, allocates=False, inner=True)
def stationarity(
    node: Node, point: Point, weight: FloatArray, gradient: FloatArray, size: FloatArray
) -> float:
    """Write ``X^T a + t + nu + q z - p`` and what cancels in it; return the largest ratio.

    A multiplier that was computed with a weight has the rounding error of the residual in it.
    """
    X, z, a = node.X, point.z, point.a
    m, d = X.shape
    shift = point.nu[0]
    for j in range(d):
        linear = node.q[j] * z[j]
        gradient[j] = linear - node.p[j] + point.t[j] + shift
        size[j] = abs(linear) + abs(node.p[j]) + abs(point.t[j]) + abs(shift)
    for r in range(m):
        noise = abs(a[r])
        if weight[r] > 0.0:
            noise += weight[r] * residual_size(node.rows[r], X[r], z, 0.0)
        for j in range(d):
            gradient[j] += X[r, j] * a[r]
            size[j] += abs(X[r, j]) * noise
    worst = 0.0
    for j in range(d):
        if not math.isfinite(gradient[j]):
            return math.inf
        if abs(gradient[j]) > worst * size[j]:
            worst = abs(gradient[j]) / size[j]
    return worst


@compiled(small=True, allocates=False, inner=True)
def far_off(node: Node, z: FloatArray) -> bool:
    """Say whether a rate is so large that all else is lost in rounding."""
    for r in range(len(node.rows)):
        row = node.rows[r]
        if row.kind == POISSON and not dot(node.X[r], z) < LARGEST_RATE + math.log1p(row.y):
            return True
    return False
