"""The compiled pass over the edges of the primal-dual method; its NumPy twin is in the tests.

It goes through blocks of edges: what it needs of the nodes is gathered for a block, the projection
on capacities is vectorized over its edges, without branches, and the ends are told. So no loop is
as short as a node's list of edges, whose end no processor predicts. In high dimension an edge is
a loop of its own.

Rows of ``nodes``, of shape (n, 2 d), are extrapolated points and balances D^T u. The dimension
comes as `gtvcvx.compiled.dims_of` makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._edge_rows import begin_edge, end_edges
from gtvcvx.penalties import CompiledForm

_L2 = int(CompiledForm.L2)
_L1 = int(CompiledForm.L1)
_LINF = int(CompiledForm.LINF)
_SQUARED = int(CompiledForm.SQUARED)

# Edges in a block: enough for what begins and ends it to cost nothing, and few enough for two or
# four coordinates of them to stay in the nearest cache. 64 took a tenth longer, 512 no less.
_BLOCK = 256
# Numbers in a block in high dimension, and of how many edges at least, as many as the processor
# takes at once.
_WIDE, _LANES = 2048, 8
# Without a sign, as the numbers of nodes are.
_ONE, _TWO = np.uint64(1), np.uint64(2)


class EdgeStep(NamedTuple):
    """Update of the edges: the prox of the penalty's conjugate, over-relaxed.

    Attributes
    ----------
    capacities : ndarray, shape (m,)
    sigma : float
        Step size.
    relaxation : float
    kind : tuple of int
        Its length is the penalty's `CompiledForm`, a constant to the compiler: what other penalties
        need is not compiled, the thresholds of linf above all.
    """

    capacities: FloatArray
    sigma: float
    relaxation: float
    kind: tuple[int, ...]

    @staticmethod
    def of(capacities: FloatArray, sigma: float, relaxation: float, code: int) -> EdgeStep:
        """Return the update for a penalty that the passes know."""
        return EdgeStep(capacities, sigma, relaxation, (0,) * code)


def edge_room(dims: Dims, threads: int) -> FloatArray:
    """Return room for the edge passes of so many threads.

    For rows of a block of edges, and one more; in one dimension for one row; in high dimension for
    three vectors of one edge, and what `_wide_thresholds` asks for.
    """
    d = len(dims)
    if d == 1:
        return np.empty((threads, 1, 1, _BLOCK))
    if isinstance(dims, tuple):
        return np.empty((threads, d + 1, _BLOCK))
    return np.empty((threads, 3 * d + (d + 3) * _wide_block(d)))


def _wide_block(d: int) -> int:
    """Return how many edges are in a block in high dimension d."""
    return max(_LANES, _WIDE // d // _LANES * _LANES)


@compiled(fastmath=FAST, allocates=False, inner=True)
def _project_l2(dims: Dims, z: FloatArray, capacities: FloatArray) -> None:
    """Project columns of z on Euclidean balls; the compiler vectorizes over edges."""
    for c in range(len(capacities)):
        square = 0.0
        for k in range(len(dims)):
            square += z[k, c] * z[k, c]
        scale = capacities[c] / max(capacities[c], np.sqrt(square))
        for k in range(len(dims)):
            z[k, c] *= scale


@compiled(fastmath=FAST, allocates=False, inner=True)
def _project_linf(dims: Dims, z: FloatArray, capacities: FloatArray) -> None:
    """Project columns of z on balls of the l1 norm, by soft thresholds in the row below.

    A threshold rises until no entry falls below it: each time one does, or it stays.
    """
    d = len(dims)
    thresholds = z[d]
    thresholds[:] = 0.0
    for _ in range(d):
        for c in range(len(capacities)):
            total, count = -capacities[c], 0.0
            for k in range(d):
                above = abs(z[k, c]) > thresholds[c]
                total += abs(z[k, c]) if above else 0.0
                count += 1.0 if above else 0.0
            thresholds[c] = max(thresholds[c], total / max(count, 1.0))
    for k in range(d):
        for c in range(len(capacities)):
            low = thresholds[c]
            z[k, c] = max(z[k, c] - low, 0.0) + min(z[k, c] + low, 0.0)


@compiled(fastmath=FAST, allocates=False, inner=True)
def _conjugate_prox(
    dims: Dims, z: FloatArray, capacities: FloatArray, sigma: float, kind: tuple[int, ...]
) -> None:
    """Apply the prox of the penalty's conjugate to the first columns of z (d + 1, edges)."""
    # The compiler leaves out the branches that are not taken.
    if len(kind) == _L2:
        _project_l2(dims, z, capacities)
    elif len(kind) == _LINF:
        _project_linf(dims, z, capacities)
    elif len(kind) == _L1:
        for k in range(len(dims)):
            for c in range(len(capacities)):
                z[k, c] = min(capacities[c], max(-capacities[c], z[k, c]))
    else:
        for k in range(len(dims)):
            for c in range(len(capacities)):
                z[k, c] *= 1.0 / (1.0 + sigma / capacities[c])


