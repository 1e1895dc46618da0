"""What a problem and its solution say together about nodes and edges, for tables and pictures."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

#: From this share of its capacity on, an edge counts as saturated.
SATURATED = 0.999

# Terms that say something about the parameters of a node without any data of it.
_NO_DATA = frozenset({"ridge", "l1", "box", "simplex"})


def check_pair(solution: Solution, problem: GTVProblem) -> None:
    """Refuse a solution that is not one of the problem.

    Raises
    ------
    TypeError
        One of the two is something else.
    ValueError
        Shapes of w or u, node labels or edges differ.
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"solution: a Solution is expected, got {type(solution).__name__}")
    if not isinstance(problem, GTVProblem):
        raise TypeError(f"problem: a GTVProblem is expected, got {type(problem).__name__}")
    problem.checked_w(solution.w, "solution: w")
    problem.checked_u(solution.u, "solution: u")
    if list(solution.nodes) != list(problem.graph.nodes):
        raise ValueError("solution: its node labels are not those of the problem")
    for name, length in (("node_gaps", len(solution.w)), ("edge_gaps", len(solution.u))):
        if np.shape(getattr(solution, name)) != (length,):
            raise ValueError(f"solution: {length} {name} are expected")
    if not np.array_equal(solution.edges, problem.graph.edges):
        raise ValueError("solution: its edges are not those of the problem")


def coefficient_names(solution: Solution) -> list[str] | None:
    """Names of the d coefficients, as ``gtvcvx fit`` notes them in the solution, or None."""
    names = solution.info.get("features")
    if not isinstance(names, list) or len(set(map(str, names))) != solution.w.shape[1]:
        return None
    return [str(name) for name in names]


def labelled(problem: GTVProblem) -> BoolArray:
    """Whether a node has data, (n,): a loss that is more than a regularizer or a constraint."""
    has_data = np.zeros(problem.graph.n_nodes, dtype=bool)
    for term in problem.losses.terms():
        if term["kind"] not in _NO_DATA:
            has_data[term["node"]] = True
    return has_data


def edge_load(problem: GTVProblem, u: FloatArray) -> FloatArray:
    """Share of its capacity that the flow u (m, d) takes of each edge, ||u_e||_* / (lambda A_e).

    A penalty that is no norm has no capacities: there, the share of the largest ||u_e||_2.
    """
    if problem.penalty.is_norm:
        return np.asarray(problem.penalty.dual_norm(u) / problem.capacities)
    size = np.linalg.norm(u, axis=1)
    return np.asarray(size / max(float(size.max(initial=0.0)), np.finfo(float).tiny))


def saturated(problem: GTVProblem, load: FloatArray) -> BoolArray:
    """Which edges are at their capacity, (m,), by their `edge_load`; none if there are none."""
    if not problem.penalty.is_norm:
        return np.zeros(len(load), dtype=bool)
    return load >= SATURATED


def edge_jumps(problem: GTVProblem, w: FloatArray) -> FloatArray:
    """Euclidean length of the jump of w across each edge, ||w_head - w_tail||_2, (m,)."""
    return np.asarray(np.linalg.norm(problem.differences(w), axis=1))
