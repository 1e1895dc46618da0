"""The servers of PGFL: (8), (9), (10), and what each knows of its clients' multipliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.federated.algorithms._pgfl_tau import tau_at
from gtvcvx.federated.programs import Inbox, Outbox, Report, ServerProgram, View
from gtvcvx.federated.wire import Message


@dataclass(frozen=True)
class ServerReport(Report):
    """State of a server of PGFL: all its models (Q, d), and who took part in which rounds.

    Attributes
    ----------
    present : mapping of int to tuple of int
        Rounds of each client, by number. A client that takes part releases at most once a round,
        and does if no message was lost before: an upper bound of its releases, which neither
        crashes nor lost messages make too small.
    """

    present: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


class PGFLServer(ServerProgram):
    """A server of `PGFL`.

    Rounds have three steps of a server: those present are sent w_qs if they do not have it; what
    they release is averaged (8) and sent to the other servers; estimates are averaged (9), (10),
    and sent to those heard from. Clients that were present and silent have missed a message: they
    are sent their multiplier anew, which the server knows from what it sent and received.
    """

    def start(self, view: View) -> None:
        """Begin with the common start and no multiplier."""
        super().start(view)
        told = view.parameters
        self._rho: float = told["rho"]
        self._tau, self._skip = told["tau"], told["empty"] == "skip"
        clients = view.links[view.links < told["n"]].tolist()
        self._clients = clients
        self._place = {k: p for p, k in enumerate(clients)}
        self._cluster = told["clusters"]
        self._neighbours = view.links[view.links >= told["n"]].tolist()
        q, c, d = told["n_clusters"], len(clients), view.dim
        self._w = np.tile(told["start"], (q, 1))
        self._estimates = dict.fromkeys((*self._neighbours, view.id), self._w)
        self._have = {p: np.ones(q, dtype=bool) for p in self._estimates}
        self._of_round = dict.fromkeys(self._estimates, 0)
        self._phi, self._released = np.zeros((c, d)), np.zeros((c, d))
        # Who knows w_qs as it is, who took part in this round and who was heard of in it, and who
        # has to be told its multiplier.
        self._current, self._doubtful = np.ones(c, dtype=bool), np.zeros(c, dtype=bool)
        self._here, self._heard = np.zeros(c, dtype=bool), np.zeros(c, dtype=bool)
        self._rounds: list[list[int]] = [[] for _ in clients]
        self._last = 0

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Take the step of this phase."""
        self._note(inbox)
        if inbox.phase == 0:
            return self._open(round_, inbox)
        if inbox.phase == 2:
            self._collect(round_, inbox)
            return self._estimate()
        return self._agree(round_)

    def _note(self, inbox: Inbox) -> None:
        """Keep the newest estimates of each neighbour; where one is lost, the last one stands."""
        for message in inbox:
            p = message.sender
            if p in self._estimates and message.round >= self._of_round[p]:
                self._estimates[p], self._of_round[p] = message.arrays["w"], message.round
                if self._skip:
                    self._have[p] = message.arrays["have"] > 0

    def _open(self, round_: int, inbox: Inbox) -> Outbox:
        """Send w_qs, and its multiplier where it is in doubt, to those who need it."""
        assert inbox.present is not None
        self._here[:], self._last = False, round_
        out: dict[int, Message] = {}
        of_cluster = [Message("start", {"w": w}) for w in self._w]
        for k in inbox.present.tolist():
            p = self._place[k]
            self._here[p] = True
            self._rounds[p].append(round_)
            if self._doubtful[p]:
                arrays = {"w": self._w[self._cluster[p]], "phi": self._phi[p]}
                out[k] = Message("state", arrays)
            elif not self._current[p]:
                out[k] = of_cluster[self._cluster[p]]
        return out

    def _collect(self, round_: int, inbox: Inbox) -> None:
        """Take what clients have released in this round; what is late counts for nothing."""
        self._heard[:] = False
        for message in inbox:
            if message.kind in ("release", "shown") and message.round == round_:
                p = self._place[message.sender]
                self._heard[p] = True
                self._released[p] = message.arrays["w"]
                if message.kind == "shown":
                    self._phi[p] = message.arrays["phi"]
        self._doubtful = np.where(self._here, ~self._heard, self._doubtful)

    def _estimate(self) -> Outbox:
        """Average what was released (8), and send it to the neighbours."""
        own = self._w.copy()
        have: BoolArray = np.zeros(len(own), dtype=bool)
        shifted = self._released - self._phi / self._rho
        for q in np.unique(self._cluster[self._heard]).tolist():
            own[q] = shifted[self._heard & (self._cluster == q)].mean(axis=0)
            have[q] = True
        me = self.view.id
        self._estimates[me], self._have[me] = own, have
        if self._skip:
            arrays = {"w": own, "have": have.astype(np.int64)}
            return dict.fromkeys(self._neighbours, Message("some_estimates", arrays))
        return dict.fromkeys(self._neighbours, Message("estimates", {"w": own}))

    def _agree(self, round_: int) -> Outbox:
        """Average over neighbours (9) and clusters (10), and answer those heard from."""
        self._w = self._mixed(round_, self._averaged())
        ahead = self._w[self._cluster]
        step = self._rho * (ahead - self._released)
        self._phi = np.where(self._heard[:, None], self._phi + step, self._phi)
        self._current = self._heard.copy()
        of_cluster = [Message("aggregate", {"w": w}) for w in self._w]
        heard = np.flatnonzero(self._heard).tolist()
        return {self._clients[p]: of_cluster[self._cluster[p]] for p in heard}

    def _averaged(self) -> FloatArray:
        estimates = np.array(list(self._estimates.values()))
        if not self._skip:
            return np.asarray(estimates.mean(axis=0))
        have = np.array(list(self._have.values()))[:, :, None]
        total = np.where(have, estimates, 0.0).sum(axis=0)
        count = have.sum(axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), self._w)

    def _mixed(self, round_: int, averaged: FloatArray) -> FloatArray:
        clusters = len(averaged)
        tau = tau_at(self._tau, round_)
        # With one cluster there is no other to learn from.
        if clusters == 1 or tau == 0.0:
            return averaged
        others = (averaged.sum(axis=0) - averaged) / (clusters - 1)
        return (1.0 - tau) * averaged + tau * others

    def report(self) -> ServerReport:
        """Return all models, and who took part when."""
        rounds = {k: tuple(r) for k, r in zip(self._clients, self._rounds, strict=True)}
        return ServerReport(self._w, through=self._last, present=rounds)
