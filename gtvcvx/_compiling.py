"""Compilation is announced: whoever waits for it should know that it is for once."""

from __future__ import annotations

from contextlib import AbstractContextManager

from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay, Stream
from verify._compilation import CLOCK, CompilationClock

_LOG = room_logger("compiled")
TEXT = "compiling, once: later runs find it on disk"


class Announcement:
    """Shows on a terminal that functions are being compiled, while they are.

    Parameters
    ----------
    verbose : bool, optional
        False: never.
    stream : file, optional
        Default: standard error as it is when compilation begins.
    """

    def __init__(self, verbose: bool | None, stream: Stream | None = None) -> None:
        self._verbose, self._stream = verbose, stream
        self._display: ProgressDisplay | None = None

    def begun(self) -> None:
        """Show it."""
        _LOG.info(TEXT)
        self._display = ProgressDisplay("", verbose=self._verbose, stream=self._stream)
        self._display.note(TEXT)

    def ended(self) -> None:
        """Remove it."""
        _LOG.debug("compiled")
        if self._display is not None:
            self._display.close()
            self._display = None


def announced(
    verbose: bool | None, stream: Stream | None = None, clock: CompilationClock = CLOCK
) -> AbstractContextManager[None]:
    """Announce what is compiled inside the block, on a terminal, unless verbose is False.

    Of nested blocks the outermost decides: what is quiet inside is so because somebody outside
    shows the progress.
    """
    return clock.watched(Announcement(verbose, stream))
