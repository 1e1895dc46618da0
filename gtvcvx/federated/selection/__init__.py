"""Edge selection by multiple testing, and how good a graph is ([FedADMM]).

Before a federated run, devices that are joined send each other their local minimizers with
covariances, and edges whose ends differ by more than chance are dropped.
"""

from gtvcvx.federated.selection._graph_quantities import (
    compatibility_bound,
    edge_amplification,
    graph_fidelity,
    suggested_lam,
)
from gtvcvx.federated.selection._local_estimate import (
    LocalEstimate,
    local_estimate,
    message_shapes,
)
from gtvcvx.federated.selection._select import EdgeSelection, select_edges, wald_statistics

__all__ = [
    "EdgeSelection",
    "LocalEstimate",
    "compatibility_bound",
    "edge_amplification",
    "graph_fidelity",
    "local_estimate",
    "message_shapes",
    "select_edges",
    "suggested_lam",
    "wald_statistics",
]
