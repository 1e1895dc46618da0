"""What leaves a client, on all bytes: messages of the schema, and never a number of its rows.

The tests go through `SYSTEMS`; a new algorithm is a line there. Each test is shown to fail on
clients that leak.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _faulty import EVERYBODY, GreedyClient, LeakyClient

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.transport import Deployment, RecordedFrame, RecordedStep
from gtvcvx.federated.wire import HEADER, WireFormat

N, ROWS, D, ROUNDS = 5, 6, 3, 12


def problem(seed: int = 0, changed: int | None = None) -> gtv.GTVProblem:
    """Five clients; all numbers of one of them are others where it is said."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((N, ROWS, D)), rng.standard_normal((N, ROWS))
    if changed is not None:
        other = np.random.default_rng(seed + 1)
        X[changed], y[changed] = other.standard_normal((ROWS, D)), other.standard_normal(ROWS)
    graph = gtv.EmpiricalGraph(N, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)])
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(N)]
    return gtv.GTVProblem(graph, losses, penalty="l2", lam=0.3)


def network(changed: int | None = None) -> fed.Network:
    return fed.Network.from_problem(problem(changed=changed))


# Algorithm, and how clients come and go. A network is made of the problem's: `fed.Network`.
SYSTEMS: dict[str, tuple[Callable[[], fed.Algorithm], dict[str, Any]]] = {
    "FedADMM": (fed.FedADMM, {"availability": fed.Bernoulli(0.6)}),
    "FedADMM, mini-batches": (
        lambda: fed.FedADMM(batch=2, decay=20.0, output="tail"),
        {"availability": fed.Bernoulli(0.6), "crashes": [fed.Crash(2, 4, 6)]},
    ),
    "FedADMM, exact": (lambda: fed.FedADMM(step="exact"), {}),
    "FedADMM, owner": (
        lambda: fed.FedADMM(exchange="owner"),
        {"availability": fed.Bernoulli(0.6), "delay": fed.Delay([0.5, 0.5])},
    ),
    "FedADMM, inverse": (
        lambda: fed.FedADMM(absence="inverse", presence=0.6, decay=20.0),
        {"availability": fed.Bernoulli(0.6)},
    ),
    "PrimalDual": (fed.PrimalDual, {}),
    "EdgeTests": (fed.EdgeTests, {"availability": fed.Bernoulli(0.8)}),
    "FedRelax": (lambda: fed.FedRelax(lam=0.3), {"availability": fed.Bernoulli(0.6)}),
    "FedRelax, noise": (lambda: fed.FedRelax(lam=0.3, order="colour", noise=0.1), {}),
    "FedAvg": (lambda: fed.FedAvg(lam=0.5), {"availability": fed.Bernoulli(0.6)}),
    "FedAvg, steps": (
        lambda: fed.FedAvg(steps=3),
        {"sampling": fed.Sampling(2), "crashes": [fed.Crash(1, 3, 5)]},
    ),
    "FedSGD": (fed.FedSGD, {"delay": fed.Delay([0.5, 0.5])}),
    "PFedMe": (lambda: fed.PFedMe(lam=0.5, eta=1.0, beta=1.0), {}),
    "Global": (fed.Global, {"availability": fed.Bernoulli(0.6)}),
    "IFCA": (lambda: fed.IFCA(2), {"availability": fed.Bernoulli(0.6)}),
}


