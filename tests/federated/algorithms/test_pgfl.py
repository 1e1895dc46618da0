"""PGFL: the printed rounds, its bias, Theorem II, absent clients, faults."""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from _systems import Unreliable, served_network, served_rows

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.federated.algorithms._pgfl_clients import PGFLClient
from gtvcvx.federated.algorithms._pgfl_roles import roles_of
from gtvcvx.federated.algorithms._pgfl_server import PGFLServer, ServerReport
from gtvcvx.federated.algorithms._pgfl_stability import smallest_stable_rho

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
PATH = ((0, 1), (1, 2))
RIDGE = 0.1


@cache
def system(gamma: float = 0.15, noise: float = 0.1, clusters: int = 2) -> Any:
    """Three servers in a row, four clients each, d = 4."""
    labels, truth, X, y = served_rows(3, 4, clusters, 4, gamma, noise, 0)
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    return served_network(losses, labels, PATH, 3), labels, truth, X, y


def twin(
    rho: float, taus: Sequence[float], present: BoolArray, empty: str, edges: Any = PATH
) -> list[tuple[FloatArray, FloatArray]]:
    """Equations (4), (8) to (10), (5) on plain arrays: w (n, d) and w_qs (s, Q, d) by rounds."""
    _, labels, _, X, y = system()
    n, d, s = len(X), 4, 3
    q, server = labels.max() + 1, np.repeat(np.arange(s), n // s)
    share = np.eye(s)
    for i, j in edges:
        share[i, j] = share[j, i] = 1.0
    w, phi, models = np.zeros((n, d)), np.zeros((n, d)), np.zeros((s, q, d))
    out = [(w, models)]
    for tau, here in zip(taus, present, strict=True):
        w = w.copy()
        for k in np.flatnonzero(here):
            hessian = 2 * X[k].T @ X[k] / len(X[k]) + (2 * RIDGE / (n // s) + rho) * np.eye(d)
            linear = 2 * X[k].T @ y[k] / len(X[k]) + phi[k] + rho * models[server[k], labels[k]]
            w[k] = np.linalg.solve(hessian, linear)
        tilde, have = models.copy(), np.zeros((s, q), dtype=bool)
        for p in range(s):
            for r in range(q):
                own = here & (server == p) & (labels == r)
                if own.any():
                    tilde[p, r], have[p, r] = (w - phi / rho)[own].mean(axis=0), True
        hat = models.copy()
        for p in range(s):
            for r in range(q):
                who = (share[p] > 0) & (have[:, r] | (empty == "keep"))
                if who.any():
                    hat[p, r] = tilde[who, r].mean(axis=0)
        rest = (hat.sum(axis=1, keepdims=True) - hat) / (q - 1)
        models = (1 - tau) * hat + tau * rest
        phi = np.where(here[:, None], phi + rho * (models[server, labels] - w), phi)
        out.append((w, models))
    return out


def watched(
    algorithm: fed.PGFL, net: fed.Network, rounds: int, **options: Any
) -> tuple[fed.Run, list[tuple[FloatArray, FloatArray]]]:
    """Run, and return w and w_qs at the start and after every round."""
    seen: list[tuple[FloatArray, FloatArray]] = []
    point = type(algorithm).point

    class Watched(type(algorithm)):  # type: ignore[misc]
        def point(self, net: fed.Network, reports: Any) -> FloatArray:
            n = net.n_clients
            seen.append(
                (np.array([r.w for r in reports[:n]]), np.array([r.w for r in reports[n:]]))
            )
            return point(self, net, reports)

    algorithm.__class__ = Watched
    run = fed.simulate(algorithm, net, rounds, record_every=1, **options)
    return run, seen


@pytest.mark.parametrize("empty", ["keep", "skip"])
@pytest.mark.parametrize("tau", [0.0, 0.4, fed.GeometricTau()])
@pytest.mark.parametrize("chance", [1.0, 0.35])
def test_the_rounds_are_those_printed(empty: str, tau: Any, chance: float) -> None:
    net = system()[0]
    present = np.random.default_rng(3).random((20, 12)) < chance
    taus = [tau(n) if callable(tau) else tau for n in range(1, 21)]
    algorithm = fed.PGFL(2.0, tau, ridge=RIDGE, empty=empty)
    _, seen = watched(algorithm, net, 20, availability=fed.Trace(present))
    expected = twin(2.0, taus, present, empty)
    for (w, models), (w_twin, models_twin) in zip(seen, expected, strict=True):
        np.testing.assert_allclose(w, w_twin, rtol=0, atol=1e-12)
        np.testing.assert_allclose(models, models_twin, rtol=0, atol=1e-12)


def pooled(labels: IntArray, X: Any, y: Any, own: BoolArray, per_server: int) -> FloatArray:
    """Minimizers of ``sum_k f_k`` over the clients given of each cluster, by normal equations."""
    d = X[0].shape[1]
    out = []
    for q in range(labels.max() + 1):
        hessian, linear = np.zeros((d, d)), np.zeros(d)
        for k in np.flatnonzero(own & (labels == q)):
            hessian += X[k].T @ X[k] / len(X[k]) + RIDGE / per_server * np.eye(d)
            linear += X[k].T @ y[k] / len(X[k])
        out.append(np.linalg.solve(hessian, linear))
    return np.array(out)


def test_without_inter_cluster_learning_it_is_biased_and_says_so() -> None:
    net, labels, _, X, y = system()
    best = pooled(labels, X, y, np.ones(12, dtype=bool), 4)
    run = fed.simulate(fed.PGFL(5.0, ridge=RIDGE), net, 600, reference=best)
    size = np.linalg.norm(best, axis=1).min()
    assert run.problem is None
    assert run.history["distance"][-1] > 1e-3 * size
    # It has settled: at a point that is not the optimum.
    assert abs(np.diff(run.history["distance"][-2:])) < 1e-9
    refused = run.certificate()
    assert refused.status == "UNPROVED"
    assert "disagree" in refused.reason
    assert refused.distance == pytest.approx(run.history["distance"][-1], rel=1e-3)
    servers = np.array([report.w for report in run.reports[12:]])
    apart = np.linalg.norm(servers - servers.mean(axis=0), axis=2)
    assert apart.max() > 1e-3 * size
    np.testing.assert_array_equal(run.w, servers[apart.argmax(axis=0), np.arange(2)])
    # The target is the pooled problem with the weights that the docstring states.
    target = run.algorithm.target(net)
    np.testing.assert_allclose(target.solve(rtol=1e-12).w, best, atol=1e-7)
    assert target.graph.n_edges == 0


@pytest.mark.skipif(MULTIPLIER == 1, reason="a minute, for GTVCVX_TEST_MULTIPLIER > 1")
def test_bias_of_the_size_measured_in_the_papers_system() -> None:
    labels, _, X, y = served_rows(10, 15, 3, 60, 0.15, 0.1, 0)
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    rng = np.random.default_rng(5)
    edges = [(i, (i + 1) % 10) for i in range(10)]
    edges += [(i, (i + int(rng.integers(2, 8))) % 10) for i in range(0, 10, 2)]
    net = served_network(losses, labels, sorted({(min(e), max(e)) for e in edges}), 10)
    best = pooled(labels, X, y, np.ones(150, dtype=bool), 15)
    run = fed.simulate(fed.PGFL(5.0, ridge=RIDGE), net, 5000, reference=best)
    share = run.history["distance"][-1] / np.linalg.norm(best, axis=1).min()
    assert 3e-3 < share < 5e-2


@pytest.mark.parametrize("edges", [(), ((0, 1),)])
def test_servers_without_links_are_ordinary_admm(edges: Any) -> None:
    _, labels, _, X, y = system()
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    net = served_network(losses, labels, edges, 3)
    run = fed.simulate(fed.PGFL(2.0, ridge=RIDGE), net, 500)
    parts = [np.repeat(np.arange(3) == s, 4) for s in range(3)]
    if edges:
        assert run.problem is None
        parts = [parts[0] | parts[1], parts[2]]
    else:
        assert run.certificate().status == "CERTIFIED"
        best = np.concatenate([pooled(labels, X, y, own, 4) for own in parts])
        np.testing.assert_allclose(run.w, best, atol=1e-8)
    # A pooled problem for each cluster of servers that can reach each other.
    assert run.algorithm.target(net).graph.n_nodes == 2 * len(parts)


def test_one_server_is_certified_and_needs_no_clusters() -> None:
    _, _, _, X, y = system()
    net = fed.Network.star([gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)])
    run = fed.simulate(fed.PGFL(2.0), net, 300)
    assert run.w.shape == (1, 4)
    assert run.certificate().status == "CERTIFIED"
    learning = fed.simulate(fed.PGFL(2.0, 0.4), net, 300)
    np.testing.assert_array_equal(learning.w, run.w)
    assert learning.certificate().status == "CERTIFIED"


def test_losses_given_as_functions_are_trained_but_not_pooled() -> None:
    loss = gtv.CvxpyLoss(lambda w: cp.sum_squares(w - 1.0), 1)
    net = fed.Network.star([loss, gtv.PointLoss([3.0])])
    for algorithm in (fed.PGFL(2.0), fed.PGFLExact(2.0)):
        run = fed.simulate(algorithm, net, 40, record_every=40)
        np.testing.assert_allclose(run.w, [[2.0]], atol=1e-5)
        assert "functions" in run.certificate().reason


def test_inter_cluster_learning_is_not_certified() -> None:
    _, labels, _, X, y = system()
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    run = fed.simulate(fed.PGFL(2.0, 0.4), fed.Network.star(losses, clusters=labels), 3)
    assert "inter-cluster" in run.certificate().reason


def test_a_server_without_clients_of_a_cluster_hears_of_it() -> None:
    _, _, _, X, y = system()
    losses = [gtv.SquaredLoss(X[k], y[k]) for k in range(3)]
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    net = fed.Network.servers(graph, [losses[:1], losses[1:]], [[0], [0, 1]])
    for empty in ("keep", "skip"):
        run = fed.simulate(fed.PGFL(2.0, empty=empty), net, 400)
        first, second = (report.w for report in run.reports[3:])
        # Cluster 1 is at the second server alone.
        if empty == "skip":
            np.testing.assert_array_equal(first[1], second[1])
        assert np.linalg.norm(first[1] - second[1]) < 1e-6
        alone = np.linalg.lstsq(X[2], y[2], rcond=None)[0]
        assert gtv.SquaredLoss(X[2], y[2]).value(second[1]) < 1e-6 + gtv.SquaredLoss(
            X[2], y[2]
        ).value(alone)


def test_bytes_are_those_stated() -> None:
    net = system()[0]
    run = fed.simulate(fed.PGFL(2.0), net, 30)
    history = run.history
    assert history["bytes_up"][-1] == history["bytes_down"][-1] == 30 * 12 * (8 * 4 + 20)
    assert history["bytes_between"][-1] == 30 * 4 * (8 * 2 * 4 + 20)
    sampled = fed.simulate(fed.PGFL(2.0, empty="skip"), net, 30, sampling=fed.Sampling(1))
    assert sampled.history["bytes_up"][-1] == 30 * 3 * (8 * 4 + 20)
    assert sampled.history["bytes_between"][-1] == 30 * 4 * (8 * 2 * 4 + 8 * 2 + 20)
    assert (sampled.history["active"][1:] == 3).all()


def test_keeping_the_last_model_beats_skipping() -> None:
    labels, _, X, y = served_rows(4, 6, 3, 5, 0.15, 0.5, 1)
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    net = served_network(losses, labels, [(0, 1), (1, 2), (2, 3), (0, 3)], 4)
    best = fed.PGFL(ridge=RIDGE).target(net).solve().w[labels]

    def error(empty: str, seed: int) -> float:
        run = fed.simulate(
            fed.PGFL(2.0, ridge=RIDGE, empty=empty),
            net,
            200,
            sampling=fed.Sampling(2),
            seed=seed,
            truth=best,
            record_every=5,
        )
        return float(run.history["mse"][20:].mean())

    kept, skipped = (
        np.mean([error(empty, seed) for seed in range(2)]) for empty in ("keep", "skip")
    )
    assert kept < 0.9 * skipped


def test_theorem_2_is_violated() -> None:
    net, labels, _, X, y = system(gamma=0.05)
    best = pooled(labels, X, y, np.ones(12, dtype=bool), 4)
    eta = float(np.sum((best[0] - best[1]) ** 2))
    _, without = watched(fed.PGFL(2.0, ridge=RIDGE), net, 120)
    _, learning = watched(fed.PGFL(2.0, 0.4, ridge=RIDGE), net, 120)
    moved = [
        np.sum((a - b) ** 2, axis=2).max() for (_, a), (_, b) in zip(without, learning, strict=True)
    ]
    ratio = np.array(moved[1:]) / fed.bound_theorem2(0.4, eta, 120)
    assert ratio.max() > 2.0
    np.testing.assert_allclose(
        fed.bound_theorem2(0.4, eta, 5), eta * (1 - 0.6 ** np.arange(1, 6)), rtol=1e-14
    )
    taus = [0.3, 0.1, 0.2]
    by_sum = [
        sum(taus[i] * np.prod([1 - t for t in taus[i + 1 : n]]) for i in range(n))
        for n in range(1, 4)
    ]
    np.testing.assert_allclose(fed.bound_theorem2(taus, 1.0, 3), by_sum, rtol=1e-14)


FAULTS: dict[str, Any] = {
    "crash": {"crashes": [fed.Crash(0, 3, 9), fed.Crash(5, 20, 21), fed.Crash(6, 20, 60)]},
    "loss": {"transport": (0.3, 0.0)},
    "delay": {"transport": (0.0, 0.3)},
    "both": {"transport": (0.1, 0.3), "availability": None},
}


@cache
def _calm() -> FloatArray:
    """Return where it gets if nothing is missed."""
    return fed.simulate(fed.PGFL(5.0, ridge=RIDGE), system()[0], 700, record_every=700).w


@pytest.mark.parametrize("fault", FAULTS)
def test_clients_that_missed_something_are_told_their_multiplier(fault: str) -> None:
    """Multipliers that the two ends see differently would move the fixed point for good."""
    net = system()[0]
    options = dict(FAULTS[fault])
    if "transport" in options:
        options["transport"] = Unreliable(*options["transport"], rounds=40)
    if "availability" in options:
        present = np.ones((700, 12), dtype=bool)
        present[:60] = np.random.default_rng(1).random((60, 12)) < 0.6
        options["availability"] = fed.Trace(present)
    run = fed.simulate(fed.PGFL(5.0, ridge=RIDGE), net, 700, record_every=700, **options)
    np.testing.assert_allclose(run.w, _calm(), atol=1e-8)


def test_estimates_that_are_overtaken_count_for_nothing() -> None:
    server = PGFLServer()
    told = {"rho": 1.0, "tau": lambda n: 0.0, "empty": "keep", "n": 0, "start": np.zeros(1)}
    told |= {"clusters": np.empty(0, np.int64), "n_clusters": 1}
    server.start(fed.View(0, 1, None, np.array([1]), np.ones(1), told))
    for sent, value, expected in ((2, 6.0, 3.0), (1, 8.0, 4.5), (3, 1.0, 2.75)):
        inbox = fed.Inbox([fed.Received(1, sent, "estimates", {"w": np.array([[value]])})])
        inbox.phase, inbox.present = 2, np.empty(0, np.int64)
        server.step(3, inbox)
        server.step(3, _phase(3))
        assert server.report().w[0, 0] == expected


def test_releases_that_are_late_count_for_nothing() -> None:
    server = PGFLServer()
    told = {"rho": 1.0, "tau": lambda n: 0.0, "empty": "keep", "n": 2, "start": np.zeros(1)}
    told |= {"clusters": np.zeros(2, np.int64), "n_clusters": 1}
    server.start(fed.View(2, 1, None, np.array([0, 1]), np.ones(2), told))
    both = _phase(0)
    both.present = np.array([0, 1])
    server.step(5, both)
    sent = [fed.Received(k, n, "release", {"w": np.full(1, n - 1.0)}) for k, n in ((0, 4), (1, 5))]
    server.step(5, _phase(2, sent))
    answers = server.step(5, _phase(3))
    assert list(answers) == [1]
    assert server.report().w[0, 0] == 4.0


def test_a_client_takes_the_newest_model() -> None:
    client = PGFLClient()
    told = {"rho": 1.0, "ridge": 0.0, "start": np.zeros(1)}
    client.start(fed.View(0, 1, gtv.ZeroLoss(), np.array([1]), np.ones(1), told))
    answers = []
    for round_, arrived in (
        (7, [(7, "start", 2.0)]),
        (8, [(7, "aggregate", 3.0), (5, "start", 9.0)]),
    ):
        inbox = [fed.Received(1, n, kind, {"w": np.full(1, w)}) for n, kind, w in arrived]
        answers.append(client.step(round_, _phase(1, inbox))[1].arrays["w"][0])
    # The minimizer without a loss: what was received, and phi / rho = 3 - 2.
    assert answers == [2.0, 4.0]


def _phase(number: int, messages: Sequence[fed.Received] = ()) -> fed.Inbox:
    inbox = fed.Inbox(messages)
    inbox.phase = number
    return inbox


def test_a_rho_that_is_too_small_is_warned_of_and_diverges() -> None:
    net = system()[0]
    with pytest.warns(fed.StabilityWarning, match="rho"):
        run = fed.simulate(fed.PGFL(0.1, ridge=RIDGE), net, 400)
    assert run.status == "diverged"
    assert "rho = 0.1" in run.message
    assert np.isfinite(run.w).all()


def test_the_smallest_stable_rho_is_exact_for_equal_hessians() -> None:
    X = np.diag([1.0, 2.0])
    losses = [gtv.SquaredLoss(X, np.full(2, float(k))) for k in range(4)]
    net = served_network(losses, np.zeros(4, np.int64), [(0, 1), (1, 2), (2, 3)], 4)
    algorithm = fed.PGFL()
    smallest = smallest_stable_rho(algorithm.target(net), net, roles_of(net, "PGFL"))
    assert smallest > 0.1
    above = fed.simulate(fed.PGFL(1.05 * smallest), net, 600)
    assert above.status == "finished"
    assert np.linalg.norm(above.w) < 100
    with pytest.warns(fed.StabilityWarning):
        below = fed.simulate(fed.PGFL(0.95 * smallest), net, 900)
    assert np.linalg.norm(below.w) > 1e3


def test_any_model_can_be_trained() -> None:
    _, labels, _, X, y = system()
    losses = [
        gtv.HuberLoss(rows, targets, 0.5) if k % 2 else gtv.LogisticLoss(rows, targets > 0)
        for k, (rows, targets) in enumerate(zip(X, y, strict=True))
    ]
    net = served_network(losses, labels, (), 3)
    run = fed.simulate(fed.PGFL(1.0, ridge=0.5), net, 200, record_every=100)
    assert run.history["gap"][-1] < 1e-6
    rng = np.random.default_rng(0)
    networks = [
        fed.models.TwoLayerNetwork(rows, (targets > 0).astype(int), [0, 1], 3, steps=5)
        for rows, targets in zip(X, y, strict=True)
    ]
    net = served_network(networks, labels, PATH, 3)  # type: ignore[arg-type]
    start = 0.5 * rng.standard_normal(networks[0].dim)
    run = fed.simulate(fed.PGFL(1.0, start=start), net, 20)
    assert run.history["value"][-1] < 0.9 * run.history["value"][0]
    assert "not convex" in run.certificate().reason


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rho": -1.0}, "rho"),
        ({"tau": 1.5}, "tau"),
        ({"tau": []}, "tau"),
        ({"tau": "much"}, "tau"),
        ({"ridge": -0.1}, "ridge"),
        ({"empty": "drop"}, "empty"),
        ({"start": [np.nan]}, "start"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        fed.PGFL(**options)


def test_networks_that_do_not_fit_are_refused() -> None:
    points = [gtv.PointLoss([1.0]), gtv.PointLoss([2.0])]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), points, "l2", 1.0)
    for algorithm in (fed.PGFL(), fed.PGFLExact()):
        with pytest.raises(ValueError, match="needs servers"):
            fed.simulate(algorithm, problem, 3)
        linked = fed.Network(points, gtv.EmpiricalGraph(3, [(0, 1), (0, 2), (1, 2)]), 1)
        with pytest.raises(ValueError, match="client 0: one link"):
            fed.simulate(algorithm, linked, 3)
    star = fed.Network.star(points)
    with pytest.raises(ValueError, match="start"):
        fed.simulate(fed.PGFL(start=[1.0, 2.0]), star, 3)
    with pytest.raises(ValueError, match="tau: round 2"):
        fed.simulate(fed.PGFL(tau=lambda n: n - 1.0 if n < 2 else 7.0), star, 3)
    with pytest.raises(ValueError, match="without noise"):
        fed.simulate(fed.PGFL(), star, 3).privacy_report()
    with pytest.raises(TypeError, match="privacy"):
        fed.PGFL(privacy=1.0)  # type: ignore[arg-type]


def test_servers_report_who_took_part() -> None:
    net = system()[0]
    present = np.zeros((4, 12), dtype=bool)
    present[[0, 2], 5] = True
    run = fed.simulate(fed.PGFL(2.0), net, 4, availability=fed.Trace(present))
    report = run.reports[13]
    assert isinstance(report, ServerReport)
    assert dict(report.present) == {4: (), 5: (1, 3), 6: (), 7: ()}
