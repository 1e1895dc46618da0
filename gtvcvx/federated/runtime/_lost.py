"""Clients that nobody said would go: killed, silent, or cut off."""

from __future__ import annotations

import warnings
from collections import Counter

from gtvcvx._logging import room_logger
from gtvcvx.federated._network import Network
from gtvcvx.federated.runtime._mail import Mail
from gtvcvx.federated.transport import ClientError, Transport

_LOG = room_logger("federated")
# A client that is lost this often in a run is not started again: it would be lost in every round.
_RESTARTS = 5


class ClientLostWarning(UserWarning):
    """A client's process has ended, is silent or was cut off; the run goes on without it."""


class Lost:
    """Keeps account of clients that are lost, and brings back those that may come back.

    Parameters
    ----------
    net : Network
    mail : Mail
    gone : set of int
        Clients that are away; changed here.
    """

    def __init__(self, net: Network, mail: Mail, gone: set[int]) -> None:
        self._net, self._mail, self._gone = net, mail, gone
        self._often: Counter[int] = Counter()
        self._returning: list[int] = []

    def notice(self, transport: Transport, round_: int) -> list[int]:
        """Take notice of the clients that are lost, and return them."""
        lost = dict(transport.lost())
        for client, reason in lost.items():
            self._mail.lose(client)
            self._gone.add(client)
            self._often[client] += 1
            text = "it counts as absent from now on"
            if transport.restarts and self._often[client] <= _RESTARTS:
                self._returning.append(client)
                text = "it is started again in the next round"
            self._warn(f"{self._net.label(client)}: lost in round {round_}: {reason}; {text}")
        return list(lost)

    def bring_back(self, transport: Transport, round_: int) -> None:
        """Start those again that were lost in the round before."""
        returning, self._returning = sorted(self._returning), []
        for client in returning:
            try:
                transport.restart(client, round_)
            except ClientError as error:
                self._warn(f"lost for good in round {round_}: {error}")
                continue
            _LOG.info("round %d: %s is started again", round_, self._net.label(client))
            self._mail.back(client)
            self._gone.discard(client)

    def _warn(self, text: str) -> None:
        _LOG.warning(text)
        # Seen from where `simulate` is called.
        warnings.warn(text, ClientLostWarning, stacklevel=8)
