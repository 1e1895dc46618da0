"""What a worker sees of the others, and what starts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from gtvcvx._arrays import FloatArray, is_integer, is_number


class Fabric(Protocol):
    """Carries numbers between the workers of one run.

    All workers make the same calls in the same order, but for `exchange`, where each names its own
    peers. Whatever waits for a worker raises `WorkerLostError` when that one ends, or when nothing
    comes of it for as long as the run's time-out; a fabric that has raised goes on raising.

    Attributes
    ----------
    rank : int
        Of this worker; 0 is the process that called `Engine.run`.
    size : int
        How many there are.
    """

    rank: int
    size: int

    def exchange(self, out: Mapping[int, FloatArray], into: Mapping[int, FloatArray]) -> None:
        """Send an array to each peer of `out`, and fill those of `into` with what peers send.

        Nothing is allocated or pickled, and all directions go at once.

        Parameters
        ----------
        out, into : mapping of int to array
            Contiguous arrays by the rank of the peer, as long as that one expects; give the same
            arrays each time where you can, since some engines remember them.
        """

    def all_gather(self, own: FloatArray) -> list[FloatArray]:
        """Return the arrays of all workers, in order of rank; first lengths may differ."""

    def gather(self, data: bytes) -> list[bytes] | None:
        """Return what all workers give, in order of rank, at rank 0; None elsewhere."""

    def broadcast(self, data: bytes | None) -> bytes:
        """Return what rank 0 gives; others give None."""

    def barrier(self) -> None:
        """Wait until all workers are here."""

    def close(self) -> None:
        """Let go of all connections; engines do that themselves."""


#: What each worker runs; what rank 0 returns is the result of the run.
Task: TypeAlias = Callable[[Fabric, Any], Any]


class Engine(Protocol):
    """Starts workers, and ends them whatever happens.

    Attributes
    ----------
    name : str
    """

    name: str

    def run(self, task: Task, argument: Any, workers: int, timeout: float, replace: int = 0) -> Any:
        """Run a task in all workers, rank 0 in the calling process, and return its result.

        Parameters
        ----------
        task : callable
            ``task(fabric, argument)``, of a module; it goes to the workers as a pickle.
        argument : object
            Goes to each worker as a pickle, once.
        workers : int
            How many there are, this process among them.
        timeout : float
            Seconds of silence after which a worker is lost, if something is expected of it. Longer
            than the longest step between two exchanges.
        replace : int
            How often workers that are lost are started anew; the task is called again then, in all
            workers, and has to go on from where it has saved its state.

        Raises
        ------
        WorkerLostError
            Naming the worker, the lowest rank if there are several.
        WorkerError, ValueError, TypeError, ImportError, MemoryError
            An exception of the task in another process, of the lowest rank if there are several;
            its traceback is a note. One of rank 0 itself is raised as it is.
        """


def check_run(task: Any, workers: Any, timeout: Any, replace: Any) -> None:
    """Refuse arguments of `Engine.run` that make no sense.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    if not callable(task):
        raise TypeError(f"task: a function of a module is expected, got {task!r}")
    if not (is_integer(workers) and workers >= 1):
        raise ValueError(f"workers: an integer >= 1 is expected, got {workers!r}")
    if not (is_number(timeout) and timeout > 0):
        raise ValueError(f"timeout: a number of seconds > 0 is expected, got {timeout!r}")
    if not (is_integer(replace) and replace >= 0):
        raise ValueError(f"replace: an integer >= 0 is expected, got {replace!r}")
