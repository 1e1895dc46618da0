"""What happens to clusters between two values of lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import IntArray
from verify._display import fields_text


@dataclass(frozen=True)
class ClusterChange:
    """Clusters that are not the same at two neighbouring values of lambda.

    Attributes
    ----------
    kind : {"merge", "split", "regroup"}
        Seen in the direction of growing lambda: several clusters become one, one becomes several
        (which general edge weights allow), or neither partition refines the other.
    lam, larger_lam : float
        The change is between these two values of lambda.
    before, after : tuple of int
        Labels of the clusters at ``lam`` and at ``larger_lam``.
    nodes : ndarray of int64
        Nodes of these clusters, increasing.
    """

    kind: str
    lam: float
    larger_lam: float
    before: tuple[int, ...]
    after: tuple[int, ...]
    nodes: IntArray

    __repr__ = fields_text


def cluster_changes(
    before: IntArray, after: IntArray, lam: float, larger_lam: float
) -> list[ClusterChange]:
    """Compare the labels (n,) of two partitions; clusters that did not change are left out.

    Clusters of the two partitions that share a node belong to the same change.
    """
    fine, coarse = int(before.max()) + 1, int(after.max()) + 1
    joined = sp.coo_array(
        (np.ones(len(before)), (before, fine + after)), shape=(fine + coarse, fine + coarse)
    )
    count, group = sp.csgraph.connected_components(joined, directed=False)
    n_before = np.bincount(group[:fine], minlength=count)
    n_after = np.bincount(group[fine:], minlength=count)
    changes = []
    for g in np.flatnonzero((n_before > 1) | (n_after > 1)).tolist():
        kind = "merge" if n_after[g] == 1 else "split" if n_before[g] == 1 else "regroup"
        changes.append(
            ClusterChange(
                kind,
                lam,
                larger_lam,
                tuple(np.flatnonzero(group[:fine] == g).tolist()),
                tuple(np.flatnonzero(group[fine:] == g).tolist()),
                np.flatnonzero(group[before] == g),
            )
        )
    return changes
