"""Which methods run over shards, and in which order.

What `gtvcvx.solvers._auto` is on one machine. The rule: the primal-dual method, polished where it
is known how to. Where that stalls, and the whole is small, rank 0 solves it as on one machine;
where that is not enough, iterations go on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gtvcvx._logging import room_logger
from gtvcvx.distributed._bounds import ShardedBounds
from gtvcvx.distributed._coarse import GatheredCoarsening
from gtvcvx.distributed._gathering import Finishing, Gathering, ShardedStalling
from gtvcvx.distributed._incumbent import ShardedIncumbent, ShardedSolution
from gtvcvx.distributed._iteration import ShardedPrimalDual
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.penalties import Penalty
from gtvcvx.solvers.driver import Driver, Limits
from gtvcvx.solvers.polishing._policy import Polished

NAME = "AUTO"
METHOD = "primal-dual"
_LOG = room_logger("distributed")


class Iterating(NamedTuple):
    """The iteration over shards, and what is around it."""

    method: ShardedPrimalDual
    polished: Polished | None
    stalling: ShardedStalling | None

    @property
    def outermost(self) -> ShardedStalling | Polished | ShardedPrimalDual:
        """What is driven."""
        return self.stalling or self.polished or self.method


class Portfolio:
    """A run over shards; all workers do the same.

    Parameters
    ----------
    parts : Parts
    limits : Limits

    Attributes
    ----------
    run : Driver
    """

    def __init__(self, parts: Parts, limits: Limits) -> None:
        self._parts, self._limits = parts, limits
        self._incumbent = ShardedIncumbent(parts)
        self.run = Driver(self._incumbent, limits, NAME)
        self._methods: list[str] = []
        self._switched = False

    def solve(self, begun: Callable[[Iterating], object]) -> ShardedSolution:
        """Run the methods.

        Parameters
        ----------
        begun : callable
            Called with the first of them before it runs.
        """
        with self.run.guarded():
            self._solve(begun)
        info = {"method": ", ".join(dict.fromkeys(self._methods)), "switched": self._switched}
        try:
            solution: ShardedSolution = self.run.solution(**info)
        except KeyboardInterrupt:  # pressed after the end, and raised everywhere after the same sum
            solution = self.run.solution(**info)
        return solution

    def _solve(self, begun: Callable[[Iterating], object]) -> None:
        parts, run = self._parts, self.run
        gathering = Gathering(parts, self._limits.rtol) if Gathering.fits(parts) else None
        first = self._iterating(gathering)
        begun(first)
        self._iterate(first)
        if gathering is None or run.stopped or run.satisfied:
            return
        self._finish(gathering, first)
        if not (run.stopped or run.satisfied):
            again = self._iterating(None)
            again.method.move_to(self._incumbent.w, self._incumbent.u)
            self._iterate(again)

    def _iterate(self, iterating: Iterating) -> None:
        _LOG.info("%s over shards from iteration %d", METHOD, self.run.n_iter)
        self._methods.append(METHOD)
        self.run.drive(iterating.outermost)

    def _finish(self, gathering: Gathering, iterating: Iterating) -> None:
        """Have rank 0 solve the problem from where an iteration has stalled."""
        _LOG.info("rank 0 goes on alone from iteration %d", self.run.n_iter)
        self._switched = True
        start = iterating.outermost.proposal(final=True)
        assert start is not None, "iterations have a pair at any time"
        finishing = Finishing(gathering, start, iterating.method.info())
        self.run.drive(finishing)
        found = finishing.found
        if found is not None:
            self._methods += found.methods
            if not self.run.satisfied:
                # Of what has not sufficed the driver has looked at the gap over shards alone.
                self._incumbent.take_proved(found.w, found.u, found.value, found.gap)

    def _iterating(self, gathering: Gathering | None) -> Iterating:
        """Return the primal-dual method, polished, and given up for what rank 0 can gather."""
        parts = self._parts
        method, polished = ShardedPrimalDual(parts), None
        if GatheredCoarsening.fits(parts):
            objective = _Objective(parts.penalty, self._incumbent.bounds)
            polished = Polished(objective, method, GatheredCoarsening(parts, self._limits.rtol))
        stalling = None
        if gathering is not None:
            stalling = ShardedStalling(polished or method, gathering)
        return Iterating(method, polished, stalling)


class _Objective(NamedTuple):
    """What polishing asks of a problem."""

    penalty: Penalty
    bounds: ShardedBounds

    def value(self, w: Rows) -> float:
        """Return the objective."""
        return self.bounds.value(w)
