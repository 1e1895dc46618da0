"""How large solutions may be where no loss tells, by the data of all nodes together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._householder import householder
from gtvcvx.conic._form import ConicForm
from gtvcvx.conic._function import make_forms
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.node._scalar import DECIDED

#: Columns whose singular value, of one length each, is below this share of the largest one count as
#: dependent: rounding of decompositions.
DEPENDENT = 1e-13
#: What leaks may be worth at most, as a share of a gap, is not looked at any closer.
NEGLIGIBLE = 1e-3
#: Kinds of `rows_of_forms`, by the cones of the forms.
CONIC, CURVED = "conic", "conic, with exponentials or powers"
#: Rows that fall without end in one direction, so that there may be no solution.
ENDLESS = frozenset({"logistic", "poisson", CURVED})
#: Kinds of penalties that grow with the size of each coordinate of a jump.
MONOTONE = frozenset({"l1", "l2", "linf", "pnorm", "squared"})
# Entries that are decomposed between two looks at the clock.
PIECE = 1_000_000
# From so many rows on singular values take seconds, where triangles do.
MANY_ROWS = 100


@dataclass(frozen=True)
class Lengths:
    """How large solutions may be, by sums over all rows.

    Parameters
    ----------
    totals : ndarray, shape (..., 3 + d)
        Number of terms that fall without end, number of rows, sum of the squares of all targets,
        and of each feature: of the rows, or of those of several sets.
    """

    totals: FloatArray

    @cached_property
    def _squares(self) -> FloatArray:
        """Sums of the squares of the features, (..., d); infinite where there are none."""
        squares = self.totals[..., 3:]
        return np.where(squares > 0.0, squares, np.inf)

    @cached_property
    def alone(self) -> FloatArray:
        """How large each coordinate would be if it made up the targets alone, (..., d)."""
        return np.asarray(np.sqrt(self.totals[..., 2, None] / self._squares))

    @property
    def units(self) -> FloatArray:
        """Units (..., d) in which each column of all rows together has length one, or zero."""
        squares = self.totals[..., 3:]
        return np.where(squares > 0.0, np.sqrt(squares), 1.0)

    def together(self, upper: FloatArray) -> FloatArray:
        """How large each coordinate may be that alone, or with others, makes up targets, (..., d).

        Upper (..., k, d) is the `triangle` of all rows in `units`.
        """
        predictions = (np.sqrt(self.totals[..., 2]) + self._decided)[..., None]
        return np.maximum(self.alone, predictions * pooled_lengths(upper, self.units))

    @property
    def _decided(self) -> FloatArray:
        """How long predictions are that decide all rows; zero where no loss falls without end."""
        rows = np.sqrt(self.totals[..., 1])
        return np.asarray(np.where(self.totals[..., 0] > 0.0, DECIDED * rows, 0.0))

    @cached_property
    def longest(self) -> FloatArray:
        """How long solutions may be where losses fall without end, (..., d); zero if none does."""
        return np.asarray(self._decided[..., None] / np.sqrt(self._squares))


class PooledRows(NamedTuple):
    """Rows of several terms, each in one of several sets.

    Attributes
    ----------
    X : ndarray, shape (N, d)
    y : ndarray, shape (N,)
    endless : ndarray of bool, shape (N,)
        Whether its term falls without end in one direction.
    owner : ndarray of int, shape (N,)
        Number of its set.
    """

    X: FloatArray
    y: FloatArray
    endless: BoolArray
    owner: IntArray

    @classmethod
    def of(cls, tables: Sequence[Term], d: int, sets: IntArray) -> PooledRows:
        """Return the rows of all nodes whose set (n,) is not negative.

        Tables are terms with rows in all d coordinates.
        """
        if not tables:
            return cls(np.empty((0, d)), np.empty(0), np.empty(0, bool), np.empty(0, np.int64))
        owner = np.concatenate([sets[term["node"]] for term in tables])
        endless = np.concatenate([np.full(len(t["y"]), t["kind"] in ENDLESS) for t in tables])
        X, y = (_concatenated([term[key] for term in tables]) for key in ("X", "y"))
        return cls(X, y, endless, owner).some(owner >= 0)

    def some(self, at: BoolArray) -> PooledRows:
        """Return some of the rows (N,), without a copy if these are all."""
        if at.all():
            return self
        return PooledRows(self.X[at], self.y[at], self.endless[at], self.owner[at])

    def in_order(self, count: int) -> tuple[FloatArray, IntArray, IntArray]:
        """Return X set by set, where each of so many sets begins, and how many rows it has."""
        X, rows = self.X, np.bincount(self.owner, minlength=count)
        if (self.owner[1:] < self.owner[:-1]).any():  # without a copy where they are in order
            X = X[np.argsort(self.owner, kind="stable")]
        return X, np.cumsum(rows) - rows, rows

    def totals(self, count: int) -> FloatArray:
        """Return what `Lengths` asks for, of each of so many sets, (count, 3 + d)."""
        # Column by column: rows may be as large as memory allows.
        columns = chain((self.endless, np.ones(len(self.y)), self.y**2), (x**2 for x in self.X.T))
        sums = [np.bincount(self.owner, column, count) for column in columns]
        return np.stack(sums, axis=1).astype(np.float64)


def _concatenated(arrays: Sequence[FloatArray]) -> FloatArray:
    """Return arrays one after the other, without a copy if there is one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def rows_of_forms(losses: StackedLoss) -> list[Term]:
    """Return rows that stand for losses written with CVXPY, from their conic forms.

    What the rows of ``b - A x`` that have w in them make of w has to be about as large as b, as
    with rows of data; and, without a row, ``P w`` as large as q. Bounds on w itself do not count:
    solutions may be far inside.
    """
    terms = []
    for nodes, batch in losses.parts:
        functions = batch.written()
        if functions is None:
            continue
        make_forms(functions)
        for node, function in zip(nodes, functions, strict=True):
            look()
            X, y = _rows_of(function.form)
            kinds = {cone.kind for cone in function.form.cones}
            kind = CURVED if kinds & {"exp", "power"} else CONIC
            terms.append({"kind": kind, "node": np.full(len(y), node), "X": X, "y": y})
    return terms


