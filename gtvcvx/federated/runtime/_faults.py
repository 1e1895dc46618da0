"""What happens to messages and clients on the way: late, lost, crashed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_integer, is_number
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import Streams


class Delay:
    """Messages come in k rounds late, k = 0, 1, 2, ... with the probabilities given.

    A message that is late by k rounds is there when one sent k rounds later, in the same phase,
    would be.

    Parameters
    ----------
    probabilities : array_like, shape (K,)
        Of 0, ..., K - 1 rounds; they add up to one.
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        self.probabilities = finite_array(probabilities, "probabilities", 1)
        # Sums of decimal fractions miss one by a few roundings.
        fits = abs(self.probabilities.sum() - 1.0) < 1e-9 and (self.probabilities >= 0).all()
        if not fits:
            raise ValueError("probabilities: numbers >= 0 that add up to 1 are expected")

    def __repr__(self) -> str:
        return f"Delay({[float(p) for p in self.probabilities]})"


class Loss:
    """Messages are lost, independently of each other.

    Parameters
    ----------
    probability : float
        In [0, 1).
    """

    def __init__(self, probability: float) -> None:
        if not (is_number(probability) and 0 <= probability < 1):
            raise ValueError(f"probability: a number in [0, 1) is expected, got {probability!r}")
        self.probability = float(probability)

    def __repr__(self) -> str:
        return f"Loss({self.probability:g})"


@dataclass(frozen=True)
class Crash:
    """A client stops for good, or comes back having forgotten everything but its data.

    Messages to it are lost while it is away.

    Attributes
    ----------
    client : int
        Number of the client.
    at : int
        First round without it.
    back : int, optional
        Round in which it is back; later than ``at``.
    """

    client: int
    at: int
    back: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("client", self.client), ("at", self.at)):
            if not is_integer(value) or value < (name == "at"):
                raise ValueError(
                    f"{name}: an integer >= {int(name == 'at')} is expected, got {value!r}"
                )
        if self.back is not None and not (is_integer(self.back) and self.back > self.at):
            raise ValueError(f"back: a round after {self.at} is expected, got {self.back!r}")


class Crashes:
    """Who is away, comes back or goes in a round.

    Parameters
    ----------
    crashes : sequence of Crash
    net : Network
    """

    def __init__(self, crashes: Sequence[Crash], net: Network) -> None:
        if not isinstance(crashes, Iterable):
            raise TypeError(f"crashes: a sequence of Crash is expected, got {crashes!r}")
        self._crashes = list(crashes)
        for crash in self._crashes:
            if not isinstance(crash, Crash):
                raise TypeError(f"crashes: Crash objects are expected, got {crash!r}")
            if crash.client >= net.n_clients:
                raise ValueError(
                    f"crashes: client {crash.client} does not exist, there are {net.n_clients}"
                )
        _check_apart(self._crashes)

    def going(self, round_: int) -> list[int]:
        """Return the clients that are away from this round on."""
        return sorted({crash.client for crash in self._crashes if crash.at == round_})

    def back(self, round_: int) -> list[int]:
        """Return the clients that are back in this round."""
        return sorted({crash.client for crash in self._crashes if crash.back == round_})


def _check_apart(crashes: Sequence[Crash]) -> None:
    """Refuse a crash of a client that is still away since another one."""
    ordered = sorted(crashes, key=lambda crash: (crash.client, crash.at))
    for first, then in pairwise(ordered):
        if first.client == then.client and (first.back is None or first.back >= then.at):
            raise ValueError(
                f"crashes: client {then.client} crashes in round {then.at}, and is not back from "
                f"its crash in round {first.at} by then"
            )


class Losses:
    """Draws of what becomes of each message: lost, or late by some rounds."""

    def __init__(self, delay: Delay | None, loss: Loss | None, n: int, streams: Streams) -> None:
        self._cumulated: FloatArray | None = None
        self._chance = 0.0
        if delay is not None:
            self._cumulated = np.cumsum(delay.probabilities)
            self._delays = [streams.generator("delay", i) for i in range(n)]
        if loss is not None and loss.probability > 0:
            self._chance = loss.probability
            self._losses = [streams.generator("loss", i) for i in range(n)]

    @property
    def perfect(self) -> bool:
        """Whether nothing is ever lost or late."""
        return self._cumulated is None and not self._chance

    def late(self, sender: int) -> int | None:
        """Return by how many rounds the sender's next message is late; None if it is lost."""
        lost = self._chance > 0 and self._losses[sender].random() < self._chance
        k = 0
        if self._cumulated is not None:
            luck = self._delays[sender].random()
            k = int(np.searchsorted(self._cumulated, luck, side="right"))
            k = min(k, len(self._cumulated) - 1)
        return None if lost else k
