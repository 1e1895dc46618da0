"""What users give for the losses of a graph, as one stacked loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gtvcvx.losses._loss import Loss
from gtvcvx.losses.batched._stacked import StackedLoss

if TYPE_CHECKING:  # numba and NetworkX come with graphs; who has one has loaded them
    from gtvcvx.graph import EmpiricalGraph

Losses = StackedLoss | Sequence[Loss] | Mapping[Any, Loss]


def stacked(losses: Losses, graph: EmpiricalGraph) -> StackedLoss:
    """Bring what a user gives for `losses` into batches that cover all nodes of the graph.

    Parameters
    ----------
    losses : list of Loss, dict of node label to Loss, or StackedLoss
    graph : EmpiricalGraph
    """
    if isinstance(losses, StackedLoss):
        return losses.of_graph(graph.n_nodes)
    if isinstance(losses, Mapping):
        named = [(_node_of(label, graph), loss) for label, loss in losses.items()]
    elif isinstance(losses, Sequence):
        if len(losses) != graph.n_nodes:
            raise ValueError(
                f"losses: one loss for each of the {graph.n_nodes} nodes is expected, "
                f"got {len(losses)}"
            )
        named = list(enumerate(losses))
    else:
        raise TypeError(
            "losses: a sequence of losses, a mapping of node label to loss, or a stacked loss is "
            f"expected, got {type(losses).__name__}"
        )
    dim = _common_dim(named, graph)
    kinds: dict[Hashable, list[tuple[int, Loss]]] = {}
    for i, loss in named:
        placed = loss.placed(repr(graph.nodes[i]), dim)
        kinds.setdefault(placed.kind, []).append((i, placed))
    parts = [
        (np.array([i for i, _ in group]), type(group[0][1]).batch([loss for _, loss in group], dim))
        for group in kinds.values()
    ]
    return StackedLoss(parts, dim).completed(graph.n_nodes)


def _node_of(label: Hashable, graph: EmpiricalGraph) -> int:
    if label not in graph.index:
        raise ValueError(f"losses: {label!r} is not a node of the graph")
    return graph.index[label]


def _common_dim(named: Sequence[tuple[int, Loss]], graph: EmpiricalGraph) -> int:
    dim, first = None, 0
    for i, loss in named:
        if not isinstance(loss, Loss):
            raise TypeError(
                f"losses: node {graph.nodes[i]!r} has {loss!r}, which is not a gtvcvx loss"
            )
        if loss.dim is None:
            continue
        if dim is None:
            dim, first = loss.dim, i
        elif loss.dim != dim:
            raise ValueError(
                f"losses: node {graph.nodes[i]!r} has dimension {loss.dim}, "
                f"node {graph.nodes[first]!r} has {dim}"
            )
    if dim is None:
        raise ValueError(
            "losses: all nodes have ZeroLoss(), or other losses of any dimension, so that d is not "
            "known; use StackedLoss([], dim=d) in their sum"
        )
    return dim
