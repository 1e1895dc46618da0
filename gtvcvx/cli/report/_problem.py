"""Facts of the problem, its solver, and the certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtvcvx._diagnostics import edge_load, labelled, saturated
from gtvcvx._progress import format_seconds
from gtvcvx.cli._proof import rounded_up
from gtvcvx.cli._report import counted, listed
from gtvcvx.cli.report._content import Content
from gtvcvx.problem import GTVProblem

Facts = list[tuple[str, str]]

_LOSSES = {
    "squared": "squared error",
    "point": "squared distance to a point",
    "logistic": "logistic loss",
    "multinomial": "multinomial logistic loss",
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


def proof_facts(content: Content) -> Facts:
    """Return the bounds that are proved."""
    proof = content.proof
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
    return rows


def is_finite(value: Any) -> bool:
    """Whether a figure of a proof is there."""
    return value is not None and math.isfinite(value)


def problem_facts(content: Content) -> Facts:
    """Return graph, losses, penalty and solver."""
    problem, solution = content.problem, content.solution
    rows = [
        ("Graph", _graph(problem)),
        ("Parameters", f"{counted(problem.dim, 'coefficient')} a node: {listed(content.names)}"),
        ("Nodes with data", f"{int(labelled(problem).sum())} of {problem.graph.n_nodes}"),
        ("Losses", "; ".join(losses(problem))),
        ("Penalty", penalty(problem)),
    ]
    if problem.penalty.is_norm and problem.graph.n_edges:
        full = int(saturated(problem, edge_load(problem, solution.u)).sum())
        of = f"{full} of {problem.graph.n_edges}"
        rows.append(("Saturated edges", f"{of}: their flow is at capacity"))
    return [
        *rows,
        ("Solver", f"{solution.solver}: {solution.status}"),
        ("Work", f"{counted(solution.n_iter, 'iteration')}, {format_seconds(solution.seconds)}"),
        (
            "Solver's own bounds",
            f"value {solution.value:.12g}, dual value {solution.dual_value:.12g}, "
            f"gap {solution.gap:.3g}, relative {solution.rel_gap:.3g}",
        ),
    ]


def _graph(problem: GTVProblem) -> str:
    graph = problem.graph
    isolated = int(np.sum(graph.degrees == 0))
    return (
        f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}, "
        f"{counted(int(graph.components.max()) + 1, 'connected component')}, "
        f"{counted(isolated, 'isolated node')}"
    )


def penalty(problem: GTVProblem) -> str:
    """Return the penalty and lambda in words."""
    data = problem.penalty.to_data()
    power = f" with p = {data['p']:g}" if "p" in data else ""
    return f"{data['kind']}{power}, lambda = {problem.lam:g}"


def losses(problem: GTVProblem) -> list[str]:
    """Return one text for each kind of loss."""
    nodes: dict[str, set[int]] = {}
    rows: dict[str, int] = {}
    for term in problem.losses.terms():
        nodes.setdefault(term["kind"], set()).update(np.asarray(term["node"]).tolist())
        rows[term["kind"]] = rows.get(term["kind"], 0) + ("X" in term) * len(term["node"])
    found = []
    for kind, where in nodes.items():
        points = f", {counted(rows[kind], 'data point')}" if rows[kind] else ""
        found.append(f"{_LOSSES.get(kind, kind)} at {counted(len(where), 'node')}{points}")
    return found or ["none"]
