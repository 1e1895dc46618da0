"""Generalized total variation minimization on graphs: solved exactly, solved fast, and proved."""

from gtvcvx import generators, interop, plotting
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import (
    L1,
    AbsoluteLoss,
    Box,
    CvxpyLoss,
    HingeLoss,
    HuberLoss,
    LassoLoss,
    LogisticLoss,
    Loss,
    Nonnegative,
    PointLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
    Ridge,
    Simplex,
    SquaredLoss,
    StackedLoss,
    SumLoss,
    ZeroLoss,
    multi_output,
)
from gtvcvx.model_selection import CrossValidation, cross_validate
from gtvcvx.network_flow import NetworkFlowProblem
from gtvcvx.path import ClusterChange, LambdaPath, lambda_max, lambda_path
from gtvcvx.penalties import (
    CvxpyPenalty,
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
from gtvcvx.solvers import GradientSteps, LocalUpdate, Progress, SmallObjectiveWarning

__version__ = "0.1.0"

__all__ = [
    "L1",
    "AbsoluteLoss",
    "Box",
    "ClusterChange",
    "CrossValidation",
    "CvxpyLoss",
    "CvxpyPenalty",
    "EmpiricalGraph",
    "GTVProblem",
    "GradientSteps",
    "HingeLoss",
    "HuberLoss",
    "L1Norm",
    "L2Norm",
    "LambdaPath",
    "LassoLoss",
    "LinfNorm",
    "LocalUpdate",
    "LogisticLoss",
    "Loss",
    "NetworkFlowProblem",
    "Nonnegative",
    "PNorm",
    "Penalty",
    "PointLoss",
    "PoissonLoss",
    "Progress",
    "PseudoHuberLoss",
    "Quadratic",
    "QuantileLoss",
    "Ridge",
    "Simplex",
    "SmallObjectiveWarning",
    "Solution",
    "SquaredLoss",
    "SquaredNorm",
    "StackedLoss",
    "SumLoss",
    "ZeroLoss",
    "cross_validate",
    "generators",
    "interop",
    "lambda_max",
    "lambda_path",
    "multi_output",
    "plotting",
]
