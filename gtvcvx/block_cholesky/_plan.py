"""Where everything is in a factorization by fronts, as arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky._fronts import Fronts, elimination, fronts, minimum_degree, multiplied
from gtvcvx.block_cholesky._growth import hopeless
from gtvcvx.graph import EmpiricalGraph

#: Entries of the blocks of all nodes and edges, of which several copies have to fit in memory, and
#: multiplications of a factorization (five seconds; four times that in twice the digits), up to
#: which blocks are factored: by the interior-point method, and by corrections of what it finds.
MOST_ENTRIES, MOST_MULTIPLICATIONS = 12_000_000, 1e10


class Plan(NamedTuple):
    """What is eliminated when, and where it is.

    Ragged lists are stored one after the other, with the place where each begins.

    Attributes
    ----------
    pivots : ndarray, shape (fronts,)
        How many nodes a front eliminates.
    nodes, node_starts : ndarray
        Nodes of each front, those that it eliminates first.
    children, child_starts : ndarray
        Fronts whose rests are added to it, the last one first.
    places, place_starts : ndarray
        Places of the nodes of a front's rest in the front that it is added to.
    edges, edge_starts : ndarray, shapes (m, 3) and (fronts + 1,)
        Edges whose first end a front eliminates: number, and places of both ends.
    panel_starts : ndarray, shape (fronts + 1,)
        Where the factor's rows of each front begin, in blocks.
    waiting : int
        Most blocks of all rests that wait at a time.
    largest : int
        Nodes of the largest front.
    """

    pivots: IntArray
    nodes: IntArray
    node_starts: IntArray
    children: IntArray
    child_starts: IntArray
    places: IntArray
    place_starts: IntArray
    edges: IntArray
    edge_starts: IntArray
    panel_starts: IntArray
    waiting: int
    largest: int

    def multiplications(self, d: int) -> float:
        """Return how many multiplications a factorization with blocks d x d takes, about."""
        sizes = np.diff(self.node_starts) * float(d)
        return float(np.sum(multiplied(sizes, sizes - self.pivots * d)))

    def entries(self, d: int) -> int:
        """Return how many entries the factor has."""
        return int(self.panel_starts[-1]) * d * d


def plan(n: int, edges: IntArray, d: int, most: float = np.inf) -> Plan | None:
    """Return the plan for blocks d x d at n nodes and edges (m, 2).

    None if it would take more multiplications than `most`, about.
    """
    squares = 2.0 * most / d**3
    if hopeless(n, edges, squares):
        return None
    found = elimination(minimum_degree(n, edges), edges, squares)
    return None if found is None else _laid_out(fronts(found, d), edges)


def plan_of(graph: EmpiricalGraph, d: int, most: float) -> Plan | None:
    """Return the same for the edges of a graph, which keeps it: several methods ask for it."""
    return graph.cached(f"plan {d} {most:g}", lambda: plan(graph.n_nodes, graph.edges, d, most))


def _laid_out(found: Fronts, edges: IntArray) -> Plan:
    """Return the plan of fronts that eliminate the ends of edges (m, 2)."""
    n, count = len(found.time), len(found.pivots)
    rests = np.diff(found.rest_starts)
    sizes = found.pivots + rests
    starts, number = _starts(sizes), np.arange(count)
    # The times in all fronts in one ascending list: what a front eliminates comes before its rest.
    front_at = np.repeat(number, found.pivots)
    keys = np.concatenate([front_at * n + np.arange(n), np.repeat(number, rests) * n + found.rest])
    keys.sort()
    look()
    rows = keys - np.repeat(number * n, sizes)
    # Where there is no parent there is no rest either.
    left = np.arange(len(keys)) - np.repeat(starts[:-1], sizes) >= np.repeat(found.pivots, sizes)
    above = np.repeat(found.parent, rests)
    places = np.searchsorted(keys, above * n + rows[left]) - starts[above]
    look()
    edge_table, edge_starts = _edges(found.time[edges], front_at, keys, starts)
    children, child_starts = _children(found.parent)
    return Plan(
        found.pivots,
        np.argsort(found.time)[rows],
        starts,
        children,
        child_starts,
        places,
        found.rest_starts,
        edge_table,
        edge_starts,
        _starts(found.pivots * sizes),
        _most_waiting(rests, found.parent),
        int(sizes.max(initial=0)),
    )


def _starts(lengths: IntArray) -> IntArray:
    """Return where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _children(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Return the fronts whose rests go into each front, the last one first, and their starts."""
    backwards = np.argsort(parent[::-1], kind="stable")
    children = (len(parent) - 1 - backwards)[np.count_nonzero(parent < 0) :]
    return children, _starts(np.bincount(parent[children], minlength=len(parent)))


def _edges(
    when: IntArray, front_at: IntArray, keys: IntArray, starts: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the edges of all fronts, and where those of each begin.

    Parameters
    ----------
    when : ndarray, shape (m, 2)
        When the ends of each edge are eliminated.
    front_at : ndarray, shape (n,)
        The front at each of these times.
    keys, starts : ndarray
        The times in all fronts, n times the number of the front added, ascending; and where those
        of each front begin.
    """
    n, ends = len(front_at), np.sort(when, axis=1)
    owner = front_at[ends[:, 0]]
    places = [np.searchsorted(keys, owner * n + ends[:, k]) - starts[owner] for k in (0, 1)]
    by_front = np.argsort(owner, kind="stable")
    table = np.stack([np.arange(len(ends)), *places], axis=1)[by_front]
    return table, np.searchsorted(owner[by_front], np.arange(len(starts)))


def _most_waiting(rests: IntArray, parent: IntArray) -> int:
    """Return how many blocks of rests wait at most, in the order of elimination."""
    blocks, has_one = rests**2, parent >= 0
    taken = np.zeros_like(blocks)
    np.add.at(taken, parent[has_one], blocks[has_one])
    return int(np.cumsum(blocks - taken).max(initial=0))
