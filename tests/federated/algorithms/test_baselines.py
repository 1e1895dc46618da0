"""Local and Global: each client's own minimizer, and that of all data."""

import numpy as np
import pytest
from _systems import star_losses, star_network

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated.algorithms._baseline_programs import newton_point


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_local_models_are_the_clients_own_minimizers_and_nothing_is_sent(kind: str) -> None:
    net = star_network("logistic") if kind == "logistic" else star_network()
    if kind == "logistic":
        # Separable rows have no minimizer.
        losses = [loss + gtv.Ridge(0.1) for loss in star_losses("logistic")]
        net = fed.Network(losses, gtv.EmpiricalGraph(12, [(0, 1)]))
    run = fed.simulate(fed.Local(), net, 1)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    assert run.history["messages"][-1] == 0
    for i, model in enumerate(net.models):
        assert np.linalg.norm(model.gradient(run.models[i])) < 1e-6


def test_local_clients_that_come_late_find_theirs() -> None:
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(12, [(0, 1)]), star_losses(), "l2", 1.0)
    run = fed.simulate(fed.Local(), problem, 30, availability=fed.Bernoulli(0.3))
    assert run.history["gap"][0] > 1e-3
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


@pytest.mark.parametrize("weights", ["uniform", "rows"])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_global_needs_one_round_for_squared_losses_in_any_units(weights: str, scale: float) -> None:
    losses = star_losses(scale=scale)
    run = fed.simulate(fed.Global(weights=weights), star_network(scale=scale), 2)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    share = np.ones(12) if weights == "rows" else [len(loss.y) ** -0.5 for loss in losses]
    X = np.concatenate([p * loss.X for p, loss in zip(share, losses, strict=True)])
    y = np.concatenate([p * loss.y for p, loss in zip(share, losses, strict=True)])
    unit = np.linalg.norm(X, axis=0)
    expected = np.linalg.lstsq(X / unit, y, rcond=None)[0] / unit
    np.testing.assert_allclose(run.w[0] * unit, expected * unit, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_global_of_logistic_losses_takes_a_few_rounds_also_when_clients_are_absent(
    scale: float,
) -> None:
    net = star_network("logistic", scale)
    run = fed.simulate(fed.Global(), net, 40, record_every=40)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    absent = fed.simulate(fed.Global(), net, 80, availability=fed.Bernoulli(0.5), record_every=20)
    assert absent.certificate(rtol=1e-9).status == "CERTIFIED"


def test_global_with_collinear_columns_and_clients_without_data() -> None:
    X = np.array([[1.0, 2.0], [2.0, 4.0]])
    losses = [gtv.SquaredLoss(X, [1.0, 3.0]), gtv.ZeroLoss()]
    run = fed.simulate(fed.Global(), fed.Network.star(losses), 2)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


def test_bytes() -> None:
    run = fed.simulate(fed.Global(), star_network(), 3)
    assert run.history["bytes_up"][-1] == 3 * 12 * (8 * 9 + 8 * 3 + 20)


def test_losses_without_models_are_refused_by_name() -> None:
    net = fed.Network.star([gtv.HingeLoss([[1.0]], [1.0])])
    with pytest.raises(ValueError, match=r"net: client 0: .* use FedSGD"):
        fed.simulate(fed.Global(), net, 1)


def test_networks_of_two_layers_are_trained_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((12, 2))
    net = fed.models.TwoLayerNetwork(X, (X[:, 0] > 0).astype(int), [0, 1], hidden=3, steps=5)
    run = fed.simulate(fed.Local(initial=net.initial(0)), fed.Network.star([net]), 20)
    assert run.history["value"][-1] < 0.7 * run.history["value"][0]
    assert run.certificate().status == "UNPROVED"


def test_newton_steps_do_not_depend_on_units() -> None:
    hessian, linear = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -1.0])
    expected = np.linalg.solve(hessian, linear)
    unit = np.array([1e12, 1.0])
    found = newton_point(unit[:, None] * hessian * unit, unit * linear, np.zeros(2))
    np.testing.assert_allclose(found * unit, expected, rtol=1e-12)
