"""When a run stops."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from gtvcvx._callbacks import SolveCallback
from gtvcvx._deadline import now


@dataclass
class Limits:
    """When a run stops, counted from when this was made.

    Attributes
    ----------
    rtol : float
        Stop at gap <= rtol max(1, |value|), or at as small a decrease, see `stop`.
    atol : float, optional
        Stop at gap <= max(atol, rtol |value|) instead. Default: rtol.
    max_iter : int
    time_limit : float
        Seconds, compilation not counted.
    stop : {"gap", "objective", "iterations"}
        What rtol is compared with: the relative gap, the decrease of the objective between two
        checks, or nothing.
    callback : callable, optional
        Sees a `Progress` at every check; a true value stops the run.
    verbose : bool, optional
        As in `GTVProblem.solve`.
    started : float
        When the time began to count, by `gtvcvx._deadline.now`.
    began : float
        The same by the clock on the wall.
    """

    rtol: float
    max_iter: int
    time_limit: float = np.inf
    stop: str = "gap"
    callback: SolveCallback | None = None
    verbose: bool | None = None
    started: float = field(default_factory=now)
    began: float = field(default_factory=time.perf_counter)
    atol: float | None = None

    def relative(self, gap: float, value: float) -> float:
        """Return the gap (or decrease) relative to what rtol is relative to, 0 for none."""
        if not np.isfinite(gap):
            return np.inf
        floor = 1.0 if self.atol is None else self.atol / self.rtol
        size = max(floor, abs(value))
        if size == 0.0:
            return 0.0 if gap <= 0.0 else np.inf
        return float(gap / size)

    @property
    def stricter(self) -> bool:
        """Whether the absolute part is smaller than by default, perhaps too small to be met."""
        return self.atol is not None and self.atol < self.rtol

    @property
    def seconds(self) -> float:
        """Wall-clock time so far, compilation included."""
        return time.perf_counter() - self.began

    @property
    def counted(self) -> float:
        """Time so far that counts: without compilation."""
        return now() - self.started

    @property
    def deadline(self) -> float:
        """When the time is over, by `gtvcvx._deadline.now`; perhaps infinite."""
        return self.started + self.time_limit

    @property
    def seconds_left(self) -> float:
        """Time until the limit, perhaps infinite, negative after it."""
        return self.time_limit - self.counted

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return self.counted >= self.time_limit
