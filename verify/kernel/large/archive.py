"""Zip files of the plainest form, which no two readers read differently. Standard library only.

Not `zipfile`, which takes what it can make sense of: data behind the end, members that overlap,
names that differ between the two headers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from verify.kernel.verdict import Verdict, malformed

SIGNATURE = b"PK\x03\x04"  # of a local header, with which such a file begins
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
#: Members, and bytes of their headers in the central directory: names are some 20 bytes long.
MOST_MEMBERS, MOST_HEADERS = 4096, 1 << 20
_TOO_LARGE = 0xFFFFFFFF  # means zip64
PIECE = 1 << 18  # bytes read at once


class Member(NamedTuple):
    """A member: where its contents are, how many bytes, and how many they are inflated."""

    name: str
    start: int
    stored: int
    size: int
    deflated: bool
    crc: int


class Archive:
    """The members of a file, in their order."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)
        self.members = {m.name: m for m in self._members()}

    def expect(self, wanted: Mapping[str, int]) -> None:
        """Compare the members behind the first with those that there should be, and their sizes.

        A size of -1 is any.
        """
        if list(self.members)[1:] != list(wanted):
            raise malformed("the members are not those that the manifest asks for")
        for name, size in wanted.items():
            if size not in (-1, self.members[name].size):
                raise malformed(f"{name} has {self.members[name].size} bytes and needs {size}")

    def _at(self, offset: int, size: int) -> bytes:
        self.file.seek(offset)
        found = self.file.read(size)
        if len(found) < size:
            raise _broken("it is cut off")
        return found

    def _members(self) -> list[Member]:
        count, length, offset = self._end()
        directory, at, position = self._at(offset, length), 0, 0
        found: list[Member] = []
        for _ in range(count):
            member, at, position = self._member(directory, at, position)
            found.append(member)
        if at != length or position != offset:
            raise _broken("its members do not fill it")
        if len({m.name for m in found}) < count:
            raise _broken("two members have the same name")
        return found

    def _end(self) -> tuple[int, int, int]:
        """Return the number of members, and length and offset of the central directory."""
        if self.size < _END.size:
            raise _broken("it is cut off")
        end = _END.unpack(self._at(self.size - _END.size, _END.size))
        signature, disk, first_disk, here, count, length, offset, comment = end
        if (signature, disk, first_disk, comment) != (b"PK\x05\x06", 0, 0, 0) or here != count:
            raise _broken("it does not end with a plain end record")
        if offset + length + _END.size != self.size:
            raise _broken("its central directory is not where it should be")
        if count > MOST_MEMBERS or length > MOST_HEADERS:
            raise _broken("it has too many members")
        return count, length, offset

    def _member(self, directory: bytes, at: int, position: int) -> tuple[Member, int, int]:
        """Return the member of a central header, and where the next header and member begin."""
        if len(directory) < at + _CENTRAL.size:
            raise _broken("its central directory is cut off")
        central = _CENTRAL.unpack_from(directory, at)
        signature, _, _, flags, method, _, _, crc, stored, size, length = central[:11]
        extra, comment, disk, _, _, offset = central[11:]
        at += _CENTRAL.size
        raw = directory[at : at + length]
        plain = (signature, flags, extra, comment, disk) == (b"PK\x01\x02", 0, 0, 0, 0)
        if not plain or method not in (0, 8) or _TOO_LARGE in (stored, size, offset):
            raise _broken("a central header is not plain")
        if offset != position or len(raw) < length or (method == 0 and stored != size):
            raise _broken("a central header is wrong")
        local = _LOCAL.unpack(self._at(offset, _LOCAL.size))
        same = (SIGNATURE, 0, method, crc, stored, size, length, 0)
        if (*local[:1], *local[2:4], *local[6:]) != same:
            raise _broken("a local header differs from the central one")
        start = offset + _LOCAL.size + length
        if self._at(offset + _LOCAL.size, length) != raw or not raw.isascii():
            raise _broken("a name is wrong")
        member = Member(raw.decode("ascii"), start, stored, size, method == 8, crc)
        return member, at + length, start + stored


def _broken(reason: str) -> Verdict:
    return malformed(f"not a plain zip file: {reason}")


class Stream:
    """The contents of a member, read on and on; wrong sizes and a wrong CRC-32 are malformed."""

    def __init__(self, archive: Archive, member: Member) -> None:
        self._file, self._member = archive.file, member
        self._next, self._left = member.start, member.stored
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self._waiting = b""
        self._crc, self._unread = 0, member.size
        if not member.size:
            self._finish()

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes."""
        if size > self._unread:
            raise self._wrong("ends too early")
        found = self._inflated(size) if self._member.deflated else self._raw(size)
        if len(found) != size:
            raise self._wrong("ends too early")
        self._crc = zlib.crc32(found, self._crc)
        self._unread -= size
        if self._unread == 0:
            self._finish()
        return found

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """Yield all that is left, at most so many bytes at once."""
        while self._unread:
            yield self.read(min(size, self._unread))

    def _raw(self, size: int) -> bytes:
        """Return the next bytes of the file, as far as the member goes."""
        self._file.seek(self._next)
        found = self._file.read(min(size, self._left))
        self._next += len(found)
        self._left -= len(found)
        return found

    def _inflated(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size and not self._inflater.eof:
            more = self._inflate(size)
            if more is None:
                break
            parts.append(more)
            size -= len(more)
        return b"".join(parts)

    def _inflate(self, size: int) -> bytes | None:
        """Return what comes of the next bytes, at most so many; None where there is no more.

        The inflater may hold some back when it has taken all there is: a repetition, the end.
        """
        self._waiting = self._waiting or self._raw(PIECE)
        last = not self._waiting
        try:
            found = self._inflater.decompress(self._waiting, size)
        except zlib.error:
            raise self._wrong("is no deflate stream") from None
        self._waiting = self._inflater.unconsumed_tail
        return None if last and not found and not self._inflater.eof else found

    def _finish(self) -> None:
        """Check what is behind the last byte: nothing, but perhaps the end of the stream."""
        if self._member.deflated:
            while not self._inflater.eof:
                if self._inflate(1) != b"":
                    raise self._wrong("is longer than it says, or has no end")
            if self._inflater.unused_data or self._left:
                raise self._wrong("has unused bytes")
        if self._crc != self._member.crc:
            raise self._wrong("has a wrong CRC-32")

    def _wrong(self, reason: str) -> Verdict:
        return _broken(f"{self._member.name} {reason}")
