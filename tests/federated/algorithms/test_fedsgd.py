"""FedSGD: the pooled minimizer below 2/L and nowhere else, equal to FedAvg with one step."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from _systems import row_bytes, star_losses, star_network

import gtvcvx as gtv
from gtvcvx import federated as fed


def pooled(kind: str = "squared") -> gtv.GTVProblem:
    """All clients at one node."""
    total = sum(star_losses(kind)[1:], start=star_losses(kind)[0])
    return gtv.GTVProblem(gtv.EmpiricalGraph(1, []), [total], "squared", 1.0)


def mean_slope() -> float:
    """Largest eigenvalue L of the mean Hessian."""
    hessians = [2 * loss.X.T @ loss.X / len(loss.y) for loss in star_losses()]
    return float(np.linalg.eigvalsh(np.mean(hessians, axis=0))[-1])


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_the_minimizer_of_the_sum_is_reached(kind: str) -> None:
    run = fed.simulate(fed.FedSGD(), star_network(kind), 1000, record_every=1000)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"
    np.testing.assert_allclose(run.w, pooled(kind).solve(rtol=1e-12).w, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(run.models, np.tile(run.w, (12, 1)))


@pytest.mark.parametrize("factor", [1.9, 2.1])
def test_steps_converge_below_the_bound_and_diverge_above(factor: float) -> None:
    algorithm = fed.FedSGD(lr=factor / mean_slope())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = fed.simulate(algorithm, star_network(), 600, record_every=10)
    if factor < 2:
        assert not caught
        assert run.history["gap"][-1] < 1e-12
    else:
        assert f"= {2 / mean_slope():.4g}" in str(caught[0].message)
        assert run.status == "diverged"
        assert "lr = " in run.message


@pytest.mark.parametrize("weights", ["uniform", "rows"])
def test_it_is_fedavg_with_one_step_also_when_clients_are_absent(weights: str) -> None:
    lr = 0.9 / mean_slope()
    runs = [
        fed.simulate(algorithm, star_network(), 40, availability=fed.Bernoulli(0.5), seed=3)
        for algorithm in (
            fed.FedSGD(lr, weights=weights),
            fed.FedAvg(steps=1, lr=lr, weights=weights),
        )
    ]
    np.testing.assert_allclose(runs[0].w, runs[1].w, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(runs[0].history["bytes_up"], runs[1].history["bytes_up"])


def test_rows_as_weights_have_the_mean_over_all_rows() -> None:
    losses = star_losses()
    X, y = np.concatenate([x.X for x in losses]), np.concatenate([x.y for x in losses])
    run = fed.simulate(fed.FedSGD(weights="rows"), star_network(), 1500, record_every=1500)
    np.testing.assert_allclose(run.w[0], np.linalg.lstsq(X, y, rcond=None)[0], rtol=0, atol=1e-9)
    assert run.history["value"][-1] == pytest.approx(np.mean((X @ run.w[0] - y) ** 2))
    logistic = fed.simulate(
        fed.FedSGD(weights="rows"), star_network("logistic"), 400, record_every=400
    )
    assert logistic.certificate().status == "CERTIFIED"


@pytest.mark.parametrize("absence", ["keep", "skip"])
def test_absence_and_sampling(absence: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fed.StabilityWarning)
        run = fed.simulate(
            fed.FedSGD(absence=absence),
            star_network(),
            2000,
            availability=fed.Bernoulli(0.7),
            sampling=fed.Sampling(5),
            record_every=500,
        )
    assert run.status == "finished"
    assert all(np.isfinite(run.history[name]).all() for name in run.history)
    assert (run.history["gap"][-1] < 1e-10) == (absence == "keep")


def test_late_and_lost_messages_leave_the_limit() -> None:
    run = fed.simulate(
        fed.FedSGD(),
        star_network(),
        1500,
        delay=fed.Delay([0.5, 0.3, 0.2]),
        loss=fed.Loss(0.1),
        crashes=[fed.Crash(2, at=4, back=9)],
        record_every=500,
    )
    assert run.history["gap"][-1] < 1e-10


def test_bytes() -> None:
    run = fed.simulate(fed.FedSGD(lr=0.01), star_network(), 6)
    assert run.history["bytes_up"][-1] == run.history["bytes_down"][-1] == 6 * 12 * row_bytes(3)
    asked = fed.simulate(fed.FedSGD(), star_network(), 6)
    assert asked.history["bytes_up"][-1] == 12 * (20 + 16 + 5 * row_bytes(3))


def test_raw_units_have_finite_histories_and_true_gaps() -> None:
    with pytest.warns(fed.StabilityWarning, match="columns of X differ"):
        run = fed.simulate(fed.FedSGD(), star_network(scale=1e4), 50)
    assert run.status == "finished"
    losses = star_losses(scale=1e4)
    total = sum(losses[1:], start=losses[0])
    optimum = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), [total], "squared", 1.0).solve().value
    assert run.history["value"][-1] - optimum <= run.history["gap"][-1] * (1 + 1e-9)


def test_clients_without_data_slow_it_down_and_change_nothing() -> None:
    losses = [*star_losses()[:3], gtv.ZeroLoss()]
    run = fed.simulate(fed.FedSGD(), fed.Network.star(losses), 4000, record_every=4000)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


def test_losses_known_to_cvxpy_alone_cannot_be_added() -> None:
    losses = [gtv.CvxpyLoss(lambda w: cp.sum_squares(w - 1.0), dim=2), gtv.PointLoss([0.0, 0.0])]
    run = fed.simulate(fed.FedSGD(lr=0.1), fed.Network.star(losses), 2)
    assert run.certificate().status == "UNPROVED"
    assert "CVXPY" in run.reason


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="lr: a positive"):
        fed.FedSGD(lr=-1.0)
    with pytest.raises(ValueError, match=r"client 0.*give lr"):
        fed.simulate(fed.FedSGD(), fed.Network.star([gtv.PoissonLoss([[1.0]], [1.0])]), 2)


def test_networks_whose_numbers_overflow_count_as_diverged() -> None:
    X = np.random.default_rng(0).standard_normal((9, 2))
    net = fed.models.TwoLayerNetwork(X, [0, 1, 0] * 3, [0, 1], hidden=3, ridge=1.0)
    start = net.initial(0)
    for algorithm in (
        fed.FedSGD(lr=1e60, initial=start),
        fed.FedAvg(steps=4, lr=1e60, initial=start),
        fed.IFCA(1, lr=1e60, initial=start[None, :]),
    ):
        run = fed.simulate(algorithm, fed.Network.star([net]), 30, record_every=30)
        assert run.status == "diverged"
        assert np.isfinite(run.w).all()
