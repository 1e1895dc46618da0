"""The operating system's process of one client: started, told what it may see, ended."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from gtvcvx.federated.process._records import TOKEN_BYTES
from gtvcvx.federated.process._worker import DOOR, START, Start
from gtvcvx.federated.transport._link import Link

# Dozens of processes with a thread for every core each would only be in each other's way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# The search path is set after the start of Python: on PYTHONPATH a script's folder would hide
# modules of the standard library that a start loads.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from gtvcvx.federated.process._worker import main; main()"
)


class ClientError(RuntimeError):
    """An error of a client's program in its own process, or a process that does not start."""


class Child:
    """One process; it holds the data of its client alone.

    It is started afresh, never forked: a fork would have everybody's data in its memory. Its start
    goes over the pipe that is its standard input, which no other process can write to, so that it
    may be a pickle; what comes back over the network is never unpickled.

    Parameters
    ----------
    start : bytes
        The pickled `Start`.
    """

    def __init__(self, start: bytes) -> None:
        self._start = start
        self.token = os.urandom(TOKEN_BYTES)
        self.link: Link | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, json.dumps(_path())],
            stdin=subprocess.PIPE,
            env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
            **_apart(),
        )

    def show_door(self, port: int, client: int) -> None:
        """Tell it where to knock, and with which token."""
        self._tell(DOOR.pack(port, client) + self.token)

    def tell_start(self) -> None:
        """Tell it what it may see; it waits for that."""
        main = _main_script() if b"__main__" in self._start else b""
        self._tell(START.pack(len(main), len(self._start)) + main + self._start)

    def _tell(self, data: bytes) -> None:
        assert self.process.stdin is not None
        # A process that is gone is noticed by its silence.
        with contextlib.suppress(OSError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def let_go(self) -> None:
        """Close what leads to it: it ends by itself."""
        if self.link is not None:
            self.link.close()
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


def pickled(start: Start) -> bytes:
    """Return a start as bytes.

    Raises
    ------
    TypeError
        Naming the client whose program or model cannot be sent.
    """
    try:
        return pickle.dumps(start)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{start.label}: its program or model cannot be sent to another process ({error}); "
            "use transport='memory', or functions and classes of modules"
        ) from error


def _path() -> list[str]:
    return [os.path.abspath(entry) for entry in sys.path]


def _apart() -> dict[str, Any]:
    """Return how to keep Ctrl-C, which goes to a whole group of processes, from clients."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"process_group": 0}


def _main_script() -> bytes:
    """Return the path of the main script, where programs are defined that are to be sent."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None:
        raise TypeError(
            "transport: programs defined in an interactive session cannot be sent to processes; "
            "write them to a module, or use transport='memory'"
        )
    return os.path.abspath(path).encode()
