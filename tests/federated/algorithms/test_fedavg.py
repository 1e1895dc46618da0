"""FedAvg: the star's optimum for every lam, the bias of local steps, clusters of an oracle."""

import warnings

import numpy as np
import pytest
from _systems import row_bytes, star_losses, star_network

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray
from gtvcvx.federated.programs import Inbox, View
from gtvcvx.federated.wire import Received

#: A loss without rows.
RIDGE = gtv.ZeroLoss() + gtv.Ridge(1.0)
SPOKES = [(i, 12) for i in range(12)]


def star_optimum(lam: float, kind: str = "squared") -> FloatArray:
    """Optimum of the star with a centre without data, written by hand."""
    losses = [*star_losses(kind), gtv.ZeroLoss()]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(13, SPOKES), losses, "squared", 2 * lam)
    return problem.solve(rtol=1e-13).w


def pooled_minimizer(members: range = range(12)) -> FloatArray:
    """Minimizer of the sum of the squared losses of some clients."""
    chosen = [star_losses()[i] for i in members]
    rows = [(loss.X / len(loss.y) ** 0.5, loss.y / len(loss.y) ** 0.5) for loss in chosen]
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    return np.linalg.lstsq(X, y, rcond=None)[0]


@pytest.mark.parametrize(("lam", "rounds"), [(0.01, 40), (0.1, 60), (1.0, 250), (10.0, 2000)])
def test_the_star_optimum_is_reached_for_every_lam(lam: float, rounds: int) -> None:
    run = fed.simulate(fed.FedAvg(lam), star_network(), rounds, record_every=rounds)
    np.testing.assert_allclose(run.w, star_optimum(lam), rtol=0, atol=1e-9)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    assert run.models.shape == (12, 3)


def test_rounds_and_nearness_to_the_pooled_minimizer_grow_like_lam() -> None:
    far, rounds = [], []
    for lam in (1.0, 10.0):
        reference = star_optimum(lam)
        run = fed.simulate(
            fed.FedAvg(lam), star_network(), 1500, record_every=5, reference=reference
        )
        rounds.append(int(run.history["round"][run.history["distance"] < 1e-6][0]))
        far.append(np.linalg.norm(run.w[12] - pooled_minimizer()))
    assert 5 < rounds[1] / rounds[0] < 15
    assert 5 < far[0] / far[1] < 15


def test_logistic_losses() -> None:
    run = fed.simulate(fed.FedAvg(0.1), star_network("logistic"), 400, record_every=200)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    np.testing.assert_allclose(run.w, star_optimum(0.1, "logistic"), rtol=0, atol=1e-5)


@pytest.mark.parametrize("absence", ["keep", "skip"])
def test_absent_clients_leave_the_limit_where_it_is_if_their_vectors_are_kept(absence: str) -> None:
    algorithm = fed.FedAvg(0.1, absence=absence)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = fed.simulate(
            algorithm,
            star_network(),
            600,
            availability=fed.Bernoulli(0.6),
            sampling=fed.Sampling(3),
            record_every=50,
        )
    assert run.status == "finished"
    assert all(np.isfinite(run.history[name]).all() for name in run.history)
    error = abs(run.w - star_optimum(0.1)).max()
    assert (error < 1e-9) == (absence == "keep")
    assert (len(caught) == 0) == (absence == "keep")
    assert (run.certificate().status == "CERTIFIED") == (absence == "keep")


def test_late_and_lost_messages_leave_the_limit_where_it_is() -> None:
    run = fed.simulate(
        fed.FedAvg(0.1),
        star_network(),
        500,
        delay=fed.Delay([0.5, 0.3, 0.2]),
        loss=fed.Loss(0.2),
        crashes=[fed.Crash(3, at=10, back=30)],
        record_every=250,
    )
    np.testing.assert_allclose(run.w, star_optimum(0.1), rtol=0, atol=1e-9)


def test_rows_as_weights_have_the_weighted_optimum() -> None:
    losses = star_losses()
    m = np.array([len(loss.y) for loss in losses], dtype=float)
    share = m / m.mean()
    scaled = [
        gtv.SquaredLoss(np.sqrt(p) * loss.X, np.sqrt(p) * loss.y)
        for p, loss in zip(share, losses, strict=True)
    ]
    graph = gtv.EmpiricalGraph(13, SPOKES, weights=share)
    problem = gtv.GTVProblem(graph, [*scaled, gtv.ZeroLoss()], "squared", 0.2)
    run = fed.simulate(fed.FedAvg(0.1, weights="rows"), star_network(), 100, record_every=100)
    np.testing.assert_allclose(run.w, problem.solve(rtol=1e-13).w, rtol=0, atol=1e-9)
    assert run.history["value"][-1] == pytest.approx(problem.value(run.w))
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    assert abs(run.w - star_optimum(0.1)).max() > 1e-3


