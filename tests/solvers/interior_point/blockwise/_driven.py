"""Our own interior-point method alone, under the driver."""

from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned


def driven(problem, rtol=1e-7, **limits):
    run = Run(problem, Limits(rtol, limits.pop("max_iter", 200), **limits), "TEST")
    run.drive(Blockwise(problem, planned(problem)))
    return run
