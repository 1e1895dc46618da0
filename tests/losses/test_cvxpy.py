"""Losses that users write with CVXPY: proximal points, conjugate bounds, models."""

import doctest
import importlib
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.conic._function import CvxpyFunction
from gtvcvx.conic._solver import ConicSolver, _Kept, _settings
from gtvcvx.losses.batched import _cvxpy

_RNG = np.random.default_rng(11)
X, Y = _RNG.standard_normal((6, 3)), _RNG.standard_normal(6)
FEW, FEW_Y = X[:2], Y[:2]
LABELS = (Y > 0).astype(float)


def epigraph(w):
    """Sum of max(w - 1, -w) by a variable of the user's own."""
    t = cp.Variable(3)
    return cp.sum(t), [t >= w - 1.0, t >= -w]


# Constraints, kinks, auxiliary variables, and every kind of cone.
BUILDS = {
    "squares": lambda w: cp.sum_squares(X @ w - Y) / 6,
    "few-rows": lambda w: cp.sum_squares(FEW @ w - FEW_Y) / 2,
    "huber": lambda w: cp.sum(cp.huber(X @ w - Y)) / 6,
    "absolute": lambda w: cp.norm1(X @ w - Y),
    "logistic": lambda w: cp.sum(cp.logistic(X @ w)) - LABELS @ X @ w + 0.1 * cp.sum_squares(w),
    "group": lambda w: cp.quad_form(w, X.T @ X) - Y @ X @ w + cp.norm(w),
    "simplex": lambda w: (cp.sum_squares(X @ w - Y), [w >= 0, cp.sum(w) == 1]),
    "affine": lambda w: (cp.sum_squares(FEW @ w - FEW_Y), [cp.sum(w) == 1]),
    "ball": lambda w: (cp.norm1(X @ w - Y), [cp.norm(w) <= 0.5]),
    "barrier": lambda w: cp.sum_squares(w) - cp.sum(cp.log(w + 1)),
    "power": lambda w: cp.sum(cp.power(cp.abs(w - 1) + 1, 1.7, approx=False)),
    "eigenvalue": lambda w: cp.lambda_max(cp.diag(w) + X[:3] + X[:3].T) + cp.sum_squares(w),
    "epigraph": epigraph,
    "zero": lambda w: 0.0,
}


@dataclass
class Case:
    """One loss at one node, and the function on paper."""

    build: object
    loss: gtv.CvxpyLoss
    rng: np.random.Generator

    def model(self, w):
        built = self.build(w)
        return built if isinstance(built, tuple) else (built, [])

    def prox(self, v, tau):
        return self.loss.prox(v, tau)

    def subgradient(self):
        """A point and a subgradient there: the proximal step's."""
        v, tau = 2.0 * self.rng.standard_normal(3), 0.7
        z = self.prox(v, tau)
        return z, (v - z) / tau

    def gap(self, w, s):
        batch = gtv.CvxpyLoss.batch([self.loss], 3)
        return float(batch.fenchel_gap(w[None], s[None])[0])


@pytest.fixture(params=[*BUILDS])
def case(request):
    build = BUILDS[request.param]
    return Case(build, gtv.CvxpyLoss(build, dim=3), np.random.default_rng(5))


def solved(problem):
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


@pytest.mark.parametrize("tau", [0.05, 1.0, 30.0])
def test_prox_attains_the_minimum_that_cvxpy_finds(case, tau):
    v = 2.0 * case.rng.standard_normal(3)
    z, w = case.prox(v, tau), cp.Variable(3)
    cost, constraints = case.model(w)
    best = cp.Problem(cp.Minimize(cost + cp.sum_squares(w - v) / (2 * tau)), constraints)
    best.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(z, w.value, atol=2e-5 * max(1.0, np.sqrt(tau)))
    ours = case.loss.value(z) + np.sum((z - v) ** 2) / (2 * tau)
    assert ours == pytest.approx(best.value, abs=1e-6)


def test_prox_is_firmly_nonexpansive(case):
    for _ in range(5):
        v, x = case.rng.standard_normal((2, 3))
        moved = case.prox(v, 0.5) - case.prox(x, 0.5)
        assert moved @ (v - x) >= moved @ moved - 1e-9


