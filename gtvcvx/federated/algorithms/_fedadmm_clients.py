"""Client programs of FedADMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.federated.algorithms._fedrelax_client import minimizer_of
from gtvcvx.federated.programs import (
    ClientProgram,
    Inbox,
    LocalLoss,
    Outbox,
    Report,
    View,
    newest,
)
from gtvcvx.federated.wire import Message, Received
from gtvcvx.penalties import Penalty


@dataclass(frozen=True)
class Steps:
    """Step sizes eta_i(t); see `FedADMM`."""

    rule: str
    rho: float
    scale: float
    decay: float | None
    radius: float | None

    def length(self, round_: int, lipschitz: FloatArray | float, degree: Any) -> Any:
        """Return eta_i(t) for Lipschitz constants and degrees, one or (n,)."""
        if self.rule == "printed":
            return self.scale / round_ + 0.0 * degree
        if self.rule == "linearized":
            slope = self.scale / round_
            return slope / (1.0 + self.rho * degree * slope)
        shrink = 1.0 if self.decay is None else self.decay / (self.decay + round_)
        # A client without data and neighbours has nothing that moves it.
        total = lipschitz + self.rho * degree
        if np.ndim(total) == 0:
            return shrink / (total or 1.0)
        return shrink / np.where(total > 0, total, 1.0)

    def projected(self, w: FloatArray) -> FloatArray:
        """Project the last axis on the ball, where there is one."""
        if self.radius is None:
            return w
        length = np.linalg.norm(w, axis=-1, keepdims=True)
        return np.asarray(w * np.minimum(1.0, self.radius / np.maximum(length, self.radius)))


class Average:
    """What a client answers with: the last iterate, or an average that goes on."""

    def __init__(self, output: str, rounds: int) -> None:
        self._output = output
        self._first = rounds // 2 + 1 if output == "tail" else 1
        self._mean: FloatArray | None = None
        self._count = 0

    def add(self, round_: int, before: FloatArray, after: FloatArray) -> None:
        """Take notice of a step: theta(t - 1) for the printed average, theta(t) for the tail."""
        if self._output == "last" or round_ < self._first:
            return
        w = before if self._output == "average" else after
        self._count += 1
        self._mean = w.copy() if self._mean is None else self._mean + (w - self._mean) / self._count

    def of(self, last: FloatArray) -> FloatArray:
        """Return the answer."""
        return last if self._mean is None else self._mean


class LocalGradient:
    """Gradients of a scaled loss: of all rows, or of a mini-batch; zero without data."""

    def __init__(self, view: View) -> None:
        self.model = LocalLoss([], view.dim) if view.model is None else view.model
        self._scaling: float = view.parameters["scaling"]
        self._batch: int | None = view.parameters["batch"]
        # A client without data has nothing to draw from.
        if self._batch is not None and self.model.n_rows:
            self._generator = view.generator("batch")
        else:
            self._batch = None
        self.lipschitz = self._scaling * _lipschitz(self.model, view)

    def at(self, w: FloatArray) -> FloatArray:
        """Return the gradient."""
        if self._batch is None:
            return np.asarray(self._scaling * self.model.gradient(w))
        rows = self._generator.integers(0, self.model.n_rows, self._batch)
        return np.asarray(self._scaling * self.model.sampled(rows).gradient(w))


class _ThetaStep:
    """The step (14) of one client."""

    def __init__(self, view: View) -> None:
        self._steps: Steps = view.parameters["steps"]
        self._gradient = LocalGradient(view)
        self._model, self._scaling = self._gradient.model, view.parameters["scaling"]
        self._average = Average(view.parameters["output"], view.rounds)

    def after(self, round_: int, w: FloatArray, pull: FloatArray, degree: int) -> FloatArray:
        """Return theta_i for the sum (d,) of 2 u_ij - u_ij^- over its neighbours."""
        if self._steps.rule == "exact" and not degree:
            new = minimizer_of(self._model, w)
        elif self._steps.rule == "exact":
            tau = 1.0 / (self._steps.rho * degree)
            new = self._model.prox(w - tau * pull, self._scaling * tau)
        else:
            length = self._steps.length(round_, self._gradient.lipschitz, degree)
            new = w - length * (self._gradient.at(w) + pull)
        new = self._steps.projected(new)
        self._average.add(round_, w, new)
        return new

    def answer(self, w: FloatArray) -> FloatArray:
        """Return what the client answers with."""
        return self._average.of(w)


class EdgeClient(ClientProgram):
    """A client that computes the flows of its edges, as the other ends do.

    An absent client does nothing; when it is back it does the edge updates that it has missed, with
    the messages that have waited for it. One that has crashed asks its neighbours for what they
    know of their edge, and leaves an edge out until it has the answer.
    """

    def start(self, view: View) -> None:
        """Begin with theta = 0 and no flow."""
        self._id, self._links = view.id, view.links
        self._lost = view.joined > 1
        k, d = len(view.links), view.dim
        self._place = {int(j): p for p, j in enumerate(view.links)}
        self._theta_step = _ThetaStep(view)
        self._penalty: Penalty = view.parameters["penalty"]
        self._capacities = view.parameters["lam"] * view.weights
        self._half_rho = np.full(k, view.parameters["steps"].rho / 2.0)
        self._rho_column = self._half_rho[:, None]
        # A message to all neighbours; made anew each round, with the same recipients.
        self._peers = view.links.tolist()
        self._w = np.zeros(d)
        self._u, self._before = np.zeros((k, d)), np.zeros((k, d))
        self._heard = np.zeros((k, d))
        # What the other ends take for this client's vector: its own, but just after a crash.
        self._mine: FloatArray | None = None
        self._through = np.full(k, view.joined - 1)
        self._joint: BoolArray = np.full(k, view.joined == 1)
        # All edges are known; a client without neighbours knows them all, too.
        self._prompt = not self._lost or not k
        self._knows = self._sent = view.joined == 1
        self._last = view.joined - 1

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Catch up with the edges, then move theta and send it."""
        if self._lost and self._peers:
            self._lost = False
            return dict.fromkeys(self._peers, Message("sync", {}))
        prompt = self._prompt and self._last == round_ - 1
        if prompt and not any(m.kind != "theta" for m in inbox):
            self._catch_up(round_, inbox)
            asked: list[Received] = []
        else:
            asked = [m for m in inbox if m.kind == "sync"]
            self._replay(round_, inbox)
            self._prompt = bool(self._joint.all())
        self._last = round_
        own = self._w if self._mine is None else self._mine
        if not self._prompt and not self._joint.any():
            return self._answers(round_, asked, own, None)
        ahead = 2.0 * self._u - self._before
        pull = np.add.reduce(ahead if self._prompt else ahead[self._joint])
        degree = len(ahead) if self._prompt else int(np.count_nonzero(self._joint))
        self._w = self._theta_step.after(round_, self._w, pull, degree)
        self._mine, self._sent = None, True
        return self._answers(round_, asked, own, Message("theta", {"w": self._w}))

    def _catch_up(self, round_: int, inbox: Inbox) -> None:
        """Update the edges for the last round, in which this client took part."""
        if round_ == 1 or not self._peers:
            return
        place, heard = self._place, self._heard
        for message in inbox:
            heard[place[message.sender]] = message.arrays["w"]
        self._update_edges(self._w - self._heard)
        self._through[:] = round_ - 1

    def _update_edges(self, differences: FloatArray) -> None:
        sigma = self._half_rho
        new = self._penalty.prox_conjugate(
            self._u + self._rho_column * differences, sigma, self._capacities, check=False
        )
        self._before, self._u = self._u, new

    def _replay(self, round_: int, inbox: Inbox) -> None:
        """Update every edge for all rounds that it has missed, in their order."""
        of_round: dict[int, list[Received]] = {}
        for message in sorted(inbox, key=lambda m: m.round):
            if message.kind == "state":
                self._take(message)
            if message.kind in ("theta", "state"):
                of_round.setdefault(message.round, []).append(message)
        first = int(self._through[self._joint].min(initial=round_))
        for missed in range(first + 1, round_):
            for message in of_round.get(missed, ()):
                self._heard[self._place[message.sender]] = message.arrays["w"]
            self._update_some(self._joint & (self._through < missed))
            self._through[self._joint] = np.maximum(self._through[self._joint], missed)

    def _update_some(self, chosen: BoolArray) -> None:
        own = self._w if self._mine is None else self._mine
        u, before = self._u.copy(), self._before.copy()
        self._update_edges(own - self._heard)
        u[chosen], before[chosen] = self._u[chosen], self._before[chosen]
        self._u, self._before = u, before

    def _take(self, message: Received) -> None:
        """Take over what the other end of an edge knows of it, as it was a round ago."""
        k, state = self._place[message.sender], message.arrays
        if self._joint[k]:
            return
        if state["known"] and not self._knows:
            self._w, self._knows = state["held"].copy(), True
        self._heard[k] = state["own"]
        if not self._sent:
            if self._mine is None:
                self._mine = np.tile(self._w, (len(self._links), 1))
            self._mine[k] = state["held"]
        self._u[k], self._before[k] = -state["u"], -state["before"]
        self._through[k], self._joint[k] = message.round - 1, True

    def _answers(
        self, round_: int, asked: list[Received], own: FloatArray, theta: Message | None
    ) -> Outbox:
        """Return this round's message to each neighbour, and what it knows to those that ask."""
        out: dict[int, Message] = {} if theta is None else dict.fromkeys(self._peers, theta)
        for message in asked:
            k = self._place[message.sender]
            known = bool(self._joint[k])
            if not known and message.sender < self._id:
                # Both have lost the edge; the one with the smaller number begins it anew.
                out[message.sender] = Message("sync", {})
                continue
            if not known:
                self._u[k] = self._before[k] = 0.0
                self._through[k], self._joint[k] = round_ - 1, True
            state = {"held": self._heard[k].copy(), "u": self._u[k], "before": self._before[k]}
            state |= {"own": own if own.ndim == 1 else own[k], "w": self._w}
            state["known"] = np.array(int(known))
            out[message.sender] = Message("state", state)
        return out

    def report(self) -> Report:
        """Return theta, or its average, and the flows."""
        return Report(self._theta_step.answer(self._w), self._u, self._last - 1)


