"""One scalar total variation problem, divided round by round until no cluster splits.

Everything is scaled to integers, in units of a power of two: nothing that divides a cluster ever
rounds, flow is conserved to the last unit, and a tie is a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.duality._scalar_gap import Slopes
from gtvcvx.solvers.divide._compiled import MOST, NOTHING, PROGRESS, centres, divide, reverse_part
from gtvcvx.solvers.divide._network import Changes, Clusters, Demands, Parts, Skeleton
from verify.flows._network import edge_flow, scratch

T = TypeVar("T", bound=np.generic)

# All demands, and every capacity, come to less than 2^60 units: what adds up to excesses and
# residual capacities stays within 64 bits.
_BITS = 60
# The flow that is returned stays a few ulps inside the capacities, whatever it is divided by and
# multiplied with again.
_INSIDE = 1.0 - 2.0**-50
_SMALLEST_EXPONENT = -1000
# Shares of the work of a round are made about this small, for threads to take in turn; where there
# are few nodes, calls take longer than what they do.
_SHARES, _FEW_NODES = 8, 4_000
# Work between two looks at the clock, in the units of `divide`: some ten milliseconds.
_BUDGET = 1 << 21


class ScalarDivision:
    r"""Divide and conquer for one scalar problem.

    .. math:: \min_x \sum_i f_i(x_i) + \sum_e c_e |x_{e+} - x_{e-}|

    with convex piecewise quadratic functions f_i. A cluster starts as a connected component. In
    each round every cluster takes a t that is best if all its nodes agree, and its nodes' excesses
    -f_i'(t), plus the flow that comes in over its border, are routed to its deficits by a maximum
    flow. If all are routed, x = t and the flow are optimal on the cluster. If not, the excess that
    is stuck reaches the nodes with x_i > t: they form one part, the others the second, and flow
    stays at capacity on the edges between.

    Where slopes jump at t, excesses are intervals. The nodes with x_i > t are those which the least
    excess gets stuck at, those with x_i < t the ones that have deficits left with the largest, and
    the rest stay at t.

    The minimizer found is the smallest one where f_i are quadratic, and for it every level set has
    a node with q_i > 0 in each of its components, or else it could be lowered. So no cluster
    without such a node comes up, except components without any, where x = 0.

    Parameters
    ----------
    skeleton : Skeleton
    slopes : Slopes
        Of f (n,).
    capacities : (m,)
        c > 0.
    hull : (low, high)
        Some minimizer has no values outside of it.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        slopes: Slopes,
        capacities: FloatArray,
        hull: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:
        self._skeleton = skeleton
        self._order = np.argsort(skeleton.components, kind="stable").astype(np.int32)
        self._changes = _changes(skeleton, slopes)
        look()
        self._clusters = _components(skeleton, self._changes, hull)
        q, b = slopes.q[skeleton.nodes], slopes.b[skeleton.nodes]
        self._means = self._centres(q, b)[skeleton.components]
        b = b - q * self._means
        self._changes.position[:] -= self._means[self._changes.node]
        look()
        # With x counted from the centre, the nodes with x > 0, and those with x < 0, supply at most
        # the sum of all slopes there; no demand comes to more than three times that.
        supply = float(_steepest(b, self._changes).sum())
        flow = np.minimum(capacities, supply)
        limit = np.minimum(_degree(skeleton.edges, flow, len(q)), 3.0 * supply)
        exponent = math.frexp(min(3.0 * supply, float(limit.sum())))[1] - _BITS
        unit = math.ldexp(1.0, max(exponent, _SMALLEST_EXPONENT))
        limit = limit / (_INSIDE * unit) + 1.0  # more than fits, in spite of all rounding
        self._data = Demands.of(q, b, limit, unit)
        look()
        capacity = np.floor(flow / unit).astype(np.int64)
        self._network = skeleton.network(capacity, np.zeros(len(q), np.int64))
        self._x = self._means.copy()
        self._work = scratch(len(q))
        self._spare = self._changes.room()
        self._upper, self._lower = np.zeros(len(q), dtype=bool), np.zeros(len(q), dtype=bool)
        # Of the round that is going on: which clusters each call takes, and how far it is.
        self._shares: list[tuple[IntArray, IntArray]] = []

    def _centres(self, q: FloatArray, b: FloatArray) -> FloatArray:
        """Return the minimizer of each component if its nodes agree, 0 where there are no data.

        Clusters are counted from there.
        """
        clusters = self._clusters
        if len(self._changes.node):
            centres(self._order, clusters, q, b, self._changes)
            found = clusters.threshold.copy()
            clusters.threshold[:] = 0.0
        else:
            found = _means(self._skeleton.components, q, b)
        clusters.low[:] -= found
        clusters.high[:] -= found
        return found

    @property
    def finished(self) -> bool:
        """Whether no cluster is left that may split."""
        return len(self._clusters.first) == 0

    @property
    def size(self) -> int:
        """Number of nodes in clusters that may split."""
        return int(np.sum(self._clusters.last - self._clusters.first))

    def tasks(self, look: Callable[[], None] = look) -> list[Callable[[], None]]:
        """Prepare a round: calls, for any threads, that split all clusters between them.

        They look at the clock now and then, and may leave the round by an exception. After that
        `x` is that of the round before, and `flow` keeps to the capacities, but not everywhere to
        flow conservation; the division cannot go on.
        """
        clusters = self._clusters
        lengths = clusters.last - clusters.first
        self._parts = Parts(*(np.zeros(len(lengths), np.int64) for _ in Parts._fields))
        largest_first = np.argsort(-lengths, kind="stable")
        work = np.cumsum(lengths[largest_first])
        shares = [largest_first]
        if work[-1] >= _FEW_NODES:
            goals = np.searchsorted(work, np.arange(1, _SHARES) * (work[-1] / _SHARES))
            shares = np.split(largest_first, np.unique(goals) + 1)
        self._shares = [(share, np.zeros(PROGRESS, np.int64)) for share in shares if len(share)]
        return [partial(self._divide, *share, look) for share in self._shares]

    def _divide(self, chosen: IntArray, progress: IntArray, look: Callable[[], None]) -> None:
        while not divide(
            chosen,
            self._clusters,
            self._order,
            self._data,
            self._changes,
            self._spare,
            self._network,
            self._work,
            self._upper,
            self._lower,
            self._parts,
            progress,
            _BUDGET,
        ):
            look()

    def conclude(self) -> None:
        """End a round whose calls are all made: the parts are the clusters of the next."""
        clusters, parts = self._clusters, self._parts
        lengths = clusters.last - clusters.first
        places = np.repeat(clusters.last - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
        nodes = self._order[places]
        self._x[nodes] = self._means[nodes] + np.repeat(clusters.threshold, lengths)
        number = _pairs(parts.upper, parts.lower)
        some = np.flatnonzero(number)
        number, t = number[some], np.repeat(clusters.threshold, 2)[some]
        first = _pairs(clusters.first, clusters.first + parts.upper)[some]
        begin = _pairs(clusters.begin, clusters.begin + parts.above)[some]
        end = begin + _pairs(parts.above, parts.below)[some]
        low = _pairs(clusters.threshold, clusters.low)[some]
        high = _pairs(clusters.high, clusters.threshold)[some]
        self._clusters = Clusters(first, first + number, begin, end, low, high, t, some % 2 == 1)
        self._shares = []

    def _settle(self) -> None:
        """Give flows their direction again where a round was left while they had the other."""
        clusters, shares, self._shares = self._clusters, self._shares, []
        for chosen, (through, routed, *_) in shares:
            if routed == NOTHING:
                continue
            c = chosen[through]
            if routed == MOST or clusters.lower[c]:
                first = clusters.first[c] + self._parts.upper[c]
                reverse_part(self._order[first : clusters.last[c]], self._network)

    def x(self) -> FloatArray:
        """Return the thresholds of the nodes' clusters, (n,): the minimizer, when finished."""
        x = np.empty_like(self._x)
        x[self._skeleton.nodes] = self._x
        return x

    def flow(self) -> FloatArray:
        """Return the flow (m,), with the sign of `Solution.u`: optimal, when finished."""
        self._settle()
        units = np.empty(len(self._skeleton.edges), np.int64)
        edge_flow(self._network, units)
        return units.astype(np.float64) * (_INSIDE * self._data.unit)


def _changes(skeleton: Skeleton, slopes: Slopes) -> Changes:
    """Return the changes of slopes, component by component, in ascending order in each."""
    if not len(slopes.node):
        none = np.empty(0)
        return Changes(np.empty(0, np.int64), none, none, none)
    place = np.empty_like(skeleton.nodes)
    place[skeleton.nodes] = np.arange(len(place))
    node = place[slopes.node]
    look()
    order = np.lexsort((slopes.position, skeleton.components[node]))
    look()
    return Changes(
        node[order], *(part[order] for part in (slopes.position, slopes.bend, slopes.jump))
    )


def _components(skeleton: Skeleton, changes: Changes, hull: tuple[float, float]) -> Clusters:
    """Return the components of the graph as clusters."""
    last = np.cumsum(np.bincount(skeleton.components))
    end = np.cumsum(np.bincount(skeleton.components[changes.node], minlength=len(last)))
    first, begin = (np.concatenate([[0], ends[:-1]]) for ends in (last, end))
    low, high = (np.full(len(last), bound) for bound in hull)
    return Clusters(
        first, last, begin, end, low, high, np.zeros(len(last)), np.zeros(len(last), dtype=bool)
    )


def _pairs(upper: NDArray[T], lower: NDArray[T]) -> NDArray[T]:
    """Return what belongs to both parts of each cluster, the upper one first: (2 k,)."""
    out = np.empty(2 * len(upper), upper.dtype)
    out[::2], out[1::2] = upper, lower
    return out


def _steepest(linear: FloatArray, changes: Changes) -> FloatArray:
    """Return the largest sizes (n,) of slopes at 0, which is counted from."""
    if not len(changes.node):
        return np.abs(linear)
    n, behind, at = len(linear), changes.position < 0.0, changes.position == 0.0
    added = np.where(behind, changes.jump - changes.bend * changes.position, 0.0)
    left = _sums(changes.node, added, n) - linear
    right = left + _sums(changes.node, np.where(at, changes.jump, 0.0), n)
    return np.maximum(np.abs(left), np.abs(right))


def _degree(edges: IntArray, capacities: FloatArray, n_nodes: int) -> FloatArray:
    """Sum of the capacities at each node, (n,)."""
    return _sums(edges.ravel(), np.repeat(capacities, 2), n_nodes)


def _means(components: IntArray, curvature: FloatArray, linear: FloatArray) -> FloatArray:
    """Minimizer of each component if its nodes agree; 0 where there are no data."""
    count = int(components.max()) + 1
    slope = _sums(components, curvature, count)
    means = _sums(components, linear, count)
    np.divide(means, slope, out=means, where=slope > 0.0)
    return means


def _sums(groups: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Sum of the values in each of the groups 0 .. count - 1."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64, copy=False)
