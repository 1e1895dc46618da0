"""Symbolic part of a Cholesky factorization whose entries are blocks of nodes.

Only the graph matters. Nodes are eliminated in an order of minimum degree; those that leave the
same neighbours are eliminated together, in fronts: small dense matrices, whose sizes follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky._symbolic import arrange, eliminate, join
from verify._filling import by_degree, hubs

# Columns that are worked off between two looks at the clock.
A_LOOK = 20_000
# Up to so many nodes sets and lists take less than their compiled twins take to be compiled.
FEW = 3_000
# What columns have an effect on has room for so many entries a node and edge at first.
ROOM = 8

Number = TypeVar("Number", float, FloatArray)


@dataclass(frozen=True)
class FrontPrices:
    """Nanoseconds that a front takes: nodes are eliminated together where that saves some.

    Measured on kNN graphs of 400 to 5,000 nodes with d = 1 to 20.

    Attributes
    ----------
    front : float
        Whatever its size.
    entry : float
        For each entry of a front: set to zero, and added to the next one.
    multiplication : float
        For each multiplication of its elimination.
    """

    front: float = 400.0
    entry: float = 1.0
    multiplication: float = 0.25

    def price(self, pivots: int, size: int) -> float:
        """Return what it takes to eliminate so many variables of a front with so many rows."""
        s, rest = float(size), float(size - pivots)
        entries = (s * s + rest * rest) / 2.0
        return self.front + self.entry * entries + self.multiplication * multiplied(s, rest)


DEFAULTS = FrontPrices()


def multiplied(size: Number, rest: Number) -> Number:
    """Return how many multiplications leave so much of a front with so many rows, about."""
    return (size * size * size - rest * rest * rest) / 6.0


class Elimination(NamedTuple):
    """Which columns are eliminated together, whatever the size of the blocks.

    Attributes
    ----------
    place : ndarray, shape (n,)
        The column of each node.
    first : ndarray, shape (k + 1,)
        The first column of each front; n at the end.
    rest, rest_starts : ndarray, shapes (any,) and (k + 1,)
        Columns that each front has an effect on, all eliminated later, and where they begin.
    parent : ndarray, shape (k,)
        Front that what it leaves is added to; -1 if nothing is left.
    squares : int
        Squares of the numbers of columns that each one has an effect on, added up.
    """

    place: IntArray
    first: IntArray
    rest: IntArray
    rest_starts: IntArray
    parent: IntArray
    squares: int


class Fronts(NamedTuple):
    """Fronts, children before their parents: all descendants of one come right before it.

    Attributes
    ----------
    time : ndarray, shape (n,)
        When each node is eliminated.
    pivots : ndarray, shape (k,)
        How many nodes each front eliminates.
    rest, rest_starts : ndarray, shapes (any,) and (k + 1,)
        When the nodes that each front has an effect on are eliminated, in no order.
    parent : ndarray, shape (k,)
        Front that what it leaves is added to; -1 if nothing is left.
    """

    time: IntArray
    pivots: IntArray
    rest: IntArray
    rest_starts: IntArray
    parent: IntArray


def minimum_degree(n: int, edges: IntArray) -> IntArray:
    """Return the place of each of n nodes in an order of elimination that fills in little.

    Hubs of large graphs are the last ones, and not there for the search.
    """
    hub = hubs(n, edges)
    if n <= FEW or not hub.any():
        return by_degree(n, edges)
    others, last = np.flatnonzero(~hub), np.flatnonzero(hub)
    number = np.cumsum(~hub) - 1
    place = np.empty(n, dtype=np.int64)
    place[others] = by_degree(len(others), number[edges[~hub[edges].any(axis=1)]])
    place[last] = np.arange(len(others), n)
    return place


def elimination(place: IntArray, edges: IntArray, most: float = np.inf) -> Elimination | None:
    """Return what eliminating nodes in an order leaves; None if too much.

    Parameters
    ----------
    place : ndarray, shape (n,)
        When each node is eliminated.
    edges : ndarray, shape (m, 2)
    most : float
        Most squares of the numbers of columns that each has an effect on, added up.
    """
    n = len(place)
    ends = np.sort(place[edges], axis=1)
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], np.arange(n + 1))
    later = np.ascontiguousarray(ends[:, 1])
    if n <= FEW:
        return _eliminated(place, later, starts, most)
    rest, rest_starts = np.empty(ROOM * (n + len(edges)), np.int64), np.zeros(n + 1, np.int64)
    first, (parent, *under_way) = np.empty(n + 1, np.int64), np.full((4, n), -1)
    at = np.zeros(3, np.int64)
    while at[0] < n:
        until = min(int(at[0]) + A_LOOK, n)
        if not eliminate(later, starts, until, rest, rest_starts, first, parent, *under_way, at):
            rest = np.concatenate([rest, np.empty_like(rest)])
        look()
        if at[2] > most:
            return None
    first[at[1]] = n
    first, rest_starts, parent = first[: at[1] + 1], rest_starts[: at[1] + 1], parent[: at[1]]
    front = np.searchsorted(first, parent, side="right") - 1
    return Elimination(place, first, rest[: rest_starts[-1]], rest_starts, front, int(at[2]))


def _eliminated(
    place: IntArray, later: IntArray, starts: IntArray, most: float
) -> Elimination | None:
    """Do the same by sets: compiling what is faster would take longer than small graphs do."""
    neighbours, bounds = later.tolist(), starts.tolist()
    n, squares = len(place), 0
    children: list[list[int]] = [[] for _ in range(n)]
    rests: list[set[int]] = []
    first: list[int] = []
    before: set[int] = set()
    for column in range(n):
        _look(column)
        found = set(neighbours[bounds[column] : bounds[column + 1]])
        for front in children[column]:
            found |= rests[front]
        found.discard(column)
        squares += len(found) ** 2
        if squares > most:
            return None
        if column in before and len(before) == len(found) + 1:
            rests[-1] = found
        else:
            rests.append(found)
            first.append(column)
        if found:
            children[min(found)].append(len(rests) - 1)
        before = found
    sizes = [len(rest) for rest in rests]
    flat = np.fromiter(chain.from_iterable(rests), np.int64, sum(sizes))
    ends = np.array([*first, n], np.int64)
    parent = np.array([min(rest) if rest else -1 for rest in rests], np.int64)
    front_of = np.searchsorted(ends, parent, side="right") - 1
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Elimination(place, ends, flat, begin, front_of, squares)


def _look(count: int) -> None:
    """Look at the clock, now and then."""
    if count % A_LOOK == 0:
        look()


def fronts(found: Elimination, d: int, prices: FrontPrices = DEFAULTS) -> Fronts:
    """Return the fronts that a factorization with blocks d x d goes through."""
    sizes = np.diff(found.rest_starts)
    few = len(found.place) <= FEW
    joined = (_joined if few else _joined_compiled)(found, sizes, d, prices)
    order, pivots, number, time = joined
    look()
    sizes = sizes[order]
    parent = found.parent[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # The entries of `rest` of the fronts that are left, in their order.
    entries = np.repeat(found.rest_starts[order] - starts[:-1], sizes) + np.arange(starts[-1])
    return Fronts(
        time[found.place],
        pivots,
        time[found.rest[entries]],
        starts,
        np.where(parent < 0, -1, number[parent]),
    )


# Fronts that are left in their order, their numbers of columns, the place in that order of what
# each one of all has gone into, and when each column is eliminated.
Joined = tuple[IntArray, IntArray, IntArray, IntArray]


def _joined_compiled(found: Elimination, sizes: IntArray, d: int, prices: FrontPrices) -> Joined:
    """Join fronts with their parents, and order them."""
    k, n = len(found.parent), len(found.place)
    into, pivots, head, following, sibling, order, number = np.empty((7, k), np.int64)
    costs = np.array([prices.front, prices.entry, prices.multiplication])
    join(found.first, sizes, found.parent, d, costs, into, pivots, head, following)
    look()
    time, child = np.empty(n, np.int64), np.full(k + 1, -1)
    room = child, sibling, order, number, time
    count = arrange(found.first, found.parent, into, head, following, *room)
    return order[:count], pivots[order[:count]], number, time


def _joined(found: Elimination, sizes: IntArray, d: int, prices: FrontPrices) -> Joined:
    """Do the same by lists."""
    parents, rests, first = found.parent.tolist(), sizes.tolist(), found.first.tolist()
    k = len(parents)
    columns = [list(range(first[front], first[front + 1])) for front in range(k)]
    into = list(range(k))
    for front, parent in enumerate(parents):
        if parent < 0:
            continue
        few, many = len(columns[front]), len(columns[parent])
        total = many + rests[parent]
        both = prices.price((few + many) * d, (few + total) * d)
        apart = prices.price(few * d, (few + rests[front]) * d)
        if both <= apart + prices.price(many * d, total * d):
            into[front] = parent
            columns[parent] = columns[front] + columns[parent]
    for front in range(k - 1, -1, -1):
        into[front] = into[into[front]]
    children: list[list[int]] = [[] for _ in range(k)]
    stack: list[int] = []
    for front in range(k):
        if into[front] == front:
            above = parents[front]
            (stack if above < 0 else children[into[above]]).append(front)
    order: list[int] = []
    while stack:
        front = stack.pop()
        order.append(front)
        stack.extend(children[front])
    order.reverse()
    place = {front: number for number, front in enumerate(order)}
    flat = np.fromiter(chain.from_iterable(columns[front] for front in order), np.int64, first[-1])
    time = np.empty(len(flat), np.int64)
    time[flat] = np.arange(len(flat))
    pivots = np.array([len(columns[front]) for front in order], np.int64)
    number = np.array([place[target] for target in into], np.int64)
    return np.array(order, np.int64), pivots, number, time
