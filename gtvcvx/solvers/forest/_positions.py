"""From the nodes' numbers to positions, and back."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import compiled
from gtvcvx.duality._scalar_gap import Slopes
from gtvcvx.solvers.forest._nodes import Nodes
from gtvcvx.solvers.forest._rooted import RootedForest


def origins(forest: RootedForest, slopes: Slopes) -> FloatArray:
    """Return what values are counted from (n,), by position: sums of large numbers lose digits.

    In each tree the mean of its changes, and where there are none the minimizer of its quadratics.
    """
    n = len(slopes.q)
    some = n if len(slopes.node) else 0
    out = np.empty(n)
    _origins(forest, slopes, np.zeros(some), np.zeros(some), out)
    return out


@compiled
def _origins(
    forest: RootedForest, slopes: Slopes, count: FloatArray, total: FloatArray, out: FloatArray
) -> None:
    """Write what values are counted from; count and total (n,) are zeros, for its own use."""
    own = len(slopes.node)
    for k in range(own):
        count[slopes.node[k]] += 1.0
        total[slopes.node[k]] += slopes.position[k]
    start = 0
    for stop in forest.stops:
        q, b, changes, places = 0.0, 0.0, 0.0, 0.0
        for p in range(start, stop):
            i = forest.node[p]
            q += slopes.q[i]
            b += slopes.b[i]
            if own:
                changes += count[i]
                places += total[i]
        # Of trees with changes b holds slopes of kinks, too.
        origin = places / changes if changes > 0.0 else b / q if q > 0.0 else 0.0
        out[start:stop] = origin
        start = stop


def positioned(
    forest: RootedForest, slopes: Slopes, capacity: FloatArray, shift: FloatArray
) -> Nodes:
    """Return the nodes' slopes by position, of values less the shift (n,)."""
    if forest.in_order:
        q, rise = np.ascontiguousarray(slopes.q), np.ascontiguousarray(slopes.rise)
        return Nodes(q, slopes.b - q * shift, rise, capacity, forest.parent)
    n = len(shift)
    nodes = Nodes(np.empty(n), np.empty(n), np.empty(n), capacity, forest.parent)
    _write(forest, slopes, shift, nodes)
    return nodes


@compiled
def _write(forest: RootedForest, slopes: Slopes, shift: FloatArray, nodes: Nodes) -> None:
    """Write the nodes' slopes by position."""
    for p in range(len(shift)):
        i = forest.node[p]
        nodes.q[p] = slopes.q[i]
        nodes.b[p] = slopes.b[i] - slopes.q[i] * shift[p]
        nodes.rise[p] = slopes.rise[i]


def back(
    forest: RootedForest, x: FloatArray, shift: FloatArray, sent: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return values (n,) and flows (m,); x and sent, by position, may be overwritten."""
    if forest.in_order:
        x += shift
        return x, np.negative(sent[:-1], out=sent[:-1])
    w, u = np.empty(len(x)), np.empty(np.count_nonzero(forest.edge >= 0))
    _back(forest, x, shift, sent, w, u)
    return w, u


@compiled
def _back(
    forest: RootedForest,
    x: FloatArray,
    shift: FloatArray,
    sent: FloatArray,
    w: FloatArray,
    u: FloatArray,
) -> None:
    """Write values (n,) and flows (m,), those by position x and sent to the parents."""
    for p in range(len(x)):
        w[forest.node[p]] = x[p] + shift[p]
        e = forest.edge[p]
        if e >= 0:
            u[e] = -forest.sign[p] * sent[p]