def test_rows_as_weights_of_logistic_losses_have_a_problem_and_a_proof() -> None:
    few = fed.simulate(fed.FedAvg(0.1, weights="rows"), star_network("logistic"), 3)
    assert few.certificate().status == "REFUTED"
    run = fed.simulate(
        fed.FedAvg(0.1, weights="rows"), star_network("logistic"), 150, record_every=150
    )
    assert run.certificate(rtol=1e-6).status == "CERTIFIED"


def test_one_step_is_fedsgd_and_more_have_a_bias_that_is_told() -> None:
    optimum = pooled_minimizer()
    far = {}
    for steps, rounds in ((1, 1200), (5, 300), (50, 60)):
        run = fed.simulate(fed.FedAvg(steps=steps), star_network(), rounds, record_every=rounds)
        far[steps] = np.linalg.norm(run.w[0] - optimum)
        certificate = run.certificate(rtol=1e-9)
        if steps == 1:
            assert certificate.status == "CERTIFIED"
        else:
            assert certificate.status == "UNPROVED"
            assert "local steps" in certificate.reason
            assert certificate.distance == pytest.approx(far[steps], rel=1e-3)
    assert far[1] < 1e-9
    assert 1e-3 < far[5] < far[50]


def test_steps_above_the_bound_are_warned_of_and_diverge() -> None:
    slopes = [np.linalg.norm(loss.X, 2) ** 2 * 2 / len(loss.y) for loss in star_losses()]
    with pytest.warns(fed.StabilityWarning, match=r"2/l_i = 0\.\d+"):
        run = fed.simulate(fed.FedAvg(steps=5, lr=3.5 / max(slopes)), star_network(), 400)
    assert run.status == "diverged"
    assert "lr = " in run.message
    assert np.isfinite(run.w).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fed.simulate(fed.FedAvg(steps=5, lr=1.9 / max(slopes)), star_network(), 20)
    assert run.status == "finished"


def test_the_default_step_is_asked_for_once_and_costs_a_round() -> None:
    rounds, d = 10, 3
    run = fed.simulate(fed.FedAvg(steps=2), star_network(), rounds)
    hello, who = 20 + 16, 20
    assert run.history["bytes_up"][-1] == 12 * (hello + (rounds - 1) * row_bytes(d))
    assert run.history["bytes_down"][-1] == 12 * (who + (rounds - 1) * (row_bytes(d) + 8))
    slopes = [np.linalg.norm(loss.X, 2) ** 2 * 2 / len(loss.y) for loss in star_losses()]
    given = fed.simulate(fed.FedAvg(steps=2, lr=1.0 / max(slopes)), star_network(), rounds - 1)
    np.testing.assert_allclose(run.w, given.w, rtol=1e-12)


def test_a_network_of_a_problem_becomes_a_star() -> None:
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(12, [(0, 1), (4, 7)]), star_losses(), "l1", 0.1)
    run = fed.simulate(fed.FedAvg(0.1), problem, 60, record_every=60)
    np.testing.assert_allclose(run.w, star_optimum(0.1), rtol=0, atol=1e-9)


def test_bytes_with_lam() -> None:
    run = fed.simulate(fed.FedAvg(1.0), star_network(), 7)
    assert run.history["bytes_up"][-1] == run.history["bytes_down"][-1] == 7 * 12 * row_bytes(3)


