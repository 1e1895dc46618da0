"""Diagonals and few rows instead of matrices, where nodes have fewer rows than coordinates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.losses.batched._base import BatchedLoss, ScalarForm, ThinForm

#: Matrices of so many entries in all, 8 megabytes, stay in the caches and are as well kept whole.
SMALL = 2**20

Parts = Iterable[tuple[IntArray, BatchedLoss]]


def without_rows(form: ScalarForm) -> ThinForm:
    """Return losses of single coordinates as a thin form."""
    k, d = form.curvature.shape
    return ThinForm(*form, np.zeros((0, d)), np.zeros(0), np.zeros(k + 1, dtype=np.int64))


def pays(n_rows: int, k: int, d: int) -> bool:
    """Say whether rows at k nodes, which are gone through twice, beat matrices (k, d, d)."""
    return k * d * d > SMALL and 2 * n_rows <= k * d


def joined(parts: Parts, n_nodes: int, dim: int) -> ThinForm | None:
    """Return the thin form of the losses of n nodes, or None where matrices are as good."""
    parts = list(parts)
    total = 0
    for _, batch in parts:
        rows = batch.n_thin_rows
        if rows is None:
            return None
        total += rows
    if not pays(total, n_nodes, dim):
        return None
    forms = [(nodes, batch.thin()) for nodes, batch in parts if not batch.trivial]
    counts = np.zeros(n_nodes, dtype=np.int64)
    for nodes, form in forms:
        if form is None:
            return None
        counts[nodes] = np.diff(form.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    diagonal, own = np.zeros((n_nodes, dim)), np.zeros((n_nodes, dim))
    rows_out, targets = np.empty((indptr[-1], dim)), np.empty(indptr[-1])
    for nodes, form in forms:
        assert form is not None
        diagonal[nodes], own[nodes] = form.diagonal, form.own
        at = places(indptr, nodes)
        rows_out[at], targets[at] = form.rows, form.targets
    return ThinForm(diagonal, own, rows_out, targets, indptr)


def places(indptr: IntArray, nodes: IntArray) -> IntArray:
    """Return the numbers of the rows of some nodes, one node after the other."""
    counts = np.diff(indptr)[nodes]
    first = np.repeat(indptr[nodes] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.asarray(first + np.arange(counts.sum()))


def linear_of(form: ThinForm) -> FloatArray:
    """Return all linear terms (k, d)."""
    return form.own + sums(form.targets[:, None] * form.rows, form.indptr)


def sums(rows: FloatArray, indptr: IntArray) -> FloatArray:
    """Add up rows (N, ...) over each node, of which some may have none."""
    out = np.zeros((len(indptr) - 1, *rows.shape[1:]))
    some = np.flatnonzero(np.diff(indptr))
    if len(some):
        out[some] = np.add.reduceat(rows, indptr[some], axis=0)
    return out


def grouped_form(form: ThinForm, labels: IntArray) -> ThinForm:
    """Add up the losses of each group of nodes 0, ..., k - 1, of which none is empty.

    Groups with more rows than coordinates get as many as coordinates, with the same Hessians and
    linear terms.
    """
    d = form.diagonal.shape[1]
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    at = places(form.indptr, order)
    counts = np.add.reduceat(np.diff(form.indptr)[order], first)
    rows, targets = _compressed(form.rows[at], form.targets[at], counts, d)
    indptr = np.concatenate([[0], np.cumsum(np.minimum(counts, d))])
    diagonal, own = (np.add.reduceat(x[order], first, axis=0) for x in (form.diagonal, form.own))
    return ThinForm(diagonal, own, rows, targets, indptr)


def _compressed(
    rows: FloatArray, targets: FloatArray, counts: IntArray, d: int
) -> tuple[FloatArray, FloatArray]:
    """Replace more than d rows (N, d) of a group by the triangle of their QR factors."""
    if (counts <= d).all():
        return rows, targets
    ends = np.cumsum(counts)
    new = []
    for first, last in zip(ends - counts, ends, strict=True):
        own = rows[first:last], targets[first:last]
        if last - first > d:
            look()
            Q, own_rows = np.linalg.qr(own[0])
            own = own_rows, Q.T @ own[1]
        new.append(own)
    return np.concatenate([r for r, _ in new]), np.concatenate([t for _, t in new])
