"""What ``gtvcvx fit`` says about the problem it read and the solution it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._progress import format_seconds
from gtvcvx.cli._clusters import SHOWN_CLUSTERS, SHOWN_FEATURES, Clusters
from gtvcvx.cli._design import Design
from gtvcvx.cli._report import counted, entry, listed, table
from gtvcvx.solution import Solution


def problem_lines(design: Design, lam: bool = True) -> list[str]:
    """Return what was read; ``lam``: whether there is one lambda."""
    graph, data = _graph_data(design), _points_data(design)
    isolated, skipped = graph["isolated"], data["rows_without_target"]
    lines = [
        entry(
            "Graph",
            f"{counted(graph['nodes'], 'node')}, {counted(graph['edges'], 'edge')}, "
            f"{counted(graph['components'], 'component')}"
            + (f", {counted(isolated, 'isolated node')}" if isolated else ""),
        ),
        entry(
            "Data",
            f"{counted(data['points'], 'point')} at {counted(data['labelled'], 'node')}, "
            f"{counted(data['unlabelled'], 'node')} unlabelled"
            + (f", {counted(skipped, 'row')} without target left out" if skipped else ""),
        ),
        entry("Features", listed(design.inputs)),
    ]
    if design.scaling is not None:
        constant = design.scaling["constant"]
        scaled = [name for name in design.table.features if name not in constant]
        left = f"; constant, left as they are: {listed(constant)}" if constant else ""
        lines.append(
            entry("", f"scaled to mean 0 and variance 1: {listed(scaled) or 'none'}{left}")
        )
    if design.table.labels is not None:
        values = sorted(set(design.table.y.tolist()))
        pairs = zip(design.table.labels, values, strict=True)
        lines.append(entry("Labels", ", ".join(f"{text} = {value:g}" for text, value in pairs)))
    penalty = design.problem.penalty.to_data()
    name = penalty["kind"] + (f" with p = {penalty['p']:g}" if "p" in penalty else "")
    plain = design.loss.text() == "squared"
    loss = "" if plain else f"loss {design.loss.text()}; "
    value = f", lambda {design.problem.lam:g}" if lam else ""
    lines.append(entry("Problem", f"{loss}penalty {name}{value}"))
    return lines


def problem_data(design: Design, lam: bool = True) -> dict[str, Any]:
    """Return the same for JSON."""
    value = {"lam": design.problem.lam} if lam else {}
    return {
        "graph": _graph_data(design),
        "data": {**_points_data(design), **design.info()},
        "problem": {"penalty": design.problem.penalty.to_data(), **value},
    }


def solution_lines(design: Design, solution: Solution) -> list[str]:
    """Return how the solver fared."""
    status = solution.status
    if status == "user_limit":
        status = "user_limit (a limit or Ctrl-C came before the gap was reached)"
    quality = design.fit_quality(solution.w)
    if "mean_squared_error" in quality:
        quality.pop("mean_loss")
    said = "".join(f"; {key.replace('_', ' ')} of the data {x:.6g}" for key, x in quality.items())
    return [
        entry(
            "Solver",
            f"{solution.solver}: {status}, {counted(solution.n_iter, 'iteration')}, "
            f"{format_seconds(solution.seconds)}",
        ),
        entry("Objective", f"{solution.value:.9g}{said}"),
    ]


def solution_data(design: Design, solution: Solution) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "solver": {
            "name": solution.solver,
            "status": solution.status,
            "n_iter": solution.n_iter,
            "seconds": solution.seconds,
            "value": solution.value,
            "rel_gap": solution.rel_gap,
        },
        **design.fit_quality(solution.w),
    }


@dataclass(frozen=True)
class Original:
    """Coefficients in the units of the file, where the fit was made in others.

    Attributes
    ----------
    names : list of str, length p
    of_clusters : ndarray, shape (k, p)
        Means over the nodes of each cluster.
    """

    names: list[str]
    of_clusters: FloatArray

    @staticmethod
    def of(design: Design, solution: Solution, clusters: Clusters) -> Original | None:
        """Convert the parameters of a solution; None where they are in the file's units."""
        converted = design.in_original_units(solution.w)
        if converted is None:
            return None
        return Original(converted[0], clusters.averages(converted[1]))

    def lines(self, clusters: Clusters) -> list[str]:
        """Return a table of the largest clusters."""
        shown = self.names if len(self.names) <= SHOWN_FEATURES else self.names[:SHOWN_FEATURES]
        wide = ["..."] * (len(self.names) > len(shown))
        rows = [
            [str(c), *(f"{x:.5g}" for x in self.of_clusters[c, : len(shown)]), *wide]
            for c in clusters.by_size()[:SHOWN_CLUSTERS].tolist()
        ]
        header = ["cluster", *shown, *wide]
        return [entry("", "the same in the units of the file"), *table(header, rows)]

    def data(self) -> dict[str, Any]:
        """Return the same for JSON, in the order of the clusters."""
        return {"features": self.names, "coefficients": self.of_clusters}


def _graph_data(design: Design) -> dict[str, int]:
    graph = design.problem.graph
    return {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "components": int(graph.components.max()) + 1,
        "isolated": int(np.sum(graph.degrees == 0)),
    }


def _points_data(design: Design) -> dict[str, int]:
    labelled = design.n_labelled
    return {
        "points": len(design.table.y),
        "labelled": labelled,
        "unlabelled": design.problem.graph.n_nodes - labelled,
        "rows_without_target": design.table.n_skipped,
    }
