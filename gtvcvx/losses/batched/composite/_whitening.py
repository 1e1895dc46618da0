"""Node problems in coordinates in which units do not matter.

With the rows' features, and a row more for each coordinate with a quadratic, weighted by their
curvatures and written as ``B_i = Q_i L_i V_i^T C_i``, C_i the lengths of the columns, Q_i and V_i
with orthonormal columns and L_i triangular, the loss is a function of ``z = L V^T C w`` whose rows
have the features Q: an intercept, a year and an income are as good as any three directions. Slopes
change by ``s = C V L^T t``, values and conjugates not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx._deadline import pieces
from gtvcvx.losses.batched.composite._model import Frame
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._scalar import ROW, SQUARED


class WhiteNodes(NamedTuple):
    """Nodes with m rows of rank r each, those of coordinates included."""

    nodes: IntArray  # (k,)
    at: IntArray  # (k, m), numbers of their rows
    X: FloatArray  # (k, m, r), features in the new coordinates
    basis: FloatArray | None  # (k, d, r), V; the identity where there is none
    triangle: FloatArray  # (k, r, r), L
    units: FloatArray  # (k, d), C

    def piece(self, at: slice) -> WhiteNodes:
        """Return some of the nodes."""
        basis = None if self.basis is None else self.basis[at]
        return WhiteNodes(
            self.nodes[at], self.at[at], self.X[at], basis, self.triangle[at], self.units[at]
        )

    def slopes(self, s: FloatArray) -> FloatArray:
        """Return the slopes (k, r) that are s (k, d) in the coordinates of the losses."""
        x = s / self.units
        if self.basis is not None:
            x = np.einsum("kji,kj->ki", self.basis, x)
        return np.asarray(np.linalg.solve(self.triangle.transpose(0, 2, 1), x[:, :, None]))[:, :, 0]

    def points(self, z: FloatArray) -> FloatArray:
        """Return the points of least norm in units of C, (k, d), that are z (k, r)."""
        x = np.asarray(np.linalg.solve(self.triangle, z[:, :, None]))[:, :, 0]
        if self.basis is not None:
            x = np.einsum("kji,ki->kj", self.basis, x)
        return x / self.units

    def coordinates(self, w: FloatArray) -> FloatArray:
        """Return z (k, r) of points w (k, d)."""
        x = w * self.units
        if self.basis is not None:
            x = np.einsum("kji,kj->ki", self.basis, x)
        return np.einsum("kij,kj->ki", self.triangle, x)


class Whitened(NamedTuple):
    """Smooth losses of k nodes in new coordinates.

    Their rows are those of the losses and one for each coordinate with a quadratic.
    """

    rows: Records  # (M,) of ROW
    place: IntArray  # (N,), where the losses' rows are among them
    groups: list[WhiteNodes]

    @staticmethod
    def of(parts: Parts, frame: Frame, rank: IntArray) -> Whitened:
        """Change the coordinates of losses that have such ranks (k,), neither kinks nor bounds."""
        rows = np.zeros(len(frame.X), ROW)
        rows["kind"], rows["c"], rows["y"] = SQUARED, 0.5 * frame.curvature, frame.y
        rows["low"], rows["high"], rows["delta"] = -np.inf, np.inf, np.inf
        rows[frame.place] = parts.rows
        groups = [
            _whitened(frame, rows, nodes, r, parts.nodes_a_look)
            for nodes, r in _alike(np.diff(frame.indptr), rank)
        ]
        return Whitened(rows, frame.place, groups)


def _alike(counts: IntArray, rank: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Nodes with equal numbers of rows and ranks, and their rank, where that is not zero."""
    pairs, kind = np.unique(np.stack([counts, rank]), axis=1, return_inverse=True)
    for number, (_, r) in enumerate(pairs.T):
        if r > 0:
            yield np.flatnonzero(kind.ravel() == number), int(r)


def _whitened(
    frame: Frame, rows: Records, nodes: IntArray, rank: int, nodes_a_look: int
) -> WhiteNodes:
    """Factorize nodes that have equal numbers of rows and one rank."""
    m, d = frame.indptr[nodes[0] + 1] - frame.indptr[nodes[0]], frame.X.shape[1]
    at = frame.indptr[nodes][:, None] + np.arange(m)
    root = np.sqrt(rows["c"][at])
    units = np.empty((len(nodes), d))
    X, triangle = np.empty((len(nodes), m, rank)), np.empty((len(nodes), rank, rank))
    basis = None if rank == d < m else np.empty((len(nodes), d, rank))
    for here in pieces(len(nodes), nodes_a_look):
        B = root[here, :, None] * frame.X[at[here]]
        # With null directions, rounding of s is that of its largest entry, in the units given.
        length = np.linalg.norm(B, axis=1) if rank == d else np.ones((len(B), d))
        units[here] = np.where(length > 0.0, length, 1.0)
        B /= units[here, None, :]
        if rank == m:
            V, upper = np.linalg.qr(B.transpose(0, 2, 1))
            X[here], triangle[here] = np.eye(m), upper.transpose(0, 2, 1)
        elif rank == d:
            X[here], triangle[here] = np.linalg.qr(B)
        else:
            X[here], triangle[here], V = _by_singular_values(B, rank)
        if basis is not None:
            basis[here] = V
    X /= root[:, :, None]
    return WhiteNodes(nodes, at, X, basis, triangle, units)


def _by_singular_values(B: FloatArray, rank: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    Q, sigma, V = np.linalg.svd(B, full_matrices=False)
    return (
        Q[:, :, :rank],
        sigma[:, :rank, None] * np.eye(rank),
        V[:, :rank, :].transpose(0, 2, 1),
    )
