"""Arrays in the IDX format, in which MNIST and Fashion-MNIST are distributed."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx.datasets._user_files import user_file

_GZIP = b"\x1f\x8b"
# The third byte of the magic number; numbers are big-endian.
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def load_idx(path: str | os.PathLike[str], *, sha256: str | None = None) -> NDArray[Any]:
    """Read an array from an IDX file, gzipped or not.

    Parameters
    ----------
    path : path-like
        The user's file.
    sha256 : str, optional
        What the SHA-256 of the file as it lies on the disk has to be, hexadecimal.

    Returns
    -------
    ndarray
        Of the type and shape that the file declares, in the byte order of the machine.

    Raises
    ------
    FileNotFoundError
        It is not there.
    ValueError
        Another checksum, a magic number that is none of IDX, or fewer or more bytes than the
        shape needs.

    Notes
    -----
    The file begins with two zero bytes, one for the type of the numbers and one for the number of
    axes, then the length of each axis as a big-endian integer of four bytes.
    """
    found = user_file(path, "an array in the IDX format, such as train-images-idx3-ubyte.gz")
    raw = found.read_bytes()
    if sha256 is not None and hashlib.sha256(raw).hexdigest() != sha256.lower():
        got = hashlib.sha256(raw).hexdigest()
        raise ValueError(f"{found}: the SHA-256 {sha256.lower()} is expected, got {got}")
    return parse_idx(_unpacked(raw, found), found)


def _unpacked(raw: bytes, path: Path) -> bytes:
    if not raw.startswith(_GZIP):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the gzip file is broken or cut off ({error})") from error


def parse_idx(content: bytes, path: Path) -> NDArray[Any]:
    """Read an array from the content of an IDX file; the path is named in errors."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES or not content[3]:
        raise ValueError(
            f"{path}: no IDX file: two zero bytes, a type and a number of axes are expected, got "
            f"{content[:4].hex(' ')}"
        )
    dtype, axes = np.dtype(_TYPES[content[2]]), content[3]
    start = 4 + 4 * axes
    if len(content) < start:
        raise ValueError(f"{path}: the file ends before the lengths of its {axes} axes")
    shape = struct.unpack(f">{axes}I", content[4:start])
    expected = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if len(content) - start != expected:
        raise ValueError(
            f"{path}: {expected} bytes are expected for the shape {shape}, got "
            f"{len(content) - start}"
        )
    array = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="))