def _rows_of(form: ConicForm) -> tuple[FloatArray, FloatArray]:
    """Return rows (k, d) of one form, and their targets (k,)."""
    d = form.dim
    kinds = np.repeat([cone.kind for cone in form.cones], [cone.rows for cone in form.cones])
    own, others = form.A[:, :d].toarray(), form.A[:, d:]
    bounds = (kinds == "nonneg") & (np.diff(others.tocsr().indptr) == 0)
    of_cones = own.any(axis=1) & ~bounds
    curved = form.P[:d, :d].toarray()
    of_squares = curved.any(axis=1)
    X = np.concatenate([own[of_cones], curved[of_squares]])
    return X, np.concatenate([form.b[of_cones], -form.q[:d][of_squares]])


def lengths_of_components(tables: Sequence[Term], d: int, components: IntArray) -> FloatArray:
    """Return how large each coordinate may be in the component of each node, (n, d).

    Components are problems of their own: what the rows of one tell of solutions tells nothing of
    those of another. One without rows counts as the largest.

    Parameters
    ----------
    tables : sequence of dict
        Terms with rows in all d coordinates.
    d : int
    components : ndarray, shape (n,)
    """
    rows = PooledRows.of(tables, d, components)
    out = lengths_of_sets(rows, int(components.max()) + 1)
    out[np.setdiff1d(np.arange(len(out)), rows.owner)] = out.max(axis=0)
    return out[components]


def lengths_of_sets(given: PooledRows, count: int) -> FloatArray:
    """Return how large each coordinate may be by the rows of each set, (count, d); zero if none."""
    d = given.X.shape[1]
    totals, out = given.totals(count), np.zeros((count, d))
    X, first, rows = given.in_order(count)
    for some in _alike(rows, d):
        look()
        lengths = Lengths(totals[some])
        if len(some) == 1:
            at = slice(first[some[0]], first[some[0]] + rows[some[0]])
            upper = triangle([X[at]], lengths.units[0])[None]
        else:
            upper = _padded(X, first[some], rows[some]) / lengths.units[:, None]
        out[some] = lengths.together(upper)
    return out


