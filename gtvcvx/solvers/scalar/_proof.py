"""Gaps of pairs that are optimal but for rounding, coordinate by coordinate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.duality._line_gap import line_gap
from gtvcvx.duality._scalar_gap import scalar_gap, total_gap
from gtvcvx.duality._terms import Gap
from gtvcvx.duality._value_rounding import ValueRounding
from gtvcvx.losses.batched._terms import Term
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Proved
from gtvcvx.solvers.driver._scalar import scalar_capacities
from gtvcvx.solvers.scalar._problems import extent_in, slopes_in


def proved(problem: GTVProblem, w: FloatArray, u: FloatArray, line: bool = False) -> Proved:
    """Return the objective of w (n, d) and its gap against the flow u (m, d).

    Parameters
    ----------
    problem : GTVProblem
        With a penalty and losses that are sums over coordinates.
    w, u : (n, d), (m, d)
    line : bool
        Whether nodes are a chain as they are numbered.
    """
    gaps, values = [], problem.losses.value(w)
    value = float(np.sum(values))
    for k, (x, flow) in enumerate(zip(_columns(w), _columns(u), strict=True)):
        gap, variation = _gap_in(problem, k, x, flow, line)
        gaps.append(gap)
        value += variation
    found = total_gap(gaps, value)
    n, d = w.shape
    # Data may be far from zero.
    rounding = problem.cached(
        "rounding of losses", lambda: ValueRounding(_terms_with_rows(problem), n, d)
    )
    own = rounding.at(w, values)
    return Proved(value, replace(found, rounding=found.rounding + own))


def _gap_in(
    problem: GTVProblem, k: int, w: FloatArray, u: FloatArray, line: bool
) -> tuple[Gap, float]:
    """Return the gap in coordinate k, and the total variation there."""
    capacities = scalar_capacities(problem)
    slopes, hull = slopes_in(problem, k), extent_in(problem, k)[:2]
    if line and not len(slopes.node):
        return line_gap(slopes.q, slopes.b, hull, capacities, w, u)
    return scalar_gap(slopes, hull, problem.graph.edges, capacities, w, u)


def _terms_with_rows(problem: GTVProblem) -> list[Term]:
    """Return the losses' terms, or none where no loss has rows: terms take sorting."""
    some = any(batch.n_thin_rows != 0 for _, batch in problem.losses.parts)
    return problem.losses.plain if some else []


def _columns(values: FloatArray) -> list[FloatArray]:
    return [np.ascontiguousarray(column) for column in values.T]
