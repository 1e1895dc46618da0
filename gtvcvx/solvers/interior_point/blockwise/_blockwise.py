"""An interior-point method of our own, for losses whose rows are folded into their nodes.

Clarabel's linear systems have a variable for each row of data, each edge and each slack. Here they
are eliminated beforehand, and what is left has a block for each node and each edge: less to factor,
and in dense blocks, which processors are fast at.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gtvcvx._deadline import Allowance
from gtvcvx.block_cholesky._plan import MOST_ENTRIES, MOST_MULTIPLICATIONS, Plan, plan_of
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Limits, Proposal, Requirement
from gtvcvx.solvers.interior_point._units import units_differ
from gtvcvx.solvers.interior_point.blockwise._edge_duals import flows_known
from gtvcvx.solvers.interior_point.blockwise._newton import Newton
from gtvcvx.solvers.interior_point.blockwise._node_terms import (
    CONSTRAINTS,
    SMOOTH,
    TERM_KINDS,
    NodeTerms,
    constraints_known,
)


@dataclass(frozen=True)
class BlockwiseSettings:
    """When a point is worth a check, and for which problems the method comes into question.

    Attributes
    ----------
    share : float
        A check is worth it when the method's own gap is this share of what is asked for.
    stricter : float
        Factor of that share when the check has found a larger gap.
    least : float
        Smallest own gap that is worth trying: below is rounding.
    unbalanced : float
        Where the own gap without what is missing of balance is this share of the one that is worth
        a check, what is missing is rounding, which the check makes up for if anything does.
    falling : float
        Below the smallest own gap a check has to find so many times less missing than the last one.
    patience : int
        Iterations after which it gives up unless its own gap has become smaller by this `factor`,
        or what is missing of balance has, where that is not little beside the gap: hinges of 10,000
        nodes under linf took steps of a tenth for 40 iterations, and then ended.
        From a start far off it may rise before it falls: for 16 iterations on a lasso in raw units.
    patience_smooth : int
        The same with smooth rows, whose steps may be short for long: up to 28 iterations went by
        before the end was near. As long as exponentials of rows overflow, so that there is no own
        gap, it gets further while products of slacks and multipliers fall, or what is missing.
    factor : float
    recovering : int
        A point that ran far off comes back within few steps, but its own gap is relative to an
        objective that falls with it: while the gap itself has fallen by the `factor` within so
        many iterations the method is not stuck.
    most_iterations : int
        Some dozens are the rule. Counts of features of 1e5, whose exponentials overflow for most
        of them, took 138.
    most_multiplications : float
        Of a factorization: this takes five seconds, and four times that in twice the digits.
    most_entries : int
        Of the rows and of all nodes' blocks.
    """

    share: float = 0.5
    stricter: float = 1e-2
    least: float = 1e-12
    unbalanced: float = 1e-2
    falling: float = 0.1
    patience: int = 20
    patience_smooth: int = 40
    factor: float = 0.5
    recovering: int = 2
    most_iterations: int = 200
    most_multiplications: float = MOST_MULTIPLICATIONS
    most_entries: int = MOST_ENTRIES


DEFAULTS = BlockwiseSettings()


def rows_known(problem: GTVProblem) -> str | None:
    """Ask for losses that are quadratic functions and rows with bounded slopes."""
    known = all(term["kind"] in TERM_KINDS for term in problem.losses.plain)
    return None if known else f"losses that are sums of {', '.join(sorted(TERM_KINDS))}"


def constraints_easy(problem: GTVProblem) -> str | None:
    """Ask for boxes with an inside, and for simplices at all nodes or at none."""
    known = constraints_known(problem.losses.plain, problem.graph.n_nodes)
    return None if known else "boxes with an inside, simplices at all nodes or at none"


def norms_known(problem: GTVProblem) -> str | None:
    """Ask for a penalty whose flows have bounds that are known, or none."""
    known = problem.graph.n_edges > 0 and flows_known(problem.penalty)
    return None if known else "edges under a norm, not far from 2, or a quadratic"


def not_too_many(problem: GTVProblem) -> str | None:
    """Ask for data of which several copies fit in memory."""
    graph, d = problem.graph, problem.dim
    rows = sum(len(term["node"]) for term in problem.losses.plain)
    entries, most = rows * d + (graph.n_nodes + graph.n_edges) * d**2, DEFAULTS.most_entries
    return None if entries <= most else f"at most {most} entries of rows and blocks, not {entries}"


def planned(problem: GTVProblem) -> Plan | None:
    """Return how to factor the problem's systems; None if that would take long."""
    return plan_of(problem.graph, problem.dim, DEFAULTS.most_multiplications)


