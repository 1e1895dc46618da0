"""What corrections are to come to, and what a step of them has led to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.duality._dual_points import Certain, FeasiblePoint
from gtvcvx.duality._settings import CORRECTION

Found = tuple[FeasiblePoint, Certain]


class Aim(NamedTuple):
    """What corrections are to come to."""

    size: FloatArray  # (n, d), of what adds up at the nodes to begin with
    enough: float  # a gap that need not be smaller

    def reached(self, found: Found | None) -> bool:
        """Say whether what was found is enough."""
        return found is not None and found[1].total <= self.enough

    def asks_more_than(self, found: Found | None) -> bool:
        """Say whether the gap is more than what is asked for, of which `enough` is a share."""
        return found is None or found[1].total > self.enough / CORRECTION.share


class Judged(NamedTuple):
    """What a step has led to."""

    found: Found | None  # None where the balance is not made up
    done: bool  # whether more steps are no use
    left: float  # largest share of what may be missing of the balance that is

    def little_less_than(self, before: Judged) -> bool:
        """Say whether neither what is missing nor the gap has fallen much."""
        if self.left <= CORRECTION.fall * before.left:
            return False
        if self.found is None or before.found is None:
            return self.found is None
        return self.found[1].total > CORRECTION.fall * before.found[1].total


def better(one: Found | None, other: Found | None) -> Found | None:
    """Return what has the smaller gap, if there is any."""
    return min((one, other), key=lambda each: np.inf if each is None else each[1].total)
