"""Rows with a score for each of several classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._rows import Rows


class ClassRows:
    """Multinomial rows at some of n nodes, or none.

    Parameters
    ----------
    terms : sequence of Term
        Of kind multinomial.
    n, d : int
        Nodes and coordinates.

    Attributes
    ----------
    own : ndarray of bool, shape (N, K)
        The class of each row.
    coefficients : ndarray, shape (N,)
    node : ndarray, shape (N K,)
        Of each row and class.
    """

    def __init__(self, terms: Sequence[Term], n: int, d: int) -> None:
        self._nodes = np.unique(
            np.concatenate([np.empty(0, np.int64), *(t["node"] for t in terms)])
        )
        self._dim = d
        self.own: BoolArray = np.empty((0, 1), bool)
        self.coefficients: FloatArray = np.empty(0)
        self.node: IntArray = np.empty(0, np.int64)
        if not self.empty:
            place = np.full(n, -1)
            place[self._nodes] = np.arange(len(self._nodes))
            own = [{**term, "node": place[term["node"]]} for term in terms]
            self._rows = rows = Rows.of(own, len(self._nodes), d)
            self.own, self.coefficients = rows.own, rows.c
            self.node = np.repeat(self._nodes[rows.owner], rows.shape[2])

    @property
    def n_classes(self) -> int:
        """K."""
        return self.own.shape[1]

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not len(self._nodes)

    def value(self, w: FloatArray) -> float:
        """Return the sum of all rows at w (n, d)."""
        if self.empty:
            return 0.0
        rows = self._rows
        scores = rows.scores(w[self._nodes].reshape(rows.shape))
        return float(np.sum(rows.sums(softmax.values(scores, rows.own))))

    def centred(self, shares: FloatArray) -> FloatArray:
        """Return the rows (N K, d) that take w to each score less the mean of all.

        Parameters
        ----------
        shares : ndarray, shape (N, K)
            Weights of that mean, which add up to one.
        """
        if self.empty:
            return np.empty((0, self._dim))
        K = shares.shape[1]
        apart = np.eye(K) - shares[:, None, :]  # (N, K, K)
        # One less a share that is nearly one: what the others add up to.
        np.einsum("nkk->nk", apart)[:] = shares @ (1.0 - np.eye(K))
        rows = self._rows.X[:, None, :, None] * apart[:, :, None, :]
        return rows.reshape(-1, self._dim)
