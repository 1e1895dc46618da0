"""Spatial weights of libpysal as ids, pairs and weights, each pair once.

Nothing of libpysal is imported: what its classes W, WSP and graph.Graph have in common is read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray, real_array

# Weights made of distances may differ in their last digits between the two directions.
_ROUNDING = 1e-9


class SpatialWeights(NamedTuple):
    """What a graph is made of.

    Attributes
    ----------
    ids : list of hashable, length n
        In their order.
    edges : ndarray of int64, shape (m, 2)
        Pairs i < j, each once.
    weights : ndarray, shape (m,)
        Not zero.
    """

    ids: list[Any]
    edges: IntArray
    weights: FloatArray


def read_spatial_weights(w: Any, symmetrize: str | None) -> SpatialWeights:
    """Read a W, WSP or Graph; see `gtvcvx.EmpiricalGraph.from_pysal`."""
    if symmetrize not in (None, "max", "min", "mean"):
        raise ValueError(
            f"symmetrize: None, 'max', 'min' or 'mean' is expected, got {symmetrize!r}"
        )
    ids = _ids(w)
    matrix = _matrix(w, ids)
    if symmetrize is None:
        _check_symmetry(w, matrix, ids)
    pairs = sp.coo_array(sp.triu(_symmetric(matrix, symmetrize or "mean"), 1))
    edges = np.column_stack([pairs.row, pairs.col]).astype(np.int64)
    return SpatialWeights(ids, edges, pairs.data)


def _ids(w: Any) -> list[Any]:
    """Ids of the rows of the weight matrix: W and WSP have an order, a Graph has unique ids."""
    ids = getattr(w, "id_order", getattr(w, "unique_ids", None))
    if ids is None or not sp.issparse(getattr(w, "sparse", None)):
        raise TypeError(f"w: a W, WSP or Graph of libpysal is expected, got {type(w).__name__}")
    return list(ids)


def _matrix(w: Any, ids: list[Any]) -> sp.csr_array:
    """Weight matrix (n, n), checked, in which zeros are no entries."""
    matrix = sp.csr_array(w.sparse, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.data = real_array(matrix.data, "w")
    wrong = np.flatnonzero(~(np.isfinite(matrix.data) & (matrix.data >= 0)))
    if wrong.size:
        i, j = (int(ends[wrong[0]]) for ends in matrix.tocoo().coords)
        raise ValueError(
            f"w: the weight from {ids[i]!r} to {ids[j]!r} is {matrix.data[wrong[0]]:g}; "
            "finite numbers >= 0 are expected"
        )
    matrix.eliminate_zeros()
    return matrix


def _symmetric(matrix: sp.csr_array, how: str) -> sp.csr_array:
    if how == "max":
        return matrix.maximum(matrix.T)
    if how == "min":
        return matrix.minimum(matrix.T)
    return (matrix + matrix.T) / 2.0


def _check_symmetry(w: Any, matrix: sp.csr_array, ids: list[Any]) -> None:
    apart = sp.coo_array(abs(matrix - matrix.T) - _ROUNDING * matrix.maximum(matrix.T))
    wrong = np.flatnonzero(apart.data > 0)
    if not wrong.size:
        return
    i, j = int(apart.row[wrong[0]]), int(apart.col[wrong[0]])
    raise ValueError(
        f"w: not symmetric, the weight from {ids[i]!r} to {ids[j]!r} is {matrix[i, j]:g}, that "
        f"back is {matrix[j, i]:g}. {_advice(w)}symmetrize='max' joins two nodes if either has "
        "the other as neighbour, 'min' if both have, 'mean' takes the mean of both weights"
    )


def _advice(w: Any) -> str:
    """Say what to do about weights that were symmetric before they were transformed."""
    # A W has its transformation as ``transform``, where a Graph has a method.
    kind = getattr(w, "transformation", getattr(w, "transform", None))
    if kind not in ("R", "V"):
        return "Nearest neighbours, for one, need not be mutual: "
    what = "row-standardized" if kind == "R" else "variance-stabilized"
    return (
        f"The weights are {what} (transform {kind!r}): take them as they were before, or binary "
        "ones (transform 'B'). Otherwise, "
    )
