"""What `ConvexClustering` says where it took another number of clusters, or one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gtvcvx._arrays import FloatArray
from gtvcvx.estimators._search import COVERED


def warn_of_number(model: Any, points: FloatArray, stacklevel: int) -> None:
    """Warn that there are not ``n_clusters`` clusters of points (n, d), and why."""
    distinct = len(np.unique(points, axis=0))
    components = int(model.graph_.components.max()) + 1
    if model.n_clusters > distinct:
        why = f"X has {distinct} distinct points"
    elif model.n_clusters < components:
        why = f"the graph has {components} connected components"
    elif model.min_cluster_size is not None and model.min_cluster_size > 1:
        why = f"lower min_cluster_size={model.min_cluster_size}, or change n_neighbors"
    else:
        why = "several fuse at once; change n_neighbors or weights"
    _warn(
        f"{type(model).__name__}: found no lambda with n_clusters={model.n_clusters} clusters; "
        f"took {model.n_clusters_}: {why}",
        stacklevel,
    )


def warn_of_one(model: Any, stacklevel: int) -> None:
    """Warn that nothing was found to be several clusters, though no number was asked for."""
    _warn(
        f"{type(model).__name__}: no clusters stand out with {COVERED:.0%} of the points in "
        f"clusters of at least min_cluster_size={model.min_cluster_size_}; "
        f"took {model.n_clusters_}: give n_clusters, or lower min_cluster_size",
        stacklevel,
    )


def _warn(text: str, stacklevel: int) -> None:
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel + 2)
