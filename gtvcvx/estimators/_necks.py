"""Which clusters of points stand out from the others: those with a neck narrower than their body.

The numbers below were chosen with generated data that have clusters, or none, see
docs/decisions/clusters-in-noise.md.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import cKDTree

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.estimators._point_graph import distinct
from gtvcvx.graph import EmpiricalGraph

# Neighbours among which necks are counted: a share of all points, and between these numbers; with
# few points no more than a share of them. Fewer neighbours find gaps by chance on lines.
SHARE, FEWEST, MOST = 20, 10, 50
LARGEST_SHARE = 4
# A neck may be this part of the body, and more the higher the dimension is, in which chance leaves
# no gaps, but neighbours are few of very many, ...
WIDEST, PER_DIMENSION, LIMIT = 0.4, 0.15, 1.25
# ... less this number of standard errors.
ERRORS = 2.0
# A cluster stands out without a neck, too, if its distance to all others is so many times the
# longest step within it: that is all there is to see where points are few.
APART = 1.5
# Steps of a random walk that may start anew, with this weight of the start.
STEPS, RESTART = 40, 0.1
# Surfaces inside a cluster among which the body is looked for.
LEVELS = np.arange(1, 10) / 10.0


class Necks:
    """Necks and bodies of clusters of points, on a graph of nearest neighbours without weights.

    The neck of a cluster is the number of neighbours across its border, its body the largest number
    across one of nine surfaces inside it: level sets of the probability that a random walk with
    restarts began in the cluster. Equal points are one with a mass, a pair counts by both masses.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        Not all equal.
    graph : EmpiricalGraph
        That of `point_graph`, which connects the points by short edges.
    """

    def __init__(self, points: FloatArray, graph: EmpiricalGraph) -> None:
        self._first, self._of = distinct(points)
        self._mass = np.bincount(self._of).astype(np.float64)
        n = len(self._first)
        k = max(min(FEWEST, n // LARGEST_SHARE), min(n // SHARE, MOST), 1)
        far, near = cKDTree(points[self._first]).query(points[self._first], k + 1)
        # A point is not always the first of its own neighbours, to rounding.
        far, near = far[:, 1:], near[:, 1:]
        self.dimension = _dimension(far)
        pairs = np.column_stack([np.repeat(np.arange(n), k), near.ravel()])
        pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        self._a, self._b = pairs.T
        self._weights = self._mass[self._a] * self._mass[self._b]
        to_and_fro = sp.coo_matrix((self._weights, (self._a, self._b)), (n, n))
        walk = (to_and_fro + to_and_fro.T).tocsr()
        self._walk = sp.diags_array(1.0 / np.asarray(walk.sum(axis=1)).ravel()) @ walk
        self._steps, self._lengths = _short_tree(points, graph)
        self._known: dict[bytes, float] = {}

    def standing(self, labels: IntArray) -> IntArray:
        """Join the clusters (n,) that do not stand out, the widest neck first; return labels (n,).

        A cluster is joined to that with the most neighbours across, relative to its points.
        """
        labels = labels.copy()
        k = int(labels.max()) + 1
        excess = {c: self._excess(labels == c) for c in range(k)}
        while len(excess) > 1:
            worst = max(excess, key=lambda c: excess[c])
            if excess.pop(worst) <= 0.0:
                break
            to = self._neighbour(labels, worst, k)
            labels[labels == worst] = to
            if len(excess) > 1:
                excess[to] = self._excess(labels == to)
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)

    def _excess(self, inside: BoolArray) -> float:
        """By how much the neck of a cluster, given for all points, is too wide."""
        key = inside.tobytes()
        if key not in self._known:
            neck, body, section = self.measured(inside)
            allowed = min(WIDEST + PER_DIMENSION * self.dimension, LIMIT)
            excess = neck / body + ERRORS / math.sqrt(section) - allowed
            self._known[key] = -math.inf if self._is_apart(inside) else excess
        return self._known[key]

    def measured(self, inside: BoolArray) -> tuple[float, float, float]:
        """Neck and body of a cluster (n,), and the number of points along the body."""
        within = inside[self._first]
        start = np.where(within, 1.0, -1.0)
        level = start
        for _ in range(STEPS):
            level = (self._walk @ level + RESTART * start) / (1.0 + RESTART)
        # Where levels are equal up to rounding, they do not depend on the order of the points.
        level = np.where(within, level.round(9), -2.0)
        bounds = np.quantile(level[self._of[inside]], LEVELS)
        height = np.where(within, np.searchsorted(bounds, level, "right"), -1)
        low = np.minimum(height[self._a], height[self._b])
        high = np.maximum(height[self._a], height[self._b])
        # An edge crosses the surfaces above its lower end, up to its upper end.
        count = len(LEVELS) + 2
        across = np.bincount(low + 1, self._weights, count)
        across -= np.bincount(high + 1, self._weights, count)
        number = np.cumsum(across)  # at the border, then at the surfaces
        widest = 1 + int(np.argmax(number[1:-1]))
        if number[widest] == 0.0:  # a walk that cannot leave is everywhere at one level
            return float(number[0]), 1.0, float(inside.sum())
        ends = np.flatnonzero((low < widest) & (high >= widest))
        section = np.unique([self._a[ends], self._b[ends]])
        return float(number[0]), float(number[widest]), float(self._mass[section].sum())

    def _is_apart(self, inside: BoolArray) -> bool:
        a, b = inside[self._steps].T
        within = self._lengths[a & b]
        gap = self._lengths[a != b].min(initial=math.inf)
        in_one_piece = len(within) == inside[self._first].sum() - 1
        return bool(in_one_piece and gap >= APART * within.max(initial=0.0))

    def _neighbour(self, labels: IntArray, c: int, k: int) -> int:
        mine = labels[self._first]
        a, b = mine[self._a], mine[self._b]
        across = (a == c) != (b == c)
        if not across.any():  # no neighbours outside: the nearest ones
            a, b = labels[self._steps].T
            across = (a == c) != (b == c)
            nearest = np.flatnonzero(across)[np.argmin(self._lengths[across])]
            return int(a[nearest] + b[nearest] - c)
        others = (a + b - c)[across]
        number = np.bincount(others, self._weights[across], k)
        return int(np.argmax(number / np.maximum(np.bincount(labels, minlength=k), 1)))


def _dimension(far: FloatArray) -> float:
    """Maximum-likelihood estimate of the intrinsic dimension, from distances (n, k).

    [LB] Levina, Bickel, "Maximum likelihood estimation of intrinsic dimension", NIPS 2004.
    """
    k = far.shape[1]
    far = far[far[:, 0] > 0.0]  # distances of points that differ can be 0 in double precision
    if k < 3 or not len(far):
        return 1.0
    spread = float(np.log(far[:, -1:] / far[:, :-1]).mean())
    return (k - 2) / (k - 1) / spread if spread > 0.0 else math.inf


def _short_tree(points: FloatArray, graph: EmpiricalGraph) -> tuple[IntArray, FloatArray]:
    """Edges (m, 2) of a shortest tree through distinct points, and their lengths."""
    lengths = np.linalg.norm(points[graph.edges[:, 0]] - points[graph.edges[:, 1]], axis=1)
    apart = lengths > 0.0
    size = (graph.n_nodes, graph.n_nodes)
    tree = minimum_spanning_tree(
        sp.coo_matrix((lengths[apart], tuple(graph.edges[apart].T)), size)
    ).tocoo()
    return np.column_stack([tree.row, tree.col]).astype(np.int64), tree.data
