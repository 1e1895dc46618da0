"""One line that says how far a long computation is."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Stream(Protocol):
    """What a progress display needs of its output: the part of a text file that it uses."""

    def write(self, text: str, /) -> object:
        """Write text."""

    def flush(self) -> object:
        """Hand on what was written."""

    def isatty(self) -> bool:
        """Tell whether a terminal shows the text."""


class ProgressDisplay:
    """One line: label, iteration, gap, elapsed time and, where it can be told, time left.

    On a terminal one line is rewritten in place; elsewhere (``verbose=True`` only) each report is a
    line of its own. Reports are throttled, so ``update`` may be called at every iteration. Use it
    as a context manager, or call ``close``.

    The time left is extrapolated from the gap if ``gap_goal`` is given and the gap has come down
    (its logarithm is taken to fall linearly, as under linear convergence), otherwise from
    ``total``. ``total`` with ``gap_goal`` is a limit that the work need not reach, so it only caps
    the estimate.

    Parameters
    ----------
    label : str
        What is being done.
    verbose : bool or None
        True: report wherever the stream leads. False: never. None: only on a terminal, and remove
        the line at the end.
    total : int, optional
        Number of iterations, at least 1.
    gap_goal : float, optional
        Gap at which the work ends, > 0.
    stream : file, optional
        Default: standard error as it is at this moment.
    interval : float
        Seconds before the first report and between two reports; ten times as long between lines
        that are not rewritten.
    clock : callable
        Gives the time in seconds.
    """

    def __init__(
        self,
        label: str,
        *,
        verbose: bool | None = None,
        total: int | None = None,
        gap_goal: float | None = None,
        stream: Stream | None = None,
        interval: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Without a console (pythonw) sys.stderr is None.
        self._stream: Stream | None = stream if stream is not None else sys.stderr
        self._rewrites = self._stream is not None and self._stream.isatty()
        self._active = self._stream is not None and (
            bool(verbose) or (verbose is None and self._rewrites)
        )
        self._keeps = bool(verbose)
        self._label, self._total, self._gap_goal = label, total, gap_goal
        self._interval = interval if self._rewrites else 10.0 * interval
        self._clock = clock
        self._start = self._last = clock()
        self._first_gap: tuple[float, float] | None = None
        self._latest: tuple[int, float | None] | None = None
        self._shown: tuple[int, float | None] | None = None
        self._width = 0

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def update(self, iteration: int, gap: float | None = None) -> None:
        """Report if it is time to.

        Parameters
        ----------
        iteration : int
            Iterations done.
        gap : float, optional
            Gap reached; NaN and infinity count as not known.
        """
        if not self._active:
            return
        now = self._clock()
        known = gap if gap is not None and math.isfinite(gap) else None
        if known is not None and known > 0 and self._first_gap is None:
            self._first_gap = (now, known)
        self._latest = (iteration, known)
        if now - self._last >= self._interval:
            self._last = now
            self._report(now)

    def note(self, text: str) -> None:
        """Show a text in place of the line, at once; on a terminal only, where it can be removed.

        It takes the whole line: another display may have written there.
        """
        if self._active and self._rewrites:
            self._rewrite(text.ljust(self._columns))

    def close(self) -> None:
        """End the display: ``verbose=True`` keeps the last state, otherwise the line is removed."""
        if not self._active:
            return
        if self._keeps and self._latest is not None:
            if self._shown != self._latest:
                self._report(self._clock())
            if self._rewrites:
                self._write("\n")
        elif self._width:
            self._write("\r" + " " * self._width + "\r")
        self._active = False

    def _report(self, now: float) -> None:
        assert self._latest is not None
        line = self._line(now, *self._latest)
        self._shown = self._latest
        if not self._rewrites:
            self._write(line + "\n")
            return
        self._rewrite(line)

    def _rewrite(self, line: str) -> None:
        line = line[: self._columns]
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    @property
    def _columns(self) -> int:
        """Length of the longest line.

        One that wraps could not be rewritten; the last column makes some terminals wrap.
        """
        return max(shutil.get_terminal_size().columns - 1, 1)

    def _line(self, now: float, iteration: int, gap: float | None) -> str:
        of_total = f"/{self._total}" if self._total is not None and self._gap_goal is None else ""
        parts = [f"{self._label}: iteration {iteration}{of_total}"]
        if gap is not None:
            parts.append(f"gap {gap:.2e}")
        parts.append(f"{format_seconds(now - self._start)} elapsed")
        left = self._time_left(now, iteration, gap)
        if left is not None:
            parts.append(f"about {format_seconds(left)} left")
        return ", ".join(parts)

    def _time_left(self, now: float, iteration: int, gap: float | None) -> float | None:
        estimates = []
        if self._gap_goal is not None:
            by_gap = self._time_left_by_gap(now, gap)
            if by_gap is None:
                return None
            estimates.append(by_gap)
        if self._total is not None and iteration > 0:
            rate = (now - self._start) / iteration
            estimates.append(max(self._total - iteration, 0) * rate)
        return min(estimates, default=None)

    def _time_left_by_gap(self, now: float, gap: float | None) -> float | None:
        if self._gap_goal is None or self._first_gap is None or gap is None:
            return None
        if gap <= self._gap_goal:
            return 0.0
        since, first = self._first_gap
        if gap >= first or now <= since:
            return None
        return (now - since) * math.log(gap / self._gap_goal) / math.log(first / gap)

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # A closed pipe or stream must not stop the computation that is reported on.
            self._active = False


def format_seconds(seconds: float) -> str:
    """Give a duration in fitting units: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
