"""Exact feasible flows inside a cluster, or a set of nodes that shows that there is none.

On a connected set of nodes, flows u with |u_e| <= cap_e have to satisfy (D^T u)_i = need_i, where
the needs add up to zero. A guess is corrected along a spanning tree; should that overload an edge,
the guess, clipped to the capacities, is completed by a maximum flow [1]_. All numbers are integers.

References
----------
.. [1] E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
   estimation", Soviet Mathematics Doklady 11, 1970.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """Nodes that need more than the edges around them carry.

    They are connected, and so are the other nodes.
    """

    inside: frozenset[int]


class ClusterFlow:
    """One cluster: its edges, capacities and needs.

    Parameters
    ----------
    ends : sequence of (head, tail)
        Edges of a connected graph on the nodes 0, ..., len(needs) - 1.
    capacities : sequence of int
    needs : sequence of int
        Required (D^T u)_i, with sum zero.
    """

    def __init__(
        self, ends: Sequence[tuple[int, int]], capacities: Sequence[int], needs: Sequence[int]
    ) -> None:
        self._capacities, self._needs = capacities, needs
        # Per node: edge, other end, and +1 if more flow on the edge serves the node's need.
        self._incident: list[list[tuple[int, int, int]]] = [[] for _ in needs]
        for e, (head, tail) in enumerate(ends):
            self._incident[head].append((e, tail, 1))
            self._incident[tail].append((e, head, -1))

    def route(self, guess: Sequence[int]) -> list[int] | Cut:
        """Return a feasible flow near the guess, or a cut that no flow satisfies."""
        pairs = zip(guess, self._capacities, strict=True)
        flow = [max(-capacity, min(capacity, value)) for value, capacity in pairs]
        excess = [
            need - sum(sign * flow[e] for e, _, sign in incident)
            for need, incident in zip(self._needs, self._incident, strict=True)
        ]
        absorbed = self._absorbed(flow, excess)
        if all(abs(v) <= c for v, c in zip(absorbed, self._capacities, strict=True)):
            return absorbed
        levels = self._levels(flow, excess)
        while any(excess[i] < 0 for i in levels):
            self._block(flow, excess, levels)
            levels = self._levels(flow, excess)
        return self._cut(excess, levels) if any(excess) else flow

    def _absorbed(self, flow: list[int], excess: list[int]) -> list[int]:
        """Send all excess along a spanning tree, leaves to root."""
        out, rest = list(flow), list(excess)
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

    def _room(self, flow: list[int], e: int, sign: int) -> int:
        return self._capacities[e] - sign * flow[e]

    def _levels(self, flow: list[int], excess: list[int]) -> dict[int, int]:
        """Numbers of edges from nodes in need to all nodes that can serve them."""
        levels = {i: 0 for i, x in enumerate(excess) if x > 0}
        queue = list(levels)
        for node in queue:
            for e, other, sign in self._incident[node]:
                if other not in levels and self._room(flow, e, sign) > 0:
                    levels[other] = levels[node] + 1
                    queue.append(other)
        return levels

    def _block(self, flow: list[int], excess: list[int], levels: dict[int, int]) -> None:
        """Augment along paths on which the level rises, until there is none left."""
        arcs = [iter(incident) for incident in self._incident]
        current = [next(arc, None) for arc in arcs]
        for source in [i for i, level in levels.items() if level == 0]:
            while excess[source] > 0:
                path = self._path(source, flow, excess, levels, arcs, current)
                if path is None:
                    break
                nodes, steps = path
                amount = min(self._room(flow, e, sign) for e, sign in steps)
                amount = min(amount, excess[source], -excess[nodes[-1]])
                for e, sign in steps:
                    flow[e] += sign * amount
                excess[source] -= amount
                excess[nodes[-1]] += amount

    def _path(
        self,
        source: int,
        flow: list[int],
        excess: list[int],
        levels: dict[int, int],
        arcs: list[Iterator[tuple[int, int, int]]],
        current: list[tuple[int, int, int] | None],
    ) -> tuple[list[int], list[tuple[int, int]]] | None:
        """Path with rising levels from the source to a node that has too much; arcs run dry."""
        nodes = [source]
        steps: list[tuple[int, int]] = []
        while excess[nodes[-1]] >= 0:
            node = nodes[-1]
            arc = current[node]
            if arc is None:
                if node == source:
                    return None
                nodes.pop()
                steps.pop()
                current[nodes[-1]] = next(arcs[nodes[-1]], None)
                continue
            e, other, sign = arc
            if levels.get(other) == levels[node] + 1 and self._room(flow, e, sign) > 0:
                nodes.append(other)
                steps.append((e, sign))
            else:
                current[node] = next(arcs[node], None)
        return nodes, steps

    def _cut(self, excess: list[int], reached: Collection[int]) -> Cut:
        """Refine the set that a maximum flow reaches to a connected one with connected rest.

        All edges that leave the set are full. So the part of it with the largest excess violates
        by its excess, and of the parts of the rest one violates together with all others.
        """
        parts = self._parts(set(reached))
        part = max(parts, key=lambda nodes: sum(excess[i] for i in nodes))
        rest = self._parts(set(range(len(excess))) - part)
        outside = max(rest, key=lambda nodes: self._violation(nodes, -1))
        return Cut(frozenset(range(len(excess))) - outside)

    def _violation(self, nodes: set[int], sign: int) -> int:
        """By how much the need of the nodes, times the sign, exceeds the capacity around them."""
        need = sum(self._needs[i] for i in nodes)
        edges = (e for i in nodes for e, other, _ in self._incident[i] if other not in nodes)
        return sign * need - sum(self._capacities[e] for e in edges)

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
