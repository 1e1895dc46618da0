"""What each client has released, and what that has cost in zCDP."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, is_integer
from gtvcvx.federated.privacy._conversions import epsilon_gaussian, epsilon_simple, epsilon_zcdp
from gtvcvx.federated.privacy._noise import release_zcdp
from gtvcvx.federated.privacy._report import ASSUMPTIONS, PrivacyReport

# Where the last release leaks this many times as much as the first, or the last tenth of the
# rounds owns this share of a budget (a constant variance gives it .1), a report warns.
_LEAK_RATIO = 2.0
_LATE_SHARE = 0.2
# A release of this zCDP hides nothing; sums of as many as anybody makes are finite doubles.
_NO_PRIVACY = 1e100


class ZcdpAccountant:
    """Adds up the zCDP of Gaussian releases, client by client.

    Only what was released counts: a client that was absent, or not drawn, loses nothing in that
    round. No amplification by sampling is claimed, as the server sees who takes part. Every call
    of `record` is a release with noise of its own, also in a round that had one before; sending
    the same noisy vector twice is one release.

    Parameters
    ----------
    clients : sequence of hashable
        All clients, in the order of the report. One that never releases has rho = 0.

    Raises
    ------
    ValueError
        A client occurs twice, or there is none.
    """

    def __init__(self, clients: Iterable[Hashable]) -> None:
        self.clients: Sequence[Any] = tuple(clients)
        self._costs: dict[Any, list[float]] = {client: [] for client in self.clients}
        self._rounds: dict[Any, list[int]] = {client: [] for client in self.clients}
        if not self.clients or len(self._costs) < len(self.clients):
            raise ValueError("clients: at least one client is expected, and each of them once")

    def record(self, client: Hashable, round: int, sensitivity: float, variance: float) -> float:
        """Count one release, and return its zCDP ``Delta^2 / (2 delta^2)``.

        Parameters
        ----------
        client : hashable
            One of the clients.
        round : int
            At least 1, and not before the client's last one.
        sensitivity : float
            Delta >= 0 of the vector that was released.
        variance : float
            delta^2 > 0 of its noise.

        Raises
        ------
        ValueError
            An unknown client, a round that is over, a number out of range, or a cost above
            1e100, which is no privacy.
        """
        if client not in self._costs:
            raise ValueError(f"client: {client!r} is not a client of this accountant")
        rounds = self._rounds[client]
        if not is_integer(round) or round < max(1, rounds[-1] if rounds else 1):
            raise ValueError(
                f"round: an integer >= {rounds[-1] if rounds else 1} is expected at client "
                f"{client!r}, got {round!r}"
            )
        cost = release_zcdp(sensitivity, variance)
        if cost > _NO_PRIVACY:
            raise ValueError(f"variance: {variance} is no noise for sensitivity {sensitivity}")
        self._costs[client].append(cost)
        rounds.append(int(round))
        return cost

    def releases(self, client: Hashable) -> int:
        """Return how often a client has released something."""
        return len(self._costs[client])

    def rho(self, client: Hashable) -> float:
        """Total zCDP of a client, its releases added up exactly and rounded once."""
        return math.fsum(self._costs[client])

    def late_share(self, client: Hashable) -> float:
        """Share of a client's zCDP that the last tenth of the rounds up to its last one owns."""
        costs, rounds = self._costs[client], self._rounds[client]
        total = self.rho(client)
        if total == 0.0:
            return 0.0
        begin = rounds[-1] - math.ceil(rounds[-1] / 10)
        return math.fsum(c for c, n in zip(costs, rounds, strict=True) if n > begin) / total

    def leak_ratio(self, client: Hashable) -> float:
        """Return the zCDP of a client's last release over that of its first; 1 without any."""
        costs = [cost for cost in self._costs[client] if cost > 0.0]
        return costs[-1] / costs[0] if costs else 1.0

    def report(
        self, delta: float, assumptions: Sequence[str] = (), *, insecure_seed: bool = False
    ) -> PrivacyReport:
        """Return what each client has lost, as (eps, delta)-differential privacy.

        Parameters
        ----------
        delta : float
            Strictly between 0 and 1.
        assumptions : sequence of str, optional
            What else the guarantee rests on, beside what every report says.
        insecure_seed : bool, default False
            Whether any client's noise came from a fixed seed.

        Raises
        ------
        ValueError
            delta out of range, or a fixed seed: there is no privacy then, and no report.
        """
        if insecure_seed:
            raise ValueError(
                "insecure_seed: noise from a fixed seed protects nothing; no report is made"
            )
        rho = np.array([self.rho(client) for client in self.clients])
        columns = [_converted(f, rho, delta) for f in _CONVERSIONS]
        return PrivacyReport(
            clients=tuple(self.clients),
            releases=np.array([self.releases(c) for c in self.clients], dtype=np.int64),
            rho=rho,
            epsilon_simple=columns[0],
            epsilon_zcdp=columns[1],
            epsilon_gaussian=columns[2],
            delta=float(delta),
            assumptions=(*ASSUMPTIONS, *assumptions),
            warnings=self._warnings(),
        )

    def _warnings(self) -> tuple[str, ...]:
        """Say where late releases leak most."""
        late = max(self.clients, key=self.leak_ratio)
        share = max(map(self.late_share, self.clients))
        long = max(n[-1] if n else 0 for n in self._rounds.values()) >= 10
        ratio = self.leak_ratio(late)
        # With equal costs a client that was often drawn late is no reason to warn.
        if ratio < _LEAK_RATIO and not (ratio > 1.0 and long and share > _LATE_SHARE):
            return ()
        return (
            f"late rounds leak most: the last release of client {str(late)[:20]!r} cost "
            f"{self.leak_ratio(late):.3g} times as much as its first, and the last tenth of the "
            f"rounds owns up to {share:.0%} of a client's budget",
        )


_CONVERSIONS = (epsilon_simple, epsilon_zcdp, epsilon_gaussian)


def _converted(conversion: Any, rho: FloatArray, delta: float) -> FloatArray:
    """Convert each rho (k,), equal ones once: mostly all clients release equally often."""
    values, place = np.unique(rho, return_inverse=True)
    return np.array([conversion(float(value), delta) for value in values])[place]
