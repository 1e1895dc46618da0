"""Misuse is refused by name: wrong kinds of arguments, programs that answer with anything."""

from typing import Any

import numpy as np
import pytest
from _systems import small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated.algorithms._fedadmm_clients import EdgeClient

NET = fed.Network.from_problem(small()[0])


def run(**options: Any) -> fed.Run:
    given = {"algorithm": fed.FedADMM(), "net": NET, "rounds": 2, **options}
    return fed.simulate(given.pop("algorithm"), given.pop("net"), given.pop("rounds"), **given)


@pytest.mark.parametrize(
    "name", ["availability", "sampling", "delay", "loss", "crashes", "transport", "callback"]
)
@pytest.mark.parametrize("value", [0.5, 3, [0.5], np.ones((2, 2)), fed.InMemory])
def test_arguments_of_another_kind_are_named(name: str, value: Any) -> None:
    if name == "callback" and callable(value):
        return
    with pytest.raises(TypeError, match=f"^{name}: "):
        run(**{name: value})


@pytest.mark.parametrize("value", ["memory", None, fed.InMemory])
def test_a_record_of_no_transport_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^transport: "):
        fed.Recorded(value)


@pytest.mark.parametrize(
    ("first", "second"), [((5, 20), (10, 15)), ((5, 10), (10, 12)), ((5, None), (9, 12))]
)
def test_a_client_that_is_away_cannot_crash(first: Any, second: Any) -> None:
    crashes = [fed.Crash(1, *second), fed.Crash(1, *first), fed.Crash(0, 3, 30)]
    with pytest.raises(ValueError, match="crashes: client 1 crashes in round"):
        run(crashes=crashes)


def test_a_client_may_crash_again_when_it_is_back() -> None:
    assert run(crashes=[fed.Crash(1, 2, 4), fed.Crash(1, 5, 6)], rounds=7).status == "finished"


