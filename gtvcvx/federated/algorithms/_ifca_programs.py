"""Programs of IFCA: several runs at once, from starts of their own."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.federated.algorithms._step_sizes import gradient_at, own_lipschitz, step_size, value_at
from gtvcvx.federated.programs import (
    ClientProgram,
    Inbox,
    Outbox,
    Report,
    ServerProgram,
    View,
    newest,
)
from gtvcvx.federated.wire import Message


class IfcaClient(ClientProgram):
    """Chooses the model that fits its data, and trains it."""

    def start(self, view: View) -> None:
        """Begin without a choice."""
        told = view.parameters
        self._model = view.model
        self._gradients = told["update"] == "gradients"
        self._steps: int = told["steps"]
        # Where the step is given nobody needs it.
        self._lipschitz = own_lipschitz(view) if told["lr"] is None else 0.0
        # Of the default step the server does not know enough before everybody has told l_i.
        self._longest = step_size(np.array([self._lipschitz])) if told["lr"] is None else np.inf
        self._w = np.zeros(view.dim)
        self._choice = -1

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Answer with choice, loss and update for every start."""
        message = newest(inbox, "models")
        if message is None:
            return {}
        models, lr = message.arrays["models"], float(message.arrays["lr"])
        losses = np.array([[value_at(self._model, w) for w in start] for start in models])
        choice = losses.argmin(axis=1).astype(np.int64)
        chosen = models[np.arange(len(models)), choice]
        best = int(message.arrays["best"])
        self._w, self._choice = chosen[best], int(choice[best])
        arrays = {
            "choice": choice,
            "loss": losses[np.arange(len(models)), choice],
            "update": np.array([self._update(w, min(lr, self._longest)) for w in chosen]),
            "lipschitz": np.array(self._lipschitz),
        }
        return {message.sender: Message("update", arrays)}

    def _update(self, w: FloatArray, lr: float) -> FloatArray:
        if self._gradients:
            return gradient_at(self._model, w)
        for _ in range(self._steps):
            w = w - lr * gradient_at(self._model, w)
        return w

    def report(self) -> Report:
        """Return the chosen model of the best start, and its number."""
        return Report(self._w, choice=self._choice)


class IfcaServer(ServerProgram):
    """Holds k models for every start."""

    def start(self, view: View) -> None:
        """Begin with the starts given, or random ones."""
        told = view.parameters
        shape = (told["restarts"], told["k"], view.dim)
        if told["initial"] is None:
            generator = view.generator("initial")
            self._models: FloatArray = told["spread"] * generator.standard_normal(shape)
        else:
            self._models = told["initial"].copy()
        self._gradients = told["update"] == "gradients"
        self._all = told["average"] == "all"
        self._lr: float | None = told["lr"]
        self._lipschitz = np.zeros(told["n"])
        # Least loss of each client for each start, as far as it has told.
        self._losses = np.zeros((told["n"], shape[0]))
        self._best = 0

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Send all models to those who are there, or take their updates."""
        if inbox.phase == 0:
            assert inbox.present is not None
            # Clients that have not told yet count nowhere.
            self._best = int(self._losses.sum(axis=0).argmin())
            arrays = {"models": self._models, "lr": np.array(self._step())}
            sent = Message("models", {**arrays, "best": np.array(self._best)})
            return dict.fromkeys(inbox.present.tolist(), sent)
        if inbox:
            self._take(inbox)
        return {}

    def _step(self) -> float:
        return step_size(self._lipschitz) if self._lr is None else self._lr

    def _take(self, inbox: Inbox) -> None:
        for message in inbox:
            self._losses[message.sender] = message.arrays["loss"]
            self._lipschitz[message.sender] = float(message.arrays["lipschitz"])
        choices = np.array([message.arrays["choice"] for message in inbox])
        updates = np.array([message.arrays["update"] for message in inbox])
        for r, models in enumerate(self._models):
            for j in range(len(models)):
                who = choices[:, r] == j
                if who.any():
                    models[j] = self._moved(models[j], updates[:, r], who)

    def _moved(self, w: FloatArray, updates: FloatArray, who: BoolArray) -> FloatArray:
        """Return a model after the updates of those who chose it."""
        count = len(who) if self._all else int(who.sum())
        moves = -self._step() * updates[who] if self._gradients else updates[who] - w
        return np.asarray(w + moves.sum(axis=0) / count)

    def report(self) -> Report:
        """Return the models of the best start."""
        return Report(self._models[self._best].copy(), choice=self._best)
