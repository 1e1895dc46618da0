"""Which problems are scalar total variation problems, coordinate by coordinate, and their data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.penalties import KernelCode
from gtvcvx.problem import GTVProblem

# Beyond this size squares, and their sums, come too close to the end of double precision.
_LARGEST = 1e140
# Arcs are numbered in 32 bits.
_MOST_EDGES = 2**30 - 1


class ScalarProblems(NamedTuple):
    r"""Independent problems, one for each coordinate k of w.

    .. math::
        \min_x \sum_i \tfrac12 q_{ik} x_i^2 - b_{ik} x_i + \sum_e c_e |x_{e+} - x_{e-}|

    Attributes
    ----------
    curvature, linear : (n, d)
        q >= 0 and b; both are zero where a node has no data for the coordinate.
    capacities : (m,)
        c.
    """

    curvature: FloatArray
    linear: FloatArray
    capacities: FloatArray


def scalar_problems(problem: GTVProblem) -> ScalarProblems | None:
    """Split a problem into scalar ones; None if its penalty or its losses couple the coordinates.

    The penalty is the l1 norm, or any norm for d = 1; the losses are squared, point or zero, and
    the features of a squared loss are orthogonal, ``sum_r X[r, k] X[r, l] = 0`` for k != l.
    """
    penalty, n, d = problem.penalty, problem.graph.n_nodes, problem.dim
    separable = penalty.kernel_code == KernelCode.L1 or (d == 1 and penalty.is_norm)
    if not separable or problem.graph.n_edges > _MOST_EDGES:
        return None
    data = problem.losses.scalar(n)
    if data is None:
        return None
    # In one dimension a norm is a multiple of the absolute value.
    factor = float(penalty.value(np.eye(1, d))[0])
    scalars = ScalarProblems(data.curvature, data.linear, factor * problem.capacities)
    return scalars if _within_range(scalars) else None


def _within_range(scalars: ScalarProblems) -> bool:
    """Whether every number that division meets stays far from overflow."""
    curvature, linear, capacities = scalars
    known = curvature > 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reach = np.abs(linear) + min(float(capacities.sum()), float(np.abs(linear).sum()))
        largest = max(
            float(np.abs(linear).sum()),
            float(curvature.sum()),
            float(np.max(reach[known] / curvature[known], initial=0.0)),
        )
    return largest < _LARGEST
