"""Both apps on a Flower of forty lines: the result is that of `simulate`, to the last bit."""

import sys
from types import SimpleNamespace

import _fake_flower
import numpy as np
import pytest
from _systems import clustered_rows, small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated import flower
from gtvcvx.federated.wire import header_of

ROUNDS = 30
PROBLEM, _ = small()
NET = fed.Network.from_problem(PROBLEM)
_, _, X, Y = clustered_rows(6, 2, 8, 3, 5)
ADMM = fed.FedADMM(rho=1.0)


def load_loss(i):
    """Rows of the clients of `small`, of which number 2 has none."""
    return gtv.ZeroLoss() if i == 2 else gtv.SquaredLoss(X[i], Y[i])


@pytest.fixture(autouse=True)
def _flower(monkeypatch):
    _fake_flower.install(monkeypatch)


def run(algorithm=ADMM, rounds=ROUNDS, edges=NET, partitions=(3, 1, 0, 2, 5, 4), **options):
    """Return the outcome of both apps, and the grid."""
    grid_options = {k: options.pop(k) for k in ("fate", "connected") if k in options}
    loader = options.pop("load_loss", load_loss)
    client = flower.client_app(loader, options.pop("of_clients", algorithm), **options.pop("c", {}))
    grid = _fake_flower.Grid(client, list(partitions), **grid_options)
    outcomes = []
    server = flower.server_app(
        algorithm, edges, rounds, done=outcomes.append, **{"timeout": 5, "wait": 1e-3, **options}
    )
    server.function(grid, SimpleNamespace(run_config={"num-server-rounds": 2}))
    return outcomes[0], grid


def simulated(algorithm=ADMM, **options):
    return fed.simulate(algorithm, NET, ROUNDS, record_every=ROUNDS, **options)


