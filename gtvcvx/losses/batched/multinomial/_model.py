"""Quadratic models of multinomial losses, written as squared errors of K rows for each row.

With chances q at the scores z, the slope of a row is ``q - e_y``, its Hessian ``diag(q) - q q^T``:
next to nothing where all is decided. With the same number e added to all chances, the Hessian
``diag(q + e) - (q + e) (q + e)^T / (1 + K e)`` is at least as large, and larger than all that there
are for e = 1/2 [1]_. Every row has its own share of that, which rises where the model turned out to
be below the loss, and falls where it was above.

References
----------
.. [1] D. Böhning, "Multinomial logistic regression algorithm", Ann. Inst. Stat. Math. 1992.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._base import AffineProx, QuadraticForm, ThinForm
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._rows import Rows
from gtvcvx.losses.node import _models as compiled

# A share changes by this factor, down to the least. Rows that are not decided hardly feel that
# one, and nodes all of whose rows are in their tails still have some curvature.
CHANGE, LEAST_SHARE = 10.0, 1e-4
# A row is more than so many times as high above its tangent as its model: the model is too flat.
TOO_FLAT = 1.5
# Steps that are so short, relative to the scores, say nothing about a model but for rounding.
SHORT = 1e-9
# Scores closer than this are even, for what a parabola through both tails needs.
EVEN = 1e-4
# The minimizer is the proximal point for a step that is so long, over the largest curvature.
LONG = 1e10
# Up to this dimension small matrices are inverted by our own compiled functions, which do not pay
# for calls.
SMALL = 32


class RowModels(NamedTuple):
    """Models of all rows at scores z."""

    z: FloatArray  # (N, K)
    q: FloatArray  # (N, K), chances
    share: FloatArray  # (N,)

    @property
    def weights(self) -> FloatArray:
        """Chances with what is added, (N, K)."""
        # Between two even classes and one that is ahead by z, a parabola through both tails has
        # the curvature tanh(z / 2) / (2 z) instead of 1/4.
        range_ = np.maximum(np.ptp(self.z, axis=1), EVEN)
        most = np.tanh(0.5 * range_) / range_
        return self.q + (self.share * most)[:, None]

    @staticmethod
    def at(z: FloatArray, last: RowModels | None) -> RowModels:
        """Return models at z (N, K), with shares that the last ones teach."""
        share = np.ones(len(z)) if last is None else last.learned(z)
        return RowModels(z, softmax.probabilities(z), share)

    def learned(self, z: FloatArray) -> FloatArray:
        """Return shares (N,) by what the models have been worth at other scores."""
        change, weights = z - self.z, self.weights
        mean = np.sum(weights * change, axis=1) / weights.sum(axis=1)
        expected = 0.5 * np.sum(weights * (change - mean[:, None]) ** 2, axis=1)
        rise = softmax.rises(self.q, change)
        flat, steep = rise > TOO_FLAT * expected, rise <= expected
        out = np.where(flat, np.minimum(CHANGE * self.share, 1.0), self.share)
        out = np.where(steep, np.maximum(self.share / CHANGE, LEAST_SHARE), out)
        moved = np.abs(change).max(axis=1) > SHORT * (1.0 + np.abs(z).max(axis=1))
        return np.where(moved, out, self.share)


class MultinomialModel(BatchedSquared):
    """Models of multinomial losses at parameters W (k, p, K).

    Parameters
    ----------
    rows : Rows
    W : ndarray, shape (k, p, K)
    last : MultinomialModel, optional
        Of the same losses, at another point.

    Attributes
    ----------
    row_models : RowModels
    """

    row_models: RowModels

    def __init__(self, rows: Rows, W: FloatArray, last: MultinomialModel | None) -> None:
        known = None if last is None else last.row_models
        self.row_models = models = RowModels.at(rows.scores(W), known)
        X, y = _squares(rows, models)
        node, j = np.nonzero(np.repeat(rows.mu, rows.shape[2], axis=1) > 0.0)
        mu = rows.mu[node, j // rows.shape[2]]
        linear = rows.linear.reshape(len(W), -1)[node, j]
        owner = np.concatenate([np.repeat(rows.owner, rows.shape[2]), node])
        order = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=len(W))
        # The loss is the mean over all rows: each counts as often as there are, over two.
        scale = np.sqrt(0.5 * counts)[owner[order]]
        ridge = np.sqrt(mu)[:, None] * np.eye(X.shape[1])[j]
        X = scale[:, None] * np.concatenate([X, ridge])[order]
        y = scale * np.concatenate([y, linear / np.sqrt(mu)])[order]
        super().__init__(X, y, np.concatenate([[0], np.cumsum(counts)]))

    @cached_property
    def _form(self) -> QuadraticForm:
        return super().quadratic()

    @property
    def n_thin_rows(self) -> int:
        """All rows: a model serves too few step sizes for singular values to pay."""
        return len(self.y)

    def thin(self) -> ThinForm:
        """Return the rows as they are."""
        return self.plain_rows()

    def quadratic(self) -> QuadraticForm:
        """Hessians and linear terms."""
        return QuadraticForm(self._form.hessian.copy(), self._form.linear.copy())

    def affine_prox(self, tau: FloatArray) -> AffineProx:
        """Inverses of I + tau_i H_i, and offsets: a model serves few step sizes."""
        hessian, linear = self._form
        if self.dim <= SMALL:
            matrix, offset = np.empty_like(hessian), np.empty_like(linear)
            compiled.resolvents(hessian, linear, np.ascontiguousarray(tau), matrix, offset)
            return AffineProx(matrix, offset)
        inverse = np.asarray(np.linalg.inv(np.eye(self.dim) + tau[:, None, None] * hessian))
        return AffineProx(inverse, np.einsum("kij,kj->ki", inverse, tau[:, None] * linear))

    def minimizer(self) -> FloatArray:
        """Minimizers of nearly least norm."""
        largest = np.einsum("kjj->k", self._form.hessian)
        tau = np.divide(LONG, largest, np.ones_like(largest), where=largest > 0.0)
        return self.affine_prox(tau).offset


def _squares(rows: Rows, models: RowModels) -> tuple[FloatArray, FloatArray]:
    """Return rows whose halved squares are the models', (N K, p K) and (N K,)."""
    K = rows.shape[2]
    weights, slope = models.weights, softmax.slopes(models.q, rows.own)
    root = np.sqrt(rows.c[:, None] * weights)
    mean = weights / weights.sum(axis=1, keepdims=True)
    centred = root[:, :, None] * (np.eye(K) - mean[:, None, :])
    wide = centred[:, :, None, :] * rows.X[:, None, :, None]
    away = np.einsum("nkj,nj->nk", centred, models.z) - root * slope / weights
    return wide.reshape(-1, rows.X.shape[1] * K), away.ravel()
