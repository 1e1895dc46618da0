"""Inside a process that is a `Child`: it hears its parent, and ends when that goes away."""

from __future__ import annotations

import os
import pickle
import runpy
import signal
import sys
import threading
import types
from typing import Any, NoReturn

from gtvcvx._processes._child import START

_STDIN = 0

# Whether this is such a process; the main script is not to start others from here.
_inside = False


def is_child() -> bool:
    """Tell whether a parent of ours has started this process."""
    return _inside


def enter() -> None:
    """Begin: Ctrl-C is for the parent, which ends its processes itself."""
    global _inside
    _inside = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def from_parent(length: int) -> bytes:
    """Read from the private pipe; without a parent this process ends."""
    # Unbuffered: the watching thread reads on from here.
    pieces, missing = [], length
    while missing:
        piece = os.read(_STDIN, min(missing, 1 << 20))
        if not piece:
            leave()
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def received_start() -> Any:
    """Return what `Child.tell_start` was given, and watch the pipe from then on.

    Nobody but the parent can have written to the pipe.
    """
    main_length, length = START.unpack(from_parent(START.size))
    main_path, raw = from_parent(main_length).decode(), from_parent(length)
    threading.Thread(target=_until_parent_ends, daemon=True).start()
    if main_path:
        _load_main(main_path)
    return pickle.loads(raw)


def leave() -> NoReturn:
    """End at once: a thread waits for input, and nothing needs tidying."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


def _until_parent_ends() -> None:
    """End this process when the pipe closes, even in the middle of a long step."""
    while os.read(_STDIN, 1):
        pass
    leave()


def _load_main(path: str) -> None:
    """Load the main script under another name, as `multiprocessing` does: programs are in it."""
    module = types.ModuleType("__mp_main__")
    module.__dict__.update(runpy.run_path(path, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
