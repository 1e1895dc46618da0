"""What methods need of a problem, declared; refusals name what is missing."""

from __future__ import annotations

from collections.abc import Callable

from gtvcvx.problem import GTVProblem

#: Says in words what a problem lacks for a method; None if it lacks nothing.
Requirement = Callable[[GTVProblem], str | None]


def missing(problem: GTVProblem, requirements: tuple[Requirement, ...]) -> str | None:
    """Return the first thing that a problem lacks of what is required, or None."""
    lacks = (requirement(problem) for requirement in requirements)
    return next((lack for lack in lacks if lack is not None), None)
