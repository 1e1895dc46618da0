"""Programs of methods with one server that averages: it asks, clients answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.federated.algorithms._step_sizes import gradient_at, own_lipschitz, step_size
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, ServerProgram, View
from gtvcvx.federated.wire import Message, Received


class AveragingServer(ServerProgram):
    """Sends its models to those who are there, and takes the means of what they answer."""

    def start(self, view: View) -> None:
        """Begin with the initial model, for every group of clients."""
        told = view.parameters
        self._groups: IntArray = told["groups"]
        n, count = len(self._groups), int(self._groups.max()) + 1
        self._centre = np.tile(told["initial"], (count, 1))
        self._keep: bool = told["keep"]
        self._beta: float = told.get("beta", 1.0)
        # NaN: 1 / max l_i, of those that have told l_i.
        self._lr: float | None = told.get("lr")
        self._by_rows = told["weights"] == "rows"
        self._asks = self._by_rows or (self._lr is not None and np.isnan(self._lr))
        self._known = np.zeros(n, dtype=bool)
        self._lipschitz, self._rows = np.zeros(n), np.zeros(n)
        self._vectors = np.zeros((n, view.dim))
        self._heard = np.zeros(n, np.int64)

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Ask those who are there, or take their answers."""
        if inbox.phase == 0:
            assert inbox.present is not None
            return self._questions(inbox.present)
        new = np.zeros(len(self._groups), dtype=bool)
        for message in inbox:
            i = message.sender
            if message.kind == "hello":
                self._known[i] = True
                self._rows[i] = float(message.arrays["rows"])
                self._lipschitz[i] = float(message.arrays["lipschitz"])
            elif message.round >= self._heard[i]:
                self._heard[i], new[i] = message.round, True
                self._take(i, message.arrays)
        if new.any():
            self._average(self._heard > 0 if self._keep else new)
        return {}

    def _questions(self, present: IntArray) -> Outbox:
        who = Message("who", {})
        asked = [self._question(q) for q in range(len(self._centre))]
        out: dict[int, Message] = {}
        for i in present.tolist():
            unknown = self._asks and not self._known[i]
            out[i] = who if unknown else asked[self._groups[i]]
        return out

    def _question(self, q: int) -> Message:
        if self._lr is None:
            return Message("model", {"w": self._centre[q]})
        return Message("paced", {"w": self._centre[q], "lr": np.array(self.lr(q))})

    def lr(self, q: int) -> float:
        """Return the step size of a group: as given, or of those who are known."""
        assert self._lr is not None
        if not np.isnan(self._lr):
            return self._lr
        return step_size(self._lipschitz[self._known & (self._groups == q)])

    def _take(self, i: int, arrays: Mapping[str, FloatArray]) -> None:
        """Take over the answer of client i."""
        self._vectors[i] = arrays["w"]

    def _average(self, who: BoolArray) -> None:
        counts = np.where(who, self._rows if self._by_rows else 1.0, 0.0)
        for q in range(len(self._centre)):
            own = np.where(self._groups == q, counts, 0.0)
            if own.any():
                self._centre[q] = self._combined(q, own / own.sum())

    def _combined(self, q: int, shares: FloatArray) -> FloatArray:
        """Return the new model of a group, for shares (n,) of the clients that add up to one."""
        mean, old = shares @ self._vectors, self._centre[q]
        return np.asarray(mean if self._beta == 1.0 else old + self._beta * (mean - old))

    def report(self) -> Report:
        """Return the models, a vector where there is one."""
        centre = self._centre.copy()
        return Report(centre[0] if len(centre) == 1 else centre)


class StarClient(ClientProgram):
    """A client that answers the server's questions."""

    #: What the vector in an answer is called.
    field = "w"

    def start(self, view: View) -> None:
        """Begin with the initial model."""
        told = view.parameters
        self._model = view.model
        self._w: FloatArray = told["initial"]
        self._hello = {"rows": np.array(0.0), "lipschitz": np.array(0.0)}
        if told["weights"] == "rows":
            self._hello["rows"] = np.array(float(view.model.n_rows))
        lr = told.get("lr")
        if lr is not None and np.isnan(lr):
            self._hello["lipschitz"] = np.array(own_lipschitz(view))

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Answer the newest question."""
        question = self._question(inbox)
        if question is None or question.kind == "who":
            return self._greeting(question)
        answer = self._answer(question)
        return {question.sender: Message("answer", {self.field: answer})}

    @staticmethod
    def _question(inbox: Inbox) -> Received | None:
        return max(inbox, key=lambda message: message.round) if inbox else None

    def _greeting(self, question: Received | None) -> Outbox:
        """Say who this is, if that was asked."""
        return {} if question is None else {question.sender: Message("hello", self._hello)}

    def _answer(self, question: Received) -> FloatArray:
        """Return the vector that the server takes the mean of."""
        raise NotImplementedError

    def report(self) -> Report:
        """Return the client's model."""
        return Report(self._w)


class StepsClient(StarClient):
    """Takes E gradient steps from the server's model."""

    def start(self, view: View) -> None:
        """Get ready."""
        super().start(view)
        self._steps: int = view.parameters["steps"]

    def _answer(self, question: Received) -> FloatArray:
        w, lr = question.arrays["w"], float(question.arrays["lr"])
        for _ in range(self._steps):
            w = w - lr * gradient_at(self._model, w)
        self._w = w
        return w


class ProximalClient(StarClient):
    """Minimizes its loss near the server's model."""

    def start(self, view: View) -> None:
        """Get ready."""
        super().start(view)
        self._tau = 1.0 / (2.0 * view.parameters["lam"])

    def _answer(self, question: Received) -> FloatArray:
        self._w = self._model.prox(question.arrays["w"], self._tau)
        return self._w
