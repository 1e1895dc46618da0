"""Rows with a score for each of several classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

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
    n_nodes : int
        n.
    own : ndarray of bool, shape (N, K)
        The class of each row.
    coefficients : ndarray, shape (N,)
    node : ndarray, shape (N K,)
        Of each row and class; rows are sorted by node.
    """

    def __init__(self, terms: Sequence[Term], n: int, d: int) -> None:
        self._nodes = np.unique(
            np.concatenate([np.empty(0, np.int64), *(t["node"] for t in terms)])
        )
        self.n_nodes, self._dim = n, d
        self._rows = _none() if self.empty else self._of(terms)
        self.own: BoolArray = self._rows.own
        self.coefficients: FloatArray = self._rows.c
        self._owner: IntArray = self._nodes[self._rows.owner]
        self.node: IntArray = np.repeat(self._owner, self.n_classes)

    def _of(self, terms: Sequence[Term]) -> Rows:
        place = np.full(self.n_nodes, -1)
        place[self._nodes] = np.arange(len(self._nodes))
        own = [{**term, "node": place[term["node"]]} for term in terms]
        return Rows.of(own, len(self._nodes), self._dim)

    @property
    def n_features(self) -> int:
        """Number of features p."""
        return self._rows.X.shape[1]

    @property
    def n_classes(self) -> int:
        """K."""
        return self.own.shape[1]

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not len(self._nodes)

    def __len__(self) -> int:
        return len(self.coefficients)

    def value(self, w: FloatArray) -> float:
        """Return the sum of all rows at w (n, d)."""
        scores = self.scores(w)
        return float(np.sum(self._rows.sums(softmax.values(scores, self.own))))

    def _of_nodes(self, w: FloatArray) -> FloatArray:
        """Return what belongs to the nodes with rows of numbers (n, d), (k, p, K)."""
        return w[self._nodes].reshape(self._rows.shape)

    def _at_nodes(self, W: FloatArray) -> FloatArray:
        """Return numbers (n, d) that are W (k, p, K) at the nodes with rows, and zero elsewhere."""
        out = np.zeros((self.n_nodes, self._dim), dtype=W.dtype)
        out[self._nodes] = W.reshape(len(self._nodes), self._dim)
        return out

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the scores (N, K) at w (n, d)."""
        return self._rows.scores(self._of_nodes(w))

    def sizes_of_scores(self, w: FloatArray) -> FloatArray:
        """Return what products of features with w (n, d) >= 0 add up to, (N, K)."""
        return self._absolute.scores(self._of_nodes(w))

    def pulled(self, a: FloatArray) -> FloatArray:
        """Return what slopes a (N, K) of the scores add up to at the nodes, (n, d)."""
        return self._at_nodes(self._rows.pulled(a))

    def sizes_pulled(self, a: FloatArray) -> FloatArray:
        """Return the same of sizes a (N, K) >= 0 of slopes and features."""
        return self._at_nodes(self._absolute.pulled(a))

    def squares_pulled(self, a: FloatArray) -> FloatArray:
        """Return the same of squares of features."""
        return self._at_nodes(self._rows._replace(X=self._rows.X**2).pulled(a))

    def means(self, x: FloatArray) -> FloatArray:
        """Return the means over the classes of numbers (n, d), in the place of each, or zero."""
        W = self._of_nodes(x)
        return self._at_nodes(np.broadcast_to(W.mean(axis=2, keepdims=True), W.shape))

    def mapped(self, inverse: FloatArray, x: FloatArray) -> FloatArray:
        """Return what maps (N, p) in the place of features make of numbers x (n, d), (N, K)."""
        return self._rows._replace(X=inverse).scores(self._of_nodes(x))

    def alike(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield nodes with equal numbers of rows, and these (nodes, m) and their features."""
        for nodes, at in self._rows.buckets(self._rows.X.shape[1]):
            yield self._nodes[nodes], at, self._rows.X[at]

    def sums(self, x: FloatArray) -> FloatArray:
        """Return sums (n,) of numbers of the rows (N,)."""
        out = np.zeros(self.n_nodes)
        np.add.at(out, self._owner, x)
        return out

    @cached_property
    def _absolute(self) -> Rows:
        return self._rows._replace(X=np.abs(self._rows.X))

    def centred(self, shares: FloatArray) -> FloatArray:
        """Return the rows (N K, d) that take w to each score less the mean of all.

        Parameters
        ----------
        shares : ndarray, shape (N, K)
            Weights of that mean, which add up to one.
        """
        K = shares.shape[1]
        apart = np.eye(K) - shares[:, None, :]  # (N, K, K)
        # One less a share that is nearly one: what the others add up to.
        np.einsum("nkk->nk", apart)[:] = shares @ (1.0 - np.eye(K))
        rows = self._rows.X[:, None, :, None] * apart[:, :, None, :]
        return rows.reshape(len(self.node), self._dim)


def _none() -> Rows:
    """Return no rows, at no nodes."""
    nothing = np.empty((0, 1))
    start, wide = np.zeros(1, np.int64), np.empty((0, 1, 1))
    return Rows(nothing, np.empty((0, 1), bool), np.empty(0), start, nothing, wide, [], np.empty(0))
