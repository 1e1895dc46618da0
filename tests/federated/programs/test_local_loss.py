"""Losses of single clients whose rows have weights."""

import numpy as np
import pytest

import gtvcvx as gtv
import gtvcvx.federated as fed
from gtvcvx.federated.algorithms._pgfl_privacy import _split
from gtvcvx.federated.programs._local_loss import local_losses

RNG = np.random.default_rng(0)
X, Y, S = RNG.standard_normal((6, 2)), RNG.standard_normal(6), np.arange(1.0, 7.0)
W = np.array([0.3, -0.4])


def local(loss):
    (found,) = local_losses([loss], 1, 2)
    return found


def test_gradients_and_lipschitz_constants_are_those_of_the_weighted_mean():
    loss = local(gtv.HuberLoss(X, Y, 0.3, sample_weight=S))
    slope = 2.0 * np.clip(X @ W - Y, -0.3, 0.3)
    assert loss.gradient(W) == pytest.approx((S * slope) @ X / S.sum())
    hessian = 2.0 * (X.T * S) @ X / S.sum()
    assert loss.lipschitz == pytest.approx(np.linalg.eigvalsh(hessian)[-1])
    points = local(3.0 * gtv.PointLoss([1.0, 2.0]) + gtv.HuberLoss(X, Y, 0.3, sample_weight=S))
    assert points.lipschitz == pytest.approx(6.0 + loss.lipschitz)


def test_the_mean_over_all_mini_batches_is_the_loss():
    loss = local(gtv.LogisticLoss(X, (Y > 0).astype(float), sample_weight=S))
    pairs = [np.array([i, j]) for i in range(6) for j in range(i)]
    mean = np.mean([loss.sampled(rows).gradient(W) for rows in pairs], axis=0)
    assert mean == pytest.approx(loss.gradient(W))


def test_private_rows_have_no_weights():
    weighted = gtv.LogisticLoss(X, (Y > 0).astype(float), sample_weight=S)
    with pytest.raises(ValueError, match="without weights"):
        _split(local(weighted))


def test_the_sum_of_weighted_losses_is_minimized_and_proved():
    losses = [
        gtv.LogisticLoss(X, (Y > 0).astype(float), ridge=0.1, sample_weight=S),
        2.0 * gtv.LogisticLoss(X[:3], (Y[:3] < 0).astype(float), ridge=0.1),
    ]
    net = fed.Network.star(losses)
    run = fed.simulate(fed.FedAvg(0.5, weights="rows"), net, 60, record_every=60)
    assert run.certificate(rtol=1e-6).status == "CERTIFIED"