class Leaky(fed.FedADMM):
    """FedADMM whose clients leak."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self._how = how

    def client(self) -> LeakyClient:
        return LeakyClient(self._how)


@cache
def recorded(name: str) -> tuple[fed.Run, list[RecordedFrame], list[RecordedStep]]:
    make, options = SYSTEMS[name]
    return observed(make(), options)


def observed(
    algorithm: fed.Algorithm, options: Mapping[str, Any], changed: int | None = None
) -> tuple[fed.Run, list[RecordedFrame], list[RecordedStep]]:
    transport = fed.Recorded(fed.InMemory())
    run = fed.simulate(
        algorithm, network(changed), ROUNDS, transport=transport, seed=4, record_every=1, **options
    )
    return run, transport.frames, transport.steps


# (a) Only kinds and shapes of the schema.


def check_schema(run: fed.Run, frames: list[RecordedFrame]) -> None:
    """Every byte belongs to a message of the schema, and is counted."""
    schema, sizes = run.algorithm.schema, run.algorithm.sizes(run.net)
    total = up = 0
    for frame in frames:
        fields = schema[frame.message.kind]
        entries = [
            int(np.prod([sizes[s] if isinstance(s, str) else s for s in f.shape])) for f in fields
        ]
        assert len(frame.frame) == HEADER.size + 8 * sum(entries)
        assert list(frame.message.arrays) == [f.name for f in fields]
        assert frame.message.sender == frame.sender
        assert frame.message.round == frame.round
        links = set(run.net.links(frame.sender).tolist())
        assert set(frame.recipients) <= links
        total += len(frame.recipients)
        up += len(frame.recipients) * len(frame.frame) * (frame.sender < N)
    assert total > 0
    assert run.history["messages"][-1] == total
    assert run.history["bytes_up"][-1] == up


@pytest.mark.parametrize("name", SYSTEMS)
def test_bytes_are_those_of_the_schema_and_no_others(name: str) -> None:
    run, frames, _ = recorded(name)
    check_schema(run, frames)


def test_a_number_more_in_a_frame_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that got round the schema: a row's first number rides on every message."""
    pack = WireFormat.payload

    def stowaway(form: WireFormat, message: fed.Message) -> bytes:
        return pack(form, message) + network().models[0].terms[0]["X"][0, :1].tobytes()

    monkeypatch.setattr(WireFormat, "payload", stowaway)
    monkeypatch.setattr(WireFormat, "arrays", lambda form, kind, raw: {"w": np.frombuffer(raw)[:D]})
    run, frames, _ = observed(fed.FedADMM(), {})
    assert leaked(frames)
    with pytest.raises(AssertionError):
        check_schema(run, frames)


# (b) Canaries: the numbers of the rows are random doubles; none occurs in any message.


def leaked(frames: list[RecordedFrame]) -> bool:
    """Whether a number of anybody's rows, either sign, stands in a payload at any byte."""
    text = b"".join(frame.frame[HEADER.size :] for frame in frames)
    rows = [np.concatenate([t["X"].ravel(), t["y"]]) for m in network().models for t in m.terms]
    values = np.concatenate(rows)
    assert len(values) == N * ROWS * (D + 1)
    return any(np.float64(s * v).tobytes() in text for v in values for s in (1.0, -1.0))


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_number_of_a_row_leaves_a_client(name: str) -> None:
    assert not leaked(recorded(name)[1])


@pytest.mark.parametrize("how", ["row", "low bits"])
def test_a_leak_of_a_row_is_seen(how: str) -> None:
    assert leaked(observed(Leaky(how), {})[1])


# (c) Non-interference: what a client sends follows from its own rows and what it has got.


def replay(
    algorithm: fed.Algorithm,
    steps: list[RecordedStep],
    transport: Any,
    clients: range | list[int],
    changed: int | None,
) -> list[tuple[int, int, int, tuple[int, ...], bytes]]:
    """Give clients their inboxes again, and return what they send."""
    used = algorithm.network(network(changed))
    transport.start(Deployment(algorithm, used, Streams(4), ROUNDS))
    out = []
    try:
        for step in steps:
            if step.participant in clients:
                inbox = {step.participant: step.inbox}
                sent = transport.step(step.round, step.phase, inbox, {})
                for recipients, frame in sent.get(step.participant, ()):
                    out.append((step.round, step.phase, step.participant, tuple(recipients), frame))
    finally:
        transport.close()
    return out


def sent_by(frames: list[RecordedFrame], clients: range | list[int]) -> list[Any]:
    return [
        (f.round, f.phase, f.sender, f.recipients, f.frame) for f in frames if f.sender in clients
    ]


