"""Maximum flow between many sources and many sinks in Python integers, of any size.

The levels of a phase are the residual distances to a deficit, as in [1]_; all excess is pushed down
the levels, the highest first, as far as it goes. What is left at a node has no arc to the level
below any more, so that its distance grows from phase to phase, until no excess reaches a deficit.
A phase takes time proportional to the number of edges, whatever the lengths of the paths: made for
flows that are nearly there, with something left at many nodes.

References
----------
.. [1] E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
   estimation", Soviet Mathematics Doklady 11, 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class IntegerFlow:
    """Result of `IntegerNetwork.route`.

    Attributes
    ----------
    flow : list of int
        Flow along each edge from its first to its second end.
    excess : list of int
        What the flow leaves of each node's supply.
    stuck : set of int
        Nodes that some positive excess still reaches: the smallest set S that maximizes
        supply(S) - cut(S). It is empty when all positive supplies are routed.
    """

    flow: list[int]
    excess: list[int]
    stuck: set[int]


class IntegerNetwork:
    """Undirected graph with capacities, the same in both directions.

    Parameters
    ----------
    n_nodes : int
    edges : sequence of (first, second)
        Ends of the edges, in 0 .. n_nodes - 1.
    capacities : sequence of int

    Attributes
    ----------
    incident : list of list
        Per node: the edges there, each with its other end, and +1 if it starts here.
    capacities : sequence of int
    """

    def __init__(
        self, n_nodes: int, edges: Sequence[Sequence[int]], capacities: Sequence[int]
    ) -> None:
        self.capacities = capacities
        self.incident: list[list[tuple[int, int, int]]] = [[] for _ in range(n_nodes)]
        for e, (first, second) in enumerate(edges):
            self.incident[first].append((e, second, 1))
            self.incident[second].append((e, first, -1))

    def excess(self, supplies: Sequence[int], flow: Sequence[int]) -> list[int]:
        """Return what a flow leaves of the supplies: supply less net outflow, for each node."""
        return [
            supply - sum(sign * flow[e] for e, _, sign in incident)
            for supply, incident in zip(supplies, self.incident, strict=True)
        ]

    def route(self, supplies: Sequence[int], start: Sequence[int]) -> IntegerFlow:
        """Bring as much of the positive supplies to the negative ones as possible.

        Parameters
        ----------
        supplies : sequence of int
            Negative supplies are demands.
        start : sequence of int
            A flow within the capacities to begin with.

        Returns
        -------
        IntegerFlow
            A node that the start took too much from has become a demand, and one that it brought
            too much to a supply: where all supplies can be routed, none of that is left.
        """
        flow, excess = list(start), self.excess(supplies, start)
        while True:
            levels = self._levels(flow, excess)
            sources = [v for v, x in enumerate(excess) if x > 0 and levels[v] >= 0]
            if not sources:
                break
            self._push_down(flow, excess, levels, sources)
        return IntegerFlow(flow, excess, self._reached(flow, excess))

    def _levels(self, flow: list[int], excess: list[int]) -> list[int]:
        """Residual distances to a deficit, -1 where there is no path."""
        capacities = self.capacities
        levels = [0 if x < 0 else -1 for x in excess]
        queue = [v for v, x in enumerate(excess) if x < 0]
        for v in queue:
            for e, other, sign in self.incident[v]:  # the arc from there carries -sign * flow[e]
                if levels[other] < 0 and capacities[e] + sign * flow[e] > 0:
                    levels[other] = levels[v] + 1
                    queue.append(other)
        return levels

    def _push_down(
        self, flow: list[int], excess: list[int], levels: list[int], sources: list[int]
    ) -> None:
        """Push all excess down the levels, highest level first, as far as it goes."""
        capacities = self.capacities
        by_level: list[list[int]] = [[] for _ in range(max(levels) + 1)]
        for v in sources:
            by_level[levels[v]].append(v)
        for level in range(len(by_level) - 1, 0, -1):
            for v in by_level[level]:
                for e, other, sign in self.incident[v]:
                    if levels[other] != level - 1:
                        continue
                    amount = min(excess[v], capacities[e] - sign * flow[e])
                    if amount <= 0:
                        continue
                    flow[e] += sign * amount
                    excess[v] -= amount
                    if excess[other] == 0:
                        by_level[level - 1].append(other)
                    excess[other] += amount
                    if excess[v] == 0:
                        break

    def _reached(self, flow: list[int], excess: list[int]) -> set[int]:
        """Nodes that some positive excess reaches."""
        queue = [v for v, x in enumerate(excess) if x > 0]
        reached = set(queue)
        for v in queue:
            for e, other, sign in self.incident[v]:
                if other not in reached and self.capacities[e] - sign * flow[e] > 0:
                    reached.add(other)
                    queue.append(other)
        return reached
