"""The whole of a problem in shards at rank 0, where it fits: the problem, and points on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.distributed._parts import Part, Parts
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import stacked_from_terms
from gtvcvx.losses.batched._terms import Term, fields_of
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution


class GatheredProblem(NamedTuple):
    """The problem as it was before it was cut, and how rows of shards lie in it."""

    problem: GTVProblem
    nodes: IntArray  # (n,), in the order in which shards give them
    order: IntArray  # (m,), of the edges in that order, by which they are lexicographic

    def start(self, pair: Sequence[Any], info: dict[str, Any]) -> Solution:
        """Return a pair, as `gathered_pair` has found it, as a solution to start from.

        Parameters
        ----------
        pair : sequence of ndarray
        info : dict
            Of the method that has found the pair.
        """
        graph = self.problem.graph
        w = np.empty((graph.n_nodes, self.problem.dim))
        w[self.nodes] = np.concatenate(pair[::2])
        return Solution(
            w=w,
            u=np.concatenate(pair[1::2])[self.order],
            value=self.problem.value(w),
            dual_value=-np.inf,
            gap=np.inf,
            status="user_limit",
            n_iter=0,
            seconds=0.0,
            solver="",
            nodes=graph.nodes,
            node_gaps=np.zeros(graph.n_nodes),
            edge_gaps=np.zeros(graph.n_edges),
            info=info,
            edges=graph.edges,
        )


def gathered_problem(parts: Parts) -> GatheredProblem | None:
    """Return the whole problem at rank 0, None elsewhere; all workers call this."""
    found = parts.gather([array for part in parts for array in _packed(part)])
    return None if found is None else _unpacked(found, parts)


def gathered_pair(parts: Parts, w: Sequence[Any], u: Sequence[Any]) -> list[Any] | None:
    """Return w of own nodes and u of counted edges by shard at rank 0, None elsewhere."""
    mine = []
    for part, point, flow in zip(parts, w, u, strict=True):
        mine += [point[part.own], flow[part.counted]]
    return parts.gather(mine)


def _packed(part: Part) -> list[Any]:
    """Return what a shard knows of the problem: numbers of nodes are those of the whole."""
    shard = part.shard
    terms = [[term["kind"], *fields_of(term)] for term in shard.terms]
    head = json.dumps({"terms": terms, "labels": shard.labels})
    found = [
        np.frombuffer(head.encode(), np.uint8),
        shard.nodes[part.own],
        shard.nodes[shard.edges[part.counted]],
        shard.weights[part.counted],
    ]
    for term in shard.terms:
        found += [shard.nodes[term["node"]], *(term[name] for name in fields_of(term))]
    return found


def _unpacked(found: Sequence[Any], parts: Parts) -> GatheredProblem:
    arrays, terms = iter(found), list[Term]()
    nodes, edges, weights, labels = [], [], [], dict[int, Any]()
    for text in arrays:
        head = json.loads(text.tobytes())
        nodes.append(next(arrays))
        edges.append(next(arrays))
        weights.append(next(arrays))
        labels |= zip(nodes[-1].tolist(), head["labels"] or (), strict=False)
        for kind, *fields in head["terms"]:
            term = {name: next(arrays) for name in ("node", *fields)}
            terms.append({"kind": kind, **term})
    ends = np.concatenate(edges)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    names = [labels[i] for i in range(parts.n_nodes)] if labels else None
    graph = EmpiricalGraph(parts.n_nodes, ends[order], np.concatenate(weights)[order], names)
    losses = stacked_from_terms(terms, parts.dim).completed(parts.n_nodes)
    problem = GTVProblem(graph, losses, parts.penalty, parts.lam)
    return GatheredProblem(problem, np.concatenate(nodes), order)
