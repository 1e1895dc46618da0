"""`solver="PDHG"`: Algorithm 1 of [GTV] under limits."""

from __future__ import annotations

from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1
from gtvcvx.solvers.driver import Options, Takes, drive

NAME = "PDHG"
TAKES = Takes(own=("local_update",))
DEFAULT_ITERATIONS = 100_000
# [GTV] stops Algorithm 1 after a fixed number of iterations R; section VI takes 1000.
PAPER_ITERATIONS = 1000


def solve_algorithm1(problem: GTVProblem, options: Options) -> Solution:
    """Run Algorithm 1 until the gap is small if rtol is given, else for the paper's iterations."""
    stop = options.stop or ("iterations" if options.rtol is None else "gap")
    most = PAPER_ITERATIONS if stop == "iterations" else DEFAULT_ITERATIONS
    limits = options.limits(most, stop)
    method = Algorithm1(problem, options.warm_start, options.own.get("local_update"))
    return drive(problem, method, limits, NAME)
