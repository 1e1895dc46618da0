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


def test_a_network_without_a_problem_is_refused() -> None:
    with pytest.raises(ValueError, match="PrimalDual"):
        fed.simulate(fed.PrimalDual(), fed.Network.star([gtv.PointLoss([1.0])]), 2)
