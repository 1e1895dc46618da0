"""Coefficients of a solution, by number or name."""

from __future__ import annotations

from gtvcvx._arrays import is_integer
from gtvcvx._diagnostics import coefficient_names
from gtvcvx.plotting._canvas import as_text
from gtvcvx.solution import Solution


def coefficient_number(solution: Solution, by: str | int, others: str) -> int:
    """Return the number of a coefficient that is given by number or name.

    Raises
    ------
    ValueError
        There is none; ``others`` says what else could have been meant.
    """
    d = solution.w.shape[1]
    names = coefficient_names(solution) or []
    if isinstance(by, str) and by in names:
        return names.index(by)
    if is_integer(by) and 0 <= by < d:
        return int(by)
    known = f" or one of {', '.join(map(repr, names))}" if names else ""
    raise ValueError(f"by: {others}, a number in 0..{d - 1}{known} is expected, got {by!r}")


def coefficient_title(solution: Solution, coefficient: int) -> str:
    """Return what a picture calls a coefficient."""
    names = coefficient_names(solution)
    return f"coefficient {f'w{coefficient}' if names is None else as_text(names[coefficient])}"
