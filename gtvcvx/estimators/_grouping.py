"""From the fused points of a solution to clusters: the small ones are outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from gtvcvx._arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Counts:
    """What a partition has of clusters of at least a size.

    Attributes
    ----------
    clusters : int
    outside : int
        Points that are in none of them.
    above, below : int
        Largest numbers of clusters that partitions can have which are coarser, or finer.
    groups : int
        Parts of any size.
    """

    clusters: int
    outside: int
    above: int
    below: int
    groups: int

    @classmethod
    def of(cls, partition: IntArray, least: int) -> Counts:
        """Count the parts of a partition (n,) that have at least so many points."""
        sizes = np.bincount(partition)
        small = sizes[sizes < least]
        clusters, outside = len(sizes) - len(small), int(small.sum())
        above = clusters + outside // least
        return cls(clusters, outside, above, int((sizes // least).sum()), len(sizes))


def most_between(coarse: IntArray, fine: IntArray, least: int) -> int:
    """Return the most clusters of at least a size that partitions between two can have.

    Each part of the coarse one (n,) is a union of parts of the fine one (n,). Those that are large
    enough are a cluster each; the others may have become one for every ``least`` points.
    """
    sizes = np.bincount(fine)
    large = sizes >= least
    inside = np.zeros(len(sizes), dtype=np.int64)
    inside[fine] = coarse
    rest = np.bincount(inside[~large], sizes[~large])
    return int(large.sum() + (rest // least).sum())


@dataclass(frozen=True)
class Grouping:
    """Clusters of points.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        From 0; -1 for outliers that were not joined.
    outliers : ndarray of bool, shape (n,)
        Points of parts that are too small for a cluster.
    centres : ndarray, shape (k, d)
        Means of the clusters' w, outliers left out.
    """

    labels: IntArray
    outliers: BoolArray
    centres: FloatArray

    @classmethod
    def of(
        cls,
        partition: IntArray,
        w: FloatArray,
        least: int,
        join: bool,
        unions: IntArray | None = None,
    ) -> Grouping:
        """Make clusters of the parts of at least ``least`` points, or of the largest ones.

        An outlier joins the cluster whose centre is nearest to its own, w_i. Unions of clusters
        are given by labels (n,), for outliers, too.
        """
        sizes = np.bincount(partition)
        counts = sizes >= min(least, int(sizes.max()))
        labels = np.where(counts, np.cumsum(counts) - 1, -1)[partition].astype(np.int64)
        outliers = labels < 0
        if unions is not None:
            outliers &= np.isin(unions, unions[~outliers])
            labels = unions if join else np.where(outliers, -1, unions)
        inside = labels[~outliers]
        sums = [np.bincount(inside, column[~outliers]) for column in w.T]
        centres = np.column_stack(sums) / np.bincount(inside)[:, None]
        if join and unions is None and outliers.any():
            labels[outliers] = cKDTree(centres).query(w[outliers])[1]
        return cls(labels, outliers, centres)
