"""FedRelax and MOCHA: the optimum for lam and for lam/2, orders, noise, absent clients."""

import numpy as np
import pytest
from _systems import clustered_rows, row_bytes, small, star_losses

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray
from gtvcvx.federated.algorithms._fedrelax import coloured
from gtvcvx.federated.algorithms._fedrelax_client import Neighbours
from gtvcvx.federated.programs import Inbox, View
from gtvcvx.federated.wire import Received

LINKS = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
WEIGHTS = [1.0, 0.5, 2.0, 1.0, 0.3]


def network() -> fed.Network:
    """Clients of `small`, without the problem."""
    return fed.Network(fed.Network.from_problem(small("squared")[0]).models, small()[0].graph)


def squared(lam: float) -> FloatArray:
    """Optimum of sum L_i + (lam/2) sum A_e ||w_i - w_j||^2, by one linear system."""
    problem, _ = small("squared")
    form = problem.losses.quadratic(6)
    assert form is not None
    laplacian = np.zeros((6, 6))
    for (i, j), a in zip(LINKS, WEIGHTS, strict=True):
        laplacian[[i, j], [i, j]] += a
        laplacian[[i, j], [j, i]] -= a
    system = lam * np.kron(laplacian, np.eye(3))
    for i in range(6):
        system[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += form.hessian[i]
    return np.linalg.solve(system, form.linear.ravel()).reshape(6, 3)


@pytest.mark.parametrize("order", ["jacobi", "colour"])
@pytest.mark.parametrize("damping", [False, True])
@pytest.mark.parametrize("as_printed", [False, True])
def test_the_optimum_is_that_of_twice_lam_or_as_printed_of_lam(
    order: str, damping: bool, as_printed: bool
) -> None:
    lam = 0.2
    algorithm = fed.FedRelax(lam, as_printed, order, damping)
    run = fed.simulate(algorithm, network(), 800, record_every=800)
    np.testing.assert_allclose(run.w, squared(lam if as_printed else 2 * lam), rtol=0, atol=1e-8)
    assert abs(run.w - squared(2 * lam if as_printed else lam)).max() > 1e-2
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


def test_without_lam_the_problem_is_the_networks() -> None:
    problem, solution = small("squared")
    for algorithm in (fed.FedRelax(), fed.FedRelax(as_printed=True), fed.MOCHA()):
        run = fed.simulate(algorithm, problem, 400, record_every=400)
        assert run.problem is problem
        np.testing.assert_allclose(run.w, solution.w, rtol=0, atol=1e-8)
    named = fed.MOCHA(problem.lam)
    np.testing.assert_allclose(fed.simulate(named, network(), 400).w, run.w, rtol=0, atol=1e-12)


def test_rounds_grow_like_lam_and_colours_halve_them() -> None:
    _, _, X, y = clustered_rows(20, 2, 8, 3, 1)
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(20, 1)
    kept = rng.random(len(i)) < 0.4
    graph = gtv.EmpiricalGraph(20, np.column_stack([i[kept], j[kept]]))
    net = fed.Network([gtv.SquaredLoss(X[k], y[k]) for k in range(20)], graph)
    rounds = {}
    for lam in (0.1, 1.0):
        for order in ("jacobi", "colour"):
            algorithm = fed.FedRelax(lam, order=order)
            problem = algorithm.problem(net)
            assert problem is not None
            reference = problem.solve(rtol=1e-12)
            run = fed.simulate(
                algorithm,
                net,
                600,
                record_every=2,
                reference=reference,
                callback=lambda seen: seen.record["distance"] < 1e-6,
            )
            rounds[lam, order] = run.rounds
    assert 4 < rounds[1.0, "jacobi"] / rounds[0.1, "jacobi"] < 15
    assert 1.5 < rounds[1.0, "jacobi"] / rounds[1.0, "colour"] < 3


def test_colours_are_greedy_and_linked_clients_differ() -> None:
    net = network()
    colours = coloured(net)
    of = {int(i): k for k, members in enumerate(colours) for i in members}
    assert sorted(of) == list(range(6))
    assert all(of[i] != of[j] for i, j in LINKS)
    assert [members.tolist() for members in colours] == [[0, 2, 5], [1, 3], [4]]


@pytest.mark.parametrize("order", ["jacobi", "colour"])
def test_absent_late_lost_and_crashed_leave_the_limit(order: str) -> None:
    run = fed.simulate(
        fed.FedRelax(0.2, order=order),
        network(),
        1500,
        availability=fed.Bernoulli(0.6),
        sampling=fed.Sampling(4),
        delay=fed.Delay([0.5, 0.3, 0.2]),
        loss=fed.Loss(0.2),
        crashes=[fed.Crash(1, at=5, back=20)],
        record_every=500,
    )
    assert run.status == "finished"
    assert all(np.isfinite(run.history[name]).all() for name in run.history)
    np.testing.assert_allclose(run.w, squared(0.4), rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", ["jacobi", "colour"])
def test_bytes(order: str) -> None:
    run = fed.simulate(fed.FedRelax(0.2, order=order), network(), 9)
    assert run.history["bytes_up"][-1] == 9 * 2 * len(LINKS) * row_bytes(3)
    assert run.history["messages"][-1] == 9 * 2 * len(LINKS)


def test_another_order_of_clients_gives_the_same_models() -> None:
    order = np.random.default_rng(0).permutation(6)
    place = np.argsort(order)
    graph = gtv.EmpiricalGraph(6, place[np.array(LINKS)], WEIGHTS)
    moved = fed.Network([network().models[i] for i in order], graph)
    for kind, rounds in (("jacobi", 15), ("colour", 400)):
        algorithm = fed.FedRelax(0.2, order=kind)
        first, second = (fed.simulate(algorithm, net, rounds).w for net in (network(), moved))
        np.testing.assert_allclose(second, first[order], rtol=0, atol=1e-10)


def test_noisy_updates_stay_about_the_optimum_and_are_not_certified() -> None:
    sigma, rounds = 1e-2, 1500
    seen: list[FloatArray] = []
    run = fed.simulate(
        fed.FedRelax(0.05, noise=sigma),
        network(),
        rounds,
        record_every=1,
        callback=lambda now: seen.append(now.w),
    )
    errors = np.array([((w - squared(0.1)) ** 2).sum(axis=1) for w in seen[200:]])
    linked = errors[:, :5].mean()
    assert 0.9 < linked / (sigma**2 * 3) < 1.6
    certificate = run.certificate()
    assert certificate.status == "UNPROVED"
    assert "perturbed" in certificate.reason
    assert "gap" not in run.history


def test_decreasing_noise_and_output_without_own_noise() -> None:
    schedule = 0.1 / np.arange(1, 401) ** 2
    runs = [
        fed.simulate(fed.FedRelax(0.2, noise=noise), network(), 400)
        for noise in (schedule, decreasing)
    ]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert abs(runs[0].w - squared(0.4)).max() < 1e-4
    loud = fed.simulate(fed.FedRelax(0.2, noise=0.1), network(), 50)
    own = fed.simulate(fed.FedRelax(0.2, noise=0.1, output_own_noise=False), network(), 50)
    noise = loud.w - own.w
    assert 0.03 < noise.std() < 0.2
    # A client without neighbours has no noise but its own.
    np.testing.assert_allclose(own.w[5], squared(0.4)[5], atol=1e-12)
    off = fed.simulate(fed.FedRelax(0.2, noise=0.0), network(), 400)
    np.testing.assert_allclose(off.w, squared(0.4), rtol=0, atol=1e-8)


def decreasing(round_: int) -> float:
    return float(0.1 / np.float64(round_) ** 2)


def test_a_component_without_data_is_refused_where_it_would_oscillate() -> None:
    losses = [gtv.PointLoss([1.0]), gtv.ZeroLoss(), gtv.ZeroLoss(), gtv.ZeroLoss()]
    net = fed.Network(losses, gtv.EmpiricalGraph(4, [(1, 2), (2, 3)]))
    with pytest.raises(ValueError, match="order: the component of client 1 has no data"):
        fed.simulate(fed.FedRelax(1.0, initial=[2.0]), net, 1)
    for given in ({"damping": True}, {"order": "colour"}, {"initial": [0.0]}):
        options = {"initial": [2.0], **given}
        run = fed.simulate(fed.FedRelax(1.0, **options), net, 200)  # type: ignore[arg-type]
        assert run.certificate().status == "CERTIFIED"
    odd = fed.Network(losses, gtv.EmpiricalGraph(4, [(1, 2), (2, 3), (1, 3)]))
    assert fed.simulate(fed.FedRelax(1.0, initial=[2.0]), odd, 50).history["gap"][-1] < 1e-9


@pytest.mark.parametrize("lam", [1e-8, 1e8])
def test_logistic_losses_with_tiny_and_large_lam_have_true_gaps(lam: float) -> None:
    losses = star_losses("logistic")[4:8]
    net = fed.Network(losses, gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)]))
    algorithm = fed.FedRelax(lam, order="colour")
    problem = algorithm.problem(net)
    assert problem is not None
    optimum = problem.solve(rtol=1e-9)
    run = fed.simulate(algorithm, net, 20, reference=optimum, record_every=10)
    assert run.status == "finished"
    assert run.history["value"][-1] - optimum.value <= run.history["gap"][-1] + 1e-9
    if lam < 1:
        assert run.certificate().status == "CERTIFIED"


