"""A problem in files, cut into shards piece by piece: only one shard is in memory at a time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.distributed._buckets import Buckets
from gtvcvx.distributed._folder import Folder, checked_count, node_bytes
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._partition import partitioned
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed._sources import EDGE, ProblemFile, Source, Tables, TableSource

# Graphs with at most so many edges are partitioned in memory, which takes 50 bytes an edge.
MOST_EDGES_IN_MEMORY = 20_000_000


def shard_files(
    source: Tables | str | os.PathLike[str],
    out: str | os.PathLike[str],
    shards: int = 16,
    partitioner: object = "auto",
) -> Manifest:
    """Cut a problem in files into shards; see `gtvcvx.distributed.shard`."""
    path = Path(out)
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path, prefix=".sharding-") as temporary:
        scratch = Path(temporary)
        given = TableSource(source, scratch) if isinstance(source, Tables) else ProblemFile(source)
        return _cut(given, path, scratch, shards, partitioner)


def _cut(source: Source, path: Path, scratch: Path, shards: int, partitioner: object) -> Manifest:
    count = checked_count(shards, source.n_nodes)
    owners, count, name = _owners(source, count, partitioner)
    edges = Buckets(scratch, "edges", EDGE)
    for piece in source.edges():
        heads, tails = owners[piece["head"]], owners[piece["tail"]]
        edges.put(piece, heads)
        edges.put(piece, np.where(tails == heads, -1, tails))
    entries = [Buckets(scratch, f"term{k}", form.dtype) for k, form in enumerate(source.forms)]
    for k, buckets in enumerate(entries):
        for piece in source.entries(k):
            buckets.put(piece, owners[piece["node"]])
    folder = Folder(path)
    for number in range(count):
        ends, weights = _merged(edges.take(number))
        terms = [
            form.term(buckets.take(number))
            for form, buckets in zip(source.forms, entries, strict=True)
        ]
        given = folder.sharding, number, source.dim, owners
        folder.add(Shard.cut(*given, ends, weights, terms, source.labels))
    return folder.finish(
        dim=source.dim,
        penalty=source.penalty,
        lam=source.lam,
        partitioner=name,
        labelled=source.labels is not None,
    )


def _owners(source: Source, count: int, partitioner: object) -> tuple[IntArray, int, str]:
    """Return the shard of each node, their number, and who has chosen."""
    n, sizes = source.n_nodes, np.zeros(source.n_nodes)
    degrees, n_edges = np.zeros(n), 0
    for piece in source.edges():
        degrees += np.bincount(piece["head"], minlength=n)
        degrees += np.bincount(piece["tail"], minlength=n)
        n_edges += len(piece)
    for k, form in enumerate(source.forms):
        for piece in source.entries(k):
            sizes += form.dtype.itemsize * np.bincount(piece["node"], minlength=n)
    sizes += node_bytes(degrees, source.dim)
    if partitioner == "auto" and n_edges > MOST_EDGES_IN_MEMORY:
        partitioner = "blocks"
    ends = np.empty((0, 2), np.int64)
    if partitioner in ("auto", "metis", "order"):
        ends = np.concatenate([ends, *(_ends(piece) for piece in source.edges())])
    return partitioned(n, ends, sizes, count, partitioner)


def _ends(edges: Records) -> IntArray:
    return np.column_stack([edges["head"], edges["tail"]])


def _merged(edges: Records) -> tuple[IntArray, FloatArray]:
    """Return the edges in order, and the sums of the weights of parallel ones.

    Stable, so that both shards of an edge add in the same order.
    """
    order = np.lexsort((edges["tail"], edges["head"]))
    ends, weights = _ends(edges[order]), edges["weight"][order]
    first = np.flatnonzero(np.any(np.diff(ends, axis=0, prepend=-1) != 0, axis=1))
    return ends[first], np.add.reduceat(weights, first) if len(first) else weights
