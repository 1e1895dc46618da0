"""Flows, and the multipliers that losses of bounded slopes take them with."""

from __future__ import annotations

from typing import NamedTuple

from gtvcvx._arrays import FloatArray


class Flow(NamedTuple):
    """A flow on the edges, and multipliers of the generators of all nodes."""

    u: FloatArray  # (m, d)
    b: FloatArray  # (Q,), empty where no losses have generators
    # How far it was moved to be feasible, as a share of the way to one that is so by a margin.
    moved: float = 0.0

    def scaled(self, theta: float) -> Flow:
        """Return theta times the flow, which is feasible for theta in [0, 1] if the flow is."""
        return self if theta == 1.0 else Flow(theta * self.u, theta * self.b, self.moved)
