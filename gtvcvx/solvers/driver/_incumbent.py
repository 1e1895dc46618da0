"""The best point and the best flow of a run so far, of a problem in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx._callbacks import Progress
from gtvcvx._deadline import Unaffordable
from gtvcvx._norms import EPS
from gtvcvx.duality._cheap_gaps import loose_gap, short_gap, value_and_gap_at_zero
from gtvcvx.duality._terms import Gap, slack
from gtvcvx.graph import connected_components
from gtvcvx.losses.batched._terms import FIELDS
from gtvcvx.losses.node._segments import MANY
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._best_pair import FUSED_SLACK, Against, BestPair

# A repair beside so many numbers takes as long as some hundred iterations, or as all before; a
# share of the flow as long as ten. That is asked for so often, and as long as gaps fall by so much.
LARGE, MOST_ASKED, FALLING = 100_000, 6, 0.75
# Checks of so few numbers take far less than a second.
FEW = 10_000


class Incumbent(BestPair[FloatArray, Gap]):
    """Best point and best flow so far of a problem in memory.

    Parameters
    ----------
    problem : GTVProblem
    """

    def __init__(self, problem: GTVProblem) -> None:
        super().__init__()
        self.problem = problem
        self._asked = 0  # whether a share of a flow suffices

    def update(
        self,
        w: FloatArray,
        u: FloatArray,
        keep_last: bool = False,
        a: FloatArray | None = None,
        enough: float = 0.0,
        exact: bool = False,
        waits: bool = False,
    ) -> None:
        """Do what `BestPair.update` does, but for pairs that have overflowed.

        And where a repair is not afforded, if the losses' own bounds are enough.
        """
        if not (np.isfinite(w).all() and np.isfinite(u).all()):
            self._begun()
        else:
            try:
                super().update(w, u, keep_last, a, enough, exact, waits)
            except Unaffordable:
                if keep_last or not self._suffices_without_flow(self._feasible(w), enough):
                    raise

    @property
    def quick(self) -> bool:
        """Whether there are few numbers, of losses that are known by their data."""
        problem = self.problem
        graph, terms = problem.graph, problem.losses.plain
        known = all(term["kind"] in FIELDS for term in terms)
        rows = sum(len(term["node"]) for term in terms)
        return known and (graph.n_nodes + graph.n_edges + rows) * problem.dim <= FEW

    def begin(self) -> None:
        """Take w = 0 and u = 0, where the losses are finite: that is all that is looked at."""
        w, u = self._nothing()
        if self._feasible(w).any():
            super().begin()
        else:
            value, gap = value_and_gap_at_zero(self.problem.graph, self.problem.losses, w)
            self._take(w, value, Against(u), gap)

    def _suffices_without_flow(self, w: FloatArray, enough: float) -> bool:
        """Take w and no flow where the bounds of the losses themselves are enough.

        They are for objectives as small as the gap that is asked for.
        """
        if not (enough > 0.0 and 0.0 <= (value := self._value(w)) <= enough):
            return False
        gap = self._loose_gap(w)
        if not gap.total <= enough:
            return False
        self._offer(w, value, Against(self._nothing()[1]), gap, False)
        return self.rel_gap <= enough

    def update_shortly(self, w: FloatArray, u: FloatArray) -> None:
        """Take w and a share of u that the losses take without a repair, if there is one."""
        if not (np.isfinite(w).all() and np.isfinite(u).all()):
            return
        w = self._feasible(w)
        value = self._value(w)
        better = value < self.value
        # Of the point that stays: to seek best multipliers beside a share would take seconds.
        at = w if better else self.w
        if (found := self._share_of(at, u)) is None:
            return
        value = min(value, self.value)
        if value - found[1].total > self.dual_value:
            self._take(self._copy(at) if better else at, value, *found)
        elif better:
            self._take_paired(self._copy(at), value, keep_last=False)

    def _share_of(self, w: FloatArray, u: FloatArray) -> tuple[Against[FloatArray], Gap] | None:
        """Return a share of the flow u, and the gap of w against it; None if no flow proves more.

        At kinks slopes are poor multipliers.
        """
        p = self.problem
        found = short_gap(p.graph, p.losses, p.penalty, p.capacities, w, u)
        if found is None or not found[0].total < self._loose_gap(w).total:
            return None
        return Against(found[1]), found[0]

    def _take_paired(
        self, w: FloatArray, value: float, keep_last: bool, enough: float = 0.0
    ) -> None:
        """Take w with the flow that is known, or with a share of a flow that is one.

        What a share has come without would be sought for seconds. Where slopes at w prove less of
        it than is known, the point before and its gap are left.
        """
        shared = self.against.point is None and self.against.b is None
        if keep_last or not (shared and asked_shortly(self.problem)) or self._is_zero(self.u):
            super()._take_paired(w, value, keep_last, enough)
        elif (found := self._share_of(w, self.u)) is not None and found[1].total <= self.gap:
            self._take(w, value, *found)

    def suffices_shortly(self, w: FloatArray, u: FloatArray, enough: float) -> bool:
        """Ask so a few times, where there are many coordinates: their repairs take long.

        The first shares may prove little. Still iterations have more to offer than a repair: it
        would be one of the flow as it is, and to be made again for a better one.
        """
        if not (enough > 0.0 and self._asked < MOST_ASKED and asked_shortly(self.problem)):
            return False
        self._asked += 1
        before = self.gap
        self.update_shortly(w, u)
        # Where a share proves hardly more than what is known, only a repair goes on.
        return self.gap <= FALLING * before and bool(np.isfinite(self.gap))

    def _feasible(self, w: FloatArray) -> FloatArray:
        return self.problem.losses.project_domain(w)

    def _value(self, w: FloatArray) -> float:
        return self.problem.value(w)

    def _fused(self, w: FloatArray, flow: FloatArray) -> FloatArray:
        return _fused(self.problem, w, flow)

    def _checked(
        self, w: FloatArray, u: FloatArray, as_it_is: bool, enough: float
    ) -> tuple[FloatArray, float, Gap, Against[FloatArray]]:
        bounds, value = self.problem.bounds, self._value(w)
        repaired = bounds.repaired(u, w, enough * max(1.0, abs(value)))
        w, value = self._best_of(w, value, repaired.u, as_it_is)
        gap, flow = bounds.gap_and_flow(w, u, repaired)
        return w, value, gap, Against(flow.u, b=flow.b)

    def _corrected(
        self, w: FloatArray, u: FloatArray, a: FloatArray, keep_last: bool, enough: float
    ) -> bool:
        """Offer w and a flow that keeps its multipliers; say whether there is one."""
        bounds, value = self.problem.bounds, self._value(w)
        enough *= max(1.0, abs(value))
        found = bounds.corrected(w, u, a, enough)
        if found is None:
            return False
        parts, point = found
        best, value = self._best_of(w, value, point.u, keep_last)
        if best is not w:
            parts = bounds.gap_against(best, point, enough)
        if not np.isfinite(value - parts.total):
            return False
        self._offer(best, value, Against(point.u, point), parts, keep_last, enough=enough)
        return True

    def _gap_against(self, w: FloatArray, against: Against[FloatArray], enough: float = 0.0) -> Gap:
        bounds = self.problem.bounds
        if against.point is None:
            # Beside many coordinates the best multipliers are sought for longer than all else.
            return bounds.gap_of(w, against.u, against.b if self.problem.dim > MANY else None)
        return bounds.gap_against(w, against.point, enough)

    def _loose_gap(self, w: FloatArray) -> Gap:
        p = self.problem
        return loose_gap(p.graph, p.losses, p.penalty, p.capacities, w)

    def _nothing(self) -> tuple[FloatArray, FloatArray]:
        graph, d = self.problem.graph, self.problem.dim
        return np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d))

    def _copy(self, w: FloatArray) -> FloatArray:
        return w.copy()

    def _is_zero(self, u: FloatArray) -> bool:
        return not u.any()

    def _moved_digits(self) -> float:
        return rounding_of_value(self.problem, self.w, self.value)

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
            slack=self._slack(),
            **fields,
        )

    def _slack(self) -> Any:
        """Return a function for what the flow leaves of capacities: few ask for it.

        Dual norms of what CVXPY describes are a cone program each, and a chain is solved in ten
        times of what others take.
        """
        problem, u = self.problem, self.u
        penalty, capacities = problem.penalty, problem.capacities
        return lambda: slack(penalty, capacities, u)


def asked_shortly(problem: GTVProblem) -> bool:
    """Say whether a share of the flow is asked for before a repair: beside many coordinates."""
    return problem.dim > MANY and problem.graph.n_nodes * problem.dim >= LARGE


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
    if not len(ends):
        return w
    n = problem.graph.n_nodes
    labels = connected_components(n, ends)
    sizes = np.bincount(labels)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(sizes), n))
    means = (members @ w) / sizes[:, None]
    return means[labels]
