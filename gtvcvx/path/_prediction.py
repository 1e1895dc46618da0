"""What the solutions for larger lambda predict for the next smaller one: where its solve starts.

While the clusters stay the same and losses are quadratic, points are affine in lambda with l1, and
nearly so otherwise. Flows that are at capacity stay there, so that shares of the capacities are
scaled, or extrapolated.

While no clusters change solutions are smooth functions of lambda, and what two of them foresee may
be as good as what is asked for: then it is checked before anything is iterated on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._foreseen import FORESEEN, MISSED

# Flows are extrapolated where that would have missed the last one by at most this share of what
# scaling would have: with 360 points in 90 dimensions it is a tenth, or less, and saves a third of
# the iterations; beside unlabelled nodes flows that it misses by half start no better.
BETTER = 0.15
# So many entries of a flow, at least, tell how much a prediction would have missed it by.
TELLING = 2**14


class Flow(NamedTuple):
    """A flow, and the lambda that its capacities go with."""

    lam: float
    u: FloatArray  # (m, d)

    def scaled(self, lam: float) -> FloatArray:
        """Return the flow that is the same share of the capacities for another lambda."""
        return (lam / self.lam) * self.u

    def thinned(self, every: int) -> Flow:
        """Return it on each so many-th edge."""
        return Flow(self.lam, self.u[::every])


def predicted(
    problem: GTVProblem, lams: Sequence[float] | FloatArray, solutions: Sequence[Solution]
) -> Solution:
    """Return what a solve starts from: the last solution, moved on where that is better.

    Parameters
    ----------
    problem : GTVProblem
        With the lambda that is next.
    lams : sequence of float
        Those of the solutions, all falling or all growing. Where they grow the clusters of the
        last solution are what the next one starts from.
    solutions : sequence of Solution
        At least one.
    """
    lam, last = problem.lam, solutions[-1]
    flows = [Flow(lams[-k], solutions[-k].u) for k in range(1, min(len(solutions), 3) + 1)]
    if len(solutions) < 2:
        return replace(last, u=flows[0].scaled(lam))
    if lam > lams[-1]:
        return _foreseen(problem, lams[-2:], solutions[-2:])
    follows = len(flows) == 3 and _would_have_followed(*flows)
    u = _followed(lam, *flows[:2]) if follows else flows[0].scaled(lam)
    w = last.w + _step(lam, lams[-1], lams[-2]) * (last.w - solutions[-2].w)
    if not problem.value(w) < _value(problem, last, lams[-1]):
        w = last.w
    return replace(last, w=w, u=u)


def _foreseen(
    problem: GTVProblem, lams: Sequence[float] | FloatArray, solutions: Sequence[Solution]
) -> Solution:
    """Return what two solutions for smaller lambda foresee, in line with them.

    Flows balance points, so that they are as good on a line as these; those at capacity are on one
    through zero. Clusters are those of the last solution, and where it has those of the one before
    the whole may be good enough as it is.
    """
    before, last = solutions
    step = _step(problem.lam, lams[1], lams[0])
    u = (1.0 + step) * last.u
    u -= step * before.u
    if not np.array_equal(_jumping(problem, before.w), _jumping(problem, last.w)):
        return replace(last, u=u)
    # Where the last one was not good enough the next one need not be looked at.
    info = last.info | {FORESEEN: last.info.get(MISSED) is not True}
    return replace(last, w=last.w + step * (last.w - before.w), u=u, info=info)


def _jumping(problem: GTVProblem, w: FloatArray) -> BoolArray:
    """Return at which edges (m,) w (n, d) jumps: rows that are equal have equal products."""
    product = w @ np.random.default_rng(0).standard_normal(w.shape[1])
    heads, tails = problem.graph.edges.T
    return np.asarray(product[heads] != product[tails])


def _step(lam: float, last: float, before: float) -> float:
    """Return how far it is to lambda from the last, in steps from the one before to the last."""
    return (lam - last) / (last - before)


def _value(problem: GTVProblem, solution: Solution, lam: float) -> float:
    """Return the objective at a solution for another lambda, without a look at the edges."""
    losses = float(np.sum(problem.losses.value(solution.w)))
    return losses + (problem.lam / lam) * (solution.value - losses)


def _followed(lam: float, last: Flow, before: Flow) -> FloatArray:
    """Return the flow for lambda that two others lie in line with, as shares of capacities."""
    step = _step(lam, last.lam, before.lam)
    u = ((1.0 + step) * lam / last.lam) * last.u
    u -= (step * lam / before.lam) * before.u
    return u


def _would_have_followed(last: Flow, before: Flow, first: Flow) -> bool:
    """Say whether the two flows before the last one have told it better than one did."""
    every = max(1, last.u.size // TELLING)
    last, before, first = (flow.thinned(every) for flow in (last, before, first))
    missed = np.sum((_followed(last.lam, before, first) - last.u) ** 2)
    allowed = BETTER**2 * np.sum((before.scaled(last.lam) - last.u) ** 2)
    return bool(missed < allowed)
