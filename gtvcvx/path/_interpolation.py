"""Between two values of lambda: the pair that their solutions predict, with its own gap."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Incumbent


class Between(NamedTuple):
    """Solutions for two neighbouring values of lambda."""

    larger_lam: float
    larger: Solution
    lam: float
    smaller: Solution

    def pair(self, lam: float) -> tuple[FloatArray, FloatArray]:
        """Return w (n, d) and u (m, d) in between, affine in lambda.

        While clusters stay as they are and losses are quadratic, with l1 solutions are. The flow
        is within the capacities, which are affine in lambda, since they bound convex sets.
        """
        share = (lam - self.lam) / (self.larger_lam - self.lam)
        w = (1.0 - share) * self.smaller.w + share * self.larger.w
        u = (1.0 - share) * self.smaller.u + share * self.larger.u
        return w, u


def interpolated(problem: GTVProblem, between: Between, rtol: float) -> Solution:
    """Return what two solutions say about a problem whose lambda is between theirs.

    Of the interpolated point and the two that it comes from the best is taken; the gap is
    evaluated as that of any solution. The status is "optimal" if it is within rtol.
    """
    began = time.perf_counter()
    incumbent = Incumbent(problem)
    incumbent.update(*between.pair(problem.lam))
    for end in (between.larger, between.smaller):
        incumbent.update_point(end.w)
    close = incumbent.rel_gap <= rtol
    return incumbent.solution(
        status="optimal" if close else "optimal_inaccurate",
        n_iter=0,
        seconds=time.perf_counter() - began,
        solver="interpolation",
        # A solve from here takes the weight; that of the run would not say how this was found.
        info={name: x for name, x in between.smaller.info.items() if name == "primal_weight"},
    )


def nearest(n_clusters: IntArray, k: int) -> int:
    """Return the first place, of the largest lambda, where the number of clusters is nearest to k.

    Of two numbers as near, the smaller one's.
    """
    distance = np.abs(n_clusters - k)
    return int(np.lexsort((np.arange(len(n_clusters)), n_clusters, distance))[0])
