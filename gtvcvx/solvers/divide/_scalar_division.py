"""One scalar total variation problem, divided round by round until no cluster splits.

Everything is scaled to integers, in units of a power of two: nothing that divides a cluster ever
rounds, flow is conserved to the last unit, and a tie is a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.solvers.divide._compiled import PROGRESS, divide, reverse_part
from gtvcvx.solvers.divide._network import Clusters, Demands, Skeleton
from verify.flows._network import edge_flow, scratch

# All demands, and every capacity, come to less than 2^60 units: what adds up to excesses and
# residual capacities stays within 64 bits.
_BITS = 60
# The flow that is returned stays a few ulps inside the capacities, whatever it is divided by and
# multiplied with again.
_INSIDE = 1.0 - 2.0**-50
_SMALLEST_EXPONENT = -1000
# Shares of the work of a round are made about this small, for threads to take in turn.
_SHARES = 8
# Work between two looks at the clock, in the units of `divide`: some ten milliseconds.
_BUDGET = 1 << 21


class ScalarDivision:
    r"""Divide and conquer for one scalar problem.

    .. math:: \min_x \sum_i \tfrac12 q_i x_i^2 - b_i x_i + \sum_e c_e |x_{e+} - x_{e-}|

    A cluster starts as a connected component. In each round every cluster takes the t that is best
    if all its nodes agree, and its nodes' excesses b_i - q_i t, plus the flow that comes in over
    its border, are routed to its deficits by a maximum flow. If all are routed, x = t and the flow
    are optimal on the cluster. If not, the excess that is stuck reaches the nodes with x_i > t:
    they form one half, the others the second, and flow stays at capacity on the edges between.

    The minimizer found is the smallest one, and for it every level set has a node with q_i > 0 in
    each of its components, or else it could be lowered. So no cluster without such a node comes
    up, except components without any, where x = 0.

    Parameters
    ----------
    skeleton : Skeleton
    curvature, linear : (n,)
        q >= 0, and b, which is 0 where q is.
    capacities : (m,)
        c > 0.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        curvature: FloatArray,
        linear: FloatArray,
        capacities: FloatArray,
    ) -> None:
        self._skeleton = skeleton
        n = len(curvature)
        q, b = curvature[skeleton.nodes], linear[skeleton.nodes]
        self._means = _means(skeleton.components, q, b)[skeleton.components]
        b = b - q * self._means
        # With x counted from the mean, the nodes with x > 0, and those with x < 0, supply at most
        # the sum of |b|; no demand comes to more than three times that.
        supply = float(np.abs(b).sum())
        flow = np.minimum(capacities, supply)
        limit = np.minimum(_degree(skeleton.edges, flow, n), 3.0 * supply)
        exponent = math.frexp(min(3.0 * supply, float(limit.sum())))[1] - _BITS
        unit = math.ldexp(1.0, max(exponent, _SMALLEST_EXPONENT))
        limit = limit / (_INSIDE * unit) + 1.0  # more than fits, in spite of all rounding
        self._data = Demands(q, b, limit, np.zeros(n, np.int64), unit)
        capacity = np.floor(flow / unit).astype(np.int64)
        self._network = skeleton.network(capacity, np.zeros(n, np.int64))
        self._x = self._means.copy()
        self._order = np.argsort(skeleton.components, kind="stable").astype(np.int32)
        last = np.cumsum(np.bincount(skeleton.components))
        first = np.concatenate([[0], last[:-1]])
        self._clusters = Clusters(first, last, np.zeros(len(last)), np.zeros(len(last), dtype=bool))
        self._work = scratch(n)
        self._upper = np.zeros(n, dtype=bool)
        # Of the round that is going on: which clusters each call takes, and how far it is.
        self._shares: list[tuple[IntArray, IntArray]] = []

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
        self._sizes = np.zeros(len(lengths), np.int64)
        largest_first = np.argsort(-lengths, kind="stable")
        work = np.cumsum(lengths[largest_first])
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
            self._network,
            self._work,
            self._upper,
            self._sizes,
            progress,
            _BUDGET,
        ):
            look()

    def conclude(self) -> None:
        """End a round whose calls are all made: the halves are the clusters of the next."""
        clusters = self._clusters
        lengths = clusters.last - clusters.first
        places = np.repeat(clusters.last - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
        nodes = self._order[places]
        self._x[nodes] = self._means[nodes] + np.repeat(clusters.threshold, lengths)
        split = self._sizes > 0
        first, last = clusters.first[split], clusters.last[split]
        middle = first + self._sizes[split]
        self._clusters = Clusters(
            np.column_stack([first, middle]).ravel(),
            np.column_stack([middle, last]).ravel(),
            np.repeat(clusters.threshold[split], 2),
            np.tile([False, True], len(first)),
        )
        self._shares = []

    def _settle(self) -> None:
        """Give flows their direction again where a round was left while they had the other."""
        clusters, shares, self._shares = self._clusters, self._shares, []
        for chosen, (through, routing, *_) in shares:
            if routing and clusters.lower[c := chosen[through]]:
                reverse_part(self._order[clusters.first[c] : clusters.last[c]], self._network)

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
