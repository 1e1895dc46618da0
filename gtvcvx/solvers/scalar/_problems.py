"""Slopes of a problem in each of its coordinates, made once, and what is asked of them."""

from __future__ import annotations

import numpy as np

from gtvcvx.duality._scalar_gap import Extent, Slopes, extent
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver._scalar import scalar_form
from gtvcvx.solvers.scalar._slopes import piecewise, quadratic_slopes, slopes_of


def slopes_in(problem: GTVProblem, k: int) -> Slopes:
    """Return the slopes of a problem's losses in coordinate k."""
    name, form = f"slopes in coordinate {k}", scalar_form(problem)
    if form is None:
        return problem.cached(name, lambda: slopes_of(problem, k))

    def quadratic() -> Slopes:
        return quadratic_slopes(*(np.ascontiguousarray(part[:, k]) for part in form))

    # In one dimension nothing is copied, and they are kept.
    return problem.cached(name, quadratic) if problem.dim == 1 else quadratic()


def extent_in(problem: GTVProblem, k: int) -> Extent:
    """Return the extent of a problem's losses in coordinate k, found once."""
    return problem.cached(f"extent in coordinate {k}", lambda: extent(slopes_in(problem, k)))


def scalar_losses(problem: GTVProblem) -> str | None:
    """Ask for losses that are sums over coordinates of piecewise quadratic functions."""
    if problem.losses.is_quadratic:
        fits = scalar_form(problem) is not None
    else:
        fits = problem.cached("piecewise", lambda: piecewise(problem.losses.terms()))
    return None if fits else "losses that are piecewise quadratic in single coordinates"
