"""The answer of the exact kernel. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
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
        The tolerance that was asked for.
    distance_squared : Fraction or None
        Bound on ||w - w_hat||^2 where every node has a point or a ridge term.
    """

    status: str
    reason: str
    upper: Fraction | None = None
    lower: Fraction | None = None
    rtol: Fraction | None = None
    distance_squared: Fraction | None = None

    @property
    def gap(self) -> Fraction | None:
        """Upper minus lower bound, signed."""
        return None if self.upper is None or self.lower is None else self.upper - self.lower

    @property
    def rel_gap(self) -> Fraction | None:
        """Gap divided by max(1, |upper|)."""
        gap = self.gap
        if gap is None or self.upper is None:
            return None
        return gap / max(Fraction(1), abs(self.upper))

    def to_json(self) -> dict[str, Any]:
        """Return status, reason and the figures as outward-rounded floats (or None)."""
        out: dict[str, Any] = {"status": self.status, "reason": self.reason}
        for name in ("upper", "gap", "rel_gap", "rtol"):
            value = getattr(self, name)
            out[name] = None if value is None else numbers.round_up(value)
        out["lower"] = None if self.lower is None else numbers.round_down(self.lower)
        squared = self.distance_squared
        return {**out, "distance_bound": None if squared is None else numbers.sqrt_up(squared)}
