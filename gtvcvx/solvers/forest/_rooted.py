"""Forests whose nodes are numbered so that parents follow their children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, IntArray, SignArray
from gtvcvx._deadline import look
from gtvcvx.compiled import compiled
from gtvcvx.graph import EmpiricalGraph
from verify.flows._network import Arcs, arcs_of


class RootedForest(NamedTuple):
    """A forest with a root in each tree; a position is a number that children have before parents.

    The positions of a tree are contiguous, and so are those below a node: passes stay near in
    memory.

    Attributes
    ----------
    node : (n,)
        The graph's number of the node at each position.
    parent : (n,)
        Position of the parent; -1 at a root.
    edge : (n,)
        Number of the edge to the parent; -1 at a root.
    sign : (n,) of int8
        1 where the node is the head of that edge, -1 where it is the tail, 0 at a root.
    stops : (k,)
        One beyond the last position, that of the root, of each tree.
    chain : (k,) of bool
        Where no node of the tree has more than two neighbours, and the root is an end.
    in_order : bool
        Whether positions are the nodes' numbers, and edges those of their tails: nothing has to be
        moved then.
    """

    node: IntArray
    parent: IntArray
    edge: IntArray
    sign: SignArray
    stops: IntArray
    chain: BoolArray
    in_order: bool


def tree_nodes(graph: EmpiricalGraph) -> BoolArray:
    """Say which nodes (n,) are in a component without cycles."""
    component = graph.components
    # A connected graph is a tree if it has one edge less than nodes.
    edges = np.bincount(component[graph.edges[:, 0]], minlength=int(component.max()) + 1)
    return (edges < np.bincount(component))[component]


def is_forest(graph: EmpiricalGraph) -> bool:
    """Say whether a graph has no cycle."""
    if graph.n_edges >= graph.n_nodes:
        return False
    return bool(is_chain(graph) or tree_nodes(graph).all())


def is_chain(graph: EmpiricalGraph) -> bool:
    """Say whether the edges are 0 - 1 - ... - n-1, in this order, and no others."""
    return graph.n_edges == graph.n_nodes - 1 and bool(_consecutive(graph.edges))


def rooted_forest(graph: EmpiricalGraph) -> RootedForest:
    """Return the positions of the nodes of a forest, see `is_forest`."""
    n = graph.n_nodes
    if is_chain(graph):
        return _chain(n)
    arcs = arcs_of(n, graph.edges)
    look()
    forest = RootedForest(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int8),
        np.empty(n, np.int64),
        np.empty(n, np.bool_),
        in_order=False,
    )
    trees = _number(graph.edges, arcs, forest)
    # Trees were met from the last position down.
    return forest._replace(stops=forest.stops[:trees][::-1], chain=forest.chain[:trees][::-1])


def _chain(n: int) -> RootedForest:
    """Return the chain 0 - 1 - ... - n-1, in its own order."""
    edge, sign, parent = np.arange(n), np.ones(n, np.int8), np.arange(1, n + 1)
    parent[-1] = edge[-1] = -1
    sign[-1] = 0
    stops, chain = np.array([n]), np.ones(1, np.bool_)
    return RootedForest(np.arange(n), parent, edge, sign, stops, chain, in_order=True)


@compiled
def _consecutive(edges: IntArray) -> bool:
    """Whether edge e goes from e to e + 1, for all e."""
    wrong = 0
    for e in range(len(edges)):
        wrong += edges[e, 0] != e or edges[e, 1] != e + 1
    return wrong == 0


@compiled(nogil=True)
def _number(edges: IntArray, arcs: Arcs, forest: RootedForest) -> int:
    """Write the positions, depth first and from the last one down; return the number of trees.

    Roots have one neighbour at most, so that trees that are chains are numbered from end to end.
    """
    node, parent, edge, sign, stops, chain, _ = forest
    first, last = arcs.start, arcs.stop
    n = len(node)
    position = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int64)  # edges through which nodes are still to be entered
    left, trees = n, 0
    for start in range(n):
        if last[start] - first[start] > 1 or position[start] >= 0:
            continue
        stops[trees], chain[trees] = left, True
        trees += 1
        left -= 1
        position[start] = left
        node[left], parent[left], edge[left], sign[left] = start, -1, -1, 0
        i, top, through = start, 0, -1
        while True:
            if last[i] - first[i] > 2:
                chain[trees - 1] = False
            for k in range(first[i], last[i]):
                e = arcs.directed[k] >> 1
                if e != through:
                    stack[top] = e
                    top += 1
            if top == 0:
                break
            top -= 1
            through = stack[top]
            head, tail = edges[through, 0], edges[through, 1]
            left -= 1
            above, i = (head, tail) if position[head] >= 0 else (tail, head)
            position[i] = left
            node[left], parent[left], edge[left] = i, position[above], through
            sign[left] = 1 if i == head else -1
    return trees
