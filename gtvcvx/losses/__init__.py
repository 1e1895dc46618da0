"""Local losses: each node's own training error as a function of its parameter vector."""

from gtvcvx.losses._catalogue import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LassoLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
)
from gtvcvx.losses._cvxpy import CvxpyLoss
from gtvcvx.losses._loss import Loss, SumLoss
from gtvcvx.losses._multi_output import multi_output
from gtvcvx.losses._multinomial import MultinomialLogisticLoss
from gtvcvx.losses._point import PointLoss
from gtvcvx.losses._regularizers import L1, Box, Nonnegative, Ridge, Simplex
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses._stacking import Losses, stacked
from gtvcvx.losses._zero import ZeroLoss
from gtvcvx.losses.batched._base import (
    AffineProx,
    BatchedLoss,
    DualDomain,
    QuadraticForm,
    ScalarForm,
)
from gtvcvx.losses.batched._stacked import StackedLoss, stacked_from_terms

__all__ = [
    "L1",
    "AbsoluteLoss",
    "AffineProx",
    "BatchedLoss",
    "Box",
    "CvxpyLoss",
    "DualDomain",
    "HingeLoss",
    "HuberLoss",
    "LassoLoss",
    "LogisticLoss",
    "Loss",
    "Losses",
    "MultinomialLogisticLoss",
    "Nonnegative",
    "PointLoss",
    "PoissonLoss",
    "PseudoHuberLoss",
    "QuadraticForm",
    "QuantileLoss",
    "Ridge",
    "ScalarForm",
    "Simplex",
    "SquaredLoss",
    "StackedLoss",
    "SumLoss",
    "ZeroLoss",
    "multi_output",
    "stacked",
    "stacked_from_terms",
]


def __dir__() -> list[str]:
    return sorted(__all__)
