"""Multipliers of the rows of many nodes that give their linear terms, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._frames import Frames
from gtvcvx.losses.batched.multinomial._newton import Target, contrasts, minimize
from gtvcvx.losses.batched.multinomial._rows import Rows


@dataclass(frozen=True)
class NodeProblems:
    """Problems ``min_W L_i(W) + sum_jk mu_ij W_jk^2 / 2 - <s_i, W>`` of k nodes.

    Curvatures mu (k, p) are all that there is, those of the losses included.
    """

    rows: Rows
    mu: FloatArray  # (k, p)
    frames: Frames

    def solve(self, linear: FloatArray, start: FloatArray, accuracy: float) -> Found:
        """Minimize for linear terms (k, p, K) from points (k, p, K), see `minimize`."""
        rows, B = self.rows, contrasts(self.rows.shape[2])
        W, p = np.zeros_like(start), rows.own.astype(float)
        off = np.zeros(len(start), dtype=bool)
        for group in self.frames.groups:
            nodes, at = group.nodes, group.rows
            inner = group.down.transpose(0, 2, 1) @ (linear[nodes] @ B)
            target = Target(group, rows.own[at], rows.c[at], inner)
            ends = minimize(target, group.up @ (start[nodes] @ B), accuracy)
            W[nodes] = (group.down @ ends.V) @ B.T
            p[at], off[nodes] = ends.p, ends.off
        # What all classes have in common is a matter of the quadratics alone.
        common = linear.mean(axis=2)
        W += np.divide(common, self.mu, np.zeros_like(common), where=self.mu > 0.0)[:, :, None]
        return Found(W, p, off)

    def leaks(self, leak: FloatArray, s: FloatArray, W: FloatArray) -> Leaks:
        """Judge what multipliers miss of s, in coordinates in which units do not matter.

        All are of shape (k, p, K), as are the points W that it pairs with.
        """
        share, cost = np.zeros(len(s)), np.zeros(len(s))
        for group in self.frames.groups:
            nodes, down = group.nodes, group.down.transpose(0, 2, 1)
            lost = np.abs(down @ leak[nodes])
            rows = np.abs(group.X) * self.rows.c[group.rows][:, :, None]
            size = np.abs(down @ s[nodes]).max(axis=(1, 2)) + rows.sum(axis=1).max(axis=1)
            share[nodes] = lost.max(axis=(1, 2)) / size
            cost[nodes] = np.sum(lost * np.abs(group.up @ W[nodes]), axis=(1, 2))
        return Leaks(share, cost)


class Leaks(NamedTuple):
    """What multipliers miss of slopes (k,)."""

    share: FloatArray  # as a share of what adds up to them
    cost: FloatArray  # what it pairs with points to, at most


class Found(NamedTuple):
    """Points, and chances of the classes whose multipliers nearly give the linear terms."""

    W: FloatArray  # (k, p, K)
    p: FloatArray  # (N, K)
    off: BoolArray  # (k,), whether the linear term is proved to be off the domain


class Shares(NamedTuple):
    """What multipliers of the rows leave of linear terms s (k, p, K)."""

    taken: FloatArray  # (k, p, K), by the quadratics
    leak: FloatArray  # (k, p, K), by nobody


def shares_of(rows: Rows, p: FloatArray, s: FloatArray) -> Shares:
    """Give to the quadratics what the multipliers of chances p (N, K) leave of s."""
    rest = s - rows.pulled(rows.c[:, None] * softmax.slopes(p, rows.own))
    curved = (rows.mu > 0.0)[:, :, None]
    return Shares(np.where(curved, rest, 0.0), np.where(curved, 0.0, rest))
