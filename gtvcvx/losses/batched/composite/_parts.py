"""The arrays that composite losses are computed with, made from their plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, Records
from gtvcvx._deadline import pieces
from gtvcvx._lazy import sp
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT, Term, coefficients, row_counts
from gtvcvx.losses.node._problem import COORDINATE
from gtvcvx.losses.node._residuals import Centred
from gtvcvx.losses.node._scalar import HUBER, KINK, LOGISTIC, POISSON, PSEUDO_HUBER, ROW, SQUARED
from gtvcvx.losses.node._segments import weighted, weighted_sizes

EPS = float(np.finfo(np.float64).eps)
# A sum is right up to what rounding makes of d entries, times this.
SUM_ULPS = 64.0


# Entries of the tables of rows that are worked off between two looks at the clock.
PIECE = 200_000


class Parts(NamedTuple):
    """Rows, coordinates and sums of k nodes; rows are sorted by node."""

    X: FloatArray  # (N, d)
    rows: Records  # (N,) of ROW
    centred: Centred  # the same as functions of residuals
    indptr: IntArray  # (k + 1,)
    coordinates: Records  # (k, d) of COORDINATE
    totals: FloatArray  # (k,), NaN where the sum is free
    ridge: FloatArray  # (k, d), what mu has beside the points
    points: list[tuple[IntArray, FloatArray, FloatArray]]  # nodes, points and their weights
    constant: FloatArray  # (k,), what the points add to L_i(0)

    @property
    def nodes_a_look(self) -> int:
        """Nodes that are worked off between two looks at the clock."""
        return max(PIECE // (self.X.size // max(len(self.totals), 1) + 1), 1)

    @staticmethod
    def of(terms: Sequence[Term], n_nodes: int, dim: int) -> Parts:
        """Read merged terms at the nodes 0, ..., n_nodes - 1."""
        tables = [t for t in terms if t["kind"] in ROW_KINDS]
        owner = np.concatenate([t["node"] for t in tables] or [np.empty(0, np.int64)])
        order = np.argsort(owner, kind="stable")
        X = _in_order([t["X"] for t in tables] or [np.empty((0, dim))], owner, order)
        rows = np.concatenate([records_of(t) for t in tables] or [np.empty(0, ROW)])
        indptr = np.concatenate([[0], np.cumsum(row_counts(owner, n_nodes))])
        coordinates = np.zeros((n_nodes, dim), COORDINATE)
        coordinates["lower"], coordinates["upper"] = -np.inf, np.inf
        ridge, constant = np.zeros((n_nodes, dim)), np.zeros(n_nodes)
        totals = np.full(n_nodes, np.nan)
        points = []
        for term in terms:
            node, kind = term["node"], term["kind"]
            if kind == "ridge":
                ridge[node] = term["mu"].reshape(len(node), -1)
            elif kind == "l1":
                coordinates["kappa"][node] = term["kappa"].reshape(len(node), -1)
            elif kind == "box":
                coordinates["lower"][node] = term["lower"]
                coordinates["upper"][node] = term["upper"]
            elif kind == "simplex":
                totals[node] = term["total"]
            elif kind == "point":
                weight = np.asarray(term.get(WEIGHT, np.ones(len(node))))
                points.append((node, term["a"], weight))
                coordinates["mu"][node] += 2.0 * weight[:, None]
                coordinates["linear"][node] += 2.0 * weight[:, None] * term["a"]
                constant[node] += weight * np.sum(term["a"] ** 2, axis=1)
        coordinates["mu"] += ridge
        summed = ~np.isnan(totals)
        lower = coordinates["lower"]
        lower[summed] = np.maximum(lower[summed], 0.0)
        rows = rows[order]
        parts = Parts(
            X,
            rows,
            Centred.of(rows),
            indptr,
            coordinates,
            totals,
            ridge,
            points,
            constant,
        )
        parts._check_sums()
        return parts

    def constraints(self, nodes: IntArray) -> Parts:
        """Return the bounds and sums of some nodes, and nothing else of them."""
        k, d = len(nodes), self.X.shape[1]
        bounds = self.coordinates[nodes].copy()
        bounds["mu"] = bounds["linear"] = bounds["kappa"] = 0.0
        none, start = np.empty(0, ROW), np.zeros(k + 1, np.int64)
        return Parts(
            np.empty((0, d)), none, Centred.of(none), start, bounds, self.totals[nodes],
            np.zeros((k, d)), [], np.zeros(k),
        )  # fmt: skip

    def _check_sums(self) -> None:
        c = self.coordinates
        with np.errstate(invalid="ignore"):
            wrong = (c["lower"] > c["upper"]).any(axis=1)
            wrong |= self.totals < c["lower"].sum(axis=1)
            wrong |= self.totals > c["upper"].sum(axis=1)
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"losses: no point of the simplex is within the bounds at node {node} of those "
                "with such a sum"
            )

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Ends (k, d) of the domains of g_ij*."""
        c = self.coordinates
        curved = c["mu"] > 0.0
        low = np.where(curved | np.isfinite(c["lower"]), -np.inf, -c["kappa"])
        high = np.where(curved | np.isfinite(c["upper"]), np.inf, c["kappa"])
        return low, high

    def in_pieces(self) -> Iterator[tuple[slice, slice, Parts]]:
        """Go through nodes, looking at the clock: some, their rows, and these parts there."""
        for nodes in pieces(len(self.totals), self.nodes_a_look):
            ends = self.indptr[nodes.start : nodes.stop + 1]
            rows = slice(int(ends[0]), int(ends[-1]))
            some = self._replace(
                X=self.X[rows],
                rows=self.rows[rows],
                centred=self.centred.at(rows),
                indptr=ends - ends[0],
                coordinates=self.coordinates[nodes],
                totals=self.totals[nodes],
            )
            yield nodes, rows, some

    @property
    def owner(self) -> IntArray:
        """Node of each row (N,)."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.indptr))

    def taken(self, s: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give to coordinates what the multipliers a (N,) leave of s (k, d), as far as they can.

        Returns the multipliers t (k, d) of their terms, the norms (k,) of what they cannot take,
        and the sizes (k,) of what adds up to s.
        """
        rest = s - weighted(self.indptr, a, self.X)
        size = np.abs(s) + weighted_sizes(self.indptr, a, self.X)
        t = np.clip(rest, *self.intervals)
        return t, np.linalg.norm(rest - t, axis=1), size.max(axis=1)

    def of_nodes(self, nodes: IntArray) -> tuple[Parts, IntArray]:
        """Return these parts at some nodes alone, and the numbers of their rows."""
        counts = np.diff(self.indptr)[nodes]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(self.indptr[nodes] - indptr[:-1], counts) + np.arange(indptr[-1])
        return (
            self._replace(
                X=self.X[rows],
                rows=self.rows[rows],
                centred=self.centred.at(rows),
                indptr=indptr,
                coordinates=self.coordinates[nodes],
                totals=self.totals[nodes],
            ),
            rows,
        )

    @property
    def constrained(self) -> bool:
        """Whether some w are forbidden."""
        c = self.coordinates
        bounded = np.isfinite(c["lower"]).any() or np.isfinite(c["upper"]).any()
        return bool(bounded or not np.isnan(self.totals).all())

    @property
    def touched(self) -> BoolArray:
        """Coordinates (k, d) with a term of their own."""
        c = self.coordinates
        bounded = np.isfinite(c["lower"]) | np.isfinite(c["upper"])
        return bounded | (c["mu"] > 0.0) | (c["kappa"] > 0.0)

    @property
    def operator(self) -> sp.csr_array:
        """Sparse (N, k d) matrix that takes the rows of w, one after the other, to X_i w_i."""
        N, d = self.X.shape
        columns = self.owner[:, None] * d + np.arange(d)
        shape = N, len(self.totals) * d
        return sp.csr_array((self.X.ravel(), columns.ravel(), np.arange(N + 1) * d), shape=shape)

    def sums_right(self, w: FloatArray) -> BoolArray:
        """Say at which nodes w (k, d) has the sum that it must have, (k,)."""
        away = np.abs(w.sum(axis=1) - self.totals)
        slack = (SUM_ULPS + w.shape[1]) * EPS * self.totals
        return np.isnan(self.totals) | (away <= slack)

    def separable_value(self, w: FloatArray) -> FloatArray:
        """Value of all terms but the rows (k,), +inf where a constraint is violated."""
        c = self.coordinates
        with np.errstate(over="ignore"):  # squares of points that have run away are infinite
            squares = self.ridge * np.where(self.ridge > 0.0, w, 0.0) ** 2
        out = 0.5 * np.sum(squares, axis=1) + np.sum(c["kappa"] * np.abs(w), axis=1)
        for node, a, weight in self.points:
            out[node] += weight * np.sum((w[node] - a) ** 2, axis=1)
        inside = ((c["lower"] <= w) & (w <= c["upper"])).all(axis=1)
        return np.where(inside & self.sums_right(w), out, np.inf)


