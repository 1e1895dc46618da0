"""Which problems are scalar total variation problems, coordinate by coordinate, and their data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Requirement
from gtvcvx.solvers.driver._scalar import (
    LARGEST,
    scalar_capacities,
    scalar_form,
    separable_penalty,
)

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


def scalar_problems(problem: GTVProblem) -> ScalarProblems:
    """Split a problem into scalar ones, one for each coordinate.

    Raises
    ------
    ValueError
        The losses couple coordinates..
    """
    data = scalar_form(problem)
    if data is None:
        raise ValueError("losses: their coordinates are coupled")
    return ScalarProblems(data.curvature, data.linear, scalar_capacities(problem))


def numbered_arcs(problem: GTVProblem) -> str | None:
    """Ask for no more edges than there are numbers for."""
    return None if problem.graph.n_edges <= _MOST_EDGES else f"at most {_MOST_EDGES} edges"


def scalar_losses(problem: GTVProblem) -> str | None:
    """Ask for quadratic losses that do not couple coordinates.

    They are squared, point or zero losses, and the features of a squared loss are orthogonal,
    ``sum_r X[r, k] X[r, l] = 0`` for k != l.
    """
    return None if scalar_form(problem) is not None else "quadratic losses of single coordinates"


def moderate_numbers(problem: GTVProblem) -> str | None:
    """Ask for data whose squares stay far from overflow."""
    return None if _within_range(scalar_problems(problem)) else "data of moderate size"


#: What divide and conquer needs of a problem.
REQUIREMENTS: tuple[Requirement, ...] = (
    separable_penalty,
    numbered_arcs,
    scalar_losses,
    moderate_numbers,
)


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
    return largest < LARGEST
