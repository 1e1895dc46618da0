"""The empirical graph: nodes that hold local datasets, weighted edges that join similar ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array, integer_array, real_array
from gtvcvx._made_once import made_once
from gtvcvx._pieces import parts_of_rows
from gtvcvx._spatial_weights import read_spatial_weights
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.compiled._components import label_components
from gtvcvx.files._tables import read_edges

_T = TypeVar("_T")

# With fewer edges SciPy is as fast, and there is nothing to compile.
COMPILED_EDGES = 1000


class DoubledEdgesWarning(UserWarning):
    """Edges name every pair of nodes twice, once in each direction, which doubles all weights.

    Parameters
    ----------
    message : str
        What to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class EmpiricalGraph:
    """Undirected weighted graph with oriented incidence matrix.

    Every edge ``e = {i, j}`` is oriented from its tail ``max(i, j)`` to its head ``min(i, j)``, so
    that ``(D w)_e = w_head - w_tail`` ([GTV] section II). Parallel edges are merged by adding
    their weights; edges are kept in lexicographic order of ``(head, tail)``. Isolated nodes and
    several connected components are fine.

    Parameters
    ----------
    n_nodes : int
        Number of nodes n, at least 1.
    edges : array_like of int, shape (m, 2)
        Ends of the edges, in either order.
    weights : array_like of float, shape (m,), optional
        Edge weights A_e, positive and finite. Default 1.
    nodes : sequence of hashable, length n, optional
        Node labels, all different. Default ``0 .. n-1``.
    positions : array_like, shape (n, 2 or more), optional
        Places of the nodes, where pictures draw them. They are no part of a problem: files and
        certificates do not hold them.

    Attributes
    ----------
    positions : ndarray, shape (n, 2), or None

    Raises
    ------
    ValueError
        Naming the edge by its labels: self-loop, end out of range, weight that is not positive
        and finite.
    TypeError
        Edge ends that are not integers, weights that are not numbers, labels without a hash.

    Warns
    -----
    DoubledEdgesWarning
        Every pair is named twice, once in each direction.
    """

    # Graphs pickled by versions without positions have none.
    positions: FloatArray | None = None

    def __init__(
        self,
        n_nodes: int,
        edges: ArrayLike,
        weights: ArrayLike | None = None,
        nodes: Sequence[Hashable] | None = None,
        positions: ArrayLike | None = None,
    ) -> None:
        self.n_nodes = _checked_count(n_nodes)
        self.nodes: Sequence[Any] = _checked_labels(nodes, self.n_nodes)
        named = _checked_ends(edges, self.nodes)
        ends = np.sort(named, axis=1)
        given = _checked_weights(weights, ends, self.nodes)
        self.edges, self.weights = _merged(ends, given, self.nodes)
        if positions is not None:
            self.positions = checked_positions(positions, self.n_nodes)
        if _is_doubled(named, self.edges):
            warnings.warn(
                "edges: every pair of nodes is named twice, once in each direction, as in "
                "adjacency lists of libpysal and geopandas. Weights of parallel edges add up, so "
                "all are doubled. Keep one direction, such as edges[edges[:, 0] < edges[:, 1]], "
                "or use EmpiricalGraph.from_adjacency or from_pysal",
                DoubledEdgesWarning,
                stacklevel=2,
            )

    @classmethod
    def from_networkx(cls, G: nx.Graph, weight: str | None = "weight") -> EmpiricalGraph:
        """Take an undirected NetworkX graph, its labels and its weights.

        Parameters
        ----------
        G : networkx.Graph or networkx.MultiGraph
            Directed graphs are refused: their two directions would have to be merged by guessing.
        weight : str or None
            Edge attribute that holds A_e; edges without it weigh 1, as in NetworkX. ``None``: all
            edges weigh 1.
        """
        if not isinstance(G, nx.Graph):
            raise TypeError(f"G: a networkx.Graph is expected, got {type(G).__name__}")
        if G.is_directed():
            raise ValueError(
                "G: an undirected graph is expected; convert a directed one with G.to_undirected()"
            )
        labels = list(G.nodes)
        index = {label: i for i, label in enumerate(labels)}
        ends, values = [], []
        for tail, head, attributes in G.edges(data=True):
            ends.append((index[tail], index[head]))
            values.append(1.0 if weight is None else attributes.get(weight, 1.0))
        try:
            return cls(len(labels), np.array(ends, dtype=np.int64).reshape(-1, 2), values, labels)
        except (TypeError, ValueError) as error:
            raise type(error)(f"G: {error}") from error

    @classmethod
    def from_adjacency(
        cls, adjacency: Any, nodes: Sequence[Hashable] | None = None
    ) -> EmpiricalGraph:
        """Take a symmetric (n, n) weight matrix, SciPy sparse or dense; zero means no edge."""
        given = adjacency if sp.issparse(adjacency) else real_array(adjacency, "adjacency")
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise ValueError(f"adjacency: a square matrix is expected, got shape {given.shape}")
        matrix = sp.coo_array(given)
        matrix.data = real_array(matrix.data, "adjacency")
        matrix.sum_duplicates()
        wrong = np.flatnonzero(~np.isfinite(matrix.data))
        if wrong.size:
            i, j = int(matrix.row[wrong[0]]), int(matrix.col[wrong[0]])
            raise ValueError(
                f"adjacency: entry ({i}, {j}) is {matrix.data[wrong[0]]}, "
                "a finite number is expected"
            )
        asymmetry = sp.coo_array(matrix - matrix.T)
        wrong = np.flatnonzero(asymmetry.data != 0)
        if wrong.size:
            i, j = int(asymmetry.row[wrong[0]]), int(asymmetry.col[wrong[0]])
            raise ValueError(f"adjacency: not symmetric, entries ({i}, {j}) and ({j}, {i}) differ")
        keep = (matrix.row <= matrix.col) & (matrix.data != 0)
        ends = np.column_stack([matrix.row[keep], matrix.col[keep]]).astype(np.int64)
        return cls(matrix.shape[0], ends, matrix.data[keep], nodes)

    @classmethod
    def from_pysal(cls, w: Any, *, symmetrize: str | None = None) -> EmpiricalGraph:
        """Take spatial weights of libpysal: a ``W``, a ``WSP`` or a ``graph.Graph``.

        Ids become node labels, in their order; each pair of neighbours becomes one edge, with
        its weight A_e, and islands become isolated nodes. Neighbours of weight 0 are none. Units
        that are their own neighbours, as in kernel weights, lose nothing by being left out: such
        an edge would add phi(w_i - w_i) = 0.

        Parameters
        ----------
        w : libpysal.weights.W, libpysal.weights.WSP or libpysal.graph.Graph
            Finite weights >= 0, symmetric.
        symmetrize : {"max", "min", "mean"}, optional
            What to make of the weights a_ij, a_ji of a pair that differ, as those of nearest
            neighbours do: the greater one, which joins i and j if either has the other as
            neighbour; the smaller one, which joins them if both have; or the mean. Default: such
            weights are refused.

        Raises
        ------
        TypeError
            w is something else.
        ValueError
            Naming the ids: weights that are not symmetric, with what to do about
            row-standardized ones; a weight that is negative or not finite.

        Notes
        -----
        libpysal is not imported. Two weights that differ in their last digits count as equal.
        """
        found = read_spatial_weights(w, symmetrize)
        try:
            return cls(len(found.ids), found.edges, found.weights, found.ids)
        except (TypeError, ValueError) as error:
            raise type(error)(f"w: {error}") from error

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> EmpiricalGraph:
        """Read an edge list: two node columns and an optional weight column.

        Labels are the strings or integers of the file, in order of first appearance. Cells are
        separated by commas, or by semicolons or tabs where the first line is; the file may be
        gzipped, or a Parquet file (``.parquet``, which needs pandas and pyarrow).
        """
        table = read_edges(path)
        return cls(len(table.labels), table.edges, table.weights, table.labels)

    @property
    def n_edges(self) -> int:
        """Number of edges m after parallel ones were merged."""
        return len(self.edges)

    @cached_property
    def incidence(self) -> sp.csr_array:
        """Incidence matrix D, sparse (m, n): +1 at the head, -1 at the tail of each edge."""
        m = self.n_edges
        data = np.tile([1.0, -1.0], m)
        return sp.csr_array(
            (data, self.edges.ravel(), np.arange(0, 2 * m + 1, 2)), shape=(m, self.n_nodes)
        )

    @cached_property
    def divergence(self) -> sp.csr_array:
        """Transpose of the incidence matrix, sparse (n, m): ``divergence @ u`` is D^T u."""
        return self.incidence.T.tocsr()

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbours of each node, shape (n,)."""
        return np.bincount(self.edges.ravel(), minlength=self.n_nodes).astype(np.int64)

    @cached_property
    def components(self) -> IntArray:
        """Connected component of each node, shape (n,), numbered from 0."""
        return connected_components(self.n_nodes, self.edges)

    @cached_property
    def by_head(self) -> Arcs:
        """The edges for compiled passes: first of each head, (n + 1,), tails and heads, (m,)."""
        heads, tails = np.ascontiguousarray(self.edges.T, dtype=np.uint32)
        first = np.searchsorted(self.edges[:, 0], np.arange(self.n_nodes + 1)).astype(np.int64)
        return Arcs(first, tails, heads)

    @cached_property
    def index(self) -> dict[Any, int]:
        """Row of each node label."""
        return {label: i for i, label in enumerate(self.nodes)}

    def cached(self, name: str, make: Callable[[], _T]) -> _T:
        """Return what was made of its edges under this name, or make it.

        For solvers: orders and plans of factorizations are made once.
        """
        return made_once(self._made, name, make)

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was made: another process makes what it needs, sooner than it reads it."""
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def with_positions(self, positions: ArrayLike | None) -> EmpiricalGraph:
        """Return the same graph with other places (n, 2 or more) of its nodes, or with none."""
        moved = copy(self)
        moved.positions = None if positions is None else checked_positions(positions, self.n_nodes)
        return moved

    def to_networkx(self) -> nx.Graph:
        """NetworkX graph with the same labels; weights in the edge attribute ``weight``."""
        G = nx.Graph()
        G.add_nodes_from(self.nodes)
        ends = self.edges.tolist()
        G.add_weighted_edges_from(
            (self.nodes[i], self.nodes[j], a)
            for (i, j), a in zip(ends, self.weights.tolist(), strict=True)
        )
        return G

    def __repr__(self) -> str:
        return f"EmpiricalGraph(n_nodes={self.n_nodes}, n_edges={self.n_edges})"


