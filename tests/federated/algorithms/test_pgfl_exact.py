"""The exact form of PGFL reaches the pooled optimum of each cluster, and proves it."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from _systems import Unreliable, served_network, served_rows

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._pgfl_exact_programs import ExactServer

PATH = ((0, 1), (1, 2))


@cache
def system(edges: Any = PATH) -> tuple[fed.Network, FloatArray]:
    """Three servers with four clients each, d = 4; the optimum by the solver."""
    labels, _, X, y = served_rows(3, 4, 2, 4, 0.15, 0.1, 0)
    losses = [gtv.SquaredLoss(*rows) for rows in zip(X, y, strict=True)]
    net = served_network(losses, labels, edges, 3)
    problem = fed.PGFLExact(ridge=0.1).problem(net)
    assert problem is not None
    return net, problem.solve(rtol=1e-12).w


def printed(net: fed.Network, rho: float, rounds: int) -> FloatArray:
    """Vectors of all nodes, for one cluster after the other: (14) to (16) with equality."""
    n, servers = net.n_clients, net.n_servers
    assert net.clusters is not None
    out = np.zeros((servers, 2, net.dim))
    for q in range(2):
        own = np.append(np.flatnonzero(net.clusters == q), n + np.arange(servers))
        place = {int(node): k for k, node in enumerate(own)}
        kept = [e for e in net.graph.edges.tolist() if e[0] in place and e[1] in place]
        ends = np.array([[place[i], place[j]] for i, j in kept]).T
        degree = np.bincount(ends.ravel(), minlength=len(own))
        theta = np.zeros((len(own), net.dim))
        beta, alpha = np.zeros((2, len(kept), net.dim)), np.zeros((2, len(kept), net.dim))
        for _ in range(rounds):
            pull = np.zeros_like(theta)
            for side in range(2):
                np.add.at(pull, ends[side], beta[side] + alpha[side] / rho)
            for k, node in enumerate(own):
                centre = pull[k] / degree[k]
                theta[k] = centre
                if node < n:
                    # The ridge of .1 / 4 at each client, beside its loss.
                    total = rho + 0.2 / 4
                    theta[k] = net.models[node].prox(rho * centre / total, 1.0 / total)
            at = theta[ends]
            beta[:] = (at - alpha / rho).mean(axis=0)
            alpha = alpha - rho * (at - beta)
        out[:, q] = theta[-servers:]
    return out


def test_the_steps_are_those_of_fedadmm_with_equality() -> None:
    net, _ = system()
    run = fed.simulate(fed.PGFLExact(2.0, ridge=0.1), net, 30)
    models = np.array([report.w for report in run.reports[12:]])
    np.testing.assert_allclose(models, printed(net, 2.0, 30), atol=1e-12)


@pytest.mark.parametrize("rho", [0.5, 5.0])
def test_it_reaches_the_pooled_optimum_and_proves_it(rho: float) -> None:
    net, best = system()
    run = fed.simulate(fed.PGFLExact(rho, ridge=0.1), net, 700, reference=best)
    assert run.history["distance"][-1] < 1e-6 * np.linalg.norm(best)
    assert run.history["gap"][-1] < 1e-10
    assert (run.history["gap"] > -1e-12).all()
    assert run.certificate().status == "CERTIFIED"
    clients = fed.simulate(fed.PGFLExact(rho, ridge=0.1), net, 700, reference=best[net.clusters])
    assert clients.history["distance"][-1] < 1e-6 * np.linalg.norm(best)
    history = run.history
    assert history["bytes_up"][-1] == history["bytes_down"][-1] == 700 * 12 * (8 * 4 + 20)
    assert history["bytes_between"][-1] == 700 * 4 * (8 * 2 * 4 + 20)


@pytest.mark.parametrize(
    "absence",
    [
        {"availability": fed.Bernoulli(0.5)},
        {"sampling": fed.Sampling(1)},
        {"availability": fed.Markov(0.3, 0.3)},
    ],
)
def test_absent_clients_change_nothing_in_the_end(absence: dict[str, Any]) -> None:
    net, best = system()
    run = fed.simulate(
        fed.PGFLExact(5.0, ridge=0.1), net, 1500, reference=best, record_every=500, **absence
    )
    assert run.history["distance"][-1] < 1e-6 * np.linalg.norm(best)


@pytest.mark.parametrize("faults", [(0.0, 0.0, 0), (0.0, 0.5, 20), (0.1, 0.1, 900)])
def test_faults_of_clients_cost_rounds_alone(faults: tuple[float, float, int]) -> None:
    """Ends of a link that differ would move the fixed point, were they not made equal again."""
    net, best = system()
    crashes = [fed.Crash(0, 3, 9), fed.Crash(5, 20, 21)] if faults[1] != 0.5 else []
    run = fed.simulate(
        fed.PGFLExact(5.0, ridge=0.1),
        net,
        900,
        reference=best,
        crashes=crashes,
        transport=Unreliable(*faults, between=False),
        record_every=300,
    )
    assert run.history["distance"][-1] < 1e-6 * np.linalg.norm(best)


def test_vectors_that_are_late_leave_links_alone() -> None:
    server = ExactServer()
    told = {"n": 2, "clusters": np.zeros(2, np.int64), "n_clusters": 1, "rho": 1.0}
    server.start(fed.View(2, 1, None, np.array([0, 1]), np.ones(2), told))
    for phase, sent in ((0, ()), (2, ((0, 4), (1, 5))), (0, ())):
        messages = [fed.Received(k, n, "theta", {"w": np.full(1, 6.0)}) for k, n in sent]
        inbox = fed.Inbox(messages)
        inbox.phase, inbox.present = phase, np.array([0, 1])
        out = server.step(5, inbox)
    assert server.report().w[0, 0] == 3.0
    assert [out[k].kind for k in (0, 1)] == ["state", "theta"]


def test_lost_messages_of_servers_are_warned_of() -> None:
    net, _ = system()
    with pytest.warns(fed.StabilityWarning, match="servers"):
        fed.simulate(fed.PGFLExact(), net, 2, loss=fed.Loss(0.1))


def test_other_networks() -> None:
    # Servers in two groups: a pooled problem for each cluster and group.
    net, best = system(((0, 1),))
    run = fed.simulate(fed.PGFLExact(5.0, ridge=0.1), net, 500, reference=best)
    assert run.w.shape == (4, 4)
    assert run.problem.graph.nodes[2] == "cluster 0, component 1"
    assert run.certificate().status == "CERTIFIED"
    # Two servers and three clients: one server has none of cluster 1.
    _, _, X, y = served_rows(3, 4, 2, 4, 0.15, 0.1, 0)
    losses = [gtv.SquaredLoss(X[k], y[k]) + gtv.Ridge(0.1) for k in range(3)]
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    net = fed.Network.servers(graph, [losses[:1], losses[1:]], [[0], [0, 1]])
    run = fed.simulate(fed.PGFLExact(5.0), net, 800)
    assert run.certificate().status == "CERTIFIED"
    # One server, and one cluster.
    run = fed.simulate(fed.PGFLExact(5.0), fed.Network.star(losses), 400)
    assert run.w.shape == (1, 4)
    assert run.certificate().status == "CERTIFIED"
    # A client without data, and a server without anything.
    net = fed.Network.servers(gtv.EmpiricalGraph(2, []), [[*losses, gtv.ZeroLoss()], []])
    run = fed.simulate(fed.PGFLExact(5.0), net, 400)
    assert run.certificate().status == "CERTIFIED"
    np.testing.assert_array_equal(run.reports[-1].w, 0.0)


def test_other_losses() -> None:
    labels, _, X, y = served_rows(3, 4, 2, 4, 0.15, 0.1, 0)
    losses = [
        gtv.AbsoluteLoss(rows, targets) if k % 2 else gtv.LogisticLoss(rows, targets > 0)
        for k, (rows, targets) in enumerate(zip(X, y, strict=True))
    ]
    net = served_network(losses, labels, PATH, 3)
    run = fed.simulate(fed.PGFLExact(1.0, ridge=0.5), net, 600, record_every=300)
    assert run.history["gap"][-1] < 1e-6
    network = fed.models.TwoLayerNetwork([[1.0]], [0], [0, 1], 2)
    run = fed.simulate(fed.PGFLExact(), fed.Network.star([network]), 2)
    assert run.certificate().status == "UNPROVED"
