"""One replaced row never moves a client's answer by more than was announced."""

import contextlib
import math

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.privacy import _node_step, private_loss
from gtvcvx.federated.privacy._rows import clipped_rows, row_norms

B, Y, R = 1.5, 2.0, 0.8
# How to make each loss from rows and real targets.
MADE = {
    "logistic": lambda X, y: gtv.LogisticLoss(X, y > 0),
    "logistic with ridge": lambda X, y: gtv.LogisticLoss(X, y > 0, ridge=0.3),
    "hinge": lambda X, y: gtv.HingeLoss(X, np.where(y > 0, 1.0, -1.0)),
    "absolute": gtv.AbsoluteLoss,
    "quantile": lambda X, y: gtv.QuantileLoss(X, y, 0.2),
    "huber": lambda X, y: gtv.HuberLoss(X, y, 0.7),
    "pseudo-Huber": lambda X, y: gtv.PseudoHuberLoss(X, y, 0.7),
    "huber with l1 and box": lambda X, y: gtv.HuberLoss(X, y, 0.7) + gtv.L1(0.1) + gtv.Box(-1, 2),
    "squared": gtv.SquaredLoss,
    "squared with ridge": lambda X, y: gtv.SquaredLoss(X, y) + gtv.Ridge(0.2),
    "lasso": lambda X, y: gtv.LassoLoss(X, y, kappa=0.1),
}
BOUNDS = {
    "logistic": B,
    "hinge": B,
    "absolute": B,
    "quantile": 0.8 * B,
    "huber": 1.4 * B,
    "pseudo-Huber": 0.7 * B,
    "squared": 2 * B * (B * R + Y),
}


def admitted(name, X, y, radius=R):
    needs = name.startswith(("squared", "lasso"))
    return private_loss(
        MADE[name](X, y), B, target_bound=Y, radius=radius if needs else None, node=name
    )


def neighbours(rng, X, y, direction):
    """Rows with the last one replaced: far beyond all bounds, towards and against a direction."""
    far = 1e3 * direction / max(np.linalg.norm(direction), 1e-9)
    for x in (far, -far, 0.1 * rng.standard_normal(X.shape[1]), np.zeros(X.shape[1])):
        for target in (-1e4, 1e4, 0.3):
            yield np.vstack([X[:-1], x]), np.append(y[:-1], target)


def ratios(name, seed, unclipped=False):
    rng = np.random.default_rng(seed)
    D, d, rho = int(rng.integers(1, 6)), int(rng.integers(1, 4)), rng.choice([0.1, 1.0, 10.0])
    X, y = rng.standard_normal((D, d)), rng.standard_normal(D)
    phi, v = rng.standard_normal(d), 3 * rng.standard_normal(d)
    answers = []
    for rows in neighbours(rng, X, y, v):
        loss = admitted(name, *rows)
        if unclipped:
            answers.append(MADE[name](*rows).prox(v + phi / rho, 1 / rho))
        else:
            answers.append(loss.step(phi, v, rho))
    spread = max(np.linalg.norm(a - b) for a in answers for b in answers)
    return spread / loss.sensitivity(rho)


@pytest.mark.parametrize("name", MADE)
def test_replacing_a_row_stays_within_the_sensitivity(name):
    assert max(ratios(name, seed) for seed in range(8)) <= 1.0 + 1e-12


@pytest.mark.parametrize("name", MADE)
def test_without_clipping_it_would_not(name):
    """The bound is the clipping's doing, and the test above can fail."""
    assert max(ratios(name, seed, unclipped=True) for seed in range(8)) > 1.0


@pytest.mark.parametrize("name", ["absolute", "huber", "squared"])
def test_the_sensitivity_is_attained(name):
    """No smaller constant would do: one row, pulled as far as it goes to either side."""
    # So heavy a quadratic term that the loss is linear in all of its range.
    rho = 1e3 if name != "squared" else 1e6
    v = np.zeros(1) if name != "squared" else np.array([-R])
    ends = [admitted(name, [[9.0]], [target]).step([0.0], v, rho) for target in (-9e9, 9e9)]
    bound = admitted(name, [[9.0]], [0.0]).sensitivity(rho)
    if name == "squared":  # against the ball only one of the two pulls moves the answer
        pulled = R + ends[1][0]
        assert pulled == pytest.approx(bound / 2, rel=1e-2)
    else:
        assert abs(ends[0] - ends[1])[0] == pytest.approx(bound, rel=1e-2)


