"""Quadratic models of smooth composite losses, written as squared errors of the same rows."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx._pieces import gram
from gtvcvx.losses.batched._base import AffineProx, QuadraticForm, ThinForm
from gtvcvx.losses.batched._ridged import BatchedRidged
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node import _models as compiled

# The minimizer is the proximal point for a step that is so long, over the inverse of the largest
# curvature: far beyond what data determine, well before rounding takes over.
LONG = 1e10


class Frame(NamedTuple):
    """Rows of the models: those of the losses, and one for each coordinate with a quadratic."""

    X: FloatArray  # (M, d)
    indptr: IntArray  # (k + 1,)
    place: IntArray  # (N,), where the losses' rows are among them
    curvature: FloatArray  # (M,), zero at the losses' rows
    y: FloatArray  # (M,), zero at the losses' rows

    @staticmethod
    def of(parts: Parts) -> Frame:
        """Return what the models of all points have in common."""
        N, d = parts.X.shape
        node, j = np.nonzero(parts.coordinates["mu"] > 0.0)
        chosen = parts.coordinates[node, j]
        owner = np.concatenate([parts.owner, node])
        order = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=len(parts.totals))
        return Frame(
            np.concatenate([parts.X, np.eye(d)[j]])[order],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.argsort(order, kind="stable")[:N],
            np.concatenate([np.zeros(N), chosen["mu"]])[order],
            np.concatenate([np.zeros(N), chosen["linear"] / chosen["mu"]])[order],
        )


class RowModels(NamedTuple):
    """Models of the losses' rows at images z, see `gtvcvx.losses.node._models`; all (N,)."""

    z: FloatArray
    slope: FloatArray
    curvature: FloatArray
    share: FloatArray

    @staticmethod
    def of(parts: Parts, w: FloatArray, last: RowModels | None) -> RowModels:
        """Return models of the rows at points w (k, d)."""
        z = np.empty(len(parts.rows))
        compiled.images(parts.X, parts.indptr, np.ascontiguousarray(w), z)
        return RowModels.at(parts.rows, z, last)

    @property
    def targets(self) -> FloatArray:
        """Images at which the models are least, (N,)."""
        some = self.curvature > 0.0
        return self.z - np.divide(self.slope, self.curvature, np.zeros_like(self.z), where=some)

    @staticmethod
    def at(rows: Records, z: FloatArray, last: RowModels | None) -> RowModels:
        """Return models at z, with shares that the last ones teach."""
        share = np.ones(len(z)) if last is None else last.share.copy()
        if last is not None:
            compiled.learn(rows, last.z, z, last.slope, last.curvature, share)
        slope, curvature = np.empty_like(z), np.empty_like(z)
        compiled.models(rows, z, share, slope, curvature)
        return RowModels(z, slope, curvature, share)


