"""A warning where lambda is so large that all nodes of each component get one model."""

from __future__ import annotations

import warnings

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import row_norm_2
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# The flow would do for a lambda smaller by this factor: then lambda is not merely a bit large, as
# it is on purpose where the consensus is what is looked for.
_FAR = 10.0
# Of max(1, |value|): nodes that agree by themselves to within this need no lambda for it.
_AGREEMENT = 1e-9
# Edges that are looked at first.
_FIRST = 1_000
# Of the spread of w: differences up to here are no jump, the default of `Solution.clusters`.
_JUMP = 1e-3


class ConsensusWarning(UserWarning):
    """Lambda is far above the value from which on all nodes of each component share one model.

    Parameters
    ----------
    message : str
        What the numbers are, and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def warn_if_consensus(problem: GTVProblem, solution: Solution, stacklevel: int = 2) -> None:
    """Warn if the flow of a solution proves that lambda is far above `lambda_max`.

    The flow is inside the capacities of a lambda that is smaller by its least slack, so that the
    same w is optimal for that, too. Hardly anything is computed for it; flows that use more of the
    edges than they have to keep the warning back.

    Parameters
    ----------
    problem : GTVProblem
    solution : Solution
        One of this problem.
    stacklevel : int
        As in `warnings.warn`, for the caller.
    """
    used = _used_share(problem, solution)
    if not 0.0 < _FAR * used < 1.0 or not _agree(problem, solution, used):
        return
    if _agree_anyway(problem, solution):
        return
    # Without numbers: a loop over values of lambda is warned once, as Python does by the text.
    warnings.warn(
        "all nodes agree: one model for each connected component. A value of lam that is smaller "
        f"by a factor of {_FAR:g} has the same solution; gtvcvx.lambda_max gives the largest value "
        "that is of use, gtvcvx.cross_validate chooses one",
        ConsensusWarning,
        stacklevel=stacklevel + 1,
    )


def _used_share(problem: GTVProblem, solution: Solution) -> float:
    """Return the largest share of a capacity that the flow takes; 1 where it is not known."""
    penalty, capacities = problem.penalty, problem.capacities
    if not len(capacities):
        return 1.0
    # Dual norms of penalties that CVXPY describes are a cone program each.
    if penalty.written(problem.dim) is not None and penalty.is_norm:
        u = solution.u
        if len(u) != len(capacities):
            return 1.0
        if _FAR * _used_by_one(penalty, capacities, u) >= 1.0:
            return 1.0
        most = _used_at_most(penalty, capacities, u)
        if _FAR * most < 1.0:
            return most
    elif penalty.is_norm and problem.dim == 1:
        # Numbers on a chain are found in the time of some such passes. Flows of many coordinates
        # may still have to be made.
        first = solution.u[:_FIRST]
        if len(first) and _FAR * _used_by_one(penalty, capacities[:_FIRST], first) >= 1.0:
            return 1.0
    if len(solution.slack) != len(capacities):
        return 1.0
    if solution.slack.min() == 0.0:  # as nearly always; spares what is of the size of the edges
        return 1.0
    return float(np.max(1.0 - solution.slack / capacities))


def _used_by_one(penalty: Penalty, capacities: FloatArray, u: FloatArray) -> float:
    """Return a lower bound on that share: the dual norm of z is at least ``<z, z> / phi(z)``."""
    most = int(np.argmax(row_norm_2(u) / capacities))
    size = float(np.abs(u[most]).max())
    if not size > 0.0:
        return 0.0
    z = u[most : most + 1] / size  # squares of small numbers are lost
    return float(np.sum(z * z) / penalty.value(z)[0] * (size / capacities[most]))


def _used_at_most(penalty: Penalty, capacities: FloatArray, u: FloatArray) -> float:
    """Return an upper bound: a dual norm is at most the sum of those of the coordinates."""
    return float((np.abs(u) @ penalty.dual_norm(np.eye(u.shape[1])) / capacities).max())


def _agree(problem: GTVProblem, solution: Solution, used: float) -> bool:
    """Say whether no edge is a jump, in w or for all that the gap allows, as `Solution.clusters`.

    A gap that is large beside lambda is met by a flow of rounding, which proves nothing.
    """
    w = solution.w
    spread = max(float(np.ptp(w, axis=0).max()), 1e-3 * float(np.abs(w).max()))
    allowed = solution.gap / ((1.0 - used) * problem.capacities)
    jumps = row_norm_2(problem.differences(w))
    return bool((np.minimum(jumps, allowed) <= _JUMP * spread).all())


def _agree_anyway(problem: GTVProblem, solution: Solution) -> bool:
    """Say whether every node's own minimizer is as good as the common model."""
    excess = float(problem.losses.loose_gap(solution.w).sum())
    return not excess > max(solution.gap, _AGREEMENT * max(1.0, abs(solution.value)))
