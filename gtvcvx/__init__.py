"""Generalized total variation minimization on graphs: solved exactly, solved fast, and proved.

Names are loaded when they are first asked for: ``import gtvcvx`` alone loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "L1",
    "AbsoluteLoss",
    "Box",
    "ClusterChange",
    "Clusterings",
    "ConsensusWarning",
    "CrossValidation",
    "CrossValidationCallback",
    "CrossValidationProgress",
    "CvxpyLoss",
    "CvxpyPenalty",
    "DoubledEdgesWarning",
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
    "MultinomialLogisticLoss",
    "NetworkFlowProblem",
    "Nonnegative",
    "PNorm",
    "PathCallback",
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
    "SolveCallback",
    "SquaredLoss",
    "SquaredNorm",
    "StackedLoss",
    "SumLoss",
    "ZeroLoss",
    "cross_validate",
    "datasets",
    "generators",
    "graph_construction",
    "interop",
    "lambda_max",
    "lambda_path",
    "multi_output",
    "plotting",
]

# What users open beside the names above; ``estimators`` needs an extra, so that ``*`` leaves it.
_MODULES = (
    "datasets",
    "distributed",
    "estimators",
    "experiments",
    "federated",
    "generators",
    "graph_construction",
    "interop",
    "losses",
    "model_selection",
    "path",
    "penalties",
    "plotting",
    "solvers",
)

if TYPE_CHECKING:
    # The same names for type checkers, and for whoever wants to know where they live.
    from gtvcvx import datasets, generators, graph_construction, interop, plotting
    from gtvcvx import distributed as distributed
    from gtvcvx import estimators as estimators
    from gtvcvx import experiments as experiments
    from gtvcvx import federated as federated
    from gtvcvx import losses as losses
    from gtvcvx import model_selection as model_selection
    from gtvcvx import path as path
    from gtvcvx import penalties as penalties
    from gtvcvx import solvers as solvers
    from gtvcvx.graph import DoubledEdgesWarning, EmpiricalGraph
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
        MultinomialLogisticLoss,
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
    from gtvcvx.model_selection import (
        CrossValidation,
        CrossValidationCallback,
        CrossValidationProgress,
        cross_validate,
    )
    from gtvcvx.network_flow import NetworkFlowProblem
    from gtvcvx.path import (
        ClusterChange,
        Clusterings,
        LambdaPath,
        PathCallback,
        lambda_max,
        lambda_path,
    )
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
    from gtvcvx.solvers import (
        ConsensusWarning,
        GradientSteps,
        LocalUpdate,
        Progress,
        SmallObjectiveWarning,
        SolveCallback,
    )
else:
    # Unseen by type checkers, for which every misspelt name would be there.
    _HOMES = {
        "gtvcvx.graph": "DoubledEdgesWarning EmpiricalGraph",
        "gtvcvx.losses": """
            L1 AbsoluteLoss Box CvxpyLoss HingeLoss HuberLoss LassoLoss LogisticLoss Loss
            MultinomialLogisticLoss Nonnegative PointLoss PoissonLoss PseudoHuberLoss QuantileLoss
            Ridge Simplex SquaredLoss StackedLoss SumLoss ZeroLoss multi_output
        """,
        "gtvcvx.model_selection": """
            CrossValidation CrossValidationCallback CrossValidationProgress cross_validate
        """,
        "gtvcvx.network_flow": "NetworkFlowProblem",
        "gtvcvx.path": "ClusterChange Clusterings LambdaPath PathCallback lambda_max lambda_path",
        "gtvcvx.penalties": """
            CvxpyPenalty L1Norm L2Norm LinfNorm Penalty PNorm Quadratic SquaredNorm
        """,
        "gtvcvx.problem": "GTVProblem",
        "gtvcvx.solution": "Solution",
        "gtvcvx.solvers": """
            ConsensusWarning GradientSteps LocalUpdate Progress SmallObjectiveWarning SolveCallback
        """,
    }
    _HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
            globals()[name] = value
            return value
        if not name.startswith("_"):
            own = f"{__name__}.{name}"
            try:
                return import_module(own)  # which sets the attribute
            except ModuleNotFoundError as error:
                if error.name != own:
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
