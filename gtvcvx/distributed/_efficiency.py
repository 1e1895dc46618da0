"""What to expect of a distributed run, from the manifest alone: bytes, seconds, and advice.

A model with a few numbers of the machine. An iteration takes each worker the passes over all edges
and nodes of its shards, what each shard costs besides, one exchange of halos, and a share of a sum
over all workers; the slowest worker counts. Cut edges are computed in both of their shards.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.distributed._folder import node_bytes
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._parts import worker_of

# An answer that is so many times as fast is worth a second process.
_WORTH = 1.3
# Seconds of an iteration of one process below which some thousand of them take less than a minute,
# of which starting workers, loading code and reading shards again is a good part.
_SHORT = 1e-2
# A share of an iteration that waiting should not take.
_MUCH = 1 / 3
# A share of the memory that a problem may take, so that there is some for everything else.
_MEMORY_SHARE = 0.5
_NUMBER = 8  # bytes


@dataclass(frozen=True)
class Machine:
    """What a model of run times needs to know of machines and their network.

    Defaults are measured on one machine, two cores of an AMD EPYC that were shared with others:
    seconds of coordinates and shards by ``tests/benchmarks/scaling.py --measure`` (squared loss,
    penalty l2; 4 to 30 ns a coordinate with the number of coefficients), the latency by
    ``tests/benchmarks/engines.py`` (engine "local"). The bandwidth is that of a network of 10 Gb/s.

    Attributes
    ----------
    coordinate : float
        Seconds of an iteration for each coordinate of an edge or a node.
    shard : float
        Seconds of an iteration for each shard, whatever is in it.
    latency : float
        Seconds of an exchange without contents.
    bandwidth : float
        Bytes a second that a worker sends and receives.
    sums : float
        Sums over all workers an iteration.
    memory : float
        Bytes that one machine has.
    """

    coordinate: float = 1.3e-8
    shard: float = 4e-5
    latency: float = 5e-5
    bandwidth: float = 1.25e9
    sums: float = 0.13
    memory: float = np.inf

    @staticmethod
    def here() -> Machine:
        """Return the usual one, with the memory of this machine where that is known."""
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            return Machine()
        return replace(Machine(), memory=float(memory))

    def compute(self, coordinates: FloatArray, shards: FloatArray) -> FloatArray:
        """Return the seconds of an iteration on so many coordinates in so many shards."""
        return coordinates * self.coordinate + shards * self.shard


@dataclass(frozen=True)
class Expectation:
    """What is expected of a run.

    Attributes
    ----------
    manifest : Manifest
    machine : Machine
    sent : ndarray, shape (workers,)
        Bytes that each worker sends to others in an iteration.
    compute : ndarray, shape (workers,)
        Seconds an iteration that each worker computes.
    alone : float
        Seconds an iteration of one process without shards.
    bytes_a_worker : float
        Memory of the arrays of the largest worker.
    bytes_alone : float
        That of one process without shards.
    """

    manifest: Manifest
    machine: Machine
    sent: FloatArray
    compute: FloatArray
    alone: float
    bytes_a_worker: float
    bytes_alone: float

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.sent)

    @property
    def exchange(self) -> float:
        """Seconds of an iteration in which workers wait for halos and sums."""
        if self.workers == 1:
            return 0.0
        machine = self.machine
        a_sum = machine.latency * ceil(log2(self.workers))
        halo = machine.latency + float(self.sent.max()) / machine.bandwidth
        return halo + machine.sums * a_sum

    @property
    def iteration(self) -> float:
        """Seconds of an iteration."""
        return float(self.compute.max()) + self.exchange

    @property
    def speedup(self) -> float:
        """How many times as fast as one process without shards it is."""
        return self.alone / self.iteration

    @property
    def efficiency(self) -> float:
        """The same by the number of workers."""
        return self.speedup / self.workers

    @property
    def fits_one(self) -> bool:
        """Whether one machine has the memory."""
        return self.bytes_alone <= _MEMORY_SHARE * self.machine.memory

    def advice(self) -> str:
        """Return one sentence: whether to distribute, and what limits it."""
        if not self.fits_one:
            return (
                f"the whole takes {in_bytes(self.bytes_alone)}, more than one machine of "
                f"{in_bytes(self.machine.memory)} should be given: distribute"
            )
        if self.workers > 1 and self.speedup < _WORTH:
            return (
                f"one machine does it: {in_bytes(self.bytes_alone)} fit, and {self.workers} "
                f"workers are {self.speedup:.2g} times as fast"
            )
        if self.workers > 1 and self.alone < _SHORT:
            return f"one machine does it: an iteration takes one process {1e3 * self.alone:.2g} ms"
        share = self.exchange / self.iteration
        if share > _MUCH:
            return (
                f"exchange takes {share:.0%} of an iteration: fewer edges between shards, or fewer "
                f"workers; {self.workers} are {self.speedup:.2g} times as fast as one process"
            )
        if self.workers == 1:
            return "one machine does it, and one worker needs no shards: problem.solve()"
        return f"{self.workers} workers are {self.speedup:.2g} times as fast as one process"

    def lines(self) -> list[str]:
        """Return what is printed before a run."""
        m = self.manifest
        share = m.cut_edges / max(m.n_edges, 1)
        most = float(self.sent.max(initial=0.0))
        return [
            f"partition   {m.n_shards} shards by {m.partitioner}, {m.cut_edges} of {m.n_edges} "
            f"edges between them ({100 * share:.2g}%)",
            f"halo        {in_bytes(float(self.sent.sum()))} between {self.workers} workers an "
            f"iteration, {in_bytes(most)} at most from one",
            f"memory      {in_bytes(self.bytes_a_worker)} a worker, "
            f"{in_bytes(self.bytes_alone)} for the whole",
            f"model       {self.iteration:.2g} s an iteration, {self.exchange:.2g} s of it "
            f"exchange; parallel efficiency {self.efficiency:.2f}",
            f"advice      {self.advice()}",
        ]

    def data(self) -> dict[str, float]:
        """Return the same for programs."""
        return {
            "cut_edges": self.manifest.cut_edges,
            "halo_bytes": float(self.sent.sum()),
            "bytes_a_worker": self.bytes_a_worker,
            "bytes_alone": self.bytes_alone,
            "expected_seconds_an_iteration": self.iteration,
            "expected_efficiency": self.efficiency,
        }


def expectation(manifest: Manifest, workers: int, machine: Machine | None = None) -> Expectation:
    """Return what to expect of a run of so many workers.

    Raises
    ------
    ValueError
        There are more workers than shards, or none.
    """
    if not 1 <= workers <= manifest.n_shards:
        raise ValueError(
            f"workers: 1 to {manifest.n_shards}, one for each shard, are expected, got {workers}"
        )
    machine = Machine.here() if machine is None else machine
    place, d = worker_of(manifest.n_shards, workers), manifest.dim
    nodes, edges, rows, halo = _counts(manifest)
    # Edges between shards are computed in both.
    computed = edges + manifest.cut_edges * halo / max(float(halo.sum()), 1.0)
    n, m, q, ghosts = (_by_worker(place, x, workers) for x in (nodes, computed, rows, halo))
    whole = [np.array([x.sum()]) for x in (nodes, edges, rows)]
    return Expectation(
        manifest=manifest,
        machine=machine,
        sent=_sent(manifest, place),
        compute=machine.compute((n + m) * d, _by_worker(place, np.ones(len(place)), workers)),
        alone=machine.coordinate * float(nodes.sum() + edges.sum()) * d,
        # Ghosts are as many as the nodes that others have of ours, by and large.
        bytes_a_worker=float(_bytes(n + ghosts, m, q, d).max()),
        bytes_alone=float(_bytes(whole[0], whole[1], whole[2], d)[0]),
    )


def _counts(manifest: Manifest) -> list[FloatArray]:
    """Return of each shard the nodes, edges and rows, and nodes that others need, per neighbour."""
    records = manifest.shards
    columns = [[r.n_nodes, r.n_edges, r.n_rows, sum(r.halo.values())] for r in records]
    return list(np.array(columns, dtype=np.float64).T)


def _sent(manifest: Manifest, place: IntArray) -> FloatArray:
    """Return the bytes that each worker sends to others; `place` is the worker of each shard."""
    sent = np.zeros(int(place.max()) + 1)
    for own, record in zip(place, manifest.shards, strict=True):
        far = sum(count for other, count in record.halo.items() if place[other] != own)
        sent[own] += _NUMBER * manifest.dim * far
    return sent


def _by_worker(place: IntArray, values: FloatArray, workers: int) -> FloatArray:
    return np.bincount(place, values, workers).astype(np.float64)


def _bytes(nodes: FloatArray, edges: FloatArray, rows: FloatArray, dim: int) -> FloatArray:
    """Return the bytes of a run's arrays, data rows among them."""
    per_node = node_bytes(np.zeros(1), dim)[0]
    per_half_edge = node_bytes(np.ones(1), dim)[0] - per_node
    return nodes * per_node + 2 * edges * per_half_edge + rows * _NUMBER * (dim + 2)


def in_bytes(count: float) -> str:
    """Return a number of bytes in words, as ``1.2 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
