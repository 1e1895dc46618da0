"""The two-layer network: values and slopes from first principles, local updates, raw units."""

import pickle

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.models import LocalModel, TwoLayerNetwork
from gtvcvx.federated.models._descent import ProximalObjective, backtracked_steps

CLASSES = ("a", "b", 3)


def network(m=12, p=3, hidden=4, seed=0, scale=1.0, **options):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((m, p))
    y = [CLASSES[k] for k in rng.integers(0, 3, m)]
    return TwoLayerNetwork(X, y, CLASSES, hidden, **options), X, y


def naive_value(model, w, X, y, bias, ridge):
    """Row by row, as (40) is printed."""
    first, second = model.layers(w)
    total = 0.0
    for x, label in zip(X, y, strict=True):
        active = np.maximum(first.T @ np.append(x, [1.0] * bias), 0)
        logits = second.T @ np.append(active, [1.0] * bias)
        chances = np.exp(logits) / np.exp(logits).sum()
        total -= np.log(chances[model.classes.index(label)])
    return total / len(X) + ridge / 2 * np.sum(w**2)


OPTIONS = [(False, 0.0), (True, 0.0), (False, 0.3), (True, 0.3)]


@pytest.mark.parametrize(("bias", "ridge"), OPTIONS)
def test_value_is_the_formula(bias, ridge):
    model, X, y = network(bias=bias, ridge=ridge)
    w = model.initial(1) + 0.1
    assert model.value(w) == pytest.approx(naive_value(model, w, X, y, bias, ridge), rel=1e-13)
    assert model.dim == (3 + bias) * 4 + (4 + bias) * 3 == len(w)


