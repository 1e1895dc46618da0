"""Programs of the exact form of PGFL."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._pgfl_clients import ExactAnswer
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, ServerProgram, View
from gtvcvx.federated.wire import Message


class ExactClient(ClientProgram):
    """A client of `PGFLExact`: a node with one link, to its server.

    It answers if it hears of the server in this very round, and else does nothing: the server then
    sends it the state of their link with the next message.
    """

    def start(self, view: View) -> None:
        """Begin with zero everywhere."""
        rho: float = view.parameters["rho"]
        self._answer = ExactAnswer(view.model, rho, view.parameters["ridge"])
        self._none = np.zeros(view.dim)
        self._own, self._far = self._none, self._none
        self._w = self._none
        self._lost = view.joined > 1

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Solve the node's problem, and update the link."""
        now = [message for message in inbox if message.round == round_]
        if not now or (self._lost and now[-1].kind != "state"):
            return {}
        message = now[-1]
        if message.kind == "state":
            # As the server has it: seen from this end, own and far change places.
            self._own, self._far = message.arrays["far"], message.arrays["own"]
            self._lost = False
        self._w = self._answer(self._none, self._own)
        half = (self._own - self._far) / 2.0
        self._own, self._far = message.arrays["w"] + half, self._w - half
        return {message.sender: Message("theta", {"w": self._w})}

    def report(self) -> Report:
        """Return theta."""
        return Report(self._w)


class ExactServer(ServerProgram):
    """A server of `PGFLExact`: a node without data for each cluster."""

    def start(self, view: View) -> None:
        """Begin with zero everywhere."""
        super().start(view)
        told = view.parameters
        clients = view.links[view.links < told["n"]].tolist()
        self._place = {k: p for p, k in enumerate(clients)}
        self._neighbours = view.links[view.links >= told["n"]].tolist()
        self._cluster = told["clusters"]
        q, c, d = told["n_clusters"], len(clients), view.dim
        self._w = np.zeros((q, d))
        self._degree = np.bincount(self._cluster, minlength=q) + len(self._neighbours)
        # Links to clients; links to servers, which are one for each cluster.
        self._own, self._far = np.zeros((c, d)), np.zeros((c, d))
        self._between = {p: (np.zeros((q, d)), np.zeros((q, d))) for p in self._neighbours}
        self._here: list[int] = []
        self._doubtful: set[int] = set()

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Solve the nodes' problems and send them, or update the links."""
        if inbox.phase == 0:
            assert inbox.present is not None
            self._here = inbox.present.tolist()
            self._w = self._solved()
            return self._messages()
        self._update(round_, inbox)
        return {}

    def _solved(self) -> FloatArray:
        """Return the mean of all z of each cluster; without links a vector stays at zero."""
        total = np.zeros_like(self._w)
        np.add.at(total, self._cluster, self._own)
        for own, _ in self._between.values():
            total = total + own
        return np.asarray(total / np.maximum(self._degree, 1)[:, None])

    def _messages(self) -> Outbox:
        out: dict[int, Message] = {}
        of_cluster = [Message("theta", {"w": w}) for w in self._w]
        for k in self._here:
            p = self._place[k]
            out[k] = of_cluster[self._cluster[p]]
            if k in self._doubtful:
                state = {"own": self._own[p], "far": self._far[p]}
                out[k] = Message("state", {"w": self._w[self._cluster[p]], **state})
        return out | dict.fromkeys(self._neighbours, Message("models", {"w": self._w}))

    def _update(self, round_: int, inbox: Inbox) -> None:
        """Update the links of this round; those of absent clients rest."""
        heard = set()
        for message in inbox:
            if message.round != round_:
                continue
            sender, theirs = message.sender, message.arrays["w"]
            if message.kind == "models":
                own, far = self._between[sender]
                half = (own - far) / 2.0
                self._between[sender] = theirs + half, self._w - half
            else:
                p = self._place[sender]
                heard.add(sender)
                half = (self._own[p] - self._far[p]) / 2.0
                self._own[p] = theirs + half
                self._far[p] = self._w[self._cluster[p]] - half
        self._doubtful = (self._doubtful - set(self._here)) | (set(self._here) - heard)

    def report(self) -> Report:
        """Return the vectors of all clusters."""
        return Report(self._w)
