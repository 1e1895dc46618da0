"""Ctrl-C remembered, for whoever runs what takes it as its own end, or swallows it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noticed(*, raised: bool = True, most: int | None = None) -> Iterator[list[int]]:
    """Collect signals of Ctrl-C while the block runs, besides raising KeyboardInterrupt as usual.

    A solver ends at Ctrl-C and returns its incumbent, like at a limit; whoever runs it must know
    the one from the other. Outside the main thread, and where another handler is installed,
    nothing is noticed.

    Parameters
    ----------
    raised : bool
        Whether KeyboardInterrupt is raised. Without it the block must look at what was collected.
    most : int, optional
        It is raised all the same when more than so many signals have come.
    """
    pressed: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if raised or (most is not None and len(pressed) > most):
            signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed
        return
    try:
        previous = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread: Ctrl-C does not arrive here
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, previous)
