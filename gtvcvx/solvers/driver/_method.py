"""What the driver asks of a method."""

from __future__ import annotations

from typing import Any, Protocol

from gtvcvx._arrays import FloatArray


class Method(Protocol):
    """An iterative method: its current point, and how to go on."""

    name: str
    n_iter: int
    w: FloatArray
    u: FloatArray

    @property
    def weight(self) -> float:
        """Primal weight: how far w moves in a step, over how far u does."""

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""

    def signal(self) -> float:
        """Cheap number that falls with the gap, up to an unknown factor."""

    def restart(self, w: FloatArray, u: FloatArray) -> None:
        """Go on from another point."""

    def info(self) -> dict[str, Any]:
        """Return particulars for `Solution.info`."""
