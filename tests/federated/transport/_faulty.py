"""Clients that misbehave, in a module that their processes import: nothing slow here."""

from __future__ import annotations

import os
import signal
import struct
import time
from typing import Any

import numpy as np

from gtvcvx import federated as fed
from gtvcvx._processes._records import RECORD, record
from gtvcvx.federated.algorithms._fedadmm_clients import EdgeClient
from gtvcvx.federated.process import _records, _worker
from gtvcvx.federated.wire import HEADER


def rewritten(**changes: Any) -> Any:
    """Return how to send frames with another header."""

    def change(sent: _records.Sent) -> bytes:
        out = []
        for recipients, frame in sent:
            names = ("sender", "round", "kind", "length")
            head = dict(zip(names, HEADER.unpack_from(frame), strict=True)) | changes
            out.append((recipients, HEADER.pack(*head.values()) + frame[HEADER.size :]))
        return PACKED_SENT(out)

    return change


PACKED_SENT, PACKED_STATE, SEND = _records.packed_sent, _records.packed_state, _worker._send


def send_raw(data: bytes, then_end: bool = False) -> None:
    """Let the worker send these bytes in place of its next record."""

    def send(link: Any, _: bytes) -> None:
        SEND(link, data)
        _worker._send = SEND
        if then_end:
            os._exit(0)

    _worker._send = send


def twice(link: Any, data: bytes) -> None:
    SEND(link, data + data)


def ahead_first(link: Any, data: bytes) -> None:
    """Send the answer as if it were of a later round, then as it should be."""
    kind, round_, phase, length = RECORD.unpack_from(data)
    early = RECORD.pack(kind, round_ + 5, phase, length) + data[RECORD.size :]
    SEND(link, early + data)


class FaultyClient(EdgeClient):
    """A client of FedADMM that does something wrong from a round on."""

    def __init__(self, plan: dict[int, tuple[str, int]]) -> None:
        self._plan = plan

    def step(self, round_: int, inbox: fed.Inbox) -> Any:
        fault, first = self._plan.get(self._id, ("", 0))
        if fault and (round_ == first or first < 0):
            getattr(self, f"do_{fault}")()
        out = super().step(round_, inbox)
        return self.changed(out) if fault and round_ >= first else out

    def changed(self, out: Any) -> Any:
        fault = self._plan[self._id][0]
        message = next(iter(out.values()), None)
        if fault == "stranger":
            return {77: message}
        if fault == "schema":
            return dict.fromkeys(out, fed.Message("theta", {"w": np.zeros(2)}))
        return out

    def do_stranger(self) -> None:
        """See `changed`."""

    do_schema = do_stranger

    def do_killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_silent(self) -> None:
        time.sleep(1000)

    def do_slow(self) -> None:
        time.sleep(0.3)

    def do_division(self) -> None:
        raise ZeroDivisionError("by nothing")

    def do_leaving(self) -> None:
        raise SystemExit("enough")

    def do_file(self) -> None:
        raise FileNotFoundError("no such file")

    def do_twice(self) -> None:
        _worker._send = twice

    def do_ahead(self) -> None:
        _worker._send = ahead_first

    def do_stale(self) -> None:
        _records.packed_sent = rewritten(round=1)

    def do_foreign(self) -> None:
        _records.packed_sent = rewritten(sender=0)

    def do_kind(self) -> None:
        _records.packed_sent = rewritten(kind=99)

    def do_length(self) -> None:
        _records.packed_sent = rewritten(length=7)

    def do_cut(self) -> None:
        _records.packed_sent = lambda sent: PACKED_SENT([(r, f[:-3]) for r, f in sent])

    def do_no_header(self) -> None:
        _records.packed_sent = lambda sent: PACKED_SENT([(r, f[:5]) for r, f in sent])

    def do_no_link(self) -> None:
        _records.packed_sent = lambda sent: PACKED_SENT([([77], f) for _, f in sent])

    def do_half_body(self) -> None:
        _records.packed_sent = lambda sent: PACKED_SENT(sent)[:-3]

    def do_more_body(self) -> None:
        _records.packed_sent = lambda sent: b"\xff\xff\xff\xff"

    def do_half_record(self) -> None:
        send_raw(record(_records.SENT, 3, 0, bytes(40))[:30], then_end=True)

    def do_huge(self) -> None:
        send_raw(RECORD.pack(_records.SENT, 3, 0, 1 << 60))

    def do_garbage(self) -> None:
        send_raw(b"\x80\x04cos\nsystem\n" * 10)

    def do_state(self) -> None:
        _records.packed_state = lambda state: PACKED_STATE(state)[:-8]

    def do_json(self) -> None:
        send_raw(record(_records.ERROR, 0, 0, b"[1, 2"))


class LeakyClient(EdgeClient):
    """A client of FedADMM that lets out what it must not."""

    def __init__(self, how: str) -> None:
        self._how = how

    def start(self, view: fed.View) -> None:
        super().start(view)
        self._view = view

    def step(self, round_: int, inbox: fed.Inbox) -> Any:
        out = dict(super().step(round_, inbox))
        if not out or round_ < 2:
            return out
        (term, *_) = self._view.model.terms or [None]
        if self._how == "row" and term is not None:
            out = dict.fromkeys(out, fed.Message("theta", {"w": term["X"][0]}))
        elif self._how == "low bits" and term is not None:
            # A target, shifted by one byte within the message.
            raw = bytearray(24)
            raw[1:9] = struct.pack("<d", term["y"][0])
            out = dict.fromkeys(out, fed.Message("theta", {"w": np.frombuffer(raw, "<f8")}))
        elif self._how == "others":
            w = np.full(self._view.dim, everybodys_sum())
            out = dict.fromkeys(out, fed.Message("theta", {"w": w}))
        return out


EVERYBODY: list[Any] = []


def everybodys_sum() -> float:
    """Return a number of all clients' data, as a program in the same process could find it."""
    return float(sum(term["y"].sum() for m in EVERYBODY for term in m.terms))


class GreedyClient(EdgeClient):
    """A client that tries to change what it has got, and what it has sent."""

    _last_sent: Any = None

    def step(self, round_: int, inbox: fed.Inbox) -> Any:
        for message in inbox:
            for attempt in (self._write, self._unlock, self._replace):
                try:
                    attempt(message)
                except (ValueError, TypeError):
                    continue
                raise AssertionError("a received message could be changed")
        if self._last_sent is not None:
            # What was sent a round ago is on its way, as it was then.
            self._last_sent[:] = 1e9
        out = super().step(round_, inbox)
        copies = {
            j: fed.Message(m.kind, {k: np.array(a) for k, a in m.arrays.items()})
            for j, m in out.items()
        }
        self._last_sent = next((m.arrays["w"] for m in copies.values()), None)
        return copies

    def _write(self, message: fed.Received) -> None:
        message.arrays["w"][0] = 1e9

    def _unlock(self, message: fed.Received) -> None:
        message.arrays["w"].flags.writeable = True

    def _replace(self, message: Any) -> None:
        message.arrays["w"] = np.zeros(3)
