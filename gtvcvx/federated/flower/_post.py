"""The seam to Flower: requests to nodes as its messages, records as its RecordDict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol

from gtvcvx._extras import extra_module
from gtvcvx.federated.flower._client import Record

#: Name of our record in messages and in the state of clients.
RECORD = "gtvcvx"


class Post(Protocol):
    """Carries requests to nodes, which are known by numbers of Flower's, and answers back."""

    def nodes(self) -> Sequence[int]:
        """Return the nodes that are connected."""

    def ask(self, requests: Mapping[int, Record], round_: int) -> Mapping[int, Record | str]:
        """Return the answers to requests; where there is none, the reason."""


def flower_module(name: str) -> ModuleType:
    """Return a module of Flower.

    Raises
    ------
    ImportError
        Flower is not installed; the message names the extra.
    """
    return extra_module(f"flwr.{name}", "flower", "apps of Flower")


def as_content(record: Record) -> Any:
    """Return a record as the content of a message."""
    flower = flower_module("app")
    return flower.RecordDict({RECORD: flower.ConfigRecord(dict(record))})


def record_of(content: Any) -> Record:
    """Return the record of a RecordDict.

    Raises
    ------
    ValueError
        There is none of ours.
    """
    if RECORD not in content:
        raise ValueError(f"a record {RECORD!r} is expected, got {sorted(content)}")
    return dict(content[RECORD])


class GridPost:
    """The post of a ServerApp.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    timeout : float
        Seconds after which an answer no longer counts.
    """

    def __init__(self, grid: Any, timeout: float) -> None:
        self._grid, self._timeout = grid, timeout
        self._flower = flower_module("app")

    def nodes(self) -> list[int]:
        """Return the nodes that are connected."""
        return sorted(self._grid.get_node_ids())

    def ask(self, requests: Mapping[int, Record], round_: int) -> dict[int, Record | str]:
        """Send all requests at once, and wait for the answers."""
        messages = [self._message(node, record, round_) for node, record in requests.items()]
        # A request that nobody has fetched in time is not delivered later.
        replies = self._grid.send_and_receive(messages, timeout=self._timeout) if messages else ()
        answers: dict[int, Record | str] = dict.fromkeys(requests, f"none in {self._timeout:g} s")
        return answers | _answers(replies, requests)

    def _message(self, node: int, record: Record, round_: int) -> Any:
        return self._flower.Message(
            as_content(record),
            dst_node_id=node,
            message_type=self._flower.MessageType.TRAIN,
            group_id=str(round_),
            ttl=self._timeout,
        )


def _answers(replies: Iterable[Any], asked: Mapping[int, Record]) -> dict[int, Record | str]:
    out: dict[int, Record | str] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        if node not in asked:
            continue  # an error of the router's own node, for a request that nobody can fetch
        if reply.has_error():
            out[node] = reply.error.reason or f"error {reply.error.code}"
            continue
        try:
            out[node] = record_of(reply.content)
        except ValueError as error:
            out[node] = str(error)
    return out
