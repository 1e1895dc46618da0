"""FedADMM: the printed steps, the optimum, absent clients, faults."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from _systems import clustered_rows, corrupted_edges, paper_like, small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import BoolArray, FloatArray


def printed(
    problem: gtv.GTVProblem,
    rho: float,
    present: BoolArray,
    *,
    scaling: float = 1.0,
    chance: FloatArray | None = None,
    exact: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Steps (14) to (16) of the paper, with every beta and alpha, for rounds present (T, n).

    Absent clients stand still; with ``chance`` their gradients are zero instead, and those of
    present ones are weighted by its inverse.
    """
    n, d = problem.graph.n_nodes, problem.dim
    form = problem.losses.quadratic(n)
    assert form is not None
    hessian, linear = scaling * form.hessian, scaling * form.linear
    head, tail = problem.graph.edges.T
    degree = problem.graph.degrees
    total = np.linalg.eigvalsh(hessian)[:, -1] + rho * degree
    eta = 1.0 / np.where(total > 0, total, 1.0)
    theta = np.zeros((n, d))
    beta = np.zeros((2, len(head), d))
    alpha = np.zeros((2, len(head), d))
    for here in present:
        gradient = np.einsum("nij,nj->ni", hessian, theta) - linear
        if chance is not None:
            gradient *= (here / chance)[:, None]
        pull = np.zeros((n, d))
        for side, end in enumerate((head, tail)):
            np.add.at(pull, end, rho * (theta[end] - beta[side]) - alpha[side])
        new = theta - eta[:, None] * (gradient + pull)
        if exact:
            # pull is rho (deg theta - sum beta) - sum alpha: what is left is linear in theta.
            right = linear + rho * degree[:, None] * theta - pull
            left = hessian + rho * degree[:, None, None] * np.eye(d)
            new = np.array([np.linalg.lstsq(a, b)[0] for a, b in zip(left, right, strict=True)])
        theta = new if chance is not None else np.where(here[:, None], new, theta)
        p, q = theta[head] - alpha[0] / rho, theta[tail] - alpha[1] / rho
        half = 0.5 * problem.penalty.prox(p - q, 2.0 * scaling * problem.capacities / rho)
        beta = np.array([(p + q) / 2 + half, (p + q) / 2 - half])
        alpha = alpha - rho * (np.array([theta[head], theta[tail]]) - beta)
    return theta, -alpha[0] / scaling


