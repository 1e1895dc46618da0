"""The picture of ``gtvcvx well-connected``: what is computed for it, and its file."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import verify
from gtvcvx._arrays import FloatArray
from gtvcvx._diagnostics import edge_load
from gtvcvx.cli._report import counted
from gtvcvx.plotting import _canvas, _partition
from gtvcvx.plotting._layout import layout
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

#: Larger graphs give a picture that shows nothing.
MOST_NODES, MOST_EDGES = 2000, 20_000
_CURVE_POINTS = 41


def check_picture(path: str, problem: GTVProblem | None = None) -> None:
    """Refuse, before any work, a picture that could not be drawn or written."""
    try:
        _canvas.require_matplotlib()
    except ImportError as error:
        raise ValueError(f"--picture: {error}") from None
    if os.path.splitext(path)[1].lower() not in _canvas.FORMATS:
        endings = ", ".join(_canvas.FORMATS)
        raise ValueError(f"--picture: a file name that ends in {endings} is expected, got {path!r}")
    if problem is None:
        return
    n, m = problem.graph.n_nodes, problem.graph.n_edges
    if n > MOST_NODES or m > MOST_EDGES:
        raise ValueError(
            f"--picture: graphs of up to {MOST_NODES} nodes and {MOST_EDGES} edges can be drawn, "
            f"this one has {n} and {m}"
        )


def write_picture(
    path: str,
    problem: GTVProblem,
    labels: Sequence[Any],
    report: Any,
    seed: int = 0,
    solution: Solution | None = None,
) -> None:
    """Take flows of a solution, follow the margins along lambda, draw and write.

    Parameters
    ----------
    path : str
        File to write, .png, .pdf or .svg.
    problem : GTVProblem
    labels : sequence of length n
        Cluster label of each node.
    report : object
        What `verify.well_connected` says about them.
    seed : int
        Seed of the layout.
    solution : Solution, optional
        Default: the problem is solved.
    """
    flow = (problem.solve(verbose=False) if solution is None else solution).u
    clusters = list(report.clusters.values())
    number = {cluster.label: c for c, cluster in enumerate(clusters)}
    cluster_of = np.array([number[label] for label in labels], dtype=np.int64)
    graph = problem.graph
    index = {node: i for i, node in enumerate(graph.nodes)}
    worst = min(clusters, key=lambda cluster: cluster.margin)
    tight = np.zeros(graph.n_nodes, dtype=bool)
    tight[[index[node] for node in worst.tightest_set]] = True
    lams = _lambdas(problem.lam, [cluster.lam_min for cluster in clusters])
    verdict = "every cluster is well-connected" if report.holds else "NOT all well-connected"
    figure = _partition.draw_partition(
        _partition.PartitionPicture(
            edges=graph.edges,
            cluster_of=cluster_of,
            names=[str(cluster.label) for cluster in clusters],
            labels=[str(node) for node in graph.nodes],
            positions=layout(graph.n_nodes, graph.edges, cluster_of, seed),
            load=edge_load(problem, flow),
            tight=tight,
            sinks=[index[c.i0] for c in clusters if c.i0 is not None and len(c.nodes) > 1],
            lam=problem.lam,
            lams=lams,
            margins=_margins(problem, labels, lams),
            title=f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}, "
            f"{counted(len(clusters), 'cluster')}: {verdict}",
            note="Definition 1: margins against lambda",
        )
    )
    _canvas.save_figure(figure, path)


def _lambdas(lam: float, least: Sequence[float]) -> FloatArray:
    """Values of lambda around the problem's and those from which clusters are well-connected."""
    marks = [lam, *(x for x in least if math.isfinite(x) and 1e-4 * lam < x < 1e4 * lam)]
    return np.geomspace(min(marks) / 10.0, max(marks) * 100.0, _CURVE_POINTS)


def _margins(problem: GTVProblem, labels: Sequence[Any], lams: FloatArray) -> FloatArray:
    """Margin of every cluster at every lambda, (k, q); NaN where the theorem does not apply."""
    data = problem.to_data()
    columns = []
    for lam in lams.tolist():
        report = verify.well_connected({**data, "lam": lam}, labels)
        clusters = report.clusters.values()
        columns.append([c.margin if c.applies else math.nan for c in clusters])
    return np.array(columns).T
