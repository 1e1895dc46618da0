"""Iterations over shards that stall on a problem that one machine could hold: it finishes it.

On badly conditioned data iterations take very long, and the default solver of one machine goes on
by an interior-point method. That needs the factor of a whole system; so where the whole is small,
rank 0 gathers it, solves it as on one machine, and tells all what it has found. Whether iterations
have stalled is decided as there, by counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._logging import room_logger
from gtvcvx.distributed._alone import LONG, alone
from gtvcvx.distributed._bounds import ShardedGap
from gtvcvx.distributed._efficiency import Machine, expectation
from gtvcvx.distributed._gathered import GatheredProblem, gathered_pair, gathered_problem
from gtvcvx.distributed._parts import Parts
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Limits, Proposal, Proved
from gtvcvx.solvers.driver._schedule import DEFAULTS as SCHEDULE
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._stalling import Paced, Stalling, StallingSettings

_LOG = room_logger("distributed")
_NANOSECONDS = 1e9


@dataclass(frozen=True)
class GatheringSettings:
    """Which problems are gathered, and when.

    Attributes
    ----------
    most_bytes : float
        Of the arrays of a run on the whole, by the manifest: ten times what the largest problems
        take that interior-point methods know, of 30,000 coordinates.
    fewest, fewest_others : int
        Iterations before which nobody asks, and nothing is gathered; the latter where losses are
        not quadratic. Most runs have ended by the first, and those through 16 shards of a small
        problem take a second or two, but twenty times as long where proximal points are found by
        iterations of their own: logistic losses in raw units took 60 s for 1,500.
    accuracy : float
        The problem is solved to this share of the tolerance: the gap is computed afresh over
        shards, where rounding is another one.
    """

    most_bytes: float = 1e8
    fewest: int = 2000
    fewest_others: int = 300
    accuracy: float = 0.5


DEFAULTS = GatheringSettings()


class Finished(NamedTuple):
    """What rank 0 has found, and proved by the bounds of one machine."""

    w: Any  # (k, d) a part
    u: Any  # (l, d) a part
    value: float
    gap: Any  # ShardedGap
    n_iter: int
    methods: list[str]


class Gathering:
    """A small problem at rank 0 (`gtvcvx.solvers.interior_point._stalling.Cost`).

    All workers ask for the same at the same time. The first question gathers the problem.

    Parameters
    ----------
    parts : Parts
    rtol : float
        Relative gap that is asked for.
    settings : GatheringSettings
    """

    def __init__(self, parts: Parts, rtol: float, settings: GatheringSettings = DEFAULTS) -> None:
        self._parts, self._rtol, self._settings = parts, rtol, settings

    @cached_property
    def fewest(self) -> int:
        """Iterations before which nobody asks."""
        settings, parts = self._settings, self._parts
        others = [float(not part.problem.losses.is_quadratic) for part in parts]
        return settings.fewest_others if float(parts.most(others)) else settings.fewest

    @staticmethod
    def fits(parts: Parts, settings: GatheringSettings = DEFAULTS) -> bool:
        """Say whether the whole is small, by the manifest."""
        expected = expectation(parts.manifest, 1, Machine())
        return parts.n_edges > 0 and expected.bytes_alone <= settings.most_bytes

    @cached_property
    def _whole(self) -> GatheredProblem | None:
        return gathered_problem(self._parts)

    @cached_property
    def _interior(self) -> Alternative | None:
        """What interior-point methods cost, at rank 0."""
        whole = self._whole
        return None if whole is None else Alternative(whole.problem, self._rtol, modelled=False)

    @cached_property
    def _prices(self) -> tuple[float, float]:
        """Prices of an iteration on one machine, and of the least of the other method."""
        interior = self._interior

        def asked() -> list[Any]:
            assert interior is not None
            return [np.array([interior.iteration, interior.least_cost * interior.iteration])]

        found = alone(self._parts, asked)
        one, least = found[0].tolist() if found else (np.inf, np.inf)
        return one, least

    @cached_property
    def iteration(self) -> float:
        """What an iteration over shards takes in nanoseconds, whatever the number of workers."""
        return self._prices[0] + _NANOSECONDS * Machine().shard * self._parts.manifest.n_shards

    @property
    def least_cost(self) -> float:
        """Lower bound on the cost, in iterations over shards."""
        return self._prices[1] / self.iteration

    @property
    def bound(self) -> float:
        """The same: what takes an ordering to know is asked with the cost."""
        return self.least_cost

    @cached_property
    def cost(self) -> float:
        """The cost, in iterations over shards; infinite if no interior-point method fits."""
        interior = self._interior

        def asked() -> list[Any]:
            assert interior is not None
            return [np.array(interior.cost * interior.iteration)]

        found = alone(self._parts, asked)
        return float(found[0]) / self.iteration if found else np.inf

    def solved(self, pair: Proposal, info: dict[str, Any], limits: Limits) -> Finished | None:
        """Solve the problem from a pair that is known, and tell all; None if there is no time.

        Parameters
        ----------
        pair : Proposal
            Point and flow, one array a part.
        info : dict
            Of the method that has found them.
        limits : Limits
        """
        parts, whole = self._parts, self._whole
        found = gathered_pair(parts, list(pair.w), list(pair.u))

        def work() -> Sequence[Any]:
            assert whole is not None
            assert found is not None
            if not limits.seconds_left > 0.0:
                return []
            solution = self._solved_alone(whole, whole.start(found, info), limits)
            return _told(solution)

        told = alone(parts, work)
        return _Scattered(*told).finished(parts) if told else None

    def _solved_alone(self, whole: GatheredProblem, start: Solution, limits: Limits) -> Solution:
        accuracy = self._settings.accuracy
        solution = whole.problem.solve(
            rtol=accuracy * limits.rtol,
            # Whoever gives atol is not warned: nobody has asked for this solution.
            atol=accuracy * (limits.rtol if limits.atol is None else limits.atol),
            max_iter=limits.max_iter,
            time_limit=min(limits.seconds_left, LONG),
            warm_start=start,
            verbose=False,
        )
        _LOG.info(
            "at rank 0: %s, %s, relative gap %.3g",
            *(solution.info["method"], solution.status, solution.rel_gap),
        )
        return solution


class _Scattered(NamedTuple):
    """A solution at rank 0, as arrays that all get."""

    w: FloatArray
    u: FloatArray
    node_gaps: FloatArray
    edge_gaps: FloatArray
    edges: IntArray
    numbers: FloatArray  # value, rounding, iterations
    methods: Any  # names, as bytes

    def finished(self, parts: Parts) -> Finished:
        """Return what the parts of this worker have of it."""
        w, node, u, edge = list[Any](), list[Any](), list[Any](), list[Any]()
        key = [parts.n_nodes, 1]
        keys = self.edges @ key
        for part in parts:
            nodes = part.shard.nodes
            at = np.searchsorted(keys, nodes[part.shard.edges] @ key)
            w.append(self.w[nodes])
            u.append(self.u[at])
            node.append(np.where(part.own, self.node_gaps[nodes], 0.0))
            edge.append(np.where(part.counted, self.edge_gaps[at], 0.0))
        value, rounding, n_iter = self.numbers.tolist()
        shares = float(self.node_gaps.sum() + self.edge_gaps.sum())
        gap = ShardedGap(node, edge, rounding, shares)
        return Finished(w, u, value, gap, int(n_iter), self.methods.tobytes().decode().split(", "))


def _told(solution: Solution) -> _Scattered:
    rounding = solution.gap - float(solution.node_gaps.sum() + solution.edge_gaps.sum())
    return _Scattered(
        solution.w,
        solution.u,
        solution.node_gaps,
        solution.edge_gaps,
        solution.edges,
        np.array([solution.value, max(rounding, 0.0), solution.n_iter]),
        np.frombuffer(solution.info["method"].encode(), np.uint8),
    )


class Finishing:
    """The solution at rank 0, as a method of one step (`gtvcvx.solvers.driver.Method`).

    Parameters
    ----------
    gathering : Gathering
    start : Proposal
    info : dict
        Of the method whose pair that is.

    Attributes
    ----------
    n_iter : int
        Iterations at rank 0.
    found : Finished, optional
        What is known then.
    """

    stride = 1

    def __init__(self, gathering: Gathering, start: Proposal, info: dict[str, Any]) -> None:
        self._gathering, self._start, self._info = gathering, start, info
        self.found: Finished | None = None
        self.finished = False
        self.n_iter = 0

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def run(self, n_iter: int) -> None:
        """Solve."""
        self.found = self._gathering.solved(self._start, self._info, self._limits)
        self.finished = True
        if self.found is not None:
            self.n_iter = self.found.n_iter

    def due(self) -> bool:
        """Say whether there is anything to check."""
        return self.finished

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return what was found; in the end the start if there is nothing."""
        found = self.found
        if found is None:
            return self._start if final else None
        # The multipliers that prove it are not told: the gap over shards may be larger.
        proved = Proved(found.value, found.gap)
        return Proposal(found.w, found.u, self._limits.rtol, proved=proved)

    def learn(self, rel_gap: float) -> None:
        """Take note of a gap, which changes nothing."""

    def info(self) -> dict[str, Any]:
        """Return no particulars."""
        return {}


class ShardedStalling(Stalling):
    """An iteration over shards that gives way to what rank 0 does alone.

    Checks may take what they need, and are counted as schedules count them: what repairs spend is
    counted in each worker for itself, and would let workers decide differently.

    Parameters
    ----------
    method : Paced
    gathering : Gathering
    """

    def __init__(self, method: Paced, gathering: Gathering) -> None:
        super().__init__(method, gathering, StallingSettings(fewest=gathering.fewest))

    def _rationed(self, found: Proposal) -> Proposal:
        return found

    def _check_cost(self) -> float:
        return SCHEDULE.cost
