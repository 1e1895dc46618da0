"""A message on the wire: a header of fixed length, then the arrays."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from numpy.typing import NDArray

from gtvcvx.federated.wire._schema import Message, SchemaError, WireFormat
from verify._display import fields_text

#: Sender, round, number of the kind (4 bytes each), and the length of what follows (8 bytes).
HEADER = struct.Struct("!IIIQ")


@dataclass(frozen=True, slots=True)
class Received:
    """A message as its recipient sees it; in one process, all recipients get the same object.

    Attributes
    ----------
    sender : int
        Number of the participant that has sent it.
    round : int
        In which it was sent.
    kind : str
    arrays : mapping of str to ndarray
        Neither the arrays nor their names can be changed.
    """

    sender: int
    round: int
    kind: str
    arrays: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        return fields_text(self)


class FrameHeader(NamedTuple):
    """The header of a frame."""

    sender: int
    round: int
    kind: int
    length: int


def encoded(sender: int, round_: int, message: Message, form: WireFormat) -> bytes:
    """Return header and payload of a message.

    Raises
    ------
    SchemaError
        The schema does not allow the message.
    """
    payload = form.payload(message)
    return HEADER.pack(sender, round_, form.number[message.kind], len(payload)) + payload


def header_of(frame: bytes) -> FrameHeader:
    """Return what the header of a frame says.

    Raises
    ------
    SchemaError
        The frame is shorter than a header.
    """
    if len(frame) < HEADER.size:
        raise SchemaError(f"truncated frame: {len(frame)} bytes, a header has {HEADER.size}")
    return FrameHeader(*HEADER.unpack_from(frame))


def decoded(frame: bytes, form: WireFormat) -> Received:
    """Return the message of a frame.

    Raises
    ------
    SchemaError
        The frame is truncated, too long, or of no kind of the schema.
    """
    sender, round_, number, length = header_of(frame)
    if length != len(frame) - HEADER.size:
        raise SchemaError(
            f"truncated or overlong frame of sender {sender}: the header announces {length} bytes, "
            f"{len(frame) - HEADER.size} are there"
        )
    if number >= len(form.kinds):
        raise SchemaError(f"sender {sender}: number {number} is no kind of message")
    kind = form.kinds[number]
    arrays = form.arrays(kind, memoryview(frame)[HEADER.size :])
    return Received(sender, round_, kind, MappingProxyType(arrays))
