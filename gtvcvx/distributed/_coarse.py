"""Polishing over shards: nodes that are alike are grouped, and the problem of groups is gathered.

What `gtvcvx.solvers.polishing._coarsening` does on one machine. The edges whose flow has capacity
left say which nodes share their parameters. Each shard adds up the losses of its groups and the
capacities between them; when that is small it goes to rank 0, which solves it by the solver of one
machine. Nodes get the parameters of their groups, and the flow inside groups is found by
conjugate gradients over all shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._logging import room_logger
from gtvcvx.distributed._alone import alone
from gtvcvx.distributed._conservation import ShardedConservation, node_norm
from gtvcvx.distributed._groups import Groups
from gtvcvx.distributed._parts import Part, Parts, Rows
from gtvcvx.duality._conservation import LocalConservation
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import QuadraticForm, StackedLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.polishing._coarsening import grouped, quadratic_rows
from gtvcvx.solvers.polishing._contraction import Contraction
from gtvcvx.solvers.polishing._policy import PolishedPair

_LOG = room_logger("distributed")


@dataclass(frozen=True)
class CoarseSettings:
    """When groups are gathered, and what becomes of their solution.

    Attributes
    ----------
    safe_slacks : tuple of float
        Nodes are grouped over edges that have this share of their capacity left: the first that
        leaves little enough.
    most_numbers : int
        Numbers that rank 0 takes, of all groups and the edges between them: 200,000 edges at d = 2,
        which the solver of one machine is through with in a few seconds.
    shrinkage : float
        Edges between groups may be this share of all: otherwise it does not pay.
    widest : int
        Blocks of d^2 numbers a node are kept up to this dimension.
    accuracy : float
        The problem of groups is solved to this share of the tolerance.
    seconds : float
        Time that rank 0 may take for it while all others wait. The one limit by the clock here,
        far beyond what is expected.
    sweeps : int
        Projections on conservation and capacities by turns, to bring the flow inside groups within
        capacity.
    least_conductance : float
        Edges carry a correction by the share of their capacity that is left, and by this at least.
    residual : float
        Conjugate gradients reduce what is not conserved to this share, each time.
    step_cost : float
        A projection takes as long as so many iterations.
    """

    safe_slacks: tuple[float, ...] = (0.8, 0.3, 0.05)
    most_numbers: int = 2_000_000
    shrinkage: float = 0.5
    widest: int = 32
    accuracy: float = 0.1
    seconds: float = 30.0
    sweeps: int = 8
    least_conductance: float = 1e-3
    residual: float = 1e-6
    step_cost: float = 50.0


DEFAULTS = CoarseSettings()


class _Groups(NamedTuple):
    """Groups of nodes over all shards."""

    joined: Groups
    labels: list[IntArray]  # (k,) a part: the number of the group of each node, ghosts included
    size: int
    between: list[BoolArray]  # (l,) a part: edges between two groups


class _Found(NamedTuple):
    """The solution of the problem of groups."""

    z: FloatArray  # (c, d)
    ends: IntArray  # (r, 2), pairs of groups in lexicographic order, the lower number first
    capacities: FloatArray  # (r,), of all edges between the two
    flows: FloatArray  # (r, d)
    cost: FloatArray  # (), in iterations


class GatheredCoarsening:
    """Polishes iterates of a problem in shards (`gtvcvx.solvers.polishing._policy.Polisher`).

    Parameters
    ----------
    parts : Parts
    rtol : float
        Relative gap that is asked for.
    settings : CoarseSettings
    """

    def __init__(self, parts: Parts, rtol: float, settings: CoarseSettings = DEFAULTS) -> None:
        self._parts, self._rtol, self._settings = parts, rtol, settings
        none = StackedLoss([], parts.dim)
        # Flow is conserved at all nodes, where demands are given.
        self._conservation = ShardedConservation(
            parts,
            [
                LocalConservation(p.problem.graph, none.completed(len(p.own)), parts.penalty, p.own)
                for p in parts
            ],
        )
        self._forms: list[QuadraticForm] = []
        self._capacity = parts.add_edges([part.problem.capacities for part in parts])

    @staticmethod
    def fits(parts: Parts, settings: CoarseSettings = DEFAULTS) -> bool:
        """Say whether problems of groups are known; the same in all workers."""
        lacking = [
            # A shard may be without edges of its own.
            missing(part.problem, Contraction.requires[1:]) is not None
            for part in parts
        ]
        some = bool(float(parts.most([float(lacks) for lacks in lacking])))
        return parts.n_edges > 0 and parts.dim <= settings.widest and not some

    def polish(
        self,
        w: Any,
        u: Any,
        allowed: float,
        seconds: float,
        weight: float | list[float],
        enough: float,
    ) -> PolishedPair | None:
        """Return a better pair, or None where groups are too many or too much."""
        settings, parts = self._settings, self._parts
        if settings.sweeps * settings.step_cost > allowed:
            return None
        slack = self._slack(u)
        groups = self._groups(slack)
        if groups is None:
            return None
        found = self._solved(groups, min(seconds, settings.seconds))
        if found is None:
            return None
        point = [found.z[labels] for labels in groups.labels]
        flow = self._lifted(groups, u, found)
        conserved, inside, overload = self._routed(point, flow, groups, slack)
        _LOG.debug("%d groups, %d edges between them", groups.size, len(found.ends))
        share = parts.add_edges(overload) / self._capacity
        cost = float(found.cost) + settings.sweeps * settings.step_cost
        return PolishedPair(point, conserved, inside, share, cost)

    def _slack(self, u: Rows) -> Rows:
        """Return the share of each edge's capacity that is left."""
        return [
            1.0 - part.problem.penalty.dual_norm(rows) / part.problem.capacities
            for part, rows in zip(self._parts, u, strict=True)
        ]

    def _groups(self, slack: Rows) -> _Groups | None:
        """Group nodes; None if that leaves too much."""
        parts, settings = self._parts, self._settings
        for share in settings.safe_slacks:
            groups = self._numbered(Groups(parts, [left > share for left in slack]))
            edges = parts.add_edges([some.astype(np.float64) for some in groups.between])
            numbers = groups.size * parts.dim**2 + edges * (parts.dim + 4)
            small = edges <= settings.shrinkage * parts.n_edges
            # Nothing else would be known of a problem that is one group.
            if small and numbers <= settings.most_numbers and groups.size > 1:
                return groups
        return None

    def _numbered(self, groups: Groups) -> _Groups:
        """Give groups numbers over all shards: those that reach over cuts come first."""
        parts = self._parts
        local = groups.alone()
        counts = np.zeros((len(parts), parts.manifest.n_shards))
        for at, part in enumerate(parts):
            counts[at, part.number] = len(local[at])
        before = np.concatenate([[0], np.cumsum(parts.add(list(counts)))]).astype(np.int64)
        numbers = []
        for at, part in enumerate(parts):
            number = np.zeros(groups.counts[at], np.int64)
            known, shared = groups.shared(at)
            number[known] = shared
            number[local[at]] = groups.n_shared + before[part.number] + np.arange(len(local[at]))
            numbers.append(number[groups.labels[at]].astype(np.float64)[:, None])
        # Ghosts that nothing joins here have the numbers that their owners know.
        parts.refresh(numbers)
        labels = [rows[:, 0].astype(np.int64) for rows in numbers]
        ends = [some[part.shard.edges] for part, some in zip(parts, labels, strict=True)]
        between = [pair[:, 0] != pair[:, 1] for pair in ends]
        return _Groups(groups, labels, int(groups.n_shared + before[-1]), between)

    def _solved(self, groups: _Groups, seconds: float) -> _Found | None:
        """Solve the problem of groups at rank 0, and tell all; None if it is not solved."""
        parts = self._parts
        if not self._forms:
            self._forms = [_form(part) for part in parts]
        mine: list[Any] = []
        for at, part in enumerate(parts):
            mine += _losses_of(part, self._forms[at], groups.labels[at])
            mine += _edges_of(part, groups.labels[at], groups.between[at])
        found = parts.gather(mine)

        def work() -> Sequence[Any]:
            assert found is not None
            return self._answer(found, groups.size, seconds) or ()

        told = alone(parts, work)
        return _Found(*told) if told else None

    def _answer(self, found: Sequence[Any], count: int, seconds: float) -> _Found | None:
        """Solve the problem of groups; None if there is not enough time for it."""
        d = self._parts.dim
        hessian, linear = np.zeros((count, d * d)), np.zeros((count, d))
        for number, Q, b in zip(found[::5], found[1::5], found[2::5], strict=True):
            # In the order of shards, and once for each group of a shard.
            hessian[number] += Q
            linear[number] += b
        pairs, capacities = np.concatenate(found[3::5]), np.concatenate(found[4::5])
        ends, at = np.unique(pairs, axis=0, return_inverse=True)
        total = np.bincount(at.reshape(-1), capacities, len(ends)).astype(np.float64)
        if not seconds > 0.0:
            return None
        losses = quadratic_rows(hessian.reshape(count, d, d), linear)
        graph = EmpiricalGraph(count, ends, total / self._parts.lam)
        coarse = GTVProblem(graph, losses, self._parts.penalty, self._parts.lam)
        rtol = self._settings.accuracy * self._rtol
        # Whoever gives atol is not warned: this is nobody's problem.
        solution = coarse.solve(rtol=rtol, atol=rtol, time_limit=seconds, verbose=False)
        if solution.status != "optimal":
            return None
        cost = solution.n_iter * graph.n_edges / self._parts.n_edges
        return _Found(solution.w, ends, total, solution.u, np.array(cost))

    def _lifted(self, groups: _Groups, u: Rows, found: _Found) -> Rows:
        """Return u, with the flow of groups split by capacities on the edges between them."""
        keys, out = found.ends @ [groups.size, 1], []
        for part, labels, between, rows in zip(
            self._parts, groups.labels, groups.between, u, strict=True
        ):
            pairs = labels[part.shard.edges[between]]
            at = np.searchsorted(keys, np.sort(pairs, axis=1) @ [groups.size, 1])
            sign = np.where(pairs[:, 0] < pairs[:, 1], 1.0, -1.0)
            share = sign * part.problem.capacities[between] / found.capacities[at]
            flow = rows.copy()
            flow[between] = share[:, None] * found.flows[at]
            out.append(flow)
        return out

    def _routed(self, w: Rows, u: Rows, groups: _Groups, slack: Rows) -> tuple[Rows, Rows, Rows]:
        """Make the flow inside groups balance gradients, as far as possible within capacities.

        Returns it conserved, and inside capacities, and the overload of the first.
        """
        parts, settings = self._parts, self._settings
        conductance = [
            np.where(between, 0.0, np.clip(left, settings.least_conductance, 1.0))
            for between, left in zip(groups.between, slack, strict=True)
        ]
        demand = [
            np.where(part.own[:, None], -part.problem.losses.gradient(rows), 0.0)
            for part, rows in zip(parts, w, strict=True)
        ]
        system = self._conservation.system(conductance)
        overload: Rows = []
        conserved, inside = u, u
        for _ in range(settings.sweeps):
            lacking = [
                np.where(part.own[:, None], part.problem.graph.divergence @ rows - some, 0.0)
                for part, rows, some in zip(parts, inside, demand, strict=True)
            ]
            # What whole groups lack is not to be had inside of them.
            means = groups.joined.means(lacking)
            lacking = [
                np.where(part.own[:, None], some - mean, 0.0)
                for part, some, mean in zip(parts, lacking, means, strict=True)
            ]
            goal = settings.residual * node_norm(parts, lacking)
            potential = self._conservation.potential(system, lacking, goal)
            change = self._conservation.flow_of(potential, conductance)
            conserved = [a - b for a, b in zip(inside, change, strict=True)]
            parts.refresh_edges(conserved)
            inside = [
                part.problem.penalty.project_domain(rows, part.problem.capacities)
                for part, rows in zip(parts, conserved, strict=True)
            ]
            overload = [
                np.maximum(part.problem.penalty.dual_norm(rows) - part.problem.capacities, 0.0)
                for part, rows in zip(parts, conserved, strict=True)
            ]
            if not parts.add_edges(overload) > self._rtol * settings.accuracy * self._capacity:
                break
        return conserved, inside, overload


def _form(part: Part) -> QuadraticForm:
    form = part.problem.losses.quadratic(len(part.own))
    assert form is not None, "only quadratic losses are grouped"
    return form


def _losses_of(part: Part, form: QuadraticForm, labels: IntArray) -> list[Any]:
    """Return numbers of groups (c,) and sums of Q (c, d^2) and b (c, d) over the own nodes."""
    own = part.own
    numbers, at = np.unique(labels[own], return_inverse=True)
    hessian = form.hessian[own].reshape(np.count_nonzero(own), -1)
    return [numbers, grouped(hessian, at), grouped(form.linear[own], at)]


def _edges_of(part: Part, labels: IntArray, between: BoolArray) -> list[Any]:
    """Return the pairs (r, 2) of groups that counted edges join, and their capacities (r,)."""
    some = between & part.counted
    pairs = np.sort(labels[part.shard.edges[some]], axis=1)
    if not len(pairs):
        return [pairs, np.zeros(0)]
    ends, at = np.unique(pairs, axis=0, return_inverse=True)
    total = np.bincount(at.reshape(-1), part.problem.capacities[some], len(ends))
    return [ends, total]