@pytest.mark.parametrize("transport", [fed.InMemory(), fed.Processes()])
def test_a_transport_carries_one_run_at_a_time(transport: Any) -> None:
    net = fed.Network.star([gtv.SquaredLoss([[1.0]], [1.0])])

    def inner(_: Any) -> None:
        run(algorithm=fed.FedAvg(1.0), net=net, transport=transport)

    with pytest.raises(RuntimeError, match="carries another run"):
        run(algorithm=fed.FedAvg(1.0), net=net, transport=transport, callback=inner)
    # And the next one afterwards.
    assert run(algorithm=fed.FedAvg(1.0), net=net, transport=transport).status == "finished"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fed.ClusteredFedAvg(steps=None), "^steps: "),  # type: ignore[arg-type]
        (lambda: fed.EdgeTests(ridge="x"), "^ridge: "),  # type: ignore[arg-type]
        (lambda: fed.EdgeTests(ridge=np.nan), "^ridge: "),
    ],
)
def test_parameters_of_algorithms_are_named(make: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_the_server_of_inverse_weights_wants_a_graph_of_clients() -> None:
    star = fed.Network.star([gtv.SquaredLoss([[1.0]], [1.0])] * 3)
    with pytest.raises(ValueError, match=r"^absence: 'inverse' brings its own server"):
        run(algorithm=fed.FedADMM(0.1, absence="inverse"), net=star)
    assert star.peers is None
    with pytest.raises(ValueError, match=r"^presence: one probability for each of"):
        run(algorithm=fed.FedADMM(absence="inverse", presence=[0.5, 0.5]))


# Programs of one's own.


class Program(fed.ClientProgram):
    """Sends and reports what it is told to."""

    out: Any
    state: Any

    def start(self, view: fed.View) -> None:
        self.view, self.w = view, np.zeros(view.dim)

    def step(self, round_: int, inbox: fed.Inbox) -> Any:
        return self.out(self) if callable(self.out) else self.out

    def report(self) -> Any:
        return fed.Report(self.w) if self.state is None else self.state


class Custom(fed.Algorithm):
    """Runs a program as it is."""

    schema = fed.Schema({"m": (fed.Field("w"),)})

    def __init__(self, out: Any = None, state: Any = None) -> None:
        self.out, self.state = out, state

    def client(self) -> fed.ClientProgram:
        program = Program()
        program.out, program.state = {} if self.out is None else self.out, self.state
        return program

    def problem(self, net: fed.Network) -> None:
        return None


def to_first(kind: Any, arrays: Any, key: Any = int) -> Any:
    return lambda program: {key(program.view.links[0]): fed.Message(kind, arrays)}


W = np.zeros(NET.dim)


@pytest.mark.parametrize(
    "out",
    [
        lambda _: None,
        [1],
        "abc",
        5,
        lambda program: {int(program.view.links[0]): 3},
        lambda program: {program.view.id: fed.Message("m", {"w": W})},
        to_first([], {"w": W}),
        to_first("m", None),
        to_first("m", [W]),
        to_first("m", {"w": W}, float),
        to_first("m", {"w": W.astype(np.float32)}),
        to_first("m", {"w": W.astype(object)}),
    ],
)
def test_programs_that_send_anything_are_named(out: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^client .*: round 1: "):
        run(algorithm=Custom(out))


@pytest.mark.parametrize(
    "state",
    [
        5,
        W,
        *(fed.Report(w) for w in (None, "ab", np.zeros(NET.dim + 1), np.zeros((1, NET.dim)), 0.0)),  # type: ignore[arg-type]
        fed.Report(W.astype(complex)),
        fed.Report(W, np.zeros(5)),
    ],
)
def test_programs_that_report_anything_are_named(state: Any) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=r"^client .*: (report: |a Report is expected)"
    ):
        run(algorithm=Custom(state=state))


class Writing(Program):
    """Writes into what it is told."""

    def start(self, view: fed.View) -> None:
        super().start(view)
        self.w = view.parameters["start"]
        self.w += 1.0


def test_what_all_are_told_is_no_channel_between_them() -> None:
    class Told(Custom):
        start = np.zeros(NET.dim)

        def client(self) -> fed.ClientProgram:
            program = Writing()
            program.out, program.state = {}, None
            return program

        def parameters(self, net: fed.Network, i: int) -> dict[str, Any]:
            return {"start": self.start}

    assert (run(algorithm=Told()).w == 1.0).all()


LOSS, PAIR = gtv.SquaredLoss([[1.0]], [1.0]), gtv.EmpiricalGraph(2, [(0, 1)])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fed.Network([LOSS], "g"), "^graph: "),  # type: ignore[arg-type]
        (lambda: fed.Network([LOSS], PAIR, "1"), "^n_servers: "),  # type: ignore[arg-type]
        (lambda: fed.Network([LOSS], PAIR, 0.5), "^n_servers: "),  # type: ignore[arg-type]
        (lambda: fed.Network(3, PAIR), "^models: "),  # type: ignore[arg-type]
        (lambda: fed.Network.servers(3, [[LOSS]]), "^graph: "),  # type: ignore[arg-type]
        (lambda: fed.Network.servers(PAIR, [LOSS, LOSS]), "^clients_of: "),  # type: ignore[list-item]
    ],
)
def test_networks_of_anything_are_refused(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make()


def test_multipliers_that_overflow_end_a_run_as_diverged() -> None:
    class Overflowing(fed.FedADMM):
        def client(self) -> EdgeClient:
            return OverflowingClient()

    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, [gtv.PointLoss([1.0]), gtv.PointLoss([2.0])], "l2", 0.1)
    run = fed.simulate(Overflowing(), problem, 9)
    assert run.status == "diverged"
    assert "multiplier" in run.message
    assert np.isfinite(run.w).all()


class OverflowingClient(EdgeClient):
    def report(self) -> fed.Report:
        state = super().report()
        assert state.flows is not None
        overflowing = np.inf if state.through > 3 else 1.0
        return fed.Report(state.w, (state.flows + 1.0) * overflowing, state.through)
