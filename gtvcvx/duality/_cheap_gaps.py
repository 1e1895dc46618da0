"""Gaps that cost next to nothing: against the flow zero, and against a share of a flow.

Nothing is prepared, or repaired, for them: bounds while there are no better ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS
from gtvcvx.duality._terms import CREDIBLE, Gap, GapTerms
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty


def short_gap(
    graph: EmpiricalGraph,
    losses: StackedLoss,
    penalty: Penalty,
    capacities: FloatArray,
    w: FloatArray,
    u: FloatArray,
) -> tuple[Gap, FloatArray] | None:
    """Return a gap of w (n, d) against a share of u (m, d) that is feasible, and that flow.

    From above; None where no share is told by the slopes at w.

    Raises
    ------
    Expired
        The deadline has passed, see `gtvcvx._deadline`.
    """
    terms = GapTerms(graph, losses, penalty, capacities)
    scale = terms.scale(u)
    look()
    s = graph.divergence @ u
    s *= -scale
    found = losses.short_gap(w, s)
    if found is None:
        return None
    share, node, leaks = found
    del s  # as large as w
    u = (scale * share) * u
    look()
    gap = terms.gap_of_edges(w, u)
    # Leaks are roundings: beside solutions that are far larger than w, too, they cost nothing.
    look()
    far = CREDIBLE * float(np.abs(w).max(initial=1.0))
    noise = terms.noise(w, u, near=False).total
    return Gap(node, gap, 2.0 * far * leaks + noise), u


def loose_gap(
    graph: EmpiricalGraph,
    losses: StackedLoss,
    penalty: Penalty,
    capacities: FloatArray,
    w: FloatArray,
) -> Gap:
    """Return a gap of w (n, d) against the flow zero, from above, that costs next to nothing."""
    terms = GapTerms(graph, losses, penalty, capacities)
    size = abs(float(np.sum(losses.value(w))))
    return dataclasses.replace(terms.loose_gap(w), rounding=4.0 * EPS * size)


def value_and_gap_at_zero(
    graph: EmpiricalGraph, losses: StackedLoss, w: FloatArray
) -> tuple[float, Gap]:
    """Return the objective at w = 0 (n, d), without a jump, and its gap against the flow zero."""
    value = float(np.sum(losses.value(w)))
    return value, Gap(losses.loose_gap(w), np.zeros(graph.n_edges), 4.0 * EPS * abs(value))
