"""The engine that needs nothing: processes of this machine, and TCP over its loopback."""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from gtvcvx._processes._child import ONE_THREAD, Child, end_all, start_head
from gtvcvx._processes._door import LOOPBACK
from gtvcvx._processes._inside import is_child
from gtvcvx.distributed.engines._fabric import Task, check_run
from gtvcvx.distributed.engines._introductions import Address
from gtvcvx.distributed.engines._team import Team, run_alone
from gtvcvx.distributed.engines._worker import DOOR

_INTERACTIVE = (
    "task: functions of an interactive session cannot be sent to processes; write them to a module"
)
#: One thread a worker, unless the environment says otherwise; read when numba is imported.
THREADS = {**ONE_THREAD, "NUMBA_NUM_THREADS": "1"}


class LocalEngine:
    """Runs workers as processes of this machine, which are connected over its loopback.

    Each has one thread, unless OMP_NUM_THREADS, NUMBA_NUM_THREADS and their like are set. They are
    started afresh, so that a script has its actions under ``if __name__ == "__main__":`` if the
    task is defined in it, and end with this process, however that ends.
    """

    name = "local"

    def __repr__(self) -> str:
        return "LocalEngine()"

    def run(
        self, task: Task, argument: Any, workers: int, timeout: float = 60.0, replace: int = 0
    ) -> Any:
        """Run a task in all workers (`Engine.run`)."""
        check_run(task, workers, timeout, replace)
        if workers == 1:
            return run_alone(task, argument)
        if is_child():
            raise RuntimeError(
                "workers are started while a worker loads the main script: put the script's "
                'actions under if __name__ == "__main__":'
            )
        starter = _Processes(pickled(task, argument), timeout)
        return Team(starter, task, argument, workers, timeout).run(replace)


def pickled(task: Task, argument: Any, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """Return what workers are given as bytes.

    Parameters
    ----------
    task : callable
    argument : object
    dumps : callable
        Makes the pickle.

    Raises
    ------
    TypeError
        It cannot be sent.
    """
    for name, value in (("task", task), ("argument", argument)):
        try:
            start = dumps((task, argument) if name == "argument" else value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"{name}: it cannot be sent to other processes ({error})") from error
    return start


class _Processes:
    """Processes of workers by rank (`gtvcvx.distributed.engines._crew.Starter`)."""

    host = LOOPBACK

    def __init__(self, start: bytes, timeout: float) -> None:
        self._head, self._start, self._timeout = start_head(start, _INTERACTIVE), start, timeout
        self._children: dict[int, Child] = {}
        self._tellers: dict[int, threading.Thread] = {}

    def start(self, rank: int, launcher: Address, token: bytes) -> None:
        """Start the process of a worker."""
        host, port = launcher
        child = self._children[rank] = Child("gtvcvx.distributed.engines._worker", THREADS)
        child.tell(DOOR.pack(port, rank, self._timeout, len(host)) + token + host.encode())
        # A pipe is short: while one process starts, others are told.
        teller = threading.Thread(target=self._tell, args=(child,), daemon=True)
        self._tellers[rank] = teller
        teller.start()

    def _tell(self, child: Child) -> None:
        child.tell(self._head)
        child.tell(self._start)

    def ended(self, rank: int, wait: float = 0.0) -> str | None:
        """Say how its process has ended."""
        process = self._children[rank].process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        code = process.returncode
        if code is None:
            return None
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with code {code}"

    def kill(self, rank: int) -> None:
        """End its process at once."""
        if rank in self._children:
            self._children.pop(rank).kill()

    def end(self, seconds: float) -> None:
        """End all processes."""
        for rank, child in self._children.items():
            if self._tellers[rank].is_alive():
                # It does not read, and its pipe could not be closed.
                child.process.kill()
        end_all(self._children.values(), seconds)
        self._children.clear()