ALGORITHMS = {
    "decentralized": ADMM,
    "owner": fed.FedADMM(rho=1.0, exchange="owner"),
    "average": fed.FedADMM(rho=1.0, output="tail", step="linearized"),
    "with a server": fed.FedADMM(rho=1.0, absence="inverse"),
    "primal-dual": fed.PrimalDual(),
    "FedAvg": fed.FedAvg(lam=0.3),
    "FedSGD": fed.FedSGD(),
    "FedRelax in turn": fed.FedRelax(lam=0.1, order="colour"),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_as_in_memory(name):
    algorithm = ALGORITHMS[name]
    outcome, _ = run(algorithm)
    expected = simulated(algorithm)
    np.testing.assert_array_equal(outcome.w, expected.w, strict=True)
    assert outcome.absences == []
    for column in ("bytes_up", "bytes_down", "messages"):
        assert getattr(outcome, column) == expected.history[column][-1]
    seen = outcome.with_data(PROBLEM)
    assert seen.history["gap"][-1] == expected.history["gap"][-1]
    np.testing.assert_array_equal(seen.u, expected.u, strict=True)
    assert seen.certificate().status == expected.certificate().status


def test_random_numbers_are_those_of_simulate_if_the_server_may_know_them():
    algorithm = fed.FedADMM(rho=1.0, batch=3, decay=10.0)
    expected = simulated(algorithm, seed=4).w
    np.testing.assert_array_equal(run(algorithm, seed=4)[0].w, expected, strict=True)
    own, grid = run(algorithm)
    assert not np.array_equal(own.w, expected)
    (start, *_) = [r["start"] for r in grid.requests if "start" in r]
    assert b'["streams", null]' in start


FAULTS = ["lost", "unanswered", "error", "late", "overtaken"]


@pytest.mark.parametrize("fault", [*FAULTS, "all"])
@pytest.mark.filterwarnings("ignore::gtvcvx.federated.flower.AbsenceWarning")
def test_whatever_happens_to_an_answer_its_client_was_absent(fault):
    rng = np.random.default_rng(FAULTS.index(fault) if fault in FAULTS else 9)
    there = rng.random((ROUNDS, 6)) < 0.7
    kinds = rng.choice(FAULTS, there.shape)

    def fate(partition, k):
        if not 1 <= k <= ROUNDS or there[k - 1, partition]:
            return "twice" if k % 3 == 0 else "ok"  # a copy changes nothing
        return kinds[k - 1, partition] if fault == "all" else fault

    outcome, grid = run(fate=fate)
    expected = simulated(availability=fed.Trace(there))
    np.testing.assert_array_equal(outcome.w, expected.w, strict=True)
    assert {(a.round, a.client) for a in outcome.absences} == {
        (int(t) + 1, int(i)) for t, i in np.argwhere(~there)
    }
    assert outcome.bytes_up == expected.history["bytes_up"][-1]
    assert outcome.with_data(NET).history["active"][-1] == there[-1].sum()
    assert len(grid.requests) == 6 * (ROUNDS + 2)


def test_frames_come_once_and_in_the_order_of_their_senders():
    _, grid = run()
    steps = [r["frames"] for r in grid.requests if r["ask"] == "step"]
    assert sum(map(len, steps)) == 10 * (ROUNDS - 1)
    for frames in steps:
        senders = [header_of(frame).sender for frame in frames]
        assert senders == sorted(set(senders))


def test_a_client_that_never_takes_part_stays_at_its_start():
    with pytest.warns(flower.AbsenceWarning, match=r"client 1 .* none in 5 s"):
        outcome, _ = run(fate=lambda p, k: "lost" if p == 1 and 1 <= k <= ROUNDS else "ok")
    there = np.ones((ROUNDS, 6), dtype=bool)
    there[:, 1] = False
    expected = simulated(availability=fed.Trace(there)).w
    np.testing.assert_array_equal(outcome.w, expected, strict=True)
    assert not outcome.w[1].any()


def test_a_node_that_has_forgotten_everything_comes_back_as_after_a_crash():
    with pytest.warns(flower.AbsenceWarning, match=r"client 4 counts .* round 7: it has forgotten"):
        outcome, grid = run(fate=lambda p, k: "amnesia" if (p, k) == (4, 7) else "ok")
    expected = simulated(crashes=[fed.Crash(client=4, at=7, back=8)])
    np.testing.assert_array_equal(outcome.w, expected.w, strict=True)
    assert [(a.round, a.client) for a in outcome.absences] == [(7, 4)]
    (anew,) = [r for r in grid.requests if "start" in r and r["round"] > 1]
    assert (anew["round"], anew["frames"]) == (8, [])


def test_nodes_that_come_late_or_go_are_absent():
    def connected(grid):
        nodes = list(grid.contexts)
        # The first look is that of the wait, which is short here.
        first, last = (nodes[0] if grid.calls > 6 else None), nodes[1]
        away = 10 < grid.calls <= 15
        return [n for n in nodes[2:] + [first] + ([] if away else [last]) if n is not None]

    with pytest.warns(flower.AbsenceWarning, match="no node for it"):
        outcome, _ = run(connected=connected)
    away = {(a.round, a.client) for a in outcome.absences}
    there = np.ones((ROUNDS, 6), dtype=bool)
    for t, i in away:
        there[t - 1, i] = False
    assert {i for _, i in away} == {1, 3}
    assert not there.all(axis=0)[[1, 3]].any()
    expected = simulated(availability=fed.Trace(there))
    np.testing.assert_array_equal(outcome.w, expected.w, strict=True)


def test_a_new_node_may_take_over_a_client_whose_node_is_gone():
    def connected(grid):
        gone = next(n for n in grid.contexts if grid.partition(n) == 5)
        if grid.calls == 12:
            grid.add(77, 5)
        return [n for n in grid.contexts if n != gone or grid.calls < 12]

    with pytest.warns(flower.AbsenceWarning, match="forgotten"):
        outcome, _ = run(connected=connected)
    assert len(outcome.absences) == 1
    assert np.isfinite(outcome.w).all()


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        ((0, 1, 2, 3, 4, 4), "client 4: two nodes"),
        ((0, 1, 2, 3, 4, 6), "says that it is client 6; there are 0 to 5"),
    ],
)
def test_wrong_partitions_are_refused(partitions, text):
    with pytest.raises(ValueError, match=text):
        run(partitions=partitions, load_loss=planted)


def test_a_node_without_a_partition_is_told_how_to_get_one():
    with pytest.raises(RuntimeError, match="--node-config"):
        run(partitions=[None] * 6)
    with pytest.warns(flower.AbsenceWarning, match="no node for it; node .*--node-config"):
        outcome, _ = run(rounds=2, partitions=[0, 1, 2, 3, 4, None])
    assert outcome.net.n_clients == 6
    assert sorted(outcome.models) == [0, 1, 2, 3, 4]
    outcome, _ = run(c={"number_of": lambda context: (context.node_config["partition-id"] + 2) % 6})
    np.testing.assert_array_equal(outcome.w, simulated().w)


def test_losses_of_different_dimensions_are_refused():
    def wrong(i):
        return gtv.SquaredLoss(X[i, :, :2], Y[i]) if i == 5 else load_loss(i)

    with pytest.raises(ValueError, match=r"client . has d = ., and client . has d = ."):
        run(load_loss=wrong)


