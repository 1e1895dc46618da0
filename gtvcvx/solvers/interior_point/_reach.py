"""Capacities beyond whatever can flow, where slopes of losses are bounded.

Tiny features and a large lambda: all nodes are fused, and what flows is 1e-8 of the capacities. An
interior-point method goes through the middle of them and loses that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.conic._function import CvxpyFunction
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses.batched._terms import MULTINOMIAL
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._losses import LOSS_KINDS

# Capacities are left at so many times what all slopes add up to: edges of a cycle may carry more.
# A guess only: the driver checks against the problem as it is.
MARGIN = 4.0
# Those that are less than so many times as large stay as they are.
FAR = 100.0
# Slopes of a function along so many directions are typical of all.
DIRECTIONS = 3


def within_reach(problem: GTVProblem) -> GTVProblem:
    """Return the problem with smaller capacities where they are far beyond what can flow."""
    if not problem.penalty.is_norm or not problem.graph.n_edges:
        return problem
    enough = problem.capacities.max() / (FAR * MARGIN)
    return _lowered(problem, _mass(problem, enough))


def within_flow(problem: GTVProblem, flow: FloatArray) -> GTVProblem:
    """Return the same where a flow (m, d) that is nearly optimal uses next to nothing of them."""
    if not problem.penalty.is_norm or not problem.graph.n_edges:
        return problem
    return _lowered(problem, float(problem.penalty.dual_norm(flow).max()))


def _lowered(problem: GTVProblem, flow: float) -> GTVProblem:
    """Lower the capacities to what lets so much flow pass, if they are far beyond."""
    most = MARGIN * flow
    if not 0.0 < FAR * most < problem.capacities.max():
        return problem
    weights = np.minimum(problem.capacities, most)
    graph = EmpiricalGraph(problem.graph.n_nodes, problem.graph.edges, weights)
    return GTVProblem(graph, problem.losses, problem.penalty, 1.0)


def _mass(problem: GTVProblem, enough: float) -> float:
    """Return what the slopes of all rows and coordinates add up to at most, perhaps infinity.

    Those of losses that are written with CVXPY are estimated, as long as there is not enough.
    """
    losses = problem.losses
    written = [batch.written() or () for _, batch in losses.parts]
    terms = [term for term in losses.terms() if term["kind"] != "opaque"]
    if not all(term["kind"] in LOSS_KINDS and term["kind"] != MULTINOMIAL for term in terms):
        return np.inf
    parts = Parts.of(terms, problem.graph.n_nodes, problem.dim)
    if parts.constrained or (parts.coordinates["mu"] > 0.0).any():
        return np.inf
    steepest = np.maximum(np.abs(parts.rows["low"]), np.abs(parts.rows["high"]))
    if not np.isfinite(steepest).all():
        return np.inf
    mass = np.sum(steepest * np.abs(parts.X).sum(axis=1)) + np.sum(parts.coordinates["kappa"])
    return _with_written(float(mass), [f for batch in written for f in batch], enough)


def _with_written(mass: float, functions: Sequence[CvxpyFunction], enough: float) -> float:
    """Add about what the slopes of functions add up to far out, infinity if these grow."""
    rng = np.random.default_rng(0)
    for function in functions:
        look()
        if mass >= enough:  # each costs as much as a tenth of its conic form
            break
        directions = rng.choice([-1.0, 1.0], (DIRECTIONS, function.dim))
        mass += max(function.slope_far_out(direction) for direction in directions)
    return mass
