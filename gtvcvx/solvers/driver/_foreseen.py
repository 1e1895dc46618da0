"""Starts that a path foresees: pairs which may be good enough as they are."""

from __future__ import annotations

from gtvcvx.solution import Solution

#: What a start says of itself in its `info`, and what a solution does of its start: that it was
#: foreseen to be good enough, and was not.
FORESEEN, MISSED = "foreseen", "foreseen_in_vain"


def is_foreseen(start: Solution) -> bool:
    """Say whether a start is to be checked before anything is iterated on."""
    return start.info.get(FORESEEN) is True
