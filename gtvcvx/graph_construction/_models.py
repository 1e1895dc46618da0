"""Graphs of nodes whose own models are similar."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._diagnostics import labelled
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction._neighbours import knn_graph
from gtvcvx.graph_construction._weights import Weights, number
from gtvcvx.losses import Losses, StackedLoss
from gtvcvx.problem import GTVProblem


def local_models(losses: Losses, ridge: float = 1e-3) -> FloatArray:
    """Fit every node's own model, ``argmin_w L_i(w) + (ridge / 2) ||w||^2``.

    Parameters
    ----------
    losses : sequence of Loss, mapping of node label to Loss, or StackedLoss
        As for `GTVProblem`.
    ridge : float
        >= 0. With 0 it is one of the loss's minimizers: that of least norm for squared error.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and a node without data: it has no model of its own.
    """
    return _fitted(_unlinked(losses), ridge)


def model_graph(
    losses: Losses,
    n_neighbors: int,
    *,
    ridge: float = 1e-3,
    weights: Weights = "gaussian",
    bandwidth: float | None = None,
    floor: float = 1e-6,
    mutual: bool = False,
    connect: bool = False,
    nodes: Sequence[Hashable] | None = None,
) -> EmpiricalGraph:
    """Join every node to those whose own models have the nearest parameters.

    It is ``knn_graph(local_models(losses, ridge), n_neighbors, ...)``. Where nodes have fewer data
    points than parameters their own models say little; then a graph from what else is known of
    the nodes is better.

    Parameters
    ----------
    losses, ridge
        See `local_models`.
    n_neighbors, weights, bandwidth, floor, mutual, connect
        See `knn_graph`; distances are Euclidean ones between parameter vectors.
    nodes : sequence of hashable, optional
        Node labels. Default: the keys of a mapping, else ``0 .. n-1``.

    Returns
    -------
    EmpiricalGraph

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and a node without data.

    Notes
    -----
    One local fit a node, batched, and a search for neighbours in d dimensions.
    """
    alone = _unlinked(losses, nodes)
    return knn_graph(
        _fitted(alone, ridge),
        n_neighbors,
        weights=weights,
        bandwidth=bandwidth,
        floor=floor,
        mutual=mutual,
        connect=connect,
        nodes=alone.graph.nodes,
    )


def _unlinked(losses: Losses, nodes: Sequence[Hashable] | None = None) -> GTVProblem:
    """Return the problem of these losses over a graph without edges."""
    if isinstance(losses, Mapping) and nodes is None:
        nodes = list(losses)
    if isinstance(losses, StackedLoss):
        n_nodes = losses.n_named if losses.n_nodes is None else losses.n_nodes
    elif isinstance(losses, (Mapping, Sequence)):
        n_nodes = len(losses) if nodes is None else len(nodes)
    else:
        n_nodes = 1  # for GTVProblem to refuse
    return GTVProblem(EmpiricalGraph(n_nodes, np.empty((0, 2), np.int64), nodes=nodes), losses)


def _fitted(problem: GTVProblem, ridge: float) -> FloatArray:
    if not 0 <= number(ridge, "ridge") < np.inf:
        raise ValueError(f"ridge: a finite number >= 0 is expected, got {ridge!r}")
    empty = np.flatnonzero(~labelled(problem))
    if empty.size:
        raise ValueError(
            f"losses: node {problem.graph.nodes[empty[0]]!r} has no data, so no model of its own"
        )
    n = problem.graph.n_nodes
    if ridge == 0:
        return problem.losses.minimizer(n)
    return problem.losses.prox(np.zeros((n, problem.dim)), np.full(n, 1.0 / ridge))
