"""Squared errors of linear models at many nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import pieces
from gtvcvx._lazy import cp, sp
from gtvcvx._pieces import gram
from gtvcvx.losses.batched._base import (
    FLOW_TOLERANCE,
    AffineProx,
    BatchedLoss,
    QuadraticForm,
    RangeRows,
    ScalarForm,
    ThinForm,
)
from gtvcvx.losses.batched._doubt import SUM_ULPS, Doubt, widened
from gtvcvx.losses.batched._spectrum import EPS, Spectrum, rounded, weak_directions

# Entries of the X_i that are decomposed between two looks at the clock.
PIECE = 1_000_000


class BatchedSquared(BatchedLoss):
    """Squared losses at k nodes, rows of node i in ``X[indptr[i]:indptr[i + 1]]``.

    With Q_i = (2/m_i) X_i^T X_i and b_i = (2/m_i) X_i^T y_i,
    ``L_i(w) = (1/2) w^T Q_i w - b_i^T w + (1/m_i) ||y_i||^2``.
    """

    is_quadratic = True
    modelled = True
    smooth = True

    def __init__(self, X: FloatArray, y: FloatArray, indptr: IntArray) -> None:
        self.X, self.y, self.indptr = X, y, np.asarray(indptr, dtype=np.int64)
        self.dim = X.shape[1]
        self._counts = np.diff(self.indptr)

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self._counts)

    def _buckets(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Nodes with equal numbers of rows, and their rows, shape (nodes, m): batched algebra."""
        for count in np.unique(self._counts):
            same = np.flatnonzero(self._counts == count)
            for piece in pieces(len(same), max(PIECE // (int(count) * self.dim), 1)):
                nodes = same[piece]
                yield nodes, self.indptr[nodes][:, None] + np.arange(count)

    @cached_property
    def _owner(self) -> IntArray:
        return np.repeat(np.arange(self.n_nodes), self._counts)

    @cached_property
    def _linear(self) -> FloatArray:
        """Vectors b_i (k, d)."""
        return self._per_node(self.X * self.y[:, None]) * (2.0 / self._counts)[:, None]

    @cached_property
    def _spectrum(self) -> Spectrum:
        """Singular value decompositions X_i = U S V^T, as far as conjugates and gaps need them."""
        k, d = self.n_nodes, self.dim
        ranks = np.minimum(self._counts, d)
        indptr = np.concatenate([[0], np.cumsum(ranks)])
        M, weak = int(indptr[-1]), np.zeros((len(self.y), 0))
        vectors, strong_rows = np.empty((M, d)), np.empty(M, dtype=bool)
        curvature, inverses, targets = np.empty(M), np.empty(M), np.empty(M)
        full, minimum = np.empty(k, dtype=bool), np.empty(k)
        centre, minimizer = np.empty((k, d)), np.empty((k, d))
        for nodes, rows in self._buckets():
            count, y = rows.shape[1], self.y[rows]
            U, sigma, basis = np.linalg.svd(self.X[rows], full_matrices=False)
            strong = sigma > FLOW_TOLERANCE * sigma[:, :1]
            nonzero = sigma > rounded(count, d) * sigma[:, :1]
            inverse = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=nonzero)
            explained = np.einsum("bmr,bm->br", U, y) * nonzero
            off = np.zeros_like(U)
            if (short := ~strong.all(axis=1)).any():
                off[short] = weak_directions(self.X[rows[short]], U[short] * strong[short, None, :])
            if off.any():
                weak = weak if weak.shape[1] else np.zeros((len(self.y), ranks.max()))
                weak[rows, : sigma.shape[1]] = off
            at = indptr[nodes][:, None] + np.arange(sigma.shape[1])
            vectors[at], strong_rows[at] = basis, strong
            curvature[at] = (2.0 / count) * (sigma * nonzero) ** 2
            inverses[at] = 0.5 * np.sqrt(count) * (inverse * strong)
            targets[at] = np.sqrt(2.0 / count) * explained
            full[nodes] = strong.sum(axis=1) == d
            centre[nodes] = np.einsum("brd,br->bd", basis, inverse * explained * strong)
            minimizer[nodes] = np.einsum("brd,br->bd", basis, inverse * explained)
            remainder = y - np.einsum("bmr,br->bm", U, explained * strong)
            remainder -= np.einsum("bmr,bnr,bn->bm", off, off, y)
            minimum[nodes] = np.sum(remainder**2, axis=1) / count
        weak = weak[:, weak.any(axis=0)]
        return Spectrum(
            *(indptr, vectors, curvature, inverses, targets, strong_rows, full),
            *(centre, minimizer, minimum, weak),
        )

    def _along(self, x: FloatArray, vectors: FloatArray | None = None) -> FloatArray:
        """Components (M,) of x (k, d) along the right singular vectors, or along others (M, d)."""
        spectrum, k = self._spectrum, self.n_nodes
        vectors = spectrum.vectors if vectors is None else vectors
        ranks = np.diff(spectrum.indptr)
        if (ranks == ranks[0]).all():  # no copies of x
            blocks = vectors.reshape(k, -1, self.dim)
            return np.einsum("krd,kd->kr", blocks, x).ravel()
        return np.einsum("nd,nd->n", vectors, np.repeat(x, ranks, axis=0))

    def _sums(self, parts: FloatArray) -> FloatArray:
        """Add up what belongs to singular vectors, (M, ...), over each node."""
        return np.add.reduceat(parts, self._spectrum.indptr[:-1], axis=0)

    def _residual(self, w: FloatArray) -> FloatArray:
        return np.einsum("nd,nd->n", self.X, w[self._owner]) - self.y

    def _per_node(self, rows: FloatArray) -> FloatArray:
        return np.add.reduceat(rows, self.indptr[:-1], axis=0)

    def quadratic(self) -> QuadraticForm:
        """Hessians Q_i and linear terms b_i."""
        hessian = np.empty((self.n_nodes, self.dim, self.dim))
        for nodes, rows in self._buckets():
            X = self.X[rows]
            hessian[nodes] = (2.0 / rows.shape[1]) * (X.transpose(0, 2, 1) @ X)
        return QuadraticForm(hessian, self._linear.copy())

    def total_hessian(self) -> FloatArray:
        """Sum of the Q_i."""
        root = np.sqrt(2.0 / self._counts)[self._owner]
        return gram(root[:, None] * self.X)

    def in_basis(self, basis: FloatArray) -> BatchedSquared:
        """Squared errors of the rows' coordinates."""
        return BatchedSquared(self.X @ basis, self.y, self.indptr)

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedSquared:
        """Return the losses: they are quadratic."""
        return self

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Mean squares of what the predictions change."""
        change = np.einsum("nd,nd->n", self.X, (w - before)[self._owner])
        return self._per_node(change**2) / self._counts

    def scalar(self) -> ScalarForm | None:
        """Curvatures and linear terms where the features are orthogonal, else None."""
        if not self._orthogonal():
            return None
        with np.errstate(over="ignore", under="ignore"):
            curvature = (2.0 / self._counts)[:, None] * self._per_node(self.X**2)
            linear = self._linear.copy()
        # Features so small that their squares vanish leave the loss constant.
        linear[curvature == 0.0] = 0.0
        return ScalarForm(curvature, linear)

    def _orthogonal(self) -> bool:
        """Whether the columns of every X_i are orthogonal, to the last bit."""
        X = self.X
        return not any(
            np.any(self._per_node(X[:, k] * X[:, j])) for k in range(self.dim) for j in range(k)
        )

    def value(self, w: FloatArray) -> FloatArray:
        """Mean squared errors (k,)."""
        return self._per_node(self._residual(w) ** 2) / self._counts

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients (2/m_i) X_i^T (X_i w_i - y_i), shape (k, d)."""
        return self._gradient(self._residual(w))

    def _gradient(self, residual: FloatArray) -> FloatArray:
        rows = self.X * residual[:, None]
        return self._per_node(rows) * (2.0 / self._counts)[:, None]

    def thin(self) -> ThinForm:
        """Return the rows ``sqrt(curvature) V^T``, orthogonal at each node."""
        spectrum = self._spectrum
        rows = np.sqrt(spectrum.curvature)[:, None] * spectrum.vectors
        nothing = np.zeros((self.n_nodes, self.dim))
        return ThinForm(nothing, nothing, rows, spectrum.targets, spectrum.indptr)

    def plain_rows(self) -> ThinForm:
        """Return the rows as they are, as a thin form."""
        root = np.sqrt(2.0 / self._counts)[self._owner]
        nothing = np.zeros((self.n_nodes, self.dim))
        return ThinForm(nothing, nothing, root[:, None] * self.X, root * self.y, self.indptr)

    @property
    def n_thin_rows(self) -> int:
        """Rows of the thin form."""
        return int(np.minimum(self._counts, self.dim).sum())

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Solutions of (I + tau_i Q_i) z = v_i + tau_i b_i."""
        factor, aims = self._shortened(tau)
        return v + self._sums((aims - factor * self._along(v))[:, None] * self._spectrum.vectors)

    def _shortened(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what proximal maps take off along each singular vector, (M,), and their aims.

        b_i is a sum of these vectors, and stays one: rounded as a point, tau_i times its rounding
        would be left where nothing holds it, in directions without data.
        """
        spectrum, step = self._spectrum, self._per_vector(tau)
        curvature = step * spectrum.curvature
        aims = step * np.sqrt(spectrum.curvature) * spectrum.targets
        return curvature / (1.0 + curvature), aims / (1.0 + curvature)

    def _per_vector(self, x: FloatArray) -> FloatArray:
        """Give each singular vector its node's number of x (k,)."""
        return np.repeat(x, np.diff(self._spectrum.indptr))

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Inverses of I + tau_i Q_i, and the offsets tau_i times them times b_i.

        With the eigenvectors v of Q_i and their eigenvalues c, the inverse is the identity less
        the sum of ``tau c / (1 + tau c) v v^T``: no factorization is repeated for a new tau.
        """
        factor, aims = self._shortened(tau)
        offset = self._sums(aims[:, None] * self._spectrum.vectors)
        return AffineProx(self._less_products(factor), offset)

    def _less_products(self, factor: FloatArray) -> FloatArray:
        """Return the identities less the sums of factors (M,) times ``v v^T``, (k, d, d)."""
        spectrum, k, d = self._spectrum, self.n_nodes, self.dim
        matrix, ranks = np.empty((k, d, d)), np.diff(spectrum.indptr)
        if self._products is not None:
            sums = np.einsum("kr,krp->kp", factor.reshape(k, -1), self._products)
            return np.asarray(np.eye(d) - sums.reshape(k, d, d))
        for rank in np.unique(ranks):
            nodes = np.flatnonzero(ranks == rank)
            at = spectrum.indptr[nodes][:, None] + np.arange(rank)
            V = spectrum.vectors[at]
            matrix[nodes] = np.eye(d) - np.einsum("krd,kre->kde", factor[at][:, :, None] * V, V)
        return matrix

    @cached_property
    def _products(self) -> FloatArray | None:
        """Products ``v v^T``, (k, r, d^2), where all nodes have r of them that take little room.

        Primal weights change often, and each change asks for sums of them.
        """
        vectors, k, d = self._spectrum.vectors, self.n_nodes, self.dim
        ranks = np.diff(self._spectrum.indptr)
        if (ranks != ranks[0]).any() or len(vectors) * d**2 > PIECE:
            return None
        return np.einsum("md,me->mde", vectors, vectors).reshape(k, -1, d**2)

    def minimizer(self) -> FloatArray:
        """Least-squares solutions of least norm."""
        return self._spectrum.minimizer.copy()

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """``min { r^T y + (m/4) ||r||^2 : X^T r = s }``; +inf where s is outside range(X^T)."""
        spectrum = self._spectrum
        value = np.sum(s * spectrum.centre, axis=1) - spectrum.minimum + self._half_norm(s)
        kept = spectrum.strong * self._along(s)
        outside = np.linalg.norm(s - self._sums(kept[:, None] * spectrum.vectors), axis=1)
        # Full rank is full rank: no rounding error may pass for a null direction.
        return np.where(spectrum.full | (outside <= atol), value, np.inf)

    def _half_norm(self, x: FloatArray) -> FloatArray:
        """Return (1/2) x_i^T pinv(Q_i) x_i."""
        return self._sums((self._spectrum.inverse * self._along(x)) ** 2)

    def ridge_solve(self, c: FloatArray, x: FloatArray) -> FloatArray:
        """Return (Q_i + c_i I)^-1 x_i for c_i > 0."""
        along, (steep, flat) = self._along(x), self._inverses(c)
        # Off the singular vectors everything is divided by c.
        rest = x - self._sums(along[:, None] * self._spectrum.vectors)
        return flat * rest + self._sums((steep * along)[:, None] * self._spectrum.vectors)

    def ridge_half_norm(self, c: FloatArray, x: FloatArray) -> FloatArray:
        """Return (1/2) x_i^T (Q_i + c_i I)^-1 x_i for c_i > 0, a sum of squares."""
        along, (steep, flat) = self._along(x), self._inverses(c)
        rest = x - self._sums(along[:, None] * self._spectrum.vectors)
        return 0.5 * (self._sums(steep * along**2) + flat[:, 0] * np.sum(rest**2, axis=1))

    def ridge_half_norm_of_sizes(self, c: FloatArray, x: FloatArray) -> FloatArray:
        """Return the most that `ridge_half_norm` may be for vectors of sizes x (k, d)."""
        steep, flat = self._inverses(c)
        most = self._sums(steep * self.along_sizes(x) ** 2)
        return 0.5 * np.asarray(most + flat[:, 0] * np.sum(x**2, axis=1))

    def _inverses(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Inverse curvatures along the singular vectors (M,), and off them (k, 1)."""
        steep = 1.0 / (self._spectrum.curvature + self._per_vector(c))
        off = np.diff(self._spectrum.indptr) < self.dim
        return steep, np.where(off, 1.0 / c, 0.0)[:, None]

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps (1/2) delta^T pinv(Q_i) delta, delta = s_i - grad L_i(w_i)."""
        return self._gap(self._residual(w), s)

    def _gap(self, residual: FloatArray, s: FloatArray) -> FloatArray:
        """Return node gaps at points with such residuals (N,)."""
        gap = self._half_norm(s - self._gradient(residual))
        weak = self._spectrum.weak
        if not weak.shape[1]:
            return gap
        # What the data along weak directions could still gain, from the residual itself.
        parts = self._per_node(weak * residual[:, None])
        return gap + np.sum(parts**2, axis=1) / self._counts

    def certain_gap(
        self, w: FloatArray, s: FloatArray, doubt: Doubt, multipliers: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return node gaps, and what rounding of slopes and of s may add to their sum.

        Other multipliers make up for it; roots of gaps are norms of theirs.
        """
        residual = self._residual(w)
        gap = self._gap(residual, s)
        around = doubt.injection + SUM_ULPS * EPS * (np.abs(s) + self._slope_sizes(residual))
        spectrum = self._spectrum
        along = self.along_sizes(around)
        # Along weak directions s may still have what conservation has left of it.
        if not spectrum.strong.all():
            along += np.where(spectrum.strong, 0.0, np.abs(self._along(s)))
        curved = spectrum.curvature > 0.0
        square = np.where(curved, along**2 / np.where(curved, spectrum.curvature, 1.0), 0.0)
        reach = np.broadcast_to(doubt.reach, s.shape)[~spectrum.full]
        unmade = 2.0 * float(np.sum(self._unmade(s, doubt.injection) * reach))
        return gap, unmade + widened(gap, 0.5 * float(np.sum(square)), self.blurred(w))

    def _unmade(self, s: FloatArray, unsure: FloatArray) -> FloatArray:
        """Bounds (q, d) on what no multipliers make up, at the nodes without full rank.

        From multipliers themselves: a projector is right to the last digits of its largest entry,
        and that is not enough where columns differ in units.
        """
        short = ~self._spectrum.full
        if not short.any():
            return np.zeros((0, self.dim))
        curved = self._spectrum.curvature > 0.0
        steep = np.where(curved, self._spectrum.curvature, np.inf)
        a, left, here = np.zeros(len(self.y)), s, short[self._owner]
        for _ in range(2):
            z = self._sums((self._along(left) / steep)[:, None] * self._spectrum.vectors)
            a += np.where(here, np.einsum("nd,nd->n", self.X, z[self._owner]), 0.0)
            parts = self.X * a[:, None] * (2.0 / self._counts)[self._owner, None]
            left = s - self._per_node(parts)
        size = np.abs(s) + self._per_node(np.abs(parts))
        return (np.abs(left) + SUM_ULPS * EPS * size + unsure)[short]

    def slope_sizes(self, w: FloatArray) -> FloatArray:
        """Sizes (k, d) of what adds up to the gradients."""
        return self._slope_sizes(self._residual(w))

    def _slope_sizes(self, residual: FloatArray) -> FloatArray:
        rows = np.abs(self.X * residual[:, None])
        return self._per_node(rows) * (2.0 / self._counts)[:, None]

    def along_sizes(self, x: FloatArray) -> FloatArray:
        """Sizes (M,) of components of vectors that are at most x (k, d)."""
        return self._along(x, np.abs(self._spectrum.vectors))

    def blurred(self, w: FloatArray) -> float:
        """Return what rounding of residuals makes of gaps, whose roots are norms of multipliers."""
        size = np.einsum("nd,nd->n", np.abs(self.X), np.abs(w)[self._owner]) + np.abs(self.y)
        return float(np.sum(self._per_node((SUM_ULPS * EPS * size) ** 2) / self._counts))

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Losses at w: no mean of squares is below zero."""
        return self.value(w)

    def null_projector(self) -> FloatArray:
        """Projectors on the null spaces of X_i."""
        out = self._less_products(self._spectrum.strong.astype(float))
        out[self._spectrum.full] = 0.0
        return out

    def range_rows(self) -> RangeRows:
        """Return the strong right singular vectors."""
        spectrum = self._spectrum
        indptr = np.concatenate([[0], np.cumsum(self._sums(spectrum.strong.astype(np.int64)))])
        return RangeRows(spectrum.vectors[spectrum.strong], indptr)

    @cached_property
    def _operator(self) -> sp.csr_array:
        """Sparse (N, k d) matrix that takes the rows of w, one after the other, to X_i w_i."""
        N, d = self.X.shape
        columns = self._owner[:, None] * d + np.arange(d)
        return sp.csr_array(
            (self.X.ravel(), columns.ravel(), np.arange(N + 1) * d), shape=(N, self.n_nodes * d)
        )

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        root = 1.0 / np.sqrt(self._counts)[self._owner]
        flat = cp.reshape(w, (self.n_nodes * self.dim,), order="C")
        return cp.sum_squares((self._operator * root[:, None]) @ flat - root * self.y), []

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate, with a witness r (N,) for X^T r = s.

        The variable is r scaled by sqrt(m_i), which balances nodes of different size.
        """
        root = np.sqrt(self._counts)[self._owner].astype(float)
        r = cp.Variable(len(self.y), name="r")
        flat = cp.reshape(s, (self.n_nodes * self.dim,), order="C")
        cost = (self.y / root) @ r + 0.25 * cp.sum_squares(r)
        return cost, [(self._operator * (1.0 / root)[:, None]).T.tocsr() @ r == flat]

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """One squared term."""
        order = np.argsort(nodes)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        rows = np.argsort(rank[self._owner], kind="stable")
        owner = nodes[self._owner][rows]
        return [{"kind": "squared", "node": owner, "X": self.X[rows], "y": self.y[rows]}]
