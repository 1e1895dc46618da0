"""The shards that one worker has, at work, and its way to those of the others.

Numbers of nodes and edges are kept by shard, in lists with one array for each shard of the worker:
rows for its own nodes and for ghosts, or for all edges that end at its own nodes. Whatever is
computed is computed shard by shard, and sums are over shards, in their order: so results do not
depend on the number of workers, to the last bit.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.distributed._clock import AgreedClock
from gtvcvx.distributed._halo import Halo, Routes
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed.engines import Fabric
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem

#: One array for each part of a worker: of its nodes (k, d), or of its edges (l, d).
Rows: TypeAlias = list[FloatArray]

# The time, and how often Ctrl-C was pressed.
_HEAD = 2


def worker_of(shards: int, workers: int) -> IntArray:
    """Return the worker (shards,) that each shard goes to: consecutive ones to one worker."""
    return np.arange(shards) * workers // shards


def check_workers(workers: int, manifest: Manifest) -> None:
    """Refuse more workers than shards."""
    if workers > manifest.n_shards:
        raise ValueError(
            f"workers: at most one for each of the {manifest.n_shards} shards is expected, "
            f"got {workers}"
        )


class Part:
    """A shard at work.

    Parameters
    ----------
    shard : Shard
    penalty : Penalty
    lam : float

    Attributes
    ----------
    shard : Shard
    problem : GTVProblem
        That of its own nodes and ghosts, whose losses are zero.
    own : ndarray of bool, shape (k,)
        Nodes that are no ghosts.
    counted : ndarray of bool, shape (l,)
        Edges that no other shard counts.
    ghosts : ndarray of int64
        Positions of ghosts.
    """

    def __init__(self, shard: Shard, penalty: Penalty, lam: float) -> None:
        self.shard = shard
        self.problem = GTVProblem(shard.graph(), shard.losses(), penalty, lam)
        self.own: BoolArray = shard.own
        self.counted: BoolArray = shard.own_edges
        self.ghosts: IntArray = np.flatnonzero(~self.own)

    @property
    def number(self) -> int:
        """That of the shard."""
        return self.shard.number

    @property
    def n_own(self) -> int:
        """Number of its own nodes."""
        return len(self.own) - len(self.ghosts)

    @property
    def n_counted(self) -> int:
        """Number of the edges that it counts."""
        return int(np.count_nonzero(self.counted))


class Parts(Sequence[Part]):
    """The parts of one worker, in the order of shards, and sums and copies over all.

    All workers call the same methods in the same order.

    Parameters
    ----------
    fabric : Fabric
    manifest : Manifest
    shards : sequence of Shard
        Those of this worker, see `worker_of`.
    """

    def __init__(self, fabric: Fabric, manifest: Manifest, shards: Sequence[Shard]) -> None:
        self.fabric, self.manifest = fabric, manifest
        self.n_nodes, self.n_edges, self.dim = manifest.n_nodes, manifest.n_edges, manifest.dim
        self.penalty, self.lam = manifest.as_penalty(), manifest.lam
        self._parts = [Part(shard, self.penalty, self.lam) for shard in shards]
        self.clock = AgreedClock(fabric.rank)
        workers = worker_of(manifest.n_shards, fabric.size)
        self._nodes = Halo(fabric, Routes.of_nodes(shards, workers, fabric.rank))
        self._edges = Halo(fabric, Routes.of_edges(shards, workers, fabric.rank))

    @classmethod
    def load(cls, fabric: Fabric, folder: str | os.PathLike[str]) -> Parts:
        """Read the shards of this worker, and no others.

        Raises
        ------
        ValueError
            Naming a file of the folder, or workers: more than shards.
        """
        manifest = Manifest.load(folder)
        check_workers(fabric.size, manifest)
        mine = np.flatnonzero(worker_of(manifest.n_shards, fabric.size) == fabric.rank)
        return cls(fabric, manifest, [manifest.shard(folder, int(k)) for k in mine])

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> list[Part]: ...
    def __getitem__(self, index: int | slice) -> Part | list[Part]:
        return self._parts[index]

    def __len__(self) -> int:
        return len(self._parts)

    def running(self) -> AbstractContextManager[None]:
        """Let the block go by the clock of rank 0, and take Ctrl-C together."""
        return self.clock.running()

    def refresh(self, arrays: Sequence[FloatArray]) -> None:
        """Copy rows of nodes to their ghosts, in place; one array (k, q) a part."""
        self._nodes.refresh(arrays)

    def refresh_edges(self, arrays: Sequence[FloatArray]) -> None:
        """Copy rows of cut edges to where they are not counted, in place; one (l, q) a part."""
        self._edges.refresh(arrays)

    def add(self, rows: Sequence[ArrayLike]) -> FloatArray:
        """Return the entrywise sum over all shards of arrays of one shape, one a part.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C was pressed at rank 0: in all workers after the same sum.
        Expired
            The deadline has passed, see `gtvcvx._deadline`: in all workers, too. Until the next sum
            none of them finds that it has, whatever the losses of its own shards look at.
        """
        return np.asarray(np.add.reduce(self._all(rows), axis=0))

    def most(self, rows: Sequence[ArrayLike]) -> FloatArray:
        """Return the entrywise maximum over all shards, as `add` does the sum."""
        return np.asarray(np.maximum.reduce(self._all(rows), axis=0))

    def _all(self, rows: Sequence[ArrayLike]) -> FloatArray:
        """Return what all shards give, (shards, *shape)."""
        own = np.stack([np.asarray(row, dtype=np.float64) for row in rows])
        data = np.empty((len(own), _HEAD + own[0].size))
        data[:, :_HEAD] = self.clock.tell()
        data[:, _HEAD:] = own.reshape(len(own), -1)
        found = np.concatenate(self.fabric.all_gather(data))
        self.clock.hear(*found[0, :_HEAD].tolist())
        look()
        return found[:, _HEAD:].reshape(len(found), *own.shape[1:])

    def add_nodes(self, arrays: Sequence[FloatArray]) -> float:
        """Return the sum over all nodes of numbers of nodes; one array (k,) a part."""
        return float(self.add([np.sum(a[p.own]) for p, a in zip(self, arrays, strict=True)]))

    def add_edges(self, arrays: Sequence[FloatArray]) -> float:
        """Return the sum over all edges of numbers of edges; one array (l,) a part."""
        return float(self.add([np.sum(a[p.counted]) for p, a in zip(self, arrays, strict=True)]))

    def map(self, function: Callable[[Part], FloatArray]) -> list[FloatArray]:
        """Return what a function gives for each part."""
        return [function(part) for part in self]

    def node_zeros(self) -> list[FloatArray]:
        """Return a zero for each node and coordinate, (k, d) a part."""
        return [np.zeros((len(part.own), self.dim)) for part in self]

    def edge_zeros(self) -> list[FloatArray]:
        """Return a zero for each edge and coordinate, (l, d) a part."""
        return [np.zeros((len(part.counted), self.dim)) for part in self]

    def gather(self, arrays: Sequence[FloatArray | IntArray]) -> list[np.ndarray] | None:
        """Return the arrays of all shards, in their order, at rank 0; None elsewhere."""
        found = self.fabric.gather(_packed(arrays))
        if found is None:
            return None
        return [array for data in found for array in _unpacked(data)]

    def broadcast(self, arrays: Sequence[FloatArray | IntArray] | None) -> list[np.ndarray]:
        """Return the arrays that rank 0 gives; others give None."""
        return list(_unpacked(self.fabric.broadcast(None if arrays is None else _packed(arrays))))


def _packed(arrays: Sequence[FloatArray | IntArray]) -> bytes:
    file = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _unpacked(data: bytes) -> Iterator[np.ndarray]:
    file = io.BytesIO(data)
    while file.tell() < len(data):
        yield np.lib.format.read_array(file, allow_pickle=False)