class QuadraticModel(BatchedSquared):
    """Models of composite losses at points w (k, d).

    Parameters
    ----------
    parts : Parts
        Of smooth losses.
    frame : Frame
    w : ndarray, shape (k, d)
    last : QuadraticModel, optional
        Of the same losses, at another point.

    Attributes
    ----------
    row_models : RowModels
    """

    row_models: RowModels

    def __init__(
        self, parts: Parts, frame: Frame, w: FloatArray, last: QuadraticModel | None
    ) -> None:
        self.row_models = rows = RowModels.of(parts, w, None if last is None else last.row_models)
        curvature, y = frame.curvature.copy(), frame.y.copy()
        curvature[frame.place], y[frame.place] = rows.curvature, rows.targets
        counts = np.diff(frame.indptr)
        scale = np.sqrt(0.5 * np.repeat(counts, counts) * curvature)
        super().__init__(scale[:, None] * frame.X, scale * y, frame.indptr)
        root = np.sqrt(rows.curvature)
        self._parts, self._rows = parts, (root, root * y[frame.place])

    @cached_property
    def _form(self) -> QuadraticForm:
        hessian = np.empty((self.n_nodes, self.dim, self.dim))
        compiled.hessians(self.X, self.indptr, hessian)
        return QuadraticForm(hessian, self._linear)

    @property
    def n_thin_rows(self) -> int:
        """Rows of the losses."""
        return len(self._rows[0])

    def thin(self) -> ThinForm:
        """Return the rows as they are, and what coordinates have of their own."""
        return _thin(self._parts, *self._rows)

    @property
    def _rows_alone(self) -> bool:
        """Whether no coordinate has a quadratic of its own."""
        return len(self.X) == self.n_thin_rows

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """Half the curvature of rows and coordinates, times their squared changes."""
        if self._rows_alone:
            return super().rise(w, before)
        parts, change = self._parts, w - before
        along = self._rows[0] * np.einsum("nd,nd->n", parts.X, change[parts.owner])
        own = np.einsum("kd,kd,kd->k", parts.coordinates["mu"], change, change)
        return 0.5 * (own + np.bincount(parts.owner, along**2, self.n_nodes))

    def total_hessian(self) -> FloatArray:
        """Sum of the Hessians, quadratics of coordinates as a diagonal: they are no rows here."""
        if self._rows_alone:
            return super().total_hessian()
        total = gram(self._rows[0][:, None] * self._parts.X)
        np.einsum("jj->j", total)[:] += self._parts.coordinates["mu"].sum(axis=0)
        return total

    def quadratic(self) -> QuadraticForm:
        """Hessians and linear terms."""
        return QuadraticForm(self._form.hessian.copy(), self._form.linear.copy())

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Inverses of I + tau_i H_i, and offsets.

        By factorization: a model serves few step sizes, too few for singular values to pay.
        """
        hessian, linear = self._form
        matrix, offset = np.empty_like(hessian), np.empty_like(linear)
        compiled.resolvents(hessian, linear, np.ascontiguousarray(tau), matrix, offset)
        return AffineProx(matrix, offset)

    def minimizer(self) -> FloatArray:
        """Minimizers of nearly least norm."""
        largest = np.einsum("kjj->k", self._form.hessian)
        tau = np.divide(LONG, largest, np.ones_like(largest), where=largest > 0.0)
        return self.affine_prox(tau).offset


class RidgedModel(BatchedRidged):
    """The same of losses with few rows beside ridges, see `few_beside_ridges`.

    Parameters
    ----------
    parts : Parts
    w : ndarray, shape (k, d)
    last : RidgedModel, optional

    Attributes
    ----------
    row_models : RowModels
    """

    row_models: RowModels

    def __init__(self, parts: Parts, w: FloatArray, last: RidgedModel | None) -> None:
        self.row_models = rows = RowModels.of(parts, w, None if last is None else last.row_models)
        counts, y = np.diff(parts.indptr), rows.targets
        scale = np.sqrt(0.5 * np.repeat(counts, counts) * rows.curvature)
        own = parts.coordinates
        mu = np.ascontiguousarray(own["mu"][:, 0])
        squared = BatchedSquared(scale[:, None] * parts.X, scale * y, parts.indptr)
        super().__init__(squared, mu, own["linear"] / mu[:, None], np.zeros(len(mu)), [])
        root = np.sqrt(rows.curvature)
        self._parts, self._rows = parts, (root, root * y)

    def thin(self) -> ThinForm:
        """Return the rows as they are, and the ridges: singular values would not pay."""
        return _thin(self._parts, *self._rows)


def few_beside_ridges(parts: Parts) -> bool:
    """Say whether all nodes have rows, few of them, and one ridge for all coordinates."""
    mu, counts = parts.coordinates["mu"], np.diff(parts.indptr)
    k, d = mu.shape
    alike = bool((mu[:, :1] > 0.0).all() and (mu == mu[:, :1]).all())
    few = bool((counts > 0).all() and (2 * counts < d).all())
    return alike and few and pays(2 * len(parts.rows), k, d)


def _thin(parts: Parts, root: FloatArray, targets: FloatArray) -> ThinForm:
    own = parts.coordinates
    mu, linear = np.ascontiguousarray(own["mu"]), np.ascontiguousarray(own["linear"])
    return ThinForm(mu, linear, root[:, None] * parts.X, targets, parts.indptr)