def test_fenchel_young(case):
    """A gap is nonnegative, and zero for a point and its subgradient."""
    z, s = case.subgradient()
    assert 0.0 <= case.gap(z, s) <= 1e-8
    other, _ = case.subgradient()
    definition = case.loss.value(other) + case.loss.conjugate(s, 1e-6) - s @ other
    assert case.gap(other, s) == pytest.approx(definition, abs=1e-8)
    assert case.gap(other, s) >= -1e-12


def test_conjugate_is_an_upper_bound_and_tight(case):
    z, s = case.subgradient()
    bound = case.loss.conjugate(s, 1e-9)
    assert bound == pytest.approx(s @ z - case.loss.value(z), abs=1e-8)
    for _ in range(20):
        w = case.prox(2.0 * case.rng.standard_normal(3), 0.3)
        assert s @ w - case.loss.value(w) <= bound + 1e-12 * max(1.0, abs(bound))


def test_conjugate_expression_is_the_conjugate(case):
    _, s = case.subgradient()
    rows = np.stack([s, s])
    S = cp.Variable((2, 3))
    batch = gtv.CvxpyLoss.batch([case.loss, case.loss], 3)
    cost, constraints = batch.conjugate_expression(S)
    model = cp.Problem(cp.Minimize(cost), [rows == S, *constraints])
    assert model.is_dcp()
    model.solve(solver=cp.CLARABEL)
    assert model.value == pytest.approx(2.0 * case.loss.conjugate(s, 1e-9), abs=1e-6)


def test_expression_is_the_value(case):
    w = cp.Variable((2, 3))
    rows = np.stack([case.subgradient()[0], case.subgradient()[0]])
    batch = gtv.CvxpyLoss.batch([case.loss, case.loss], 3)
    cost, constraints = batch.expression(w)
    model = cp.Problem(cp.Minimize(cost), [w == rows, *constraints])
    found = solved(model)
    assert found == pytest.approx(batch.value(rows).sum(), abs=1e-6)


def test_gradient_is_the_slope_of_the_value(case):
    z, _ = case.subgradient()
    g = case.loss.gradient(z)
    for _ in range(10):
        w = case.prox(2.0 * case.rng.standard_normal(3), 0.3)
        assert case.loss.value(w) >= case.loss.value(z) + g @ (w - z) - 1e-6


def test_minimizer(case):
    batch = gtv.CvxpyLoss.batch([case.loss], 3)
    w = cp.Variable(3)
    cost, constraints = case.model(w)
    least = cp.Problem(cp.Minimize(cost + np.zeros(3) @ w), constraints)
    least.solve(solver=cp.CLARABEL)
    best = batch.minimizer()
    assert batch.value(best)[0] == pytest.approx(least.value, abs=1e-6)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", batch.null_projector(), best), 0, atol=1e-9)


def test_squares_are_the_squared_loss():
    """A numerical conjugate and its twin in closed form, on full and on deficient rank."""
    rng = np.random.default_rng(3)
    for name, rows, targets in (("squares", X, Y), ("few-rows", FEW, FEW_Y)):
        ours, twin = gtv.CvxpyLoss(BUILDS[name], dim=3), gtv.SquaredLoss(rows, targets)
        for _ in range(20):
            s = rows.T @ rng.standard_normal(len(rows))
            found, exact = ours.conjugate(s), twin.conjugate(s)
            assert -1e-13 * max(1.0, abs(exact)) <= found - exact <= 1e-9 * max(1.0, abs(exact))
        w = rng.standard_normal(3)
        assert ours.value(w) == pytest.approx(twin.value(w), rel=1e-12)
        np.testing.assert_allclose(ours.gradient(w), twin.gradient(w), rtol=1e-8)
        projector = gtv.CvxpyLoss.batch([ours], 3).null_projector()
        expected = gtv.SquaredLoss.batch([twin], 3).null_projector()
        np.testing.assert_allclose(projector, expected, atol=1e-12)


def test_conjugate_of_the_absolute_value_is_its_interval():
    loss = gtv.CvxpyLoss(lambda w: cp.abs(w[0] - 3.0), dim=1)
    for s in (-1.0, -0.3, 0.0, 0.999999, 1.0):
        assert loss.conjugate([s]) == pytest.approx(3.0 * s, abs=1e-8)
        assert loss.conjugate([s]) >= 3.0 * s - 1e-13
    assert loss.conjugate([1.0 + 1e-6]) == np.inf
    # Within a tolerance, what is outside is moved back.
    assert loss.conjugate([1.0 + 1e-6], atol=1e-5) == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-4])
