"""Following one node's optimum: the compiled pieces against dense NumPy, and what they promise."""

import numpy as np
import pytest
from _catalogue_cases import KINDS, targets
from _node_problems import (
    COORDINATES,
    assert_optimal,
    coordinates_of,
    gradient_of,
    instance,
    minimize,
    rows_of,
    size_of,
    start,
)
from _twins import alone
from hypothesis import given, settings
from hypothesis import strategies as st

from gtvcvx.losses.node import _following as following
from gtvcvx.losses.node._maps import Batch, Points, make_map, scratch_of
from gtvcvx.losses.node._problem import EPS, Node, Point
from gtvcvx.losses.node._scalar import KINK, ROW, row_curvature, row_slope
from gtvcvx.losses.node._slopes import slope_and_curvature as _slope_and_curvature

balance, slope_and_curvature = alone(following._balance), alone(_slope_and_curvature)
seeds = st.integers(0, 2**32 - 1)
MOVED = np.array([1e-1, 1e-3, 1e-6, 0.0])


def batch_of(node):
    """A batch of one node, with a row for the sum."""
    X, rows = node.X, node.rows
    if not np.isnan(node.total):
        sum_row = np.zeros(1, ROW)
        sum_row["kind"], sum_row["y"], sum_row["c"] = KINK, node.total, 1.0
        sum_row["low"], sum_row["high"] = -np.inf, np.inf
        X, rows = np.vstack([X, np.ones(X.shape[1])]), np.concatenate([rows, sum_row])
    return Batch.of(X, rows, np.array([0, len(rows)]), node.coordinates[None])


def points_of(batch):
    m, d = batch.X.shape
    a = np.clip(np.zeros(m), batch.rows["low"], batch.rows["high"])
    shapes = (1, d), (1, d, d), (m, d), 1, (1, d)
    return Points(np.zeros((1, d)), a, *(np.zeros(shape) for shape in shapes))


def prepared(seed):
    """A batch of one node, its points and scratch, with q and p of the node's problem."""
    node = instance(seed)
    batch = batch_of(node)
    scratch = scratch_of(len(node.q), len(batch.rows))
    scratch.q[:], scratch.p[:] = node.q, node.p
    return node, batch, points_of(batch), scratch


def result(node, points):
    m = len(node.rows)
    nu = points.a[m:] if len(points.a) > m else np.zeros(1)
    return Point(points.z[0], points.a[:m], points.t[0], nu)


def optimum_of(node):
    point = start(node)
    minimize(node, point)
    return point.z


