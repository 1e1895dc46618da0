"""Running a method: limits, the incumbent, checks of the gap, history and display."""

from gtvcvx._callbacks import Progress
from gtvcvx.solvers.driver._best_pair import FUSED_SLACK, Against, BestPair
from gtvcvx.solvers.driver._incumbent import Incumbent, rounding_of_value
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._method import Iteration, Method, Proposal, Proved
from gtvcvx.solvers.driver._options import DEFAULT_RTOL, Options, Takes
from gtvcvx.solvers.driver._requirements import Requirement, missing
from gtvcvx.solvers.driver._run import Driver, Run, drive

__all__ = [
    "DEFAULT_RTOL",
    "FUSED_SLACK",
    "Against",
    "BestPair",
    "Driver",
    "Incumbent",
    "Iteration",
    "Limits",
    "Method",
    "Options",
    "Progress",
    "Proposal",
    "Proved",
    "Requirement",
    "Run",
    "Takes",
    "drive",
    "missing",
    "rounding_of_value",
]
