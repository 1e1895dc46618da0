"""The best point and the best flow of a run so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx._callbacks import Progress
from gtvcvx._norms import EPS
from gtvcvx.duality._bounds import loose_gap
from gtvcvx.duality._correction import FeasiblePoint
from gtvcvx.duality._terms import Gap, slack
from gtvcvx.graph import connected_components
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution

# Edges with this share of their capacity left are taken as fused when the incumbent is polished.
FUSED_SLACK = 1e-4


class Against(NamedTuple):
    """A feasible flow, and the dual point that it belongs to where that is known."""

    u: FloatArray  # (m, d)
    point: FeasiblePoint | None = None


@dataclass
class Incumbent:
    """Best point and best flow so far; they need not come from the same iteration."""

    problem: GTVProblem
    w: FloatArray = field(init=False)
    against: Against = field(init=False)
    value: float = np.inf
    dual_value: float = -np.inf
    gap: float = np.inf
    parts: Gap = field(init=False)

    def update(
        self,
        w: FloatArray,
        u: FloatArray,
        keep_last: bool = False,
        a: FloatArray | None = None,
        enough: float = 0.0,
        exact: bool = False,
    ) -> None:
        """Take w, or w made constant on fused clusters, if its value is lower than the best.

        The repaired u is taken if its bound is higher. With keep_last, w is taken as it is; one
        that is exact is constant on clusters already.
        Multipliers a (N,) of the rows are kept with u, as far as they can be; where the relative
        gap is small enough then, that is all.

        Raises
        ------
        Expired
            The deadline has passed, see `gtvcvx._deadline`; nothing has changed, or what the
            multipliers gave was taken.
        """
        bounds, losses = self.problem.bounds, self.problem.losses
        w = losses.project_domain(w)
        as_it_is = keep_last or exact
        if a is not None and self._corrected(w, u, a, keep_last) and self.rel_gap <= enough:
            return
        repaired = bounds.repaired(u, w)
        w, value = self._best_of(w, repaired.u, as_it_is)
        parts, flow = bounds.gap(w, u, repaired)
        if not np.isfinite(parts.total):
            # Bounds of the losses themselves are finite where conjugates are lost to rounding.
            parts, flow = self._loose_gap(w), np.zeros_like(flow)
        if not np.isfinite(value - parts.total):
            raise ValueError(
                "losses, lam: the objective and its bound overflow double precision; scale the data"
            )
        self._offer(w, value, Against(flow), parts, keep_last)

    def take_proved(self, w: FloatArray, u: FloatArray, value: float, gap: Gap) -> None:
        """Take a pair with a valid gap that is known, if one of the two is better."""
        self._offer(w, value, Against(u), gap, False)

    def _corrected(self, w: FloatArray, u: FloatArray, a: FloatArray, keep_last: bool) -> bool:
        """Offer w and a flow that keeps its multipliers; say whether there is one."""
        bounds = self.problem.bounds
        found = bounds.corrected(w, u, a)
        if found is None:
            return False
        parts, point = found
        best, value = self._best_of(w, point.u, keep_last)
        if best is not w:
            parts = bounds.gap_against(best, point)
        if not np.isfinite(value - parts.total):
            return False
        self._offer(best, value, Against(point.u, point), parts, keep_last)
        return True

    def _best_of(self, w: FloatArray, flow: FloatArray, as_it_is: bool) -> tuple[FloatArray, float]:
        """Return w, or w made constant on the clusters that a feasible flow fuses; the value."""
        problem, value = self.problem, self.problem.value(w)
        if not as_it_is:
            fused = problem.losses.project_domain(_fused(problem, w, flow))
            if (fused_value := problem.value(fused)) < value:
                return fused, fused_value
        return w, value

    def _offer(
        self, w: FloatArray, value: float, against: Against, parts: Gap, keep_last: bool
    ) -> None:
        """Take w if it is better, the flow if its bound is; parts is the gap of the two."""
        better_w = value < self.value or keep_last
        better_u = value - parts.total > self.dual_value
        if better_w and better_u:
            self._take(w.copy(), value, against, parts)
        elif better_w:
            self._take(w.copy(), value, self.against, self._gap_against(w, self.against))
        elif better_u:
            self._take(self.w, self.value, against, self._gap_against(self.w, against))

    def _gap_against(self, w: FloatArray, against: Against) -> Gap:
        bounds = self.problem.bounds
        if against.point is None:
            return bounds.gap_of(w, against.u)
        return bounds.gap_against(w, against.point)

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
            parts = self._loose_gap(w) if loose else self._gap_against(w, self.against)
            self._take(w.copy(), value, self.against, parts)

    def begin(self) -> None:
        """Take w = 0, or what is feasible near it, and u = 0: they cost next to nothing."""
        problem = self.problem
        w = problem.losses.project_domain(np.zeros((problem.graph.n_nodes, problem.dim)))
        u = np.zeros((problem.graph.n_edges, problem.dim))
        self._take(w, problem.value(w), Against(u), self._loose_gap(w))

    def _loose_gap(self, w: FloatArray) -> Gap:
        p = self.problem
        return loose_gap(p.graph, p.losses, p.penalty, p.capacities, w)

    @property
    def empty(self) -> bool:
        """Whether nothing is known yet."""
        return np.isinf(self.value)

    @property
    def u(self) -> FloatArray:
        """Best flow (m, d)."""
        return self.against.u

    def _take(self, w: FloatArray, value: float, against: Against, parts: Gap) -> None:
        gap, dual_value = parts.total, value - parts.total
        # In one go, so that Ctrl-C leaves the old pair or the new one.
        self.__dict__.update(
            w=w, value=value, against=against, parts=parts, gap=gap, dual_value=dual_value
        )

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