@given(seed=seeds)
@settings(max_examples=100)
def test_follow_finds_the_optimum_of_one_argument_after_the_other(seed):
    """Any that is found is optimal, and the same as from scratch; small changes are followed."""
    node, batch, points, scratch = prepared(seed)
    rng, tau = np.random.default_rng(seed), np.ones(1)
    tolerance = 2.0 * EPS * (8.0 + np.sqrt(len(batch.rows)))
    for change in MOVED:
        node.p[:] += change * rng.standard_normal(len(node.p)) * (1.0 + np.abs(node.p))
        v = (node.p - batch.coordinates["linear"][0])[None]
        node.q[:] = batch.coordinates["mu"][0] + 1.0
        left = np.ones(1, dtype=bool)
        before = [points.z.copy(), points.a.copy(), points.t.copy()]
        if following.follow_all(batch, points, scratch, v, tau, left):
            assert left[0]
            for array, old in zip((points.z, points.a, points.t), before, strict=True):
                np.testing.assert_array_equal(array, old)
            continue
        found = result(node, points)
        assert_optimal(node, found)
        ratio = np.abs(gradient_of(node, found)) / size_of(node, found)
        assert ratio.max() <= 4.0 * tolerance
        np.testing.assert_allclose(found.z, optimum_of(node), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("terms", COORDINATES.values(), ids=COORDINATES)
def test_small_changes_are_followed_from_an_optimum(kind, terms, rng):
    X = rng.standard_normal((8, 3))
    coordinates, total = coordinates_of(3, **terms)
    rows = rows_of(kind, X, targets(kind, X @ rng.standard_normal(3), rng))
    v, left, tau = rng.standard_normal((1, 3)), np.ones(1, dtype=bool), np.ones(1)
    node = Node(X, rows, coordinates, coordinates["mu"] + 1.0, v[0].copy(), total)
    batch = batch_of(node)
    points, scratch = points_of(batch), scratch_of(3, len(batch.rows))
    minimize(node, result(node, points))
    for _ in range(20):
        left[:] = True
        assert following.follow_all(batch, points, scratch, v, tau, left) == 0
        v += 1e-4 * rng.standard_normal(v.shape)


@given(seed=seeds)
def test_what_no_row_needs_is_not_missed(seed):
    """Without what rows with kinks need, or curved ones, each step is the same to the bit."""
    _, batch, points, scratch = prepared(seed)
    whole, v = points_of(batch), np.zeros_like(points.z)
    for _ in range(3):
        v += np.random.default_rng(seed).standard_normal(v.shape)
        for each, here in ((batch, points), (batch._replace(kinks=True, curves=True), whole)):
            following.follow_all(each, here, scratch, v, np.ones(1), np.ones(1, dtype=bool))
        for array, other in zip(points, whole, strict=True):
            np.testing.assert_array_equal(array, other)


def test_nodes_that_are_not_left_are_not_touched():
    _, batch, points, scratch = prepared(5)
    before = points.z.copy()
    v = np.ones_like(before)
    assert following.follow_all(batch, points, scratch, v, np.ones(1), np.zeros(1, bool)) == 0
    np.testing.assert_array_equal(points.z, before)


@given(seed=seeds)
def test_balance_is_the_gradient(seed):
    node, batch, points, scratch = prepared(seed)
    rng, m = np.random.default_rng(seed), len(node.rows)
    points.z[:], points.t[:] = rng.standard_normal((2, 1, len(node.q)))
    balance(0, batch, points, scratch, False, batch.kinks, batch.curves)
    z = points.z[0]
    for i, row in enumerate(node.rows):
        if row["kind"] != KINK:
            assert points.a[i] == pytest.approx(row_slope(row, node.X[i] @ z), rel=1e-13)
            curvature = row_curvature(row, node.X[i] @ z)
            assert scratch.weight[i] == pytest.approx(curvature, rel=1e-13)
    expected = batch.X.T @ points.a + points.t[0] + node.q * z - node.p
    np.testing.assert_allclose(scratch.gradient, expected, rtol=1e-9, atol=1e-9)
    size = size_of(node, result(node, points))
    np.testing.assert_allclose(scratch.size[: len(z)], size, rtol=1e-9)
    assert m <= len(points.a)


@given(seed=seeds)
def test_the_map_is_the_inverse_of_the_optimality_conditions(seed):
    """Blocks of the inverse of ``[[H, A^T], [A, 0]]`` on the coordinates that move."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 6)), int(rng.integers(0, 7))
    X, rows = rng.standard_normal((m, d)), np.zeros(m, ROW)
    curved = rng.random(m) < 0.6
    rows["kind"], rows["c"] = np.where(curved, 0, KINK), 1.0
    rows["low"], rows["high"] = np.where(curved, -np.inf, -1.0), np.where(curved, np.inf, 1.0)
    coordinates = instance(seed).coordinates[:1].repeat(d)[None].copy()
    coordinates["kappa"], coordinates["lower"], coordinates["upper"] = 0.5, -np.inf, np.inf
    batch = Batch.of(X, rows, np.array([0, m]), coordinates)
    points, scratch = points_of(batch), scratch_of(d, m)
    moving = rng.random(d) < 0.7
    points.t[0] = np.where(moving, 0.5, 0.2)
    free = int(moving.sum())
    tied = np.flatnonzero(~curved)
    points.a[tied[free:]], points.a[tied[:free]] = 1.0, 0.3
    scratch.q[:], scratch.weight[:] = rng.uniform(0.5, 2.0, d), np.where(curved, 2.0, 0.0)
    assert make_map(0, batch, points, scratch)
    ties, F = tied[:free], np.flatnonzero(moving)
    H, A = np.diag(scratch.q) + 2.0 * X[curved].T @ X[curved], X[np.ix_(ties, F)]
    block = np.block([[H[np.ix_(F, F)], A.T], [A, np.zeros((len(ties), len(ties)))]])
    inverse = np.linalg.inv(block) if len(block) else block
    scale = 1e-6 * max(np.abs(inverse).max(initial=1.0), np.linalg.cond(block) if len(F) else 1.0)
    found = points.inverse[0]
    np.testing.assert_allclose(found[np.ix_(F, F)], inverse[: len(F), : len(F)], atol=scale)
    assert not found[~moving].any()
    assert not found[:, ~moving].any()
    np.testing.assert_allclose(points.pull[ties][:, F], inverse[len(F) :, : len(F)], atol=scale)
    np.testing.assert_allclose(X[ties] @ points.z[0], rows["y"][ties], atol=1e-9 + scale * 1e-6)


@pytest.mark.parametrize("kind", range(5))
def test_slope_and_curvature_are_those_of_the_row(kind, rng):
    row = np.zeros(1, ROW)
    row["kind"], row["c"], row["delta"] = kind, 0.7, 0.4
    row["low"], row["high"] = -np.inf, np.inf
    for z in [*3.0 * rng.standard_normal(20), 0.0, 40.0, -40.0, 800.0 * (kind != 2), -800.0]:
        for y in (0.0, 1.0):
            row["y"] = y
            slope, curvature = slope_and_curvature(row[0], z)
            assert slope == pytest.approx(row_slope(row[0], z), rel=1e-13, abs=0.0)
            assert curvature == pytest.approx(row_curvature(row[0], z), rel=1e-13, abs=0.0)
