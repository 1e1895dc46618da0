"""``gtvcvx cluster``: convex clustering of the rows of a table."""

from __future__ import annotations

import warnings
from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._extras import extra_module
from gtvcvx._progress import format_seconds
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._clusters import Clusters, find_clusters, write_partition
from gtvcvx.cli._design import standardized
from gtvcvx.cli._loading import check_outputs
from gtvcvx.cli._proof import certificate_data, certificate_lines, certify_reached, exit_status
from gtvcvx.cli._report import counted, emit, entry, listed, working
from gtvcvx.files._csv import node_positions
from gtvcvx.files._tables import DataTable, EdgeTable, read_data, read_edges
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import PointLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# The solver stops a little below a tolerance that is given: the certificate rounds outwards.
_SOLVER_SHARE = 0.9
# Where none is given, one accurate solution costs little once lambda is found.
_SOLVER_RTOL = 1e-9
_ROW = "row"


def run(args: Namespace) -> int:
    """Read, cluster, write, certify, report."""
    written = _outputs(args)
    estimator = _estimator(args)
    with working(args, "reading"):
        points = read_points(args)
        graph = _graph(args, points)
    notes = _fit(args, estimator, points, graph)
    problem, solution = _named(estimator, points)
    solution.info.update(points.info())
    clusters = _clusters(estimator, points, solution)
    centres = points.in_original_units(estimator.cluster_centers_)
    outliers = [points.nodes[i] for i in estimator.outliers_.nonzero()[0].tolist()]
    write_partition(args.output, args.node or _ROW, solution, estimator.labels_)
    if args.solution is not None:
        problem.save(str(written["--problem"]))
        solution.save(args.solution)
    certificate = certify_reached(args, problem, solution, args.rtol or DEFAULT_RTOL)
    lines = [
        entry("Data", f"{counted(len(points.X), 'point')}; features {listed(points.features)}"),
        *points.lines(),
        entry("Graph", _graph_text(args, estimator)),
        entry("Problem", f"penalty {problem.penalty.name}, lambda {problem.lam:.6g} {_why(args)}"),
        entry("Solver", f"{solution.solver}: {format_seconds(solution.seconds)} at this lambda"),
        *certificate_lines(certificate),
        *(entry("Note", note) for note in notes),
        entry("Clusters", f"{len(clusters.members)}; columns are means of the rows"),
        *clusters.lines(points.features),
        *_outlier_lines(args, estimator, outliers),
        entry("Written", ", ".join(path for path in written.values() if path)),
    ]
    data = {
        "data": {"points": len(points.X), **points.info()},
        "graph": {"nodes": problem.graph.n_nodes, "edges": problem.graph.n_edges},
        "problem": {"penalty": problem.penalty.to_data(), "lam": problem.lam},
        "solver": {"name": solution.solver, "rel_gap": solution.rel_gap},
        "notes": notes,
        "certificate": certificate_data(certificate),
        "clusters": _clusters_data(clusters, centres),
        "min_cluster_size": estimator.min_cluster_size_,
        "outliers": outliers,
        "written": {name.removeprefix("--"): path for name, path in written.items()},
    }
    emit(args, lines, data)
    return exit_status(certificate.status)


@dataclass(frozen=True)
class Points:
    """Rows to cluster.

    Attributes
    ----------
    table : DataTable
        The file.
    X : ndarray, shape (n, d)
        The points, scaled if that was asked for.
    scaling : dict or None
        See `standardized`.
    nodes : list of str or list of int, length n
        Names of the rows.
    """

    table: DataTable
    X: FloatArray
    scaling: dict[str, Any] | None
    nodes: list[Any]

    @property
    def features(self) -> list[str]:
        """Names of the columns."""
        return self.table.features

    def in_original_units(self, w: FloatArray) -> FloatArray:
        """Points (n, d) in the units of the file."""
        if self.scaling is None:
            return w
        return w * np.array(self.scaling["scale"]) + np.array(self.scaling["mean"])

    def info(self) -> dict[str, Any]:
        """Return what a reader of the solution must know to use its centres."""
        return {
            "features": self.features,
            "intercept": False,
            "standardized": self.scaling,
            "loss": {"name": "point"},
        }

    def lines(self) -> list[str]:
        """Return what scaling did."""
        if self.scaling is None:
            return []
        constant = self.scaling["constant"]
        left = f"; constant, left as they are: {listed(constant)}" if constant else ""
        return [entry("", f"scaled to mean 0 and variance 1{left}")]


def read_points(args: Namespace) -> Points:
    """Read the points; names that occur twice are refused by line."""
    table = read_data(args.data, node=args.node, target=None, features=args.features)
    if not table.features:
        raise ValueError(f"{args.data}: there is no feature column besides {args.node!r}")
    first: dict[str, int] = {}
    for name, line in zip(map(str, table.node), table.lines.tolist(), strict=True):
        if first.setdefault(name, line) != line:
            raise ValueError(
                f"{args.data}, line {line}: {name!r} names the row on line {first[name]} already"
            )
    X, scaling = table.X, None
    if args.standardize:
        X, scaling = standardized(X, table.features)
    return Points(table, X, scaling, table.node)


