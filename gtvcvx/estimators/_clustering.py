"""Convex clustering: centres of points that fuse as lambda grows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, is_integer
from gtvcvx.estimators._clusterpath import ClusteringPath, PathBuilder, cluster_labels
from gtvcvx.estimators._doubts import warn_of_number, warn_of_one
from gtvcvx.estimators._grouping import Grouping
from gtvcvx.estimators._linkage import linkage
from gtvcvx.estimators._necks import Necks
from gtvcvx.estimators._point_graph import point_graph, spread_of
from gtvcvx.estimators._search import Found, Wanted, found_clusters
from gtvcvx.estimators._solving import Solving
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import PointLoss
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_consensus


@dataclass(kw_only=True, repr=False, eq=False)
class ConvexClustering(ClusterMixin, BaseEstimator):
    r"""Convex clustering of points over a graph ([GTV] (29), [SON], [H], [CL]).

    .. math:: \min_w \sum_i \|w_i - x_i\|_2^2 + \lambda \sum_{\{i, j\}} A_{ij} \phi(w_i - w_j)

    Each point x_i has a centre w_i; points whose centres coincide are fused. For a small lambda
    they are all apart, for a large one there is one cluster in every connected component of the
    graph, and in between they fuse. Fused points are a cluster if they are enough; the others,
    which stay alone at the border of clusters for long, are outliers.

    Parameters
    ----------
    lam : float, optional
        The regularization parameter lambda, > 0. It has no unit unless a graph is given: with 1,
        an edge weight's mean sum at a point moves it by as much as the points spread.
    n_clusters : int, optional
        Instead of ``lam``: a lambda with this number of clusters is looked for, so large that few
        points are outliers. If there is none, because several fuse at once, the nearest number is
        taken, with a warning.
        Default, if there is no ``lam`` either: as many as stand out, which may be one, see Notes.
    min_cluster_size : int, optional
        Fused points count as a cluster if there are at least so many. Default: a fifth of the mean
        size n / n_clusters (less if that gives no ``n_clusters`` clusters); n / 20, but at least 5
        (n / 10 for less than 50 points), where their number is looked for; 1 with ``lam``.
    noise : bool
        Label outliers -1, as `sklearn.cluster.HDBSCAN` does. Default: they join the cluster with
        the nearest centre.
    standardize : bool
        Scale columns to mean 0 and variance 1 first, as columns in different units need. Default:
        as they are, as in `sklearn.cluster.KMeans`. A common unit of all columns does not matter.
    n_neighbors : int
        Neighbours of each point in the graph (fewer if there are not as many), which is made
        connected by a minimum spanning tree; see `gtvcvx.graph_construction.knn_graph`.
    weights : {"gaussian", "exponential", "inverse", "binary"} or callable
    bandwidth : float or "local", optional
    floor : float
        Weights of the edges, but for their common unit; see `gtvcvx.graph_construction.knn_graph`.
        "local" bandwidths are median lengths of the edges at both ends, None that of all edges.
    penalty : {"l2", "l1", "linf", "squared"} or Penalty
        phi; nothing fuses unless it is a norm.
    n_lams : int
        Number of values of lambda on ``clusterpath_``, at least 2: half of them evenly on a
        logarithmic scale, the others where clusters change. Fewer if no more are needed.
    solver : str
        See `GTVProblem.solve`.
    rtol : float
        Relative gap to reach: the gap is at most rtol max(min(1, P(median)), P(w)). No centre is
        then farther from the optimal one than the square root of the gap. While lambda is looked
        for 1e-4 will do.
    max_iter : int, optional
        Limit of iterations.
    time_limit : float, optional
        Seconds for all solves of a fit; what they have reached by then is taken, with a warning.
    verbose : bool
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of int64, shape (n,)
        Cluster of each point.
    n_clusters_ : int
    converged_ : bool
        Whether there are ``n_clusters`` clusters, or several that stand out, and the gap is small
        enough.
    min_cluster_size_ : int
        The one that was used.
    outliers_ : ndarray of bool, shape (n,)
        Points that belong to no cluster, or were joined.
    fused_ : ndarray of int64, shape (n,)
        Sets of fused points, of any size: centres are taken for one if they differ by up to 1e-3
        times the spread of the data. Where the number was looked for, a cluster may be several.
    cluster_centers_ : ndarray, shape (n_clusters_, d)
        Centres of the clusters, in units of X. They are drawn towards one another, the more the
        larger lambda is; the means of the clusters' points are not.
    lam_ : float
        lambda of these clusters.
    clusterpath_ : LambdaPath
        Solutions from lambda_max, with one cluster, down to single points, computed when they are
        first asked for: for `gtvcvx.plotting.plot_clusterpath`, `gtvcvx.plotting.plot_dendrogram`
        and ``clusterpath_.clusters(k, min_cluster_size)``.
    dendrogram_ : ndarray, shape (n - 1, 4)
        The path as a linkage matrix, for `scipy.cluster.hierarchy.dendrogram` and its like. The
        height of a fusion is the smallest lambda of the path at which its clusters are one.
    graph_, problem_, solution_, flows_, dual_gap_, n_iter_
        At ``lam_``, see `NetworkLinearRegression`; of the standardized points if they were.
    n_features_in_, feature_names_in_
        Columns of X, and their names if it is a data frame.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        The gap is larger than rtol allows, or no lambda with ``n_clusters`` clusters was found; or,
        without ``n_clusters`` and ``lam``, no clusters stand out, and there is one.

    Notes
    -----
    By default A_ij = c exp(-||x_i - x_j||^2 / (2 h_i h_j)) for neighbours [CL], with h_i the median
    length of the edges at i; c is such that lambda has no unit. Equal points always have one label.

    Without ``n_clusters`` and ``lam``, the clusters are taken that stand out: in a partition with
    at least 90% of the points in clusters, others are joined to a neighbour, and of all lambda that
    are tried the largest number that is left counts. A cluster stands out if its neck N, the pairs
    of neighbours across its border (n / 20 neighbours, at least 10, at most 50), is narrower than
    its body B, the most pairs across a surface inside it, which has m points:

    .. math:: N / B + 2 / \sqrt{m} \le \min(0.4 + 0.15 \delta, 1.25)

    with the intrinsic dimension delta of the data [LB]; or if its distance to all other points is
    1.5 times the longest step within it. Of samples without structure 95% are one cluster then.
    It is a heuristic: where you know the number, give it. On a ``graph`` that is given, the number
    k lasts longest on the scale of log lambda, relative to the square root of log((k + 1) / k).

    References
    ----------
    [SON] Lindsten, Ohlsson, Ljung, "Clustering using sum-of-norms regularization", IEEE SSP 2011.
    [H] Hocking, Joulin, Bach, Vert, "Clusterpath", ICML 2011. [CL] Chi, Lange, "Splitting methods
    for convex clustering", Journal of Computational and Graphical Statistics 24(4), 2015. [LB]
    Levina, Bickel, "Maximum likelihood estimation of intrinsic dimension", NIPS 2004.

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
    min_cluster_size: int | None = None
    noise: bool = False
    standardize: bool = False
    n_neighbors: int = 10
    weights: Any = "gaussian"
    bandwidth: float | str | None = "local"
    floor: float = 0.01
    penalty: str | Penalty = "l2"
    n_lams: int = 50
    solver: str = "AUTO"
    rtol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    verbose: bool = False

    labels_: IntArray = field(init=False)
    outliers_: BoolArray = field(init=False)
    fused_: IntArray = field(init=False)
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
        scaling = self._read(validate_data(self, X, dtype=np.float64))
        wanted = self._wanted()
        self.graph_ = self._chosen_graph(graph)
        if wanted is not None and graph is None:
            wanted = replace(wanted, necks=lambda: Necks(self._points, self.graph_))
        lam = 1.0 if self.lam is None else self.lam
        self.problem_ = GTVProblem(self.graph_, PointLoss.stack(self._points), self.penalty, lam)
        solving = self._solving(self.rtol)
        found = self._solved(solving) if wanted is None else self._found(wanted, solving)
        self.lam_, self.solution_, self.fused_ = found.lam, found.solution, found.partition
        self.min_cluster_size_ = found.least
        self.problem_ = self.problem_.with_lam(self.lam_)
        groups = Grouping.of(
            found.partition, found.solution.w, found.least, not self.noise, found.unions
        )
        self.labels_, self.outliers_ = groups.labels, groups.outliers
        self.n_clusters_ = len(groups.centres)
        self.cluster_centers_ = scaling[0] + groups.centres * scaling[1]
        self.flows_ = self.solution_.u
        self.dual_gap_ = self.solution_.gap
        self.n_iter_ = max(self.solution_.n_iter, 1)
        as_wanted = self.n_clusters in (None, self.n_clusters_)
        self.converged_ = as_wanted and found.stable and solving.is_met(self.solution_)
        if not as_wanted:
            warn_of_number(self, self._points, stacklevel=2)
        if not found.stable:
            warn_of_one(self, stacklevel=2)
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

    def _read(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Keep the points to be clustered; return the mean and the unit of X in terms of them."""
        mean, unit = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            constant = np.ptp(X, axis=0) == 0
            mean, unit = X.mean(axis=0), np.where(constant, 1.0, X.std(axis=0))
            if not (np.isfinite(unit) & (unit > 0)).all():
                raise ValueError(
                    "X: the values of a column are too large or too close to be scaled"
                )
        self._points = (X - mean) / unit
        self._spread = spread_of(self._points)
        return mean, unit

    def _chosen_graph(self, graph: EmpiricalGraph | None) -> EmpiricalGraph:
        n = len(self._points)
        if graph is None:
            return point_graph(
                self._points,
                self.n_neighbors,
                weights=self.weights,
                bandwidth=self.bandwidth,
                floor=self.floor,
            )
        if not isinstance(graph, EmpiricalGraph):
            raise TypeError(f"graph: an EmpiricalGraph is expected, got {type(graph).__name__}")
        if graph.n_nodes != n:
            raise ValueError(
                f"graph: one node for each of the {n} rows of X is expected, got {graph.n_nodes}"
            )
        return graph

    def _wanted(self) -> Wanted | None:
        """Return the number and the size of clusters to look for, None where lambda is given."""
        n, k = len(self._points), self.n_clusters
        for name, choice in (("noise", self.noise), ("standardize", self.standardize)):
            if not isinstance(choice, bool | np.bool_):
                raise TypeError(f"{name}: True or False is expected, got {choice!r}")
        counts = {"n_clusters": k, "min_cluster_size": self.min_cluster_size, "n_lams": self.n_lams}
        for name, number in counts.items():
            if number is not None and not is_integer(number):
                raise TypeError(f"{name}: an integer is expected, got {number!r}")
        if self.min_cluster_size is not None and self.min_cluster_size < 1:
            raise ValueError(
                f"min_cluster_size: at least 1 is expected, got {self.min_cluster_size}"
            )
        if self.n_lams < 2:
            raise ValueError(f"n_lams: at least 2 is expected, got {self.n_lams}")
        if self.lam is not None:
            if k is not None:
                raise ValueError("n_clusters: expected only where lam is not given")
            return None
        if k is not None and not 1 <= k <= n:
            raise ValueError(
                f"n_clusters: an integer from 1 to {n}, the number of points, is expected, got {k}"
            )
        return Wanted.of(n, k, self.min_cluster_size)

    def _partition(self, solution: Solution) -> IntArray:
        return cluster_labels(solution, self._spread)

    def _solved(self, solving: Solving) -> Found:
        """Solve for the lambda that was given."""
        solution = solving.solve(self.problem_)
        warn_if_consensus(self.problem_, solution, stacklevel=3)
        least = self.min_cluster_size or 1
        return Found(self.problem_.lam, solution, self._partition(solution), least)

    def _found(self, wanted: Wanted, solving: Solving) -> Found:
        """Look for lambda."""
        self._check_norm()
        return found_clusters(
            self.problem_, self._points, self._spread, wanted, solving, self._solving, self.rtol
        )

    def _solving(self, rtol: float) -> Solving:
        middle = np.broadcast_to(np.median(self._points, axis=0), self._points.shape)
        return Solving(
            self.problem_,
            middle,
            rtol=rtol,
            solver=self.solver,
            max_iter=self.max_iter,
            verbose=self.verbose,
            time_limit=self.time_limit,
        )

    def _check_norm(self) -> None:
        if not self.problem_.penalty.is_norm:
            raise ValueError(
                f"penalty: a norm is expected for a path of clusters, "
                f"{self.problem_.penalty.name!r} fuses nothing"
            )

    def _computed_path(self) -> PathBuilder:
        if self._builder is None:
            self._check_norm()
            self._builder = PathBuilder(
                self.problem_,
                self._points,
                self._solving(self.rtol),
                self.n_lams,
                self._spread,
                (self.lam_, self.solution_),
            )
            if self._builder.n_missed:
                warnings.warn(
                    f"{type(self).__name__}: {self._builder.n_missed} of the "
                    f"{len(self._builder.lams)} solutions of the path have larger gaps than "
                    f"rtol={self.rtol:g} allows; increase max_iter, time_limit or rtol",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return self._builder
