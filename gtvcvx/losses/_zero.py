"""The trivial loss of a node whose data are not accessible."""

from __future__ import annotations

from collections.abc import Sequence

from gtvcvx.losses._loss import Loss
from gtvcvx.losses.batched._zero import BatchedZero


class ZeroLoss(Loss):
    """L(w) = 0: the node has no data of its own (i not in M, [GTV] section II).

    Its conjugate is 0 at s = 0 and +inf elsewhere, so flow is conserved at the node.
    """

    dim = None

    @classmethod
    def batch(cls, losses: Sequence[ZeroLoss], dim: int) -> BatchedZero:
        """Join zero losses."""
        return BatchedZero(len(losses), dim)

    def _times(self, factor: float) -> ZeroLoss:
        return self

    def __repr__(self) -> str:
        return "ZeroLoss()"