def _estimator(args: Namespace) -> Any:
    """Return the unfitted estimator; scikit-learn is an extra."""
    try:
        extra_module("sklearn", "ml", "estimators")
    except ImportError as error:
        raise ValueError(str(error)) from None
    # Loaded here, since scikit-learn may be missing.
    from gtvcvx.estimators import ConvexClustering

    options = {
        "n_neighbors": args.neighbours,
        "rtol": _SOLVER_RTOL if args.rtol is None else _SOLVER_SHARE * args.rtol,
    }
    return ConvexClustering(
        lam=args.lam,
        n_clusters=args.n_clusters,
        min_cluster_size=args.min_cluster_size,
        noise=args.noise,
        penalty=args.penalty,
        max_iter=args.max_iter,
        time_limit=args.time_limit,
        **{name: value for name, value in options.items() if value is not None},
    )


def _fit(
    args: Namespace, estimator: Any, points: Points, graph: EmpiricalGraph | None
) -> list[str]:
    """Cluster; return the warnings as text."""
    with working(args, "clustering"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(points.X, graph=graph)
    prefix = f"{type(estimator).__name__}: "
    return list(dict.fromkeys(str(warning.message).removeprefix(prefix) for warning in caught))


def _graph(args: Namespace, points: Points) -> EmpiricalGraph | None:
    """Return the graph of EDGES over the rows, if there is one."""
    if args.edges is None:
        return None
    table: EdgeTable = read_edges(args.edges)
    known = node_positions(points.nodes)
    unknown = [label for label in table.labels if str(label) not in known]
    if unknown:
        raise ValueError(f"{args.edges}: node {str(unknown[0])!r} is no row of {args.data}")
    place = np.array([known[str(label)] for label in table.labels], dtype=np.int64)
    return EmpiricalGraph(len(points.nodes), place[table.edges], table.weights)


def _named(estimator: Any, points: Points) -> tuple[GTVProblem, Solution]:
    """Return problem and solution with the rows' names in the place of their numbers."""
    plain = estimator.problem_.graph
    graph = EmpiricalGraph(plain.n_nodes, plain.edges, plain.weights, points.nodes)
    problem = GTVProblem(
        graph, PointLoss.stack(points.X), estimator.problem_.penalty, estimator.lam_
    )
    return problem, replace(estimator.solution_, nodes=graph.nodes)


def _graph_text(args: Namespace, estimator: Any) -> str:
    graph = estimator.graph_
    if args.edges:
        kind = f"of {args.edges}"
    else:
        neighbours = min(estimator.n_neighbors, graph.n_nodes - 1)
        kind = f"{counted(neighbours, 'nearest neighbour')} of each point, and a spanning tree"
    return f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}, {kind}"


def _why(args: Namespace) -> str:
    if args.lam is not None:
        return "as given"
    if args.n_clusters is not None:
        return f"for {counted(args.n_clusters, 'cluster')}"
    return "for the most stable number of clusters" if args.edges else "for clusters that stand out"


def _clusters(estimator: Any, points: Points, solution: Solution) -> Clusters:
    """Clusters by the means of their rows, for centres are drawn towards one another."""
    kept = np.flatnonzero(estimator.labels_ >= 0)
    rows = replace(solution, w=points.table.X[kept], nodes=[points.nodes[i] for i in kept.tolist()])
    return find_clusters(rows, estimator.labels_[kept])


def _outlier_lines(args: Namespace, estimator: Any, outliers: list[Any]) -> list[str]:
    """Return what became of the rows whose centres coincide with few others."""
    if not outliers:
        return []
    fate = "labelled -1" if args.noise else "in the cluster whose centre is nearest"
    size = estimator.min_cluster_size_
    return [
        entry("Outliers", f"{len(outliers)}, less than {size} together; {fate}"),
        entry("", listed(outliers)),
    ]


def _clusters_data(clusters: Clusters, centres: FloatArray) -> list[dict[str, Any]]:
    """Return one dict a cluster, with its centre (a row of centres) and the mean of its rows."""
    return [
        {
            "cluster": part["cluster"],
            "size": part["size"],
            "mean": part["coefficients"],
            "centre": centre,
            "nodes": part["nodes"],
        }
        for part, centre in zip(clusters.data(), centres, strict=True)
    ]


def _outputs(args: Namespace) -> dict[str, str | None]:
    """Paths of all output files by argument, checked."""
    outputs: dict[str, str | None] = {"--output": args.output, "--solution": args.solution}
    if args.solution is not None:
        outputs["--problem"] = f"{args.solution.removesuffix('.npz')}.problem.npz"
    inputs = {"DATA": args.data} | ({"--edges": args.edges} if args.edges else {})
    check_outputs(outputs, inputs)
    return outputs
