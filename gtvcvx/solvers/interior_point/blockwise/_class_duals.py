"""Chances of rows with several classes as dual variables.

The function of a row with coefficient c is ``f(z) = c (log sum_k exp z_k - z_own)``, the largest
``<p, z> - c z_own - sum_k p_k log(p_k / c)`` over p >= 0 that add up to c. As for other smooth rows
(`_curved_duals`) a chance has a slack, itself, and a multiplier: entropies alone keep it positive,
but far from zero. That p adds up to c has a multiplier t, the logarithm in f: with

    D_k = p_k / (1 + multiplier)

the step of p is ``D_k (dz_k - dt)`` and an offset, and t follows from their sum, so that dz_k - dt
is the score less the mean of all, weighted by D. These are the rows that the linear system is made
of: they change with D. A number that is the same for all scores of a row counts for nothing.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.solvers.interior_point.blockwise._duals import longest


class ClassDuals:
    """Slopes ``p - c e_own`` of rows with several classes, one entry for each row and class.

    Parameters
    ----------
    rows : ClassRows
    """

    def __init__(self, rows: ClassRows) -> None:
        self._rows, self._own = rows, rows.own
        self._c = rows.coefficients[:, None]
        shape = self._own.shape
        self._p = np.broadcast_to(self._c / max(shape[1], 1), shape).copy()
        self._diagonal = self._p.copy()
        self.degree = float(self._p.size)
        self._step: tuple[FloatArray, FloatArray]  # of the chances and the multipliers

    def __len__(self) -> int:
        return self._p.size

    @property
    def y(self) -> FloatArray:
        """The slopes (N K,)."""
        return self._balanced(self._p).ravel()

    @property
    def weights(self) -> FloatArray:
        """Derivatives of the slopes by the scores less their means, (N K,)."""
        return self._diagonal.ravel()

    @property
    def halves(self) -> FloatArray:
        """How far chances may typically move (N K,)."""
        return self._p.ravel()

    def _balanced(self, x: FloatArray) -> FloatArray:
        """Return numbers (N, K) that add up to zero for each row: those of all classes but one."""
        return softmax.slopes(x, self._own)

    def _shares(self) -> FloatArray:
        return self._diagonal / self._diagonal.sum(axis=1, keepdims=True)

    def framed(self) -> FloatArray:
        """Return the rows (N K, d) of scores less their means, weighted as they are now."""
        return self._rows.centred(self._shares())

    def centred(self, x: FloatArray) -> FloatArray:
        """Return scores (N K,), up to a number for each row, less their means."""
        x = x.reshape(self._p.shape)
        x = x - x.max(axis=1, keepdims=True)
        found: FloatArray = x - (self._shares() * x).sum(axis=1, keepdims=True)
        return found.ravel()

    def surplus(self, x: FloatArray) -> float:
        """Return what values at x are above those of the tangents with these slopes."""
        if not len(self):
            return 0.0
        parts = softmax.divergences(self._p / self._c, x.reshape(self._p.shape))
        return float(np.sum(self._c[:, 0] * parts))

    def _explained(self) -> FloatArray:
        return np.log(self._p / self._c)

    def begin(self, x: FloatArray, mu: float) -> None:
        """Start from the middle."""
        with np.errstate(divide="ignore"):
            logs = np.log(softmax.probabilities(x.reshape(self._p.shape)))
        rest = np.maximum(logs, np.log(np.finfo(float).tiny)) - self._explained()
        self._below = np.maximum(-rest, 0.0) + mu / self._p

    def complementarity(self) -> float:
        """Return the sum of chances times multipliers."""
        return float(np.sum(self._p * self._below))

    def linearize(self, x: FloatArray) -> None:
        """Take scores, chances and multipliers as they are now."""
        self._missing = x.reshape(self._p.shape) - self._explained() + self._below
        self._diagonal = self._p / (1.0 + self._below)

    def offset(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of the slopes for chances times multipliers of mu."""
        self._aims = mu - self._p * self._below
        if corrected:
            self._aims = self._aims - self._step[0] * self._step[1]
        raised = self._missing + self._aims / self._p
        mean = (self._shares() * raised).sum(axis=1, keepdims=True)
        self._offset = self._balanced(self._diagonal * (raised - mean))
        return self._offset.ravel()

    def step(self, dx: FloatArray) -> FloatArray:
        """Return the step of the slopes; those of the multipliers follow."""
        dp = self._balanced(self._diagonal * dx.reshape(self._p.shape)) + self._offset
        self._step = dp, (self._aims - self._below * dp) / self._p
        return dp.ravel()

    def longest(self) -> float:
        """Return the length at which the first chance or multiplier vanishes."""
        dp, below = self._step
        return min(longest(self._p, dp), longest(self._below, below))

    def move(self, length: float) -> None:
        """Move chances and multipliers."""
        dp, below = self._step
        self._p, self._below = self._p + length * dp, self._below + length * below
