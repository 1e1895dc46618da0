"""The answer of the exact kernel. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from verify.kernel import numbers

#: Beginnings of reasons that are no statements about w, nor about a partition.
MALFORMED, INTERNAL = "malformed", "internal error"


@dataclass(frozen=True)
class Result:
    """Answer of the kernel; bounds are None where none was proved.

    Attributes
    ----------
    status : str
        "CERTIFIED", "REFUTED" or "UNPROVED".
    reason : str
        One sentence.
    upper, lower : Fraction or None
        Lower <= min P and P(w) <= upper.
    rtol : Fraction or None
        The tolerance of whoever checks; what the document asks for decides nothing.
    distance_squared : Fraction or None
        Bound on ||w - w_hat||^2 where every node has a point or a ridge term.
    warning : str
        One sentence where a relative gap by max(1, |upper|) says little; else empty.

    Fractions are left out of the representation: they may have thousands of digits.
    """

    status: str
    reason: str
    upper: Fraction | None = field(default=None, repr=False)
    lower: Fraction | None = field(default=None, repr=False)
    rtol: Fraction | None = field(default=None, repr=False)
    distance_squared: Fraction | None = field(default=None, repr=False)
    warning: str = ""

    @property
    def gap(self) -> Fraction | None:
        """Upper minus lower bound, signed."""
        return None if self.upper is None or self.lower is None else self.upper - self.lower

    @property
    def rel_gap(self) -> Fraction | None:
        """Gap divided by max(1, |upper|)."""
        gap, upper = self.gap, self.upper
        return None if gap is None or upper is None else gap / max(Fraction(1), abs(upper))

    @property
    def plain_gap(self) -> Fraction | None:
        """Gap divided by |upper|, None where that is 0."""
        gap = self.gap
        return None if gap is None or not self.upper else gap / abs(self.upper)

    def to_json(self) -> dict[str, Any]:
        """Return status, reason and the figures as outward-rounded floats.

        Figures that are not known, or beyond the largest double, are None.
        """
        names = ("rel_gap", "plain_gap", "upper", "gap", "rtol")
        return {
            "status": self.status,
            "reason": self.reason,
            **{name: _rounded(getattr(self, name), numbers.round_up) for name in names},
            "lower": _rounded(self.lower, numbers.round_down),
            "distance_bound": _rounded(self.distance_squared, numbers.sqrt_up),
            "warning": self.warning,
        }


def _rounded(x: Fraction | None, rounding: Callable[[Fraction], float]) -> float | None:
    figure = math.inf if x is None else rounding(x)
    return figure if math.isfinite(figure) else None