def test_bounds_hold_however_early_the_solver_stops(tolerance):
    """They come from the dual point: the primal objective would lie below."""
    a = np.array([1.0, -2.0, 0.5])
    build = lambda w: cp.norm1(w - a) + 0.5 * cp.sum_squares(w - a)  # noqa: E731
    form = gtv.CvxpyLoss(build, dim=3).function(3).form
    solver = ConicSolver(form)
    early = _settings(tolerance, tolerance, 10 * tolerance)
    solver._kept[None] = _Kept(form, 0.0, early)
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(50):
        s = 3.0 * rng.standard_normal(3)
        exact = s @ a + 0.5 * np.sum(np.maximum(np.abs(s) - 1.0, 0.0) ** 2)
        errors.append(solver.conjugate(s).upper - exact)
    assert min(errors) >= -1e-12
    # The solver did stop early.
    assert max(errors) >= 1e-2 * tolerance


def test_null_directions_are_left_out_up_to_a_tolerance():
    loss = gtv.CvxpyLoss(lambda w: cp.square(w[0] + w[1]), dim=2)
    assert loss.conjugate([2.0, 2.0]) == pytest.approx(1.0)
    assert loss.conjugate([2.0, 2.001]) == np.inf
    assert loss.conjugate([2.0, 2.001], atol=1e-3) == pytest.approx(1.00025**2)


def test_null_directions_are_the_same_where_columns_are_whatever_their_units():
    """Those of neighbours that differ by 1e-10 leave no flow that both of them conserve."""
    rng, exact = np.random.default_rng(0), np.zeros((5, 5))
    exact[np.ix_([0, 3], [0, 3])] = [[0.5, -0.5], [-0.5, 0.5]]
    for _ in range(5):
        A = [1.0, 2e5, 0.05, 1.0, 2e3] + [0.0, 1e5, 0.02, 0.0, 20.0] * rng.standard_normal((9, 5))
        function = CvxpyFunction(lambda w, A=A: cp.norm(A @ w - 1.0), 5)
        np.testing.assert_allclose(function.null @ function.null.T, exact, atol=1e-14)


def test_slopes_far_out_are_those_of_linear_growth():
    def slope(build):
        return CvxpyFunction(build, 3).slope_far_out(np.ones(3))

    assert slope(lambda w: cp.norm1(X @ w - 1e6)) == pytest.approx(np.abs(X.sum(axis=1)).sum())
    assert slope(BUILDS["squares"]) > 1e90
    for build in (BUILDS["ball"], epigraph):
        assert slope(build) == np.inf


@pytest.mark.parametrize(
    ("name", "factor"), [("absolute", 30.0), ("huber", 20.0), ("ball", 1e4), ("squares", 1e6)]
)
def test_scaling_into_the_domain_of_the_conjugate(name, factor):
    """The largest theta with a finite conjugate, against bisection."""
    batch = gtv.CvxpyLoss.batch([gtv.CvxpyLoss(BUILDS[name], dim=3)], 3)
    s = factor * np.array([[1.0, -0.5, 0.3]])
    theta = batch.scale_to_feasible(s)
    finite = lambda t: np.isfinite(batch.conjugate(t * s, np.zeros(1)))[0]  # noqa: E731
    assert finite(theta)
    assert theta == 1.0 or not finite(1.00001 * theta)
    assert (theta < 1.0) == (name in ("absolute", "huber"))


def test_projection_on_the_domain(case):
    batch = gtv.CvxpyLoss.batch([case.loss], 3)
    w = np.array([[-3.0, 0.4, 2.0]])
    near = batch.project_domain(w)
    assert np.isfinite(batch.value(near)).all()
    if np.isfinite(batch.value(w))[0]:
        np.testing.assert_array_equal(near, w)
    x = cp.Variable(3)
    _, constraints = case.model(x)
    if constraints and np.isinf(batch.value(w))[0]:
        solved(cp.Problem(cp.Minimize(cp.sum_squares(x - w[0])), constraints))
        np.testing.assert_allclose(near[0], x.value, atol=1e-5)


