"""A path of partitions as a tree of fusions, in SciPy's form."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.plotting._dendrogram import fusions


def linkage(lams: FloatArray, labels: IntArray) -> FloatArray:
    """Return the linkage matrix of partitions along lambda, for ``scipy.cluster.hierarchy``.

    Where several clusters fuse at once they do so one after the other, at the same height. What a
    path splits again stays fused.

    Parameters
    ----------
    lams : ndarray, shape (k,)
        Increasing; the height of a fusion is the first one at which its clusters are one.
    labels : ndarray of int, shape (k, n)

    Returns
    -------
    ndarray, shape (number of fusions, 4)
        Rows: the two clusters (n + r is the one that row r makes), height, number of nodes.
    """
    n = labels.shape[1]
    rows: list[tuple[float, float, float, float]] = []
    sizes = [1] * n
    number = list(range(n))  # of the cluster in the linkage matrix, for each cluster of the events
    for event in fusions(lams, labels):
        whole, *parts = (number[part] for part in event.parts)
        for part in parts:
            sizes.append(sizes[whole] + sizes[part])
            rows.append((min(whole, part), max(whole, part), event.lam, sizes[-1]))
            whole = len(sizes) - 1
        number.append(whole)
    return np.array(rows, dtype=np.float64).reshape(-1, 4)
