"""Where everything is in a factorization by fronts, as arrays for compiled code."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky._fronts import (
    Fronts,
    filled,
    fronts,
    minimum_degree,
    multiplied,
)


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
        sizes = np.diff(self.node_starts)
        pairs = zip((self.pivots * d).tolist(), (sizes * d).tolist(), strict=True)
        return sum(multiplied(pivots, size) for pivots, size in pairs)

    def entries(self, d: int) -> int:
        """Return how many entries the factor has."""
        return int(self.panel_starts[-1]) * d * d


def plan(n: int, edges: IntArray, d: int, most: float = np.inf) -> Plan | None:
    """Return the plan for blocks d x d at n nodes and edges (m, 2).

    None if it would take more multiplications than `most`, about.
    """
    place = minimum_degree(n, edges)
    columns = filled(place, edges, 2.0 * most / d**3)
    return None if columns is None else _laid_out(fronts(columns, d), place, edges)


def _laid_out(found: Fronts, place: IntArray, edges: IntArray) -> Plan:
    """Return the plan of fronts, whose columns are the places (n,) of the nodes."""
    time = _times(found, len(place))
    when = time[place]  # of each node: when it is eliminated after all
    rows, rests = _rows(found, time)
    look()
    sizes, pivots = _lengths(rows), _lengths(found.pivots)
    flat, starts = _ragged(rows)
    children = _children(found)
    look()
    places = [
        np.searchsorted(rows[parent], rest) if parent >= 0 else rest
        for parent, rest in zip(found.parent, rests, strict=True)
    ]
    look()
    edge_table, edge_starts = _edges(when[edges], np.repeat(np.arange(len(rows)), pivots), rows)
    return Plan(
        pivots,
        np.argsort(when)[flat],
        starts,
        *_ragged(children),
        *_ragged(places),
        edge_table,
        edge_starts,
        _starts(pivots * sizes),
        _most_waiting(sizes - pivots, children),
        int(sizes.max(initial=0)),
    )


def _times(found: Fronts, n: int) -> IntArray:
    """Return when each column (n,) is eliminated."""
    time = np.empty(n, np.int64)
    time[[column for pivots in found.pivots for column in pivots]] = np.arange(n)
    return time


def _rows(found: Fronts, time: IntArray) -> tuple[list[IntArray], list[IntArray]]:
    """Return the times in each front, ascending, and those of its rest alone."""
    rests = [np.sort(time[list(rest)]) if rest else time[:0] for rest in found.rest]
    firsts = np.split(np.arange(len(time)), np.cumsum(_lengths(found.pivots))[:-1])
    return [np.concatenate(both) for both in zip(firsts, rests, strict=True)], rests


def _children(found: Fronts) -> list[list[int]]:
    """Return the fronts whose rests go into each front, the last one first."""
    children: list[list[int]] = [[] for _ in found.parent]
    for front, parent in reversed(list(enumerate(found.parent))):
        if parent >= 0:
            children[parent].append(front)
    return children


def _lengths(lists: Sequence[Sized]) -> IntArray:
    return np.array([len(part) for part in lists], np.int64)


def _starts(lengths: IntArray) -> IntArray:
    """Return where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _ragged(lists: Sequence[Sequence[int]] | Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the entries of all lists, and where each begins."""
    flat = np.concatenate([np.empty(0, np.int64), *(np.asarray(k, np.int64) for k in lists)])
    return flat, _starts(_lengths(lists))


def _edges(
    when: IntArray, front_at: IntArray, rows: Sequence[IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the edges of all fronts, and where those of each begin.

    Parameters
    ----------
    when : ndarray, shape (m, 2)
        When the ends of each edge are eliminated.
    front_at : ndarray, shape (n,)
        The front at each of these times.
    rows : sequence of ndarray
        Times in each front, ascending.
    """
    n, (flat, starts) = len(front_at), _ragged(rows)
    ends = np.sort(when, axis=1)
    owner = front_at[ends[:, 0]]
    # All fronts' times in one ascending list.
    keys = np.repeat(np.arange(len(rows)), _lengths(rows)) * n + flat
    places = [np.searchsorted(keys, owner * n + ends[:, k]) - starts[owner] for k in (0, 1)]
    by_front = np.argsort(owner, kind="stable")
    table = np.stack([np.arange(len(ends)), *places], axis=1)[by_front]
    return table, np.searchsorted(owner[by_front], np.arange(len(rows) + 1)).astype(np.int64)


def _most_waiting(rest: IntArray, children: Sequence[Sequence[int]]) -> int:
    """Return how many blocks of rests wait at most, in the order of elimination."""
    blocks = (rest**2).tolist()
    waiting = most = 0
    for front, below in enumerate(children):
        waiting += blocks[front] - sum(blocks[child] for child in below)
        most = max(most, waiting)
    return most
