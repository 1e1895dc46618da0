"""Coordinates of node problems in which units of the features do not matter.

With ``B_i = (sqrt(c / 2) X_i; sqrt(mu_i))`` parameters are ``W = T V``, V (r, K), where the columns
of B T are orthonormal: an intercept, a year and an income are as good as any three directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._base import FLOW_TOLERANCE
from gtvcvx.losses.batched.multinomial._rows import Rows


class Frame(NamedTuple):
    """Nodes with m rows and rank r each."""

    nodes: IntArray  # (k,)
    rows: IntArray  # (k, m), their numbers
    X: FloatArray  # (k, m, r), features in the new coordinates
    down: FloatArray  # (k, p, r), T
    up: FloatArray  # (k, r, p), of which T is a right inverse
    ridge: FloatArray  # (k, r, r), T^T diag(mu) T

    def at(self, chosen: BoolArray | IntArray) -> Frame:
        """Return some of the nodes."""
        return Frame(
            self.nodes[chosen],
            self.rows[chosen],
            self.X[chosen],
            self.down[chosen],
            self.up[chosen],
            self.ridge[chosen],
        )


class Frames(NamedTuple):
    """Frames of all nodes, and what they leave out."""

    groups: list[Frame]
    null: FloatArray  # (k, p, p), projectors on the null spaces of B_i


def frames_of(rows: Rows, mu: FloatArray) -> Frames:
    """Return the frames for curvatures mu (k, p) of the features."""
    k, p, K = rows.shape
    groups, null = [], np.zeros((k, p, p))
    for nodes, at in rows.buckets(p * K * K):
        B = _stacked(rows, mu, nodes, at)
        units = np.linalg.norm(B, axis=1)
        units = np.where(units > 0.0, units, 1.0)
        _, sigma, V = np.linalg.svd(B / units[:, None, :], full_matrices=False)
        full = (sigma > FLOW_TOLERANCE * sigma[:, :1]).sum(axis=1) == p
        if full.any():
            down = V[full].transpose(0, 2, 1) / sigma[full, None, :] / units[full, :, None]
            up = sigma[full, :, None] * V[full] * units[full, None, :]
            groups.append(_frame(rows, mu, nodes[full], at[full], down, up))
        for some, r in _by_rank(B[~full]):
            chosen = np.flatnonzero(~full)[some]
            down, up, null[nodes[chosen]] = _deficient(B[chosen], r)
            if r:
                groups.append(_frame(rows, mu, nodes[chosen], at[chosen], down, up))
    return Frames(groups, null)


def _stacked(rows: Rows, mu: FloatArray, nodes: IntArray, at: IntArray) -> FloatArray:
    """Return B_i of nodes with equal numbers of rows, (k, m + p, p)."""
    p = rows.X.shape[1]
    data = np.sqrt(0.5 * rows.c[at])[:, :, None] * rows.X[at]
    return np.concatenate([data, np.sqrt(mu[nodes])[:, :, None] * np.eye(p)], axis=1)


def _frame(
    rows: Rows, mu: FloatArray, nodes: IntArray, at: IntArray, down: FloatArray, up: FloatArray
) -> Frame:
    ridge = down.transpose(0, 2, 1) @ (mu[nodes][:, :, None] * down)
    return Frame(nodes, at, rows.X[at] @ down, down, up, ridge)


def _unit_rows(B: FloatArray) -> FloatArray:
    length = np.linalg.norm(B, axis=2, keepdims=True)
    return B / np.where(length > 0.0, length, 1.0)


def _by_rank(B: FloatArray) -> Iterator[tuple[BoolArray, int]]:
    """Masks of matrices of equal rank, and that."""
    if not len(B):
        return
    sigma = np.linalg.svd(_unit_rows(B), compute_uv=False)
    rank = (sigma > FLOW_TOLERANCE * np.maximum(sigma[:, :1], 1e-300)).sum(axis=1)
    for r in np.unique(rank):
        yield rank == r, int(r)


def _deficient(B: FloatArray, r: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return T, its left inverse and the projectors on the null space for matrices of rank r.

    In the units given: those of the null space are those of the parameters.
    """
    p = B.shape[2]
    V = np.linalg.svd(_unit_rows(B), full_matrices=False)[2][:, :r]
    null = np.eye(p) - V.transpose(0, 2, 1) @ V
    if r == p:
        null = np.zeros_like(null)
    upper = np.linalg.qr(B @ V.transpose(0, 2, 1), mode="r")
    inverse = np.linalg.inv(upper) if r else upper
    return V.transpose(0, 2, 1) @ inverse, upper @ V, null
