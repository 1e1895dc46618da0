"""Numbers of a run by shard, in a folder: workers write their own, rank 0 says when all are there.

Files have the name of a generation; a small file names the last one that is whole. What was there
before it stays until it is, so that no moment leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gtvcvx.distributed._parts import Parts
from gtvcvx.files import _storage


class Slices:
    """Numbers of all shards in a folder.

    Parameters
    ----------
    folder : str or path-like
    kind : str
        First part of the names of files, and of their schema.
    """

    def __init__(self, folder: str | os.PathLike[str], kind: str) -> None:
        self.folder, self._kind = Path(folder), kind

    @property
    def _schema(self) -> str:
        return f"gtv-{self._kind}/1"

    @property
    def _index(self) -> Path:
        return self.folder / f"{self._kind}.npz"

    def _path(self, number: int, generation: str) -> Path:
        return self.folder / f"{self._kind}-{number:05d}-{generation}.npz"

    def write(
        self,
        parts: Parts,
        generation: str,
        facts: Mapping[str, Any],
        slices: Sequence[Mapping[str, Any]],
    ) -> None:
        """Write what each part has, and facts of the whole; all workers call this.

        Parameters
        ----------
        parts : Parts
        generation : str
            Another one than the last time; the same in all workers.
        facts : mapping
            Of rank 0.
        slices : sequence of mapping
            Of each part of this worker.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = {"schema": self._schema, "sharding": parts.manifest.sharding}
        for part, own in zip(parts, slices, strict=True):
            data = {**whole, "generation": generation, "number": part.number, **own}
            _storage.save(self._path(part.number, generation), data)
        parts.fabric.barrier()
        if parts.fabric.rank == 0:
            data = {**whole, "generation": generation, "n_shards": parts.manifest.n_shards}
            _storage.save(self._index, {**data, "facts": dict(facts)})
        parts.fabric.barrier()
        for part in parts:
            for old in self.folder.glob(f"{self._kind}-{part.number:05d}-*.npz"):
                if old != self._path(part.number, generation):
                    old.unlink(missing_ok=True)

    def index(self) -> dict[str, Any] | None:
        """Return what rank 0 wrote last, with its ``generation`` and ``facts``; None if nothing.

        Raises
        ------
        ValueError
            Naming the file: it is damaged or of another kind.
        """
        try:
            return _storage.load(self._index, self._schema)
        except FileNotFoundError:
            return None

    def slice(self, index: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Return what a shard wrote in the generation of an index.

        Raises
        ------
        ValueError
            Naming the file: it is missing, damaged, or of another run.
        """
        path = self._path(number, str(index["generation"]))
        try:
            data = _storage.load(path, self._schema)
        except OSError as error:
            raise ValueError(f"{path}: it cannot be read ({error.strerror or error})") from error
        same = ("sharding", index["sharding"]), ("generation", index["generation"])
        if any(data.get(name) != value for name, value in same) or data.get("number") != number:
            raise ValueError(f"{path}: it belongs to another run")
        return data

    def slices(self, index: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Return those of all shards, one after the other."""
        for number in range(int(index["n_shards"])):
            yield self.slice(index, number)
