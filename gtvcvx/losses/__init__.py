"""Local losses: each node's own training error as a function of its parameter vector."""

from gtvcvx.losses._base import AffineProx, BatchedLoss, Loss
from gtvcvx.losses._data import stacked_from_terms
from gtvcvx.losses._point import PointLoss
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses._stacked import Losses, StackedLoss, stacked
from gtvcvx.losses._zero import ZeroLoss

__all__ = [
    "AffineProx",
    "BatchedLoss",
    "Loss",
    "Losses",
    "PointLoss",
    "SquaredLoss",
    "StackedLoss",
    "ZeroLoss",
    "stacked",
    "stacked_from_terms",
]
