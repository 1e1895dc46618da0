"""Rows of one node whose loss is smooth: slopes, curvatures, and whether a minimizer exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT, Term

# Less than this in a direction of length one is rounding of the linear program.
_SEPARATED = 1e-7

Slopes = Callable[[Term, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class SmoothRows:
    """The rows of a node, ``sum_r psi(x_r.w)``, and its ridge ``(n / 2) sum_j mu_j w_j^2``."""

    term: Term
    ridge: FloatArray  # (p,), mu

    @property
    def X(self) -> FloatArray:
        """Features (n, p)."""
        return self.term["X"]

    @property
    def is_linear(self) -> bool:
        """Whether the loss is the squared one."""
        return bool(self.term["kind"] == "squared")

    def slopes(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives (n,) of psi at x_r.w."""
        with np.errstate(over="ignore"):
            return _SLOPES[self.term["kind"]](self.term, self.X @ w)


def smooth_rows(terms: list[Term], ridge: float, place: str) -> SmoothRows:
    """Read the terms of one node; whatever has no sandwich covariance is refused by its place."""
    rows = [term for term in terms if term["kind"] in ROW_KINDS]
    known = {*_SLOPES, "ridge"}
    wrong = [str(term["kind"]) for term in terms if term["kind"] not in known]
    if wrong or len(rows) != 1:
        found = wrong[0] if wrong else ("no rows" if not rows else "several losses of rows")
        raise ValueError(
            f"{place}: one loss of rows among {', '.join(_SLOPES)}, with or without a ridge term, "
            f"is expected, got {found}"
        )
    if WEIGHT in rows[0]:
        raise ValueError(f"{place}: the mean over the rows is expected, the loss is weighted")
    total = np.full(rows[0]["X"].shape[1], float(ridge))
    for term in terms:
        if term["kind"] == "ridge":
            total = total + term["mu"][0]
    return SmoothRows(rows[0], total)


def check_estimable(rows: SmoothRows, place: str) -> None:
    """Refuse rows without a ridge that have no unique finite estimate with a covariance."""
    n, p = rows.X.shape
    if rows.ridge.all():
        return
    if n <= p:
        raise ValueError(f"{place}: more than {p} rows are needed, got {n}; or a ridge > 0")
    check_rank(rows.X, place, "features")
    if rows.ridge.any():
        return
    if rows.term["kind"] in ("logistic", "poisson") and _runs_away(rows.term):
        raise ValueError(
            f"{place}: the rows of the {rows.term['kind']} loss are separable, so that the "
            "estimate is infinite; a ridge > 0 is needed"
        )


def check_rank(matrix: FloatArray, place: str, what: str) -> None:
    """Refuse a matrix of dependent columns; their units do not matter."""
    units = column_norms(matrix)
    values = np.linalg.svd(matrix / np.where(units > 0.0, units, 1.0), compute_uv=False)
    if len(values) < matrix.shape[1] or values[-1] <= max(matrix.shape) * _UNIT * values[0]:
        raise ValueError(f"{place}: H is singular, as the {what} are linearly dependent")


def column_norms(matrix: FloatArray) -> FloatArray:
    """Euclidean norms of columns (p,) without overflow."""
    largest = np.max(np.abs(matrix), axis=0, initial=0.0)
    units = matrix / np.where(largest > 0.0, largest, 1.0)
    return np.asarray(largest * np.linalg.norm(units, axis=0))


_UNIT = float(np.finfo(np.float64).eps)


def _runs_away(term: Term) -> bool:
    """Whether the loss falls for ever in some direction: a linear program decides.

    Logistic rows: the direction v has (2 y - 1) x.v >= 0 for all rows. Poisson rows: x.v = 0
    where y > 0 and x.v <= 0 where y = 0. Not all of these may be zero, as columns are independent.
    """
    units = column_norms(term["X"])
    X, y = term["X"] / units, term["y"]
    equal = np.zeros(len(y), dtype=bool)
    signed = X * (2.0 * y - 1.0)[:, None]
    if term["kind"] == "poisson":
        equal, signed = y > 0.0, -X
    free = signed[~equal]
    program: dict[str, Any] = {"A_ub": -free, "b_ub": np.zeros(len(free)), "bounds": (-1.0, 1.0)}
    if equal.any():
        program |= {"A_eq": signed[equal], "b_eq": np.zeros(int(equal.sum()))}
    if not len(free):
        return False
    result = linprog(-free.sum(axis=0), method="highs", **program)
    return bool(result.status != 0 or -result.fun > _SEPARATED)


def _squared(term: Term, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    return 2.0 * (z - term["y"]), np.full(len(z), 2.0)


def _logistic(term: Term, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    chance, other = expit(z), expit(-z)
    # Without cancellation where the chance is near the label.
    return np.where(term["y"] > 0.5, -other, chance), chance * other


def _poisson(term: Term, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    rate = np.exp(z)
    return rate - term["y"], rate


def _huber(term: Term, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    r, delta = z - term["y"], term["delta"]
    return 2.0 * np.clip(r, -delta, delta), 2.0 * (np.abs(r) <= delta)


def _pseudo_huber(term: Term, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    r = z - term["y"]
    cosine = term["delta"] / np.hypot(term["delta"], r)
    return r * cosine, cosine**3


_SLOPES: Mapping[str, Slopes] = {
    "squared": _squared,
    "logistic": _logistic,
    "poisson": _poisson,
    "huber": _huber,
    "pseudohuber": _pseudo_huber,
}
