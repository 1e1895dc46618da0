"""`solver="PDHG"`: Algorithm 1 of [GTV] under limits."""

from __future__ import annotations

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1
from gtvcvx.solvers.driver import Options, Takes, drive

NAME = "PDHG"
TAKES = Takes(own=("local_update",))


def solve_algorithm1(problem: GTVProblem, options: Options) -> Solution:
    """Run Algorithm 1 until the gap is small if rtol or atol is given, else as the paper does."""
    tolerant = options.rtol is not None or options.atol is not None
    limits = options.limits("gap" if tolerant else "iterations")
    method = Algorithm1(problem, options.warm_start, options.own.get("local_update"))
    return drive(problem, method, limits, NAME)