def trace(rounds: int, n: int, chance: float, seed: int) -> BoolArray:
    return np.random.default_rng(seed).random((rounds, n)) < chance


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
@pytest.mark.parametrize("chance", [1.0, 0.6])
@pytest.mark.parametrize("exchange", ["both", "owner"])
def test_the_steps_are_those_printed(penalty: str, chance: float, exchange: str) -> None:
    problem, _ = small(penalty)
    present = trace(25, 6, chance, 3)
    if exchange == "owner":
        # An owner that is absent answers for no edge: the same only if all are there.
        present[:] = True
    theta, _ = printed(problem, 0.7, present)
    algorithm = fed.FedADMM(rho=0.7, exchange=exchange)
    run = fed.simulate(algorithm, problem, 25, availability=fed.Trace(present))
    np.testing.assert_allclose(run.w, theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("exchange", ["both", "owner"])
def test_exact_steps_solve_for_theta(exchange: str) -> None:
    problem, _ = small("l2")
    theta, _ = printed(problem, 0.7, np.ones((15, 6), dtype=bool), exact=True)
    algorithm = fed.FedADMM(rho=0.7, step="exact", exchange=exchange)
    run = fed.simulate(algorithm, problem, 15)
    np.testing.assert_allclose(run.w, theta, rtol=0, atol=1e-10)


def test_absent_gradients_are_weighted_as_in_algorithm_2() -> None:
    problem, _ = small()
    chance = np.linspace(0.5, 1.0, 6)
    present = trace(20, 6, 0.7, 4)
    theta, u = printed(problem, 0.7, present, chance=chance)
    algorithm = fed.FedADMM(rho=0.7, absence="inverse", presence=chance)
    run = fed.simulate(algorithm, problem, 20, availability=fed.Trace(present), record_every=20)
    # The server learns the length of steps with the first gradient: before, those are too long.
    known = fed.simulate(
        algorithm, problem, 20, availability=fed.Trace(np.ones((20, 6), dtype=bool))
    )
    everyone, _ = printed(problem, 0.7, np.ones((20, 6), dtype=bool), chance=chance)
    np.testing.assert_allclose(known.w, everyone, rtol=0, atol=1e-12)
    assert run.history["gap"][-1] >= 0
    assert np.abs(run.w - theta).max() < 1.0
    assert u.shape == run.u.shape


def test_paper_like_system_reaches_the_optimum_and_proves_it() -> None:
    problem, optimum, truth = paper_like()
    algorithm = fed.FedADMM(lam=0.02, rho=0.2)
    run = fed.simulate(algorithm, problem, 300, reference=optimum, truth=truth)
    assert run.problem.lam == pytest.approx(problem.lam)
    assert run.history["gap"][-1] <= 1e-8
    assert run.history["distance"][-1] < 1e-8
    assert (np.diff(run.history["mse"][:10]) < 0).all()
    assert run.certificate().status == "CERTIFIED"
    m, d = problem.graph.n_edges, problem.dim
    # 20 bytes of header and 8 a number, to both ends of every edge in every round.
    assert run.history["bytes_up"][-1] == 2 * m * 300 * (8 * d + 20)
    assert run.history["bytes_down"][-1] == run.history["bytes_up"][-1]


def test_flows_are_feasible_at_every_record() -> None:
    problem, _, _ = paper_like()
    algorithm = fed.FedADMM(rho=0.4)
    worst = []

    class Watched(fed.FedADMM):
        def flow(self, *given: Any) -> FloatArray:
            u = super().flow(*given)
            excess = problem.penalty.dual_norm(u) / problem.capacities - 1.0
            worst.append(excess.max())
            return u

    run = fed.simulate(Watched(rho=0.4), problem, 30, record_every=1)
    assert len(worst) == 31
    assert max(worst) <= 1e-12
    assert (run.history["gap"] >= 0).all()
    assert repr(algorithm).startswith("FedADMM(")


@pytest.mark.parametrize("exchange", ["both", "owner"])
def test_absent_clients_change_nothing_in_the_end(exchange: str) -> None:
    problem, optimum = small()
    run = fed.simulate(
        fed.FedADMM(rho=0.5, exchange=exchange),
        problem,
        600,
        availability=fed.Bernoulli(0.5),
        reference=optimum,
    )
    assert run.history["distance"][-1] < 1e-9
    assert run.history["active"].max() <= 6


def test_constant_steps_with_inverse_weights_of_rare_clients_diverge() -> None:
    problem, _, _ = paper_like()
    algorithm = fed.FedADMM(lam=0.02, rho=0.2, absence="inverse", presence=0.2)
    with pytest.warns(fed.StabilityWarning, match="above 2"):
        run = fed.simulate(algorithm, problem, 2000, availability=fed.Bernoulli(0.2))
    assert run.status == "diverged"
    assert "steps eta from" in run.message
    assert np.isfinite(run.w).all()
    assert run.certificate().status == "UNPROVED"


def test_estimated_chances_and_shorter_steps_come_close() -> None:
    problem, optimum, _ = paper_like()
    algorithm = fed.FedADMM(lam=0.02, rho=0.2, absence="inverse", decay=100.0)
    run = fed.simulate(algorithm, problem, 1500, availability=fed.Bernoulli(0.5), reference=optimum)
    early, late = run.history["distance"][[1, -1]]
    assert late < 0.4 * early


def test_ignored_absence_solves_another_problem() -> None:
    problem, optimum = small()
    chance = np.array([0.9, 0.3, 0.9, 0.3, 0.9, 0.9])
    algorithm = fed.FedADMM(rho=0.5, absence="ignore", decay=200.0)
    run = fed.simulate(
        algorithm, problem, 1500, availability=fed.Bernoulli(chance), reference=optimum
    )
    assert run.problem is None
    assert "probabilities of presence" in run.certificate().reason
    assert run.history["distance"][-1] > 1e-2


@cache
def corrupted() -> tuple[gtv.GTVProblem, gtv.Solution]:
    """Fifteen clients in three clusters, a tenth of the pairs of clients corrupted."""
    rng = np.random.default_rng(1)
    labels, _, X, y = clustered_rows(15, 3, 20, 4, rng)
    graph = gtv.EmpiricalGraph(15, corrupted_edges(labels, 0.1, rng))
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "l1", 0.04)
    return problem, problem.solve(rtol=1e-10)


