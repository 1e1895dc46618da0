"""Builder's view of the loss terms of the data: their blocks, multipliers, domains and node gaps.

A term has one multiplier per block in the document. For the float computations it is a sum of
parts with scalar functions: a box is an upper and a lower half (an equation where both bounds are
equal), and a simplex the half w >= 0 and the equation sum_j w_j = total.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.instance import _integers as integers
from verify.instance._blocks import Blocks, Part
from verify.instance._functions import (
    Function,
    Logistic,
    Multinomial,
    Piecewise,
    Poisson,
    PseudoHuber,
)
from verify.instance._integers import Exact
from verify.instance._multiplier_intervals import Domain, domain, row_domain
from verify.kernel.data import CLASSES, ROWS
from verify.kernel.rules import CURVED

INF = np.inf


class Term(Blocks):
    """A loss term.

    Attributes
    ----------
    parts : tuple of Part
        What it is the sum of.
    domain : Domain or None
        The intervals of its multipliers; None where they are the real line.
    """

    def __init__(self, blocks: Blocks, parts: tuple[Part, ...], domain: Domain | None) -> None:
        super().__init__(blocks.node, blocks.x, blocks.n, blocks.d)
        self.parts, self.domain = parts, domain

    def rescaled(self, units: FloatArray) -> Self:
        """Return the term as a function of w * units; its multipliers stay the same."""
        out = super().rescaled(units)
        out.parts = tuple(part.rescaled(units) for part in self.parts)
        return out

    def value(self, w: FloatArray) -> float:
        """Return the loss at w (n, d); infinite where w breaks a bound."""
        return sum(part.value(w) for part in self.parts if not part.equation)

    def beside(self, w: FloatArray) -> Term:
        """Return the term as multipliers close to those at w (n, d) are best told."""
        return self

    def documented(self, r: Exact) -> Exact:
        """Return the multipliers as a document has them."""
        return r

    def exact_witness(self, w: Exact) -> Exact | None:
        """Return the gradient at w (n, d) of ints and Fractions, None where it is not rational."""
        return None

    def join(self, r: list[FloatArray]) -> FloatArray:
        """Return the multiplier of the term from those of its parts."""
        return r[0]

    def split(self, r: FloatArray) -> list[FloatArray]:
        """Return multipliers of the parts that cost as much as that of the term."""
        return [r]

    def gaps(self, r: FloatArray, w: FloatArray) -> FloatArray:
        """Return h(B w) + h*(r) - <r, B w> >= 0 per node, (n,)."""
        pairs = zip(self.parts, self.split(r), strict=True)
        return sum((p.gaps(v, w) for p, v in pairs if not p.equation), np.zeros(self.n))

    def ease(self, r: FloatArray, w: FloatArray) -> FloatArray:
        """Return how easily each multiplier changes by little, of `shape`, zero: not at all.

        The curvature where h* is smooth around r (a change costs its square over twice that), else
        the room to the ends of the interval. At an end both are minute; least at the end zero,
        because scaling the dual point brings back what is beyond another end only.
        """
        curvature = self.parts[0].curvature(w)
        size = max(float(np.abs(r).max(initial=0.0)), 1e-300)
        if self.domain is None:
            return np.where(curvature > 0, curvature, size)
        lo, hi = self.domain.floats()
        width = np.minimum(hi - lo, size)
        floor = np.where(np.where(hi - r < r - lo, hi, lo) == 0, 1e-12, 1e-9) * width
        room = np.minimum(np.minimum(r - lo, hi - r), size)
        limited = self.parts[0].function.limited & (curvature == 0)
        return np.maximum(np.where(limited, room, curvature), floor)


class MultinomialTerm(Term):
    """Rows of K classes: a block x (e_k - e_c)^T for each class k but a reference class, c.

    Its multiplier is the chance of k over m, less 1/m where k is the row's own class, y. In a
    document c is y, everywhere. Here it is best the likeliest class: its chance makes room for
    changes of all others, which have intervals of their own. That it is not below 0 is left to the
    kernel, and to the solver whose flow multipliers are made for.

    Parameters
    ----------
    field : dict
        The term's data.
    n, d : int
    reference : ndarray of int, shape (N,), optional
        Default: the rows' own classes.
    """

    def __init__(
        self, field: dict[str, Any], n: int, d: int, reference: IntArray | None = None
    ) -> None:
        node, y = field["node"], field["y"].astype(np.int64)
        X = field["X"].reshape(len(node), -1) if len(node) else np.zeros((0, d // 2))
        K = d // X.shape[1]
        c = y if reference is None else reference
        self._field, self._X, self._y, self._reference, self._classes = field, X, y, c, K
        row, other = np.nonzero(c[:, None] != np.arange(K))
        contrast = np.eye(K)[other] - np.eye(K)[c[row]]
        x = (X[row][:, :, None] * contrast[:, None, :]).reshape(len(row), d)
        blocks = Blocks(node[row], x, n, d)
        m = np.bincount(node, minlength=n)[node[row]].astype(object)
        if "weight" in field:  # in the place of 1/m
            m = np.array([1 / Fraction(v) for v in field["weight"][row].tolist()], dtype=object)
        own = other == y[row]
        ends = domain(-own.astype(object), 1 - own.astype(object), 0, m)
        function = Multinomial(m.astype(np.float64), K - 1, own.astype(np.float64))
        super().__init__(blocks, (Part(blocks, function),), ends)

    def beside(self, w: FloatArray) -> MultinomialTerm:
        """Return the term with the likeliest classes at w (n, d) as references.

        Own classes that are as likely stay, and where scores overflow, which tells nothing.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            at = w[self._field["node"]].reshape(len(self._y), -1, self._classes)
            scores = np.einsum("rj,rjk->rk", self._X, at)
        rows = np.arange(len(self._y))
        likeliest = scores.argmax(axis=1) if len(rows) else self._y
        behind = scores[rows, self._y] < scores[rows, likeliest]
        if not behind.any():
            return self
        return MultinomialTerm(self._field, self.n, self.d, np.where(behind, likeliest, self._y))

    def documented(self, r: Exact) -> Exact:
        """Return multipliers (N, K - 1) of all classes but the rows' own, from ours."""
        rows, each = np.arange(len(self._y)), np.zeros((len(self._y), self._classes), dtype=object)
        others = self._reference[:, None] != np.arange(self._classes)
        each[others] = r
        # What all blocks have adds up to nothing: the classes' contrasts do.
        each[rows, self._reference] = -each.sum(axis=1)
        own = self._y[:, None] == np.arange(self._classes)
        return np.asarray(each[~own].reshape(len(rows), self._classes - 1))


