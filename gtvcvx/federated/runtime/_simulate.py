"""Rounds: who is there, what is sent, what is seen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, IntArray, is_integer, is_number
from gtvcvx._callbacks import RoundCallback, RoundProgress
from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.runtime._availability import Always, Availability, Sampling
from gtvcvx.federated.runtime._faults import Crash, Crashes, Delay, Loss, Losses
from gtvcvx.federated.runtime._history import History
from gtvcvx.federated.runtime._lost import Lost
from gtvcvx.federated.runtime._mail import Mail
from gtvcvx.federated.runtime._observer import Observer
from gtvcvx.federated.runtime._run import Run
from gtvcvx.federated.transport import (
    Deployment,
    InMemory,
    Processes,
    Transport,
    check_transport,
)
from gtvcvx.problem import GTVProblem

_LOG = room_logger("federated")
# Records of a run by default: enough for a picture.
_RECORDS = 100
# Rounds in a row without any client after which that is worth a word.
_EMPTY_ROUNDS = 20


class StabilityWarning(UserWarning):
    """Steps above their bound of stability, or messages that an algorithm cannot do without."""


class NoClientWarning(UserWarning):
    """No client has been available for many rounds."""


def simulate(
    algorithm: Algorithm,
    net: Network | GTVProblem,
    rounds: int,
    *,
    availability: Availability | None = None,
    sampling: Sampling | None = None,
    delay: Delay | None = None,
    loss: Loss | None = None,
    crashes: Sequence[Crash] = (),
    seed: int = 0,
    record_every: int | None = None,
    truth: Any = None,
    reference: Any = None,
    transport: str | Transport = "memory",
    time_limit: float | None = None,
    callback: RoundCallback | None = None,
    verbose: bool | None = None,
) -> Run:
    """Run a federated algorithm, round by round, and watch it.

    Parameters
    ----------
    algorithm : Algorithm
    net : Network or GTVProblem
        A problem stands for ``Network.from_problem``.
    rounds : int
        At least 1.
    availability : Availability, optional
        Which clients are there in a round. Default: `Always`.
    sampling : Sampling, optional
        Which of those there take part. Default: all.
    delay : Delay, optional
        How late messages are. Default: they are there in the next phase.
    loss : Loss, optional
        Which messages are lost. Default: none.
    crashes : sequence of Crash
        Clients that stop, and those that come back having forgotten everything.
    seed : int
        Of all that is random. The result depends on it and not on the transport.
    record_every : int, optional
        Rounds between two records of the history. Default: about a hundred records.
    truth : array_like, shape (n, d), optional
        For the column "mse".
    reference : Solution or array_like, optional
        For the column "distance": vectors of the problem's nodes, or of the clients.
    transport : "memory", "processes" or Transport
        Where the programs run: here, or each client in a process of its own; see `Processes`.
    time_limit : float, optional
        Seconds; looked at after every round.
    callback : callable, optional
        Sees a `RoundProgress` at every record; a true value stops the run.
    verbose : bool, optional
        As in `GTVProblem.solve`.

    Returns
    -------
    Run
        Also after Ctrl-C and at the time limit: the state then, with its gap.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, or the client and the round: no such link, a message that the schema
        does not allow.

    Notes
    -----
    In a round the participants of each phase take a step with what has come for them. Messages
    for clients that are absent wait for them, all of them: for one that stays away for good about
    8 d + 60 bytes a message are kept. Those for crashed ones are lost.
    """
    if isinstance(net, GTVProblem):
        net = Network.from_problem(net)
    _check_kind(algorithm, "algorithm", Algorithm)
    _check_kind(net, "net", Network)
    _check_kind(availability, "availability", Availability, None)
    _check_kind(sampling, "sampling", Sampling, None)
    _check_kind(delay, "delay", Delay, None)
    _check_kind(loss, "loss", Loss, None)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback: a function is expected, got {type(callback).__name__}")
    carrier = _as_transport(transport)
    used = algorithm.network(net)
    streams = Streams(seed)
    plan = _Plan(
        _positive(rounds, "rounds"),
        max(rounds // _RECORDS, 1)
        if record_every is None
        else _positive(record_every, "record_every"),
        _seconds(time_limit),
        callback,
    )
    course = _Course(
        (Always() if availability is None else availability).drawn(used.n_clients, streams),
        None if sampling is None else sampling.drawn(used, streams),
        Crashes(crashes, used),
    )
    lossy = delay is not None or loss is not None
    _warn(algorithm, used, lossy, availability is not None or sampling is not None)
    observer = Observer(algorithm, used, reference, truth)
    mail = Mail(used, Losses(delay, loss, used.n_participants, streams))
    deployment = Deployment(algorithm, used, streams, plan.rounds)
    text = "%s: %d clients, %d links, at most %d rounds"
    _LOG.info(text, algorithm.name, used.n_clients, used.graph.n_edges, plan.rounds)
    with ProgressDisplay(algorithm.name, verbose=verbose, total=plan.rounds) as display:
        driver = _Driver(deployment, course, mail, observer, plan, display)
        driver.run(carrier)
    _LOG.info("%s after %d rounds %s", driver.status, driver.round, driver.message)
    return driver.result(int(seed))


@dataclass(frozen=True)
class _Plan:
    """When to record, and when to stop."""

    rounds: int
    record_every: int
    time_limit: float
    callback: RoundCallback | None


@dataclass
class _Course:
    """Who takes part in each round."""

    presence: Any
    sampling: Any
    crashes: Crashes
    gone: set[int] = field(default_factory=set)

    def active(self, round_: int) -> BoolArray:
        """Return which clients take part; rounds are asked for in their order."""
        who = self.presence.of(round_).copy()
        who[list(self.gone)] = False
        return who if self.sampling is None else np.asarray(self.sampling.of(who))


class _Driver:
    """One run."""

    def __init__(
        self,
        deployment: Deployment,
        course: _Course,
        mail: Mail,
        observer: Observer,
        plan: _Plan,
        display: ProgressDisplay,
    ) -> None:
        self._deployment, self._course, self._mail = deployment, course, mail
        self._observer, self._plan, self._display = observer, plan, display
        self._net = deployment.net
        self._phases = [np.asarray(p) for p in deployment.algorithm.phases(self._net)]
        self.history = History()
        self.status, self.message = "finished", ""
        self.round = 0
        self._lost = Lost(self._net, mail, course.gone)
        self._active = self._empty = 0
        self._began = time.perf_counter()

    def run(self, transport: Transport) -> None:
        """Do all rounds, or as many as limits allow."""
        try:
            self._rounds(transport)
        except KeyboardInterrupt:
            if not self.history.n_records:
                raise
            self.status, self.message = "interrupted", f"Ctrl-C in round {self.round}"
            # Ctrl-C again: the state of the last record is the answer.
            with suppress(KeyboardInterrupt):
                self._record_last(transport)
        finally:
            transport.close()

    def _rounds(self, transport: Transport) -> None:
        transport.start(self._deployment)
        if self._record(transport, 0):
            return
        while self.round < self._plan.rounds and self.status == "finished":
            self._one(transport)

    def _record_last(self, transport: Transport) -> None:
        """Record the state in the middle of a round: each is one that a client had."""
        if self.history.last()["round"] < self.round:
            self._plan = replace(self._plan, callback=None)
            self._record(transport, self._active)

    def _one(self, transport: Transport) -> None:
        self.round += 1
        round_ = self.round
        self._lost.bring_back(transport, round_)
        self._crashes(transport, round_)
        active = self._course.active(round_)
        self._active = int(active.sum())
        self._notice_empty()
        for number, members in enumerate(self._phases):
            self._phase(transport, round_, number, members, active)
        self._active = int(active.sum())
        elapsed = time.perf_counter() - self._began
        self._display.update(round_, self.history.last().get("gap"))
        late = elapsed > self._plan.time_limit
        if late:
            self.status, self.message = "time_limit", f"in round {round_} of {self._plan.rounds}"
        if late or round_ % self._plan.record_every == 0 or round_ == self._plan.rounds:
            self._record(transport, self._active)

    def _crashes(self, transport: Transport, round_: int) -> None:
        for client in self._course.crashes.going(round_):
            _LOG.info("round %d: %s crashes", round_, self._net.label(client))
            transport.crash(client)
            self._mail.lose(client)
            self._course.gone.add(client)
        for client in self._course.crashes.back(round_):
            _LOG.info("round %d: %s is back", round_, self._net.label(client))
            transport.restart(client, round_)
            self._mail.back(client)
            self._course.gone.discard(client)

    def _notice_empty(self) -> None:
        self._empty = 0 if self._active else self._empty + 1
        if self._empty == _EMPTY_ROUNDS:
            warnings.warn(
                f"availability: no client was available for {_EMPTY_ROUNDS} rounds, "
                f"{self.round - _EMPTY_ROUNDS + 1} to {self.round}",
                NoClientWarning,
                stacklevel=6,
            )

    def _phase(
        self, transport: Transport, round_: int, number: int, members: IntArray, active: BoolArray
    ) -> None:
        n = self._net.n_clients
        inboxes, present = {}, {}
        for i in members.tolist():
            if i >= n:
                links = self._net.links(i)
                own = links[links < n]
                present[i] = own[active[own]]
            elif not active[i]:
                continue
            inboxes[i] = self._mail.taken(i)
        sent = transport.step(round_, number, inboxes, present)
        active[self._lost.notice(transport, round_)] = False
        self._mail.bring_late(round_, number)
        post = self._mail.post
        for i in sorted(sent):
            for recipients, frame in sent[i]:
                post(i, recipients, frame, round_, number)

    def _record(self, transport: Transport, active: int) -> bool:
        """Write a record; tell whether the run ends here."""
        seen = self._observer.record(transport.reports())
        self._lost.notice(transport, self.round)
        if isinstance(seen, str):
            steps = self._deployment.algorithm.steps_of(self._net)
            self.status = "diverged"
            self.message = f"round {self.round}: {seen}" + (f"; {steps}" if steps else "")
            return True
        traffic = self._mail.traffic
        record = {"round": self.round, **seen}
        record |= {"bytes_up": traffic.up, "bytes_down": traffic.down}
        if self._net.n_servers > 1:
            record["bytes_between"] = traffic.between
        record |= {"messages": traffic.messages, "active": active}
        self.history.add(record)
        _LOG.debug("record: %s", record)
        if self._plan.callback is None:
            return False
        w, models = self._observer.w.copy(), self._observer.models.copy()
        stop = self._plan.callback(RoundProgress(self.round, dict(record), w, models))
        if stop and self.status == "finished" and self.round < self._plan.rounds:
            self.status, self.message = "interrupted", f"by the callback in round {self.round}"
        return bool(stop)

    def result(self, seed: int) -> Run:
        """Return what has come of it."""
        algorithm, observer = self._deployment.algorithm, self._observer
        return Run(
            w=observer.w,
            models=observer.models,
            u=observer.u,
            history=self.history,
            status=self.status,
            message=self.message,
            rounds=self.round,
            problem=observer.problem,
            reason=algorithm.reason(self._net),
            algorithm=algorithm,
            net=self._net,
            nodes=self._net.nodes,
            reports=observer.states(),
            seed=seed,
            seconds=time.perf_counter() - self._began,
        )


def _warn(algorithm: Algorithm, net: Network, lossy: bool, absent: bool) -> None:
    texts = list(algorithm.warnings(net))
    if lossy and algorithm.fragile:
        texts.append(f"delay, loss: {algorithm.name}: {algorithm.fragile}")
    if absent and algorithm.needs_all:
        texts.append(f"availability: {algorithm.name}: {algorithm.needs_all}")
    for text in texts:
        warnings.warn(text, StabilityWarning, stacklevel=3)


def _as_transport(transport: str | Transport) -> Transport:
    if isinstance(transport, str):
        if transport == "memory":
            return InMemory()
        if transport == "processes":
            return Processes()
        raise ValueError(f"transport: 'memory' or 'processes' is expected, got {transport!r}")
    check_transport(transport)
    return transport


def _check_kind(value: Any, name: str, kind: type, default: Any = ...) -> None:
    if value is not default and not isinstance(value, kind):
        raise TypeError(f"{name}: {kind.__name__} is expected, got {type(value).__name__}")


def _positive(value: Any, name: str) -> int:
    if not (is_integer(value) and value >= 1):
        raise ValueError(f"{name}: a positive integer is expected, got {value!r}")
    return int(value)


def _seconds(value: Any) -> float:
    if value is None:
        return np.inf
    if not (is_number(value) and value > 0):
        raise ValueError(f"time_limit: a number > 0 is expected, got {value!r}")
    return float(value)
