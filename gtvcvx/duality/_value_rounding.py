"""What rounding makes of the losses' own values, to first order.

Residuals such as X w - y of data far from zero lose digits that a small value does not show: 1e9
less 1e9 is known to 1e-7, whatever the loss makes of it. What each row loses is bounded by the size
of its products, and what that does to the loss by the slope there. Points lose nothing. Where
residuals are sums in twice the precision, next to nothing is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._norms import EPS
from gtvcvx._pieces import rows_at_once
from gtvcvx.losses.batched._doubt import uncertain
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS, WEIGHT, Term
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows

# A value and a gap each lose half a unit in the last place for each product of a row; of more than
# so many, whose roundings cancel in part, no more. A difference of two doubles loses nothing.
MOST_ULPS = 4.0
#: Rows of slopes at most 2 sqrt(f) where their value is f.
ROOTED = frozenset({"squared", "huber", "pseudohuber"})
#: The largest slope of other rows, where that is known whatever the point.
STEEPEST = {"absolute": 1.0, "quantile": 1.0, "hinge": 1.0, "logistic": 1.0}


class ValueRounding:
    """Sizes of the summands of all losses, node by node.

    Parameters
    ----------
    terms : sequence of dict
        Of the losses; kinds that are not known count as exact.
    n, d : int
        Numbers of nodes and dimensions.
    precise : ndarray of bool, shape (n,), optional
        Nodes whose residuals are sums in twice the precision. Default: none.
    """

    def __init__(
        self, terms: Sequence[Term], n: int, d: int, precise: BoolArray | None = None
    ) -> None:
        self._shape = n, d
        self._precise = np.zeros(n, dtype=bool) if precise is None else precise
        # Of rows of bounded slopes s_k: sum_k c_k s_k |x_k|.
        self._steep: list[FloatArray] = []
        # Of squares and what is below them: roots of sum_k c_k x_k^2.
        self._squares: list[FloatArray] = []
        # Of counts: max_k |x_k| and sum_k c_k y_k |x_k|.
        self._counts: list[tuple[FloatArray, FloatArray]] = []
        # Rows of those where residuals are precise, and the weights c_k of logistic ones.
        self._rates: list[Term] = []
        self._odds = 0.0
        self._classes: list[ClassRows] = []
        for term in terms:
            if term["kind"] == MULTINOMIAL:
                self._classes.append(ClassRows([term], n, d))
            elif term["kind"] in ROW_KINDS:
                self._add_rows(term["kind"], term)

    @cached_property
    def _unit(self) -> FloatArray:
        """What is lost of sizes of products (n,); of residuals rounded once, as with the loss."""
        d = self._shape[1]
        return np.where(self._precise, uncertain(d), min(float(d), MOST_ULPS) * EPS)

    def at(self, w: FloatArray, values: FloatArray) -> float:
        """Return the bound for points (n, d) whose losses have these values (n,)."""
        if not (self._steep or self._squares or self._counts or self._classes):
            return 0.0
        size, unit, total = np.abs(w), self._unit, EPS * self._odds
        for x in self._steep:
            total += float(np.sum(unit * _products(x, size)))
        for x in self._squares:
            # By Cauchy and Schwarz; what is left where residuals are zero is of second order.
            off = unit * _products(x, size)
            slope = 2.0 * np.sqrt(np.maximum(values, 0.0)) + off
            total += float(np.sum(slope * off))
        for most, counts in self._counts:  # exp(z_k) is at most the value and what z_k takes off
            counted = _products(counts, size)
            grown = np.abs(values) + 2.0 * counted
            total += float(np.sum(unit * (_products(most, size) * grown + counted)))
        for term in self._rates:
            total += _of_rates(term, w)
        return total + sum(_of_chances(rows, w, unit) for rows in self._classes)

    def _add_rows(self, kind: str, term: Term) -> None:
        node, X = term["node"], term["X"]
        n, width = self._shape[0], X.shape[1]
        given = term.get(WEIGHT)
        c: FloatArray = 1.0 / np.bincount(node, minlength=n)[node] if given is None else given
        if kind in ROOTED:
            self._squares.append(
                np.sqrt(_of_nodes(node, lambda r: c[r, None] * X[r] ** 2, n, width))
            )
        elif kind == "poisson":
            precise = self._precise[node]
            if precise.any():
                rows = {"X": term["X"], "y": term["y"], "c": c, "node": node}
                self._rates.append({name: each[precise] for name, each in rows.items()})
            most = _of_nodes(node, lambda r: np.abs(X[r]), n, width, np.maximum)
            counts = c * term["y"]
            counted = _of_nodes(node, lambda r: counts[r, None] * np.abs(X[r]), n, width)
            self._counts.append((most, counted))
        else:
            if kind == "logistic":  # far on the right side slopes fall sooner than residuals grow
                self._odds += float(np.sum(c[self._precise[node]]))
            steepest = STEEPEST[kind] * c
            self._steep.append(
                _of_nodes(node, lambda r: steepest[r, None] * np.abs(X[r]), n, width)
            )


def _of_rates(rows: Term, w: FloatArray) -> float:
    """Return what one rounding of log-rates, and a few of its terms, makes of counts."""
    z = np.einsum("rj,rj->r", rows["X"], w[rows["node"]])
    with np.errstate(over="ignore"):
        rate = np.exp(z)
    return float(4.0 * EPS * np.sum(rows["c"] * (rate + rows["y"]) * (1.0 + np.abs(z))))


def _of_chances(rows: ClassRows, w: FloatArray, unit: FloatArray) -> float:
    """Return what rounding of scores makes of rows of several classes.

    By slopes, which are differences of chances: those of rows that are clear are next to nothing.
    Within what is lost of scores they grow by no more than its exponential.
    """
    lost = unit[rows.node].reshape(rows.own.shape) * rows.sizes_of_scores(np.abs(w))
    slopes = np.abs(softmax.slopes(softmax.probabilities(rows.scores(w)), rows.own))
    with np.errstate(over="ignore"):
        slopes = np.minimum(slopes * np.exp(2.0 * lost.max(axis=1, keepdims=True)), 1.0)
    return float(np.sum(rows.coefficients * np.sum(slopes * lost, axis=1)))


def _products(x: FloatArray, size: FloatArray) -> FloatArray:
    """Return the inner products of the rows, (n,)."""
    return np.asarray(np.einsum("ij,ij->i", x, size))


def _of_nodes(
    node: IntArray,
    of_rows: Callable[[IntArray], FloatArray],
    n: int,
    width: int,
    joined: np.ufunc = np.add,
) -> FloatArray:
    """Return what rows (N,) of each node say together, (n, width), of what they say in pieces."""
    order, out = np.argsort(node, kind="stable"), np.zeros((n, width))
    for piece in rows_at_once(len(node), width):
        rows = order[piece]
        owner = node[rows]
        first = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        at = owner[first]
        out[at] = joined(out[at], joined.reduceat(of_rows(rows), first, axis=0))
    return out
