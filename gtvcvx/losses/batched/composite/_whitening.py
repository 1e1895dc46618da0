"""Node problems in coordinates in which units do not matter.

With the rows' features, and a row more for each coordinate with a quadratic, weighted by their
curvatures and written as ``B_i = Q_i L_i V_i^T C_i``, C_i the lengths of the columns, Q_i and V_i
with orthonormal columns and L_i triangular, the loss is a function of ``z = L V^T C w`` whose rows
have the features Q: an intercept, a year and an income are as good as any three directions. Slopes
change by ``s = C V L^T t``, values and conjugates not at all.

Few rows beside a ridge, one number for all coordinates, are seen in an orthonormal basis of what
they span, where the ridge is as many rows more as there are of theirs; beside that it is alone, and
its points are known.
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


class Ridges(NamedTuple):
    """Ridges ``(mu_i / 2) ||w||^2 - <b_i, w>``, alone beside what the rows span."""

    mu: FloatArray  # (k,), > 0
    linear: FloatArray  # (k, d)

    def points(self, s: FloatArray, basis: FloatArray) -> FloatArray:
        """Return their part of the points (k, d) with slopes s (k, d), beside a basis (k, d, r)."""
        x = (s + self.linear) / self.mu[:, None]
        return np.asarray(x - np.einsum("kdr,kr->kd", basis, np.einsum("kdr,kd->kr", basis, x)))


class WhiteNodes(NamedTuple):
    """Nodes with m rows of rank r each, those of coordinates included."""

    nodes: IntArray  # (k,)
    at: IntArray  # (k, m), numbers of their rows
    X: FloatArray  # (k, m, r), features in the new coordinates
    basis: FloatArray | None  # (k, d, r), V; the identity where there is none
    triangle: FloatArray  # (k, r, r), L
    units: FloatArray  # (k, d), C
    ridges: Ridges | None = None  # beside V, where rows are few

    def piece(self, at: slice) -> WhiteNodes:
        """Return some of the nodes."""
        basis = None if self.basis is None else self.basis[at]
        units = self.units[at]
        ridges = None if self.ridges is None else Ridges(*(part[at] for part in self.ridges))
        return WhiteNodes(
            self.nodes[at], self.at[at], self.X[at], basis, self.triangle[at], units, ridges
        )

    def slopes(self, s: FloatArray) -> FloatArray:
        """Return the slopes (k, r) that are s (k, d) in the coordinates of the losses."""
        x = s / self.units
        if self.basis is not None:
            x = np.einsum("kji,kj->ki", self.basis, x)
        return np.asarray(np.linalg.solve(self.triangle.transpose(0, 2, 1), x[:, :, None]))[:, :, 0]

    def points(self, z: FloatArray, s: FloatArray) -> FloatArray:
        """Return the points of least norm in units of C, (k, d), that are z (k, r).

        Beside what the rows span those of ridges with slopes s (k, d).
        """
        x = np.asarray(np.linalg.solve(self.triangle, z[:, :, None]))[:, :, 0]
        if self.basis is not None:
            x = np.einsum("kji,ki->kj", self.basis, x)
            if self.ridges is not None:
                x += self.ridges.points(s, self.basis)
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
    def beside_ridges(parts: Parts) -> Whitened:
        """Change the coordinates of losses for which `few_beside_ridges` holds."""
        N, counts = len(parts.rows), np.diff(parts.indptr)
        rows = _free_rows(2 * N)
        rows[:N] = parts.rows
        groups = [
            _beside_ridges(parts, rows, np.flatnonzero(counts == count))
            for count in np.unique(counts)
        ]
        return Whitened(rows, np.arange(N), groups)

    @staticmethod
    def of(parts: Parts, frame: Frame, rank: IntArray) -> Whitened:
        """Change the coordinates of losses that have such ranks (k,), neither kinks nor bounds."""
        rows = _free_rows(len(frame.X))
        rows["c"], rows["y"] = 0.5 * frame.curvature, frame.y
        rows[frame.place] = parts.rows
        groups = [
            _whitened(frame, rows, nodes, r, parts.nodes_a_look)
            for nodes, r in _alike(np.diff(frame.indptr), rank)
        ]
        return Whitened(rows, frame.place, groups)


def _free_rows(count: int) -> Records:
    """Return rows of squared errors whose multipliers are free."""
    rows = np.zeros(count, ROW)
    rows["kind"], rows["low"], rows["high"], rows["delta"] = SQUARED, -np.inf, np.inf, np.inf
    return rows


def _beside_ridges(parts: Parts, rows: Records, nodes: IntArray) -> WhiteNodes:
    """Factorize nodes of equal numbers of rows; write their ridges' rows, N after those."""
    N, own = len(parts.rows), parts.coordinates[nodes]
    m, (k, d) = int(parts.indptr[nodes[0] + 1] - parts.indptr[nodes[0]]), own.shape
    at = parts.indptr[nodes][:, None] + np.arange(m)
    ridges = Ridges(np.ascontiguousarray(own["mu"][:, 0]), np.ascontiguousarray(own["linear"]))
    basis, X = np.empty((k, d, m)), np.empty((k, 2 * m, m))
    rows["c"][N + at] = 0.5 * ridges.mu[:, None]
    for here in pieces(k, parts.nodes_a_look):
        basis[here], upper = np.linalg.qr(parts.X[at[here]].transpose(0, 2, 1))
        X[here, :m], X[here, m:] = upper.transpose(0, 2, 1), np.eye(m)
        along = np.einsum("kdr,kd->kr", basis[here], ridges.linear[here])
        rows["y"][N + at[here]] = along / ridges.mu[here, None]
    at = np.concatenate([at, N + at], axis=1)
    root = np.sqrt(rows["c"][at])[:, :, None]
    X, triangle = np.linalg.qr(root * X)
    return WhiteNodes(nodes, at, X / root, basis, triangle, np.ones((k, d)), ridges)


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
