"""Slopes of losses that are sums over coordinates of piecewise quadratic functions."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.duality._scalar_gap import Extent, Slopes
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._scalar import HUBER, KINK, SQUARED
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver._scalar import LARGEST

#: Terms whose slopes are piecewise linear, with jumps.
KINDS = frozenset({"squared", "huber", "absolute", "quantile", "hinge", "point", "ridge", "l1"})


def moderate(extent: Extent, inflow: float = 0.0) -> bool:
    """Say whether all numbers, and their sums, stay far from overflow; inflow moves minimizers."""
    reach = max(extent.reach, (extent.size + inflow) / extent.flattest)
    return max(extent.size, extent.bends, reach, extent.bends * reach) < LARGEST


def quadratic_slopes(curvature: FloatArray, linear: FloatArray) -> Slopes:
    """Return the slopes of quadratic functions, (n,) each."""
    none, rise = np.empty(0), np.zeros(len(curvature))
    return Slopes(curvature, linear, rise, np.empty(0, np.int64), none, none, none)


def piecewise(terms: list[Term]) -> bool:
    """Say whether all terms have piecewise linear slopes, and no row couples coordinates."""
    if not {term["kind"] for term in terms} <= KINDS:
        return False
    return all(
        term["X"].shape[1] == 1 or np.count_nonzero(term["X"], axis=1).max(initial=0) <= 1
        for term in terms
        if "X" in term
    )


def slopes_of(problem: GTVProblem, k: int) -> Slopes:
    """Return the slopes of losses that are `piecewise`, in coordinate k."""
    n, d = problem.graph.n_nodes, problem.dim
    parts: Parts = problem.cached(
        "parts of piecewise losses", lambda: Parts.of(problem.losses.terms(), n, d)
    )
    c = parts.coordinates[:, k]
    q, b, rise = c["mu"].copy(), c["linear"] + c["kappa"], 2.0 * c["kappa"]
    bent = np.flatnonzero(c["kappa"] > 0.0)
    found = [(bent, np.zeros(len(bent)), np.zeros(len(bent)), 2.0 * c["kappa"][bent])]
    x = parts.X[:, k]
    kinds = _kinds(parts.rows, x, c)
    for kind, changes in ((SQUARED, None), (KINK, _kinks), (HUBER, _hubers)):
        look()
        at = np.flatnonzero((kinds == kind) & (x != 0.0))
        owner, rows, factor = parts.owner[at], parts.rows[at], x[at]
        if changes is None:
            q += np.bincount(owner, 2.0 * rows["c"] * factor**2, minlength=n)
            b += np.bincount(owner, 2.0 * rows["c"] * factor * rows["y"], minlength=n)
            continue
        left, right, places = changes(rows, factor)
        b -= np.bincount(owner, left, minlength=n)
        rise += np.bincount(owner, right - left, minlength=n)
        found += [(owner, *place) for place in places]
    look()
    node = np.concatenate([at for at, *_ in found])
    position, bend, jump = (np.concatenate([f[j] for f in found]) for j in (1, 2, 3))
    order = np.argsort(node, kind="stable")
    return Slopes(q, b, rise, node[order], position[order], bend[order], jump[order])


def _kinds(rows: np.ndarray, x: FloatArray, c: np.ndarray) -> IntArray:
    """Return the kinds of rows (N,): squares, where Huber's loss bends beyond all solutions.

    Its slopes there would be the differences of large numbers. Values of solutions are between
    those that single terms are least at.
    """
    kinds: IntArray = rows["kind"].astype(np.int64)
    some = np.flatnonzero((kinds == HUBER) & (x != 0.0))
    if not len(some):
        return kinds
    best = rows["y"][x != 0.0] / x[x != 0.0]
    curved = c["mu"] > 0.0
    best = np.concatenate(
        [best, c["linear"][curved] / c["mu"][curved], np.zeros(int((c["kappa"] > 0.0).any()))]
    )
    reach, at = rows["delta"][some] / np.abs(x[some]), rows["y"][some] / x[some]
    kinds[some[(at - reach <= best.min()) & (at + reach >= best.max())]] = SQUARED
    return kinds


Change = tuple[FloatArray, FloatArray, FloatArray]


def _kinks(rows: np.ndarray, x: FloatArray) -> tuple[FloatArray, FloatArray, list[Change]]:
    """Return slopes left and right of max(low r, high r), r = x w - y, and what is between."""
    left = np.where(x > 0.0, rows["low"], rows["high"]) * x
    right = np.where(x > 0.0, rows["high"], rows["low"]) * x
    return left, right, [(rows["y"] / x, np.zeros(len(x)), right - left)]


def _hubers(rows: np.ndarray, x: FloatArray) -> tuple[FloatArray, FloatArray, list[Change]]:
    """Return slopes left and right of Huber rows, and what is between."""
    right = rows["high"] * np.abs(x)
    bend, none = 2.0 * rows["c"] * x**2, np.zeros(len(x))
    first, second = (rows["y"] - rows["delta"]) / x, (rows["y"] + rows["delta"]) / x
    low, high = np.minimum(first, second), np.maximum(first, second)
    return -right, right, [(low, bend, none), (high, -bend, none)]
