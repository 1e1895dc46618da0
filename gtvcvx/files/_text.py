"""Opening text, gzipped or not, and naming what it is where it is not text in UTF-8."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

#: What reading a damaged gzip file raises, beside errors of decoding.
BadText = (EOFError, zlib.error, gzip.BadGzipFile)

_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
_UTF8, _UTF16, _UTF32 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff"), b"\xff\xfe\x00\x00"
_SAVE_AS_UTF8 = "save it as UTF-8 (in Excel: 'CSV UTF-8')"
_QUOTED = re.compile(rb'"[^"]*"')


@contextmanager
def open_text(name: str) -> Iterator[tuple[TextIO, bytes]]:
    """Open a text in UTF-8, gzipped or not; give it and its first bytes.

    Pipes are read once, from the beginning to the end, like files.

    Raises
    ------
    ValueError
        Naming the file: it is missing, unreadable, or recognised as something else.
    """
    try:
        raw: BinaryIO = open(name, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise ValueError(f"{name}: there is no such file") from None
    except OSError as error:
        raise ValueError(f"{name}: the file cannot be read ({error.strerror})") from error
    with raw:
        head = _peek(name, raw)
        if head.startswith(_GZIP):
            raw = cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=raw)))
            head = _peek(name, raw)
        _refuse_other_kinds(name, head)
        with io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as handle:
            yield handle, head


def separator(head: bytes) -> str:
    """Separator of the first line that is not blank: what there is most of outside quotes."""
    lines = _QUOTED.sub(b"", head.removeprefix(_UTF8)).splitlines()
    first = next((line for line in lines if line.strip()), b"")
    counts = {mark: first.count(mark.encode()) for mark in (",", ";", "\t")}
    return max(counts, key=counts.__getitem__)


def explained(name: str, error: Exception) -> str:
    """Say what is wrong with a text that could not be read to its end."""
    if not isinstance(error, UnicodeDecodeError):
        return f"{name}: the gzip file is damaged or cut short ({error})"
    found = _first_wrong(name)
    if found is None:
        return f"{name}: the text is not UTF-8 ({error})"
    line, byte = found
    text = bytes([byte]).decode("cp1252", "replace")
    return (
        f"{name}, line {line}: the text is not UTF-8; byte 0x{byte:02x} is {text!r} in Latin-1 or "
        f"Windows-1252: convert it, as by 'iconv -f WINDOWS-1252 -t UTF-8', or {_SAVE_AS_UTF8}"
    )


def _peek(name: str, raw: BinaryIO) -> bytes:
    try:
        return bytes(cast(io.BufferedReader, raw).peek())
    except BadText as error:
        raise ValueError(explained(name, error)) from error
    except OSError as error:
        raise ValueError(f"{name}: the file cannot be read ({error.strerror})") from error


def _refuse_other_kinds(name: str, head: bytes) -> None:
    """Refuse what begins like a file of another kind, or of another encoding."""
    if head.startswith(_ZIP):
        raise ValueError(
            f"{name}: this is a zip archive or a spreadsheet (xlsx), no text: export it as CSV"
        )
    if head.startswith(_PARQUET):
        raise ValueError(f"{name}: this is a Parquet file: give it a name that ends in .parquet")
    # In text of Latin letters every other byte of UTF-16 is zero; text has no zeros otherwise.
    if head.startswith(_UTF16) or b"\0" in head[:4]:
        kind = "UTF-32" if head.startswith(_UTF32) else "UTF-16"
        raise ValueError(f"{name}: the text is {kind}, UTF-8 is expected: {_SAVE_AS_UTF8}")


def _first_wrong(name: str) -> tuple[int, int] | None:
    """Line and value of the first byte that is not UTF-8; None if the file cannot be read again."""
    if not os.path.isfile(name):
        return None
    with open(name, "rb") as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
    opened = gzip.open if packed else open
    with opened(name, "rb") as file:
        for number, line in enumerate(cast(BinaryIO, file), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return number, line[error.start]
    return None
