"""Threads that do a compiled loop together, and meet after each pass of it.

A kernel for a team takes a `Share` first: which blocks of the work are its own. It does them one
after the other, so that one thread with all blocks does what several do with one each, in the same
order of operations: results do not tell how many threads there were. Between passes it calls
`meet`, which returns when all have come.

Meeting takes a fraction of a microsecond, where starting and ending a parallel loop takes several;
and there is one kernel to compile, for one thread and for many.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from gtvcvx._arrays import IntArray
from verify._compiled import compiled, intrinsic

# LLVM's names of what tells a processor that a thread waits, so that the other thread of the same
# core has its resources; and a number that goes with it.
_PAUSES: dict[str, tuple[str, list[int]]] = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "AMD64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
    "arm64": ("llvm.aarch64.hint", [1]),
}
# Looks before a thread lets others have its core: longer than a pass over few edges, and short
# beside what a thread that has no core waits for one.
_LOOKS = 2_000
# More than can come: whoever waits goes on, and the results are not to be used.
_GONE = 1 << 62
# The counter has a cache line of its own.
_LINE = 16


class Share(NamedTuple):
    """What one thread of a team does, and where it meets the others.

    Attributes
    ----------
    first, last : int
        Blocks of the work: first .. last - 1.
    threads : int
        How many meet.
    come : ndarray of int64
        Counts who has come to a meeting, in the middle.
    give_way : int
        Address of the system's function that lets another thread have this core.
    """

    first: int
    last: int
    threads: int
    come: IntArray
    give_way: int


@intrinsic
def _count_one(context: Any, come: Any) -> Any:
    """Add one to the counter, before or after all that other threads do to it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = _counter(context, builder, signature, arguments)
        builder.atomic_rmw("add", where, ir.Constant(ir.IntType(64), 1), "seq_cst")
        return context.get_dummy_value()

    return types.void(come), build


@intrinsic
def _counted(context: Any, come: Any) -> Any:
    """Return the counter; what others wrote before they came can be read from then on."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = _counter(context, builder, signature, arguments)
        return builder.load_atomic(where, "seq_cst", 8)

    return types.int64(come), build


def _counter(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [ir.Constant(ir.IntType(64), _LINE)])


@intrinsic
def _pause(context: Any) -> Any:
    """Tell the processor that this thread waits."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in _PAUSES:
            name, numbers = _PAUSES[platform.machine()]
            values = [ir.Constant(ir.IntType(32), number) for number in numbers]
            function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            where = cgutils.get_or_insert_function(builder.module, function, name)
            builder.call(where, values)
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def _call(context: Any, address: Any) -> Any:
    """Call the system's function at an address, which takes nothing."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        pointer = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        builder.call(builder.bitcast(pointer, ir.PointerType(function)), [])
        return context.get_dummy_value()

    return types.void(address), build


@compiled(allocates=False, inner=True)
def meet(share: Share, meeting: int) -> None:
    """Wait until all threads have come to a meeting; they are numbered 1, 2, ..."""
    if share.threads > 1:
        _count_one(share.come)
        looks = 0
        while _counted(share.come) < meeting * share.threads:
            looks += 1
            if looks % _LOOKS == 0:
                _call(share.give_way)
            else:
                _pause()


def run_together(kernel: Callable[..., None], blocks: int, threads: int, *arguments: Any) -> None:
    """Call ``kernel(share, *arguments)`` for all blocks, on one thread, or each on its own.

    Whatever ends one thread, Ctrl-C included, ends the others, and is raised.

    Parameters
    ----------
    kernel : callable
        Compiled, with ``nogil``.
    blocks, threads : int
        As many threads as blocks, or one.
    """
    assert threads in (1, blocks), "a thread of a team has one block"
    if threads == 1:
        kernel(_whole(blocks), *arguments)
        return
    come = np.zeros(2 * _LINE + 1, dtype=np.int64)

    def work(t: int) -> None:
        try:
            kernel(Share(t, t + 1, threads, come, _give_way()), *arguments)
        except BaseException:
            come[_LINE] = _GONE
            raise

    others: list[Future[None]] = []
    try:
        # All of a team before any of the next: they wait for each other.
        with _TEAMS:
            others.extend(_workers(threads - 1).submit(work, t) for t in range(1, threads))
        work(0)
    except BaseException:
        come[_LINE] = _GONE
        raise
    finally:
        wait(others)
    for other in others:
        other.result()


_TEAMS = threading.Lock()


@cache
def _whole(blocks: int) -> Share:
    """Return the share of one thread that does all: it meets nobody."""
    return Share(0, blocks, 1, np.zeros(0, dtype=np.int64), 0)


@cache
def _workers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="gtvcvx")


@cache
def _give_way() -> int:
    """Return the address of the function that lets other threads have this core."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _begin_anew() -> None:
    """Forget what a forked process has not got: other threads, and whatever they hold."""
    global _TEAMS
    _TEAMS = threading.Lock()
    _workers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
