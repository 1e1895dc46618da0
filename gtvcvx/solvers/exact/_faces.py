"""Points with rational entries, and the faces of the total variation on which they lie.

A sign for every edge and coordinate says how the solution jumps there; zero fuses the two ends.
On the face that the signs describe the total variation is linear, so P is a quadratic function of
one number per cluster and coordinate. Its minimizer solves a rational linear system.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray, SignArray
from gtvcvx._deadline import look
from gtvcvx.solvers.exact._data import ExactData, Integers, dyadic, integers
from gtvcvx.solvers.exact._linear import Rational, Ray, solve_semidefinite

# Quotients rounded to double precision differ in the right direction beyond this.
DECIDED = 1e-14
TINY = 1e-290


@dataclass(frozen=True)
class Point:
    """Node variables w = numerators / denominators, both integers (n, d), denominators > 0."""

    numerators: Integers
    denominators: Integers

    @staticmethod
    def from_floats(w: FloatArray) -> Point:
        """Take floats as they are."""
        numerators, k = dyadic(w)
        return Point(numerators, np.full(w.shape, 1 << k, dtype=object))

    @cached_property
    def floats(self) -> FloatArray:
        """The entries, correctly rounded."""
        pairs = zip(self.numerators.ravel(), self.denominators.ravel(), strict=True)
        values = [p / q for p, q in pairs]
        return np.array(values, dtype=np.float64).reshape(self.numerators.shape)

    def difference(self, edge: IntArray, k: int) -> Fraction:
        """Return the jump w_head - w_tail of coordinate k over an edge."""
        head, tail = edge
        p, q = self.numerators, self.denominators
        return Fraction(p[head, k], q[head, k]) - Fraction(p[tail, k], q[tail, k])

    def signs(self, edges: IntArray) -> SignArray:
        """Exact signs of the jumps w_head - w_tail, shape (m, d)."""
        head, tail = self.floats[edges[:, 0]], self.floats[edges[:, 1]]
        jumps = head - tail
        signs = np.sign(jumps).astype(np.int8)
        p, q = self.numerators, self.denominators
        certain = np.abs(jumps) > DECIDED * (np.abs(head) + np.abs(tail)) + TINY
        for e, k in np.argwhere(~certain):
            i, j = edges[e]
            jump = p[i, k] - p[j, k]
            if q[i, k] != q[j, k]:
                jump = p[i, k] * q[j, k] - p[j, k] * q[i, k]
            signs[e, k] = (jump > 0) - (jump < 0)
        return signs


class Memory:
    """Solutions of the systems seen before: a change of the face leaves most of them alone."""

    def __init__(self) -> None:
        self._known: dict[Any, Rational] = {}

    def solve(self, A: Integers, b: Integers, start: Rational) -> Rational | Ray:
        """Solve A x = b, or look it up."""
        key = tuple(A.ravel()), tuple(b)
        if key in self._known:
            return self._known[key]
        found = solve_semidefinite(A, b, start)
        if isinstance(found, Rational) and found.unique:
            self._known[key] = found
        return found


class Face:
    """The points that are equal where the sign is zero and jump as the signs say elsewhere.

    Parameters
    ----------
    data : ExactData
    signs : ndarray of int8, shape (m, d)
        Sign of w_head - w_tail. An edge whose ends other edges fuse counts as fused.

    Attributes
    ----------
    data : ExactData
    labels : ndarray, shape (n, d)
        Cluster of each node and coordinate, numbered through all coordinates.
    n_unknowns : int
        Number of clusters K, all coordinates together.
    signs : ndarray of int8, shape (m, d)
    """

    def __init__(self, data: ExactData, signs: SignArray) -> None:
        self.data = data
        n, d = data.shape
        heads, tails = data.edges.T
        self.labels = np.empty((n, d), dtype=np.int64)
        self.n_unknowns = 0
        for k in range(d):
            fused = signs[:, k] == 0
            links = sp.coo_array((fused[fused], (heads[fused], tails[fused])), shape=(n, n))
            count, labels = sp.csgraph.connected_components(links, directed=False)
            self.labels[:, k] = labels + self.n_unknowns
            self.n_unknowns += count
        self.signs = np.where(self.labels[heads] == self.labels[tails], 0, signs).astype(np.int8)

    def minimizer(self, start: Point, memory: Memory) -> Point:
        """Point where the quadratic function that P is on this face has its least value.

        Where it falls without bound, a point beyond this face, where P would be less than at start
        if it were that quadratic function. What is not determined is taken from start, a point of
        this face.
        """
        values = integers((self.n_unknowns,)), integers((self.n_unknowns,))
        first = np.unique(self.labels.ravel(), return_index=True)[1]
        given = start.numerators.ravel()[first], start.denominators.ravel()[first]
        entries, b = self._system()
        for unknowns in _blocks(entries, self.n_unknowns):
            look()
            A = integers((len(unknowns), len(unknowns)))
            place = {unknown: position for position, unknown in enumerate(unknowns.tolist())}
            for i, unknown in enumerate(unknowns.tolist()):
                for other, entry in entries[unknown].items():
                    A[i, place[other]] = entry
            here = _common(given[0][unknowns], given[1][unknowns])
            x = memory.solve(A, b[unknowns], here)
            if isinstance(x, Ray):
                return self._beyond(start, unknowns, x)
            values[0][unknowns], values[1][unknowns] = x.numerators, x.denominator
        return Point(values[0][self.labels], values[1][self.labels])

    def _system(self) -> tuple[list[dict[int, int]], Integers]:
        """Rows of the matrix, and the right-hand side, of the stationarity equations."""
        data = self.data
        entries: list[dict[int, int]] = [{} for _ in range(self.n_unknowns)]
        for i, k, other in np.argwhere(data.quadratic != 0):
            row, column = entries[self.labels[i, k]], int(self.labels[i, other])
            row[column] = row.get(column, 0) + data.quadratic[i, k, other]
        b = integers((self.n_unknowns,))
        np.add.at(b, self.labels, data.linear)
        for e, k in np.argwhere(self.signs):
            head, tail = self.labels[data.edges[e], k]
            flow = int(self.signs[e, k]) * data.capacities[e]
            b[head] -= flow
            b[tail] += flow
        return entries, b

    def _beyond(self, start: Point, unknowns: IntArray, ray: Ray) -> Point:
        """Go from start along a ray on which P falls, twice as far as the first jump allows."""
        values = integers((self.n_unknowns,))
        values[unknowns] = ray.direction
        largest = max(abs(values))  # keeps the entries within the range of floats
        along = Point(values[self.labels], np.full(self.labels.shape, largest, dtype=object))
        reaches = []
        for e, k in np.argwhere(along.signs(self.data.edges) * self.signs < 0):
            edge = self.data.edges[e]
            reaches.append(abs(start.difference(edge, k) / along.difference(edge, k)))
        if not reaches:
            raise ArithmeticError("the objective is not bounded below: the losses are not convex")
        # At a jump that is zero already any step ends at once; the direction is all that matters.
        step = 2 * min(reaches) or Fraction(1)
        p, q = along.numerators * step.numerator, along.denominators * step.denominator
        return Point(start.numerators * q + p * start.denominators, start.denominators * q)


def _blocks(entries: list[dict[int, int]], size: int) -> list[IntArray]:
    """Return the sets of unknowns that depend on each other, directly or not."""
    pairs = np.array([(i, j) for i, row in enumerate(entries) for j in row]).reshape(-1, 2)
    links = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    count, labels = sp.csgraph.connected_components(links, directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])


def _common(numerators: Integers, denominators: Integers) -> Rational:
    """Bring a vector of fractions to one denominator."""
    denominator = math.lcm(*denominators.tolist())
    return Rational(numerators * (denominator // denominators), denominator)
