"""The smallest lambda at which parameters that are constant on every component are optimal.

Let w_bar minimize the sum of the losses over each component by one vector. It solves the problem
for lambda if and only if some flow u has injections s_i = -(D^T u)_i in dL_i(w_bar_i) and
||u_e||_* <= lambda A_e. lambda_max is the least such lambda.

It is bracketed: a model problem is solved for lambda a little above the best lower bound. Either
its solution is not constant and its difference to w_bar is a direction that raises the lower
bound (Dinkelbach's method for ratios), or its flow proves that this lambda is enough.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from gtvcvx._arrays import FloatArray
from gtvcvx._callbacks import Progress, SolveCallback
from gtvcvx._deadline import now, seconds_until
from gtvcvx._logging import room_logger
from gtvcvx.path._consensus import Components, consensus
from gtvcvx.path._critical_bounds import CriticalBounds, GradientBounds, ValueBounds
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from verify._interrupts import noticed

_LOG = room_logger("path")
# The model is solved to a relative gap of rtol times this at first, then to smaller ones.
FIRST_GAP, SMALLER = 1e-4, 0.1
# No upper bound is looked for beyond this.
LARGEST = 1e100


@dataclass(frozen=True)
class CriticalLambda:
    """Bounds of lambda_max, and the pair that proves the upper one.

    Attributes
    ----------
    lower, upper : float
    w : ndarray, shape (n, d)
        The consensus, constant on every component.
    u : ndarray, shape (m, d)
        A flow with which w is optimal for lambda = upper.
    """

    lower: float
    upper: float
    w: FloatArray
    u: FloatArray


def lambda_max(problem: GTVProblem, rtol: float = 1e-3, *, verbose: bool | None = None) -> float:
    r"""Smallest lambda at which a solution is constant on every connected component.

    It is the least congestion :math:`\min_u \max_e \|u_e\|_* / A_e` of a flow u whose injections
    -(D^T u)_i are subgradients of the losses at the consensus, the best parameters that are
    constant on each component. For larger lambda the consensus stays the solution.

    Parameters
    ----------
    problem : GTVProblem
        Its own lambda is not used. The penalty must be a norm.
    rtol : float
        How tight the value is. It is an upper estimate: a flow was found that proves the consensus
        optimal for it (where some loss has no gradient: with a relative duality gap of at most
        1e-8). And it is at most 1 + rtol times a lambda for which a direction was found in which
        the objective falls from the consensus, for any smaller lambda.
    verbose : bool, optional
        Show the progress of the inner solves. Default: only on a terminal.

    Returns
    -------
    float
        0 if the consensus is optimal for every lambda > 0.

    Raises
    ------
    ValueError
        The penalty is not a norm: no finite lambda makes the solution constant. Or no parameters
        that are constant on each component minimize the losses.

    Warns
    -----
    UserWarning
        Rounding kept the two bounds apart by more than rtol. The value is an upper estimate all
        the same.

    See Also
    --------
    verify.critical_lambda : bounds with outward rounding, for smooth losses and any partition.

    Notes
    -----
    This is the dual ([GTV] (24)) at the consensus, where only the capacities depend on lambda. It
    costs three to five solves of a problem on the same graph that is strongly convex at every
    node; they are exact for d = 1 and for the l1 penalty, by maximum flows.
    """
    return critical(problem, rtol, verbose=verbose).upper


def critical(
    problem: GTVProblem,
    rtol: float = 1e-3,
    *,
    verbose: bool | None = None,
    end: float = math.inf,
) -> CriticalLambda:
    """Bound lambda_max, with the consensus and the flow that proves it; see `lambda_max`.

    From ``end`` on, by `gtvcvx._deadline.now`, the first upper bound that is found will do.
    """
    if not isinstance(problem, GTVProblem):
        raise TypeError(f"problem: a GTVProblem is expected, got {type(problem).__name__}")
    if not (math.isfinite(rtol) and 0 < rtol < 1):
        raise ValueError(f"rtol: a number between 0 and 1 is expected, got {rtol!r}")
    if not problem.penalty.is_norm:
        raise ValueError(
            f"problem: the penalty {problem.penalty.name!r} is not a norm, so no finite lambda "
            "makes the solution constant on a component: there is no lambda_max"
        )
    components = Components(problem)
    w = consensus(problem, components)
    kind = GradientBounds if problem.losses.smooth else ValueBounds
    bounds: CriticalBounds = kind(problem, components, w)
    _close(bounds, rtol, verbose, end)
    if now() < end and bounds.upper > (1.0 + rtol) * bounds.lower:
        warnings.warn(
            f"lambda_max lies between {bounds.unit * bounds.lower:.6g} and "
            f"{bounds.unit * bounds.upper:.6g}: rounding keeps the bounds apart",
            stacklevel=3,
        )
    found = CriticalLambda(
        bounds.unit * bounds.lower, bounds.unit * bounds.upper, w, bounds.unit * bounds.flow
    )
    _LOG.info("lambda_max between %.9g and %.9g", found.lower, found.upper)
    return found


def _close(
    bounds: CriticalBounds, rtol: float, verbose: bool | None, end: float = math.inf
) -> None:
    """Solve the model until the bounds are within 1 + rtol, or nothing more can be learnt."""
    gap = max(FIRST_GAP * rtol, bounds.least_gap)
    step = _Step(bounds, rtol)
    lam, start = bounds.lower, None
    with noticed() as pressed:

        def solved(callback: SolveCallback | None) -> Solution:
            solution = bounds.model.with_lam(lam).solve(
                rtol=gap,
                atol=gap,
                callback=callback,
                warm_start=start,
                verbose=verbose,
                time_limit=seconds_until(end),
            )
            if pressed:
                raise KeyboardInterrupt("interrupted while lambda_max was computed")
            return solution

        while not step.closed and gap >= bounds.least_gap and (start is None or now() < end):
            lam = step.start()
            start = solved(step)
            if not step.called:
                step(start)
            if not (step.closed or step.raised):
                gap *= SMALLER
        # Any upper bound is better than none: what was found last, or for a larger lambda.
        while start is not None and math.isinf(bounds.upper) and lam < LARGEST:
            bounds.improve(start.w, start.u, lam, math.inf)
            lam *= 2.0
            start = solved(None) if math.isinf(bounds.upper) else start


class _Step:
    """Callback of a solve of the model: improve the bounds, and say when one has moved enough."""

    def __init__(self, bounds: CriticalBounds, rtol: float) -> None:
        self._bounds, self._rtol = bounds, rtol

    def start(self) -> float:
        """Return the value of lambda to be decided next."""
        self._lam = self._bounds.lower * (1.0 + 0.5 * self._rtol)
        self.called = False
        return self._lam

    @property
    def raised(self) -> bool:
        """Whether the lower bound has come to lambda."""
        return self._bounds.lower >= self._lam

    @property
    def closed(self) -> bool:
        """Whether the bounds are as close as they have to be."""
        return self._bounds.upper <= (1.0 + self._rtol) * self._bounds.lower

    def __call__(self, point: Progress | Solution) -> bool:
        self.called = True
        self._bounds.improve(point.w, point.u, self._lam, 1.0 + self._rtol)
        return self.raised or self.closed
