"""Graphs of nodes whose local datasets were drawn from similar distributions.

Sources: [GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", section VI-C. [WKV09] Wang, Kulkarni, Verdu, "Divergence estimation
for multidimensional densities via k-nearest-neighbor distances", IEEE Transactions on Information
Theory 55(5), 2009. [P08] Perez-Cruz, "Kullback-Leibler divergence estimation of continuous
distributions", IEEE International Symposium on Information Theory, 2008.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from gtvcvx._arrays import FloatArray, finite_array, is_integer
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction._neighbours import knn_graph
from gtvcvx.graph_construction._weights import Weights, number

Samples = Sequence[ArrayLike] | Mapping[Hashable, ArrayLike] | FloatArray

ESTIMATORS = ("gaussian", "nearest")


def kl_divergences(
    samples: Samples, *, estimator: str = "gaussian", shrinkage: float = 0.1, order: int = 1
) -> FloatArray:
    r"""Symmetric Kullback-Leibler divergences KL(P_i || P_j) + KL(P_j || P_i) of local datasets.

    Parameters
    ----------
    samples : sequence or mapping of array_like, shape (m_i, c)
        One dataset a node, with equal numbers of columns; or one array (n, m, c).
    estimator : {"gaussian", "nearest"}
        "gaussian": of the normal distributions with means :math:`\mu_i` and covariances
        :math:`S_i` of the datasets,

        .. math:: \frac12 \big[ \mathrm{tr}(S_i^{-1} S_j + S_j^{-1} S_i) - 2 c
                  + (\mu_i - \mu_j)^T (S_i^{-1} + S_j^{-1}) (\mu_i - \mu_j) \big].

        "nearest": without a model, from nearest neighbours [WKV09], [P08]:
        KL(P || Q) is estimated by

        .. math:: \frac{c}{m} \sum_{r=1}^m \log \frac{\nu(x_r)}{\rho(x_r)} + \log \frac{l}{m - 1}

        with the distances rho to the k-th nearest other point of the same dataset (m points), and
        nu to the k-th nearest of the other one (l points).
    shrinkage : float
        For "gaussian", in (0, 1]: S_i is (1 - shrinkage) times the dataset's covariance (divided by
        m_i) plus shrinkage times the mean variance of the centred pooled data times the identity.
        So it is regular even with a single point.
    order : int
        For "nearest": k >= 1; each dataset needs more than k points.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric, >= 0, with zeros on the diagonal. Estimates by "nearest" below zero, which
        chance makes of small divergences, are set to zero.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and the node whose dataset is at fault.

    Notes
    -----
    "gaussian" takes O(n c^3 + n^2 c^2 + N c^2) for N points in all, "nearest" n^2 searches, O(n N
    log N) for few columns. For "nearest", distances of 0, which equal points have, count as the
    smallest distance above 0 between any two points: densities have no equal points, data that
    were rounded do.

    [GTV] section VI-C maps the images of all nodes to the plane by t-SNE before it estimates
    divergences. Here the columns are taken as they are: reduce them first if they are many.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator: one of {ESTIMATORS} is expected, got {estimator!r}")
    datasets = _checked(samples)
    if estimator == "gaussian":
        return _gaussian(list(datasets.values()), shrinkage)
    return _nearest(datasets, order)


def kl_graph(
    samples: Samples,
    n_neighbors: int = 4,
    *,
    estimator: str = "gaussian",
    shrinkage: float = 0.1,
    order: int = 1,
    weights: Weights = "exponential",
    bandwidth: float | None = None,
    floor: float = 1e-6,
    mutual: bool = False,
    connect: bool = False,
    nodes: Sequence[Hashable] | None = None,
) -> EmpiricalGraph:
    """Join every node to those whose local datasets have the most similar distributions.

    It is `knn_graph` of the matrix that `kl_divergences` estimates. [GTV] section VI-C joins four
    nearest neighbours with weights A_e = exp(-distance), from estimated divergences:
    ``kl_graph(samples, 4, estimator="nearest", bandwidth=1.0)``.

    Parameters
    ----------
    samples, estimator, shrinkage, order
        See `kl_divergences`.
    n_neighbors, weights, bandwidth, floor, mutual, connect
        See `knn_graph`, with divergences for distances.
    nodes : sequence of hashable, optional
        Node labels. Default: the keys of a mapping, else ``0 .. n-1``.

    Returns
    -------
    EmpiricalGraph

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and the node whose dataset is at fault.
    """
    labels = list(samples) if nodes is None and isinstance(samples, Mapping) else nodes
    return knn_graph(
        kl_divergences(samples, estimator=estimator, shrinkage=shrinkage, order=order),
        n_neighbors,
        metric="precomputed",
        weights=weights,
        bandwidth=bandwidth,
        floor=floor,
        mutual=mutual,
        connect=connect,
        nodes=labels,
    )


