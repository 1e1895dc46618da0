"""Problems that fall apart into scalar ones, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses import ScalarForm
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem

# Beyond this size squares, and their sums, come too close to the end of double precision.
LARGEST = 1e140


def scalar_form(problem: GTVProblem) -> ScalarForm | None:
    """Return quadratic losses as those of single coordinates, made once; None if they are not."""
    return problem.cached("scalar form", lambda: problem.losses.scalar(problem.graph.n_nodes))


def scalar_capacities(problem: GTVProblem) -> FloatArray:
    """Return the capacities (m,) of the scalar problems: in one dimension norms are multiples."""
    factor = float(problem.penalty.value(np.eye(1, problem.dim))[0])
    return problem.capacities if factor == 1.0 else np.asarray(factor * problem.capacities)


def separable_penalty(problem: GTVProblem) -> str | None:
    """Ask for a penalty that is a sum over coordinates of absolute differences."""
    penalty = problem.penalty
    separable = penalty.compiled_form == CompiledForm.L1 or (problem.dim == 1 and penalty.is_norm)
    return None if separable else "the penalty 'l1', or a norm for d = 1"