class OwnerClient(ClientProgram):
    """A client that computes the flows of the edges to smaller numbers, and sends them.

    In the first phase of a round vectors are sent, in the second the owners answer with both beta
    and both alpha. What a client knows of an edge is always what the owner has said last.
    """

    def start(self, view: View) -> None:
        """Begin with theta = beta = alpha = 0."""
        self._links = view.links
        k, d = len(view.links), view.dim
        self._place = {int(j): p for p, j in enumerate(view.links)}
        self._owned = np.flatnonzero(view.links < view.id)
        self._theta_step = _ThetaStep(view)
        self._penalty: Penalty = view.parameters["penalty"]
        self._capacities = (view.parameters["lam"] * view.weights)[self._owned]
        self._rho: float = view.parameters["steps"].rho
        self._w = np.zeros(d)
        self._beta, self._alpha = np.zeros((k, d)), np.zeros((k, d))
        self._other_alpha = np.zeros((k, d))
        self._heard = np.zeros((k, d))
        # After a crash: nothing asked for yet, no vector of its own yet.
        self._lost = not (knows := view.joined == 1)
        self._knows, self._round = knows, 0

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Move theta, or answer for the edges that it owns."""
        for message in inbox:
            self._take(message)
        if inbox.phase == 1:
            return self._edges()
        self._round = round_
        asked = {m.sender for m in inbox if m.kind == "sync"}
        if self._lost:
            self._lost = False
            return {int(j): Message("sync", {}) for j in self._links}
        pull = (self._rho * (self._w - self._beta) - self._alpha).sum(axis=0)
        self._w = self._theta_step.after(round_, self._w, pull, len(self._links))
        theta = Message("theta", {"w": self._w})
        return {int(j): self._edge(int(j)) if j in asked else theta for j in self._links}

    def _take(self, message: Received) -> None:
        k, arrays = self._place[message.sender], message.arrays
        if message.kind == "theta":
            self._heard[k] = arrays["w"]
        elif message.kind == "edge":
            # Seen from the other end: what is its own is this one's other.
            self._beta[k], self._alpha[k] = arrays["beta_other"], arrays["alpha_other"]
            self._other_alpha[k] = arrays["alpha"]
            if not self._knows:
                self._w, self._knows = arrays["beta_other"].copy(), True

    def _edges(self) -> Outbox:
        """Return (15), (16) for the edges that this client owns."""
        own, rho = self._owned, self._rho
        if not len(own):
            return {}
        p = self._w - self._alpha[own] / rho
        q = self._heard[own] - self._other_alpha[own] / rho
        middle = (p + q) / 2.0
        half = 0.5 * self._penalty.prox(p - q, 2.0 * self._capacities / rho)
        self._beta[own] = middle + half
        beta_other = middle - half
        self._alpha[own] -= rho * (self._w - self._beta[own])
        self._other_alpha[own] -= rho * (self._heard[own] - beta_other)
        return {
            int(self._links[k]): self._edge(self._links[k], beta_other[p])
            for p, k in enumerate(own)
        }

    def _edge(self, j: int, beta_other: FloatArray | None = None) -> Message:
        k = self._place[j]
        other = self._beta[k] if beta_other is None else beta_other
        alphas = {"alpha": self._alpha[k], "alpha_other": self._other_alpha[k]}
        return Message("edge", {"beta": self._beta[k], "beta_other": other, **alphas})

    def report(self) -> Report:
        """Return theta, or its average, and the flows."""
        return Report(self._theta_step.answer(self._w), -self._alpha, self._round)


class GradientClient(ClientProgram):
    """A client of Algorithm 2: it answers the server with the gradient at what it is sent."""

    def start(self, view: View) -> None:
        """Get ready."""
        self._gradient = LocalGradient(view)
        self._w = np.zeros(view.dim)

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Return the gradient at the server's theta_i."""
        message = newest(inbox, "theta")
        if message is None:
            return {}
        self._w = message.arrays["w"]
        arrays = {"g": self._gradient.at(self._w), "lipschitz": np.array(self._gradient.lipschitz)}
        return {message.sender: Message("gradient", arrays)}

    def report(self) -> Report:
        """Return the last vector that it was sent."""
        return Report(self._w)


def _lipschitz(model: Any, view: View) -> float:
    """Return the Lipschitz constant of the gradient of a client's loss.

    Raises
    ------
    ValueError
        There is none, or the model does not tell it, and the steps need it.
    """
    lipschitz = float(getattr(model, "lipschitz", np.inf))
    if np.isfinite(lipschitz) or view.parameters["steps"].rule != "adaptive":
        return lipschitz
    raise ValueError(
        f"step: client {view.id}: the gradient of {model!r} has no Lipschitz constant that "
        "is known; use step='exact', or 'printed' with a scale"
    )
