"""Algorithm 1 of [GTV] as messages is Algorithm 1."""

import numpy as np
import pytest
from _systems import small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
def test_messages_do_the_iterations_of_the_solver(penalty: str) -> None:
    problem, _ = small(penalty)
    solver = Algorithm1(problem)
    solver.run(40)
    run = fed.simulate(fed.PrimalDual(), problem, 40)
    np.testing.assert_allclose(run.w, solver.w, rtol=0, atol=1e-12)


def test_run_is_certified_with_its_own_flows() -> None:
    problem, optimum = small()
    run = fed.simulate(fed.PrimalDual(), problem, 1500, reference=optimum)
    assert run.history["gap"][-1] < 1e-8
    assert run.certificate(search=False).status == "CERTIFIED"
    m, d = problem.graph.n_edges, problem.dim
    assert run.history["bytes_up"][-1] == 2 * m * 1500 * (8 * d + 20)


def test_absence_and_losses_are_warned_of() -> None:
    problem, _ = small()
    with pytest.warns(fed.StabilityWarning, match="availability"):
        fed.simulate(fed.PrimalDual(), problem, 3, availability=fed.Bernoulli(0.5))
    with pytest.warns(fed.StabilityWarning, match="loss"):
        fed.simulate(fed.PrimalDual(), problem, 3, loss=fed.Loss(0.5))


def test_a_network_without_a_problem_needs_lam_and_links_between_clients() -> None:
    star = fed.Network.star([gtv.PointLoss([1.0])])
    with pytest.raises(ValueError, match="lam: PrimalDual"):
        fed.simulate(fed.PrimalDual(), star, 2)
    with pytest.raises(ValueError, match="net: PrimalDual"):
        fed.simulate(fed.PrimalDual(0.1), star, 2)
    with pytest.raises(ValueError, match="penalty: it goes with lam"):
        fed.PrimalDual(penalty="l1")


def test_lam_and_penalty_take_the_place_of_the_problem() -> None:
    problem, _ = small("l1")
    net = fed.Network(fed.Network.from_problem(problem).models, problem.graph)
    own = fed.simulate(fed.PrimalDual(), problem, 30)
    given = fed.simulate(fed.PrimalDual(problem.lam, "l1"), net, 30)
    np.testing.assert_array_equal(given.w, own.w)
    np.testing.assert_array_equal(given.history["gap"], own.history["gap"])
    assert fed.PrimalDual(0.3).problem(net).penalty.name == "l2"


def test_from_any_start_the_optimum_is_reached() -> None:
    problem, optimum = small()
    start = np.full(problem.dim, 3.0)
    first = fed.simulate(fed.PrimalDual(initial=start), problem, 1)
    # The first step of Algorithm 1 has no flow yet: the proximal point of the start.
    linked = problem.graph.degrees > 0
    tau = 1.0 / np.maximum(problem.graph.degrees, 1)
    expected = problem.losses.prox(np.tile(start, (problem.graph.n_nodes, 1)), tau)
    np.testing.assert_allclose(first.w[linked], expected[linked], atol=1e-12)
    run = fed.simulate(fed.PrimalDual(initial=start), problem, 1500, reference=optimum)
    assert run.history["gap"][-1] < 1e-8
    with pytest.raises(ValueError, match="initial: shape"):
        fed.simulate(fed.PrimalDual(initial=start[1:]), problem, 2)


def test_networks_take_the_steps_with_their_own_prox() -> None:
    """Algorithm 1 once more, with a loop over edges, for models that are not convex."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, 6, 2))
    models = [
        fed.models.TwoLayerNetwork(X, (X[:, 0] > 0).astype(int), [0, 1], hidden=3, steps=5)
        for X in rows
    ]
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (0, 2), (2, 3)], [1.0, 0.5, 2.0, 1.0])
    start, lam, degrees = models[0].initial(1), 0.3, [2, 2, 3, 1]
    w, u = np.tile(start, (4, 1)), np.zeros((4, len(start)))
    for _ in range(6):
        old = w.copy()
        for i in range(4):
            out = sum(u[e] * ((i == a) - (i == b) * 1.0) for e, (a, b) in enumerate(graph.edges))
            w[i] = models[i].prox(old[i] - out / degrees[i], 1.0 / degrees[i])
        for e, (a, b) in enumerate(graph.edges):
            u[e] += 0.5 * ((2 * w[a] - old[a]) - (2 * w[b] - old[b]))
            u[e] *= min(1.0, lam * graph.weights[e] / np.linalg.norm(u[e]))
    algorithm = fed.PrimalDual(lam, initial=start)
    run = fed.simulate(algorithm, fed.Network(models, graph), 6)
    np.testing.assert_allclose(run.w, w, atol=1e-12)
    jumps = [
        A * np.linalg.norm(w[a] - w[b])
        for A, (a, b) in zip(graph.weights, graph.edges, strict=True)
    ]
    losses = [model.value(x) for model, x in zip(models, w, strict=True)]
    assert run.history["value"][-1] == pytest.approx(sum(losses) + lam * sum(jumps))
    assert run.problem is None
    assert run.certificate().reason == "a client's model is not convex"
