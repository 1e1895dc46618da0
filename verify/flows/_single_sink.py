"""Maximum flow from all nodes of a graph to one sink, and the smallest set that is cut off.

Supplies are injected at the nodes, everything that can reach the sink is brought there, and what
cannot stays where it is. If nothing stays, the flow takes out all supplies; in any case the nodes
that the rest still reaches form the smallest set

    A in argmin { cut(A) - supply(A) : A does not contain the sink }.

For the engine, `verify.flows._push_relabel`, the sink has a deficit as large as all supplies. All
arithmetic is in 64-bit integers, so the answer is exact for the integers it is given. Nobody has to
believe it: a flow and a set are both witnesses that `verify.kernel.partitions` checks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify._arrays import BoolArray, Int32Array, IntArray
from verify._compiled import compiled
from verify.flows._network import (
    Network,
    Scratch,
    arcs_of,
    edge_flow,
    network_without_flow,
    scratch,
)
from verify.flows._push_relabel import push_relabel, reach_from_excess

# Total supply and every capacity stay below this, so that no residual capacity overflows.
LARGEST = 1 << 61
# The sets asked for are often small and cut off from the sink: exact labels tell that soonest.
_UPDATE_INTERVAL = 1


@dataclass(frozen=True)
class SingleSinkFlow:
    """Result of `FlowGraph.route`.

    Attributes
    ----------
    unrouted : int
        Supply that cannot reach the sink: minus the least value of cut(A) - supply(A).
    flow : (m,)
        Net flow along each edge from its first to its second end. It takes out all supplies
        exactly when ``unrouted`` is 0.
    source_side : (n,) of bool
        The smallest set attaining that least value; empty when all supply is routed.
    """

    unrouted: int
    flow: IntArray
    source_side: BoolArray


class FlowGraph:
    """Arcs of an undirected graph, found once and used for many flows.

    Parameters
    ----------
    n_nodes : int
    edges : (m, 2)
        Ends of the edges, integers in 0 .. n_nodes - 1.
    """

    def __init__(self, n_nodes: int, edges: IntArray) -> None:
        self.n_nodes = int(n_nodes)
        self.edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
        self._arcs = arcs_of(self.n_nodes, self.edges)
        self._nodes = np.arange(self.n_nodes, dtype=np.int32)

    def route(self, capacities: IntArray, supplies: IntArray, sink: int) -> SingleSinkFlow:
        """Bring as much supply as possible to the sink.

        Parameters
        ----------
        capacities : (m,)
            Nonnegative capacities of the edges in either direction.
        supplies : (n,)
            Nonnegative supplies; the one of the sink is ignored.
        sink : int

        Returns
        -------
        SingleSinkFlow

        Raises
        ------
        OverflowError
            If the supplies add up to 2^61 or more, or a capacity is that large.
        ValueError
            If there is not one capacity an edge, and one supply a node.
        """
        if capacities.shape != (len(self.edges),) or supplies.shape != (self.n_nodes,):
            raise ValueError("capacities, supplies: one an edge and one a node are expected")
        excess = np.array(supplies, dtype=np.int64)
        excess[sink] = 0
        if float(excess.sum(dtype=np.float64)) >= LARGEST or (
            capacities.size and int(capacities.max()) >= LARGEST
        ):
            raise OverflowError("supplies and capacities must stay below 2^61")
        excess[sink] = -excess.sum()
        network = network_without_flow(self._arcs, capacities, excess)
        flow, source_side = np.empty(len(self.edges), np.int64), np.empty(self.n_nodes, np.bool_)
        _route(self._nodes, network, scratch(self.n_nodes), flow, source_side)
        return SingleSinkFlow(-int(excess[sink]), flow, source_side)


@compiled(nogil=True)
def _route(
    nodes: Int32Array, network: Network, work: Scratch, flow: IntArray, reached: BoolArray
) -> None:
    """Route the excess; write the flow (m,) and the nodes (n,) that the rest reaches.

    One call for all steps: on small graphs calls cost more than the flow.
    """
    push_relabel(nodes, network, work, _UPDATE_INTERVAL)
    reach_from_excess(nodes, network, reached, work.queue)
    edge_flow(network, flow)
