"""Steps along clipped gradients: any differentiable loss, the same sensitivity."""

import math

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.privacy import linearized_sensitivity, linearized_step, sample_gradients

CLIP, RHO = 0.7, 0.3


def test_the_step_is_the_formula():
    rng = np.random.default_rng(0)
    g, phi, v, r = rng.standard_normal((5, 3)), *rng.standard_normal((3, 3))
    mean = sum(x * min(1, CLIP / math.hypot(*x)) for x in g) / 5
    expected = (RHO * v + phi - mean - r) / RHO
    assert linearized_step(g, phi, v, RHO, CLIP, r) == pytest.approx(expected, rel=1e-13)


def test_replacing_a_gradient_stays_within_the_sensitivity_and_attains_it():
    rng = np.random.default_rng(1)
    bound = linearized_sensitivity(4, RHO, CLIP)
    assert bound == pytest.approx(2 * CLIP / (RHO * 4))
    g, phi, v = rng.standard_normal((4, 2)), np.zeros(2), np.ones(2)
    far = np.array([3e200, -4e200])
    answers = []
    for last in (far, -far, np.zeros(2), 0.1 * far / 1e200, rng.standard_normal(2)):
        g[-1] = last
        answers.append(linearized_step(g, phi, v, RHO, CLIP))
    spread = max(np.linalg.norm(a - b) for a in answers for b in answers)
    assert bound * (1 - 1e-12) <= spread <= bound * (1 + 1e-12)


def test_sample_gradients_are_those_of_single_rows():
    rng = np.random.default_rng(2)
    X, y, w = rng.standard_normal((6, 3)), rng.integers(0, 2, 6), rng.standard_normal(3)
    losses = (
        gtv.SquaredLoss(X, y),
        gtv.PoissonLoss(X, y),
        gtv.LogisticLoss(X, y, ridge=2.0),
        gtv.HuberLoss(X, y, np.arange(1.0, 7.0)),
    )
    for loss in losses:
        g = sample_gradients(loss, w)
        assert g.shape == (6, 3)
        rest = 2.0 * w if isinstance(loss, gtv.LogisticLoss) else 0.0
        assert g.mean(axis=0) + rest == pytest.approx(loss.gradient(w), rel=1e-12)
    assert sample_gradients(losses[0], w) == pytest.approx(2 * X * (X @ w - y)[:, None])
    # The third row alone.
    alone = gtv.HuberLoss(X[2:3], y[2:3], 3.0)
    assert sample_gradients(losses[3], w)[2] == pytest.approx(alone.gradient(w))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"gradients": [[math.nan, 0.0]]}, "gradients"),
        ({"gradients": np.empty((0, 2))}, "gradients"),
        ({"phi": [1.0]}, "phi"),
        ({"received": [0.0, math.inf]}, "received"),
        ({"rho": 0.0}, "rho"),
        ({"clip": math.nan}, "clip"),
        ({"regularizer_gradient": [1.0]}, "regularizer_gradient"),
    ],
)
def test_bad_input_is_refused_by_name(change, name):
    given = {"gradients": np.ones((3, 2)), "phi": [0, 0], "received": [0, 0], "rho": 1, "clip": 1}
    with pytest.raises(ValueError, match=f"^{name}: "):
        linearized_step(**(given | change))


def test_losses_without_rows_have_no_sample_gradients():
    with pytest.raises(TypeError, match="loss of rows"):
        sample_gradients(gtv.PointLoss([1.0]), [1.0])
    weighted = gtv.SquaredLoss([[1.0], [2.0]], [1.0, 1.0], sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"^loss: SquaredLoss.* is weighted"):
        sample_gradients(weighted, [1.0])
    with pytest.raises(ValueError, match=r"^w: "):
        sample_gradients(gtv.SquaredLoss([[1.0]], [1.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^n_samples: "):
        linearized_sensitivity(0, 1.0, 1.0)
