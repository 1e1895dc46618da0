"""Rounds: who is there, what is late or lost, how a run ends, and networks of all sizes."""

from typing import Any

import numpy as np
import pytest
from _systems import clustered_rows, small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated.wire import header_of


def recorded(algorithm: fed.Algorithm, rounds: int, **options: Any) -> tuple[Any, fed.Recorded]:
    transport = fed.Recorded(fed.InMemory())
    run = fed.simulate(algorithm, small()[0], rounds, transport=transport, **options)
    return run, transport


def assert_finite(run: fed.Run) -> None:
    for name in run.history:
        assert np.isfinite(run.history[name]).all(), name
    assert np.isfinite(run.w).all()
    assert np.isfinite(run.models).all()


# Random streams.


def test_mini_batches_delays_and_losses_leave_availability_as_it_is() -> None:
    options: dict[str, Any] = {"availability": fed.Bernoulli(0.5), "record_every": 1, "seed": 7}
    owner = fed.FedADMM(exchange="owner")
    runs = [
        recorded(fed.FedADMM(), 60, **options)[0],
        recorded(fed.FedADMM(batch=2, decay=10.0), 60, **options)[0],
        recorded(owner, 60, delay=fed.Delay([0.5, 0.5]), loss=fed.Loss(0.2), **options)[0],
    ]
    active = [run.history["active"].tolist() for run in runs]
    assert active[0] == active[1] == active[2]
    assert len(set(active[0])) > 3
    options["seed"] = 8
    assert recorded(fed.FedADMM(), 60, **options)[0].history["active"].tolist() != active[0]


def test_delays_leave_losses_as_they_are() -> None:
    owner = fed.FedADMM(exchange="owner")
    lost = []
    for delay in (None, fed.Delay([1.0]), fed.Delay([0.0, 1.0])):
        run, transport = recorded(owner, 30, delay=delay, loss=fed.Loss(0.3))
        arrived = sorted(
            (header_of(f).round, header_of(f).sender, step.participant)
            for step in transport.steps
            for f in step.inbox
            if header_of(f).round < 25
        )
        lost.append(arrived)
        assert_finite(run)
    assert lost[0] == lost[1] == lost[2]


