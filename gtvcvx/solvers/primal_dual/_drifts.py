"""What is a drift, for which the primal weight is far off, and what only moves to and fro.

A step that moves the point much farther than the flow, or the flow than the point, and is as long
as steps before, is part of a drift: one of them goes to its place at a constant speed. But iterates
of primal-dual methods go round their limits, too, and then point and flow are ahead in turn. A
weight that follows whoever is ahead throws them farther out every time.
"""

from __future__ import annotations

from enum import Enum, auto

from gtvcvx.solvers.primal_dual._settings import PrimalDualSettings


class Motion(Enum):
    """What the last sample says."""

    NOTHING = auto()
    DRIFT = auto()
    SWING = auto()  # the other way round than a drift before: neither was one


class Drifts:
    """Tells drifts from swings, sample by sample.

    Parameters
    ----------
    settings : PrimalDualSettings
    """

    def __init__(self, settings: PrimalDualSettings) -> None:
        self._settings = settings
        self._point_last: bool | None = None  # who was ahead in the last drift
        self._quiet = 0  # no drifts before this iteration
        self.begin_epoch(0)

    def begin_epoch(self, n_iter: int) -> None:
        """Begin an epoch."""
        self._start, self._least, self._most = n_iter, 1.0, 1.0

    def sample(self, n_iter: int, tilt: float, steady: bool) -> Motion:
        """Take how far a step moved the point over how far the flow; whether it was as long."""
        settings = self._settings
        self._least, self._most = min(self._least, tilt), max(self._most, tilt)
        in_turn = self._most >= settings.ahead and self._least <= 1.0 / settings.ahead
        tilted = max(tilt, 1.0 / tilt) >= settings.tilted
        long = n_iter - self._start >= settings.shortest_epoch
        if not (steady and tilted and long) or in_turn or n_iter < self._quiet:
            return Motion.NOTHING
        point = tilt > 1.0
        if self._point_last is not None and self._point_last != point:
            self._point_last, self._quiet = None, 2 * n_iter
            return Motion.SWING
        self._point_last = point
        return Motion.DRIFT
