"""pFedMe: the star's optimum with one local round, a bias with more."""

import warnings

import numpy as np
import pytest
from _systems import row_bytes, star_losses, star_network

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray


def star_optimum(lam: float) -> FloatArray:
    graph = gtv.EmpiricalGraph(13, [(i, 12) for i in range(12)])
    problem = gtv.GTVProblem(graph, [*star_losses(), gtv.ZeroLoss()], "squared", lam)
    return problem.solve(rtol=1e-13).w


@pytest.mark.parametrize(
    ("step", "beta", "rounds"), [(1.0, 1.0, 200), (0.1, 1.0, 2000), (0.5, 2.0, 200)]
)
def test_one_local_round_has_the_star_optimum(step: float, beta: float, rounds: int) -> None:
    lam = 0.2
    algorithm = fed.PFedMe(lam, eta=step / lam, beta=beta)
    run = fed.simulate(algorithm, star_network(), rounds, record_every=rounds)
    np.testing.assert_allclose(run.w, star_optimum(lam), rtol=0, atol=1e-9)
    assert run.certificate(rtol=1e-9).status == "CERTIFIED"


def test_two_rounds_by_hand() -> None:
    lam, step, beta = 0.5, 0.25, 0.8
    centre = np.zeros(3)
    for _ in range(2):
        ends = []
        for loss in star_losses():
            w = centre
            for _ in range(3):
                theta = loss.prox(w, 1.0 / lam)
                w = w - step * (w - theta)
            ends.append(w)
        centre = (1 - beta) * centre + beta * np.mean(ends, axis=0)
    algorithm = fed.PFedMe(lam, eta=step / lam, beta=beta, local_rounds=3)
    run = fed.simulate(algorithm, star_network(), 2)
    np.testing.assert_allclose(run.w[12], centre, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.w[11], theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("local_rounds", [5, 20])
def test_more_local_rounds_do_not_agree(local_rounds: int) -> None:
    lam = 0.2
    algorithm = fed.PFedMe(lam, local_rounds=local_rounds)
    run = fed.simulate(algorithm, star_network(), 500, record_every=500)
    certificate = run.certificate()
    assert certificate.status == "UNPROVED"
    assert "local rounds" in certificate.reason
    error = np.linalg.norm(run.w - star_optimum(lam), axis=1).max()
    assert certificate.distance == pytest.approx(error, rel=1e-3)
    assert error > 1e-3


def test_it_is_fedavg_with_half_of_lam() -> None:
    net = star_network("logistic")
    mine, theirs = (
        fed.simulate(algorithm, net, 20, availability=fed.Bernoulli(0.6), record_every=20)
        for algorithm in (fed.PFedMe(0.4), fed.FedAvg(0.2))
    )
    # To the last bit: losses remember nothing of the first run.
    np.testing.assert_array_equal(mine.w, theirs.w)


@pytest.mark.parametrize("absence", ["keep", "skip"])
def test_absence_and_sampling(absence: str) -> None:
    lam = 0.2
    algorithm = fed.PFedMe(lam, eta=0.5 / lam, absence=absence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fed.StabilityWarning)
        run = fed.simulate(
            algorithm,
            star_network(),
            1000,
            availability=fed.Bernoulli(0.7),
            sampling=fed.Sampling(5),
            record_every=250,
        )
    assert run.status == "finished"
    assert all(np.isfinite(run.history[name]).all() for name in run.history)
    assert (abs(run.w - star_optimum(lam)).max() < 1e-9) == (absence == "keep")


def test_bytes_and_the_order_of_clients() -> None:
    run = fed.simulate(fed.PFedMe(1.0, local_rounds=3), star_network(), 6)
    assert run.history["bytes_up"][-1] == run.history["bytes_down"][-1] == 6 * 12 * row_bytes(3)
    order = np.random.default_rng(1).permutation(12)
    other = fed.Network.star([star_losses()[i] for i in order])
    moved = fed.simulate(fed.PFedMe(1.0, local_rounds=3), other, 6)
    np.testing.assert_allclose(moved.models, run.models[order], rtol=0, atol=1e-13)


def test_long_steps_are_warned_of() -> None:
    with pytest.warns(fed.StabilityWarning, match="eta lam beta = 2.5"):
        fed.simulate(fed.PFedMe(1.0, eta=2.5), star_network(), 1)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"lam": -1.0}, "lam"),
        ({"lam": 1.0, "eta": 0.0}, "eta"),
        ({"lam": 1.0, "beta": np.nan}, "beta"),
        ({"lam": 1.0, "local_rounds": 0}, "local_rounds"),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}:"):
        fed.PFedMe(**given)  # type: ignore[arg-type]
