"""Rows with a score for each of several classes, whose slopes are derivatives at the point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._rows import Rows


@dataclass(frozen=True)
class ClassSettings:
    """How far a step may lead.

    Attributes
    ----------
    overshoot : float
        The slope along the step may be this share of its size at the start at most, uphill: slopes
        change by more than was expected where curvatures grow.
    shortest : float
        No step is made shorter than that.
    """

    overshoot: float = 0.5
    shortest: float = 2.0**-40


DEFAULTS = ClassSettings()


class ClassRows:
    """Multinomial rows at some of n nodes, or none.

    Parameters
    ----------
    terms : sequence of Term
        Of kind multinomial.
    n, d : int
        Nodes and coordinates.
    """

    def __init__(self, terms: Sequence[Term], n: int, d: int) -> None:
        self._nodes = np.unique(
            np.concatenate([np.empty(0, np.int64), *(t["node"] for t in terms)])
        )
        self._shape = n, d
        if not self.empty:
            place = np.full(n, -1)
            place[self._nodes] = np.arange(len(self._nodes))
            own = [{**term, "node": place[term["node"]]} for term in terms]
            self._rows = Rows.of(own, len(self._nodes), d)

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not len(self._nodes)

    def _scores(self, w: FloatArray) -> FloatArray:
        return self._rows.scores(w[self._nodes].reshape(self._rows.shape))

    def value(self, w: FloatArray) -> float:
        """Return the sum of all rows at w (n, d)."""
        if self.empty:
            return 0.0
        return float(np.sum(self._rows.sums(softmax.values(self._scores(w), self._rows.own))))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient (n, d) of all rows."""
        out = np.zeros(self._shape)
        if not self.empty:
            rows = self._rows
            a = softmax.slopes(softmax.probabilities(self._scores(w)), rows.own)
            out[self._nodes] = rows.pulled(rows.c[:, None] * a).reshape(-1, self._shape[1])
        return out

    def hessians(self, w: FloatArray) -> FloatArray:
        """Return the Hessians (n, d, d) of all nodes' rows."""
        n, d = self._shape
        out = np.zeros((n, d, d))
        if self.empty:
            return out
        rows, K = self._rows, self._rows.shape[2]
        q = softmax.probabilities(self._scores(w))
        root = np.sqrt(rows.c[:, None] * q)[:, :, None] * (np.eye(K) - q[:, None, :])
        for nodes, at in rows.buckets(K * d):
            wide = rows.X[at][:, :, None, :, None] * root[at][:, :, :, None, :]
            wide = wide.reshape(len(nodes), -1, d)
            out[self._nodes[nodes]] = wide.transpose(0, 2, 1) @ wide
        return out


def safe_length(
    turn: Callable[[float], float],
    length: float,
    descent: float,
    settings: ClassSettings = DEFAULTS,
) -> float:
    """Return the length, or so many halves of it that a step leads not too far.

    Parameters
    ----------
    turn : callable
        By how much more the slope along the step changes at a length than curvatures say.
    length : float
    descent : float
        Product of the whole step with the matrix that it was found with: what the slope along it
        loses from its start to its end, if nothing but linear changes.
    """
    while length > settings.shortest:
        if turn(length) <= (1.0 - length + settings.overshoot) * descent:
            break
        length *= 0.5
    return length
