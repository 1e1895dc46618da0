"""Half an iteration, compiled: a pass over the nodes or one over the edges, on one thread.

For what has to be done between the two: proximal points that the losses know, and copies of
extrapolated points from other shards.
"""

from __future__ import annotations

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._edges import EdgeStep, edge_block
from gtvcvx.compiled._primal_dual import NodeStep, node_block
from gtvcvx.compiled._thin import ThinStep, thin_node_block
from gtvcvx.compiled._weighted_primal_dual import WeightedEdgeStep, weighted_edge_block


@compiled(fastmath=FAST, allocates=False)
def pass_nodes(
    dims: Dims,
    w: FloatArray,
    nodes: FloatArray,
    step: NodeStep,
    measure: bool,
    room: FloatArray,
) -> float:
    """Update w (n, d) and the extrapolated points, see `node_block`."""
    return node_block(dims, 0, len(w), w, nodes, step, measure, room)


@compiled(fastmath=FAST)
def pass_thin_nodes(dims: Dims, w: FloatArray, nodes: FloatArray, step: ThinStep) -> float:
    """Update w (n, d) and the extrapolated points, see `thin_node_block`."""
    return thin_node_block(dims, 0, len(w), w, nodes, step)


@compiled(fastmath=FAST, allocates=False)
def pass_edges(
    dims: Dims,
    u: FloatArray,
    nodes: FloatArray,
    room: FloatArray,
    arcs: Arcs,
    step: EdgeStep,
    measure: bool,
) -> float:
    """Update u (m, d) and the balance of the nodes (n, 2 d), see `edge_block`."""
    return edge_block(dims, 0, len(nodes), u, nodes, room, arcs, step, measure)


@compiled(fastmath=FAST)
def pass_weighted_edges(
    dims: Dims,
    y: FloatArray,
    nodes: FloatArray,
    arcs: Arcs,
    step: WeightedEdgeStep,
    measure: bool,
) -> float:
    """Update y (m, d) and the balance of the nodes (n, 2 d), see `weighted_edge_block`."""
    return weighted_edge_block(dims, 0, len(nodes), y, nodes, arcs, step, measure)


@compiled(fastmath=FAST, allocates=False)
def complete_nodes(
    dims: Dims,
    prox: FloatArray,
    tau: FloatArray,
    w: FloatArray,
    nodes: FloatArray,
    relaxation: float,
) -> float:
    """Update w (n, d) by proximal points (n, d) that are known, and the extrapolated points.

    Returns ``sum_i ||prox_i - w_i||^2 / tau_i``.
    """
    moved = 0.0
    for i in range(len(tau)):
        square = 0.0
        for k in range(len(dims)):
            change = prox[i, k] - w[i, k]
            square += change * change
            nodes[0, i, k] = prox[i, k] + change
            w[i, k] += relaxation * change
        moved += square / tau[i]
    return moved
