"""`solver="PDHG"`: Algorithm 1 of [GTV] under limits."""

from __future__ import annotations

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1
from gtvcvx.solvers.driver import Options, Takes, drive

NAME = "PDHG"
TAKES = Takes(own=("local_update",))


def solve_algorithm1(problem: GTVProblem, options: Options) -> Solution:
    """Run Algorithm 1 until the gap is small if rtol is given, else for the paper's iterations."""
    limits = options.limits("iterations" if options.rtol is None else "gap")
    method = Algorithm1(problem, options.warm_start, options.own.get("local_update"))
    return drive(problem, method, limits, NAME)
