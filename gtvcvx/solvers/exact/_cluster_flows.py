"""Flows that prove a point optimal, cluster by cluster, or cuts that show where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.solvers.exact._data import ExactData, Integers, integers
from gtvcvx.solvers.exact._faces import Face, Point
from gtvcvx.solvers.exact._feasible_flow import ClusterNetwork, Cut
from gtvcvx.solvers.exact._gradient import Gradient


@dataclass(frozen=True)
class Flow:
    """Edge flows u = numerators / denominators, both integers (m, d), denominators > 0."""

    numerators: Integers
    denominators: Integers


@dataclass(frozen=True)
class Split:
    """An edge and coordinate at which a cluster comes apart, and the sign of the jump there."""

    edge: int
    coordinate: int
    sign: int


class ClusterFlows:
    """Search for optimal flows near a flow u (m, d) in double precision."""

    def __init__(self, data: ExactData, u: FloatArray) -> None:
        self._data = data
        self._guess = integers(u.shape)
        for (e, k), value in np.ndenumerate(u):
            numerator, denominator = value.as_integer_ratio()
            self._guess[e, k] = numerator * data.scale // denominator

    def find(self, point: Point, face: Face) -> tuple[Flow, list[Split]]:
        """Return a flow for a point that minimizes P over its face, and what has to split.

        The flow is at capacity where the point jumps; inside a cluster without a split it
        satisfies (D^T u)_i = -grad L_i(w_i) exactly.
        """
        data = self._data
        flows = face.signs * data.capacities[:, None]
        flow = Flow(flows, np.full(flows.shape, data.scale, dtype=object))
        balance = integers(data.shape)
        np.add.at(balance, data.edges[:, 0], flows)
        np.subtract.at(balance, data.edges[:, 1], flows)
        gradient = Gradient(data, point)
        splits: list[Split] = []
        for k in range(data.shape[1]):
            for nodes, edges in _clusters(data.edges, face, k):
                look()
                if len(nodes) > 1:
                    splits += self._fill_in(nodes, edges, k, gradient, balance, flow)
        return flow, splits

    def _fill_in(
        self,
        nodes: list[int],
        edges: list[int],
        k: int,
        gradient: Gradient,
        balance: Integers,
        flow: Flow,
    ) -> list[Split]:
        """Fill in the flow on the edges of one cluster, or say where it splits."""
        data = self._data
        slopes = [gradient(i, k) for i in nodes]
        common = math.lcm(*{denominator for _, denominator in slopes})
        supplies = [
            -numerator * (common // denominator) - balance[i, k] * common
            for i, (numerator, denominator) in zip(nodes, slopes, strict=True)
        ]
        place = {node: position for position, node in enumerate(nodes)}
        ends = [(place[head], place[tail]) for head, tail in data.edges[edges].tolist()]
        cluster = ClusterNetwork(ends, [data.capacities[e] * common for e in edges], supplies)
        found = cluster.feasible_flow([self._guess[e, k] * common for e in edges])
        if isinstance(found, Cut):
            # The inside supplies more than its edges take: it goes up, with full edges around it.
            sides = [(head in found.inside, tail in found.inside) for head, tail in ends]
            return [
                Split(e, k, int(head) - int(tail))
                for e, (head, tail) in zip(edges, sides, strict=True)
                if head != tail
            ]
        for e, value in zip(edges, found, strict=True):
            # Off the spanning tree the guess itself is left, with its short numbers.
            short, rest = divmod(value, common)
            flow.numerators[e, k] = value if rest else short
            flow.denominators[e, k] = data.scale * common if rest else data.scale
        return []


def _clusters(edges: IntArray, face: Face, k: int) -> list[tuple[list[int], list[int]]]:
    """Nodes and fused edges of every cluster of a coordinate."""
    labels = face.labels[:, k] - face.labels[:, k].min()
    clusters: list[tuple[list[int], list[int]]] = [([], []) for _ in range(labels.max() + 1)]
    for node, label in enumerate(labels.tolist()):
        clusters[label][0].append(node)
    for e in np.flatnonzero(face.signs[:, k] == 0).tolist():
        clusters[labels[edges[e, 0]]][1].append(e)
    return clusters
