"""Newton's method for the cluster-graph problem once it is known which clusters merge.

An interior-point solution has w~ to six or seven digits where clusters are about to merge. On the
face of the penalty found by it (equal parameters stay equal; for l1, equal coordinates) the
objective is smooth, and a few Newton steps give the remaining digits.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.partitions._data import Partition
from verify.partitions._local_losses import LocalLosses
from verify.partitions.constants._theorem import cluster_sum

_STEPS = 20
#: Larger systems are left as the solver gave them: the Newton matrix is dense.
_LARGEST = 3000


def newton_on_face(
    w: FloatArray,
    pairs: IntArray,
    capacity: FloatArray,
    losses: LocalLosses,
    parts: Partition,
    norm: str,
    threshold: float,
) -> FloatArray:
    """Improve w (k, d); differences up to ``threshold`` count as zero.

    Returns
    -------
    FloatArray
        (k, d) point with exact equalities and a gradient on the face that is no larger, or ``w``
        if the face is not smooth (linf with several largest coordinates) or too large.
    """
    k, d = w.shape
    if k * d > _LARGEST:
        return w
    jump = np.abs(w[pairs[:, 0]] - w[pairs[:, 1]])
    apart = (
        jump > threshold
        if norm == "l1"
        else np.repeat((jump.max(axis=1) > threshold)[:, None], d, axis=1)
    )
    if norm == "linf":
        largest = jump >= jump.max(axis=1, keepdims=True) - threshold
        if (largest.sum(axis=1)[apart[:, 0]] > 1).any():
            return w
    basis = _face_basis(k, d, pairs, apart)
    weight = np.asarray(basis.sum(axis=0))
    z = (basis.T @ w.ravel()) / weight
    best, least = w, np.inf
    for _ in range(_STEPS):
        point = (basis @ z).reshape(k, d)
        slope, curvature = _derivatives(point, pairs, capacity, apart, losses, parts, norm)
        reduced = basis.T @ slope.ravel()
        size = float(np.abs(reduced).max(initial=0.0))
        if not size < least:
            break
        best, least = point, size
        matrix = (basis.T @ curvature @ basis).toarray()
        z = z - np.linalg.lstsq(matrix, reduced, rcond=None)[0]
    return best


def _face_basis(k: int, d: int, pairs: IntArray, apart: BoolArray) -> sp.csr_array:
    """Build the indicator matrix (k d, q) of the groups of equal entries of w."""
    equal, coordinate = np.nonzero(~apart)
    left = pairs[equal, 0] * d + coordinate
    right = pairs[equal, 1] * d + coordinate
    links = sp.coo_array((np.ones(len(left)), (left, right)), shape=(k * d, k * d))
    count, group = connected_components(links.tocsr(), directed=False)
    return sp.csr_array((np.ones(k * d), (np.arange(k * d), group)), shape=(k * d, count))


def _derivatives(
    w: FloatArray,
    pairs: IntArray,
    capacity: FloatArray,
    apart: BoolArray,
    losses: LocalLosses,
    parts: Partition,
    norm: str,
) -> tuple[FloatArray, sp.csr_array]:
    """Compute the gradient (k, d) and Hessian (k d, k d) of the objective along the face."""
    k, d = w.shape
    at_nodes = w[parts.cluster_of]
    slope = cluster_sum(losses.gradients(at_nodes).value, parts)
    blocks = cluster_sum(losses.hessians(at_nodes), parts)
    jump = w[pairs[:, 0]] - w[pairs[:, 1]]
    curved = sp.csr_array((k * d, k * d))
    if norm == "l2":
        moving = np.flatnonzero(apart[:, 0])
        length = np.linalg.norm(jump[moving], axis=1)
        unit = jump[moving] / length[:, None]
        flow = np.zeros_like(jump)
        flow[moving] = capacity[moving, None] * unit
        bend = np.eye(d) - unit[:, :, None] * unit[:, None, :]
        bend *= (capacity[moving] / length)[:, None, None]
        rows = np.arange(len(moving))
        ends = pairs[moving]
        incidence = sp.csr_array(
            (
                np.repeat([1.0, -1.0], len(moving)),
                (np.concatenate([rows, rows]), np.concatenate([ends[:, 0], ends[:, 1]])),
            ),
            shape=(len(moving), k),
        )
        differences = sp.kron(incidence, sp.eye_array(d), format="csr")
        if len(moving):
            curved = differences.T @ sp.block_diag(list(bend), format="csr") @ differences
    else:
        if norm == "linf":
            size = np.abs(jump)
            apart = apart & (size == size.max(axis=1, keepdims=True))
        flow = np.where(apart, np.sign(jump), 0.0) * capacity[:, None]
    np.add.at(slope, pairs[:, 0], flow)
    np.subtract.at(slope, pairs[:, 1], flow)
    return slope, sp.csr_array(sp.block_diag(list(blocks), format="csr") + curved)
