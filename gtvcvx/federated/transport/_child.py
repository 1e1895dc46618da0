"""The operating system's process of one client: started, told what it may see, ended."""

from __future__ import annotations

import pickle

from gtvcvx._processes import _child
from gtvcvx._processes._link import Link
from gtvcvx.federated.process._worker import DOOR, Start

_INTERACTIVE = (
    "transport: programs defined in an interactive session cannot be sent to processes; "
    "write them to a module, or use transport='memory'"
)


class ClientError(RuntimeError):
    """An error of a client's program in its own process, or a process that does not start."""


class Child(_child.Child):
    """One process; it holds the data of its client alone.

    What comes back over the network is never unpickled.

    Parameters
    ----------
    start : bytes
        The pickled `Start`.
    """

    def __init__(self, start: bytes) -> None:
        super().__init__("gtvcvx.federated.process._worker")
        self._start = start
        self.link: Link | None = None

    def show_door(self, port: int, client: int) -> None:
        """Tell it where to knock, and with which token."""
        self.tell(DOOR.pack(port, client) + self.token)

    def show_start(self) -> None:
        """Tell it what it may see; it waits for that."""
        self.tell_start(self._start, _INTERACTIVE)

    def let_go(self) -> None:
        """Close what leads to it: it ends by itself."""
        if self.link is not None:
            self.link.close()
        super().let_go()


def pickled(start: Start) -> bytes:
    """Return a start as bytes.

    Raises
    ------
    TypeError
        Naming the client whose program or model cannot be sent.
    """
    try:
        return pickle.dumps(start)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"{start.label}: its program or model cannot be sent to another process ({error}); "
            "use transport='memory', or functions and classes of modules"
        ) from error
