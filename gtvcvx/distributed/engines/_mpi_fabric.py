"""A fabric of MPI: persistent requests, watched so that a silent rank is no endless wait."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.distributed.engines._channel import Kind
from gtvcvx.distributed.engines._mpi_reports import Reports
from gtvcvx.distributed.engines._patience import SPIN, give_way

#: Most bytes of a message: counts of MPI are integers of 32 bits.
PIECE = 1 << 30
# Numbers that an array may have to be gathered in one round; sums of shards have a handful.
_SMALL = 16
# Sets of arrays that requests are kept for: a solver alternates between a few.
_PLANS = 16
# Seconds in which requests are tested again and again, as MPI itself does, where ranks share cores:
# who tests keeps the others from answering. With cores of their own it is `SPIN`.
_SPIN_SHARED = 5e-5
# Seconds between two tests once that is over.
_NAP = 5e-5


@dataclass
class _Plan:
    """Requests of an exchange, and the arrays that they belong to.

    The arrays are kept, so that no other array can have the identity of one of them.
    """

    requests: list[Any]
    peers: list[int]
    arrays: tuple[FloatArray, ...]
    # Of what is received; -1 for what is sent.
    lengths: list[int]
    # Lengths are compared the first time.
    checked: bool = False


class MPIFabric:
    """The `Fabric` of one rank.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    timeout : float
        Seconds of silence.
    """

    def __init__(self, mpi: Any, timeout: float) -> None:
        self._mpi, self._timeout = mpi, timeout
        # A communicator of its own: what a run that has failed leaves behind is not taken for ours.
        self._comm = mpi.COMM_WORLD.Dup()
        self.reports = Reports(mpi, timeout)
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._spin = SPIN if _ranks_here(mpi) <= _cores() else _SPIN_SHARED
        self._others = [rank for rank in range(self.size) if rank != self.rank]
        self._plans: dict[tuple[int, ...], _Plan] = {}
        self._own = np.zeros(1 + _SMALL)
        self._found = np.zeros((self.size, 1 + _SMALL))
        self._small = self._plan(
            Kind.ALL_GATHER,
            dict.fromkeys(self._others, self._own),
            {rank: self._found[rank] for rank in self._others},
        )
        self._error: Exception | None = None

    def exchange(self, out: Mapping[int, FloatArray], into: Mapping[int, FloatArray]) -> None:
        """Send an array to each peer of `out`, and fill those of `into`."""
        key = (*out, -1, *into, *map(id, out.values()), *map(id, into.values()))
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _PLANS:
                self._forget(next(iter(self._plans)))
            plan = self._plans[key] = self._plan(Kind.EXCHANGE, out, into)
        self._do(plan)

    def all_gather(self, own: FloatArray) -> list[FloatArray]:
        """Return the arrays of all workers."""
        own = np.ascontiguousarray(own, dtype=np.float64)
        self._own[0] = own.size
        if own.size <= _SMALL:
            self._own[1 : 1 + own.size] = own.ravel()
        self._do(self._small)
        self._found[self.rank] = self._own
        sizes = [int(n) for n in self._found[:, 0].tolist()]
        tail = own.shape[1:]
        if max(sizes) <= _SMALL:
            rows = zip(self._found, sizes, strict=True)
            return [_shaped(row[1 : 1 + n].copy(), tail, r) for r, (row, n) in enumerate(rows)]
        return self._gathered_in_full(own, sizes)

    def _gathered_in_full(self, own: FloatArray, sizes: Sequence[int]) -> list[FloatArray]:
        found = [np.empty(n) for n in sizes]
        found[self.rank] = own.ravel().copy()
        out = dict.fromkeys(self._others, own.ravel()) if own.size > _SMALL else {}
        into = {r: found[r] for r in self._others if sizes[r] > _SMALL}
        self._once(Kind.ALL_GATHER, out, into)
        for rank, n in enumerate(sizes):
            if n <= _SMALL:
                found[rank][:] = self._found[rank, 1 : 1 + n]
        return [_shaped(array, own.shape[1:], rank) for rank, array in enumerate(found)]

    def gather(self, data: bytes) -> list[bytes] | None:
        """Return what all workers give, at rank 0."""
        sizes = [int(n[0]) for n in self.all_gather(np.array([float(len(data))]))]
        if self.rank:
            self._once(Kind.GATHER, {0: np.frombuffer(data, np.uint8)}, {})
            return None
        found = {rank: np.empty(sizes[rank], np.uint8) for rank in self._others}
        self._once(Kind.GATHER, {}, found)
        return [data, *(found[rank].tobytes() for rank in self._others)]

    def broadcast(self, data: bytes | None) -> bytes:
        """Return what rank 0 gives."""
        if self.rank == 0 and data is None:
            raise TypeError("data: bytes are expected of rank 0, got None")
        length = 0.0 if data is None else float(len(data))
        size = int(self.all_gather(np.array([length]))[0][0])
        if self.rank == 0:
            assert data is not None
            out = dict.fromkeys(self._others, np.frombuffer(data, np.uint8))
            self._once(Kind.BROADCAST, out, {})
            return data
        found = np.empty(size, np.uint8)
        self._once(Kind.BROADCAST, {}, {0: found})
        return found.tobytes()

    def barrier(self) -> None:
        """Wait until all workers are here."""
        self._own[0] = 0.0
        self._do(self._small)

    def close(self) -> None:
        """Let go of requests and communicators."""
        for key in list(self._plans):
            self._forget(key)
        for request in self._small.requests:
            request.Free()
        self._comm.Free()
        self.reports.close()

    def _plan(self, kind: Kind, out: Mapping[int, Any], into: Mapping[int, Any]) -> _Plan:
        plan = _Plan([], [], (*out.values(), *into.values()), [])
        for make, arrays in ((self._comm.Recv_init, into), (self._comm.Send_init, out)):
            for rank, array in arrays.items():
                for piece in _pieces(array):
                    plan.requests.append(make([piece, self._mpi.BYTE], rank, int(kind)))
                    plan.peers.append(rank)
                    plan.lengths.append(len(piece) if arrays is into else -1)
        return plan

    def _once(self, kind: Kind, out: Mapping[int, Any], into: Mapping[int, Any]) -> None:
        plan = self._plan(kind, out, into)
        self._do(plan)
        for request in plan.requests:
            request.Free()

    def _forget(self, key: tuple[int, ...]) -> None:
        for request in self._plans.pop(key).requests:
            request.Free()

    def _do(self, plan: _Plan) -> None:
        if self._error is not None:
            raise self._error
        try:
            self._move(plan)
        except Exception as error:
            self._error = error
            raise

    def _move(self, plan: _Plan) -> None:
        requests = plan.requests
        self._mpi.Prequest.Startall(requests)
        if plan.checked:
            test = self._mpi.Request.Testall
            end = time.perf_counter() + self._spin
            while time.perf_counter() < end:
                if test(requests):
                    return
                give_way()
        self._wait(plan)
        plan.checked = True

    def _wait(self, plan: _Plan) -> None:
        """Wait for what is on its way, and compare its length with what is expected."""
        deadline = time.monotonic() + self._timeout
        status = self._mpi.Status()
        left = set(range(len(plan.requests)))
        while True:
            arrived = {k for k in left if self._arrived(plan, k, status)}
            if arrived:
                left -= arrived
                deadline = time.monotonic() + self._timeout
            if not left:
                return
            self.reports.look()
            if time.monotonic() > deadline:
                raise self.reports.silent({plan.peers[k] for k in left})
            time.sleep(_NAP)

    def _arrived(self, plan: _Plan, k: int, status: Any) -> bool:
        if not plan.requests[k].Test(status):
            return False
        got, expected = status.Get_count(self._mpi.BYTE), plan.lengths[k]
        if expected not in (-1, got):
            raise RuntimeError(
                f"worker {plan.peers[k]} sends {got} bytes, {expected} bytes are expected: "
                "the calls of workers differ"
            )
        return True


def _ranks_here(mpi: Any) -> int:
    """Return how many ranks this machine has."""
    here = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    count = int(here.Get_size())
    here.Free()
    return count


def _cores() -> int:
    """Return how many cores this process may use, or all where that is unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pieces(array: Any) -> list[memoryview]:
    whole = array.data.cast("B") if array.size else memoryview(bytearray())
    return [whole[k : k + PIECE] for k in range(0, max(len(whole), 1), PIECE)]


def _shaped(array: FloatArray, tail: tuple[int, ...], rank: int) -> FloatArray:
    width = int(np.prod(tail, dtype=np.int64))
    if array.size % max(width, 1):
        raise RuntimeError(
            f"worker {rank} gathers {array.size} numbers, rows of {width} are expected"
        )
    return array.reshape((array.size // max(width, 1), *tail))