@pytest.mark.parametrize("chance", [None, 0.7])
@pytest.mark.parametrize("exchange", ["both", "owner"])
def test_clients_that_crash_and_come_back_learn_from_their_neighbours(
    chance: float | None, exchange: str
) -> None:
    problem, optimum = corrupted()
    rng = np.random.default_rng(7)
    clients, at = rng.choice(15, 5, replace=False).tolist(), rng.integers(2, 60, 5).tolist()
    away = rng.integers(1, 30, 5).tolist()
    crashes = [fed.Crash(i, a, a + k) for i, a, k in zip(clients, at, away, strict=True)]
    run = fed.simulate(
        fed.FedADMM(lam=0.02, rho=0.2, exchange=exchange),
        problem,
        300,
        availability=None if chance is None else fed.Bernoulli(chance),
        crashes=crashes,
        reference=optimum,
    )
    # Edges that the two ends saw differently would leave errors of a tenth for good.
    assert run.history["distance"][-1] < 1e-5


def test_owners_stand_lost_and_late_messages() -> None:
    problem, optimum = small()
    faults: dict[str, Any] = {"loss": fed.Loss(0.2), "delay": fed.Delay([0.7, 0.2, 0.1])}
    run = fed.simulate(
        fed.FedADMM(rho=0.5, exchange="owner"), problem, 600, reference=optimum, **faults
    )
    assert run.history["distance"][-1] < 1e-9
    with pytest.warns(fed.StabilityWarning, match="exchange='owner'"):
        drifted = fed.simulate(fed.FedADMM(rho=0.5), problem, 600, reference=optimum, **faults)
    assert drifted.history["distance"][-1] > 1e-6
    # The gap is true all the same: the flow is repaired, and the certificate says what is known.
    assert drifted.history["gap"][-1] > 1e-9


@pytest.mark.parametrize(
    "loss",
    [
        lambda X, y: gtv.AbsoluteLoss(X, y),
        lambda X, y: gtv.LogisticLoss(X, (y > 0).astype(float), ridge=0.1),
        lambda X, y: gtv.HuberLoss(X, y, 0.5),
        lambda X, y: gtv.SquaredLoss(X, y) + gtv.Nonnegative(),
    ],
)
def test_exact_steps_take_any_convex_loss(loss: Any) -> None:
    _, _, X, y = clustered_rows(5, 2, 8, 2, 11)
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    problem = gtv.GTVProblem(graph, [loss(X[i], y[i]) for i in range(5)], "l2", 0.2)
    optimum = problem.solve(rtol=1e-9)
    run = fed.simulate(fed.FedADMM(rho=0.5, step="exact"), problem, 500, record_every=50)
    assert run.history["value"][-1] <= optimum.value + 1e-6
    assert run.history["gap"][-1] <= 1e-5