def test_nobody_answers():
    with (
        pytest.warns(flower.AbsenceWarning),
        pytest.raises(RuntimeError, match="first round: <class 'OSError'>:<'no disk'>"),
    ):
        run(fate=lambda p, k: "error" if k else "ok")


def test_client_and_server_must_have_the_same_algorithm():
    with (
        pytest.warns(flower.AbsenceWarning),
        pytest.raises(RuntimeError, match=r"the server runs FedADMM.*the client FedADMM"),
    ):
        run(of_clients=fed.FedADMM(rho=2.0))


def test_models_that_are_not_told_stay_with_the_clients():
    kept = {}
    outcome, grid = run(c={"tell": False, "keep": kept.__setitem__})
    expected = simulated().w
    for i in range(6):
        np.testing.assert_array_equal(kept[i], expected[i], strict=True)
    assert outcome.models == {}
    assert not any("report" in answer for answer in grid.answers)
    with pytest.raises(ValueError, match="client 0, client 1"):
        _ = outcome.w


def test_who_does_not_tell_at_first_is_asked_again():
    fate = {(1, ROUNDS + 1): "lost", (1, ROUNDS + 2): "error"}
    outcome, _ = run(fate=lambda p, k: fate.get((p, k), "ok"))
    np.testing.assert_array_equal(outcome.w, simulated().w)
    outcome, _ = run(fate=lambda p, k: "lost" if p == 1 and k > ROUNDS else "ok")
    assert sorted(outcome.models) == [0, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="client 1 did not tell"):
        outcome.with_data(NET)


def planted(i):
    """Rows whose every number is found nowhere else."""
    rng = np.random.default_rng(i)
    return gtv.SquaredLoss(rng.standard_normal((8, 3)), rng.standard_normal(8))


def test_rows_are_neither_in_messages_nor_in_the_state():
    outcome, grid = run(load_loss=planted)
    assert np.abs(outcome.w).max() > 0
    carried = b"".join(
        piece
        for record in [*grid.requests, *grid.answers]
        for value in record.values()
        for piece in (value if isinstance(value, list) else [value])
        if isinstance(piece, bytes)
    )
    states = [context.state["gtvcvx"] for context in grid.contexts.values()]
    kept = b"".join(state["before"] + state["after"] for state in states)
    assert len(kept) > 6000
    for i in range(6):
        data = np.random.default_rng(i).standard_normal(32)
        for number in data:
            assert number.tobytes() not in carried
            assert number.tobytes() not in kept
    w = outcome.w[0].tobytes()
    assert w in carried
    assert w in kept


def test_a_client_is_told_its_own_links_alone():
    _, grid = run()
    starts = {}
    for request in grid.requests:
        if "start" in request:
            told = flower._client.unpacked(request["start"], fed.algorithms._fedadmm_clients)
            starts[told["view"]["id"]] = told["view"]
    assert sorted(starts) == list(range(6))
    assert starts[0]["links"].tolist() == [1, 4]
    assert starts[0]["weights"].tolist() == [1.0, 0.3]
    assert starts[5]["links"].tolist() == []
    assert "model" not in starts[0]


def test_the_server_takes_no_data_of_a_network():
    net = flower._apps.without_data(NET, 3)
    hidden = net.models[0]
    asked = [
        *(lambda: hidden.value(X[0, 0]), lambda: hidden.gradient(X[0, 0])),
        *(lambda: hidden.prox(X[0, 0], 1.0), lambda: hidden.lipschitz, lambda: hidden.n_rows),
    ]
    for question in asked:
        with pytest.raises(ValueError, match="does not have the clients' data"):
            question()
    assert vars(hidden) == {"dim": 3}
    assert net.source.value(np.ones((6, 3))) == 0.0
    assert (net.source.lam, net.source.penalty.name) == (0.3, "l2")


def test_what_needs_data_is_not_made_up():
    algorithm = fed.IFCA(2)
    outcome, _ = run(algorithm, seed=0)
    with pytest.raises(ValueError, match="with_data"):
        _ = outcome.w
    expected = simulated(algorithm).w
    np.testing.assert_array_equal(outcome.with_data(NET).w, expected, strict=True)


