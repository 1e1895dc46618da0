"""Exact feasible flows inside a cluster, or a set of nodes that shows that there is none.

On a connected set of nodes, flows u with |u_e| <= cap_e have to satisfy (D^T u)_i = supply_i, where
the supplies add up to zero. A guess is corrected along a spanning tree; should that overload an
edge, the guess, clipped to the capacities, is completed by a maximum flow. All numbers are
integers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verify.flows._integer_flow import IntegerFlow, IntegerNetwork


@dataclass(frozen=True)
class Cut:
    """Nodes that supply more than the edges around them carry.

    They are connected, and so are the other nodes.
    """

    inside: frozenset[int]


class ClusterNetwork:
    """One cluster: its edges, capacities and supplies.

    Parameters
    ----------
    ends : sequence of (head, tail)
        Edges of a connected graph on the nodes 0, ..., len(supplies) - 1.
    capacities : sequence of int
    supplies : sequence of int
        Required (D^T u)_i, with sum zero.
    """

    def __init__(
        self, ends: Sequence[tuple[int, int]], capacities: Sequence[int], supplies: Sequence[int]
    ) -> None:
        self._capacities, self._supplies = capacities, supplies
        self._network = IntegerNetwork(len(supplies), ends, capacities)
        self._incident = self._network.incident

    def feasible_flow(self, guess: Sequence[int]) -> list[int] | Cut:
        """Return a feasible flow near the guess, or a cut that no flow satisfies."""
        pairs = zip(guess, self._capacities, strict=True)
        flow = [max(-capacity, min(capacity, value)) for value, capacity in pairs]
        absorbed = self._absorbed(flow)
        if all(abs(v) <= c for v, c in zip(absorbed, self._capacities, strict=True)):
            return absorbed
        found = self._network.route(self._supplies, flow)
        return self._cut(found) if found.stuck else found.flow

    def _absorbed(self, flow: list[int]) -> list[int]:
        """Send all excess along a spanning tree, leaves to root."""
        out, rest = list(flow), self._network.excess(self._supplies, flow)
        for node, e, parent, sign in reversed(list(self._spanning_tree(flow))):
            out[e] += sign * rest[node]
            rest[parent] += rest[node]
        return out

    def _spanning_tree(self, flow: list[int]) -> Iterator[tuple[int, int, int, int]]:
        """Node, edge, parent and sign of the node's edge: from the root on, most room first."""
        seen = {0}
        heap: list[tuple[int, int, int, int, int]] = []

        def push(parent: int) -> None:
            for e, node, sign in self._incident[parent]:
                if node not in seen:
                    room = self._capacities[e] - abs(flow[e])
                    heapq.heappush(heap, (-room, node, e, parent, -sign))

        push(0)
        while heap:
            _, node, e, parent, sign = heapq.heappop(heap)
            if node not in seen:
                seen.add(node)
                yield node, e, parent, sign
                push(node)

    def _cut(self, found: IntegerFlow) -> Cut:
        """Refine the set in which a maximum flow is stuck to a connected one with connected rest.

        All edges that leave the set are full. So the part of it with the largest excess violates
        by its excess, and of the parts of the rest one violates together with all others.
        """
        parts = self._parts(found.stuck)
        part = max(parts, key=lambda nodes: sum(found.excess[i] for i in nodes))
        everything = set(range(len(self._supplies)))
        rest = self._parts(everything - part)
        outside = max(rest, key=lambda nodes: self._violation(nodes, -1))
        return Cut(frozenset(everything - outside))

    def _violation(self, nodes: set[int], sign: int) -> int:
        """By how much the supply of the nodes, times the sign, exceeds the capacity around them."""
        supply = sum(self._supplies[i] for i in nodes)
        edges = (e for i in nodes for e, other, _ in self._incident[i] if other not in nodes)
        return sign * supply - sum(self._capacities[e] for e in edges)

    def _parts(self, nodes: set[int]) -> list[set[int]]:
        """Split some of the nodes into connected sets."""
        left, parts = set(nodes), []
        while left:
            stack = [left.pop()]
            part = set(stack)
            while stack:
                for _, other, _ in self._incident[stack.pop()]:
                    if other in left:
                        left.remove(other)
                        part.add(other)
                        stack.append(other)
            parts.append(part)
        return parts