def _in_order(tables: list[FloatArray], owner: IntArray, order: IntArray) -> FloatArray:
    """Return the rows of all tables (N, d) in the order of their nodes; copied where they must."""
    X = tables[0] if len(tables) == 1 else np.concatenate(tables)
    return np.ascontiguousarray(X if np.all(owner[1:] >= owner[:-1]) else X[order])


def records_of(term: Term) -> Records:
    """Return the rows of a term, but for their features."""
    kind, y, c = term["kind"], term["y"], coefficients(term)
    out = np.zeros(len(y), ROW)
    out["y"], out["c"] = y, c
    out["kind"] = {
        "squared": SQUARED,
        "logistic": LOGISTIC,
        "poisson": POISSON,
        "huber": HUBER,
        "pseudohuber": PSEUDO_HUBER,
    }.get(kind, KINK)
    out["delta"] = term.get("delta", np.inf)
    low, high = _slopes(term)
    out["low"], out["high"] = c * low, c * high
    return out


def _slopes(term: Term) -> tuple[FloatArray | float, FloatArray | float]:
    """Return the least and the largest slope of psi, for each row."""
    kind, y = term["kind"], term["y"]
    if kind == "logistic":
        return -y, 1.0 - y
    if kind == "poisson":
        return -y, np.inf
    if kind == "huber":
        return -2.0 * term["delta"], 2.0 * term["delta"]
    if kind == "pseudohuber":
        return -term["delta"], term["delta"]
    if kind == "quantile":
        # A level q has -q left of y and 1 - q right of it.
        return -term["level"], 1.0 - term["level"]
    if kind == "hinge":
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)
    return (-1.0, 1.0) if kind == "absolute" else (-np.inf, np.inf)