def test_raw_units_have_true_gaps() -> None:
    net = fed.Network(star_losses(scale=1e4)[:4], gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)]))
    run = fed.simulate(fed.FedRelax(0.1), net, 500, record_every=500)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


def test_on_a_star_it_is_fedavg() -> None:
    net = fed.Network.star(star_losses())
    relax = fed.simulate(fed.FedRelax(0.1, order="colour"), net, 60, record_every=60)
    average = fed.simulate(fed.FedAvg(0.1), net, 60, record_every=60)
    np.testing.assert_allclose(relax.w, average.w, rtol=0, atol=1e-12)
    assert relax.certificate().status == "CERTIFIED"


def test_one_client_takes_its_own_minimizer() -> None:
    run = fed.simulate(
        fed.FedRelax(1.0), fed.Network(star_losses()[:1], gtv.EmpiricalGraph(1, [])), 1
    )
    loss = star_losses()[0]
    np.testing.assert_allclose(run.w[0], np.linalg.lstsq(loss.X, loss.y, rcond=None)[0])
    assert run.certificate().status == "CERTIFIED"


def test_networks_of_two_layers_are_trained_and_not_certified() -> None:
    rng = np.random.default_rng(2)
    nets = []
    for _ in range(3):
        X = rng.standard_normal((12, 2))
        nets.append(
            fed.models.TwoLayerNetwork(X, (X[:, 0] > 0).astype(int), [0, 1], hidden=3, steps=5)
        )
    net = fed.Network(nets, gtv.EmpiricalGraph(3, [(0, 1)]))
    run = fed.simulate(fed.FedRelax(0.05, initial=nets[0].initial(0)), net, 20)
    assert run.history["value"][-1] < 0.7 * run.history["value"][0]
    assert run.certificate().status == "UNPROVED"
    assert "not convex" in run.reason


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fed.FedRelax(0.0), "lam: a positive"),
        (lambda: fed.FedRelax(1.0, order="random"), "order: one of"),
        (lambda: fed.FedRelax(1.0, noise=-1.0), "noise"),
        (lambda: fed.FedRelax(1.0, noise=[]), "noise"),
        (lambda: fed.FedRelax(1.0, noise=[[1.0]]), "noise"),
        (lambda: fed.simulate(fed.FedRelax(), network(), 1), "lam: FedRelax takes it"),
        (lambda: fed.simulate(fed.FedRelax(), small("l1")[0], 1), "lam: .* has 'l1'"),
        (lambda: fed.simulate(fed.FedRelax(1.0, initial=[1.0]), network(), 1), "initial: shape"),
        (lambda: fed.simulate(fed.FedRelax(1.0, noise=lambda t: -t), network(), 1), "noise"),
    ],
)
def test_bad_input_is_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_a_vector_that_comes_after_a_newer_one_is_dropped() -> None:
    heard = Neighbours(View(0, 1, None, np.array([4]), np.ones(1)), np.zeros(1))
    for round_, value in ((5, 1.0), (3, 2.0)):
        heard.listen(Inbox([Received(4, round_, "model", {"w": np.array([value])})]), "w")
    assert heard.vectors.item() == 1.0
