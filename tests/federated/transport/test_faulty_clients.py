"""Clients that break the rules, in real processes: each is named, and the run goes on."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from _faulty import FaultyClient
from _systems import clustered_rows

import gtvcvx as gtv
from gtvcvx import federated as fed

# What a client does, and the words by which it is told.
REFUSED = {
    "killed": "its process has ended",
    "foreign": "a frame in the name of participant 0",
    "kind": "a frame of kind 99, which the schema does not have",
    "length": "truncated or overlong frame: 'theta' has 24 bytes, 7 are announced, 24 are there",
    "cut": "truncated or overlong frame: 'theta' has 24 bytes, 24 are announced, 21 are there",
    "no_header": "truncated frame: 5 bytes, a header has 20",
    "no_link": "it has no link to participant 77",
    "half_body": "truncated: 44 bytes are announced, 41 are there",
    "more_body": "truncated: 4 bytes are announced, 0 are there",
    "half_record": "truncated record: 40 bytes are announced, 13 are there",
    "huge": "a record announces 1152921504606846976 bytes, 332 at most are possible",
    "garbage": "a record of kind 128 is none that may come here",
    "json": "an error that cannot be read",
    "state": "truncated: 48 bytes are announced, 40 are there",
}
# What is noticed, or not, and does no harm.
HARMLESS = ("slow", "twice", "ahead")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let clients' processes import the programs of this folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return iter([None])


class Faulty(fed.FedADMM):
    """FedADMM with some clients that misbehave: what, and from which round on."""

    def __init__(self, plan: dict[int, tuple[str, int]]) -> None:
        super().__init__()
        self._plan = plan

    def client(self) -> FaultyClient:
        return FaultyClient(self._plan)


def ring(n: int) -> gtv.GTVProblem:
    _, _, X, y = clustered_rows(n, 2, 8, 3, 5)
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n if n > 2 else 1)])
    return gtv.GTVProblem(graph, losses, penalty="l2", lam=0.3)


def test_who_breaks_the_rules_is_cut_off_and_named_and_the_run_goes_on() -> None:
    names = [*REFUSED, *HARMLESS]
    plan = {i: (name, 3) for i, name in enumerate(names)}
    problem = ring(len(names) + 1)
    with pytest.warns(fed.ClientLostWarning) as caught:
        run = fed.simulate(Faulty(plan), problem, 6, transport="processes", record_every=3)
    said = {int(str(w.message).split(":")[0].split()[1]): str(w.message) for w in caught}
    assert len(caught) == len(said)
    assert {names[i]: text for i, text in said.items()} == {
        name: f"client {i}: lost in round 3: {REFUSED[name]}; it counts as absent from now on"
        for i, name in enumerate(REFUSED)
    }
    assert (run.status, run.rounds) == ("finished", 6)
    # The others do what they do when these clients crash; who is late or says it twice is no worse.
    gone = [i for i, name in enumerate(names) if name in REFUSED and name != "state"]
    crashes = [fed.Crash(i, 3) for i in gone] + [fed.Crash(names.index("state"), 4)]
    same = fed.simulate(fed.FedADMM(), problem, 6, crashes=crashes, record_every=3)
    there = [i for i in range(problem.graph.n_nodes) if i not in said]
    np.testing.assert_array_equal(run.w[there], same.w[there])


def test_frames_of_other_rounds_are_dropped() -> None:
    problem = ring(3)
    recorded = fed.Recorded(fed.Processes())
    run = fed.simulate(Faulty({1: ("stale", 4)}), problem, 6, transport=recorded)
    assert run.status == "finished"
    rounds = {(f.round, f.message.round) for f in recorded.frames if f.sender == 1}
    assert rounds == {(t, t) for t in (1, 2, 3)}
    assert {f.round for f in recorded.frames if f.sender == 0} == set(range(1, 7))


def test_a_silent_client_costs_one_timeout() -> None:
    transport = fed.Processes(timeout=0.7)
    began: list[float] = []
    with pytest.warns(fed.ClientLostWarning, match=r"client 2: lost in round 3: no answer within"):
        run = fed.simulate(
            Faulty({2: ("silent", 3)}),
            ring(4),
            200,
            transport=transport,
            callback=lambda progress: began.append(time.monotonic()),
            record_every=200,
        )
    assert run.history["active"][-1] == 3
    # One timeout and 200 short rounds; on a machine that others use, less than a dozen timeouts.
    assert 0.7 < began[-1] - began[0] < 8.0


def test_who_is_lost_over_and_over_is_not_started_for_ever() -> None:
    # A new process takes its first step in the round in which it is back.
    transport = fed.Processes(restart=True)
    problem = ring(3)
    with pytest.warns(fed.ClientLostWarning) as caught:
        run = fed.simulate(Faulty({1: ("killed", -1)}), problem, 12, transport=transport)
    texts = [str(w.message) for w in caught]
    assert len(texts) == 6
    assert [("again" in text) for text in texts] == [True] * 5 + [False]
    assert run.status == "finished"


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("schema", fed.SchemaError, r"client 1: round 3: 'theta': w: shape \(3,\) is expected"),
        ("stranger", ValueError, "client 1: round 3: no link to participant 77"),
        ("division", fed.ClientError, "client 1: ZeroDivisionError: by nothing"),
        ("leaving", fed.ClientError, "client 1: SystemExit: enough"),
        ("file", fed.ClientError, "client 1: FileNotFoundError: no such file"),
    ],
)
def test_errors_of_programs_come_back(fault: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        fed.simulate(Faulty({1: (fault, 3)}), ring(2), 6, transport="processes")
    assert "In the process of client 1" in caught.value.__notes__[0]


@pytest.mark.parametrize("fault", ["schema", "stranger"])
def test_errors_of_programs_are_those_of_memory(fault: str) -> None:
    with pytest.raises(ValueError, match="client 1: round 3: "):
        fed.simulate(Faulty({1: (fault, 3)}), ring(2), 6)
    with pytest.raises(ZeroDivisionError) as caught:
        fed.simulate(Faulty({1: ("division", 3)}), ring(2), 6)
    assert caught.value.__notes__ == ["client 1: round 3"]