def _alike(rows: IntArray, d: int) -> Iterator[IntArray]:
    """Yield the sets of some rows in groups of about as many, of a bounded size."""
    sizes = np.ceil(np.log2(np.maximum(rows, 1)))
    for size in np.unique(sizes):
        some = np.flatnonzero((sizes == size) & (rows > 0))
        step = max(PIECE // (d * 2 ** int(size)), 1)
        for start in range(0, len(some), step):
            yield some[start : start + step]


def _padded(X: FloatArray, first: IntArray, rows: IntArray) -> FloatArray:
    """Return the rows (k, r, d) of k sets, first those of each, filled up with zeros."""
    at = np.arange(rows.max())
    found = X[np.minimum(first[:, None] + at, len(X) - 1)]
    return np.where((at < rows[:, None])[:, :, None], found, 0.0)


def ends_of_sets(terms: Iterable[Term], shape: tuple[int, int], clipping: bool) -> FloatArray:
    """Return how large solutions are at most, (d,), by boxes and simplices; inf where none says so.

    Those of nodes without a loss are among the others', where clipping them shortens all jumps.

    Parameters
    ----------
    terms : iterable of dict
        Of all losses.
    shape : tuple of int
        Numbers of nodes and dimensions.
    clipping : bool
        Whether it does, by the penalty.
    """
    held, touched = np.full(shape, np.inf), np.full(shape[0], not clipping)
    for term in terms:
        node = term["node"]
        touched[node] = True
        if term["kind"] == "box":
            ends = np.maximum(np.abs(term["lower"]), np.abs(term["upper"]))
            held[node] = np.minimum(held[node], ends)
        elif term["kind"] == "simplex":
            held[node] = np.minimum(held[node], np.reshape(term["total"], (-1, 1)))
    held = held[touched]
    return held.max(axis=0) if len(held) else np.full(shape[1], np.inf)


def triangle(tables: Iterable[FloatArray], units: FloatArray) -> FloatArray:
    """Return the factor R (k, d), k <= d, of a QR decomposition of all rows, columns in units (d,).

    Rows of factors are rows again: those of parts stand for their rows.
    """
    upper, step = np.zeros((0, len(units))), max(PIECE // len(units), len(units))
    for X in tables:
        for start in range(0, len(X), step):
            look()
            stacked = np.concatenate([upper, X[start : start + step] / units])
            upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    return upper


def pooled_lengths(upper: FloatArray, units: FloatArray) -> FloatArray:
    """Return how large each coordinate may be, (..., d), for predictions of all rows of length one.

    With all nodes at one point: nearly dependent columns, an intercept beside features far from
    zero, let coordinates be large that predict next to nothing. Those along which no row changes do
    not count, as any solution stays one along them. The rows are given by their `triangle`.
    """
    if upper.ndim == 2 and MANY_ROWS <= len(upper) <= upper.shape[1]:
        found = _of_independent_rows(upper)
        if found is not None:
            return found / units
    _, sigma, basis = np.linalg.svd(upper, full_matrices=False)
    some = sigma > DEPENDENT * sigma.max(axis=-1, keepdims=True, initial=0.0)
    each = np.zeros_like(basis)
    np.divide(basis, sigma[..., None], out=each, where=some[..., None])
    return np.asarray(np.linalg.norm(each, axis=-2) / units)


def _of_independent_rows(rows: FloatArray) -> FloatArray | None:
    """Return the lengths (d,) of the columns of their pseudo-inverse; None if rows depend nearly.

    Of rows (k, d) that are none too many: a triangle tells, in a tenth of the time.
    """
    import scipy.linalg  # slow to load, and seldom needed

    basis, factor = householder(np.array(rows.T, order="F"))
    share, info = scipy.linalg.lapack.dtrcon(factor)
    # In norms of sums of entries: those of sizes differ by the number of rows at most.
    if info != 0 or not share > 10.0 * len(rows) * DEPENDENT:
        return None
    each = scipy.linalg.solve_triangular(factor, basis.T, check_finite=False)
    return np.asarray(np.linalg.norm(each, axis=0))


def growth(before: FloatArray, after: FloatArray) -> float:
    """Return how many times as large lengths become at most; so do products with leaks.

    Those before (d,) are of all nodes, or each has its own, (n, d), as in those after.
    """
    before = np.broadcast_to(before, np.shape(after))
    some = after > before
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.max(after[some] / before[some], initial=1.0))
