"""Records sorted into files, one for each shard, while they pass by: more than memory holds."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gtvcvx._arrays import IntArray, Records

# What all buckets together keep in memory before they write.
_BUFFER_BYTES = 1 << 25
# Bytes that are read at a time.
_PIECE_BYTES = 1 << 22


class Spool:
    """A file of records of one type, appended to and read piece by piece."""

    def __init__(self, path: Path, dtype: np.dtype[np.void]) -> None:
        self._path, self._dtype = path, dtype
        path.unlink(missing_ok=True)

    def add(self, records: Records) -> None:
        """Append records."""
        with open(self._path, "ab") as file:
            records.tofile(file)

    def pieces(self) -> Iterator[Records]:
        """Give all records, in their order."""
        rows = max(_PIECE_BYTES // self._dtype.itemsize, 1)
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            while len(piece := np.fromfile(file, self._dtype, rows)):
                yield piece


class Buckets:
    """Files of records of one type, by number.

    Parameters
    ----------
    folder : Path
        Where the files are; they are removed when they are taken.
    name : str
        What their names begin with.
    dtype : dtype
    """

    def __init__(self, folder: Path, name: str, dtype: np.dtype[np.void]) -> None:
        self._folder, self._name, self._dtype = folder, name, dtype
        self._waiting: defaultdict[int, list[Records]] = defaultdict(list)
        self._bytes = 0

    def put(self, records: Records, bucket: IntArray) -> None:
        """Add records (k,) to the buckets (k,), in their order; those of -1 to none."""
        order = np.argsort(bucket, kind="stable")
        order = order[bucket[order] >= 0]
        numbers, first = np.unique(bucket[order], return_index=True)
        for number, some in zip(numbers.tolist(), np.split(order, first[1:]), strict=False):
            self._waiting[number].append(records[some])
            self._bytes += self._waiting[number][-1].nbytes
        if self._bytes > _BUFFER_BYTES:
            self._write()

    def take(self, number: int) -> Records:
        """Return the records of a bucket, in the order in which they came, and remove them."""
        self._write()
        path = self._path(number)
        if not path.exists():
            return np.empty(0, self._dtype)
        found: Records = np.fromfile(path, self._dtype)
        os.remove(path)
        return found

    def _write(self) -> None:
        for number, pieces in sorted(self._waiting.items()):
            with open(self._path(number), "ab") as file:
                for piece in pieces:
                    piece.tofile(file)
        self._waiting.clear()
        self._bytes = 0

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._name}-{number:05d}.bin"
