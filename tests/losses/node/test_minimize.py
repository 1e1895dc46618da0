"""One node's minimization: dense twins, first principles on hostile data, and CVXPY."""

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import KINDS, psi_model, targets
from _node_problems import (
    COORDINATES,
    assert_optimal,
    coordinates_of,
    gradient_of,
    instance,
    minimize,
    room_for,
    rows_of,
    size_of,
    start,
)
from _twins import alone
from hypothesis import given, settings
from hypothesis import strategies as st

from gtvcvx.losses.node import _active_set as actives
from gtvcvx.losses.node import _multipliers as multipliers
from gtvcvx.losses.node import _newton_systems as linear
from gtvcvx.losses.node import _problem as parts
from gtvcvx.losses.node._batch import proximal_points
from gtvcvx.losses.node._problem import Node, Point, room_of
from gtvcvx.losses.node._scalar import row_curvature, row_slope

factorize, substitute = alone(linear.factorize), alone(linear.substitute)
constrained_step, active_set = alone(linear.constrained_step), alone(actives.active_set)
newton, penalties_of = alone(multipliers.newton), alone(multipliers.penalties_of)
dot, largest_entry, subgradients = map(alone, (parts.dot, parts.largest_entry, parts.subgradients))
residual_size, stationarity = alone(parts.residual_size), alone(parts.stationarity)
is_smooth, smooth_rows = alone(parts.is_smooth), alone(parts.smooth_rows)
seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
@settings(max_examples=150)
def test_minimize_from_scratch_and_from_the_optimum(seed):
    node = instance(seed)
    point = start(node)
    minimize(node, point)
    assert_optimal(node, point)
    before = point.z.copy()
    minimize(node, point)
    assert_optimal(node, point)
    np.testing.assert_allclose(point.z, before, rtol=1e-7, atol=1e-9)


@given(seed=seeds)
def test_minimize_does_not_depend_on_where_it_starts(seed):
    node = instance(seed)
    first, rng = start(node), np.random.default_rng(seed)
    minimize(node, first)
    second = start(node)
    second.z[:] = 3.0 * rng.standard_normal(len(node.q))
    second.t[:] = rng.standard_normal(len(node.q)) * (first.t != 0.0)
    minimize(node, second)
    assert_optimal(node, second)
    # As far apart as the slopes of a strongly convex function allow.
    np.testing.assert_allclose(second.z, first.z, rtol=1e-6, atol=1e-7)


