"""Symbolic part of a Cholesky factorization whose entries are blocks of nodes.

Only the graph matters. Nodes are eliminated in an order of minimum degree; those that leave the
same neighbours are eliminated together, in fronts: small dense matrices, whose sizes follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spilu

from gtvcvx._arrays import IntArray
from gtvcvx._deadline import look

# Columns and fronts that are worked off between two looks at the clock.
A_LOOK = 2_000


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
        rest = size - pivots
        entries = (size**2 + rest**2) / 2.0
        return self.front + self.entry * entries + self.multiplication * multiplied(pivots, size)


DEFAULTS = FrontPrices()


def multiplied(pivots: int, size: int) -> float:
    """Return how many multiplications eliminate so many variables of a front, about."""
    rest = size - pivots
    return (size**3 - rest**3) / 6.0


@dataclass
class Fronts:
    """Fronts, children before their parents.

    Attributes
    ----------
    pivots : list of list of int
        Columns that each front eliminates.
    rest : list of set of int
        Columns that it has an effect on, all eliminated later.
    parent : list of int
        Front that what it leaves is added to; -1 if nothing is left.
    """

    pivots: list[list[int]]
    rest: list[set[int]]
    parent: list[int]

    def size(self, front: int) -> int:
        """Return the number of columns of a front."""
        return len(self.pivots[front]) + len(self.rest[front])


def _look(count: int) -> None:
    """Look at the clock, now and then."""
    if count % A_LOOK == 0:
        look()


def minimum_degree(n: int, edges: IntArray) -> IntArray:
    """Return the place of each of n nodes in an order of elimination that fills in little."""
    adjacency = sp.coo_array((-np.ones(len(edges)), edges.T), shape=(n, n))
    adjacency = adjacency + adjacency.T
    diagonal = 1.0 - np.asarray(adjacency.sum(axis=0)).ravel()
    # Incomplete, since the order alone is of interest: nothing is kept beside the diagonal.
    factor = spilu(
        (adjacency + sp.diags_array(diagonal)).tocsc(),
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factor.perm_c.astype(np.int64)


def filled(place: IntArray, edges: IntArray, most: float) -> list[set[int]] | None:
    """Return the columns that each column of the factor has an effect on; None if too many.

    Parameters
    ----------
    place : ndarray, shape (n,)
        When each node is eliminated.
    edges : ndarray, shape (m, 2)
    most : float
        Most squares of their numbers, added up.
    """
    n = len(place)
    ends = np.sort(place[edges], axis=1)
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], np.arange(n + 1)).tolist()
    later = ends[:, 1].tolist()
    rest: list[set[int]] = []
    children: list[list[int]] = [[] for _ in range(n)]
    total = 0.0
    for column in range(n):
        _look(column)
        found = set(later[starts[column] : starts[column + 1]])
        for child in children[column]:
            found |= rest[child]
        found.discard(column)
        rest.append(found)
        total += len(found) ** 2
        if total > most:
            return None
        if found:
            children[min(found)].append(column)
    return rest


def fronts(columns: list[set[int]], d: int, prices: FrontPrices = DEFAULTS) -> Fronts:
    """Return the fronts of a factor, from what its columns have an effect on, with blocks d x d."""
    return _ordered(_joined(_fundamental(columns), d, prices))


def _fundamental(columns: list[set[int]]) -> Fronts:
    """Put columns together that follow each other and have an effect on the same ones."""
    found, front_of = Fronts([], [], []), []
    for column, rest in enumerate(columns):
        _look(column)
        before = columns[column - 1] if column else set()
        if column in before and len(before) == len(rest) + 1:
            found.pivots[-1].append(column)
            found.rest[-1] = rest
        else:
            found.pivots.append([column])
            found.rest.append(rest)
        front_of.append(len(found.pivots) - 1)
    found.parent = [front_of[min(rest)] if rest else -1 for rest in found.rest]
    return found


def _joined(found: Fronts, d: int, prices: FrontPrices) -> Fronts:
    """Join fronts with their parents, from the leaves on, where that is no more expensive."""
    into = list(range(len(found.parent)))
    for front, parent in enumerate(found.parent):
        _look(front)
        if parent < 0:
            continue
        few, many = len(found.pivots[front]), len(found.pivots[parent])
        both = prices.price((few + many) * d, (few + found.size(parent)) * d)
        apart = prices.price(few * d, found.size(front) * d)
        if both <= apart + prices.price(many * d, found.size(parent) * d):
            into[front] = parent
            found.pivots[parent] = found.pivots[front] + found.pivots[parent]
    for front in reversed(range(len(into))):
        into[front] = into[into[front]]
    return _chosen(found, into)


def _chosen(found: Fronts, into: list[int]) -> Fronts:
    """Return the fronts that are left when some have gone into others."""
    kept = [front for front, target in enumerate(into) if front == target]
    number = {front: k for k, front in enumerate(kept)}
    parent = [found.parent[front] for front in kept]
    return Fronts(
        [found.pivots[front] for front in kept],
        [found.rest[front] for front in kept],
        [-1 if p < 0 else number[into[p]] for p in parent],
    )


def _ordered(found: Fronts) -> Fronts:
    """Return the fronts such that all descendants of one come right before it."""
    children: list[list[int]] = [[] for _ in found.parent]
    stack: list[int] = []
    for front, parent in enumerate(found.parent):
        (stack if parent < 0 else children[parent]).append(front)
    order: list[int] = []
    while stack:
        front = stack.pop()
        order.append(front)
        stack.extend(children[front])
    order.reverse()
    number = {front: k for k, front in enumerate(order)}
    return Fronts(
        [found.pivots[front] for front in order],
        [found.rest[front] for front in order],
        [number.get(found.parent[front], -1) for front in order],
    )
