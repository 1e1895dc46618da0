"""Nodes and edges of a solution as named columns: what every export writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._diagnostics import (
    check_pair,
    coefficient_names,
    edge_jumps,
    edge_load,
    labelled,
    saturated,
)
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

Columns = dict[str, np.ndarray[Any, Any]]


def columns(
    solution: Solution, problem: GTVProblem, *, scalars: bool = True
) -> tuple[Columns, Columns]:
    """Return the columns of the nodes, of length n, and those of the edges, of length m.

    The parameter vectors are the column ``w``, the flows ``flow``, both of shape (., d). As
    scalars, coefficient k is ``w<k>`` and its flow ``flow<k>`` or, if the solution knows the
    names of its features, ``w_<name>`` and ``flow_<name>``: no other column is called so.
    """
    check_pair(solution, problem)
    load = edge_load(problem, solution.u)
    full = saturated(problem, load)
    room = problem.capacities * (1.0 - load) if problem.penalty.is_norm else np.zeros(len(load))
    names = coefficient_names(solution) if scalars else None
    node = {
        **_vectors("w", solution.w, names, scalars),
        "cluster": solution.clusters(),
        "gap": solution.node_gaps,
        "labelled": labelled(problem),
    }
    edge = {
        "weight": problem.graph.weights,
        "capacity": problem.capacities,
        **_vectors("flow", solution.u, names, scalars),
        "slack": np.maximum(room, 0.0),
        "saturated": full,
        "jump": edge_jumps(problem, solution.w),
        "gap": solution.edge_gaps,
    }
    return node, edge


def _vectors(what: str, rows: Any, names: list[str] | None, scalars: bool) -> Columns:
    """One column of vectors (k, d), or d columns of numbers."""
    if not scalars:
        return {what: rows}
    ends = map(str, range(rows.shape[1])) if names is None else (f"_{name}" for name in names)
    return {f"{what}{end}": column for end, column in zip(ends, rows.T, strict=True)}


def summary(solution: Solution, problem: GTVProblem) -> dict[str, Any]:
    """Return what is said of the solution as a whole: numbers and strings."""
    return {
        "penalty": problem.penalty.name,
        "lam": problem.lam,
        "value": solution.value,
        "dual_value": solution.dual_value,
        "gap": solution.gap,
        "status": solution.status,
        "solver": solution.solver,
    }