def test_edges_in_other_words():
    algorithm = fed.FedADMM(lam=0.3, penalty="l2", half=False)
    expected = fed.simulate(algorithm, fed.Network(NET.models, PROBLEM.graph), 5).w
    assert np.array_equal(run(algorithm, 5, PROBLEM.graph)[0].w, expected)
    path = gtv.EmpiricalGraph(6, [(k, k + 1) for k in range(5)])
    outcome, _ = run(algorithm, 5, path.edges.tolist())
    assert np.array_equal(outcome.w, fed.simulate(algorithm, fed.Network(NET.models, path), 5).w)
    assert run(algorithm, None, 6)[0].rounds == 2


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((ADMM, NET, 0), {}, "rounds"),
        ((ADMM, NET, True), {}, "rounds"),
        ((ADMM, NET, 5), {"timeout": 0}, "timeout"),
        ((ADMM, NET, 5), {"wait": None}, "wait"),
        (("FedADMM", NET, 5), {}, "algorithm"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        flower.server_app(*arguments, **options)


def test_private_algorithms_are_refused_as_lost_releases_cannot_be_counted():
    algorithm = fed.FedADMM(rho=1.0)
    algorithm.privacy = None
    flower.client_app(load_loss, algorithm)
    algorithm.privacy = object()
    with pytest.raises(ValueError, match="with privacy is for simulate alone"):
        flower.client_app(load_loss, algorithm)
    with pytest.raises(ValueError, match="with privacy is for simulate alone"):
        flower.server_app(algorithm, NET, 5)


def test_rounds_must_be_told_somewhere():
    server = flower.server_app(ADMM, NET)
    with pytest.raises(ValueError, match="num-server-rounds"):
        server.function(None, SimpleNamespace(run_config={}))


def test_a_loader_must_give_a_loss():
    with (
        pytest.warns(flower.AbsenceWarning),
        pytest.raises(RuntimeError, match="load_loss: a loss or a model is expected, got 'rows'"),
    ):
        run(load_loss=lambda i: "rows" if i == 0 else load_loss(i), fate=only_client_0)


def only_client_0(partition, k):
    return "ok" if partition == 0 or k == 0 else "lost"


def test_the_links_of_the_run_are_asked_for():
    outcome, _ = run(rounds=2)
    with pytest.raises(ValueError, match="links of the run"):
        outcome.with_data(fed.Network(NET.models, gtv.EmpiricalGraph(6, [(0, 1)])))


def test_without_flower_the_extra_is_named(monkeypatch):
    for name in ("app", "clientapp", "serverapp"):
        monkeypatch.setitem(sys.modules, f"flwr.{name}", None)
    match = r'need flwr: .* extra \'flower\' \(pip install "gtvcvx\[flower\]"\)'
    with pytest.raises(ImportError, match=match):
        flower.client_app(load_loss, ADMM)
    with pytest.raises(ImportError, match=match):
        flower.server_app(ADMM, NET, 5)


@pytest.mark.parametrize(
    ("tampered", "text"),
    [
        ({"frames": [b"nonsense"], "counts": [1], "to": [0]}, "refused: truncated frame"),
        ({"frames": []}, "refused: 'to'"),
        ({"to": [1], "counts": [1], "frames": ["text"]}, "refused"),
    ],
)
def test_an_answer_that_is_refused_is_no_answer(monkeypatch, tampered, text):
    honest = flower._client.Client.answer

    def dishonest(self, number, request, state):
        record, kept = honest(self, number, request, state)
        return (tampered if number == 4 and request.get("round") == 9 else record), kept

    monkeypatch.setattr(flower._client.Client, "answer", dishonest)
    there = np.ones((ROUNDS, 6), dtype=bool)
    there[8, 4] = False
    with pytest.warns(flower.AbsenceWarning, match=text):
        outcome, _ = run()
    expected = simulated(availability=fed.Trace(there)).w
    np.testing.assert_array_equal(outcome.w, expected, strict=True)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"w": np.zeros(2), "flows": None}, r"shapes .* are expected, got \[\(2,\)\]"),
        ({"w": np.zeros(3), "flows": np.zeros((1, 3))}, "shapes"),
        ({"flows": None}, "missing"),
        ({"w": 3.0}, "shape"),
    ],
)
def test_a_model_of_another_shape_is_refused(monkeypatch, told, text):
    honest = flower._client.Client._report

    def report(self, number, participant):
        packed = flower._client.packed(told)
        return {"report": packed} if number == 0 else honest(self, number, participant)

    monkeypatch.setattr(flower._client.Client, "_report", report)
    with pytest.warns(flower.AbsenceWarning, match=f"client 0 .* its model is refused: .*{text}"):
        outcome, _ = run(rounds=1)
    assert sorted(outcome.models) == [1, 2, 3, 4, 5]


def test_a_run_that_diverges_has_no_models():
    algorithm = fed.FedADMM(rho=1.0, step="printed", scale=1e6)
    outcome, _ = run(algorithm, rounds=100)
    with pytest.raises(ValueError, match="diverged"):
        _ = outcome.w
