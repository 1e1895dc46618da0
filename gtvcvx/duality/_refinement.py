"""Iterative refinement: linear systems solved to rounding by runs that are not that accurate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gtvcvx._deadline import look
from gtvcvx.duality._settings import REFINEMENT

X = TypeVar("X")
R = TypeVar("R")


def refine(
    start: X,
    residual_of: Callable[[X], R],
    corrected: Callable[[X, R, float], X],
    rtol: float,
    rounding: Callable[[X], float],
    norm: Callable[[R], float],
) -> X:
    """Correct a point until its residual is small.

    Parameters
    ----------
    start : X
        A point of whatever kind.
    residual_of : callable
        Returns the residual of a point: an array, or arrays.
    corrected : callable
        Returns a point whose residual is to have at most a given norm, from a point and its
        residual.
    rtol : float
        Share of the first residual's norm that may be left.
    rounding : callable
        Norm of a residual that is rounding of a point: it would only be amplified.
    norm : callable
        Of residuals.
    """
    point, residual = start, residual_of(start)
    left = norm(residual)
    share = rtol * left
    for _ in range(REFINEMENT.runs):
        goal = max(share, rounding(point))
        if left <= goal:
            break
        look()
        accuracy = max(REFINEMENT.accuracy * left, REFINEMENT.margin * goal)
        trial = corrected(point, residual, accuracy)
        residual = residual_of(trial)
        found = norm(residual)
        if not found < left:
            break
        point, left = trial, found
    return point