@pytest.mark.parametrize("name", BOUNDS)
def test_gradient_bounds_are_those_of_the_table(name):
    loss = admitted(name, np.ones((4, 2)), np.arange(4.0))
    assert loss.gradient_bound == pytest.approx(BOUNDS[name], rel=1e-15)
    assert loss.sensitivity(0.5) == pytest.approx(2 * BOUNDS[name] / (0.5 * 4), rel=1e-15)


@pytest.mark.parametrize("radius", [None, 0.3, 5.0])
@pytest.mark.parametrize("name", MADE)
def test_the_step_solves_its_problem(name, radius):
    if radius is None and name.startswith(("squared", "lasso")):
        radius = R
    rng = np.random.default_rng(5)
    X, y = 2 * rng.standard_normal((7, 3)), 3 * rng.standard_normal(7)
    phi, v, rho = rng.standard_normal(3), rng.standard_normal(3), 0.6
    loss = private_loss(MADE[name](X, y), B, target_bound=Y, radius=radius)
    w = loss.step(phi, v, rho)
    x = cp.Variable((1, 3))
    cost, constraints = loss.losses.expression(x)
    cost = cost - phi @ (x[0] - v) + rho / 2 * cp.sum_squares(x[0] - v)
    if radius is not None:
        constraints = [*constraints, cp.norm(x[0]) <= radius]
        assert np.linalg.norm(w) <= radius * (1 + 1e-15)
    cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")
    # As far as Clarabel goes; what is to rounding is tested below.
    assert w == pytest.approx(x.value[0], abs=1e-4)
    if radius == 0.3 and not name.endswith("box"):
        assert np.linalg.norm(w) == pytest.approx(radius, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_step_in_the_ball_is_optimal_to_rounding(scale):
    """Stationary on the sphere: the slope is antiparallel to w."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((30, 6)) * scale, 100 * rng.standard_normal(30)
    loss = private_loss(gtv.SquaredLoss(X, y), 4 * scale, target_bound=1e3, radius=0.01 / scale)
    phi, v = rng.standard_normal(6), 10 * rng.standard_normal(6) / scale
    w = loss.step(phi, v, 1e-3)
    slope = loss.losses.gradient(w[None])[0] - phi + 1e-3 * (w - v)
    nu = -(slope @ w) / (w @ w)
    assert nu > 0
    assert np.linalg.norm(slope + nu * w) <= 1e-10 * np.linalg.norm(slope)
    assert np.linalg.norm(w) == pytest.approx(0.01 / scale, rel=1e-14)


@pytest.mark.parametrize("name", ["logistic", "pseudo-Huber", "huber"])
def test_the_step_of_smooth_losses_is_stationary_to_rounding(name):
    rng = np.random.default_rng(3)
    loss = admitted(name, 9 * rng.standard_normal((20, 4)), rng.standard_normal(20))
    phi, v = rng.standard_normal(4), rng.standard_normal(4)
    w = loss.step(phi, v, 0.2)
    slope = loss.losses.gradient(w[None])[0] - phi + 0.2 * (w - v)
    assert np.linalg.norm(slope) <= 1e-13


@pytest.mark.parametrize("name", MADE)
def test_in_wild_units_answers_are_within_the_sensitivity_or_none(name):
    """Rows, bounds and weights over many orders of magnitude, which proximal maps may not solve."""
    rng = np.random.default_rng(3)
    solved = 0
    for _ in range(8):
        B_, rho, scale = 10.0 ** rng.integers(-6, 9), 10.0 ** rng.integers(-6, 7), 10.0**6
        X = rng.standard_normal((5, 4)) * 10.0 ** rng.integers(-6, 9, 4)
        y, phi, v = scale * rng.standard_normal(5), *rng.standard_normal((2, 4))
        answers = []
        for rows in neighbours(rng, X, y, v):
            loss = private_loss(MADE[name](*rows), B_, target_bound=Y, radius=R)
            with contextlib.suppress(ArithmeticError, ValueError):
                answers.append(loss.step(phi, v, rho))
        spread = max((np.linalg.norm(a - b) for a in answers for b in answers), default=0.0)
        # Each answer may be 1e-4 of the sensitivity off.
        assert spread <= loss.sensitivity(rho) * (1 + 2e-4)
        solved += len(answers)
    assert solved >= 24


@pytest.mark.parametrize("name", ["absolute", "pseudo-Huber", "huber with l1 and box", "squared"])
def test_an_answer_that_is_off_is_no_answer(name, monkeypatch):
    rng = np.random.default_rng(4)
    loss = admitted(name, rng.standard_normal((6, 3)), rng.standard_normal(6))
    w = loss.step(np.zeros(3), np.ones(3), 1.0)
    kind = type(loss.batch)
    shift = 1e-3 * loss.sensitivity(1.0)
    right, form = kind.prox, kind.quadratic
    monkeypatch.setattr(kind, "prox", lambda self, v, tau: right(self, v, tau) + shift)
    monkeypatch.setattr(
        _node_step._QuadraticPath, "__call__", lambda self, nu: w * 0.9, raising=True
    )
    assert (form(loss.batch) is None) == (name != "squared")
    with pytest.raises(ArithmeticError, match="was solved to"):
        loss.step(np.zeros(3), np.ones(3), 1.0)


def test_a_quadratic_loss_is_diagonalized_once(monkeypatch):
    calls = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: calls.append(1) or eigh(matrix))
    loss = private_loss(gtv.SquaredLoss(X2, Y2), 2.0, target_bound=Y, radius=R)
    answers = [loss.step(phi, np.ones(2), rho) for phi in np.eye(2) for rho in (1.0, 2.0)]
    assert len(calls) == 1
    assert len({tuple(answer) for answer in answers}) == 4


def test_a_server_cannot_ask_for_answers_in_which_noise_is_lost():
    loss = private_loss(gtv.HuberLoss(X2, Y2, 1.0), 1.0)
    for far in (1e13, 1e300):
        with pytest.raises(ValueError, match="received, phi"):
            loss.step([0.0, 0.0], [far, 0.0], 1.0)
    loss.step([0.0, 0.0], [1e9, 0.0], 1.0)


def test_rows_within_the_bound_are_left_as_they_are():
    rows = np.array([[0.3, 0.4], [0.0, 0.0], [3.0, 4.0], [1e200, 1e200], [1.7e308, 1.7e308]])
    out = clipped_rows(rows, 0.5)
    assert np.array_equal(out[:2], rows[:2])
    assert np.all(row_norms(out) <= 0.5)
    assert np.allclose(out[2:], [[0.3, 0.4], [0.5**1.5] * 2, [0.5**1.5] * 2])


def test_clipping_is_for_all_bounds_exact():
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-3, 1.0, 1e300):
        rows = rng.standard_normal((200, 5)) * scale
        for bound in (1e-300, 0.1 * scale, scale):
            assert max(math.hypot(*row) for row in clipped_rows(rows, bound)) <= bound


def test_the_arrays_of_the_user_may_change_later():
    X, y = np.ones((3, 2)), np.zeros(3)
    original = gtv.HuberLoss(X, y, 1.0)
    loss = private_loss(original, 10.0)
    before = loss.step([0.0, 0.0], [1.0, 1.0], 1.0)
    original.X[:] = 1e9
    original.y[:] = 1e9
    # Proximal maps begin where the last call ended: the last bit may differ.
    assert loss.step([0.0, 0.0], [1.0, 1.0], 1.0) == pytest.approx(before, rel=1e-14)


X2, Y2 = np.ones((3, 2)), np.array([0.0, 1.0, 1.0])
REFUSED = {
    "poisson": (gtv.PoissonLoss(X2, Y2), {}, "no bounded gradients"),
    "point": (gtv.PointLoss([1.0, 2.0]), {"radius": 1.0, "target_bound": 1.0}, "bounded"),
    "zero": (gtv.ZeroLoss(), {}, "no rows"),
    "ridge alone": (gtv.Ridge([1.0, 1.0]), {}, "no rows"),
    "cvxpy": (gtv.CvxpyLoss(cp.norm1, dim=2), {}, "bounded"),
    "squared": (gtv.SquaredLoss(X2, Y2), {}, "target_bound and a radius"),
    "squared without radius": (gtv.SquaredLoss(X2, Y2), {"target_bound": 1.0}, "a radius"),
    "lasso without targets": (gtv.LassoLoss(X2, Y2, 0.1), {"radius": 1.0}, "target_bound"),
    "two losses": (gtv.LogisticLoss(X2, Y2) + gtv.HuberLoss(X2, Y2, 1.0), {}, "sum of two"),
    "twice the same": (gtv.LogisticLoss(X2, Y2) + gtv.LogisticLoss(X2, Y2), {}, "sum of two"),
    "huber and poisson": (gtv.HuberLoss(X2, Y2, 1.0) + gtv.PoissonLoss(X2, Y2), {}, "bounded"),
    "delta by row": (gtv.HuberLoss(X2, Y2, [1.0, 1.0, 1e9]), {}, "delta must be one number"),
    "weights of rows": (
        gtv.LogisticLoss(X2, Y2, sample_weight=[1.0, 9.0, 1.0]),
        {},
        "is weighted; |weighted, ",
    ),
    "a multiple": (2.0 * gtv.LogisticLoss(X2, Y2), {}, "weighted, the mean over its rows"),
    "two nodes": (gtv.LogisticLoss.stack([X2, X2], [Y2, Y2]), {}, "2 nodes"),
    "not a loss": (lambda w: w @ w, {}, "no rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_losses_without_a_bound_are_refused_by_node_and_name(name):
    loss, bounds, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as refusal:
        private_loss(loss, 1.0, node="Oslo", **bounds)
    text = str(refusal.value)
    assert "node 'Oslo'" in text
    assert repr(loss) in text
    assert "two" in text or "admitted are" in text or "one number" in text or "2 nodes" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"row_bound": 0.0}, "^row_bound: "),
        ({"row_bound": math.nan}, "^row_bound: "),
        ({"row_bound": math.inf}, "^row_bound: "),
        ({"target_bound": -1.0}, "^target_bound: "),
        ({"radius": math.inf}, "^radius: "),
        ({"row_bound": 1e200}, "gradient bound inf"),
        ({"row_bound": 1e-200}, "gradient bound 0.0"),
    ],
)
def test_bad_bounds_are_refused(arguments, message):
    given = {"row_bound": 1.0, "target_bound": 1.0, "radius": 1.0} | arguments
    if given["row_bound"] == 1e-200:
        given |= {"target_bound": 1e-200}
    with pytest.raises(ValueError, match=message):
        private_loss(gtv.SquaredLoss(X2, Y2), given.pop("row_bound"), **given)


@pytest.mark.parametrize("field", ["X", "y"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_rows_that_were_spoilt_later_are_refused(name, bad, field):
    loss = MADE[name](np.ones((3, 2)), np.ones(3))
    getattr(loss, field).flat[0] = bad
    with pytest.raises(ValueError, match=r"(X|y).*finite"):
        private_loss(loss, 1.0, target_bound=1.0, radius=1.0)


def test_a_client_with_one_row_or_rows_of_zeros():
    loss = private_loss(gtv.HuberLoss(np.zeros((1, 2)), [5.0], 1.0), 1.0)
    assert loss.step([1.0, 0.0], [0.0, 0.0], 2.0) == pytest.approx([0.5, 0.0])
    assert (loss.n_samples, loss.sensitivity(2.0)) == (1, 2.0)


def test_a_ball_that_misses_the_box_is_refused():
    loss = gtv.HuberLoss(X2, Y2, 1.0) + gtv.Box(1.0, 2.0)
    with pytest.raises(ValueError, match="radius"):
        private_loss(loss, 1.0, radius=1.0)
    assert private_loss(loss, 1.0, radius=1.5).radius == 1.5


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([0.0], [0.0, 0.0], 1.0), "phi"),
        (([0.0, 0.0], [0.0, math.nan], 1.0), "received"),
        (([0.0, 0.0], [0.0, 0.0], 0.0), "rho"),
    ],
)
def test_bad_steps_are_refused_by_name(arguments, name):
    loss = private_loss(gtv.HuberLoss(X2, Y2, 1.0), 1.0)
    with pytest.raises(ValueError, match=f"^{name}: "):
        loss.step(*arguments)
    with pytest.raises(ValueError, match=r"^rho: "):
        loss.sensitivity(1e-320)
