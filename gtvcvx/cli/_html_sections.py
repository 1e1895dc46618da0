"""The sections of ``gtvcvx report``: what is proved, the problem, tables and pictures."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._diagnostics import coefficient_names, edge_jumps, edge_load, labelled, saturated
from gtvcvx._progress import format_seconds
from gtvcvx.cli import _html as html
from gtvcvx.cli._clusters import SHOWN_NODES, Clusters, find_clusters
from gtvcvx.cli._proof import rounded_up
from gtvcvx.cli._report import counted, listed
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

SHOWN_CLUSTERS, SHOWN_SHARES, SHOWN_COLUMNS = 30, 10, 8
_PACKAGES = ("gtvcvx", "numpy", "scipy", "cvxpy", "matplotlib")
_LOSSES = {
    "squared": "squared error",
    "point": "squared distance to a point",
    "logistic": "logistic loss",
    "huber": "Huber loss",
    "pseudohuber": "pseudo-Huber loss",
    "poisson": "Poisson loss",
    "absolute": "absolute error",
    "quantile": "quantile loss",
    "hinge": "hinge loss",
    "ridge": "ridge term",
    "l1": "l1 term",
    "box": "box constraint",
    "simplex": "simplex constraint",
    "opaque": "a loss that cannot be written down",
}


@dataclass(frozen=True)
class Content:
    """What a report is about.

    Attributes
    ----------
    problem, solution
        And what is proved about it:
    proof
        Figures of the certificate, as JSON has them.
    node_gaps, edge_gaps
        (n,) and (m,), shares in the gap; None if it is infinite.
    shares_of
        Whose shares these are.
    certificate
        Text of the certificate with its data; None if it is no such text.
    """

    problem: GTVProblem
    solution: Solution
    proof: Mapping[str, Any]
    node_gaps: FloatArray | None
    edge_gaps: FloatArray | None
    shares_of: str
    certificate: str | None

    @property
    def names(self) -> list[str]:
        """Names of the coefficients."""
        found = coefficient_names(self.solution)
        return found or [f"w{k}" for k in range(self.problem.dim)]


def proof_section(content: Content, tools: str, how_to_check: str) -> str:
    """Return the verdict, the bounds, and what checks them."""
    proof = content.proof
    kind = {"CERTIFIED": "proved", "REFUTED": "refuted"}.get(proof["status"], "unproved")
    rows = []
    if is_finite(proof["gap"]):
        bounds = "proved, in exact arithmetic" if proof["exact"] else "float estimates, not proved"
        rows += [
            ("Objective of this solution", f"at most {proof['upper']!r}"),
            ("Lower bound on the optimum", f"{proof['lower']!r}"),
            ("Gap", f"at most {proof['gap']!r}"),
            ("Relative gap", f"at most {proof['rel_gap']!r}, which is gap / max(1, |objective|)"),
            ("Bounds", bounds),
        ]
    if proof["rtol"] is not None:
        rows.append(("Relative gap asked for", f"{proof['rtol']:g}"))
    if proof["distance_bound"] is not None:
        bound = rounded_up(proof["distance_bound"])
        rows.append(("Distance of the parameters to the optimal ones", f"at most {bound}"))
    return html.section(
        "Certificate",
        html.verdict(proof["status"], proof["reason"], kind),
        html.facts(rows),
        tools,
        html.paragraph(how_to_check, "note"),
    )


def is_finite(value: Any) -> bool:
    """Whether a figure of a proof is there."""
    return value is not None and math.isfinite(value)


def problem_section(content: Content) -> str:
    """Return graph, losses, penalty and solver."""
    problem, solution = content.problem, content.solution
    graph = problem.graph
    isolated = int(np.sum(graph.degrees == 0))
    penalty = problem.penalty.to_data()
    power = f" with p = {penalty['p']:g}" if "p" in penalty else ""
    has_data = int(labelled(problem).sum())
    load = edge_load(problem, solution.u)
    rows = [
        (
            "Graph",
            f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}, "
            f"{counted(int(graph.components.max()) + 1, 'connected component')}, "
            f"{counted(isolated, 'isolated node')}",
        ),
        ("Parameters", f"{counted(problem.dim, 'coefficient')} a node: {listed(content.names)}"),
        ("Nodes with data", f"{has_data} of {graph.n_nodes}"),
        *(("Losses" if k == 0 else "", text) for k, text in enumerate(_losses(problem))),
        ("Penalty", f"{penalty['kind']}{power}, lambda = {problem.lam:g}"),
    ]
    if problem.penalty.is_norm and graph.n_edges:
        full = int(saturated(problem, load).sum())
        rows.append(("Saturated edges", f"{full} of {graph.n_edges}: their flow is at capacity"))
    rows += [
        ("Solver", f"{solution.solver}: {solution.status}"),
        (
            "Work",
            f"{counted(solution.n_iter, 'iteration')}, {format_seconds(solution.seconds)}",
        ),
        (
            "Solver's own bounds",
            f"value {solution.value:.12g}, dual value {solution.dual_value:.12g}, "
            f"gap {solution.gap:.3g}, relative {solution.rel_gap:.3g}",
        ),
    ]
    return html.section("Problem and solver", html.facts(rows))


def _losses(problem: GTVProblem) -> list[str]:
    """Return one line for each kind of loss."""
    nodes: dict[str, set[int]] = {}
    rows: dict[str, int] = {}
    for term in problem.losses.terms():
        nodes.setdefault(term["kind"], set()).update(np.asarray(term["node"]).tolist())
        rows[term["kind"]] = rows.get(term["kind"], 0) + ("X" in term) * len(term["node"])
    lines = []
    for kind, where in nodes.items():
        points = f", {counted(rows[kind], 'data point')}" if rows[kind] else ""
        lines.append(f"{_LOSSES.get(kind, kind)} at {counted(len(where), 'node')}{points}")
    return lines or ["none"]


def clusters_section(content: Content) -> tuple[str, Clusters]:
    """Return the table of the largest clusters, and all clusters."""
    clusters = find_clusters(content.solution)
    order = np.argsort([-size for size in clusters.sizes], kind="stable").tolist()
    shown = content.names[:SHOWN_COLUMNS]
    rows = [
        [
            c,
            clusters.sizes[c],
            *clusters.mean[c, : len(shown)].tolist(),
            float(clusters.spread[c]),
            listed(clusters.members[c], SHOWN_NODES),
        ]
        for c in order[:SHOWN_CLUSTERS]
    ]
    header = ["cluster", "nodes", *(f"mean of {name}" for name in shown), "spread", "members"]
    notes = [_columns_note(content)]
    rest = order[SHOWN_CLUSTERS:]
    if rest:
        largest = counted(clusters.sizes[rest[0]], "node")
        notes.append(f"{counted(len(rest), 'cluster')} more, the largest of {largest}.")
    notes.append("Spread: the largest range of a coefficient within the cluster.")
    table = html.table("Clusters of nodes that share one parameter vector", header, rows)
    text = html.paragraph(" ".join(filter(None, notes)), "note")
    return html.section(counted(len(order), "cluster").capitalize(), table, text), clusters


def _columns_note(content: Content) -> str:
    more = content.problem.dim - SHOWN_COLUMNS
    return f"{counted(more, 'coefficient')} more of each are not shown." if more > 0 else ""


def gaps_section(content: Content, pictures: list[str]) -> str:
    """Return the nodes and edges with the largest shares of the gap."""
    node, edge = content.node_gaps, content.edge_gaps
    if node is None or edge is None:
        return html.section("Where the gap is", html.paragraph("The gap is not finite."))
    problem, labels = content.problem, content.problem.graph.nodes
    jumps = edge_jumps(problem, content.solution.w)
    load = edge_load(problem, content.solution.u)
    ends = problem.graph.edges.tolist()
    nodes = [[str(labels[i]), float(node[i])] for i in _largest(node)]
    edges = [
        [*(str(labels[i]) for i in ends[e]), float(edge[e]), float(jumps[e]), float(load[e])]
        for e in _largest(edge)
    ]
    share = "flow / capacity" if problem.penalty.is_norm else "flow / largest flow"
    note = (
        "The gap is the sum of these shares, one for each node and edge; a share is zero where the "
        f"optimality condition of its node or edge holds. Shares are those of {content.shares_of}."
    )
    return html.section(
        "Where the gap is",
        html.paragraph(note, "note"),
        html.table("Nodes with the largest shares", ["node", "share"], nodes),
        html.table(
            "Edges with the largest shares", ["head", "tail", "share", "jump of w", share], edges
        ),
        *pictures,
    )


def _largest(shares: FloatArray) -> list[int]:
    order = np.argsort(-shares, kind="stable")[:SHOWN_SHARES].tolist()
    return [i for i in order if shares[i] > 0]


def coefficients_section(
    content: Content, clusters: Clusters, limit: int, pictures: list[str], rest_is_in: str
) -> str:
    """Return pictures of coefficients, and the parameter vectors of the first nodes."""
    w, labels = content.solution.w, content.problem.graph.nodes
    has_data = labelled(content.problem)
    shown = content.names[:SHOWN_COLUMNS]
    count = min(limit, len(w))
    rows = [
        [
            str(labels[i]),
            int(clusters.labels[i]),
            "yes" if has_data[i] else "no",
            *w[i, : len(shown)].tolist(),
        ]
        for i in range(count)
    ]
    notes = [_columns_note(content)]
    if count < len(w):
        notes.append(f"{counted(len(w) - count, 'node')} more; all of them are in {rest_is_in}.")
    text = " ".join(filter(None, notes))
    return html.section(
        "Coefficients",
        *pictures,
        html.table("Parameter vectors", ["node", "cluster", "data", *shown], rows),
        *([html.paragraph(text, "note")] if text else []),
    )


def versions_section(files: Mapping[str, str]) -> str:
    """Return the files that the report was made from, and versions."""
    rows = list(files.items())
    packages = ", ".join(f"{name} {import_module(name).__version__}" for name in _PACKAGES)
    rows.append(("Versions", f"{packages}, Python {platform.python_version()}"))
    return html.section("Files and versions", html.facts(rows))
