"""The face of client and server programs: a view, then one step a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated.wire import Message, Received
from verify._display import fields_text


@dataclass(frozen=True)
class View:
    """All that a participant knows when it starts.

    Attributes
    ----------
    id : int
        Its own number.
    dim : int
        d, the length of parameter vectors.
    model : LocalModel or None
        Its own data, as the loss that they give; None for servers.
    links : ndarray of int64
        Numbers of the participants that it can send to, ascending.
    weights : ndarray, shape (len(links),)
        Weights A_ij of the links.
    parameters : mapping
        What the algorithm tells this participant beforehand; see its ``parameters``.
    joined : int
        Round of its first step: 1, or later for one that comes back after a crash and has
        forgotten everything.
    rounds : int
        How many rounds are planned.
    streams : mapping
        Seeds of its own random generators, by purpose.
    """

    id: int
    dim: int
    model: Any
    links: IntArray
    weights: FloatArray
    parameters: Mapping[str, Any] = field(default_factory=dict)
    joined: int = 1
    rounds: int = 0
    streams: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return fields_text(self)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return this participant's own generator for one purpose."""
        return np.random.default_rng(list(self.streams[purpose]))


class Inbox(list[Received]):
    """Messages that have arrived since the last step, in the order in which they were sent.

    Parameters
    ----------
    iterable : iterable of Received
        As of a list.

    Attributes
    ----------
    phase : int
        Part of the round, for algorithms whose rounds have several.
    present : ndarray of int64 or None
        For servers: those at the other end of their links that take part in this round, as a
        server sees who is connected. None for clients.
    """

    phase: int = 0
    present: IntArray | None = None

    def __repr__(self) -> str:
        return f"Inbox({len(self)} messages, phase {self.phase})"


#: Message to each peer; the same object may go to several.
Outbox = Mapping[int, Message]


@dataclass(frozen=True)
class Report:
    """What an observer of the simulation reads off a participant; it is no message.

    Attributes
    ----------
    w : ndarray
        The model, shape (d,), or all models of a server (Q, d).
    flows : ndarray, shape (len(links), d), optional
        Multipliers of the links, u from this participant to the other end.
    through : int
        Round up to which the flows were updated.
    choice : int
        Number of the model that a client has chosen, -1 where there is no choice.
    """

    w: FloatArray
    flows: FloatArray | None = None
    through: int = 0
    choice: int = -1

    def __repr__(self) -> str:
        return fields_text(self)


class Program(ABC):
    """What runs at a participant. It sees its view and its inbox, and nothing else."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def start(self, view: View) -> None:
        """Get ready."""

    @abstractmethod
    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Take part in one round, or in one phase of it.

        Parameters
        ----------
        round_ : int
            1, 2, 3, ... Rounds in which a participant is absent are left out.
        inbox : Inbox
            What has arrived since the last step.
        """

    @abstractmethod
    def report(self) -> Report:
        """Return the state that a history records."""


class ClientProgram(Program):
    """A client: the only one that has its data."""


class ServerProgram(Program):
    """A server: has no data, and is always there."""

    def start(self, view: View) -> None:
        """Get ready."""
        self.view = view


def newest(inbox: Sequence[Received], kind: str) -> Received | None:
    """Return the newest message of a kind, or None."""
    last = None
    for message in inbox:
        if message.kind == kind and (last is None or message.round >= last.round):
            last = message
    return last
