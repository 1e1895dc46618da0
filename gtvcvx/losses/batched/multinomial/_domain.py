"""Where the conjugates of multinomial losses are finite.

Row r pulls with ``c_r x_r (p_r - e_{y_r})^T``: a generator ``x_r (e_k - e_{y_r})^T`` for each class
k but its own, with a multiplier ``c_r p_rk`` between 0 and c_r. That these add up to c_r at most is
left to `BatchedMultinomial.scale_to_feasible`: less of all of them is always allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._base import DualDomain
from gtvcvx.losses.batched._thin import SMALL
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._rows import Rows

# Scores ahead of another's from which on a class is as good as decided on.
DECIDED = 3.0


class Generators(NamedTuple):
    """Generators of all rows, and the rows and classes they belong to."""

    domain: DualDomain
    row: IntArray  # (Q,)
    other: IntArray  # (Q,), the class
    c: FloatArray  # (N,)
    own: BoolArray  # (N, K)

    def chances(self, multipliers: FloatArray) -> FloatArray:
        """Chances (N, K) of multipliers (Q,), or smaller ones where they are too large."""
        p = np.zeros(self.own.shape)
        p[self.row, self.other] = multipliers / self.c[self.row]
        return softmax.completed(p, self.own)

    def multipliers(self, p: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Multipliers (Q,) of chances p (N, K), and how firm they are at these scores (N, K)."""
        ahead = scores - np.sum(np.where(self.own, scores, 0.0), axis=1, keepdims=True)
        firm = np.maximum(np.abs(ahead[self.row, self.other]) - DECIDED, 0.0)
        return self.c[self.row] * p[self.row, self.other], firm


def generators_of(rows: Rows) -> Generators | None:
    """Return the generators, off the features that a quadratic lets free; None if it lets all."""
    _, p, K = rows.shape
    flat: BoolArray = np.equal(rows.mu, 0.0)
    of_rows = flat[rows.owner]
    X = np.where(of_rows, rows.X, 0.0)
    some: BoolArray = np.asarray(X.any(axis=1, keepdims=True))
    row, other = np.nonzero(~rows.own & some)
    if not len(row):
        return None
    contrast = np.eye(K)[other] - rows.own[row]
    vectors = (X[row][:, :, None] * contrast[:, None, :]).reshape(len(row), p * K)
    c = rows.c[row]
    diagonal = np.repeat(flat, K, axis=1).astype(np.float64)
    large = diagonal.size * p * K > SMALL
    projector = diagonal if large else diagonal[:, :, None] * np.eye(p * K)
    domain = DualDomain(projector, rows.owner[row], vectors, np.zeros(len(row)), c, c.copy())
    return Generators(domain, row, other, rows.c, rows.own)
