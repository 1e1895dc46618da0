"""A client's program between two messages: what Flower keeps at the client, and takes back.

Flower ends a client's process, or gives it other work, after every message. The program is pickled
into the client's own ``context.state``, which stays on its machine: only it can read it, and only
it has written it, so that unpickling it trusts nobody else. The client's model, and with it the
data, is left out and loaded anew.

A message may come twice, late or never, and so may an answer. Two states are kept, before and after
the last step; every request says which answer the server has seen last, and a step whose answer
was lost is taken back. So an answer that never came and a client that was never there are the
same.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gtvcvx.federated.models import LocalModel
from gtvcvx.federated.programs import Participant


class StaleRequestError(ValueError):
    """A request that was under way for so long that a later one has been answered."""


@dataclass(frozen=True)
class KeptState:
    """States of one participant, by the number of the request after which they were kept.

    Attributes
    ----------
    since : int
        Request before the last one; 0 where the last one was the first.
    before : bytes
        The participant then.
    number : int
        Last request.
    after : bytes
        The participant after it.
    """

    since: int = 0
    before: bytes = b""
    number: int = 0
    after: bytes = b""

    @staticmethod
    def of(record: Mapping[str, Any] | None) -> KeptState:
        """Return the states of a record of plain values."""
        return KeptState() if record is None else KeptState(**record)

    def at(self, number: int) -> bytes | None:
        """Return the participant after some request; None if it is not known."""
        if number and number == self.number:
            return self.after
        return self.before if number and number == self.since else None

    def check_new(self, number: int) -> None:
        """Refuse a request that is not newer than all others.

        Raises
        ------
        StaleRequestError
        """
        if number <= self.number:
            raise StaleRequestError(f"request {number} comes after request {self.number}")

    def then(self, since: int, number: int, participant: bytes) -> KeptState:
        """Return the states after one more request, made since another one was answered."""
        return KeptState(since, self.at(since) or b"", number, participant)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, model: LocalModel) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._model = model

    def persistent_id(self, obj: Any) -> str | None:
        return "model" if obj is self._model else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, model: LocalModel) -> None:
        super().__init__(file)
        self._model = model

    def persistent_load(self, pid: Any) -> Any:
        return self._model


def pickled(participant: Participant, model: LocalModel) -> bytes:
    """Return a participant as bytes, without its model."""
    buffer = io.BytesIO()
    _Pickler(buffer, model).dump(participant)
    return buffer.getvalue()


def restored(raw: bytes, model: LocalModel) -> Participant:
    """Return the participant again, with its model."""
    participant: Participant = _Unpickler(io.BytesIO(raw), model).load()
    return participant
