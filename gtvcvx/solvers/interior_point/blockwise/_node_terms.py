"""Local losses as quadratic functions of nodes, and rows of data with bounded slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._norms import EPS
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS, WEIGHT, Term, coefficients
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.solvers.interior_point._losses import KINKED, Kinks
from gtvcvx.solvers.interior_point.blockwise._smooth_rows import SmoothRows
from gtvcvx.solvers.interior_point.blockwise._sums import Sums


class Slopes(NamedTuple):
    """Rows ``max_y y r - rate y^2 / 2`` of residuals ``r = x^T w - b``, low <= y <= high.

    With rate 0 they have a kink, otherwise a curvature of 1 / rate there. Squares have no ends.
    Nor have constraints, which are residuals in an interval.
    """

    X: FloatArray  # (N, d)
    b: FloatArray  # (N,)
    low: FloatArray  # (N,)
    high: FloatArray  # (N,)
    rate: FloatArray  # (N,)
    node: IntArray  # (N,)
    least: FloatArray  # (N,), -inf for all but constraints
    most: FloatArray  # (N,), inf for those

    @staticmethod
    def free(
        X: FloatArray,
        b: FloatArray,
        low: FloatArray,
        high: FloatArray,
        rate: FloatArray,
        node: IntArray,
    ) -> Slopes:
        """Return rows that are no constraints."""
        ends = np.full(len(b), np.inf)
        return Slopes(X, b, low, high, rate, node, -ends, ends)

    @staticmethod
    def constraints(
        X: FloatArray, b: FloatArray, node: IntArray, least: FloatArray, most: FloatArray
    ) -> Slopes:
        """Return residuals in intervals."""
        ends = np.full(len(b), np.inf)
        return Slopes(X, b, -ends, ends, np.zeros(len(b)), node, least, most)

    @staticmethod
    def together(parts: Iterable[Slopes], d: int) -> Slopes:
        """Return all rows of some, perhaps none."""
        none = np.empty(0)
        first = Slopes.free(np.empty((0, d)), none, none, none, none, np.empty(0, np.int64))
        return Slopes(*map(np.concatenate, zip(first, *parts, strict=True)))

    @property
    def constrained(self) -> BoolArray:
        """Which rows are constraints, (N,)."""
        return np.isfinite(self.least) | np.isfinite(self.most)

    def value(self, r: FloatArray) -> float:
        """Return the sum of all rows at residuals r (N,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(self.rate > 0.0, r / self.rate, np.where(r > 0.0, np.inf, -np.inf))
        # Constraints count for nothing: points violate them by what others take account of.
        y = np.where(self.constrained, 0.0, np.clip(slope, self.low, self.high))
        return float(np.sum(y * (r - 0.5 * self.rate * y)))


class NodeTerms:
    """Sum of all local losses: ``(1/2) w^T P w + q^T w + constant``, slopes, and smooth rows.

    Parameters
    ----------
    terms : iterable of Term
        Of `TERM_KINDS`.
    n, d : int
        Nodes and coordinates.
    raw : bool
        Whether features are of units so different that gradients of squares would be rounding:
        then these are rows with slopes of their own, not folded into quadratic functions.

    Attributes
    ----------
    P : ndarray, shape (n, d, d)
    q : ndarray, shape (n, d)
    constant : float
    slopes : Slopes
    smooth : SmoothRows
    classes : ClassRows
    sums : Sums
    """

    def __init__(self, terms: Iterable[Term], n: int, d: int, raw: bool = False) -> None:
        self.P, self.q, self.constant = np.zeros((n, d, d)), np.zeros((n, d)), 0.0
        self.sums = Sums(None)
        parts, smooth, classes = [], [], []
        sloping = {**_SLOPES, "squared": _free_squares} if raw else _SLOPES
        # For each row of data whether its slope is among those of `slopes`, or of `smooth`; and for
        # each of `slopes` whether it belongs to such a row.
        none = np.empty(0, bool)
        self._sloping, self._curved, self._of_data = [none], [none], [none]
        for term in terms:
            kind = term["kind"]
            if kind == "simplex":
                self.sums = _with_sums(self.sums, term, n)
            if kind in _QUADRATIC and kind not in sloping:
                _QUADRATIC[kind](self, term, d)
            elif kind in SMOOTH:
                smooth.append(term)
            elif kind == MULTINOMIAL:
                classes.append(term)
            else:
                parts.append(sloping[kind](term, d))
                self._of_data.append(np.full(len(parts[-1].b), kind in ROW_KINDS))
            if kind in ROW_KINDS:
                self._sloping.append(np.full(len(term["node"]), kind in sloping))
                self._curved.append(np.full(len(term["node"]), kind in SMOOTH))
        self.slopes, self.smooth = Slopes.together(parts, d), SmoothRows.of(smooth, d)
        self.classes = ClassRows(classes, n, d)

    def residual_scale(self) -> float:
        """Return how large residuals may be: by targets, and by the minima of quadratic parts."""
        some, curvature = ~self.slopes.constrained, float(np.einsum("nii->", self.P))
        targets = float(np.abs(self.slopes.b[some]).mean()) if some.any() else 0.0
        minima = float(np.abs(self.q).sum()) / curvature if curvature > 0.0 else 0.0
        each = float(np.abs(self.slopes.X[some]).mean()) if some.any() else 1.0
        return max(targets, each * minima) or 1.0

    def row_slopes(self, y: FloatArray) -> FloatArray:
        """Return the slopes (N + N' K,) of all rows of data, one term after the other.

        From those of all `slopes`, and of all smooth rows after them, and of those with K classes;
        NaN for the others, where they are derivatives at the point.
        """
        sloping = np.concatenate(self._sloping)
        found = np.full(len(sloping), np.nan)
        bounded = len(self.slopes.b)
        found[sloping] = y[:bounded][np.concatenate(self._of_data)]
        smooth = bounded + len(self.smooth.node)
        found[np.concatenate(self._curved)] = y[bounded:smooth]
        return np.concatenate([found, y[smooth:]])

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient (n, d) of the quadratic function."""
        found: FloatArray = np.einsum("nij,nj->ni", self.P, w) + self.q
        return found

    def rounding(self, w: FloatArray) -> float:
        """Return what the gradient at w (n, d) may be wrong by, paired with w.

        Roundings of its products are told by the root of their squares.
        """
        squares = np.einsum("nij,nj->ni", self.P**2, w**2)
        return float(EPS * np.sum(np.abs(w) * np.sqrt(squares)))

    def value(self, w: FloatArray) -> float:
        """Return the value of the quadratic function."""
        return float(0.5 * np.sum(w * (self.gradient(w) + self.q))) + self.constant


def rows_matrix(X: FloatArray, node: IntArray, n: int) -> sp.csr_array:
    """Return the matrix (N, n d) that takes w (n, d) to all ``x^T w``."""
    N, d = X.shape
    column = (node[:, None] * d + np.arange(d)).ravel()
    return sp.csr_array((X.ravel(), column, np.arange(N + 1) * d), shape=(N, n * d))


def _squared(out: NodeTerms, term: Term, d: int) -> None:
    root = np.sqrt(coefficients(term))
    X, y = term["X"] * root[:, None], term["y"] * root
    np.add.at(out.P, term["node"], 2.0 * X[:, :, None] * X[:, None, :])
    np.add.at(out.q, term["node"], -2.0 * y[:, None] * X)
    out.constant += float(y @ y)


def _point(out: NodeTerms, term: Term, d: int) -> None:
    weight = np.asarray(term.get(WEIGHT, np.ones(len(term["node"]))))[:, None]
    out.P[term["node"]] += 2.0 * weight[:, :, None] * np.eye(d)
    out.q[term["node"]] -= 2.0 * weight * term["a"]
    out.constant += float(np.sum(weight * term["a"] ** 2))


def _ridge(out: NodeTerms, term: Term, d: int) -> None:
    out.P[term["node"][:, None], np.arange(d), np.arange(d)] += _spread(term["mu"], d)


def _spread(values: FloatArray, d: int) -> FloatArray:
    """Return parameters of nodes, one for each or one for each coordinate, (N, d)."""
    return np.broadcast_to(values.reshape(len(values), -1), (len(values), d))


def _kinks(term: Term, d: int) -> Slopes:
    kinks = Kinks.of(term)
    low, high = kinks.weight * kinks.low, kinks.weight * kinks.high
    return Slopes.free(kinks.X, kinks.y, low, high, np.zeros(len(low)), kinks.node)


def _huber(term: Term, d: int) -> Slopes:
    """Return rows of weights c: their slopes are ``2 c r``, and ``2 c delta`` at most."""
    weight = coefficients(term)
    most = 2.0 * weight * term["delta"]
    return Slopes.free(term["X"], term["y"], -most, most, 0.5 / weight, term["node"])


def _free_squares(term: Term, d: int) -> Slopes:
    """Return rows of weights c: their slopes are ``2 c r``."""
    weight, ends = coefficients(term), np.full(len(term["y"]), np.inf)
    return Slopes.free(term["X"], term["y"], -ends, ends, 0.5 / weight, term["node"])


def _l1(term: Term, d: int) -> Slopes:
    """Moduli of the coordinates are kinked rows, too."""
    kappa, node = _spread(term["kappa"], d).ravel(), np.repeat(term["node"], d)
    X, some = np.tile(np.eye(d), (len(term["node"]), 1)), kappa > 0.0
    kappa, zero = kappa[some], np.zeros(np.count_nonzero(some))
    return Slopes.free(X[some], zero, -kappa, kappa, zero, node[some])


def _with_sums(sums: Sums, term: Term, n: int) -> Sums:
    totals = np.zeros(n) if sums.totals is None else sums.totals
    totals[term["node"]] = term["total"]
    return Sums(totals)


def constraints_known(terms: Iterable[Term], n: int) -> bool:
    """Say whether boxes have an inside, and either all n nodes have sums or none."""
    terms = list(terms)
    boxes = [term for term in terms if term["kind"] == "box"]
    summed = sum(len(term["node"]) for term in terms if term["kind"] == "simplex")
    return summed in (0, n) and all((box["lower"] < box["upper"]).all() for box in boxes)


def _box(term: Term, d: int) -> Slopes:
    """Residuals are distances from the lower end, or from the upper one if there is no other."""
    least, most = term["lower"].ravel(), term["upper"].ravel()
    end = np.where(np.isfinite(least), least, most)
    X, node = np.tile(np.eye(d), (len(term["node"]), 1)), np.repeat(term["node"], d)
    some = np.isfinite(end)
    end = end[some]
    return Slopes.constraints(X[some], end, node[some], least[some] - end, most[some] - end)


def _simplex(term: Term, d: int) -> Slopes:
    """Coordinates are not negative; that they have a sum is no row."""
    zero = np.zeros((len(term["node"]), d))
    return _box({"node": term["node"], "lower": zero, "upper": zero + np.inf}, d)


#: Kinds of rows that are smooth, and not quadratic anywhere.
SMOOTH = frozenset({"logistic", "poisson", "pseudohuber"})
#: Kinds of terms that forbid some points.
CONSTRAINTS = frozenset({"box", "simplex"})
_QUADRATIC: Mapping[str, Callable[[NodeTerms, Term, int], None]] = {
    "squared": _squared,
    "point": _point,
    "ridge": _ridge,
}
_SLOPES: Mapping[str, Callable[[Term, int], Slopes]] = {
    **dict.fromkeys(KINKED, _kinks),
    "huber": _huber,
    "l1": _l1,
    "box": _box,
    "simplex": _simplex,
}
#: Kinds of terms that are known here.
TERM_KINDS = frozenset({*_QUADRATIC, *_SLOPES, *SMOOTH, MULTINOMIAL})