def uncrashed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without crashes: a client that comes back is another process."""
    return {key: value for key, value in options.items() if key != "crashes"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_anothers_rows_change_nothing_that_a_client_sends(name: str) -> None:
    make, options = SYSTEMS[name]
    _, frames, steps = observed(make(), uncrashed(options))
    for own in range(N):
        again = replay(make(), steps, fed.InMemory(), [own], changed=(own + 1) % N)
        assert sorted(again) == sorted(sent_by(frames, [own]))
        assert again
    # Its own rows do change it.
    other = replay(make(), steps, fed.InMemory(), [1], changed=1)
    assert sorted(other) != sorted(sent_by(frames, [1]))


@pytest.mark.parametrize("name", ["FedADMM, mini-batches", "FedADMM, inverse"])
def test_replies_of_fresh_processes_are_the_same(name: str) -> None:
    make, options = SYSTEMS[name]
    _, frames, steps = observed(make(), uncrashed(options))
    again = replay(make(), steps, fed.Processes(), range(N), changed=None)
    assert sorted(again) == sorted(sent_by(frames, range(N)))


def test_interference_is_seen_in_one_process_and_there_is_none_between_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    EVERYBODY[:] = network().models
    _, frames, steps = observed(Leaky("others"), {})
    EVERYBODY[:] = network(changed=0).models
    assert sorted(replay(Leaky("others"), steps, fed.InMemory(), [1], changed=0)) != sorted(
        sent_by(frames, [1])
    )
    # In a process of its own there is nothing of the others to be found.
    apart = [
        replay(Leaky("others"), steps, fed.Processes(), [1], changed=changed)
        for changed in (None, 0)
    ]
    EVERYBODY.clear()
    assert apart[0] == apart[1] != []


# (g) Who is absent sends nothing.


def check_absent(frames: list[RecordedFrame], present: np.ndarray) -> None:
    for frame in frames:
        if frame.sender < N:
            assert present[frame.round - 1, frame.sender], (frame.round, frame.sender)


@pytest.mark.parametrize("name", SYSTEMS)
def test_absent_clients_send_nothing(name: str) -> None:
    make, options = SYSTEMS[name]
    present = np.random.default_rng(0).random((ROUNDS, N)) < 0.5
    given = {**options, "availability": fed.Trace(present), "sampling": None}
    if name == "PrimalDual":
        with pytest.warns(fed.StabilityWarning):
            run, frames, steps = observed(make(), given)
    else:
        run, frames, steps = observed(make(), given)
    check_absent(frames, present)
    assert all(present[s.round - 1, s.participant] for s in steps if s.participant < N)
    active = run.history["active"]
    away = np.zeros_like(present)
    for crash in options.get("crashes", ()):
        away[crash.at - 1 : crash.back - 1, crash.client] = True
    assert active[1:].tolist() == (present & ~away).sum(axis=1).tolist()


def test_a_client_that_sends_while_absent_is_seen() -> None:
    run, frames, _ = observed(fed.FedADMM(), {})
    with pytest.raises(AssertionError):
        check_absent(frames, np.zeros((run.rounds, N), dtype=bool))


# In one process, too, clients can do nothing to each other.


class Greedy(fed.FedADMM):
    """FedADMM whose clients try to change what they have got and what they have sent."""

    def client(self) -> GreedyClient:
        return GreedyClient()


def test_nobody_can_change_what_another_gets() -> None:
    honest = fed.simulate(fed.FedADMM(), problem(), ROUNDS)
    greedy = fed.simulate(Greedy(), problem(), ROUNDS)
    np.testing.assert_array_equal(honest.w, greedy.w)


def test_a_recorded_run_is_the_run_and_forgets_the_last_one() -> None:
    transport = fed.Recorded(fed.InMemory())
    runs = [fed.simulate(fed.FedADMM(), problem(), 3, transport=t) for t in ("memory", transport)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    first = len(transport.frames)
    fed.simulate(fed.FedADMM(), problem(), 3, transport=transport)
    assert len(transport.frames) == first == 3 * N
    assert repr(transport) == "Recorded(15 frames)"