def test_the_example_of_the_docstring():
    assert doctest.testmod(importlib.import_module("gtvcvx.losses._cvxpy")) == (0, 4)


def test_what_is_not_convex_is_refused_at_once_if_d_is_known():
    with pytest.raises(cp.DCPError, match="concave"):
        gtv.CvxpyLoss(lambda w: cp.sqrt(w[0]), dim=2)
    with pytest.raises(cp.DCPError):
        gtv.CvxpyLoss(lambda w: (cp.sum_squares(w), [cp.square(w) == 1.0]), dim=2)


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="build: a callable"):
        gtv.CvxpyLoss(cp.norm(cp.Variable(2)))
    for dim in (0, 1.5, True):
        with pytest.raises(ValueError, match="dim: a positive integer"):
            gtv.CvxpyLoss(lambda w: cp.norm(w), dim=dim)


def test_gradient_outside_the_domain_is_refused():
    for build in (BUILDS["simplex"], epigraph_of_a_ball):
        with pytest.raises(ValueError, match="outside the domain"):
            gtv.CvxpyLoss(build, dim=3).gradient([5.0, 5.0, 5.0])


def epigraph_of_a_ball(w):
    t = cp.Variable()
    return t, [cp.norm(w) <= t, t <= 1.0]


HOSTILE = {
    "norm": lambda X, y: lambda w: cp.norm(X @ w - y, 2),
    "huber": lambda X, y: lambda w: cp.sum(cp.huber(X @ w - y)) / len(y),
    "power": lambda X, y: lambda w: cp.sum(cp.power(cp.abs(X @ w - y), 1.5)) / len(y),
    "box": lambda X, y: lambda w: (cp.sum_squares(X @ w - y), [w >= 0]),
    "logistic": lambda X, y: (
        lambda w: cp.sum(cp.logistic(X @ w)) - 0.4 * cp.sum(X @ w) + 1e-3 * cp.sum_squares(w)
    ),
}


@pytest.mark.parametrize(("unit", "target"), [(1e-4, 1e-4), (1e4, 1e5), (1.0, 1e4)])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_units_make_the_programs_of_a_node_fail(name, unit, target):
    """Clarabel fails on many of them as they are, or has false certificates."""
    rng = np.random.default_rng(8)
    X, y = unit * rng.standard_normal((4, 3)), target * (1.0 + rng.random(4))
    loss = gtv.CvxpyLoss(HOSTILE[name](X, y), dim=3)
    batch, size = gtv.CvxpyLoss.batch([loss], 3), target / unit
    accuracy = 1e-4 if name == "power" else 1e-6  # Clarabel knows power cones to few digits
    for factor in (1e-3, 1.0, 1e3):
        v, tau = size * rng.standard_normal(3), factor * (size / target) ** 2
        z = batch.project_domain(loss.prox(v, tau)[None])[0]
        at_start = abs(loss.value(batch.project_domain(v[None])[0]))
        value = loss.value(z)
        ours = value + np.sum((z - v) ** 2) / (2.0 * tau)
        for step in 1e-3 * (np.abs(z) + 1e-3 * size) * rng.standard_normal((20, 3)):
            there = loss.value(z + step) + np.sum((z + step - v) ** 2) / (2.0 * tau)
            assert ours <= there + accuracy * (abs(ours) + abs(there) + at_start)
        s = loss.gradient(z)
        assert np.isfinite(s).all()
        # What the bound says is never below what a point says.
        least, slack = s @ z - value, abs(value) + np.abs(s) @ np.abs(z)
        assert loss.conjugate(s, 1e-9) >= least - 1e-7 * slack


def test_least_values_are_known_once_the_conic_forms_are(monkeypatch):
    monkeypatch.setattr(_cvxpy, "_AFFORDABLE", 1)
    losses = [gtv.CvxpyLoss(lambda w, a=a: cp.sum_squares(w - a) - a, dim=2) for a in (1, 2, 3)]
    batch = gtv.CvxpyLoss.batch(losses, 2)
    assert np.isinf(batch.loose_gap(np.zeros((3, 2)))).all()
    batch.prox(np.zeros((3, 2)), np.ones(3))
    np.testing.assert_allclose(batch.loose_gap(np.zeros((3, 2))), [2.0, 8.0, 18.0], rtol=1e-7)
