"""Local losses: each node's own training error as a function of its parameter vector."""

from gtvcvx.losses._base import AffineProx, BatchedLoss, DualDomain, Loss
from gtvcvx.losses._catalogue import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LassoLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
)
from gtvcvx.losses._cvxpy import CvxpyLoss
from gtvcvx.losses._data import stacked_from_terms
from gtvcvx.losses._multi_output import multi_output
from gtvcvx.losses._point import PointLoss
from gtvcvx.losses._regularizers import L1, Box, Nonnegative, Ridge, Simplex
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses._stacked import Losses, StackedLoss, stacked
from gtvcvx.losses._sum import SumLoss
from gtvcvx.losses._zero import ZeroLoss

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
    "Nonnegative",
    "PointLoss",
    "PoissonLoss",
    "QuantileLoss",
    "Ridge",
    "Simplex",
    "SquaredLoss",
    "StackedLoss",
    "SumLoss",
    "ZeroLoss",
    "multi_output",
    "stacked",
    "stacked_from_terms",
]
