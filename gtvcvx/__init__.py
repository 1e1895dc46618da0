"""Generalized total variation minimization on graphs: solved exactly, solved fast, and proved."""

from gtvcvx import generators
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import Loss, PointLoss, SquaredLoss, StackedLoss, ZeroLoss
from gtvcvx.network_flow import NetworkFlowProblem
from gtvcvx.penalties import (
    L1Norm,
    L2Norm,
    LinfNorm,
    Penalty,
    PNorm,
    Quadratic,
    SquaredNorm,
)
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import Progress

__version__ = "0.1.0"

__all__ = [
    "EmpiricalGraph",
    "GTVProblem",
    "L1Norm",
    "L2Norm",
    "LinfNorm",
    "Loss",
    "NetworkFlowProblem",
    "PNorm",
    "Penalty",
    "PointLoss",
    "Progress",
    "Quadratic",
    "Solution",
    "SquaredLoss",
    "SquaredNorm",
    "StackedLoss",
    "ZeroLoss",
    "generators",
]
