"""Best multipliers of many smooth nodes for linear terms, whatever the units of their columns.

Newton's method in the coordinates of `gtvcvx.losses.batched.composite._whitening`; what it does not
find is left to `gtvcvx.losses.batched.composite._ascent`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._deadline import pieces
from gtvcvx.losses.batched.composite._newton import maximize
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.composite._row_arrays import RowArrays
from gtvcvx.losses.batched.composite._whitening import Whitened
from gtvcvx.losses.node._batch import sizes
from gtvcvx.losses.node._problem import EPS

# What multipliers may miss of s, as a share of what adds up to s: rounding of all sums.
LEAST_LEAK = 64.0 * EPS


class Found(NamedTuple):
    """What was found, and where."""

    z: FloatArray  # (k, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (k, d), of all of g, see `Parts.taken`
    leak: FloatArray  # (k,)
    left: BoolArray  # (k,), nodes for which nothing was found
    off: BoolArray  # (k,), nodes whose s is proved to be off the domain


def smooth_multipliers(parts: Parts, whitened: Whitened, s: FloatArray, start: FloatArray) -> Found:
    """Maximize ``<s_i, w> - L_i(w)`` from the start (k, d).

    For losses without kinks and constraints: elsewhere the best multipliers may belong to points
    that are far away.
    """
    z, left, off = start.copy(), np.zeros(len(s), dtype=bool), np.zeros(len(s), dtype=bool)
    # A node without features has no other multipliers than its slopes.
    every = RowArrays.of(whitened.rows).slopes(np.zeros(len(whitened.rows)))[0]
    for group in whitened.groups:
        for at in pieces(len(group.nodes), parts.nodes_a_look):
            here = group.piece(at)
            nodes = here.nodes
            ends = maximize(
                here,
                RowArrays.of(whitened.rows[here.at]),
                here.slopes(s[nodes]),
                here.coordinates(start[nodes]),
            )
            every[here.at] = ends.a
            z[nodes] = here.points(ends.z, s[nodes])
            left[nodes], off[nodes] = ~(ends.found | ends.off), ends.off
    a = every[whitened.place]
    t, leak, _ = parts.taken(s, a)
    size = sizes(parts.X, parts.rows, parts.indptr, s, a)
    left |= ~np.isfinite(z).all(axis=1) | (~off & ~(leak <= LEAST_LEAK * size))
    return Found(z, a, t, leak, left, off)
