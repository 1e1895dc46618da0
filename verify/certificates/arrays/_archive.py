"""Large documents as files: the plainest zip there is, written whole or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verify._json_file import writing
from verify.kernel.large.content import digest
from verify.kernel.large.layout import MANIFEST

Array = NDArray[Any]
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file knows; nobody looks at it
_PIECE = 1 << 22  # bytes written at once
#: Zip files of this size need other headers.
LARGEST = (1 << 32) - (1 << 20)


class Document(NamedTuple):
    """A large document before it is written.

    Attributes
    ----------
    manifest : dict
        All of it.
    data : list of (str, ndarray)
        Members of the problem data, in their order.
    witnesses : list of (str, ndarray)
        Members of the tables.
    """

    manifest: dict[str, Any]
    data: list[tuple[str, Array]]
    witnesses: list[tuple[str, Array]]


def hash_of(head: Mapping[str, Any], data: Iterable[tuple[str, Array]]) -> str:
    """Return the hash of problem data in arrays."""
    return digest(head, [sha256(_bytes(a)).hexdigest() for _, a in data])


def write(
    document: Document,
    path: str | os.PathLike[str],
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Write a document whole or not at all.

    Parameters
    ----------
    document : Document
        The document.
    path : str or path
        As for `verify._json_file.write_json`.
    progress : callable
        Called with the bytes written so far and those there are.

    Raises
    ------
    ValueError
        The path names something that is not a regular file, or the arrays take more than 4 GB.
    OSError
        What the system says when it cannot write; an earlier file stays as it was.
    """
    members = [*document.data, *document.witnesses]
    total = sum(a.nbytes for _, a in members)
    if total > LARGEST:
        raise ValueError(f"a certificate of {total} bytes does not fit into a zip file of 4 GB")
    text = json.dumps(document.manifest, separators=(",", ":"), allow_nan=False).encode()
    with writing(path) as file, zipfile.ZipFile(file, "w") as archive:
        _add(archive, MANIFEST, text, zipfile.ZIP_DEFLATED, lambda size: None)
        done = 0

        def more(size: int) -> None:
            nonlocal done
            done += size
            progress(done, total)

        for name, values in members:
            _add(archive, name, values, zipfile.ZIP_STORED, more)


def _add(
    archive: zipfile.ZipFile,
    name: str,
    contents: bytes | Array,
    method: int,
    more: Callable[[int], None],
) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = method
    raw = memoryview(contents) if isinstance(contents, bytes) else _bytes(contents)
    entry.file_size = len(raw)
    with archive.open(entry, "w") as member:
        for start in range(0, len(raw), _PIECE):
            piece = raw[start : start + _PIECE]
            member.write(piece)
            more(len(piece))


def _bytes(values: Array) -> memoryview:
    """Return the bytes of an array, row by row."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return memoryview(flat.data)