def test_steps_that_need_a_slope_refuse_losses_without_one() -> None:
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, [gtv.AbsoluteLoss([[1.0]], [1.0]), gtv.ZeroLoss()], "l2", 0.2)
    with pytest.raises(ValueError, match=r"client 0.*step='exact'"):
        fed.simulate(fed.FedADMM(), problem, 2)


def test_mini_batches_and_averages() -> None:
    problem, optimum = corrupted()

    def distance(rounds: int, **options: Any) -> float:
        algorithm = fed.FedADMM(lam=0.02, rho=0.2, batch=10, decay=100.0, **options)
        run = fed.simulate(algorithm, problem, rounds, reference=optimum, record_every=rounds)
        return float(run.history["distance"][-1])

    last = distance(250)
    assert 0.0 < distance(250, output="tail") < last < 0.5


def test_printed_average_is_of_all_iterates_before() -> None:
    problem, _ = small()
    iterates: list[FloatArray] = []
    fed.simulate(
        fed.FedADMM(rho=0.5), problem, 9, record_every=1, callback=lambda p: iterates.append(p.w)
    )
    run = fed.simulate(fed.FedADMM(rho=0.5, output="average"), problem, 9)
    np.testing.assert_allclose(run.w, np.mean(iterates[:9], axis=0), atol=1e-14)
    run = fed.simulate(fed.FedADMM(rho=0.5, output="tail"), problem, 9)
    np.testing.assert_allclose(run.w, np.mean(iterates[5:], axis=0), atol=1e-14)


def test_printed_steps_grow_unless_they_are_projected() -> None:
    problem, _, _ = paper_like()
    free = fed.FedADMM(lam=0.02, rho=0.2, step="printed", scale=11.0)
    run = fed.simulate(free, problem, 300)
    assert run.status == "diverged"
    held = fed.FedADMM(lam=0.02, rho=0.2, step="printed", scale=11.0, radius=5.0)
    run = fed.simulate(held, problem, 300)
    assert run.status == "finished"
    assert np.linalg.norm(run.w, axis=1).max() <= 5.0 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rho": 0.0}, "rho"),
        ({"lam": -1.0}, "lam"),
        ({"step": "quick"}, "step"),
        ({"batch": 0}, "batch"),
        ({"absence": "leave"}, "absence"),
        ({"presence": 0.0}, "presence"),
        ({"presence": [0.5, 1.5]}, "presence"),
        ({"exchange": "none"}, "exchange"),
        ({"output": "first"}, "output"),
        ({"step": "exact", "batch": 3}, "step"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        fed.FedADMM(**options)


@pytest.mark.parametrize("exchange", ["both", "owner"])
def test_servers_without_data_are_nodes_like_others(exchange: str) -> None:
    rng = np.random.default_rng(0)
    losses = [gtv.PointLoss(a) for a in rng.standard_normal((5, 2))]
    net = fed.Network.star(losses)
    run = fed.simulate(fed.FedADMM(lam=0.4, penalty="l2", exchange=exchange), net, 400)
    optimum = run.problem.solve(rtol=1e-10)
    assert run.w.shape == (6, 2)
    assert run.models.shape == (5, 2)
    np.testing.assert_allclose(run.w, optimum.w, atol=1e-6)
    assert run.certificate().status == "CERTIFIED"


def test_columns_of_very_different_scale_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 9, 2)) * [1.0, 1e5]
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)])
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, X[:, :, 0]), "l2", 0.2)
    with pytest.warns(fed.StabilityWarning, match="scale"):
        fed.simulate(fed.FedADMM(), problem, 3)


def test_a_network_without_a_problem_needs_lam() -> None:
    net = fed.Network.star([gtv.PointLoss([1.0]), gtv.PointLoss([2.0])])
    with pytest.raises(ValueError, match="lam"):
        fed.simulate(fed.FedADMM(), net, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="rounds"):
            fed.simulate(fed.FedADMM(lam=1.0), net, 0)
