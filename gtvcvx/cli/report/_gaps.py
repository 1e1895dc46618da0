"""Where the gap is: the nodes and edges with the largest shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._diagnostics import edge_jumps, edge_load
from gtvcvx.cli.report._content import Content
from gtvcvx.cli.report._page import Table

SHOWN_SHARES = 10


@dataclass(frozen=True)
class Gaps:
    """Tables of the largest shares, and whose they are."""

    shares_of: str
    nodes: Table
    edges: Table


def gaps(content: Content) -> Gaps | None:
    """Return the largest shares; None where the gap is not finite."""
    node, edge = content.node_gaps, content.edge_gaps
    if node is None or edge is None:
        return None
    problem, labels = content.problem, content.labels
    jumps = edge_jumps(problem, content.solution.w)
    load = edge_load(problem, content.solution.u)
    ends = problem.graph.edges.tolist()
    nodes = [[labels[i], float(node[i])] for i in _largest(node)]
    edges = [
        [*(labels[i] for i in ends[e]), float(edge[e]), float(jumps[e]), float(load[e])]
        for e in _largest(edge)
    ]
    share = "flow / capacity" if problem.penalty.is_norm else "flow / largest flow"
    return Gaps(
        content.shares_of,
        Table("Nodes with the largest shares", ["node", "share"], nodes),
        Table(
            "Edges with the largest shares", ["head", "tail", "share", "jump of w", share], edges
        ),
    )


def _largest(shares: FloatArray) -> list[int]:
    order = np.argsort(-shares, kind="stable")[:SHOWN_SHARES].tolist()
    return [i for i in order if shares[i] > 0]
