"""What goes wrong with workers, named by their ranks."""

from __future__ import annotations


class WorkerLostError(RuntimeError):
    """A worker that has ended, or is silent where something is expected of it.

    Parameters
    ----------
    rank : int
        Which one.
    reason : str
        What was seen of it.
    """

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(rank, reason)
        self.rank, self.reason = rank, reason

    def __str__(self) -> str:
        return f"worker {self.rank} is lost: {self.reason}"


class WorkerError(RuntimeError):
    """An exception of a worker's task; its traceback is a note."""


#: Exceptions of tasks that are raised at rank 0 as what they are; others become a `WorkerError`.
USUAL: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (ValueError, TypeError, ImportError, MemoryError)
}


def label_of(rank: int) -> str:
    """Return how messages name a worker."""
    return f"worker {rank}"
