"""What a client's process and its parent say to each other: numbers, their arrays, plain text."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._processes._failures import ERROR_BYTES
from gtvcvx._processes._records import RecordError
from gtvcvx.federated.programs import Report

#: Frames of one step, and the recipients of each.
Sent = list[tuple[list[int], bytes]]

# What a record is: who I am; ready; take a step; what I send; tell your state; my state; an error.
HELLO, READY, STEP, SENT, ASK, STATE, ERROR = range(1, 8)

_COUNT = struct.Struct("!I")
_LENGTH = struct.Struct("!Q")
_STATE = struct.Struct("!qqB")


class _Reader:
    """Takes a body apart; what is missing or left over is refused."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, length: int) -> bytes:
        piece = self._body[self._at : self._at + length]
        if len(piece) < length:
            raise RecordError(f"truncated: {length} bytes are announced, {len(piece)} are there")
        self._at += length
        return piece

    def count(self) -> int:
        return int(_COUNT.unpack(self.take(_COUNT.size))[0])

    def frame(self) -> bytes:
        return self.take(int(_LENGTH.unpack(self.take(_LENGTH.size))[0]))

    def done(self) -> None:
        if self._at != len(self._body):
            raise RecordError(f"overlong: {len(self._body) - self._at} bytes too many")


def packed_frames(frames: Sequence[bytes]) -> bytes:
    """Return the body of `STEP`: the inbox."""
    parts = [_COUNT.pack(len(frames))]
    for frame in frames:
        parts += [_LENGTH.pack(len(frame)), frame]
    return b"".join(parts)


def unpacked_frames(body: bytes) -> list[bytes]:
    """Return the inbox of `STEP`."""
    reader = _Reader(body)
    frames = [reader.frame() for _ in range(reader.count())]
    reader.done()
    return frames


def packed_sent(sent: Sent) -> bytes:
    """Return the body of `SENT`: the outbox."""
    parts = [_COUNT.pack(len(sent))]
    for recipients, frame in sent:
        parts += [_COUNT.pack(len(recipients)), struct.pack(f"!{len(recipients)}I", *recipients)]
        parts += [_LENGTH.pack(len(frame)), frame]
    return b"".join(parts)


def unpacked_sent(body: bytes) -> Sent:
    """Return the outbox of `SENT`.

    Raises
    ------
    RecordError
        Something is missing or left over.
    """
    reader, sent = _Reader(body), []
    for _ in range(reader.count()):
        count = reader.count()
        recipients = list(struct.unpack(f"!{count}I", reader.take(4 * count)))
        sent.append((recipients, reader.frame()))
    reader.done()
    return sent


def packed_state(state: Report) -> bytes:
    """Return the body of `STATE`."""
    arrays = [state.w] if state.flows is None else [state.w, state.flows]
    head = _STATE.pack(state.through, state.choice, state.flows is not None)
    return head + b"".join(np.asarray(a, dtype="<f8").tobytes() for a in arrays)


def unpacked_state(body: bytes, size: int, dim: int, links: int) -> Report:
    """Return the state of a client: a vector of so many numbers, and flows of its links.

    Raises
    ------
    RecordError
        The arrays have other sizes.
    """
    reader = _Reader(body)
    through, choice, has_flows = _STATE.unpack(reader.take(_STATE.size))
    w = _floats(reader.take(8 * size), (size,))
    flows = _floats(reader.take(8 * dim * links), (links, dim)) if has_flows else None
    reader.done()
    return Report(w, flows, through, choice)


def _floats(raw: bytes, shape: tuple[int, ...]) -> FloatArray:
    return np.frombuffer(raw, "<f8").astype(np.float64).reshape(shape)


def largest(payload_bytes: int, size: int, dim: int, links: int) -> dict[int, int]:
    """Return the most bytes that a client's records may have, by kind.

    Parameters
    ----------
    payload_bytes : int
        Of the longest message, with its header.
    size : int
        Length of the vector that it reports.
    dim, links : int
        Of the client.
    """
    # Each link gets one frame at most in a phase, alone or with others.
    one = 2 * _COUNT.size + _LENGTH.size + payload_bytes
    return {
        READY: 0,
        SENT: _COUNT.size + links * one,
        STATE: _STATE.size + 8 * (size + dim * links),
        ERROR: ERROR_BYTES,
    }
