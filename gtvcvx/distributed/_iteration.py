"""The default solver's iteration over shards: one exchange of boundary points an iteration.

Shards go through the passes of the single machine, each over its own nodes and all edges that end
there. Edges between two shards are computed on both sides, with the same numbers, so that nothing
but extrapolated points of boundary nodes is exchanged. What rounding makes of the two copies of a
flow is put right at every restart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.driver._schedule import DEFAULTS as SCHEDULE
from gtvcvx.solvers.driver._schedule import Schedule
from gtvcvx.solvers.primal_dual._coordinates import Coordinates, Weight, first_weight
from gtvcvx.solvers.primal_dual._restarts import Restarted
from gtvcvx.solvers.primal_dual._settings import DEFAULTS, PrimalDualSettings
from gtvcvx.solvers.primal_dual._state import State, Travelled
from gtvcvx.solvers.primal_dual._whole import Whole


def _whole(parts: Parts) -> Whole:
    """Return what first weights and coordinates ask for."""
    problems = [part.problem for part in parts]
    total = parts.add_edges([problem.capacities for problem in problems])
    return Whole(problems, parts.n_edges, total / max(parts.n_edges, 1), parts.add)


class ShardedState:
    """Point and flow of the parts of one worker, which move together with all others.

    What `State` is on one machine, as far as `Restarted` asks for it.

    Parameters
    ----------
    parts : Parts
    settings : PrimalDualSettings
    """

    def __init__(self, parts: Parts, settings: PrimalDualSettings) -> None:
        self._parts = parts
        whole = _whole(parts)
        coordinates = Coordinates.of_parts(whole)
        # As on one machine, whatever the number of workers.
        self.averages = parts.n_edges * parts.dim <= settings.averaged_size
        self.states = [
            State(part.problem, own, settings, self.averages, part.ghosts, threads=1)
            for part, own in zip(parts, coordinates, strict=True)
        ]
        self.weight = first_weight(whole) if coordinates[0] is None else 1.0

    @property
    def weight(self) -> Weight:
        """Primal weight gamma, or that of each coordinate."""
        return self.states[0].weight

    @weight.setter
    def weight(self, weight: Weight) -> None:
        for state in self.states:
            state.weight = weight

    def change_weights(self, weights: list[float]) -> None:
        """Set the weights of the coordinates, and stay where w and u are."""
        for state in self.states:
            state.change_weights(weights)

    def begin_here(self) -> None:
        """Get ready to iterate from x and y."""
        self._agree()
        for state in self.states:
            state.begin_here()

    def _agree(self) -> None:
        """Have the two copies of the flow of each cut edge agree to the last bit."""
        self._parts.refresh_edges([state.y for state in self.states])

    def begin_epoch(self) -> None:
        """Remember where it begins, and take averages from here on."""
        self._agree()
        for state in self.states:
            state.reset_divergence()
            state.begin_epoch()

    def add_sample(self) -> None:
        """Add the current point to the average."""
        for state in self.states:
            state.add_sample()

    def to_average(self) -> list[tuple[FloatArray, FloatArray]]:
        """Move to the average of the epoch; return what was there."""
        return [state.to_average() for state in self.states]

    def stay(self, current: list[tuple[FloatArray, FloatArray]]) -> None:
        """Keep the room of what was there before `to_average`."""
        for state, pair in zip(self.states, current, strict=True):
            state.stay(pair)

    def go_back(self, current: list[tuple[FloatArray, FloatArray]]) -> None:
        """Undo `to_average`."""
        for state, pair in zip(self.states, current, strict=True):
            state.go_back(pair)

    def travelled(self) -> Travelled:
        """Return how far point and flow have moved in this epoch."""
        found = self._parts.add([np.stack(state.travelled()) for state in self.states])
        return Travelled(np.asarray(found[0]), np.asarray(found[1]))

    def advance(self, n_iter: int) -> tuple[float, float]:
        """Do n_iter iterations; return squares of what the last one moved of x and of y."""
        states, last = self.states, n_iter - 1
        for k in range(n_iter):
            primal = [state.pass_nodes(k == last) for state in states]
            self._parts.refresh([state.extrapolated for state in states])
            dual = [state.pass_edges(k == last) for state in states]
        moved = self._parts.add(list(zip(primal, dual, strict=True)))
        return float(moved[0]), float(moved[1])


class ShardedPrimalDual(Restarted[ShardedState]):
    """The default solver's iteration with its restarts and weights, over shards.

    Its points and flows are lists of arrays, one for each part of this worker.

    Parameters
    ----------
    parts : Parts
    settings : PrimalDualSettings

    Attributes
    ----------
    at_begin : callable, optional
        Called when a run has begun.
    at_restart : callable, optional
        Called when an epoch begins, with nothing else to be remembered than point, flow and weight.
    """

    def __init__(self, parts: Parts, settings: PrimalDualSettings = DEFAULTS) -> None:
        super().__init__(ShardedState(parts, settings), settings)
        self._parts = parts
        self.at_begin: Callable[[], object] | None = None
        self.at_restart: Callable[[], None] | None = None
        self._begin_here()

    @property
    def w(self) -> Rows:
        """The point, own nodes and ghosts."""
        found = [np.array(state.w) for state in self.state.states]
        self._parts.refresh(found)
        return found

    @property
    def u(self) -> Rows:
        """The flow."""
        found = [np.array(state.u) for state in self.state.states]
        self._parts.refresh_edges(found)
        return found

    def move_to(self, w: Any, u: Any, weight: Weight | None = None) -> None:
        """Go on from another point, with the primal weight as it is unless it is given."""
        if weight is not None:
            self.state.weight = weight
        for state, point, flow in zip(self.state.states, w, u, strict=True):
            state.w, state.u = point, flow
        self._begin_here()

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Make the schedule of checks, which goes by counts alone."""
        super().begin(limits, rel_gap)
        counted = dataclasses.replace(SCHEDULE, long_seconds=np.inf)
        self.schedule = Schedule(limits, rel_gap, ratio=self.gap_ratio, settings=counted)
        if self.at_begin is not None:
            self.at_begin()

    def _start_epoch(self) -> None:
        super()._start_epoch()
        if self.at_restart is not None:
            self.at_restart()
