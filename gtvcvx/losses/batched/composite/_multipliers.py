"""Best multipliers of many nodes for linear terms, by the proximal points that prox has, too.

The proximal point method on ``L_i - <s_i, .>``, as in `gtvcvx.losses.batched.composite._ascent`,
one step at all nodes after the other. It ends where multipliers give s_i up to rounding; the others
are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.losses.batched.composite._ascent import FIRST_STEP, GROWTH
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.composite._proximal import ProximalPoints
from gtvcvx.losses.node._problem import EPS

# Steps that converge take this many, each a hundred times the one before.
MAX_STEPS = 8
# What a last step moves, and what multipliers may miss of s, as shares of what adds up to s: both
# are rounding, that of all sums in the second one.
GOAL, LEAST_LEAK = 8.0 * EPS, 64.0 * EPS


class Followed(NamedTuple):
    """What was found, and where."""

    z: FloatArray  # (k, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (k, d), of all of g, see `Parts.taken`
    leak: FloatArray  # (k,)
    left: BoolArray  # (k,), nodes for which nothing was found


def follow_multipliers(parts: Parts, s: FloatArray, start: FloatArray) -> Followed:
    """Maximize ``<s_i, w> - L_i(w)`` from the start (k, d), where that is easy.

    For losses without kinks and constraints: elsewhere the best multipliers may belong to points
    that are far away.
    """
    k, d = s.shape
    leak, left = np.full(k, np.inf), np.ones(k, dtype=bool)
    out = Followed(start.copy(), np.zeros(len(parts.rows)), np.zeros((k, d)), leak, left)
    prox, owner, length = ProximalPoints(parts), parts.owner, FIRST_STEP / parts.curvature
    points, trying = prox.points, left.copy()
    points.z[:] = start
    for _ in range(MAX_STEPS):
        before, failed = points.z.copy(), trying.copy()
        prox.follow(before + length[:, None] * s, length, failed)
        moved = np.linalg.norm(points.z - before, axis=1) / length
        t, away, size = parts.taken(s, points.a)
        trying &= ~failed
        good = trying & (moved <= GOAL * size) & (away <= LEAST_LEAK * size)
        rows = good[owner]
        out.z[good], out.a[rows], out.t[good] = points.z[good], points.a[rows], t[good]
        out.leak[good], out.left[good] = away[good], False
        trying &= ~good
        if not trying.any():
            break
        length = length * GROWTH
    return out
