"""Certificates of problems of any size: small ones as texts, large ones as arrays."""

from __future__ import annotations

from typing import Any

from verify.certificates import _certify
from verify.certificates._certificate import Certificate
from verify.certificates._limits import Clock
from verify.instance._instance import plain_data

LARGE = 20_000  # numbers in w and u; from there on texts take half a second and more
LARGE_DATA = 60_000  # numbers in them and in the data rows; the same
# Coordinates from which on ratios are so long, where nothing but rows takes a load, that texts of
# three nodes took half a minute, and more than the budget of a check.
WIDE = 64


def certify(
    problem: Any,
    w: Any,
    u: Any = None,
    rtol: float = 1e-6,
    *,
    search: bool = True,
    time_limit: float | None = None,
) -> Certificate:
    """Prove, exactly, how far w is from optimal.

    Parameters
    ----------
    problem : object or mapping
        Plain data (verify/SCHEMA.md), or an object with `to_data` and perhaps `solve`.
    w : array_like, shape (n, d)
        The point, from any source: floats, or only ints and `fractions.Fraction` (as nested lists
        or an object array), which are not rounded. Floats that break a box or a simplex by no more
        than max(rtol, 1e-9) max(1, |w_i|) are first moved onto it, exactly, and all that is proved
        is about the moved point (`w` in floats, the document has it exactly, `moved` is how far);
        what breaks one by more is REFUTED, because P is infinite there.
    u : array_like, shape (m, d), optional
        Edge flows of a dual solution, if known. Where they are missing or do not suffice,
        `problem.solve(rtol=...).u` is asked for, and without it the dual is solved by CVXPY. Where
        both w and u are rational and the losses are quadratic, they are tried first as they are,
        with the gradients at w as multipliers: for an exact solution the gap is 0, and rtol = 0 is
        proved.
    rtol : float, default 1e-6
        Tolerance on gap / max(1, |upper|).
    search : bool, default True
        False forbids to look for another flow or a better point: nothing is solved, and the answer
        is CERTIFIED if the given u, repaired, proves w, otherwise UNPROVED, and REFUTED only where
        w breaks a constraint.
    time_limit : float, optional
        Seconds after which the answer is UNPROVED unless w is certified or refuted by then; all
        work, the kernel's included, looks at the clock, but for reading the data, which counts.
        Without a limit of yours, solving again still has one: 10 s, and 1 ms for every entry of w
        and u, and ten times what all else has taken so far.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError, TypeError
        Bad problem data, shapes, NaN or infinity, a tolerance that is negative or not finite, or a
        time limit that is not positive.
    KeyboardInterrupt
        On Ctrl-C, also while `problem.solve` runs.
    """
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}")
    clock = Clock(time_limit)
    if _is_large(problem):
        # Compiled code, which takes a while to load and which small problems never need.
        from verify.certificates.arrays._build import certify_arrays

        found = certify_arrays(problem, w, u, rtol, search=search, clock=clock)
        if found is not None:
            return found
    return _certify.certify(problem, w, u, rtol, search=search, clock=clock)


def _is_large(problem: Any) -> bool:
    """Whether witness and data have so many numbers that arrays are worth it."""
    data = plain_data(problem)
    try:
        count = (data["n_nodes"] + len(data["edges"])) * data["dim"]
        rows = sum(getattr(term.get("X"), "size", 0) for term in data["terms"])
        alone = data["dim"] >= WIDE and all("X" in term for term in data["terms"])
        return bool(alone or count >= LARGE or count + rows >= LARGE_DATA)
    except (AttributeError, KeyError, TypeError):
        return False