def test_the_order_of_clients_does_not_matter() -> None:
    problem, _ = small()
    order = np.array([3, 0, 5, 1, 4, 2])  # client order[k] becomes client k
    place = np.argsort(order)
    graph = gtv.EmpiricalGraph(6, place[problem.graph.edges], problem.graph.weights)
    _, _, X, y = clustered_rows(6, 2, 8, 3, 5)
    losses = [gtv.ZeroLoss() if i == 2 else gtv.SquaredLoss(X[i], y[i]) for i in order]
    other = gtv.GTVProblem(graph, losses, penalty="l2", lam=0.3)
    present = np.random.default_rng(0).random((50, 6)) < 0.6
    present_of = {"both": present, "owner": np.ones_like(present)}  # the larger number owns an edge
    for exchange, there in present_of.items():
        algorithm = fed.FedADMM(exchange=exchange)
        a = fed.simulate(algorithm, problem, 50, availability=fed.Trace(there))
        b = fed.simulate(algorithm, other, 50, availability=fed.Trace(there[:, order]))
        # Sums over neighbours are in another order: some roundings.
        np.testing.assert_allclose(b.w, a.w[order], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(a.history["bytes_up"], b.history["bytes_up"])


# Messages on their way.


@pytest.mark.parametrize("k", [0, 1, 2])
def test_messages_are_late_by_exactly_k_rounds(k: int) -> None:
    delay = fed.Delay([0.0] * k + [1.0])
    run, transport = recorded(fed.FedADMM(exchange="owner"), 12, delay=delay)
    links = {i: len(run.net.links(i)) for i in range(6)}
    own = {i: int((run.net.links(i) > i).sum()) for i in range(6)}
    for step in transport.steps:
        rounds = [header_of(frame).round for frame in step.inbox]
        if step.phase == 1:  # vectors of the first phase
            expected = [step.round - k] * links[step.participant]
        else:  # answers of the owners, from the second phase of the round before
            expected = [step.round - 1 - k] * own[step.participant]
        assert rounds == [r for r in expected if r >= 1]


def test_gradients_that_are_late_reach_the_phase_in_which_they_are_expected() -> None:
    algorithm = fed.FedADMM(absence="inverse", presence=1.0)
    delay = fed.Delay([0.0, 0.0, 1.0])
    _, transport = recorded(algorithm, 8, delay=delay)
    heard = [(s.round, s.phase, len(s.inbox)) for s in transport.steps if s.participant == 6]
    # A vector sent in round t is there in round t + 2, and the gradient in round t + 4.
    assert [h for h in heard if h[2]] == [(t, 2, 6) for t in (5, 6, 7, 8)]


def test_mail_waits_for_absent_clients_in_its_order() -> None:
    present = np.ones((8, 6), dtype=bool)
    present[2:5, 1] = False  # rounds 3, 4, 5
    _, transport = recorded(fed.FedADMM(), 8, availability=fed.Trace(present))
    inboxes = {s.round: s.inbox for s in transport.steps if s.participant == 1}
    assert sorted(inboxes) == [1, 2, 6, 7, 8]
    assert [header_of(f).round for f in inboxes[6]] == [2, 2, 3, 3, 4, 4, 5, 5]


def test_mail_to_crashed_clients_is_lost_and_not_counted_as_brought() -> None:
    crash = fed.Crash(1, 3, 6)
    run, transport = recorded(fed.FedADMM(), 8, crashes=[crash], record_every=1)
    inboxes = {s.round: s.inbox for s in transport.steps if s.participant == 1}
    assert sorted(inboxes) == [1, 2, 6, 7, 8]
    # What was sent in round 2 waited for round 3: lost, too.
    assert inboxes[6] == ()
    # Round 7: what its two neighbours have sent in round 6, when it asked; they hear it in 7.
    assert [header_of(f).round for f in inboxes[7]] == [6, 6]
    traffic = run.history["messages"], run.history["bytes_up"], run.history["bytes_down"]
    _, up, down = (np.diff(column) for column in traffic)
    own = 2 * (8 * 3 + 20)
    assert (up[2:5] - down[2:5]).tolist() == [own] * 3
    assert (up[[0, 1, 6, 7]] == down[[0, 1, 6, 7]]).all()


def test_bytes_follow_the_formula_of_the_algorithm() -> None:
    problem, _ = small()
    m, d = problem.graph.n_edges, 3
    run = fed.simulate(fed.FedADMM(), problem, 20, record_every=5)
    each = 2 * m * (8 * d + 20)
    assert run.history["bytes_up"].tolist() == [each * t for t in (0, 5, 10, 15, 20)]
    assert run.history["bytes_down"].tolist() == run.history["bytes_up"].tolist()


# How runs end.


class Interrupting(fed.FedADMM):
    """FedADMM in which Ctrl-C comes while a client computes, twice if need be."""

    def __init__(self, round_: int) -> None:
        super().__init__()
        self._round = round_

    def client(self) -> fed.ClientProgram:
        from gtvcvx.federated.algorithms._fedadmm_clients import EdgeClient

        when = self._round

        class Client(EdgeClient):
            def step(self, round_: int, inbox: fed.Inbox) -> Any:
                if round_ == when and self._id == 3:
                    raise KeyboardInterrupt
                return super().step(round_, inbox)

        return Client()


@pytest.mark.parametrize("round_", [1, 2, 7])
def test_ctrl_c_gives_the_state_then(round_: int) -> None:
    run = fed.simulate(Interrupting(round_), small()[0], 50, record_every=5)
    assert (run.status, run.message) == ("interrupted", f"Ctrl-C in round {round_}")
    assert run.rounds == run.history["round"][-1] == round_
    assert_finite(run)
    assert run.certificate(search=False).gap >= 0


def test_ctrl_c_again_gives_the_last_record() -> None:
    class Twice(Interrupting):
        stopped = False

        def point(self, net: fed.Network, reports: Any) -> Any:
            if len(reports) and reports[0].through >= 5:
                raise KeyboardInterrupt
            return super().point(net, reports)

    run = fed.simulate(Twice(7), small()[0], 50, record_every=5)
    assert (run.status, run.history["round"].tolist()) == ("interrupted", [0, 5])
    assert_finite(run)


def test_ctrl_c_in_a_callback_adds_no_record_of_the_same_round() -> None:
    def callback(progress: Any) -> None:
        if progress.round == 10:
            raise KeyboardInterrupt

    run = fed.simulate(fed.FedADMM(), small()[0], 50, record_every=5, callback=callback)
    assert run.history["round"].tolist() == [0, 5, 10]
    assert run.status == "interrupted"


def test_a_callback_and_the_clock_stop_a_run() -> None:
    run = fed.simulate(
        fed.FedADMM(), small()[0], 50, record_every=5, callback=lambda p: p.round == 10
    )
    assert (run.status, run.rounds) == ("interrupted", 10)
    run = fed.simulate(fed.FedADMM(), small()[0], 10**6, time_limit=1e-9)
    assert (run.status, run.rounds) == ("time_limit", 1)
    assert_finite(run)


def test_divergence_is_told_with_round_and_steps_and_no_nan_is_returned() -> None:
    algorithm = fed.FedADMM(step="printed", scale=1e5)
    run = fed.simulate(algorithm, small()[0], 400, record_every=1)
    assert run.status == "diverged"
    assert run.message.startswith(f"round {run.rounds}: ")
    assert "steps eta from" in run.message
    assert_finite(run)
    assert run.certificate().status == "UNPROVED"


# Networks of all sizes.


def chain(losses: list[Any], lam: float = 0.2, edges: Any = None) -> gtv.GTVProblem:
    n = len(losses)
    ends = [(i, i + 1) for i in range(n - 1)] if edges is None else edges
    return gtv.GTVProblem(gtv.EmpiricalGraph(n, ends), losses, penalty="l1", lam=lam)


def points(values: list[float]) -> list[gtv.Loss]:
    return [gtv.SquaredLoss([[1.0]], [v]) for v in values]


CASES: dict[str, tuple[fed.Algorithm, gtv.GTVProblem, int]] = {
    "one client": (fed.FedADMM(), chain(points([3.0])), 60),
    "no links": (fed.FedADMM(), chain(points([3.0, 1.0]), edges=[]), 60),
    "no links, Algorithm 1": (fed.PrimalDual(), chain(points([3.0, 1.0]), edges=[]), 3),
    "three": (fed.FedADMM(), chain(points([0.0, 1.0, 5.0])), 200),
    "without data": (
        fed.FedADMM(),
        chain([*points([1.0]), gtv.ZeroLoss(), gtv.ZeroLoss(), *points([2.0])]),
        3000,
    ),
    "CVXPY": (
        fed.FedADMM(step="exact"),
        chain([gtv.CvxpyLoss(lambda w: (w[0] - 1.0) ** 2, 1), *points([2.0])]),
        60,
    ),
    "raw units": (
        fed.FedADMM(rho=2e6),
        chain([gtv.SquaredLoss([[1e3]], [v]) for v in (1e6, 2e6, 9e6)], lam=1e6),
        400,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_small_networks_reach_their_optimum(name: str) -> None:
    algorithm, problem, rounds = CASES[name]
    run = fed.simulate(algorithm, problem, rounds)
    assert_finite(run)
    value = problem.solve(rtol=1e-10).value
    np.testing.assert_allclose(run.history["value"][-1], value, rtol=1e-7, atol=1e-12)
    assert -1e-12 * (1.0 + value) <= run.history["gap"][-1] <= 1e-7 * (1.0 + value)
    # What a loss of CVXPY's says cannot be proved; its gap can be seen.
    assert run.certificate(search=False).status == ("UNPROVED" if name == "CVXPY" else "CERTIFIED")


def test_a_thousand_clients_with_faults() -> None:
    n = 1000
    problem = chain(points(list(np.random.default_rng(0).standard_normal(n))))
    crashes = [fed.Crash(i, 3, 5) for i in range(0, n, 50)]
    given: dict[str, Any] = {"availability": fed.Bernoulli(0.7), "crashes": crashes}
    runs = [fed.simulate(fed.FedADMM(), problem, 10, seed=2, **given) for _ in range(2)]
    assert_finite(runs[0])
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert 600 < runs[0].history["active"][-1] < 800


@pytest.mark.parametrize(
    ("crash", "text"),
    [
        (fed.Crash(6, 1), "client 6 does not exist, there are 6"),
        ("no", "Crash objects are expected"),
    ],
)
def test_crashes_of_nobody_are_refused(crash: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        fed.simulate(fed.FedADMM(), small()[0], 3, crashes=[crash])


def test_a_start_at_the_optimum_is_no_divergence() -> None:
    r = np.random.default_rng(2)
    truth = r.standard_normal(3)
    X = r.standard_normal((4, 9, 3))
    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)]),
        [gtv.SquaredLoss(rows, rows @ truth) for rows in X],
        penalty="squared",
        lam=0.3,
    )
    run = fed.simulate(fed.FedRelax(initial=truth, noise=1e-3), problem, 20)
    assert run.status == "finished"
    assert run.history["value"][0] < 1e-25


def test_what_is_still_on_its_way_at_the_end_was_not_brought() -> None:
    problem, _ = small()
    run = fed.simulate(fed.FedADMM(exchange="owner"), problem, 5, delay=fed.Delay([0.0] * 9 + [1]))
    assert run.history["bytes_up"][-1] > 0
    assert run.history["bytes_down"][-1] == 0
