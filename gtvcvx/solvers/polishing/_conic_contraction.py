"""Contraction of clusters for losses with kinks and constraints, a few rounds at once.

Where iterations are expensive, it pays to mend the clusters at once instead of waiting for better
ones: edges that turn out to be above capacity inside a cluster are cut, rows of data that turn out
to be beyond the kink that they were taken for are given both sides, and the problem on clusters is
solved again. What is left in the end is exact on clusters, or the iterations go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.losses.node._segments import MANY
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Requirement
from gtvcvx.solvers.interior_point._interior_point import losses_known
from gtvcvx.solvers.interior_point._prices import iteration, quadratic_iteration
from gtvcvx.solvers.polishing._cluster_flow import ClusterFlow, cluster_flow
from gtvcvx.solvers.polishing._cluster_program import ClusterSolution, ConicLosses
from gtvcvx.solvers.polishing._contraction import (
    Contracted,
    ContractionSettings,
    capacities_split,
    fused_edges,
    has_edges,
)
from gtvcvx.solvers.polishing._policy import PolishedPair
from gtvcvx.solvers.polishing._quotient_graph import blocks

TINY = float(np.finfo(np.float64).tiny)
STRICT = ContractionSettings(fused_slack=0.2, fused_jump=1e-3)


@dataclass(frozen=True)
class ConicContractionSettings:
    """How many rounds there are, and what they cost.

    Attributes
    ----------
    clusters : ContractionSettings
        Stricter about what is fused than for quadratic losses: a round saved is worth more than
        smaller problems. With 1e-3 of the capacities left instead of .2, kNN graphs of 5,000
        nodes took twice as many rounds.
    rounds : int
        At most; clusters that are nearly right take two to four.
    near : float
        Rows have a known slope where their residual is above this share of what x_r^T w could
        change over the spread of w: as much as iterates are off when they are polished.
    finer_cut : float
        Where no edge is above capacity by the usual share any more, those above this share of the
        largest overload are cut.
    balance : float
        The flow inside clusters may lack this share of the gap that is asked for.
    tolerance : float
        The conic solver aims at this share of it: its value is lost among the rest then.
    edge, row, variable : float
        Nanoseconds that it takes for each coordinate of an edge, row with a kink and variable;
        only their ratio to an iteration matters.
    most_wide : int
        Variables, of clusters with many coordinates.
    """

    clusters: ContractionSettings = STRICT
    rounds: int = 4
    near: float = 1e-2
    finer_cut: float = 0.1
    balance: float = 0.1
    tolerance: float = 1e-3
    edge: float = 20e3
    row: float = 10e3
    variable: float = 10e3
    most_wide: int = 30_000


DEFAULTS = ConicContractionSettings()


class ConicContraction:
    """Polishes iterates of one problem.

    Parameters
    ----------
    problem : GTVProblem
    rtol : float
        Relative gap that is asked for.
    settings : ConicContractionSettings
    """

    #: What it needs of a problem.
    requires: ClassVar[tuple[Requirement, ...]] = (has_edges, capacities_split, losses_known)

    def __init__(
        self, problem: GTVProblem, rtol: float, settings: ConicContractionSettings = DEFAULTS
    ) -> None:
        self._problem, self._rtol, self._settings = problem, rtol, settings
        self._blocks = blocks(problem)

    @cached_property
    def _losses(self) -> ConicLosses:
        """Copies of the rows, made for the first polish."""
        return ConicLosses(self._problem)

    def polish(
        self,
        w: FloatArray,
        u: FloatArray,
        allowed: float = np.inf,
        seconds: float = np.inf,
        weight: float | list[float] = 1.0,
        enough: float = 0.0,
    ) -> PolishedPair | None:
        """Improve on w (n, d) and u (m, d) at the cost of as many iterations as are allowed.

        None if it would cost more, or takes more seconds, or if the solver fails.
        """
        end = time.perf_counter() + seconds
        settings, pair, cost = self._settings, None, 0.0
        fused, near = fused_edges(self._problem, w, u, settings.clusters), None
        for _ in range(settings.rounds):
            contracted = Contracted(self._problem, self._blocks, fused, settings.clusters.no_jump)
            if self._too_wide(contracted):
                break
            near = self._near(w) if near is None else near
            most = (allowed - cost) * iteration(self._problem)
            cost += self._cost(contracted, near)
            if cost > allowed:
                break
            tolerance = settings.tolerance * self._rtol
            left = end - time.perf_counter()
            found = self._losses.solve(contracted, near, w, tolerance, left, most)
            if found is None:
                # Rows that are taken as linear may pull without limit: it is too early. Or the
                # clusters are too many: wide ones fill in, which only an ordering tells.
                break
            flows = self._flows(contracted, found, u, end)
            cost += flows.cost * quadratic_iteration(self._problem) / iteration(self._problem)
            pair = self._pair(found, flows, cost)
            cut = flows.overload > self._least_cut(flows.overload)
            wrong = any(rows.any() for rows in found.wrong)
            if not wrong and (pair.overload <= self._rtol or not cut.any()):
                break
            fused = [mask & ~cut for mask in fused]
            near = [kept | rows for kept, rows in zip(near, found.wrong, strict=True)]
        return pair

    def _near(self, w: FloatArray) -> list[BoolArray]:
        """Return for each term with kinks the rows (N,) that may be on either side."""
        spread = self._settings.near * np.ptp(w, axis=0)
        return [
            np.abs(kinks.residuals(w)) <= np.abs(kinks.X) @ spread for kinks in self._losses.kinks
        ]

    def _cost(self, contracted: Contracted, near: list[BoolArray]) -> float:
        """Return how many iterations take about as long as the conic solver."""
        settings = self._settings
        conic = (
            settings.edge * sum(edges.heads.size for edges in contracted.edges)
            + settings.row * sum(np.count_nonzero(kept) for kept in near)
            + settings.variable * contracted.n_variables
        )
        return float(conic / iteration(self._problem))

    def _too_wide(self, contracted: Contracted) -> bool:
        """Say whether the ordering alone, which nothing stops, takes seconds to tens of them."""
        wide = self._problem.dim > MANY
        return wide and contracted.n_variables > self._settings.most_wide

    def _flows(
        self, contracted: Contracted, found: ClusterSolution, u: FloatArray, end: float
    ) -> ClusterFlow:
        """Find the flow inside the clusters that goes with the one between them."""
        flow = u.copy()
        jumping = contracted.put_flows(found.w, np.concatenate(found.flows), flow)
        tolerance = self._settings.balance * self._rtol
        return cluster_flow(
            self._problem, self._blocks, found.w, flow, jumping, tolerance, end, slopes=found.slopes
        )

    def _pair(self, found: ClusterSolution, flows: ClusterFlow, cost: float) -> PolishedPair:
        capacities = self._problem.capacities
        share = float(np.sum(flows.overload * capacities) / np.sum(capacities))
        # Where rows are beyond their kinks the pair is as wrong as the value says.
        w = self._problem.losses.project_domain(found.w)
        share += found.excess / max(abs(self._problem.value(w)), TINY)
        return PolishedPair(w, flows.conserved, flows.inside, share, cost)

    def _least_cut(self, overload: FloatArray) -> float:
        """Return the overload from which on edges are to jump in the next round."""
        settings = self._settings
        return min(settings.clusters.cut, settings.finer_cut * float(overload.max(initial=0.0)))
