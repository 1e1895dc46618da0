"""The engine for clusters of Ray (extra ``ray``): it starts and watches, numbers go over TCP."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from typing import Any

from gtvcvx._extras import extra_module
from gtvcvx.distributed.engines._fabric import Task, check_run
from gtvcvx.distributed.engines._introductions import Address
from gtvcvx.distributed.engines._local import THREADS, pickled
from gtvcvx.distributed.engines._team import Team, run_alone
from gtvcvx.distributed.engines._worker import Worker


class RayEngine:
    """Runs workers as actors of Ray, on whatever machines it finds for them.

    Objects of Ray, a millisecond each, carry the task and its argument alone; numbers go over TCP
    between the machines, whose addresses are those that Ray knows them by. Connections need the
    run's token; what goes over them is not encrypted, so that the machines' network has to be one
    that you trust. Where Ray does not run yet, it is started on this machine, and ended with the
    run.

    Parameters
    ----------
    address : str, optional
        Of a cluster, as ``ray.init`` takes it. Default: that of the environment, or a new one.
    num_cpus : float
        That Ray is to reserve for each worker.
    """

    name = "ray"

    def __init__(self, address: str | None = None, num_cpus: float = 1.0) -> None:
        self._address, self._num_cpus = address, num_cpus

    def __repr__(self) -> str:
        return f"RayEngine(address={self._address!r}, num_cpus={self._num_cpus:g})"

    def run(
        self, task: Task, argument: Any, workers: int, timeout: float = 60.0, replace: int = 0
    ) -> Any:
        """Run a task in all workers (`Engine.run`)."""
        check_run(task, workers, timeout, replace)
        if workers == 1:
            return run_alone(task, argument)
        ray = extra_module("ray", "ray", "runs on Ray")
        # What stands in the main script goes along: the actors do not load that.
        start = pickled(task, argument, ray.cloudpickle.dumps)
        begun = not ray.is_initialized()
        try:
            if begun:
                self._begin(ray)
            starter = _Actors(ray, start, timeout, self._num_cpus)
            return Team(starter, task, argument, workers, timeout).run(replace)
        finally:
            if begun:
                ray.shutdown()

    def _begin(self, ray: Any) -> None:
        # No reports to its makers; and workers that are as good as rank 0: by default Ray lets them
        # wait for all other processes of the machine.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        options: dict[str, Any] = {} if self._address else {"include_dashboard": False}
        if "RAY_ADDRESS" in os.environ:
            options = {}
        ray.init(address=self._address, logging_level="ERROR", **options)


def _own_address(ray: Any) -> str:
    return str(ray.util.get_node_ip_address())


class _Actor:
    """A worker's process, as Ray sees it."""

    def place(self) -> tuple[str, int]:
        """Return the machine's address, and the number of this process there."""
        return str(
            extra_module("ray", "ray", "runs on Ray").util.get_node_ip_address()
        ), os.getpid()

    def serve(
        self,
        rank: int,
        launcher: Address,
        token: bytes,
        timeout: float,
        start: bytes,
        path: list[str],
    ) -> None:
        """Be worker `rank` until the launcher lets it go."""
        # Where the task is found on the launcher's machine, behind what this one has.
        sys.path.extend(entry for entry in path if entry not in sys.path)
        host, _ = self.place()
        Worker(rank, launcher, host, token, timeout).serve(lambda: pickle.loads(start))


class _Actors:
    """Actors of workers by rank (`gtvcvx.distributed.engines._crew.Starter`)."""

    def __init__(self, ray: Any, start: bytes, timeout: float, num_cpus: float) -> None:
        self._ray, self._timeout = ray, timeout
        self._start = ray.put(start)
        self.host = _own_address(ray)
        self._actor = ray.remote(_Actor).options(
            num_cpus=num_cpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {k: os.environ.get(k, v) for k, v in THREADS.items()}},
        )
        # Each actor, its place, and the answer that comes when it has ended.
        self._actors: dict[int, tuple[Any, Any, Any]] = {}

    def start(self, rank: int, launcher: Address, token: bytes) -> None:
        """Start the actor of a worker."""
        actor = self._actor.remote()
        path = [os.path.abspath(entry) for entry in sys.path]
        place = actor.place.remote()
        answer = actor.serve.remote(rank, launcher, token, self._timeout, self._start, path)
        self._actors[rank] = actor, place, answer

    def ended(self, rank: int, wait: float = 0.0) -> str | None:
        """Say how its actor has ended."""
        *_, answer = self._actors[rank]
        if not self._ray.wait([answer], timeout=wait)[0]:
            return None
        try:
            self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            return f"its actor has ended ({type(error).__name__})"
        return "its actor has ended"

    def kill(self, rank: int) -> None:
        """End its actor at once."""
        if rank not in self._actors:
            return
        actor, place, answer = self._actors.pop(rank)
        there = self._ray.wait([place], timeout=0)[0] and not self._ray.wait([answer], timeout=0)[0]
        self._ray.kill(actor)
        if there:
            # A process that is stopped does not hear Ray; elsewhere it ends when it goes on.
            host, process = self._ray.get(place)
            if host == self.host:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)

    def end(self, seconds: float) -> None:
        """End all actors."""
        answers = [answer for *_, answer in self._actors.values()]
        if answers:
            self._ray.wait(answers, num_returns=len(answers), timeout=seconds)
        for rank in list(self._actors):
            self.kill(rank)