@compiled(fastmath=FAST, allocates=False, inner=True)
def _scalar_edges(
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    z: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Do what `edge_block` does in one dimension, where all norms are one, and flows are a row."""
    sigma, relaxation, rows = step.sigma, step.relaxation, u.reshape(u.size)
    # Taken as rows of two: how long the rows of `nodes` are is no constant to the compiler.
    ends = nodes.reshape(nodes.size)
    moved = 0.0
    begin, end = arcs.starts[first], arcs.starts[last]
    for at in range(begin, end, _BLOCK):
        capacities, flow = step.capacities[at : min(at + _BLOCK, end)], rows[at:end]
        heads, tails = arcs.heads[at:end], arcs.tails[at:end]
        for c in range(len(capacities)):
            z[c] = ends[_TWO * np.uint64(heads[c])] - ends[_TWO * np.uint64(tails[c])]
        if len(step.kind) == _SQUARED:
            for c in range(len(capacities)):
                goal = (flow[c] + sigma * z[c]) / (1.0 + sigma / capacities[c])
                z[c] = relaxation * (goal - flow[c])
                flow[c] += z[c]
        else:
            for c in range(len(capacities)):
                goal = min(capacities[c], max(-capacities[c], flow[c] + sigma * z[c]))
                z[c] = relaxation * (goal - flow[c])
                flow[c] += z[c]
        if measure:
            for c in range(len(capacities)):
                moved += z[c] * z[c]
        # What the edges of a head add up to is kept until its last one: it is none of their tails.
        head = heads[0]
        balance = ends[_TWO * np.uint64(head) + _ONE]
        for c in range(len(capacities)):
            if heads[c] != head:
                ends[_TWO * np.uint64(head) + _ONE] = balance
                head = heads[c]
                balance = ends[_TWO * np.uint64(head) + _ONE]
            balance += z[c]
            ends[_TWO * np.uint64(tails[c]) + _ONE] -= z[c]
        ends[_TWO * np.uint64(head) + _ONE] = balance
    return moved / (sigma * relaxation * relaxation)


@compiled(fastmath=FAST, allocates=False, inner=True)
def _narrow_edges(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    z: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Do what `edge_block` does where the dimension is known to the compiler."""
    sigma, d = step.sigma, len(dims)
    moved = 0.0
    begin, end = arcs.starts[first], arcs.starts[last]
    for at in range(begin, end, _BLOCK):
        capacities = step.capacities[at : min(at + _BLOCK, end)]
        heads, tails = arcs.heads[at:end], arcs.tails[at:end]
        for c in range(len(capacities)):
            e, i, j = np.uint64(at + c), np.uint64(heads[c]), np.uint64(tails[c])
            begin_edge(dims, z, c, u, e, nodes, i, j, sigma)
        _conjugate_prox(dims, z, capacities, sigma, step.kind)
        if measure:
            for c in range(len(capacities)):
                for k in range(d):
                    change = z[k, c] - u[at + c, k]
                    moved += change * change
        end_edges(dims, len(capacities), z, u, at, nodes, heads, tails, step.relaxation)
    return moved / sigma


@compiled(fastmath=FAST, allocates=False, inner=True)
def _wide_thresholds(
    d: int,
    at: int,
    end: int,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
) -> None:
    """Find the soft thresholds of edges from ``at`` to ``end - 1``, with linf, in high dimension.

    As many as room (d + 3, edges) has columns. Thresholds, in its first row, rise until no entry
    falls below them: the compiler vectorizes over edges.
    """
    thresholds, totals, counts, sizes = room[0], room[1], room[2], room[3:]
    edges = min(len(thresholds), end - at)
    capacities, sigma = step.capacities[at : at + edges], step.sigma
    for c in range(edges):
        e, i, j = np.uint64(at + c), np.uint64(arcs.heads[at + c]), np.uint64(arcs.tails[at + c])
        for k in range(d):
            sizes[k, c] = abs(u[e, k] + sigma * (nodes[i, k] - nodes[j, k]))
    # The largest entry less the capacity is below the threshold, unless that is zero.
    for c in range(edges):
        thresholds[c] = 0.0
    for k in range(d):
        for c in range(edges):
            thresholds[c] = max(thresholds[c], sizes[k, c] - capacities[c])
    for _ in range(d):
        for c in range(edges):
            totals[c], counts[c] = -capacities[c], 0.0
        for k in range(d):
            for c in range(edges):
                above = sizes[k, c] > thresholds[c]
                totals[c] += sizes[k, c] if above else 0.0
                counts[c] += 1.0 if above else 0.0
        risen = 0.0
        for c in range(edges):
            threshold = max(thresholds[c], totals[c] / max(counts[c], 1.0))
            risen += threshold - thresholds[c]
            thresholds[c] = threshold
        if not risen > 0.0:
            break


@compiled(fastmath=FAST, allocates=False, inner=True)
def _wide_edges(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    kind: tuple[int, ...],
    measure: bool,
) -> float:
    """Do what `edge_block` does in high dimension: loops over coordinates are long enough."""
    starts, tails, capacities = arcs.starts, arcs.tails, step.capacities
    sigma, relaxation, d = step.sigma, step.relaxation, len(dims)
    own, gathered, z = room[:d], room[d : 2 * d], room[2 * d : 3 * d]
    block = room[3 * d :].reshape((d + 3, (len(room) - 3 * d) // (d + 3)))
    known = begun = starts[first]  # thresholds of these edges
    moved = 0.0
    for i in range(first, last):
        for k in range(d):
            own[k], gathered[k] = nodes[i, k], 0.0
        for e in range(starts[i], starts[i + 1]):
            j, cap = tails[e], capacities[e]
            square, scale = 0.0, 1.0
            for k in range(d):
                z[k] = u[e, k] + sigma * (own[k] - nodes[j, k])
                square += z[k] * z[k]
            if len(kind) == _L1:
                for k in range(d):
                    z[k] = min(cap, max(-cap, z[k]))
            elif len(kind) == _LINF:
                if e == known:
                    _wide_thresholds(d, e, starts[last], u, nodes, block, arcs, step)
                    begun, known = e, e + block.shape[1]
                threshold = block[0, e - begun]
                for k in range(d):
                    z[k] = max(z[k] - threshold, 0.0) + min(z[k] + threshold, 0.0)
            elif len(kind) == _SQUARED:
                scale = 1.0 / (1.0 + sigma / cap)
            else:
                scale = cap / max(cap, np.sqrt(square))
            if measure:
                for k in range(d):
                    change = scale * z[k] - u[e, k]
                    moved += change * change
            for k in range(d):
                update = relaxation * (scale * z[k] - u[e, k])
                u[e, k] += update
                gathered[k] += update
                nodes[j, d + k] -= update
        for k in range(d):
            nodes[i, d + k] += gathered[k]
    return moved / sigma


@compiled(fastmath=FAST, allocates=False, inner=True)
def edge_block(
    dims: Dims,
    first: int,
    last: int,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Relaxed update of u (m, d) by the prox of the conjugate, and of D^T u along with it.

    For the edges with heads first .. last - 1. Returns ``sum_e ||prox_e - u_e||^2 / sigma`` over
    them, if it is to be measured.
    """
    # The compiler leaves out the branch that is not taken.
    if room.ndim == 3:
        return _scalar_edges(first, last, u, nodes, room[0, 0], arcs, step, measure)
    if room.ndim == 2:
        return _narrow_edges(dims, first, last, u, nodes, room, arcs, step, measure)
    return _wide_edges(dims, first, last, u, nodes, room, arcs, step, step.kind, measure)