@given(seed=seeds)
def test_nearly_repeated_rows_cost_digits_only(seed):
    """Which of two rows is at its kink is a matter of the ninth digit."""
    node = instance(seed)
    m, rng = len(node.X), np.random.default_rng(seed)
    half = node.X[: m - m // 2] * (1.0 + 1e-9 * rng.standard_normal((m - m // 2, 1)))
    node.X[m // 2 :] = half
    point = start(node)
    minimize(node, point)
    assert_optimal(node, point, 1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("terms", COORDINATES.values(), ids=COORDINATES)
def test_minimize_against_cvxpy(kind, terms, rng):
    m, d, tau = 5, 3, 0.8
    X = rng.standard_normal((m, d))
    y = targets(kind, X @ rng.standard_normal(d), rng)
    coordinates, total = coordinates_of(d, **terms)
    v = rng.standard_normal(d)
    node = Node(X, rows_of(kind, X, y), coordinates, coordinates["mu"] + 1 / tau, v / tau, total)
    point = start(node)
    minimize(node, point)
    z, c = cp.Variable(d), coordinates
    cost = psi_model(kind, X @ z, y) + cp.sum_squares(z - v) / (2 * tau)
    cost += c["mu"] / 2 @ z**2 + c["kappa"] @ cp.abs(z)
    constraints = [] if np.isnan(total) else [cp.sum(z) == total]
    for bound, sign in ((c["lower"], -1), (c["upper"], 1)):
        if np.isfinite(bound[0]):
            constraints.append(sign * z <= sign * bound)
    cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(point.z, z.value, atol=2e-5)


@given(seed=seeds)
def test_active_set_finds_the_optimum_or_leaves_the_point(seed):
    node = instance(seed)
    rng, point = np.random.default_rng(seed), start(node)
    point.z[:] = rng.standard_normal(len(node.q))
    before = [array.copy() for array in point]
    if active_set(node, point, room_for(node), 1e-13):
        assert_optimal(node, point)
    else:
        for array, old in zip(point, before, strict=True):
            np.testing.assert_array_equal(array, old)


@given(seed=seeds)
def test_an_optimum_is_found_again_in_whatever_room(seed):
    """What another node has left there does not matter."""
    node = instance(seed)
    first = start(node)
    if not active_set(node, first, room_of(len(node.q), len(node.rows)), 1e-13):
        return
    second = start(node)
    assert active_set(node, second, room_for(node), 1e-13)
    for array, other in zip(second, first, strict=True):
        np.testing.assert_array_equal(array, other)


def test_sums_of_some_nodes_leave_others_free():
    """One after the other, in the same room, as each alone."""
    found = [proximal_point_of([0, 1])[1], proximal_point_of([1])[0]]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    assert found[0].sum() != pytest.approx(1.0, abs=0.1)
    np.testing.assert_array_equal(proximal_point_of([0, 1])[0], proximal_point_of([0])[0])


def proximal_point_of(nodes):
    """From scratch, of some of two nodes with absolute losses, the first one on a simplex."""
    rng, d, m = np.random.default_rng(4), 3, 5
    X, y, v = rng.standard_normal((2, m, d)), rng.standard_normal((2, m)), np.full((2, d), 2.0)
    rows = np.concatenate([rows_of("absolute", X[i], y[i]) for i in nodes])
    table = np.stack([coordinates_of(d, **COORDINATES[k])[0] for k in ("simplex", "l1")])[nodes]
    X, totals = X[nodes].reshape(-1, d), np.array([1.0, np.nan])[nodes]
    indptr = m * np.arange(len(nodes) + 1)
    if 0 in nodes:  # the row of a sum comes last
        X, rows = np.insert(X, m, 1.0, axis=0), np.insert(rows, m, rows[0])
        indptr[1:] += 1
    z, t, a = np.zeros((len(nodes), d)), np.zeros((len(nodes), d)), np.zeros(len(rows))
    of_v = v[nodes], np.ones(len(nodes))
    own = np.empty(d), np.empty(d), room_of(d, m + 1)
    proximal_points(np.arange(len(nodes)), X, rows, indptr, table, totals, *of_v, z, a, t, *own)
    return z


@given(seed=seeds)
def test_a_round_of_multipliers_keeps_them_feasible_and_stationary(seed):
    node = instance(seed)
    point = start(node)
    if not np.isnan(node.total):
        point.z[:] = node.total / len(point.z)
    room, m = room_for(node), len(node.rows)
    room.centre.a[:m], room.centre.t[:] = point.a, point.t
    penalties_of(node, point, room, 1.0, 0.0)
    for _ in range(20):
        # From a rate that is far too large, Newton's method takes a step for every factor e.
        newton(node, point, room, 1e-14)
    assert (point.a >= node.rows["low"]).all()
    assert (point.a <= node.rows["high"]).all()
    size = size_of(node, point) + np.abs(node.X).T @ (
        room.penalties.a[:m] * (np.abs(node.X) @ np.abs(point.z) + np.abs(node.rows["y"]))
    )
    size += room.penalties.t * np.abs(point.z)
    np.testing.assert_array_less(np.abs(gradient_of(node, point)), 1e-9 * size + 1e-300)


def set_room(room, **values):
    for name, value in values.items():
        getattr(room, name)[:] = value


class TestLinearAlgebra:
    @given(seed=seeds)
    def test_constrained_step_against_the_dense_system(self, seed):
        rng = np.random.default_rng(seed)
        m, d = int(rng.integers(0, 7)), int(rng.integers(1, 7))
        X, gradient = rng.standard_normal((m, d)), rng.standard_normal(d)
        weight = rng.uniform(0.1, 3.0, m) * (rng.random(m) < 0.7)
        diagonal = rng.uniform(0.1, 3.0, d)
        moving = rng.random(d) < 0.8
        summed = bool(rng.random() < 0.4) and moving.any()
        free = int(moving.sum()) - summed
        active = np.zeros(m, dtype=bool)
        active[: int(rng.integers(0, max(min(m, free), 0) + 1))] = True
        offset, drift = rng.standard_normal(m), float(rng.standard_normal())
        fixed = np.where(moving, 0.0, rng.standard_normal(d))
        room = room_of(d, m)
        room.change[:] = 7.0
        set_room(room, weight=weight, gradient=gradient, moving=moving, active=active)
        set_room(room, offset=offset, step=fixed)
        nu = constrained_step(X, diagonal, room, summed, drift)
        step, change = room.step, room.change
        curved = np.where(active, 0.0, weight)
        H = np.diag(diagonal) + X.T @ (curved[:, None] * X)
        A = np.vstack([X[active], np.ones((int(summed), d))])
        b = np.append(offset[active], [drift] * int(summed)) - A @ fixed
        F, k = np.flatnonzero(moving), len(A)
        matrix = np.block([[H[np.ix_(F, F)], A[:, F].T], [A[:, F], np.zeros((k, k))]])
        right = np.append(-(gradient + H @ fixed)[F], b)
        found = np.linalg.solve(matrix, right) if len(right) else np.empty(0)
        np.testing.assert_allclose(step[F], found[: len(F)], rtol=1e-7, atol=1e-8)
        np.testing.assert_array_equal(step[~moving], fixed[~moving])
        multipliers = np.append(change[active], [nu] * int(summed))
        np.testing.assert_allclose(multipliers, found[len(F) :], rtol=1e-7, atol=1e-8)
        assert not change[~active].any()

    def test_factor_and_substitution(self, rng):
        root = rng.standard_normal((5, 5))
        matrix, b = root @ root.T + np.eye(5), rng.standard_normal(5)
        factor, x = matrix.copy(), b.copy()
        factorize(factor, 5, 0.0)
        np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix))
        substitute(factor, 5, x)
        np.testing.assert_allclose(matrix @ x, b)

    def test_dependent_constraints_give_the_least_change_of_multipliers(self):
        X, room = np.array([[1.0, 0.0], [1.0, 0.0]]), room_of(2, 2)
        set_room(room, active=[True, True], offset=[0.5, 0.5], gradient=[3.0, 1.0])
        constrained_step(X, np.ones(2), room, False, 0.0)
        np.testing.assert_allclose(room.step, [0.5, -1.0], atol=1e-9)
        assert room.change.sum() == pytest.approx(-3.5)


class TestParts:
    """Small functions against NumPy."""

    @given(seed=seeds)
    def test_stationarity_and_its_parts(self, seed):
        node = instance(seed)
        m, d = node.X.shape
        rng = np.random.default_rng(seed)
        point = Point(*(rng.standard_normal(n) for n in (d, m, d, 1)))
        weight, gradient, size = rng.uniform(0, 1, m), np.empty(d), np.empty(d)
        worst = stationarity(node, point, weight, gradient, size)
        np.testing.assert_allclose(gradient, gradient_of(node, point), rtol=1e-9, atol=1e-9)
        assert worst == pytest.approx(np.max(np.abs(gradient) / size))
        residual = np.abs(node.rows["y"]) + np.abs(node.X) @ np.abs(point.z)
        sizes = [
            residual_size(row, x, point.z, 0.0) for row, x in zip(node.rows, node.X, strict=True)
        ]
        np.testing.assert_allclose(sizes, residual)
        assert dot(node.X[0], point.z) == pytest.approx(node.X[0] @ point.z)
        assert largest_entry(point.z, 0.5) == max(0.5, np.abs(point.z).max())

    @pytest.mark.parametrize("kind", KINDS)
    def test_smooth_rows_are_the_curved_ones(self, kind, rng):
        X = rng.standard_normal((4, 2))
        y = targets(kind, X @ np.ones(2), rng)
        coordinates, total = coordinates_of(2)
        node = Node(X, rows_of(kind, X, y), coordinates, np.ones(2), np.ones(2), total)
        smooth = kind not in ("absolute", "quantile", "hinge")
        assert is_smooth(node) == smooth
        assert not is_smooth(node._replace(total=1.0))
        coordinates["upper"][1] = 3.0
        assert not is_smooth(node)
        z, a, weight = rng.standard_normal(2), np.full(4, 7.0), np.full(4, 7.0)
        smooth_rows(node, z, a, weight)
        images = X @ z
        slopes = row_slope(node.rows, images)
        np.testing.assert_allclose(a, slopes if smooth else 7.0)
        curvatures = row_curvature(node.rows, images)
        np.testing.assert_allclose(weight, curvatures if smooth else 7.0)

    def test_not_finite_counts_as_far_from_stationary(self):
        node = instance(0)
        point = start(node)
        point.z[0] = np.inf
        m, d = node.X.shape
        assert stationarity(node, point, np.zeros(m), np.empty(d), np.empty(d)) == np.inf

    def test_subgradients_at_a_bound_reach_to_infinity(self):
        c = coordinates_of(1, kappa=0.5, lower=0.0, upper=2.0)[0][0]
        assert subgradients(c, 0.0) == (-np.inf, 0.5)
        assert subgradients(c, 1.0) == (0.5, 0.5)
        assert subgradients(c, 2.0) == (0.5, np.inf)
