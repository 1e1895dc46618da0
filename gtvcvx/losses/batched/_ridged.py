"""Squared errors with one ridge for all coordinates of a node, and any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx.losses.batched._base import (
    AffineProx,
    BatchedLoss,
    QuadraticForm,
    ScalarForm,
    ThinForm,
)
from gtvcvx.losses.batched._doubt import SUM_ULPS, Doubt, widened
from gtvcvx.losses.batched._spectrum import EPS
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._terms import WEIGHT, Term, coefficients, row_counts, selected
from gtvcvx.losses.batched._thin import pays


class BatchedRidged(BatchedLoss):
    """Losses ``(1/m_i) ||X_i w - y_i||^2 + (c_i/2) ||w - p_i||^2`` and constants, c_i > 0.

    The ridge is no row: with few rows at a node Hessians are never written down.

    Parameters
    ----------
    squared : BatchedSquared
        Of k nodes.
    curvature : ndarray, shape (k,)
    centre : ndarray, shape (k, d)
    constant : ndarray, shape (k,)
    terms : list of dict
        Plain data of the losses at the nodes 0, ..., k - 1.
    """

    is_quadratic = True
    modelled = True
    smooth = True

    def __init__(
        self,
        squared: BatchedSquared,
        curvature: FloatArray,
        centre: FloatArray,
        constant: FloatArray,
        terms: Sequence[Term],
    ) -> None:
        self._squared, self._c, self._p = squared, curvature, centre
        self._constant, self._terms = constant, list(terms)
        self.dim = squared.dim

    @classmethod
    def of(cls, terms: Sequence[Term], n_nodes: int, dim: int) -> BatchedRidged:
        """Sum squared errors, points and ridge terms, see `ridged`."""
        points = [_points(term, dim) for term in terms if term["kind"] != "squared"]
        curvature, centre, constant = np.zeros(n_nodes), np.zeros((n_nodes, dim)), np.zeros(n_nodes)
        for node, c, a in points:
            np.add.at(curvature, node, c)
            np.add.at(centre, node, c[:, None] * a)
        centre /= curvature[:, None]
        for node, c, a in points:  # the means are points of their own: nothing cancels
            np.add.at(constant, node, 0.5 * c * np.sum((a - centre[node]) ** 2, axis=1))
        return cls(_squares(terms, n_nodes, dim), curvature, centre, constant, terms)

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self._c)

    def quadratic(self) -> QuadraticForm:
        """Hessians of the rows and the ridges."""
        hessian, linear = self._squared.quadratic()
        hessian += self._c[:, None, None] * np.eye(self.dim)
        return QuadraticForm(hessian, linear + self._own)

    @property
    def _own(self) -> FloatArray:
        return self._c[:, None] * self._p

    def total_hessian(self) -> FloatArray:
        """Sum of the Hessians."""
        return self._squared.total_hessian() + np.sum(self._c) * np.eye(self.dim)

    def in_basis(self, basis: FloatArray) -> BatchedRidged:
        """Rows and centres in other coordinates."""
        squared, centre = self._squared.in_basis(basis), self._p @ basis
        return BatchedRidged(squared, self._c, centre, self._constant, [])

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> BatchedRidged:
        """Return the losses: they are quadratic."""
        return self

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Squares of what predictions and points change."""
        return self._squared.rise(w, before) + 0.5 * self._c * np.sum((w - before) ** 2, axis=1)

    def scalar(self) -> ScalarForm | None:
        """Curvatures and linear terms where the features are orthogonal, else None."""
        found = self._squared.scalar()
        if found is None:
            return None
        return ScalarForm(found.curvature + self._c[:, None], found.linear + self._own)

    @property
    def n_thin_rows(self) -> int:
        """Rows of the thin form."""
        return self._squared.n_thin_rows

    def thin(self) -> ThinForm:
        """Return the rows of the squares, and the ridges."""
        form = self._squared.thin()
        return form._replace(diagonal=form.diagonal + self._c[:, None], own=self._own)

    def value(self, w: FloatArray) -> FloatArray:
        """Losses (k,)."""
        ridge = 0.5 * self._c * np.sum((w - self._p) ** 2, axis=1)
        return self._squared.value(w) + ridge + self._constant

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients (k, d)."""
        return self._squared.gradient(w) + self._c[:, None] * (w - self._p)

    def _shortened(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what a ridge leaves of points and steps before the squares' own map, (k,)."""
        shrink = 1.0 / (1.0 + tau * self._c)
        return shrink, tau * shrink

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points of the squares at the mean of v and the centres."""
        shrink, step = self._shortened(tau)
        return self._squared.prox(shrink[:, None] * (v + tau[:, None] * self._own), step)

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Return the same as matrices and offsets."""
        shrink, step = self._shortened(tau)
        matrix, offset = self._squared.affine_prox(step)
        matrix *= shrink[:, None, None]
        return AffineProx(
            matrix, offset + np.einsum("kij,kj->ki", matrix, tau[:, None] * self._own)
        )

    def minimizer(self) -> FloatArray:
        """Return the solutions of Q_i w = b_i, by way of the centres."""
        return self._p - self._squared.ridge_solve(self._c, self._squared.gradient(self._p))

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Return ``<s, w*> - L(w*) + (1/2) s^T inverse s``, finite everywhere."""
        least = self.minimizer()
        rest = np.sum(s * least, axis=1) - self.value(least)
        return rest + self._half_norm(s)

    def _half_norm(self, x: FloatArray) -> FloatArray:
        """Return (1/2) x_i^T inverse(Q_i) x_i."""
        return self._squared.ridge_half_norm(self._c, x)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps (1/2) delta^T inverse(Q_i) delta, delta = s_i - grad L_i(w_i)."""
        return self._half_norm(s - self.gradient(w))

    def certain_gap(
        self, w: FloatArray, s: FloatArray, doubt: Doubt, multipliers: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return node gaps, and what rounding of slopes and of s may add to their sum."""
        squared, gap = self._squared, self.fenchel_gap(w, s)
        own = self._c[:, None] * (np.abs(w) + np.abs(self._p))
        size = np.abs(s) + squared.slope_sizes(w) + own
        around = doubt.injection + SUM_ULPS * EPS * size
        half = float(np.sum(squared.ridge_half_norm_of_sizes(self._c, around)))
        return gap, widened(gap, half, squared.blurred(w))

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        squares, _ = self._squared.expression(w)
        root = np.tile(np.sqrt(0.5 * self._c)[:, None], (1, self.dim))
        ridge = cp.sum_squares(cp.multiply(root, w) - root * self._p)
        return squares + ridge + float(np.sum(self._constant)), []

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate: s is split between squares and ridges."""
        t = cp.Variable(s.shape, name="t")
        squares, constraints = self._squared.conjugate_expression(s - t)
        root = np.tile(np.sqrt(0.5 / self._c)[:, None], (1, self.dim))
        ridge = cp.sum(cp.multiply(t, self._p)) + cp.sum_squares(cp.multiply(root, t))
        return squares + ridge - float(np.sum(self._constant)), constraints

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Return the terms that the losses were made of."""
        return [selected(term, np.asarray(nodes), copied=False) for term in self._terms]


def ridged(terms: Sequence[Term], n_nodes: int, dim: int) -> BoolArray:
    """Say which of the nodes 0, ..., n - 1 a `BatchedRidged` is to have, where it pays.

    Those with one curvature for all coordinates, besides what the rows have.
    """
    positive, alike = np.zeros(n_nodes, dtype=bool), np.ones(n_nodes, dtype=bool)
    rows = np.zeros(n_nodes, dtype=np.int64)
    for term in terms:
        node = term["node"]
        if term["kind"] == "squared":
            rows += np.bincount(node, minlength=n_nodes)
        elif term["kind"] == "point":
            positive[node] = True
        else:
            mu = term["mu"].reshape(len(node), -1)
            alike[node] &= (mu == mu[:, :1]).all(axis=1)
            positive[node] |= mu[:, 0] > 0.0
    chosen = positive & alike
    count = int(np.count_nonzero(chosen))
    return chosen & pays(int(np.minimum(rows[chosen], dim).sum()), count, dim)


def _points(term: Term, dim: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return a point or ridge term as nodes, curvatures and points (k, d)."""
    node = term["node"]
    if term["kind"] == "point":
        return node, 2.0 * term.get(WEIGHT, np.ones(len(node))), term["a"]
    return node, term["mu"].reshape(len(node), -1)[:, 0], np.zeros((len(node), dim))


def _squares(terms: Sequence[Term], n_nodes: int, dim: int) -> BatchedSquared:
    """Return the squared errors; a row of zeros at nodes without any."""
    some = [term for term in terms if term["kind"] == "squared"]
    bare = np.ones(n_nodes, dtype=bool)
    for term in some:
        bare[term["node"]] = False
    empty, q = np.flatnonzero(bare), np.count_nonzero(bare)
    owner = np.concatenate([*(term["node"] for term in some), empty]).astype(np.int64)
    weight = np.concatenate([*(coefficients(term) for term in some), np.ones(q)])
    order, counts = np.argsort(owner, kind="stable"), row_counts(owner, n_nodes)
    scale = np.sqrt(weight * counts[owner])[order]
    X = np.concatenate([*(term["X"] for term in some), np.zeros((q, dim))])[order]
    y = np.concatenate([*(term["y"] for term in some), np.zeros(q)])[order]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return BatchedSquared(scale[:, None] * X, scale * y, indptr)
