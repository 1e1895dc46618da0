"""A process of our own: started afresh, told in private what it is to do, ended."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gtvcvx._processes._records import TOKEN_BYTES

#: Lengths of the path of the main script and of the pickled start.
START = struct.Struct("!QQ")

# Dozens of processes with a thread for every core each would only be in each other's way.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# The search path is set after the start of Python: on PYTHONPATH a script's folder would hide
# modules of the standard library that a start loads.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {module} import main; main()"
)


class Child:
    """A process that runs ``main()`` of a module.

    It is started afresh, never forked: a fork would have all of our data in its memory. What it is
    told goes over the pipe that is its standard input, which no other process can write to, so that
    it may be a pickle. It ends when that pipe closes (`gtvcvx._processes._inside`).

    Parameters
    ----------
    module : str
        Dotted name.
    environment : mapping of str to str
        What is added to ours where we do not say it ourselves.
    """

    def __init__(self, module: str, environment: Mapping[str, str] = ONE_THREAD) -> None:
        self.token = os.urandom(TOKEN_BYTES)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM.format(module=module), json.dumps(_path())],
            stdin=subprocess.PIPE,
            env={**environment, **os.environ},
            **_apart(),
        )

    def tell(self, data: bytes) -> None:
        """Write to its private pipe."""
        assert self.process.stdin is not None
        # A process that is gone is noticed by its silence.
        with contextlib.suppress(OSError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def tell_start(self, start: bytes, interactive: str) -> None:
        """Tell it a pickle, and where the main script is if the pickle needs it."""
        self.tell(start_head(start, interactive))
        self.tell(start)

    def let_go(self) -> None:
        """Close what leads to it: it ends by itself."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.let_go()
        self.process.wait()


def end_all(children: Iterable[Child], seconds: float) -> None:
    """End processes: all at the same time, and by force those that have not ended by then."""
    children = list(children)
    for child in children:
        child.let_go()
    try:
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(seconds)
    finally:
        for child in children:
            child.process.kill()
        for child in children:
            child.process.wait()


def start_head(start: bytes, interactive: str) -> bytes:
    """Return what comes before a pickle: lengths, and the main script if the pickle needs it.

    Parameters
    ----------
    start : bytes
    interactive : str
        What to say to users whose session has no main script.

    Raises
    ------
    TypeError
    """
    main = _main_script(interactive) if b"__main__" in start else b""
    return START.pack(len(main), len(start)) + main


def _path() -> list[str]:
    return [os.path.abspath(entry) for entry in sys.path]


def _apart() -> dict[str, Any]:
    """Return how to keep Ctrl-C, which goes to a whole group of processes, from ours."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"process_group": 0}


def _main_script(interactive: str) -> bytes:
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None:
        raise TypeError(interactive)
    return os.path.abspath(path).encode()
