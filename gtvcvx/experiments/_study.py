"""One run of an experiment: its size and seeds, and the cells that an interruption leaves."""

from __future__ import annotations

import hashlib
import io
import re
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gtvcvx._progress import ProgressDisplay
from gtvcvx.files._atomic import atomic_write

Size = Literal["tiny", "default", "paper"]
SIZES: tuple[Size, ...] = ("tiny", "default", "paper")
_SECONDS = "__seconds__"
_IDENTITY = "__identity__"
_T = TypeVar("_T")


class Study:
    """What an experiment is told about the run that it is part of; see `Experiment.study`.

    Parameters
    ----------
    size : {"tiny", "default", "paper"}
        For tests, for a look within a minute, and the full setting of the paper.
    reading : str
        How the text is read where it can be read in several ways.
    seeds : range
        One repetition a seed.
    data : path-like, optional
        Folder with the user's own files.
    out : path-like, optional
        Folder for finished cells; without it they are kept in memory alone.
    name : str
        The experiment's, and so the folder of its cells.
    version : int
        Cells of another version of the experiment are not taken.
    verbose : bool or None
        A line a cell: True always, None only on a terminal.
    """

    def __init__(
        self,
        size: Size = "default",
        *,
        reading: str = "paper",
        seeds: range = range(1),
        data: str | Path | None = None,
        out: str | Path | None = None,
        name: str = "study",
        version: int = 1,
        verbose: bool | None = None,
    ) -> None:
        if size not in SIZES:
            raise ValueError(f"size: one of {', '.join(SIZES)} is expected, got {size!r}")
        if not len(seeds):
            raise ValueError("seeds: at least one seed is expected")
        self.size: Size = size
        self.reading = reading
        self.seeds = seeds
        self.data = None if data is None else Path(data)
        self.cpu_seconds = 0.0  # of the cells, those of earlier runs included
        self.computed_seconds = 0.0  # of the cells that were computed in this run
        self._name, self._version = name, version
        self._folder = None if out is None else Path(out) / "cells" / name
        self._files = [] if self.data is None else _files_of(self.data)
        self._kept: dict[str, dict[str, NDArray[Any]]] = {}
        self._verbose = verbose

    def __repr__(self) -> str:
        return f"Study(size={self.size!r}, reading={self.reading!r}, seeds={self.seeds!r})"

    def choose(self, *, tiny: _T, default: _T, paper: _T) -> _T:
        """Return the value for the size of this run.

        Parameters
        ----------
        tiny, default, paper : object
            One value for each size.
        """
        return {"tiny": tiny, "default": default, "paper": paper}[self.size]

    def cell(
        self, key: str, compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> dict[str, NDArray[Any]]:
        """Return arrays that are computed once, and found again after an interruption.

        Parameters
        ----------
        key : str
            Names everything that the result depends on, but for size, reading and the user's files.
        compute : callable
            Gives arrays (or numbers, or texts) by name.

        Returns
        -------
        dict of str to ndarray
        """
        if key not in self._kept:
            self._kept[key] = self._found(key) or self._computed(key, compute)
            self.cpu_seconds += float(self._kept[key][_SECONDS])
        own = (_SECONDS, _IDENTITY)
        return {name: array for name, array in self._kept[key].items() if name not in own}

    def _identity(self, key: str) -> str:
        """Return a text of everything that tells a cell from others."""
        own = (self._name, self._version, self.size, self.reading, self._files, key)
        return repr(own)

    def _path(self, key: str) -> Path | None:
        if self._folder is None:
            return None
        digest = hashlib.sha256(self._identity(key).encode()).hexdigest()[:16]
        readable = re.sub(r"[^A-Za-z0-9.=-]+", "_", key)[:60]
        return self._folder / f"{readable}-{digest}.npz"

    def _found(self, key: str) -> dict[str, NDArray[Any]] | None:
        """Return a stored cell; one that cannot be read is as good as none."""
        path = self._path(key)
        if path is None or not path.is_file():
            return None
        try:
            # From memory: of a file that is no archive NumPy leaves the handle open.
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            same = str(arrays[_IDENTITY]) == self._identity(key)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return arrays if same else None

    def _computed(
        self, key: str, compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> dict[str, NDArray[Any]]:
        with ProgressDisplay(self._name, verbose=self._verbose) as display:
            display.note(f"{self._name}: {key}")
            start = time.process_time()
            arrays = {name: _plain(values, name, key) for name, values in compute().items()}
            seconds = time.process_time() - start
        self.computed_seconds += seconds
        if self._verbose:
            print(f"{self._name}: {key}: {seconds:.1f} s of CPU time", flush=True)
        arrays[_SECONDS] = np.asarray(seconds)
        arrays[_IDENTITY] = np.asarray(self._identity(key))
        path = self._path(key)
        if path is not None:
            _store(path, arrays)
        return arrays


def _files_of(folder: Path) -> list[tuple[str, int, int]]:
    """Return what tells a user's files from those of another run: names, sizes, times of change."""
    if not folder.is_dir():
        return [(str(folder), -1, -1)]
    facts = [(path, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [(path.name, fact.st_size, fact.st_mtime_ns) for path, fact in facts]


def _plain(values: ArrayLike, name: str, key: str) -> NDArray[Any]:
    """Convert to an array that a file can hold without code in it."""
    array = np.asarray(values)
    if array.dtype.kind not in "biufUc":
        raise TypeError(
            f"cell {key!r}: {name}: numbers or texts are expected, got dtype {array.dtype}"
        )
    if name in (_SECONDS, _IDENTITY):
        raise ValueError(f"cell {key!r}: the name {name!r} is taken")
    return array


def _store(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    with atomic_write(path, "wb") as handle:
        handle.write(buffer.getvalue())