class Blockwise:
    """The method under the driver: `run` does iterations of Newton's method.

    Parameters
    ----------
    problem : GTVProblem
    found : Plan
        What `planned` has returned.
    settings : BlockwiseSettings
    apart : bool
        Whether squares are rows with slopes of their own, whatever the units of features. They
        become that, too, where gradients turn out to be rounding.

    Attributes
    ----------
    n_iter : int
    finished : bool
        Whether it has got stuck.
    most_check : float
        What a check may take, see `gtvcvx._deadline.Allowance`: there are other methods.
    """

    stride = 1
    #: What it needs of a problem, beside a plan.
    requires: ClassVar[tuple[Requirement, ...]] = (
        not_too_many,
        norms_known,
        rows_known,
        constraints_easy,
    )

    def __init__(
        self,
        problem: GTVProblem,
        found: Plan,
        settings: BlockwiseSettings = DEFAULTS,
        apart: bool = False,
    ) -> None:
        self._problem, self._plan, self._settings = problem, found, settings
        self._share, self._apart = settings.share, apart
        kinds = {term["kind"] for term in problem.losses.plain}
        smooth, self._squares = not kinds.isdisjoint(SMOOTH), "squared" in kinds
        self._patience = settings.patience_smooth if smooth else settings.patience
        self._gap = np.inf  # the method's own, relative to the objective
        self._best: Proposal | None = None
        self._best_whole = np.inf  # its own gap with what is missing of balance
        self._checked_whole = np.inf  # the same of the last one that was checked
        self._mark, self._marked_at = np.inf, 0  # an own gap, and iterations by then
        self._missing_mark = np.inf  # what was missing of balance by then
        # Own gaps of late with what is missing of balance, not relative to anything.
        self._late: deque[float] = deque(maxlen=settings.recovering + 1)
        # The same where values overflow: products of slacks and multipliers, and what is missing.
        self._overflown_marks = np.inf, np.inf
        self.most_check = np.inf
        self.n_iter = 0
        self.finished = False

    @cached_property
    def _newton(self) -> Newton:
        n, d = self._problem.graph.n_nodes, self._problem.dim
        plain = self._problem.losses.plain
        # Beside constraints, too, gradients of squares may be small differences of large numbers.
        bounded = any(term["kind"] in CONSTRAINTS for term in plain)
        self._apart = self._apart or bounded or units_differ(plain, d)
        return Newton(self._problem, NodeTerms(plain, n, d, self._apart), self._plan)

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""
        for _ in range(n_iter):
            # Where something overflows the method is stuck, which is noticed afterwards.
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                if self._lost_to_rounding():
                    self._start_apart()
                self._newton.iterate()
            self.n_iter += 1
            self._look()
            self.finished = self._stuck()

    def _lost_to_rounding(self) -> bool:
        """Say whether gradients of squares are known too badly for a gap as asked for.

        In large units they are small differences of large numbers, which slopes that are variables
        are not. Mostly the first points tell, so that few iterations are lost.
        """
        newton = self._newton
        if self._apart or not self._squares:
            return False
        lost = newton.lost
        if newton.goal > 0.0:  # what is asked for at the last point, which need not be told again
            return lost > newton.goal
        return lost > 0.0 and self._limits.relative(lost, newton.value()) > self._target

    def _start_apart(self) -> None:
        """Begin again, squares being rows with slopes of their own."""
        self._apart, self._best = True, None
        self._mark, self._marked_at, self._missing_mark = np.inf, self.n_iter, np.inf
        self._late.clear()
        self._overflown_marks = np.inf, np.inf
        del self._newton

    @property
    def _target(self) -> float:
        """Own gap at which a point is worth a check."""
        return max(self._share * self._limits.rtol, self._settings.least)

    def _look(self) -> None:
        """Take note of the current point, which is the best one unless it is stuck."""
        newton = self._newton
        self._gap = whole = np.inf
        if newton.finite:
            own, value = newton.gap + newton.surplus, newton.value()
            self._late.append(own + newton.imbalance)
            whole = self._limits.relative(own + newton.imbalance, value)
            if self._limits.relative(own, value) > self._settings.unbalanced * self._target:
                own += newton.imbalance
            self._gap = self._limits.relative(own, value)
            newton.goal = self._target * own / self._gap if self._gap > 0.0 else 0.0
        if self._best is None or self._better(whole):
            self._best = Proposal(newton.w, newton.u, self._gap, newton.row_slopes)
            self._best_whole = whole
        missing = self._settings.factor * self._missing_mark
        if self._gap < self._settings.factor * self._mark:
            self._mark, self._marked_at = self._gap, self.n_iter
            self._missing_mark = newton.imbalance
        elif np.isinf(self._mark):
            self._look_beside_values()
        elif self._settings.unbalanced * newton.gap < newton.imbalance < missing:
            # Much is missing still, and ever less: steps are short, the method is not stuck.
            self._missing_mark, self._marked_at = newton.imbalance, self.n_iter

    def _look_beside_values(self) -> None:
        """Take note of progress where values of smooth rows overflow, and always have.

        Steps are short there, but what is missing falls with each of them.
        """
        newton, (products, missing) = self._newton, self._overflown_marks
        factor = self._settings.factor
        if newton.gap < factor * products or newton.imbalance < factor * missing:
            self._overflown_marks = newton.gap, newton.imbalance
            self._marked_at = self.n_iter

    def _better(self, whole: float) -> bool:
        """Say whether the current point is better than the best one before.

        Own gaps that are rounding do not tell: of linear equations they are zero from the first
        step on. What is missing of balance, in the whole gap, does.
        """
        assert self._best is not None
        least = self._settings.unbalanced * self._target
        now, before = (max(gap, least) for gap in (self._gap, self._best.expected_gap))
        return (now, whole) < (before, self._best_whole)

    def _stuck(self) -> bool:
        settings = self._settings
        return (
            not self._newton.finite
            or (self.n_iter - self._marked_at >= self._patience and not self._recovering())
            or self.n_iter >= settings.most_iterations
        )

    def _recovering(self) -> bool:
        """Say whether the gap itself is falling, whatever the objective does."""
        return self._late[-1] < self._settings.factor * self._late[0]  # of infinity nothing falls

    def due(self) -> bool:
        """Say whether the method's own gap is small enough."""
        return self._gap <= self._target

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the best point by its own gap; None if there is none."""
        best = self._best
        if best is None or not np.isfinite(best.expected_gap):
            return None
        waits = not (final or self.finished or self._last_aim)
        return best._replace(allowance=Allowance(self.most_check), waits=waits)

    @property
    def _last_aim(self) -> bool:
        """Whether a smaller own gap would be rounding."""
        return self._share * self._limits.rtol <= self._settings.least

    def learn(self, rel_gap: float) -> None:
        """Aim at a smaller own gap before the next check, if there is one.

        Where that is rounding already there is one as long as less is missing of the balance.
        """
        least = self._last_aim
        falling = self._best_whole <= self._settings.falling * self._checked_whole
        self.finished = self.finished or (least and not falling)
        self._share *= self._settings.stricter
        self._checked_whole = self._best_whole

    def info(self) -> dict[str, Any]:
        """Return nothing beside the method's name."""
        return {}
