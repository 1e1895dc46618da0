"""Ctrl-C over a series of solves, each of which takes it as its own end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Says whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.seen = False


@contextmanager
def noticed() -> Iterator[Interrupt]:
    """Remember Ctrl-C while the block runs, besides raising KeyboardInterrupt as usual.

    A solver ends at Ctrl-C and returns its incumbent, like at a limit; whoever runs several must
    know the one from the other. Outside the main thread, and where another handler is installed,
    nothing is noticed.
    """
    interrupt = Interrupt()

    def handler(number: int, frame: FrameType | None) -> None:
        interrupt.seen = True
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupt
        return
    try:
        previous = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread: Ctrl-C does not arrive here
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
