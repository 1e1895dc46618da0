"""All frames of a run, kept for whoever wants to audit what left the clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gtvcvx._arrays import IntArray
from gtvcvx.federated.programs import Report
from gtvcvx.federated.transport._deployment import Deployment, Posted, Transport, check_transport
from gtvcvx.federated.wire import Received, WireFormat, decoded
from verify._display import fields_text


@dataclass(frozen=True)
class RecordedFrame:
    """A message as it was sent.

    Attributes
    ----------
    round, phase : int
        When.
    sender : int
    recipients : tuple of int
    frame : bytes
        Header and payload, all that was sent.
    message : Received
        The same, decoded.
    """

    round: int
    phase: int
    sender: int
    recipients: tuple[int, ...]
    frame: bytes
    message: Received

    def __repr__(self) -> str:
        return fields_text(self)


@dataclass(frozen=True)
class RecordedStep:
    """What a participant had before it when it took a step.

    Attributes
    ----------
    round, phase : int
    participant : int
    inbox : tuple of bytes
        The frames that it got.
    """

    round: int
    phase: int
    participant: int
    inbox: tuple[bytes, ...]

    def __repr__(self) -> str:
        return fields_text(self)


class Recorded:
    """A transport that keeps all frames of the last run; give it as ``transport=`` to `simulate`.

    Parameters
    ----------
    transport : Transport
        What carries them, such as `InMemory` or `Processes`.

    Attributes
    ----------
    frames : list of RecordedFrame
        In the order of rounds, phases and senders; also those that are lost on their way.
    steps : list of RecordedStep
        Which participants took steps, and with which frames.
    """

    def __init__(self, transport: Transport) -> None:
        check_transport(transport)
        self._transport = transport
        self.restarts = transport.restarts
        self.frames: list[RecordedFrame] = []
        self.steps: list[RecordedStep] = []

    def __repr__(self) -> str:
        return f"Recorded({len(self.frames)} frames)"

    def start(self, deployment: Deployment) -> None:
        """Forget the last run, and start all participants."""
        self.frames, self.steps = [], []
        self._form: WireFormat = deployment.form()
        self._transport.start(deployment)

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Mapping[int, Posted]:
        """Let participants take a step, and keep what they get and send."""
        self.steps += [RecordedStep(round_, phase, i, tuple(f)) for i, f in inboxes.items()]
        sent = self._transport.step(round_, phase, inboxes, present)
        for i in sorted(sent):
            for recipients, frame in sent[i]:
                message = decoded(frame, self._form)
                kept = RecordedFrame(round_, phase, i, tuple(recipients), frame, message)
                self.frames.append(kept)
        return sent

    def crash(self, client: int) -> None:
        """End a client at once."""
        self._transport.crash(client)

    def restart(self, client: int, round_: int) -> None:
        """Start a client again."""
        self._transport.restart(client, round_)

    def reports(self) -> Mapping[int, Report]:
        """Return the states of those who are there."""
        return self._transport.reports()

    def lost(self) -> Mapping[int, str]:
        """Return the clients found gone since the last call, and why."""
        return self._transport.lost()

    def close(self) -> None:
        """End everything but the record."""
        self._transport.close()
