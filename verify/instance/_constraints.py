"""Points moved exactly onto the constraints of their nodes: boxes and simplices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify._arrays import FloatArray
from verify.instance._instance import Instance
from verify.instance._integers import Exact
from verify.instance._terms import BoxTerm, SimplexTerm


class Constraints:
    """The constraints of all nodes: bounds per coordinate, and the sum at some nodes.

    Attributes
    ----------
    lower, upper : ndarray, shape (n, d)
        The intersection of all boxes of a node; a simplex has lower >= 0.
    summed, totals : ndarray of int and ndarray
        The nodes with a simplex, and its total (several are not intersected).
    """

    def __init__(self, inst: Instance) -> None:
        shape = (inst.n, inst.d)
        self.lower, self.upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        sums: dict[int, float] = {}
        for term in inst.terms:
            if isinstance(term, BoxTerm):
                self.upper[term.node] = np.minimum(self.upper[term.node], term.upper)
                self.lower[term.node] = np.maximum(self.lower[term.node], term.lower)
            elif isinstance(term, SimplexTerm):
                self.lower[term.node] = np.maximum(self.lower[term.node], 0.0)
                sums |= zip(term.node.tolist(), term.parts[1].function.y.tolist(), strict=True)
        self.summed = np.array(list(sums), dtype=np.int64)
        self.totals = np.array(list(sums.values()), dtype=np.float64)

    @property
    def any(self) -> bool:
        """Whether there is any constraint."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def near(self, w: FloatArray, rtol: float) -> bool:
        """Whether every node breaks its constraints by at most rtol max(1, |w_i|)."""
        size = np.maximum(np.abs(w).max(axis=1), 1.0)
        return bool((self.violation(w) <= rtol * size).all())

    def violation(self, w: FloatArray) -> FloatArray:
        """Return (n,) the largest violation of a bound or a sum at each node, in floats."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.maximum(np.maximum(self.lower - w, w - self.upper), 0).max(axis=1)
            missed = np.abs(w[self.summed].sum(axis=1) - self.totals)
            out[self.summed] = np.maximum(out[self.summed], missed)
        return np.where(np.isnan(out), np.inf, out)

    def moved(self, w: FloatArray) -> tuple[FloatArray, Exact | None]:
        """Return the nearest feasible point in floats, and exactly where floats miss it.

        Bounds are doubles, so clipping is exact. The sum of a simplex is made exact by one
        coordinate with room that takes what rounding left over. Where the constraints of a node
        contradict each other, no point is feasible, and this one is not either.
        """
        if not self.any:
            return w, None
        out = np.minimum(np.maximum(w, self.lower), self.upper)
        rows: dict[int, list[Fraction]] = {}
        for i, total in zip(self.summed.tolist(), self.totals.tolist(), strict=True):
            low, high = self.lower[i], self.upper[i]
            if out[i].sum() != total:
                out[i] = _on_simplex(w[i], low, high, total)
            if (row := _exactly(out[i], low, high, Fraction(total))) is not None:
                rows[i] = row
        if not rows:
            return out, None
        exact = np.array([[Fraction(x) for x in v] for v in out.tolist()], dtype=object)
        for i, row in rows.items():
            exact[i] = row
        return out, exact


def _on_simplex(v: FloatArray, lower: FloatArray, upper: FloatArray, total: float) -> FloatArray:
    """Return the projection of v on lower <= x <= upper, sum x = total, up to rounding.

    It is clip(v - t) for the t that gives the sum, which falls piecewise linearly with t.
    """
    knots = np.concatenate([v - lower, v - upper])
    knots = np.unique(knots[np.isfinite(knots)])
    start = float(np.clip(v - knots[0], lower, upper).sum())
    knots = np.concatenate([[knots[0] - abs(total - start)], knots])
    sums = np.clip(v - knots[:, None], lower, upper).sum(axis=1)
    return np.clip(v - np.interp(total, sums[::-1], knots[::-1]), lower, upper)


def _exactly(
    v: FloatArray, lower: FloatArray, upper: FloatArray, total: Fraction
) -> list[Fraction] | None:
    """Return v with the sum exactly right, None where it is; within the bounds if possible."""
    row = [Fraction(x) for x in v.tolist()]
    left = total - sum(row)
    if left == 0:
        return None
    room = upper - v if left > 0 else v - lower
    for j in np.argsort(-room):
        end = upper[j] if left > 0 else lower[j]
        step = left
        if np.isfinite(end):
            limit = Fraction(float(end)) - row[j]
            step = min(left, limit) if left > 0 else max(left, limit)
        row[j] += step
        left -= step
    return row
