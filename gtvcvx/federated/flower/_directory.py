"""Which of Flower's nodes is which client: told by the node in its first answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gtvcvx.federated.flower._client import Record
from gtvcvx.federated.flower._post import Post

# Seconds between two looks at who is connected.
_INTERVAL = 0.5


class Directory:
    """The nodes of the clients; numbers of nodes are Flower's, and random.

    Parameters
    ----------
    post : Post
    n_clients : int
    """

    def __init__(self, post: Post, n_clients: int) -> None:
        self._post, self._n = post, n_clients
        self._client_of: dict[int, int] = {}
        self.node_of: dict[int, int] = {}
        self.dims: dict[int, int] = {}
        # Nodes that are connected and have not said who they are, and why.
        self._strangers: dict[int, str] = {}

    def wait(self, seconds: float) -> None:
        """Wait until all clients have said who they are, or time is up."""
        end = time.monotonic() + seconds
        while len(self.meet(0)) < self._n and time.monotonic() < end:
            time.sleep(min(_INTERVAL, seconds))

    def meet(self, round_: int) -> list[int]:
        """Ask nodes that are new who they are; return the clients that are connected.

        Raises
        ------
        ValueError
            Two nodes are one client, a number is none of a client, or dimensions differ.
        """
        nodes = set(self._post.nodes())
        for node in set(self._client_of) - nodes:
            client = self._client_of.pop(node)
            if self.node_of[client] == node:
                del self.node_of[client]
        new = sorted(nodes - set(self._client_of))
        answers = self._post.ask({node: {"ask": "who"} for node in new}, round_) if new else {}
        self._strangers = {node: why for node, why in answers.items() if isinstance(why, str)}
        for node, answer in answers.items():
            if not isinstance(answer, str):
                self._enter(node, answer)
        return sorted(self.node_of)

    def _enter(self, node: int, answer: Record) -> None:
        client, dim = int(answer["client"]), int(answer["dim"])
        if not 0 <= client < self._n:
            raise ValueError(
                f"node {node} says that it is client {client}; there are 0 to {self._n - 1}"
            )
        if client in self.node_of:
            raise ValueError(f"client {client}: two nodes, {self.node_of[client]} and {node}")
        other = next((i for i, d in self.dims.items() if 0 not in (d, dim) and d != dim), None)
        if other is not None:
            raise ValueError(
                f"client {client} has d = {dim}, and client {other} has d = {self.dims[other]}"
            )
        self._client_of[node], self.node_of[client] = client, node
        self.dims[client] = dim

    def dim(self) -> int:
        """Return d, as clients with data have it.

        Raises
        ------
        RuntimeError
            Nobody has said it.
        """
        known: Sequence[int] = [d for d in self.dims.values() if d]
        if not known:
            raise RuntimeError(f"no client has told its dimension{self.because()}")
        return known[0]

    def because(self) -> str:
        """Say why a node has not told who it is, as the end of a message."""
        return "".join(f"; node {node}: {why}" for node, why in [*self._strangers.items()][:1])
