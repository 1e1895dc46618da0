"""Quadratic losses of coarser problems: rows and ridges added up."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.losses.batched._base import BatchedLoss, ThinForm
from gtvcvx.losses.batched._ridged import BatchedRidged
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._stacked import StackedLoss
from gtvcvx.losses.batched._thin import places


class _Rows(BatchedSquared):
    """Squared errors whose thin form is the rows themselves.

    Singular values take ten times as long where there are many, and only bounds need them.
    """

    @property
    def n_thin_rows(self) -> int:
        """All rows."""
        return len(self.y)

    def thin(self) -> ThinForm:
        """Return the rows as they are."""
        return self.plain_rows()


def stacked_thin(form: ThinForm) -> StackedLoss:
    """Return losses with such a thin form, whose diagonals are multiples of the identity."""
    n, d = form.diagonal.shape
    curved, counts = form.diagonal[:, 0] > 0.0, np.diff(form.indptr)
    parts: list[tuple[IntArray, BatchedLoss]] = []
    plain = np.flatnonzero(~curved & (counts > 0))
    if len(plain):
        parts.append((plain, _squares(form, plain)))
    if curved.any():
        nodes = np.flatnonzero(curved)
        c = form.diagonal[nodes, 0]
        ridge = c, form.own[nodes] / c[:, None], np.zeros(len(nodes))
        parts.append((nodes, BatchedRidged(_squares(form, nodes), *ridge, [])))
    return StackedLoss(parts, d).completed(n)


def _squares(form: ThinForm, nodes: IntArray) -> _Rows:
    """Return the rows of some nodes as means of squares; a row of zeros where there is none."""
    own = np.diff(form.indptr)[nodes]
    counts = np.maximum(own, 1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    X, y = np.zeros((indptr[-1], form.rows.shape[1])), np.zeros(indptr[-1])
    here, there = places(indptr, np.flatnonzero(own)), places(form.indptr, nodes)
    # (1/m) ||y - X z||^2 has the Hessian (2/m) X^T X.
    root = np.sqrt(0.5 * np.repeat(counts, counts))[here]
    X[here], y[here] = root[:, None] * form.rows[there], root * form.targets[there]
    return _Rows(X, y, indptr)
