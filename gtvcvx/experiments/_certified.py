"""What is proved of a point that some method ended at."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

import verify
from gtvcvx._arrays import real_array
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# The optimum's own gap is below the tolerance of the claim by this factor, so that it is w that
# decides the answer and not the flow that w is measured with.
_MARGIN = 0.1


def proved_gap(
    problem: GTVProblem,
    w: ArrayLike,
    rtol: float = 1e-6,
    *,
    solution: Solution | None = None,
) -> float:
    """Bound how far a point is from optimal, by exact arithmetic.

    Parameters
    ----------
    problem : GTVProblem
    w : array_like, shape (n, d)
        From any method.
    rtol : float
        Tolerance that w is meant to reach.
    solution : Solution, optional
        A solution of the same problem with a gap well within rtol, whose flow serves as the
        witness; solved for without it.

    Returns
    -------
    float
        Relative gap (P(w) - bound) / max(1, |P(w)|), proved; infinity where w breaks a constraint
        or the kernel has no rule for a loss.

    Notes
    -----
    The flow of the solution is the only witness: no better point is searched for.
    """
    if solution is None:
        solution = problem.solve(rtol=_MARGIN * rtol)
    certificate = verify.certify(problem, w, solution.u, rtol, search=False)
    proved = certificate.exact and certificate.status != "REFUTED"
    return max(float(certificate.rel_gap), 0.0) if proved else math.inf


def gap_text(gaps: ArrayLike, rtol: float = 1e-6) -> str:
    """Say in a few words what `proved_gap` gave for the last point of a curve.

    Parameters
    ----------
    gaps : array_like
        Relative gaps, one a seed.
    rtol : float
        Tolerance of the claim.

    Returns
    -------
    str
        "CERTIFIED 1e-06", or "gap 3.1e-02 (relative), proved"; of several seeds the worst.
    """
    values = np.atleast_1d(real_array(gaps, "gaps")).ravel()
    if not values.size or np.isnan(values).any():
        raise ValueError("gaps: at least one, and numbers, are expected")
    worst = float(values.max())
    of = "" if values.size == 1 else f", the worst of {values.size}"
    if not math.isfinite(worst):
        return f"no gap was proved{of}"
    if worst <= rtol:
        return f"CERTIFIED {rtol:.0e}" + of
    return f"gap {worst:.1e} (relative), proved{of}"


def certified(
    problem: GTVProblem,
    w: ArrayLike,
    rtol: float = 1e-6,
    *,
    solution: Solution | None = None,
) -> str:
    """Say what is proved of a point: `gap_text` of its `proved_gap`.

    Parameters
    ----------
    problem : GTVProblem
    w : array_like, shape (n, d)
    rtol : float
        Tolerance of the claim.
    solution : Solution, optional
        Of the same problem, as for `proved_gap`.

    Returns
    -------
    str
        Such as "CERTIFIED 1e-06" or "gap 3.1e-02 (relative), proved".
    """
    return gap_text(proved_gap(problem, w, rtol, solution=solution), rtol)
