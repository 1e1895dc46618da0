"""What [PGFL] states of its curves, as rules on numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pgfl._runs import Runs

from gtvcvx._arrays import FloatArray
from gtvcvx.experiments import Row, Verdict

#: Standard errors of the mean beyond which seeds agree: by chance about once in 20 tries.
ERRORS = 2.0
#: Two curves are near if they differ by less than this share: a line's width on the paper's axis.
NEAR = 0.25


def order_of(ours: FloatArray, other: FloatArray) -> int:
    """Tell which of two methods has smaller errors, on the same seeds: -1, 1, or 0 for neither.

    By the mean of ``log(ours / other)``, which counts if it is more than `ERRORS` standard errors
    from zero. One seed has no error, and counts by its sign.

    Parameters
    ----------
    ours, other : ndarray, shape (seeds,)
        Positive.
    """
    return sign_of(np.log(np.asarray(ours) / np.asarray(other)))


def sign_of(differences: FloatArray) -> int:
    """Return the sign of a mean over seeds, 0 if it is within `ERRORS` standard errors of zero."""
    n = len(differences)
    error = differences.std(ddof=1) / math.sqrt(n) if n > 1 else 0.0
    mean = float(differences.mean())
    return int(np.sign(mean)) if abs(mean) > ERRORS * error else 0


def verdict_of_order(order: int) -> Verdict:
    """Return REPRODUCED for errors that are smaller as stated (-1), else NOT REPRODUCED."""
    return Verdict.REPRODUCED if order < 0 else Verdict.NOT_REPRODUCED


def smaller(name: str, printed: str, ours: Runs, other: Runs, round_: int | None = None) -> Row:
    """State that one method has smaller errors than another; the row shows ``ours / other``.

    REPRODUCED if `order_of` says so, NOT REPRODUCED if it says nothing or the reverse.

    Parameters
    ----------
    name, printed : str
        Of the row.
    ours, other : Runs
        On the same seeds; only the first ones of the longer are used.
    round_ : int, optional
        After which round. Default: the last.
    """
    n = min(len(ours.scores), len(other.scores))
    a, b = (r.last if round_ is None else r.at(round_) for r in (ours, other))
    order = order_of(a[:n], b[:n])
    ratio = math.exp(float(np.log(a[:n] / b[:n]).mean()))
    said = {-1: "smaller", 0: "no clear difference", 1: "reversed: larger"}[order]
    return Row(
        name,
        printed,
        a[:n] / b[:n],
        ours.optimum[:n] / other.optimum[:n],
        verdict_of_order(order),
        f"{said}; ratio of NMSD {ratio:.3g} (geometric mean); {_at_optima(ours, other, n)}",
    )


def _at_optima(ours: Runs, other: Runs, n: int) -> str:
    """Say whether the models differ, or how one and the same is approached."""
    logs = np.log(ours.optimum[:n] / other.optimum[:n])
    if not logs.any():
        return "both aim at the same pooled optimum"
    return f"{math.exp(float(logs.mean())):.3g} at the certified optima of the two models"


def near(name: str, printed: str, ours: Runs, other: Runs) -> Row:
    """State that two methods end near each other; the row shows ``ours / other``.

    REPRODUCED if the geometric mean of the ratio is within `NEAR` of one, either way.
    """
    ratios = ours.last / other.last
    ratio = math.exp(float(np.log(ratios).mean()))
    close = 1.0 / (1.0 + NEAR) <= ratio <= 1.0 + NEAR
    return Row(
        name,
        printed,
        ratios,
        ours.optimum / other.optimum,
        Verdict.REPRODUCED if close else Verdict.NOT_REPRODUCED,
        f"ratio of NMSD {ratio:.3g} (geometric mean), near is within {NEAR:.0%}",
    )


def best_inside(values: FloatArray, inside: Sequence[int]) -> Verdict:
    """State that errors are smallest inside a range of a parameter.

    REPRODUCED if the smallest mean is at one of the places ``inside`` and both ends are worse by
    `order_of`.

    Parameters
    ----------
    values : ndarray, shape (seeds, k)
        Errors along the parameter.
    inside : sequence of int
        Places where the best is said to be.
    """
    best = int(values.mean(axis=0).argmin())
    there = best in inside
    worse = all(order_of(values[:, best], values[:, end]) < 0 for end in (0, -1))
    return Verdict.REPRODUCED if there and worse else Verdict.NOT_REPRODUCED


def value(name: str, runs: Runs, at: int | None = None, say: str = "") -> Row:
    """Return a row of ours, where the paper draws a curve and prints no number."""
    texts = [say or "the paper draws a curve"]
    if np.isfinite(runs.assumed_eps).all():
        texts.append(eps_text(runs))
    values = runs.last if at is None else runs.at(at)
    return Row(name, "not given", values, runs.optimum, None, "; ".join(texts))


def eps_text(runs: Runs) -> str:
    """Say what the noise of private runs protects."""
    assumed, proved = float(runs.assumed_eps.max()), float(runs.proved_eps.max())
    return f"eps (51) {assumed:.3g} were C_k = 1; {proved:.1e} by a bound that holds"