def connected_components(n_nodes: int, edges: IntArray) -> IntArray:
    """Return the component (n,), numbered from 0, of each node when only these edges are there."""
    if len(edges) >= COMPILED_EDGES:
        labels = np.empty(n_nodes, dtype=np.int64)
        label_components(np.ascontiguousarray(edges, dtype=np.int64), labels)
        return labels
    ends = edges[:, 0], edges[:, 1]
    links = sp.coo_array((np.ones(len(edges)), ends), shape=(n_nodes, n_nodes))
    return sp.csgraph.connected_components(links, directed=False)[1].astype(np.int64)


def _checked_count(n_nodes: int) -> int:
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, (int, np.integer)):
        raise TypeError(f"n_nodes: an integer is expected, got {n_nodes!r}")
    if n_nodes < 1:
        raise ValueError(f"n_nodes: at least one node is expected, got {n_nodes}")
    return int(n_nodes)


def checked_positions(positions: ArrayLike, n_nodes: int) -> FloatArray:
    """Return the first two columns, (n, 2), of places (n, 2 or more) of the nodes."""
    places = finite_array(positions, "positions", 2)
    if places.shape[0] != n_nodes or places.shape[1] < 2:
        raise ValueError(f"positions: shape ({n_nodes}, 2 or more) is expected, got {places.shape}")
    return places[:, :2].copy()