class _Gradient(Term):
    """A term c (B w - y) of multipliers: squared, point and ridge with mu > 0."""

    def __init__(
        self,
        blocks: Blocks,
        parts: tuple[Part, ...],
        domain: Domain | None,
        c: Exact | FloatArray,
    ) -> None:
        super().__init__(blocks, parts, domain)
        self.c = c

    def exact_witness(self, w: Exact) -> Exact:
        """Return c (B w - y) without rounding."""
        at = w[self.node]
        image = at if self.x is None else (_rational(self.x) * at).sum(axis=1)
        c = self.c if self.c.dtype == object else _rational(self.c)
        return np.asarray(c * (image - _rational(self.parts[0].function.y)))


class BoxTerm(Term):
    """lower <= w_i <= upper; the parts are the upper half, the lower half and any equal bounds."""

    def __init__(
        self,
        blocks: Blocks,
        lower: FloatArray,
        upper: FloatArray,
        parts: tuple[Part, ...],
        domain: Domain,
    ) -> None:
        super().__init__(blocks, parts, domain)
        self.lower, self.upper = lower, upper

    def join(self, r: list[FloatArray]) -> FloatArray:
        """Return the sum of all."""
        return np.sum(r, axis=0)

    def split(self, r: FloatArray) -> list[FloatArray]:
        """Return the positive part for the upper half, the negative for the lower."""
        equal = self.lower == self.upper
        free = np.where(equal, 0.0, r)
        out = [np.maximum(free, 0), np.minimum(free, 0), np.where(equal, r, 0.0)]
        return out[: len(self.parts)]


class SimplexTerm(Term):
    """w_i >= 0, sum_j w_ij = total_i; the parts are the half and the equation."""

    def join(self, r: list[FloatArray]) -> FloatArray:
        """Return what the half and the equation add to each coordinate."""
        return r[0] + r[1][:, None]

    def split(self, r: FloatArray) -> list[FloatArray]:
        """Return the largest entry for the equation and the rest for the half."""
        largest = r.max(axis=1)
        return [r - largest[:, None], largest]


def _rational(a: FloatArray) -> Exact:
    """Return floats as the ints and Fractions that they are."""
    v, k = integers.dyadic(a)
    return np.asarray(v * Fraction(1, 1 << k)) if k else v


NULL = 1e-10  # eigenvalues below this fraction of the node's largest count as zero


