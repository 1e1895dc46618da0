"""Large documents as files: the plainest zip there is, written whole or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple

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
    """Write a document whole or not at all, as `verify._json_file.writing` does.

    Parameters
    ----------
    document : Document
        The document.
    path : str or path
        As for `verify._json_file.writing`.
    progress : callable
        Called with the bytes written so far and those there are.

    Raises
    ------
    ValueError
        The path names something that is not a regular file, or the arrays take more than 4 GB.
    OSError
        What the system says when it cannot write; an earlier file stays as it was.
    """
    with writing(path) as file:
        write_to(file, document, progress)


def write_to(
    file: BinaryIO,
    document: Document,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Write a document to a file that is open."""
    members = [*document.data, *document.witnesses]
    total, done = sum(a.nbytes for _, a in members), 0
    if total > LARGEST:
        raise ValueError(f"a certificate of {total} bytes does not fit into a zip file of 4 GB")
    text = json.dumps(document.manifest, separators=(",", ":"), allow_nan=False).encode()
    with zipfile.ZipFile(file, "w") as archive:
        list(_add(archive, MANIFEST, memoryview(text), zipfile.ZIP_DEFLATED))
        for name, values in members:
            for size in _add(archive, name, _bytes(values), zipfile.ZIP_STORED):
                done += size
                progress(done, total)


def _add(archive: zipfile.ZipFile, name: str, raw: memoryview, method: int) -> Iterator[int]:
    """Add a member piece by piece; yields their sizes."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.file_size = method, len(raw)
    with archive.open(entry, "w") as member:
        for start in range(0, len(raw), _PIECE):
            piece = raw[start : start + _PIECE]
            member.write(piece)
            yield len(piece)


def _bytes(values: Array) -> memoryview:
    """Return the bytes of an array, row by row."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return memoryview(flat.data)