def _checked(samples: Samples) -> dict[Hashable, FloatArray]:
    if not isinstance(samples, (Mapping, Sequence, np.ndarray)) or isinstance(samples, str):
        raise TypeError(
            f"samples: a sequence or a mapping of arrays is expected, got {type(samples).__name__}"
        )
    items = samples.items() if isinstance(samples, Mapping) else enumerate(samples)
    datasets = {node: finite_array(x, f"samples: node {node!r}", 2) for node, x in items}
    if not datasets:
        raise ValueError("samples: at least one dataset is expected")
    columns = next(iter(datasets.values())).shape[1]
    for node, x in datasets.items():
        if 0 in x.shape or x.shape[1] != columns:
            raise ValueError(
                f"samples: node {node!r}: shape (m, {columns or 'c'}) with m >= 1 and c >= 1 is "
                f"expected, got {x.shape}"
            )
    return datasets


def _gaussian(datasets: list[FloatArray], shrinkage: float) -> FloatArray:
    if not 0 < number(shrinkage, "shrinkage") <= 1:
        raise ValueError(f"shrinkage: a number in (0, 1] is expected, got {shrinkage!r}")
    n, c = len(datasets), datasets[0].shape[1]
    means = np.array([x.mean(axis=0) for x in datasets])
    centred = [x - mean for x, mean in zip(datasets, means, strict=True)]
    covariances = np.array([x.T @ x / len(x) for x in centred])
    pooled = np.concatenate(datasets)
    variance = float(np.var(pooled, axis=0).mean())
    if variance == 0:
        raise ValueError("samples: all points of all nodes are equal")
    covariances = (1.0 - shrinkage) * covariances + shrinkage * variance * np.eye(c)
    precisions = np.linalg.inv(covariances)
    trace = covariances.reshape(n, -1) @ precisions.reshape(n, -1).T  # tr(S_i S_j^-1)
    shift = np.empty((n, n))
    for j in range(n):
        apart = means - means[j]
        shift[:, j] = np.sum((apart @ precisions[j]) * apart, axis=1)
    one_way = trace + shift
    total = 0.5 * (one_way + one_way.T - 2.0 * c)
    np.fill_diagonal(total, 0.0)
    return np.maximum(total, 0.0)


def _nearest(datasets: Mapping[Hashable, FloatArray], order: int) -> FloatArray:
    if not is_integer(order) or order < 1:
        raise ValueError(f"order: an integer >= 1 is expected, got {order!r}")
    for node, x in datasets.items():
        if len(x) <= order:
            raise ValueError(
                f"samples: node {node!r} has {len(x)} points, more than order = {order} are needed"
            )
    points = list(datasets.values())
    least = _least_distance(np.unique(np.concatenate(points), axis=0))
    trees = [cKDTree(x) for x in points]
    n, c = len(points), points[0].shape[1]
    total = np.zeros((n, n))
    for i, x in enumerate(points):
        # The nearest point of the own dataset is the point itself.
        own = np.maximum(trees[i].query(x, k=[order + 1])[0], least)
        for j in range(n):
            if j == i:
                continue
            other = np.maximum(trees[j].query(x, k=[order])[0], least)
            total[i, j] = c * np.mean(np.log(other / own)) + np.log(len(points[j]) / (len(x) - 1))
    return np.maximum(total + total.T, 0.0)


def _least_distance(distinct: FloatArray) -> float:
    """Smallest distance between any two of these different points."""
    if len(distinct) == 1:
        raise ValueError("samples: all points of all nodes are equal")
    return float(cKDTree(distinct).query(distinct, k=[2])[0].min())
