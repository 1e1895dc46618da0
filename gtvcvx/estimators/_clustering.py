"""Convex clustering: centres of points that fuse as lambda grows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.estimators._clusterpath import ClusteringPath, PathBuilder, cluster_labels
from gtvcvx.estimators._linkage import linkage
from gtvcvx.estimators._solving import Solving
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction import knn_graph
from gtvcvx.losses import PointLoss
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_consensus


@dataclass(kw_only=True, repr=False, eq=False)
class ConvexClustering(ClusterMixin, BaseEstimator):
    r"""Convex clustering of points over a graph ([GTV] (29)).

    .. math:: \min_w \sum_i \|w_i - x_i\|_2^2 + \lambda \sum_{\{i, j\}} A_{ij} \phi(w_i - w_j)

    Each point x_i has a centre w_i; points whose centres coincide are a cluster. For a small
    lambda they are all apart, for a large one there is one cluster in every connected component of
    the graph, and in between they fuse.

    Parameters
    ----------
    lam : float, optional
        The regularization parameter lambda, > 0.
    n_clusters : int, optional
        Instead of ``lam``: the smallest lambda with this number of clusters is taken. If there is
        none, because several fuse at once, a smaller number is, with a warning.
        Default, if there is no ``lam`` either: the number that lasts over the longest range of
        log lambda, one cluster and single points excepted.
    n_neighbors : int
        Neighbours of each point in the graph (fewer if there are not as many points), which is
        made connected by a minimum spanning tree; see `gtvcvx.graph_construction.knn_graph`.
    weights : {"gaussian", "exponential", "inverse", "binary"} or callable
    bandwidth : float, optional
    floor : float
        Weights of the edges; see `gtvcvx.graph_construction.knn_graph`. The default bandwidth is
        the median length of the edges.
    penalty : {"l2", "l1", "linf", "squared"} or Penalty
        phi; nothing fuses unless it is a norm.
    n_lams : int
        Number of values of lambda on the path, at least 2: half of them evenly on a logarithmic
        scale, the others where clusters change. Fewer if no more are needed.
    solver : str
        See `GTVProblem.solve`.
    rtol : float
        Relative gap to reach: the gap is at most rtol max(min(1, P(median)), P(w)). No centre is
        then farther from the optimal one than the square root of the gap, which decides what
        counts as fused.
    max_iter : int, optional
        Limit of iterations.
    time_limit : float, optional
        Seconds for all solves of a fit; what they have reached by then is taken, with a warning.
    verbose : bool
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of int64, shape (n,)
        Cluster of each point. Centres are taken for one if they differ by up to 1e-3 times the
        spread of the data.
    n_clusters_ : int
    cluster_centers_ : ndarray, shape (n_clusters_, d)
        Centres of the clusters. They are drawn towards one another, the more the larger lambda
        is; the means of the clusters' points are not.
    lam_ : float
        lambda of these clusters.
    clusterpath_ : LambdaPath
        Solutions from lambda_max, with one cluster, down to single points: for
        `gtvcvx.plotting.plot_clusterpath` and `gtvcvx.plotting.plot_dendrogram`. With ``lam`` it
        is computed when it is first asked for.
    dendrogram_ : ndarray, shape (n - 1, 4)
        The path as a linkage matrix, for `scipy.cluster.hierarchy.dendrogram` and its like. The
        height of a fusion is the smallest lambda of the path at which its clusters are one.
    flows_, dual_gap_, n_iter_, graph_, problem_, solution_
        At ``lam_``, see `NetworkLinearRegression`.
    n_features_in_, feature_names_in_
        Columns of X, and their names if it is a data frame.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        The gap is larger than rtol allows, or there is no lambda with ``n_clusters`` clusters.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.3]]
    >>> model = ConvexClustering(n_clusters=2, n_neighbors=2).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1])
    >>> model.dendrogram_.shape
    (4, 4)
    """

    lam: float | None = None
    n_clusters: int | None = None
    n_neighbors: int = 10
    weights: Any = "gaussian"
    bandwidth: float | None = None
    floor: float = 0.01
    penalty: str | Penalty = "l2"
    n_lams: int = 50
    solver: str = "AUTO"
    rtol: float = 1e-9
    max_iter: int | None = None
    time_limit: float | None = None
    verbose: bool = False

    labels_: IntArray = field(init=False)
    cluster_centers_: FloatArray = field(init=False)
    lam_: float = field(init=False)
    flows_: FloatArray = field(init=False)
    graph_: EmpiricalGraph = field(init=False)
    problem_: GTVProblem = field(init=False)
    solution_: Solution = field(init=False)

    def fit(self, X: Any, y: Any = None, *, graph: EmpiricalGraph | None = None) -> Any:
        """Cluster points.

        Parameters
        ----------
        X : array_like or data frame, shape (n, d)
        y : ignored
        graph : EmpiricalGraph, optional
            Graph whose node i is row i of X, instead of nearest neighbours.

        Returns
        -------
        self
        """
        self._builder: PathBuilder | None = None
        self._points = validate_data(self, X, dtype=np.float64)
        if self.lam is not None and self.n_clusters is not None:
            raise ValueError("n_clusters: expected only where lam is not given")
        self.graph_ = self._chosen_graph(graph)
        lam = 1.0 if self.lam is None else self.lam
        self.problem_ = GTVProblem(self.graph_, PointLoss.stack(self._points), self.penalty, lam)
        solving = self._solving()
        if self.lam is None:
            path = self._computed_path()
            i = path.position_of(self._wanted(path))
            self.lam_, self.solution_ = path.lams[i], path.solutions[i]
            self.labels_ = path.labels[i]
            self.problem_ = self.problem_.with_lam(self.lam_)
        else:
            self.lam_, self.solution_ = self.problem_.lam, solving.solve(self.problem_)
            warn_if_consensus(self.problem_, self.solution_)
            spread = float(np.ptp(self._points, axis=0).max())
            self.labels_ = cluster_labels(self.solution_, spread)
        self.n_clusters_ = int(self.labels_.max()) + 1
        if self.n_clusters is not None and self.n_clusters_ != self.n_clusters:
            warnings.warn(
                f"{type(self).__name__}: found no lambda with n_clusters={self.n_clusters} "
                f"clusters; took {self.n_clusters_}",
                ConvergenceWarning,
                stacklevel=2,
            )
        members = np.bincount(self.labels_)
        sums = [np.bincount(self.labels_, column) for column in self.solution_.w.T]
        self.cluster_centers_ = np.column_stack(sums) / members[:, None]
        self.flows_ = self.solution_.u
        self.dual_gap_ = self.solution_.gap
        self.n_iter_ = max(self.solution_.n_iter, 1)
        solving.warn(self.solution_, type(self).__name__, stacklevel=2)
        return self

    @property
    def clusterpath_(self) -> ClusteringPath:
        """Solutions along lambda."""
        check_is_fitted(self)
        return self._computed_path().path

    @property
    def dendrogram_(self) -> FloatArray:
        """Linkage matrix of the path.

        Raises
        ------
        ValueError
            The graph is not connected, so that the clusters never become one.

        Warns
        -----
        UserWarning
            Clusters also split as lambda grows, which general weights allow: the path is no tree.
            In the linkage matrix what was once fused stays so.
        """
        check_is_fitted(self)
        path = self._computed_path().path
        components = int(self.graph_.components.max()) + 1
        if components > 1:
            raise ValueError(
                f"dendrogram_: the graph has {components} connected components, which never fuse"
            )
        if not path.nested:
            warnings.warn(
                "dendrogram_: the path is no tree, some clusters split again as lambda grows; "
                "here they stay fused",
                UserWarning,
                stacklevel=2,
            )
        return linkage(path.lams[::-1], path.labels[::-1])

    def _chosen_graph(self, graph: EmpiricalGraph | None) -> EmpiricalGraph:
        n = len(self._points)
        if graph is not None:
            if not isinstance(graph, EmpiricalGraph):
                raise TypeError(f"graph: an EmpiricalGraph is expected, got {type(graph).__name__}")
            if graph.n_nodes != n:
                raise ValueError(
                    f"graph: one node for each of the {n} rows of X is expected, "
                    f"got {graph.n_nodes}"
                )
            return graph
        if not is_integer(self.n_neighbors):
            raise TypeError(f"n_neighbors: an integer is expected, got {self.n_neighbors!r}")
        if n == 1:
            return EmpiricalGraph(1, np.empty((0, 2), dtype=np.int64))
        return knn_graph(
            self._points,
            min(self.n_neighbors, n - 1),
            weights=self.weights,
            bandwidth=self.bandwidth,
            floor=self.floor,
            connect=True,
        )

    def _solving(self) -> Solving:
        middle = np.broadcast_to(np.median(self._points, axis=0), self._points.shape)
        return Solving(
            self.problem_,
            middle,
            rtol=self.rtol,
            solver=self.solver,
            max_iter=self.max_iter,
            verbose=self.verbose,
            time_limit=self.time_limit,
        )

    def _computed_path(self) -> PathBuilder:
        if self._builder is None:
            if not self.problem_.penalty.is_norm:
                raise ValueError(
                    f"penalty: a norm is expected for a path of clusters, "
                    f"{self.problem_.penalty.name!r} fuses nothing"
                )
            if not is_integer(self.n_lams):
                raise TypeError(f"n_lams: an integer is expected, got {self.n_lams!r}")
            if self.n_lams < 2:
                raise ValueError(f"n_lams: at least 2 is expected, got {self.n_lams}")
            self._builder = PathBuilder(self.problem_, self._points, self._solving(), self.n_lams)
            if self._builder.n_missed:
                warnings.warn(
                    f"{type(self).__name__}: {self._builder.n_missed} of the "
                    f"{len(self._builder.lams)} solutions of the path have larger gaps than "
                    f"rtol={self.rtol:g} allows; increase max_iter, time_limit or rtol",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return self._builder

    def _wanted(self, path: PathBuilder) -> int:
        """Return the number of clusters to look for."""
        k = self.n_clusters
        if k is None:
            return path.longest_lived()
        if not is_integer(k):
            raise TypeError(f"n_clusters: an integer is expected, got {k!r}")
        components = int(self.graph_.components.max()) + 1
        if not components <= k <= len(self._points):
            raise ValueError(
                f"n_clusters: an integer from {components}, the number of connected components, "
                f"to {len(self._points)}, that of points, is expected, got {k}"
            )
        return int(k)
