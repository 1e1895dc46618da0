"""What a folder of shards holds: one small file that names and vouches for all others."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gtvcvx.distributed._shard import Shard
from gtvcvx.files._atomic import atomic_write
from gtvcvx.penalties import Penalty, penalty_from_data
from verify._display import fields_text

SCHEMA = "gtv-shards/1"
FILE = "manifest.json"
# Read at a time to compute a checksum.
_PIECE = 1 << 20


@dataclass(frozen=True)
class ShardRecord:
    """What the manifest says of one shard.

    Attributes
    ----------
    file : str
    sha256 : str
        Of the file's bytes.
    n_nodes, n_edges : int
        Those that the shard counts as its own.
    n_rows : int
        Entries of its losses' terms.
    halo : dict of int to int
        How many of its nodes each other shard needs, in every iteration.
    """

    file: str
    sha256: str
    n_nodes: int
    n_edges: int
    n_rows: int
    halo: dict[int, int]

    __repr__ = fields_text


@dataclass(frozen=True)
class Manifest:
    """A problem in shards.

    Attributes
    ----------
    sharding : str
        Name that all its shards carry.
    n_nodes, n_edges, dim : int
    penalty : dict
        Plain data of the penalty.
    lam : float
    cut_edges : int
        Edges between two shards.
    partitioner : str
    labelled : bool
        Whether nodes have labels other than their numbers.
    shards : list of ShardRecord
    """

    sharding: str
    n_nodes: int
    n_edges: int
    dim: int
    penalty: dict[str, Any]
    lam: float
    cut_edges: int
    partitioner: str
    labelled: bool
    shards: list[ShardRecord]

    __repr__ = fields_text

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.shards)

    @property
    def halo_bytes(self) -> int:
        """Bytes that shards send to each other in an iteration."""
        return sum(sum(record.halo.values()) for record in self.shards) * 8 * self.dim

    def as_penalty(self) -> Penalty:
        """Return the penalty."""
        return penalty_from_data(self.penalty)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it into a folder, atomically."""
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, allow_nan=False)
        with atomic_write(Path(folder) / FILE) as file:
            file.write(text + "\n")

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Manifest:
        """Read the manifest of a folder.

        Raises
        ------
        ValueError
            Naming the file: there is none, or it is damaged or of another kind.
        """
        path = Path(folder) / FILE
        try:
            data = json.loads(path.read_text("utf-8"))
        except OSError as error:
            problem = error.strerror or error
            raise ValueError(f"{path}: no manifest of shards can be read ({problem})") from error
        except ValueError as error:
            raise ValueError(f"{path}: not a manifest of shards ({error})") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"{path}: schema {SCHEMA!r} is expected")
        try:
            return _read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path}: not a complete manifest ({error})") from error

    def shard(self, folder: str | os.PathLike[str], number: int) -> Shard:
        """Read a shard, and refuse it if it is not the one that is meant.

        Raises
        ------
        ValueError
            Naming the file: it is missing, broken, changed since, or of another sharding.
        """
        record = self.shards[number]
        path = Path(folder) / record.file
        try:
            found = checksum(path)
        except OSError as error:
            problem = error.strerror or error
            raise ValueError(f"{path}: shard {number} cannot be read ({problem})") from error
        if found != record.sha256:
            # Say whose it is, if that can be read: shards of two foldings are easily mixed up.
            shard = _readable(path)
            if shard is not None and shard.sharding != self.sharding:
                raise ValueError(f"{path}: a shard of another sharding than {FILE}")
            raise ValueError(f"{path}: shard {number} is broken, its checksum is another")
        shard = Shard.load(path)
        same = shard.sharding == self.sharding and shard.number == number
        if not (same and shard.dim == self.dim):
            raise ValueError(f"{path}: not shard {number} of this sharding")
        return shard


def record_of(shard: Shard, path: Path) -> ShardRecord:
    """Return what a manifest says of a shard that was written."""
    own = shard.own
    return ShardRecord(
        file=path.name,
        sha256=checksum(path),
        n_nodes=int(own.sum()),
        n_edges=int(shard.own_edges.sum()),
        n_rows=sum(len(term["node"]) for term in shard.terms),
        halo={other: len(shard.boundary_with(other)) for other in shard.neighbours},
    )


def checksum(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _readable(path: Path) -> Shard | None:
    try:
        return Shard.load(path)
    except ValueError:
        return None


def _read(data: dict[str, Any]) -> Manifest:
    records = [_record(record, len(data["shards"])) for record in data["shards"]]
    lam = float(data["lam"])
    manifest = Manifest(
        sharding=str(data["sharding"]),
        **{name: _count(data[name], name) for name in ("n_nodes", "n_edges", "dim", "cut_edges")},
        penalty=dict(data["penalty"]),
        lam=lam,
        partitioner=str(data["partitioner"]),
        labelled=bool(data["labelled"]),
        shards=records,
    )
    manifest.as_penalty()
    if not (math.isfinite(lam) and lam > 0.0):
        raise ValueError(f"lam: a positive finite number is expected, got {lam}")
    for name in ("n_nodes", "n_edges"):
        total = sum(getattr(record, name) for record in records)
        if total != getattr(manifest, name):
            raise ValueError(f"{name}: shards have {total} of {getattr(manifest, name)}")
    return manifest


def _record(data: dict[str, Any], n_shards: int) -> ShardRecord:
    name = str(data["file"])
    # Names come from a file that anybody may have written: none leads out of the folder.
    if Path(name).name != name:
        raise ValueError(f"file: {name!r} is not the name of a file in this folder")
    counts = {key: _count(data[key], key) for key in ("n_nodes", "n_edges", "n_rows")}
    halo = {int(other): _count(count, "halo") for other, count in data["halo"].items()}
    if not all(0 <= other < n_shards for other in halo):
        raise ValueError("halo: a shard that there is not")
    return ShardRecord(file=name, sha256=str(data["sha256"]), halo=halo, **counts)


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name}: a number >= 0 is expected, got {value!r}")
    return value
