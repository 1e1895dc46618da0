"""When a primal-dual iteration restarts, from where, and with which primal weight.

Every pair tau_i = gamma / deg_i, sigma_e = 1 / (2 gamma) converges; the paper takes gamma = 1. Here
the iteration restarts as in PDLP [1]_, at the current point or at the average since the last
restart, whichever moves less in one step; gamma, the primal weight, then follows what primal and
dual have moved since.

Late in a run a few clusters may be all that is not settled. If the weight is too small for them,
they move towards their places at a constant speed, and the flow hardly moves at all; or the other
way round. No residual falls meanwhile, which the rules of PDLP wait for. So the iteration restarts
where it drifts, and the weight follows the last step; where that was no drift it comes back.

References
----------
.. [1] D. Applegate et al., "Practical large-scale linear programming using primal-dual hybrid
   gradient", NeurIPS 2021.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from gtvcvx._logging import room_logger
from gtvcvx.solvers.driver._method import Iteration
from gtvcvx.solvers.driver._schedule import checked_ratio
from gtvcvx.solvers.primal_dual._coordinates import Weight, one_weight
from gtvcvx.solvers.primal_dual._drifts import Drifts, Motion
from gtvcvx.solvers.primal_dual._settings import PrimalDualSettings
from gtvcvx.solvers.primal_dual._state import Travelled

_LOG = room_logger("solvers.primal_dual")


class Moving(Protocol):
    """What decisions about restarts need to know of a state, see `State`."""

    weight: Weight

    @property
    def averages(self) -> bool:
        """Whether averages are kept."""

    def begin_here(self) -> None: ...
    def begin_epoch(self) -> None: ...
    def add_sample(self) -> None: ...
    def to_average(self) -> Any: ...
    def go_back(self, current: Any) -> None: ...
    def stay(self, current: Any) -> None: ...
    def travelled(self) -> Travelled: ...
    def advance(self, n_iter: int) -> tuple[float, float]: ...
    def change_weights(self, weights: list[float]) -> None: ...


S = TypeVar("S", bound=Moving)


class Restarted(Iteration, Generic[S]):
    """Over-relaxed primal-dual iteration with restarts and an adaptive primal weight.

    Parameters
    ----------
    state : Moving
    settings : PrimalDualSettings
    """

    def __init__(self, state: S, settings: PrimalDualSettings) -> None:
        self.state, self._settings = state, settings
        self.n_iter = 0
        self._tilt = 1.0  # how far the last step moved the point, over how far the flow
        self._drifts, self._motion = Drifts(settings), Motion.NOTHING
        self._before_drifts: float | None = None  # the weight, before the last drifts in a row

    def _begin_here(self) -> None:
        """Begin an epoch at the current point."""
        self.state.begin_here()
        self._moved = np.inf
        self._start_epoch()

    def _start_epoch(self) -> None:
        self._epoch_start = self.n_iter
        self._epoch_residual = self._previous = self._moved
        self.state.begin_epoch()
        self._drifts.begin_epoch(self.n_iter)
        self._next_sample = self.n_iter + self._settings.sample
        self._due = False

    @property
    def weight(self) -> Weight:
        """Primal weight gamma, or that of each coordinate."""
        return self.state.weight

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""
        end = self.n_iter + n_iter
        while self.n_iter < end:
            if self._due:
                self._restart()
                continue
            self._advance(min(self._next_sample, end) - self.n_iter)
            if self.n_iter == self._next_sample:
                self._sample()

    def _sample(self) -> None:
        """Add the current point to the average, and decide whether to restart."""
        self.state.add_sample()
        self._next_sample += self._settings.sample
        self._motion = self._moves()
        self._due = self._motion is not Motion.NOTHING or self._restart_due()
        self._previous = self._moved

    def _advance(self, n_iter: int) -> None:
        primal, dual = self.state.advance(n_iter)
        self._moved = float(np.sqrt(primal + dual))
        self._tilt = float(np.sqrt(primal / dual)) if primal > 0.0 and dual > 0.0 else 1.0
        self.n_iter += n_iter

    def _moves(self) -> Motion:
        """Say whether point or flow moves on at a constant speed, and the other one hardly does."""
        if isinstance(self.state.weight, list):
            return Motion.NOTHING  # coordinates drift on their own
        steady = self._moved >= self._settings.steady * self._previous
        return self._drifts.sample(self.n_iter, self._tilt, steady)

    def _restart_due(self) -> bool:
        settings, length = self._settings, self.n_iter - self._epoch_start
        if length < settings.shortest_epoch:
            return False
        if not np.isfinite(self._epoch_residual):
            return True
        ratio = self._moved / max(self._epoch_residual, np.finfo(float).tiny)
        rising = self._moved > self._previous
        long = length >= max(settings.longest * self.n_iter, 5 * settings.shortest_epoch)
        return ratio <= settings.sufficient or (ratio <= settings.necessary and rising) or long

    def _restart(self) -> None:
        """Go on from the average if it is the better point, and adapt the primal weight."""
        _LOG.debug("restart after %d iterations", self.n_iter)
        if self._motion is Motion.DRIFT:
            # Half way, as below; the average of a drift is behind.
            weight = one_weight(self.state.weight)
            self._before_drifts = weight if self._before_drifts is None else self._before_drifts
            self._change_weight(weight * float(np.sqrt(self._tilt)))
        else:
            if self.state.averages:
                self._try_average()
            if self._motion is Motion.SWING and self._before_drifts is not None:
                self.state.weight = self._before_drifts
            else:
                self._adapt_weight()
            self._before_drifts = None
        self._start_epoch()

    def _try_average(self) -> None:
        """Move to the average of the epoch if a step from there is shorter."""
        moved = self._moved
        current = self.state.to_average()
        self._advance(1)
        if self._moved >= moved:
            self._moved = moved
            self.state.go_back(current)
        else:
            self.state.stay(current)

    def _adapt_weight(self) -> None:
        """Move gamma half way, on a logarithmic scale, to the ratio of what w and u moved."""
        primal, dual = (np.sqrt(square) for square in self.state.travelled())
        weight, change = self.state.weight, self._settings.largest_change
        if isinstance(weight, list):
            factor = np.ones_like(primal)
            both = (primal > 0.0) & (dual > 0.0)
            np.sqrt(np.divide(primal, dual, out=factor, where=both), out=factor)
            # In x and y the weights so far are one.
            following = np.asarray(weight) * np.clip(factor, 1.0 / change, change)
            self.state.change_weights(following.tolist())
        elif primal > 0.0 and dual > 0.0:
            self._change_weight(float(np.sqrt(weight * float(primal) / float(dual))))

    def _change_weight(self, goal: float) -> None:
        """Set the one weight to a goal, or as near to it as one restart may go."""
        weight, change = one_weight(self.state.weight), self._settings.largest_change
        if np.isfinite(goal) and goal > 0.0:
            self.state.weight = min(max(goal, weight / change), weight * change)

    def residual(self) -> float:
        """Length of the last step in the method's own metric."""
        return self._moved

    def info(self) -> dict[str, Any]:
        """Return the last primal weight gamma, or those of all coordinates, and the gap's ratio.

        Relative gap over residual is there if a check, or the start, has told it.
        """
        ratio = checked_ratio(self.gap_ratio)
        return {"primal_weight": self.weight} | ({} if np.isnan(ratio) else {"gap_ratio": ratio})
