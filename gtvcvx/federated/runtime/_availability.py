"""Who is there in which round: independent of what anybody computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import BoolArray, FloatArray, is_integer
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.models._checks import probabilities

# Rounds that are drawn at a time: enough that one client's generator is not asked too often.
_BLOCK = 256


class Presence(ABC):
    """The draws of one run; asked for rounds 1, 2, 3, ... in their order."""

    @abstractmethod
    def of(self, round_: int) -> BoolArray:
        """Return which clients (n,) are there."""


class Availability(ABC):
    """A rule of who is available in a round; it keeps no state between runs."""

    @abstractmethod
    def drawn(self, n: int, streams: Streams) -> Presence:
        """Return the draws for n clients."""


class _Blocks(Presence):
    """Uniform numbers of every client's own stream, by blocks of rounds."""

    def __init__(self, n: int, streams: Streams) -> None:
        self._generators = [streams.generator("availability", i) for i in range(n)]
        self._uniform = np.empty((n, 0))
        self._round = 0

    def uniform(self, round_: int) -> FloatArray:
        k = (round_ - 1) % _BLOCK
        if k == 0:
            self._uniform = np.array([g.random(_BLOCK) for g in self._generators])
        return self._uniform[:, k]


@dataclass(frozen=True)
class Always(Availability):
    """Every client is there in every round."""

    def drawn(self, n: int, streams: Streams) -> Presence:
        """Return the draws."""
        return _Constant(np.ones(n, dtype=bool))


class _Constant(Presence):
    def __init__(self, who: BoolArray) -> None:
        self._who = who

    def of(self, round_: int) -> BoolArray:
        return self._who


class Bernoulli(Availability):
    """Client i is there with probability p_i, independently over rounds and clients.

    Parameters
    ----------
    p : float or array_like, shape (n,)
        In (0, 1].
    """

    def __init__(self, p: ArrayLike) -> None:
        self.p = probabilities(p, "p")

    def drawn(self, n: int, streams: Streams) -> Presence:
        """Return the draws."""
        return _BernoulliDraws(_each(self.p, n, "p"), streams)

    def __repr__(self) -> str:
        return f"Bernoulli({_shown(self.p)})"


class _BernoulliDraws(_Blocks):
    def __init__(self, p: FloatArray, streams: Streams) -> None:
        super().__init__(len(p), streams)
        self._p = p

    def of(self, round_: int) -> BoolArray:
        return np.asarray(self.uniform(round_) < self._p)


class Markov(Availability):
    """Each client goes and comes: a chain of two states, independent over clients.

    The share of rounds in which a client is there tends to ``on / (on + off)``, and so it begins.

    Parameters
    ----------
    on : float or array_like, shape (n,)
        Probability that an absent client is back in the next round, in (0, 1].
    off : float or array_like, shape (n,)
        Probability that a present client is absent in the next round, in (0, 1].
    """

    def __init__(self, on: ArrayLike, off: ArrayLike) -> None:
        self.on, self.off = probabilities(on, "on"), probabilities(off, "off")

    def drawn(self, n: int, streams: Streams) -> Presence:
        """Return the draws."""
        return _MarkovDraws(_each(self.on, n, "on"), _each(self.off, n, "off"), streams)

    def __repr__(self) -> str:
        return f"Markov(on={_shown(self.on)}, off={_shown(self.off)})"


class _MarkovDraws(_Blocks):
    def __init__(self, on: FloatArray, off: FloatArray, streams: Streams) -> None:
        super().__init__(len(on), streams)
        self._on, self._off = on, off
        self._state = np.empty(0, dtype=bool)

    def of(self, round_: int) -> BoolArray:
        uniform = self.uniform(round_)
        if round_ == 1:
            self._state = uniform < self._on / (self._on + self._off)
        else:
            self._state = np.where(self._state, uniform >= self._off, uniform < self._on)
        return self._state


class Trace(Availability):
    """Who is there, given round by round; it begins again where it ends.

    Parameters
    ----------
    present : array_like of bool, shape (rounds, n)
    """

    def __init__(self, present: ArrayLike) -> None:
        self.present = np.asarray(present)
        if self.present.dtype != bool or self.present.ndim != 2 or not len(self.present):
            raise ValueError(
                "present: truth values of shape (rounds, n) are expected, got "
                f"{self.present.dtype} of shape {self.present.shape}"
            )
        if not self.present.any():
            raise ValueError("present: no client is available in any round")

    def drawn(self, n: int, streams: Streams) -> Presence:
        """Return the draws."""
        if self.present.shape[1] != n:
            raise ValueError(f"present: {n} columns are expected, got {self.present.shape[1]}")
        return _TraceDraws(self.present)

    def __repr__(self) -> str:
        return f"Trace({self.present.shape[0]} rounds, {self.present.shape[1]} clients)"


class _TraceDraws(Presence):
    def __init__(self, present: BoolArray) -> None:
        self._present = present

    def of(self, round_: int) -> BoolArray:
        return np.asarray(self._present[(round_ - 1) % len(self._present)])


class Sampling:
    """Each server draws m of its available clients in every round, uniformly; others are left out.

    Without servers, m of all clients are drawn.

    Parameters
    ----------
    m : int
        At least 1.
    """

    def __init__(self, m: int) -> None:
        if not (is_integer(m) and m >= 1):
            raise ValueError(f"m: a positive integer is expected, got {m!r}")
        self.m = int(m)

    def __repr__(self) -> str:
        return f"Sampling({self.m})"

    def drawn(self, net: Network, streams: Streams) -> SamplingDraws:
        """Return the draws of one run."""
        return SamplingDraws(self.m, net, streams)


class SamplingDraws:
    """The samples of one run."""

    def __init__(self, m: int, net: Network, streams: Streams) -> None:
        self._m, n = m, net.n_clients
        groups = [net.links(int(s)) for s in net.server_ids]
        self._groups = [group[group < n] for group in groups] or [np.arange(n)]
        self._generators = [streams.generator("sampling", g) for g in range(len(self._groups))]

    def of(self, available: BoolArray) -> BoolArray:
        """Return which of the clients available take part."""
        chosen = np.zeros_like(available)
        for group, generator in zip(self._groups, self._generators, strict=True):
            # One number for each client, there or not: who is absent changes nobody else's luck.
            luck = generator.random(len(group))
            there = np.flatnonzero(available[group])
            chosen[group[there[np.argsort(luck[there], kind="stable")[: self._m]]]] = True
        return chosen


def _each(values: FloatArray, n: int, name: str) -> FloatArray:
    if values.ndim and len(values) != n:
        raise ValueError(f"{name}: one probability for each of {n} clients, got {len(values)}")
    return np.broadcast_to(values, (n,)).astype(float)


def _shown(values: FloatArray) -> str:
    return f"{float(values):g}" if values.ndim == 0 else f"{len(values)} probabilities"
