"""A folder in the making: shards first, and the manifest last, so that a sharding is whole."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.distributed._manifest import FILE, Manifest, ShardRecord, record_of
from gtvcvx.distributed._shard import Shard


class Folder:
    """A folder that becomes one of shards.

    Parameters
    ----------
    path : str or path-like
        Made if it is not there. A sharding that is in it is replaced.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        # Without a manifest what is half replaced is not taken for a sharding.
        (self.path / FILE).unlink(missing_ok=True)
        for old in self.path.glob("shard-*.npz"):
            old.unlink()
        self.sharding = secrets.token_hex(16)
        self._records: list[ShardRecord] = []
        self._cut = 0

    def add(self, shard: Shard) -> None:
        """Write the next shard."""
        path = self.path / f"shard-{shard.number:05d}.npz"
        shard.save(path)
        self._records.append(record_of(shard, path))
        self._cut += int(np.sum(~shard.own[shard.edges].all(axis=1)))

    def finish(self, penalty: Mapping[str, Any], **facts: Any) -> Manifest:
        """Write the manifest."""
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in penalty.items()
        }
        manifest = Manifest(
            sharding=self.sharding,
            penalty=plain,
            n_nodes=sum(record.n_nodes for record in self._records),
            n_edges=sum(record.n_edges for record in self._records),
            # Edges between two shards are in both.
            cut_edges=self._cut // 2,
            shards=self._records,
            **facts,
        )
        manifest.save(self.path)
        return manifest


def checked_count(shards: object, n_nodes: int) -> int:
    """Return a number of shards that is possible."""
    if isinstance(shards, bool) or not isinstance(shards, (int, np.integer)):
        raise TypeError(f"shards: a number is expected, got {shards!r}")
    if not 1 <= shards <= n_nodes:
        raise ValueError(f"shards: 1 to {n_nodes}, one for each node, are expected, got {shards}")
    return int(shards)


def node_bytes(degrees: FloatArray, dim: int) -> FloatArray:
    """Return the bytes (n,) that a run needs for each node and for half of its edges.

    A flow, that of the last restart and an average, ends and a capacity; for nodes the same, and
    the balance and a proximal map.
    """
    return np.asarray(8.0 * (8 * dim + 4 + (3 * dim + 3) / 2.0 * degrees))