def test_clusters_of_an_oracle_have_the_minimizer_of_each() -> None:
    run = fed.simulate(
        fed.ClusteredFedAvg(),
        star_network(),
        1500,
        availability=fed.Bernoulli(0.7),
        record_every=1500,
    )
    for q in range(2):
        members = range(6 * q, 6 * q + 6)
        np.testing.assert_allclose(run.w[q], pooled_minimizer(members), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(run.models[6 * q], run.w[q])
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    biased = fed.simulate(fed.ClusteredFedAvg(steps=5), star_network(), 300)
    assert biased.certificate().status == "UNPROVED"


def test_another_order_of_clients_gives_the_same_models() -> None:
    order = np.random.default_rng(0).permutation(12)
    losses = star_losses()
    for algorithm in (fed.FedAvg(0.1), fed.FedAvg(steps=3), fed.FedAvg(steps=2, weights="rows")):
        run = fed.simulate(algorithm, star_network(), 30)
        moved = fed.simulate(algorithm, fed.Network.star([losses[i] for i in order]), 30)
        np.testing.assert_allclose(moved.models, run.models[order], rtol=0, atol=1e-12)


def test_clients_without_data_and_a_single_client() -> None:
    losses = [*star_losses()[:2], gtv.ZeroLoss()]
    run = fed.simulate(fed.FedAvg(0.1), fed.Network.star(losses), 200)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    np.testing.assert_allclose(run.w[2], run.w[3], atol=1e-9)
    for weights in ("uniform", "rows"):
        pooled = fed.simulate(
            fed.FedAvg(steps=1, weights=weights), fed.Network.star(losses), 1500, record_every=1500
        )
        assert pooled.certificate().status == "CERTIFIED"
    single = fed.simulate(fed.FedAvg(5.0), fed.Network.star(star_losses()[:1]), 300)
    np.testing.assert_allclose(single.w[0], single.w[1], atol=1e-6)


@pytest.mark.parametrize("lam", [1e-9, 1e9])
def test_tiny_and_large_lam_have_true_gaps(lam: float) -> None:
    run = fed.simulate(fed.FedAvg(lam), star_network(), 50)
    assert run.status == "finished"
    optimum = run.problem.value(star_optimum(lam)) if run.problem is not None else np.nan
    error = run.history["value"][-1] - optimum
    rounding = 1e-12 * run.history["value"][-1]
    assert -rounding <= error <= run.history["gap"][-1] + rounding
    if lam < 1:
        assert run.certificate().status == "CERTIFIED"


def test_raw_units_have_true_gaps() -> None:
    run = fed.simulate(fed.FedAvg(0.1), star_network(scale=1e4), 300)
    assert run.certificate().status == "CERTIFIED"


def test_networks_of_two_layers_are_trained_and_not_certified() -> None:
    rng = np.random.default_rng(2)
    nets = []
    for _ in range(3):
        X = rng.standard_normal((12, 2))
        nets.append(
            fed.models.TwoLayerNetwork(X, (X[:, 0] > 0).astype(int), [0, 1], hidden=3, steps=5)
        )
    start = nets[0].initial(0)
    net = fed.Network.star(nets, clusters=[0, 0, 1])
    for algorithm in (
        fed.FedAvg(0.1, initial=start),
        fed.FedAvg(steps=3, lr=0.5, initial=start),
        fed.ClusteredFedAvg(lr=0.5, initial=start),
        fed.FedSGD(lr=0.5, initial=start),
        fed.PFedMe(0.2, initial=start),
    ):
        run = fed.simulate(algorithm, net, 20)
        assert run.history["value"][-1] < 0.7 * run.history["value"][0]
        assert run.certificate().status == "UNPROVED"
        assert "not convex" in run.certificate().reason


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fed.FedAvg(), "lam, steps"),
        (lambda: fed.FedAvg(1.0, steps=2), "lam, steps"),
        (lambda: fed.FedAvg(1.0, lr=0.1), "lr"),
        (lambda: fed.FedAvg(0.0), "lam: a positive"),
        (lambda: fed.FedAvg(steps=0), "steps: a positive integer"),
        (lambda: fed.FedAvg(steps=1.5), "steps: a positive integer"),
        (lambda: fed.FedAvg(1.0, weights="sizes"), "weights: one of"),
        (lambda: fed.FedAvg(1.0, absence="freeze"), "absence: one of"),
        (lambda: fed.FedAvg(1.0, initial=[np.nan]), "initial"),
        (lambda: fed.simulate(fed.FedAvg(1.0, initial=[0.0]), star_network(), 1), "initial: shape"),
        (
            lambda: fed.simulate(fed.ClusteredFedAvg(), fed.Network.star(star_losses()), 1),
            "net: ClusteredFedAvg needs a network with clusters",
        ),
        (
            lambda: fed.simulate(
                fed.FedAvg(steps=2), fed.Network.star([gtv.HingeLoss([[1.0]], [1.0])]), 1
            ),
            "lr: client 0",
        ),
        (
            lambda: fed.simulate(
                fed.FedAvg(1.0),
                fed.Network(star_losses()[:1], gtv.EmpiricalGraph(2, [(0, 1)], [2.0]), 1),
                1,
            ),
            "net: a star",
        ),
        (
            lambda: fed.simulate(
                fed.FedAvg(1.0, weights="rows"),
                fed.Network.star([gtv.SquaredLoss([[1.0]], [1.0]), RIDGE]),
                1,
            ),
            "weights: client 1",
        ),
    ],
)
def test_bad_input_is_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_an_answer_that_comes_after_a_newer_one_is_dropped() -> None:
    algorithm, net = fed.FedAvg(1.0), fed.Network.star(star_losses()[:1])
    server = algorithm.server()
    told = algorithm.parameters(net, 1)
    server.start(View(1, 3, None, np.array([0]), np.ones(1), told))
    for round_, value in ((5, 1.0), (3, 2.0)):
        inbox = Inbox([Received(0, round_, "answer", {"w": np.full(3, value)})])
        inbox.phase = 2
        server.step(6, inbox)
    np.testing.assert_array_equal(server.report().w, np.ones(3))
