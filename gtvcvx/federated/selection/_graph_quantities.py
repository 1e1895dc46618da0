"""How good a graph is, and the constants of it that the error bounds of [FedADMM] are made of."""

from __future__ import annotations

import math

import numpy as np

from gtvcvx._arrays import is_integer, is_number
from gtvcvx.graph import EmpiricalGraph


def graph_fidelity(graph: EmpiricalGraph, true_graph: EmpiricalGraph) -> float:
    r"""Fidelity of a graph to the true one, in (0, 1]: 1 if it joins equal nodes and all of them.

    .. math:: \frac{K(G_0)}{K(G) + |E \setminus E_0|}

    K counts connected components. It takes the truth to know it; weights do not matter.

    Parameters
    ----------
    graph : EmpiricalGraph
        G, after a selection say.
    true_graph : EmpiricalGraph
        G_0, on the same nodes: it joins the nodes whose parameters are equal.

    Raises
    ------
    ValueError
        The graphs have different nodes.
    """
    if list(graph.nodes) != list(true_graph.nodes):
        raise ValueError("true_graph: the nodes of graph, in the same order, are expected")
    n = graph.n_nodes
    keys, true_keys = (g.edges[:, 0] * n + g.edges[:, 1] for g in (graph, true_graph))
    wrong = int(np.sum(~np.isin(keys, true_keys)))
    parts, true_parts = (int(g.components.max()) + 1 for g in (graph, true_graph))
    return true_parts / (parts + wrong)


def edge_amplification(graph: EmpiricalGraph) -> float:
    """Return gamma_G, the largest column norm of the pseudo-inverse D^+ of the incidence matrix.

    Time is cubic in the number of nodes; 0 without edges.

    Parameters
    ----------
    graph : EmpiricalGraph
        Its weights do not matter.
    """
    if graph.n_edges == 0:
        return 0.0
    D = graph.incidence
    # D^+ = L^+ D^T. What is added makes L nonsingular, and acts on constants of components alone,
    # which differences across edges do not have.
    same = (graph.components[:, None] == graph.components[None, :]).astype(float)
    constants = same / same.sum(axis=1)
    inverse = np.linalg.inv((D.T @ D).toarray() + constants)
    columns = inverse[:, graph.edges[:, 0]] - inverse[:, graph.edges[:, 1]]
    return float(np.max(np.linalg.norm(columns, axis=0)))


def compatibility_bound(graph: EmpiricalGraph) -> float:
    """Return ``1 / (2 sqrt(max degree))``, a lower bound on the compatibility factor kappa_0.

    Parameters
    ----------
    graph : EmpiricalGraph

    Raises
    ------
    ValueError
        A graph without edges, which has none.
    """
    if graph.n_edges == 0:
        raise ValueError("graph: at least one edge is expected")
    return 1.0 / (2.0 * math.sqrt(float(graph.degrees.max())))


def suggested_lam(graph: EmpiricalGraph, noise: float, rows: int) -> float:
    r"""Return lambda of the order that [FedADMM]'s bounds ask for, up to a constant.

    .. math:: \lambda = \sigma \gamma_G \sqrt{\ln(V) / n}

    It is for losses with one half, ``(1/(2n)) ||y - X w||^2``: `SquaredLoss` takes twice as much.

    Parameters
    ----------
    graph : EmpiricalGraph
        Of V nodes.
    noise : float
        sigma >= 0, standard deviation of the errors.
    rows : int
        n >= 1, rows of each node.

    Raises
    ------
    ValueError
        A number out of range.
    """
    if not is_number(noise) or not 0.0 <= noise < math.inf:
        raise ValueError(f"noise: a finite number >= 0 is expected, got {noise!r}")
    if not is_integer(rows) or rows < 1:
        raise ValueError(f"rows: an integer >= 1 is expected, got {rows!r}")
    return noise * edge_amplification(graph) * math.sqrt(math.log(graph.n_nodes) / rows)
