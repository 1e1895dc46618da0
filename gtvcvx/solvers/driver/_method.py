"""What the driver asks of a method, and what all iterations have in common.

A method is a state that `run` moves on. The driver decides nothing about how: it lets the method
run, checks what the method proposes whenever the method says that a check is due, and stops by
limits and gaps alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import Allowance
from gtvcvx.duality._terms import Gap
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._schedule import DEFAULTS, Schedule

# An iteration is short: decisions are taken every so many, so that they cost nothing.
ITERATIONS_A_LOOK = 10


class Proved(NamedTuple):
    """What a method has proved of its pair by itself."""

    value: float
    gap: Gap


class Proposal(NamedTuple):
    """A pair that is worth a check, and the relative gap that the method expects of it."""

    w: FloatArray  # (n, d)
    u: FloatArray  # (m, d)
    expected_gap: float
    # Multipliers (N,) of all rows of the losses' terms, where the method knows them: near an
    # optimal pair. NaN stands for a row's derivative at w.
    a: FloatArray | None = None
    # What a check of it may take; without end if there is none.
    allowance: Allowance | None = None
    # Whether w is the solution up to rounding, and constant on its clusters.
    exact: bool = False
    # Where it is small enough, the pair needs no other check.
    proved: Proved | None = None
    # Whether a better pair is to come, so that no other check pays.
    another: bool = False
    # Whether iterations take less than a repair that loses the multipliers: where these are not
    # enough a better pair is waited for.
    waits: bool = False


class Method(Protocol):
    """A method under the driver."""

    stride: int  # the driver looks up when n_iter is a multiple of it

    @property
    def n_iter(self) -> int:
        """Iterations, or rounds, so far."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits; rel_gap is that of the start, infinite if unknown."""

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations, and what else they call for."""

    def due(self) -> bool:
        """Say whether the proposal is worth a check now."""

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the best pair there is; None if there is nothing to check.

        Final: the run ends, and there will be no better one.
        """

    def learn(self, rel_gap: float) -> None:
        """Take note of the gap that a check of the proposal has found."""

    def info(self) -> dict[str, Any]:
        """Return particulars for `Solution.info`."""


class Iteration(ABC):
    """A method that converges: a cheap residual tells when its point is worth a check.

    Attributes
    ----------
    w, u : ndarray, shapes (n, d) and (m, d)
        The current point; over shards, lists with an array for each part of the worker.
    warm : bool
        Whether it starts from a solution of this problem or of a similar one.
    gap_ratio : float
        Relative gap over residual at the last check, or where the start comes from; NaN if it is
        not known.
    seconds : float
        What an iteration takes, as counts predict it; NaN if they do not.
    """

    stride = ITERATIONS_A_LOOK
    finished = False
    n_iter: int
    w: Any
    u: Any
    warm = False
    gap_ratio = float("nan")
    seconds = float("nan")
    checks = DEFAULTS

    @abstractmethod
    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""

    @abstractmethod
    def residual(self) -> float:
        """Cheap number that falls with the gap, up to an unknown factor."""

    @property
    @abstractmethod
    def weight(self) -> float | list[float]:
        """Primal weight: how far w moves in a step, over how far u does; perhaps by coordinate."""

    @abstractmethod
    def move_to(self, w: Any, u: Any) -> None:
        """Go on from another point."""

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """Return particulars for `Solution.info`."""

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as the rest of the work."""
        return float(self.n_iter)

    def expected_gap(self) -> float:
        """Return the relative gap that is expected of the current point, by its residual."""
        return self.schedule.expected_gap(self.residual())

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Make the schedule of checks."""
        self.schedule = Schedule(
            limits,
            rel_gap,
            warm=self.warm,
            ratio=self.gap_ratio,
            seconds=self.seconds,
            settings=self.checks,
        )

    def due(self) -> bool:
        """Say whether the current point is worth a check."""
        return self.schedule.due(self.n_iter, self.residual())

    def proposal(self, final: bool = False) -> Proposal:
        """Return the current point."""
        return Proposal(self.w, self.u, self.expected_gap())

    def learn(self, rel_gap: float) -> None:
        """Take note of the gap at the current point."""
        self.schedule.checked(self.n_iter, rel_gap, self.residual())
        self.gap_ratio = self.schedule.ratio
