"""Sums of squared errors, points and ridge terms: still quadratic, and treated as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._terms import WEIGHT, Term, coefficients, row_counts, selected


class BatchedQuadratic(BatchedSquared):
    """Quadratic losses at k nodes, written as squared errors of more rows.

    A term ``c (x.w - y)^2`` of a node with m rows in all is the row ``sqrt(c m) (x, y)`` of a mean
    squared error; a point ``||w - a||^2`` has the rows of the identity, a ridge term those of the
    square root of its matrix.

    Parameters
    ----------
    terms : list of dict
        Plain data of kinds ``squared``, ``point`` and ``ridge`` at the nodes 0, ..., k - 1, each
        of which has at least one.
    """

    def __init__(self, terms: Sequence[Term], n_nodes: int, dim: int) -> None:
        blocks = [_rows(term, dim) for term in terms]
        owner = np.concatenate([node for node, _, _, _ in blocks])
        weight = np.concatenate([w for _, w, _, _ in blocks])
        order = np.argsort(owner, kind="stable")
        counts = row_counts(owner, n_nodes)
        scale = np.sqrt(weight * counts[owner])[order]
        X = np.concatenate([x for _, _, x, _ in blocks])[order]
        y = np.concatenate([y for _, _, _, y in blocks])[order]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        super().__init__(scale[:, None] * X, scale * y, indptr)
        self._terms = list(terms)

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Return the terms that the losses were made of."""
        return [selected(term, np.asarray(nodes), copied=False) for term in self._terms]


def _rows(term: Term, dim: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return a term as weighted squares: nodes, weights, features and targets."""
    node = term["node"]
    if term["kind"] == "squared":
        return node, coefficients(term), term["X"], term["y"]
    k = len(node)
    if term["kind"] == "point":
        weight = np.repeat(term.get(WEIGHT, np.ones(k)), dim)
        targets = term["a"].ravel()
    else:
        mu = np.broadcast_to(term["mu"].reshape(k, -1), (k, dim))
        weight, targets = 0.5 * mu.ravel(), np.zeros(k * dim)
    some = weight > 0.0
    features = np.tile(np.eye(dim), (k, 1))
    return np.repeat(node, dim)[some], weight[some], features[some], targets[some]
