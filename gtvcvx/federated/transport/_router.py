"""What a client may send: checked by its number, its links and the schema, and no further."""

from __future__ import annotations

from gtvcvx._processes._records import RecordError
from gtvcvx.federated._network import Network
from gtvcvx.federated.process._records import (
    Sent,
    largest,
    unpacked_sent,
    unpacked_state,
)
from gtvcvx.federated.programs import Report
from gtvcvx.federated.wire import HEADER, WireFormat, header_of


class Router:
    """Knows who is linked to whom, and how long messages are; never looks at their numbers.

    Parameters
    ----------
    net : Network
    form : WireFormat
    report_size : int
        Length of the vector that a client reports.
    """

    def __init__(self, net: Network, form: WireFormat, report_size: int) -> None:
        self._net, self._form, self._report_size = net, form, report_size
        self._links = {i: frozenset(net.links(i).tolist()) for i in net.clients.tolist()}
        self._longest = HEADER.size + max(form.payload_bytes.values(), default=0)

    def limits(self, client: int) -> dict[int, int]:
        """Return the most bytes that a client's records may have, by kind."""
        return largest(self._longest, self._report_size, self._net.dim, len(self._links[client]))

    def checked(self, client: int, round_: int, body: bytes) -> Sent:
        """Return what a client sends in a round.

        Frames of other rounds, and a second one to the same recipient, are dropped.

        Raises
        ------
        RecordError
            A frame is truncated, of no kind of the schema, in another's name, or to somebody whom
            the client has no link to.
        """
        served: set[int] = set()
        out: Sent = []
        for recipients, frame in unpacked_sent(body):
            current = self._check(client, round_, frame)
            for j in recipients:
                if j not in self._links[client]:
                    raise RecordError(f"it has no link to participant {j}")
            new = [j for j in dict.fromkeys(recipients) if j not in served] if current else []
            served.update(new)
            if new:
                out.append((new, frame))
        return out

    def _check(self, client: int, round_: int, frame: bytes) -> bool:
        """Refuse what is no message of the client; tell whether it is of this round."""
        try:
            head = header_of(frame)
        except ValueError as error:
            raise RecordError(str(error)) from error
        if head.sender != client:
            raise RecordError(f"a frame in the name of participant {head.sender}")
        if head.kind >= len(self._form.kinds):
            raise RecordError(f"a frame of kind {head.kind}, which the schema does not have")
        kind = self._form.kinds[head.kind]
        expected, there = self._form.payload_bytes[kind], len(frame) - HEADER.size
        if not head.length == there == expected:
            raise RecordError(
                f"truncated or overlong frame: {kind!r} has {expected} bytes, {head.length} are "
                f"announced, {there} are there"
            )
        return head.round == round_

    def state(self, client: int, body: bytes) -> Report:
        """Return the state of a client.

        Raises
        ------
        RecordError
            Its arrays are of other sizes.
        """
        return unpacked_state(body, self._report_size, self._net.dim, len(self._links[client]))
