"""The point loss of convex clustering and denoising."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import finite_array, real_array
from gtvcvx.losses._loss import Loss
from gtvcvx.losses.batched._point import BatchedPoint
from gtvcvx.losses.batched._stacked import StackedLoss
from verify._display import short


class PointLoss(Loss):
    """Squared distance to a point, ``L(w) = ||w - a||_2^2`` ([GTV] (29), convex clustering).

    Parameters
    ----------
    a : array_like, shape (d,)
        The node's point; a number stands for d = 1.

    Notes
    -----
    A point with a weight is a multiple: ``2.0 * PointLoss(a)``, or ``PointLoss.stack(a) * c`` for
    weights c (n,).
    """

    def __init__(self, a: ArrayLike) -> None:
        self.a = finite_array(np.atleast_1d(real_array(a, "a")), "a", 1).copy()
        self.dim: int = len(self.a)
        if self.dim == 0:
            raise ValueError("a: at least one coordinate is expected")

    @classmethod
    def batch(cls, losses: Sequence[PointLoss], dim: int) -> BatchedPoint:
        """Join point losses of equal dimension."""
        return BatchedPoint(np.stack([loss.a for loss in losses]))

    @staticmethod
    def stack(a: ArrayLike) -> StackedLoss:
        """Point losses of all nodes at once.

        Parameters
        ----------
        a : array_like, shape (n, d)
            One point a node.
        """
        points = finite_array(a, "a", 2).copy()
        if points.shape[1] == 0:
            raise ValueError("a: at least one coordinate is expected")
        return StackedLoss([(np.arange(len(points)), BatchedPoint(points))], n_nodes=len(points))

    def __repr__(self) -> str:
        return f"PointLoss(a={short(self.a)})"
