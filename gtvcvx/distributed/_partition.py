"""Which node goes to which shard: few edges between shards, and shards of equal size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray, integer_array
from gtvcvx._extras import extra_module

# METIS weighs nodes by integers, and adds them up in 32 bits.
_LARGEST_TOTAL = 2**30
# It numbers nodes and arcs, two for each edge, in 32 bits.
_MOST_ARCS = 2**31 - 1

Partitioner = Callable[[int, IntArray, FloatArray, int], IntArray]


def partitioned(
    n_nodes: int, edges: IntArray, sizes: FloatArray, n_shards: int, partitioner: object = "auto"
) -> tuple[IntArray, int, str]:
    """Return the shard of each node (n,), how many there are, and who has chosen it.

    Shards without a node are left out.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray of int, shape (m, 2)
    sizes : ndarray, shape (n,)
        What each node takes, such as bytes; shards are to take as much as each other.
    n_shards : int
    partitioner : {"auto", "metis", "order", "blocks"} or array of int (n,)
        "metis": pymetis, of the extras ``mpi`` and ``ray``. "order": consecutive pieces in reverse
        Cuthill-McKee order. "blocks": of the nodes as they are numbered. "auto": METIS where it is
        installed and the graph fits in its integers. An array is a partition of one's own.

    Raises
    ------
    ValueError
        Another name, or a shard of a node beyond ``n_shards``.
    ImportError
        "metis" is asked for, and there is no pymetis.
    """
    labels, name = _chosen(n_nodes, edges, sizes, n_shards, partitioner)
    used, labels = np.unique(labels, return_inverse=True)
    return labels.astype(np.int64), len(used), name


def _chosen(
    n_nodes: int, edges: IntArray, sizes: FloatArray, n_shards: int, partitioner: object
) -> tuple[IntArray, str]:
    if not isinstance(partitioner, str):
        return _given(partitioner, n_nodes, n_shards), "given"
    if partitioner == "auto":
        small = 2 * len(edges) <= _MOST_ARCS
        partitioner = "metis" if small and _metis_is_there() else "order"
    if partitioner not in _PARTITIONERS:
        raise ValueError(
            f"partitioner: one of {['auto', *_PARTITIONERS]} or an array is expected, got "
            f"{partitioner!r}"
        )
    if n_shards == 1:
        return np.zeros(n_nodes, np.int64), partitioner
    return _PARTITIONERS[partitioner](n_nodes, edges, sizes, n_shards), partitioner


def _given(labels: object, n_nodes: int, n_shards: int) -> IntArray:
    shard = integer_array(labels, "partitioner").astype(np.int64)
    if shard.shape != (n_nodes,):
        raise ValueError(f"partitioner: shape {(n_nodes,)} is expected, got {shard.shape}")
    wrong = np.flatnonzero((shard < 0) | (shard >= n_shards))
    if wrong.size:
        node = int(wrong[0])
        raise ValueError(
            f"partitioner: node {node} is in shard {shard[node]}, there are {n_shards}"
        )
    return shard


def _metis(n_nodes: int, edges: IntArray, sizes: FloatArray, n_shards: int) -> IntArray:
    pymetis = _pymetis()
    adjacency = _adjacency(n_nodes, edges)
    unit = max(float(sizes.sum()) / _LARGEST_TOTAL, float(sizes.max(initial=1.0)) / 2**20)
    weights = np.maximum(np.round(sizes / max(unit, 1.0)), 1.0).astype(np.int64)
    starts, neighbours = (at.astype(np.int32) for at in (adjacency.indptr, adjacency.indices))
    graph = pymetis.CSRAdjacency(starts, neighbours)
    _, labels = pymetis.part_graph(n_shards, graph, vweights=weights.astype(np.int32))
    return np.asarray(labels, np.int64)


def _by_order(n_nodes: int, edges: IntArray, sizes: FloatArray, n_shards: int) -> IntArray:
    """Cut the nodes, with neighbours near each other, into pieces."""
    adjacency = _adjacency(n_nodes, edges)
    order = sp.csgraph.reverse_cuthill_mckee(adjacency, symmetric_mode=True)
    out = np.empty(n_nodes, np.int64)
    out[order] = equal_pieces(sizes[order], n_shards)
    return out


def _by_number(n_nodes: int, edges: IntArray, sizes: FloatArray, n_shards: int) -> IntArray:
    return equal_pieces(sizes, n_shards)


def equal_pieces(sizes: FloatArray, count: int) -> IntArray:
    """Return the piece (n,) of each of n items: consecutive ones, of about the same size."""
    if not len(sizes):
        return np.empty(0, np.int64)
    # The middle of an item decides, so that a large one does not push the next into its place.
    middle = np.cumsum(sizes) - 0.5 * sizes
    piece = np.floor(middle * (count / float(sizes.sum()))).astype(np.int64)
    return np.minimum(piece, count - 1)


def _adjacency(n_nodes: int, edges: IntArray) -> sp.csr_array:
    ones = np.ones(len(edges), np.int8)
    one_way = sp.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    return sp.csr_array(one_way + one_way.T)


def _pymetis() -> ModuleType:
    return extra_module("pymetis", "mpi", "partitions by METIS")


def _metis_is_there() -> bool:
    try:
        _pymetis()
    except ImportError:
        return False
    return True


_PARTITIONERS: Mapping[str, Partitioner] = {
    "metis": _metis,
    "order": _by_order,
    "blocks": _by_number,
}
