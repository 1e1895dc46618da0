"""IFCA: clusters found, both averages and updates by hand, starts and seeds, absent clients."""

import warnings
from typing import Any

import numpy as np
import pytest
from _systems import star_losses, star_network

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray

CLUSTERS = np.arange(12) // 6


def by_hand(start: FloatArray, lr: float, average: str, update: str, rounds: int) -> FloatArray:
    models = start.copy()
    losses = star_losses()
    for _ in range(rounds):
        choice = np.array([np.argmin([loss.value(w) for w in models]) for loss in losses])
        assert 0 < choice.sum() < 12
        sums = np.zeros_like(models)
        for j, loss in zip(choice, losses, strict=True):
            w = models[j]
            for _ in range(2 if update == "models" else 1):
                w = w - lr * loss.gradient(w)
            sums[j] += w - models[j]
        counts = np.array([12 if average == "all" else max((choice == j).sum(), 1) for j in (0, 1)])
        models = models + sums / counts[:, None]
    return models


@pytest.mark.parametrize("average", ["cluster", "all"])
@pytest.mark.parametrize("update", ["gradients", "models"])
def test_the_rounds_are_those_written_by_hand(average: str, update: str) -> None:
    local = [
        np.linalg.lstsq(star_losses()[i].X, star_losses()[i].y, rcond=None)[0] for i in (5, 11)
    ]
    start = np.array(local) + 0.1
    steps = 2 if update == "models" else 1
    algorithm = fed.IFCA(2, 0.05, average, update, steps=steps, initial=start)
    run = fed.simulate(algorithm, star_network(), 5)
    np.testing.assert_allclose(
        run.reports[12].w, by_hand(start, 0.05, average, update, 5), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("update", ["gradients", "models"])
def test_clusters_are_found_and_nothing_is_certified(update: str) -> None:
    algorithm = fed.IFCA(2, update=update, restarts=3)
    run = fed.simulate(algorithm, star_network(), 300, record_every=50, seed=1)
    found = algorithm.assignment(run.net, run.reports)
    assert len(set(zip(found.tolist(), CLUSTERS.tolist(), strict=True))) == 2
    np.testing.assert_array_equal(found, [report.choice for report in run.reports[:12]])
    certificate = run.certificate()
    assert certificate.status == "UNPROVED"
    assert "not convex; best of 3 starts" in certificate.reason
    oracle = fed.simulate(fed.Global(), fed.Network.star(star_losses()[:6]), 2)
    np.testing.assert_allclose(run.models[0], oracle.w[0], rtol=0, atol=1e-3)
    total = sum(loss.value(w) for loss, w in zip(star_losses(), run.models, strict=True))
    assert run.history["value"][-1] == pytest.approx(total)


def test_more_starts_are_never_worse_and_seeds_repeat() -> None:
    rng = np.random.default_rng(5)
    starts = 3.0 * rng.standard_normal((4, 2, 3))
    values = []
    for start in starts:
        run = fed.simulate(fed.IFCA(2, initial=start), star_network(), 60, record_every=60)
        values.append(run.history["value"][-1])
    joint = fed.simulate(fed.IFCA(2, restarts=4, initial=starts), star_network(), 60)
    assert max(values) > min(values) + 1e-3
    assert joint.history["value"][-1] == pytest.approx(min(values))
    first, again, other = (
        fed.simulate(fed.IFCA(2), star_network(), 3, seed=seed).w for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert abs(first - other).max() > 1e-3


def test_absence_and_sampling() -> None:
    run = fed.simulate(
        fed.IFCA(2, restarts=3),
        star_network(),
        400,
        availability=fed.Bernoulli(0.7),
        sampling=fed.Sampling(6),
        record_every=50,
        seed=1,
    )
    assert run.status == "finished"
    assert all(np.isfinite(run.history[name]).all() for name in run.history)
    assert run.history["value"][-1] < 0.2 * run.history["value"][0]


def test_bytes() -> None:
    starts, k, d = 2, 3, 3
    run = fed.simulate(fed.IFCA(k, restarts=starts), star_network(), 4)
    assert run.history["bytes_up"][-1] == 4 * 12 * (8 * starts * (d + 2) + 28)
    assert run.history["bytes_down"][-1] == 4 * 12 * (8 * (starts * k * d + 2) + 20)


def test_steps_too_long_are_warned_of_and_told_as_diverged() -> None:
    with pytest.warns(fed.StabilityWarning, match="2 / max l_i"):
        run = fed.simulate(fed.IFCA(1, lr=5.0), star_network(), 200)
    assert run.status == "diverged"
    assert "lr = 5" in run.message


def test_one_client_one_model_and_clients_without_data() -> None:
    net = fed.Network.star([star_losses()[5], gtv.ZeroLoss()])
    run = fed.simulate(fed.IFCA(1, average="cluster"), net, 1500, record_every=500)
    loss = star_losses()[5]
    expected = np.linalg.lstsq(loss.X, loss.y, rcond=None)[0]
    np.testing.assert_allclose(run.models[0], expected, rtol=0, atol=1e-4)


def test_networks_of_two_layers_are_clustered() -> None:
    rng = np.random.default_rng(4)
    nets: list[Any] = []
    for i in range(6):
        X = rng.standard_normal((40, 2))
        y = (X[:, 0] > 0).astype(int) if i < 3 else (X[:, 0] <= 0).astype(int)
        nets.append(fed.models.TwoLayerNetwork(X, y, [0, 1], hidden=4))
    initial = np.array([[nets[0].initial(seed) for seed in (2 * r, 2 * r + 1)] for r in range(3)])
    algorithm = fed.IFCA(2, lr=0.5, restarts=3, initial=initial)
    run = fed.simulate(algorithm, fed.Network.star(nets), 60, record_every=60)
    found = algorithm.assignment(run.net, run.reports)
    assert len(set(found[:3].tolist())) == len(set(found[3:].tolist())) == 1
    assert found[0] != found[5]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 2, "lr": -1.0}, "lr"),
        ({"k": 2, "average": "mean"}, "average"),
        ({"k": 2, "update": "weights"}, "update"),
        ({"k": 2, "steps": 3}, "steps"),
        ({"k": 2, "restarts": 0}, "restarts"),
        ({"k": 2, "spread": 0.0}, "spread"),
        ({"k": 2, "initial": np.zeros((3, 3))}, "initial"),
        ({"k": 1, "initial": [[np.inf]]}, "initial"),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}:"):
        fed.IFCA(**given)


def test_starts_of_another_dimension_and_losses_without_slopes_are_refused() -> None:
    with pytest.raises(ValueError, match="initial: d = 3"):
        fed.simulate(fed.IFCA(1, initial=[[0.0]]), star_network(), 1)
    hinge = fed.Network.star([gtv.HingeLoss([[1.0]], [1.0])])
    with pytest.raises(ValueError, match="lr: client 0"), warnings.catch_warnings():
        fed.simulate(fed.IFCA(1), hinge, 1)
