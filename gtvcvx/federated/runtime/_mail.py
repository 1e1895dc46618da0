"""Frames on their way: counted, lost, late, and kept for those who are away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gtvcvx.federated._network import Network
from gtvcvx.federated.runtime._faults import Losses


@dataclass
class Traffic:
    """Bytes on the wire, headers included.

    Attributes
    ----------
    up, down : int
        Sent by clients; brought to clients.
    between : int
        From server to server.
    messages : int
    """

    up: int = 0
    down: int = 0
    between: int = 0
    messages: int = 0


class Mail:
    """Carries frames; it knows links, and never looks into a frame.

    Parameters
    ----------
    net : Network
    losses : Losses
    """

    def __init__(self, net: Network, losses: Losses) -> None:
        self._n, self._losses = net.n_clients, losses
        self._waiting: list[list[bytes]] = [[] for _ in range(net.n_participants)]
        self._late: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)
        self._away: set[int] = set()
        self.traffic = Traffic()
        self._perfect, self._peers = losses.perfect, not net.n_servers

    def post(
        self, sender: int, recipients: Sequence[int], frame: bytes, round_: int, phase: int
    ) -> None:
        """Send a frame in a phase."""
        if self._perfect and not self._away and self._peers:
            self._bring_all(recipients, frame)
            return
        for recipient in recipients:
            self._post(sender, recipient, frame, round_, phase)

    def _bring_all(self, recipients: Sequence[int], frame: bytes) -> None:
        """Do what `_post` does where nothing can happen to a frame, and all are clients."""
        traffic, waiting = self.traffic, self._waiting
        traffic.messages += len(recipients)
        traffic.up += len(frame) * len(recipients)
        traffic.down += len(frame) * len(recipients)
        for recipient in recipients:
            waiting[recipient].append(frame)

    def _post(self, sender: int, recipient: int, frame: bytes, round_: int, phase: int) -> None:
        traffic = self.traffic
        traffic.messages += 1
        if sender < self._n:
            traffic.up += len(frame)
        elif recipient >= self._n:
            traffic.between += len(frame)
        late = 0 if self._perfect else self._losses.late(sender)
        if late is None or recipient in self._away:
            return
        if late:
            self._late[round_ + late, phase].append((recipient, frame))
        else:
            self._bring(recipient, frame)

    def bring_late(self, round_: int, phase: int) -> None:
        """Bring what was to come with the messages of this phase, and not of an earlier round.

        Late by k rounds means that it is there when a message sent k rounds later would be: an
        algorithm gets it in the phase in which it expects such messages.
        """
        for recipient, frame in self._late.pop((round_, phase), ()):
            if recipient not in self._away:
                self._bring(recipient, frame)

    def _bring(self, recipient: int, frame: bytes) -> None:
        if recipient < self._n:
            self.traffic.down += len(frame)
        self._waiting[recipient].append(frame)

    def taken(self, recipient: int) -> list[bytes]:
        """Return the frames that wait for a participant, and forget them."""
        frames, self._waiting[recipient] = self._waiting[recipient], []
        return frames

    def lose(self, client: int) -> None:
        """Forget the frames of a client that has crashed, and those still to come."""
        self._away.add(client)
        self._waiting[client] = []

    def back(self, client: int) -> None:
        """Carry frames to a client again."""
        self._away.discard(client)
