"""The best point and the best flow of a run so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.duality._bounds import Gap, loose_gap, slack
from gtvcvx.graph import connected_components
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.driver._limits import Progress

# Edges with this share of their capacity left are taken as fused when the incumbent is polished.
FUSED_SLACK = 1e-4


@dataclass
class Incumbent:
    """Best point and best flow so far; they need not come from the same iteration."""

    problem: GTVProblem
    w: FloatArray = field(init=False)
    u: FloatArray = field(init=False)
    value: float = np.inf
    dual_value: float = -np.inf
    gap: float = np.inf
    parts: Gap = field(init=False)

    def update(self, w: FloatArray, u: FloatArray, keep_last: bool = False) -> None:
        """Take w, or w made constant on fused clusters, if its value is lower than the best.

        The repaired u is taken if its bound is higher. With keep_last, w is taken as it is.

        Raises
        ------
        Expired
            The deadline has passed, see `gtvcvx._deadline`; nothing has changed.
        """
        bounds, losses = self.problem.bounds, self.problem.losses
        w = losses.project_domain(w)
        value = self.problem.value(w)
        repaired = bounds.repaired(u, w)
        if not keep_last:
            fused = losses.project_domain(_fused(self.problem, w, repaired.u))
            if (fused_value := self.problem.value(fused)) < value:
                w, value = fused, fused_value
        parts, flow = bounds.gap(w, u, repaired)
        dual_value = value - parts.total
        if not np.isfinite(dual_value):
            raise ValueError(
                "losses, lam: the objective and its bound overflow double precision; scale the data"
            )
        better_w = value < self.value or keep_last
        better_u = dual_value > self.dual_value
        if better_w and better_u:
            self._take(w.copy(), value, flow, parts)
        elif better_w:
            self._take(w.copy(), value, self.u, bounds.gap_of(w, self.u))
        elif better_u:
            self._take(self.w, self.value, flow, bounds.gap_of(self.w, flow))

    def update_point(self, w: FloatArray, keep_last: bool = False) -> None:
        """Take w if its value is lower than the best, and leave the flow as it is.

        For when there is no time to repair another one.
        """
        problem = self.problem
        w = problem.losses.project_domain(w)
        value = problem.value(w)
        if value < self.value or keep_last:
            # Bounds of the whole problem may be still to be prepared, for nothing if u is zero.
            loose = not self.u.any()
            parts = self._loose_gap(w) if loose else problem.bounds.gap_of(w, self.u)
            self._take(w.copy(), value, self.u, parts)

    def begin(self) -> None:
        """Take w = 0, or what is feasible near it, and u = 0: they cost next to nothing."""
        problem = self.problem
        w = problem.losses.project_domain(np.zeros((problem.graph.n_nodes, problem.dim)))
        u = np.zeros((problem.graph.n_edges, problem.dim))
        self._take(w, problem.value(w), u, self._loose_gap(w))

    def _loose_gap(self, w: FloatArray) -> Gap:
        p = self.problem
        return loose_gap(p.graph, p.losses, p.penalty, p.capacities, w)

    @property
    def empty(self) -> bool:
        """Whether nothing is known yet."""
        return np.isinf(self.value)

    def _take(self, w: FloatArray, value: float, u: FloatArray, parts: Gap) -> None:
        gap = parts.total
        # In one go, so that Ctrl-C leaves the old pair or the new one.
        self.__dict__.update(w=w, value=value, u=u, parts=parts, gap=gap, dual_value=value - gap)

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|); infinite before anything is known."""
        return self.gap / max(1.0, abs(self.value)) if np.isfinite(self.gap) else np.inf

    @property
    def is_rounding(self) -> bool:
        """Whether the gap is no larger than what rounding makes of the objective and its bound."""
        if not np.isfinite(self.gap):
            return False
        noise = max(self.parts.rounding, rounding_of_value(self.problem, self.w, self.value))
        return bool(self.gap <= 2.0 * noise)

    def progress(self, n_iter: int, seconds: float) -> Progress:
        """Return what a callback is shown."""
        return Progress(
            n_iter=n_iter,
            seconds=seconds,
            w=self.w,
            u=self.u,
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            rel_gap=self.rel_gap,
        )

    def record(self, n_iter: int, seconds: float) -> Record:
        """Return a line of the history."""
        return Record(n_iter, seconds, self.value, self.dual_value)

    def solution(self, **fields: Any) -> Solution:
        """Return the incumbent as a Solution."""
        problem = self.problem
        return Solution(
            w=self.w,
            u=self.u,
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            nodes=problem.graph.nodes,
            node_gaps=self.parts.node,
            edge_gaps=self.parts.edge,
            edges=problem.graph.edges,
            slack=slack(problem.penalty, problem.capacities, self.u),
            **fields,
        )


def rounding_of_value(problem: GTVProblem, w: FloatArray, value: float) -> float:
    """Return what becomes of the objective if the last digits of w (n, d) are others."""
    return abs(problem.value(w * (1.0 + 4.0 * EPS)) - value)


def _fused(problem: GTVProblem, w: FloatArray, flow: FloatArray) -> FloatArray:
    """Average w over clusters whose edges have flow below capacity.

    Every solution is constant there, while iterates only come close.
    """
    if not problem.penalty.is_norm:
        return w
    below = problem.bounds.slack(flow) > FUSED_SLACK * problem.capacities
    ends = problem.graph.edges[below]
    n = problem.graph.n_nodes
    labels = connected_components(n, ends)
    sizes = np.bincount(labels)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(sizes), n))
    means = (members @ w) / sizes[:, None]
    return means[labels]
