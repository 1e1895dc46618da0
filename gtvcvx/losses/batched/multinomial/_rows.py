"""The arrays that multinomial losses are computed with, made from their plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import pieces
from gtvcvx._lazy import sp
from gtvcvx.losses.batched._terms import WEIGHT, Term, coefficients, row_counts

# Entries of the tables of a step that are worked off between two looks at the clock.
PIECE = 4_000_000


class Rows(NamedTuple):
    """Rows of k nodes, sorted by node, and the quadratics of their parameters (p, K)."""

    X: FloatArray  # (N, p)
    own: BoolArray  # (N, K), the class of each row
    c: FloatArray  # (N,), coefficients of the rows in their node's loss
    indptr: IntArray  # (k + 1,)
    mu: FloatArray  # (k, p), curvatures, the same for all classes
    linear: FloatArray  # (k, p, K), ``mu w^2 / 2 - linear w`` is added
    points: list[tuple[IntArray, FloatArray, FloatArray]]  # nodes, weights and points
    constant: FloatArray  # (k,), what the points add to L_i(0)

    @staticmethod
    def of(terms: Sequence[Term], n_nodes: int, dim: int) -> Rows:
        """Read merged terms at the nodes 0, ..., n_nodes - 1, each of which has rows.

        Raises
        ------
        ValueError
            A ridge term that is not the same for all classes.
        """
        tables = [term for term in terms if term["kind"] == "multinomial"]
        owner = np.concatenate([term["node"] for term in tables])
        order = np.argsort(owner, kind="stable")
        X = np.concatenate([term["X"] for term in tables])[order]
        y = np.concatenate([term["y"] for term in tables])[order].astype(np.int64)
        c = np.concatenate([coefficients(term) for term in tables])[order]
        p, K = X.shape[1], dim // X.shape[1]
        indptr = np.concatenate([[0], np.cumsum(row_counts(owner, n_nodes))]).astype(np.int64)
        mu, linear, constant = np.zeros((n_nodes, p)), np.zeros((n_nodes, p, K)), np.zeros(n_nodes)
        points = []
        for term in terms:
            node = term["node"]
            if term["kind"] == "ridge":
                mu[node] += _of_features(term["mu"], len(node), p, K)
            elif term["kind"] == "point":
                weight = np.asarray(term.get(WEIGHT, np.ones(len(node))))
                points.append((node, weight, term["a"]))
                mu[node] += 2.0 * weight[:, None]
                linear[node] += 2.0 * weight[:, None, None] * term["a"].reshape(-1, p, K)
                constant[node] += weight * np.sum(term["a"] ** 2, axis=1)
        own = y[:, None] == np.arange(K)
        return Rows(np.ascontiguousarray(X), own, c, indptr, mu, linear, points, constant)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Nodes, features and classes."""
        k, p, K = self.linear.shape
        return k, p, K

    @property
    def owner(self) -> IntArray:
        """Node of each row (N,)."""
        return np.repeat(np.arange(len(self.mu)), np.diff(self.indptr))

    def buckets(self, width: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Nodes with equal numbers of rows, and these (nodes, m), in pieces.

        A row is worked off in tables that are so wide.
        """
        counts = np.diff(self.indptr)
        for count in np.unique(counts):
            same = np.flatnonzero(counts == count)
            for piece in pieces(len(same), max(PIECE // (int(count) * width), 1)):
                nodes = same[piece]
                yield nodes, self.indptr[nodes][:, None] + np.arange(count)

    def scores(self, W: FloatArray) -> FloatArray:
        """Scores X_i W_i (N, K) for W (k, p, K)."""
        out = np.empty(self.own.shape)
        for nodes, at in self.buckets(self.X.shape[1]):
            out[at] = self.X[at] @ W[nodes]
        return out

    def pulled(self, a: FloatArray) -> FloatArray:
        """Return ``sum_r x_r a_r^T`` (k, p, K) for multipliers a (N, K), as precise as these."""
        out = np.empty(self.linear.shape, dtype=a.dtype)
        for nodes, at in self.buckets(self.X.shape[1]):
            out[nodes] = self.X[at].transpose(0, 2, 1) @ a[at]
        return out

    def sums(self, x: FloatArray) -> FloatArray:
        """Return sums (k,) of numbers of the rows (N,), times their coefficients."""
        out: FloatArray = np.add.reduceat(self.c * x, self.indptr[:-1])
        return out

    @property
    def operator(self) -> sp.csr_array:
        """Sparse (N K, k p K) matrix that takes the rows of w, one after the other, to scores."""
        N, p = self.X.shape
        k, _, K = self.shape
        first = (self.owner[:, None] * p + np.arange(p)) * K
        columns = first[:, None, :] + np.arange(K)[None, :, None]
        values = np.broadcast_to(self.X[:, None, :], (N, K, p))
        indptr = np.arange(N * K + 1) * p
        return sp.csr_array((values.ravel(), columns.ravel(), indptr), shape=(N * K, k * p * K))


def _of_features(mu: FloatArray, k: int, p: int, K: int) -> FloatArray:
    """Return the curvatures of features (k, p), which must be the same for all classes."""
    each = np.broadcast_to(mu.reshape(k, -1), (k, p * K)).reshape(k, p, K)
    if (each != each[:, :, :1]).any():
        raise ValueError(
            "losses: with MultinomialLogisticLoss a ridge term must be the same for all classes of "
            "a feature"
        )
    return each[:, :, 0]
