"""Large documents written member by member, each piece by piece, the manifest last."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from verify.certificates.arrays._archive import LARGEST

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION, _TIME, _DATE = 20, 0, 0x21  # 2.0; the first of January 1980, at which nobody looks


class ArchiveWriter:
    """A zip file of the plainest form: stored members, one behind the other.

    Parameters
    ----------
    file : file
        Open for writing, and empty.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._members: list[tuple[bytes, int, int, int]] = []  # name, start, size, CRC-32

    @contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes | memoryview], None]]:
        """Give a function that writes the next piece of a member's contents."""
        start, size, crc = self._file.tell(), 0, 0
        self._file.write(_local(name.encode("ascii"), 0, 0))

        def write(piece: bytes | memoryview) -> None:
            nonlocal size, crc
            size += len(piece)
            if start + size > LARGEST:
                raise ValueError("a certificate does not fit into a zip file of 4 GB")
            crc = zlib.crc32(piece, crc)
            self._file.write(piece)

        yield write
        self._note(len(self._members), name, start, size, crc)
        self._file.seek(0, 2)

    def rewrite(self, number: int, contents: bytes) -> None:
        """Write other contents, equally long, into a member; before the end, or behind it."""
        name, start, size, _ = self._members[number]
        if len(contents) != size:
            raise ValueError(f"{len(contents)} bytes instead of {size}")
        self._file.seek(start + _LOCAL.size + len(name))
        self._file.write(contents)
        self._note(number, name.decode(), start, size, zlib.crc32(contents))
        self._file.seek(0, 2)

    def close(self) -> None:
        """Write the central directory; it can be written again, after `rewrite`."""
        self._file.seek(self._end())
        offset = self._file.tell()
        for name, start, size, crc in self._members:
            facts = (_VERSION, _VERSION, 0, 0, _TIME, _DATE, crc, size, size, len(name), 0, 0)
            self._file.write(_CENTRAL.pack(b"PK\x01\x02", *facts, 0, 0, 0, start) + name)
        length, count = self._file.tell() - offset, len(self._members)
        self._file.write(_END.pack(b"PK\x05\x06", 0, 0, count, count, length, offset, 0))
        self._file.flush()

    def _end(self) -> int:
        name, start, size, _ = self._members[-1]
        return start + _LOCAL.size + len(name) + size

    def _note(self, number: int, name: str, start: int, size: int, crc: int) -> None:
        """Write the local header of a member, whose contents are known now."""
        raw = name.encode("ascii")
        self._members[number:] = [(raw, start, size, crc), *self._members[number + 1 :]]
        self._file.seek(start)
        self._file.write(_local(raw, size, crc))


def _local(name: bytes, size: int, crc: int) -> bytes:
    facts = (_VERSION, 0, 0, _TIME, _DATE, crc, size, size, len(name), 0)
    return _LOCAL.pack(b"PK\x03\x04", *facts) + name


class Hashed:
    """Writes pieces and keeps the SHA-256 of all of them."""

    def __init__(self, write: Callable[[bytes | memoryview], None]) -> None:
        self._write, self._digest = write, hashlib.sha256()

    def __call__(self, piece: bytes | memoryview) -> None:
        self._digest.update(piece)
        self._write(piece)

    @property
    def sha256(self) -> str:
        """Of what was written."""
        return self._digest.hexdigest()
