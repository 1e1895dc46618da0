"""What each thread has of its own of an object that many may use at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")


class PerThread(Generic[_T]):
    """One object for each thread, made when the thread first asks, and gone with the thread.

    Copies, also in other processes, begin without any.

    Parameters
    ----------
    make : callable
        Returns one; a class, or a function that can be pickled.
    args
        Its arguments.
    """

    def __init__(self, make: Callable[..., _T], *args: Any) -> None:
        self._make, self._args = make, args
        self._made: WeakKeyDictionary[threading.Thread, _T] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, (self._make, *self._args)

    def forget(self) -> None:
        """Let this thread ask for another one."""
        self._made.pop(threading.current_thread(), None)

    @property
    def made(self) -> _T | None:
        """That of this thread, if it has asked for one."""
        return self._made.get(threading.current_thread())

    @property
    def own(self) -> _T:
        """That of this thread."""
        thread = threading.current_thread()
        found = self._made.get(thread)
        if found is None:
            found = self._made[thread] = self._make(*self._args)
        return found