@pytest.mark.parametrize(("bias", "ridge"), OPTIONS)
def test_gradient_against_differences(bias, ridge):
    model, _, _ = network(bias=bias, ridge=ridge)
    w = model.initial(2) + 0.05
    h = 1e-6
    steps = h * np.eye(model.dim)
    slopes = [(model.value(w + e) - model.value(w - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(model.gradient(w), slopes, atol=1e-8)


@pytest.mark.parametrize(("bias", "ridge"), OPTIONS)
def test_gradients_of_rows_are_those_of_networks_with_one_row(bias, ridge):
    model, X, y = network(bias=bias, ridge=ridge)
    w = model.initial(2) + 0.05
    rows = model.sample_gradients(w)
    alone = [
        TwoLayerNetwork([x], [label], CLASSES, 4, bias=bias).gradient(w)
        for x, label in zip(X, y, strict=True)
    ]
    np.testing.assert_allclose(rows, alone, atol=1e-13)
    assert model.n_rows == len(rows)
    with pytest.raises(ValueError, match="overflows"):
        model.sample_gradients(1e200 * w)


def test_layers_and_flat_are_inverse_and_copies():
    model, _, _ = network(bias=True)
    w = np.arange(model.dim, dtype=float)
    first, second = model.layers(w)
    assert first.shape == (4, 4)
    assert second.shape == (5, 3)
    np.testing.assert_array_equal(model.flat(first, second), w)
    first[:] = 0
    assert w[1] == 1
    with pytest.raises(ValueError, match=r"second: shape \(5, 3\) is expected"):
        model.flat(first, second.T)


def test_start_depends_on_sizes_and_seed_alone():
    one, other = network(seed=0)[0], network(seed=5, m=4)[0]
    np.testing.assert_array_equal(one.initial(7), other.initial(7))
    assert not np.array_equal(one.initial(7), one.initial(8))
    biased = network(bias=True)[0]
    first, second = biased.layers(biased.initial(0))
    assert not first[-1].any()
    assert not second[-1].any()
    wide = TwoLayerNetwork(np.ones((1, 800)), ["a"], CLASSES, 50)
    assert wide.layers(wide.initial(0))[0].var() == pytest.approx(2 / 800, rel=0.05)


def test_predictions():
    model, X, _ = network(bias=True)
    w = model.initial(3)
    chances = model.predict_proba(w, X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert model.predict(w, X).tolist() == [CLASSES[k] for k in chances.argmax(axis=1)]
    last = model.flat(np.zeros((4, 4)), np.vstack([np.zeros((4, 3)), [0, 0, 1]]))
    assert model.predict(last, X).tolist() == [3] * 12
    whole = TwoLayerNetwork(X, np.arange(12) % 2 * 5, np.array([5, 0]), 2)
    assert whole.predict(whole.initial(0), X).dtype == np.int64


def test_it_learns_what_is_no_linear_function():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = [0, 1, 1, 0]
    model = TwoLayerNetwork(X, y, [0, 1], 8, bias=True, steps=300)
    # From a start of which it finds a good minimum; from most others it does not.
    w = model.prox(model.initial(3), 1e3)
    assert model.predict(w, X).tolist() == y
    assert model.value(w) < 0.1


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("tau", [1e-4, 1.0, 1e6])
def test_local_update_never_increases_the_objective_in_any_units(scale, tau):
    model, _, _ = network(scale=scale)
    v = model.initial(0)
    objective = ProximalObjective(model.value, model.gradient, v, tau)
    few, many = network(scale=scale, steps=3)[0].prox(v, tau), model.prox(v, tau)
    rounding = 1e-15 * objective.value(v)
    assert objective.value(many) <= objective.value(few) + rounding
    assert objective.value(few) <= objective.value(v) + rounding
    # Nearer to a point where the slope is zero, also where values do not tell.
    assert np.linalg.norm(objective.gradient(many)) < np.linalg.norm(objective.gradient(v))


def test_local_update_is_stationary_in_the_end():
    model, _, _ = network(ridge=0.1, steps=5000)
    v = model.initial(0)
    z = model.prox(v, 0.1)
    np.testing.assert_allclose(model.gradient(z) + (z - v) / 0.1, 0, atol=1e-5)


def test_local_update_by_fixed_steps():
    model, _, _ = network(steps=2, step=0.01)
    v, tau = model.initial(0), 0.5
    one = v - 0.01 * model.gradient(v)
    two = one - 0.01 * (model.gradient(one) + (one - v) / tau)
    np.testing.assert_allclose(model.prox(v, tau), two, rtol=1e-14)
    wild, _, _ = network(scale=1e6, ridge=1.0, step=1e9)
    with pytest.raises(ValueError, match=r"step: 1000000000\.0 is too long"):
        wild.prox(v, tau)


def test_flat_objective_takes_the_exact_step_at_once():
    flat = ProximalObjective(lambda z: float(z.sum()), np.ones_like, np.zeros(3), 0.25)
    np.testing.assert_array_equal(backtracked_steps(flat, 1), np.full(3, -0.25))


def test_steps_that_values_cannot_judge_are_judged_by_slopes():
    hidden = ProximalObjective(
        lambda z: 1 + 1e-20 * float((z - 1) @ (z - 1)), lambda z: 2e-20 * (z - 1), np.zeros(2), 1e22
    )
    assert hidden.value(np.ones(2)) == hidden.value(np.zeros(2)) == 1
    # The minimizer of 1e-20 (z - 1)^2 + z^2 / 2e22 is 200/201.
    np.testing.assert_allclose(backtracked_steps(hidden, 60), 200 / 201, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_raw_units_and_overflow():
    model, _, _ = network(scale=1e150)
    w = model.initial(0)
    assert 1e140 < model.value(w) < np.inf
    assert np.isfinite(model.gradient(w)).all()
    huge = np.full(model.dim, 1e200) * np.sign(w)
    assert model.value(huge) == np.inf
    with pytest.raises(ValueError, match="w: the gradient of the network overflows"):
        model.gradient(huge)
    with pytest.raises(ValueError, match="w: logits of X overflow"):
        model.predict(huge, np.full((1, 3), 1e200))
    assert np.isfinite(model.prox(w, 1.0)).all()


def test_tiny_errors_keep_their_digits():
    model = TwoLayerNetwork([[1.0]], [0], [0, 1], 1)
    w = model.flat([[1.0]], [[40.0, 0.0]])
    assert model.value(w) == pytest.approx(np.exp(-40), rel=1e-12)
    np.testing.assert_allclose(model.gradient(w)[1:], [-np.exp(-40), np.exp(-40)], rtol=1e-12)


def test_pickled_copies_agree_and_input_is_copied():
    model, X, _ = network(bias=True)
    w = model.initial(0)
    before = model.prox(w, 1.0)
    X[:] = 0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.prox(w, 1.0), before)


def test_losses_and_networks_are_local_models():
    model = network()[0]
    assert isinstance(model, LocalModel)
    assert not model.convex
    for loss in (
        gtv.SquaredLoss([[1.0]], [1.0]),
        gtv.ZeroLoss(),
        gtv.HuberLoss([[1.0]], [1.0], 1.0),
    ):
        assert isinstance(loss, LocalModel)
        assert loss.convex


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": [[np.nan]]}, ValueError, r"X: entry \(0, 0\) is nan"),
        ({"X": [1.0]}, ValueError, "X: 2 axes"),
        ({"X": np.zeros((0, 2)), "y": []}, ValueError, "X: a row and a column"),
        ({"y": [0, 1]}, ValueError, "y: one label for each of the 1 rows"),
        ({"y": [2]}, ValueError, "y: row 0 has label 2, the classes are 0, 1"),
        ({"y": [0.5]}, TypeError, "y: integers or strings"),
        ({"y": "0"}, TypeError, "y: a sequence of labels"),
        ({"classes": [0]}, ValueError, "classes: two at least"),
        ({"classes": [0, 1, 0]}, ValueError, "classes: distinct labels"),
        ({"hidden": 0}, ValueError, "hidden: an integer >= 1"),
        ({"hidden": True}, ValueError, "hidden: an integer >= 1"),
        ({"ridge": -1.0}, ValueError, "ridge: a finite number >= 0"),
        ({"steps": 1.5}, ValueError, "steps: an integer >= 1"),
        ({"step": np.nan}, ValueError, "step: a positive finite number"),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    good = {"X": [[1.0]], "y": [0], "classes": [0, 1], "hidden": 2}
    with pytest.raises(error, match=message):
        TwoLayerNetwork(**(good | change))


def test_bad_vectors_are_refused_by_name():
    model = network()[0]
    w = model.initial(0)
    with pytest.raises(ValueError, match="w: a vector of length 24 is expected, got 23"):
        model.value(w[1:])
    with pytest.raises(ValueError, match="v: a vector of length 24"):
        model.prox(w[1:], 1.0)
    with pytest.raises(ValueError, match="tau: a positive"):
        model.prox(w, 0.0)
    with pytest.raises(ValueError, match="X: 3 columns are expected, got 2"):
        model.predict(w, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="seed: an integer"):
        model.initial(-1)
