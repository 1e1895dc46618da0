"""Records of a fixed format, which is what goes between a process and its parent.

Numbers and plain text, never pickles: what comes over a connection cannot make anybody run code.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

#: Kind, two numbers of the sender's choice, and the length of what follows.
RECORD = struct.Struct("!BIIQ")
TOKEN_BYTES = 32


class RecordError(ValueError):
    """A record that is not of the format, or that its sender may not send."""


class Head(NamedTuple):
    """The head of a record."""

    kind: int
    round: int
    phase: int
    length: int


def record(kind: int, round_: int = 0, phase: int = 0, body: bytes = b"") -> bytes:
    """Return a record."""
    return RECORD.pack(kind, round_, phase, len(body)) + body