def pseudo_inverse(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the pseudo-inverses (n, d, d) of symmetric matrices given by their eigensystems."""
    null = values <= NULL * np.maximum(values[:, -1:], 0)
    inverse = np.where(null, 0.0, 1 / np.where(null, 1.0, values))
    return np.asarray((vectors * inverse[:, None, :]) @ vectors.transpose(0, 2, 1))


def term_from(field: dict[str, Any], n: int, d: int) -> Term:
    """Return the builder's view of one entry of `data["terms"]`, arrays decoded."""
    kind, node = field["kind"], field["node"]
    if kind == CLASSES:
        return MultinomialTerm(field, n, d)
    if kind in ROWS:
        return _row_term(field, n, d)
    blocks = Blocks(node, None, n, d)
    if kind == "point":
        twice = np.full(blocks.shape, 2.0)
        if "weight" in field:
            twice *= field["weight"][:, None]
        return _identity(blocks, field["a"], twice)
    if kind == "ridge":
        return _identity(blocks, np.zeros(blocks.shape), _spread(field["mu"], d))
    if kind == "l1":
        kappa = _spread(field["kappa"], d)
        v, k = integers.dyadic(kappa)
        function = Piecewise(np.zeros(blocks.shape), np.full(blocks.shape, INF), -kappa, kappa)
        return Term(blocks, (Part(blocks, function),), domain(-v, v, k))
    if kind == "box":
        return _box(blocks, field["lower"], field["upper"])
    half = Part(blocks, _half(np.zeros(blocks.shape), -1))
    total = field["total"]
    whole = np.full(total.shape, INF)
    equation = Piecewise(total, np.ones(total.shape), -whole, whole)
    rows = Blocks(node, np.ones((len(node), d)), n, d)
    return SimplexTerm(blocks, (half, Part(rows, equation, equation=True)), None)


def _row_term(field: dict[str, Any], n: int, d: int) -> Term:
    kind, y = field["kind"], field["y"]
    blocks = Blocks(field["node"], field["X"], n, d)
    weight = field.get("weight")
    m = blocks.rows[blocks.node] if weight is None else np.ones(len(y), dtype=np.int64)
    extra = field.get("delta", field.get("level", np.zeros(len(y))))
    # A weight is in the place of 1/m.
    each = m.astype(np.float64) if weight is None else 1.0 / weight
    interval = row_domain(kind, y, extra, m, weight)
    lo, hi = np.full(y.shape, -INF), np.full(y.shape, INF)
    if interval is not None:
        lo, hi = interval.floats()
    function: Function
    if kind == "logistic":
        function = Logistic(y, each, lo, hi)
    elif kind == "poisson":
        function = Poisson(y, each, lo, hi)
    elif kind == "pseudohuber":
        function = PseudoHuber(y, each, extra, lo, hi)
    else:
        c = 2 / each if kind in CURVED else np.full(y.shape, INF)
        function = Piecewise(y, c, lo, hi)
    parts = (Part(blocks, function),)
    if kind == "squared":
        factor = np.array([Fraction(2, int(v)) for v in m], dtype=object)
        if weight is not None:
            factor = factor * _rational(weight)
        return _Gradient(blocks, parts, None, factor)
    return Term(blocks, parts, interval)


def _identity(blocks: Blocks, y: FloatArray, c: FloatArray) -> Term:
    """Return (c/2)(w - y)^2 per coordinate; no block where c = 0."""
    empty = c == 0
    end = np.where(empty, 0.0, INF)
    parts = (Part(blocks, Piecewise(y.reshape(blocks.shape), c, -end, end)),)
    if not empty.any():
        return _Gradient(blocks, parts, None, c)
    zero = np.zeros(blocks.shape, dtype=object)
    return Term(blocks, parts, Domain(zero, zero, 0, empty, empty, zero + 1))


def _half(ends: FloatArray, side: int) -> Piecewise:
    """Return the constraint z <= end (side 1) or z >= end (-1), none where the end is infinite."""
    finite = np.isfinite(ends)
    far = np.where(finite, INF, 0.0)
    none = np.zeros(ends.shape)
    lo, hi = (none, far) if side > 0 else (-far, none)
    return Piecewise(np.where(finite, ends, 0.0), np.where(finite, INF, 0.0), lo, hi)


def _box(blocks: Blocks, lower: FloatArray, upper: FloatArray) -> Term:
    lower, upper = lower.reshape(blocks.shape), upper.reshape(blocks.shape)
    fixed = lower == upper
    far = np.where(fixed, INF, 0.0)
    halves = _half(np.where(fixed, INF, upper), 1), _half(np.where(fixed, -INF, lower), -1)
    equation = Piecewise(np.where(fixed, lower, 0.0), fixed.astype(np.float64), -far, far)
    parts = *(Part(blocks, half) for half in halves), Part(blocks, equation, equation=True)
    if not fixed.any():
        parts = parts[:2]
    zero = np.zeros(blocks.shape, dtype=object)
    interval = Domain(zero, zero, 0, np.isinf(lower), np.isinf(upper), zero + 1)
    return BoxTerm(blocks, lower, upper, parts, interval)


def _spread(values: FloatArray, d: int) -> FloatArray:
    """Return `mu` or `kappa`, per node or per node and coordinate, as (k, d)."""
    columns = values if values.ndim == 2 else values[:, None]
    return np.array(np.broadcast_to(columns, (len(values), d)))