def differences(edges: IntArray, w: FloatArray) -> FloatArray:
    """Differences (D w)_e = w_head - w_tail over edges (m, 2), shape (m, d)."""
    found = np.empty((len(edges), *w.shape[1:]), w.dtype)
    heads, tails = edges.T
    # Whole arrays at once would take most of the time for pages that are new each time.
    for at in parts_of_rows(len(edges), w[:1].size):
        np.subtract(w.take(heads[at], axis=0), w.take(tails[at], axis=0), out=found[at])
    return found


def _checked_labels(nodes: Iterable[Hashable] | None, n_nodes: int) -> Sequence[Any]:
    if nodes is None:
        return range(n_nodes)
    labels = [label.item() if isinstance(label, np.generic) else label for label in nodes]
    if len(labels) != n_nodes:
        raise ValueError(f"nodes: {n_nodes} labels are expected, got {len(labels)}")
    seen: set[Any] = set()
    for label in labels:
        if not isinstance(label, Hashable):
            raise TypeError(f"nodes: label {label!r} has no hash")
        if label in seen:
            raise ValueError(f"nodes: label {label!r} occurs twice")
        seen.add(label)
    return labels


def _checked_ends(edges: ArrayLike, nodes: Sequence[Any]) -> IntArray:
    ends = integer_array(edges, "edges")
    if ends.shape == (0,):
        return np.empty((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(f"edges: shape (m, 2) is expected, got {ends.shape}")
    if len(ends) and not 0 <= ends.min() <= ends.max() < len(nodes):
        k = int(np.argmax(((ends < 0) | (ends >= len(nodes))).any(axis=1)))
        raise ValueError(
            f"edges: edge {k} = {tuple(ends[k].tolist())} has an end outside 0..{len(nodes) - 1}"
        )
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        k = int(loops[0])
        raise ValueError(f"edges: edge {k} is a self-loop at node {nodes[ends[k, 0]]!r}")
    return ends.astype(np.int64)


def _checked_weights(weights: ArrayLike | None, ends: IntArray, nodes: Sequence[Any]) -> FloatArray:
    if weights is None:
        return np.ones(len(ends))
    values = real_array(weights, "weights")
    if values.shape != (len(ends),):
        raise ValueError(f"weights: shape ({len(ends)},) is expected, got {values.shape}")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(
            f"weights: edge {k} = {_named(ends[k], nodes)} has weight {values[k]}; "
            "a positive finite number is expected"
        )
    return values


def _merged(
    ends: IntArray, weights: FloatArray, nodes: Sequence[Any]
) -> tuple[IntArray, FloatArray]:
    """Sort edges by (head, tail) and add up the weights of parallel ones."""
    if not len(ends):
        return ends, weights.copy()
    key = ends[:, 0] * len(nodes) + ends[:, 1]
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights[order], first)
    edges = ends[order[first]]
    wrong = np.flatnonzero(~np.isfinite(total))
    if wrong.size:
        pair = _named(edges[wrong[0]], nodes)
        raise ValueError(f"weights: the parallel edges {pair} add up to infinity")
    return edges, total


def _is_doubled(named: IntArray, edges: IntArray) -> bool:
    """Say whether each of these edges was named twice, once with its head and once with its tail.

    Both directions have as many distinct pairs as there are edges, and no more names than that.
    """
    m = len(edges)
    if m == 0 or len(named) != 2 * m:
        return False
    for forward in (named[named[:, 0] < named[:, 1]], named[named[:, 0] > named[:, 1]][:, ::-1]):
        if len(forward) != m:
            return False
        order = np.lexsort((forward[:, 1], forward[:, 0]))
        if not np.array_equal(forward[order], edges):
            return False
    return True


def _named(ends: IntArray, nodes: Sequence[Any]) -> tuple[Any, Any]:
    """Labels of the ends of one edge."""
    return nodes[ends[0]], nodes[ends[1]]
