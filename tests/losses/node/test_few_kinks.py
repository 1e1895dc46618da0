"""Few rows with kinks in many coordinates, by their multipliers: against the careful method."""

import numpy as np
import pytest
from _node_problems import COORDINATES, HOSTILE, coordinates_of, minimize, rows_of
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx.losses.node._few_kinks import few_kinks_points, kinked_and_free
from gtvcvx.losses.node._problem import Node, Point, room_of

FREE = [name for name in COORDINATES if name != "simplex"]


def instance(seed):
    """A few rows in 40 to 80 coordinates, and a step size."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, 9)), int(rng.integers(40, 80))
    X = rng.standard_normal((m, d)) * rng.choice([0.1, 1.0])
    HOSTILE[str(rng.choice(list(HOSTILE)))](X, rng)
    kind, name = str(rng.choice(["absolute", "quantile", "hinge"])), str(rng.choice(FREE))
    y = rng.standard_normal(m)
    y = np.where(y > 0.0, 1.0, -1.0) if kind == "hinge" else y
    coordinates = coordinates_of(d, **COORDINATES[name])[0]
    return X, rows_of(kind, X, y), coordinates, rng.standard_normal(d), 10.0 ** rng.uniform(-2, 1)


def found(X, rows, coordinates, v, tau, a=None):
    """What it writes, from some multipliers, and whether it was left undone."""
    m, d = X.shape
    a = np.zeros(m) if a is None else a.copy()
    z, t, left = np.zeros((1, d)), np.zeros((1, d)), np.ones(1, dtype=bool)
    own = np.empty(d), np.empty(d), np.empty((3, d)), room_of(d, m)
    indptr, at = np.array([0, m]), (v[None], np.array([tau]))
    few_kinks_points(np.arange(1), X, rows, indptr, coordinates[None], *at, z, a, t, *own, left)
    return z[0], a, t[0], left[0]


@given(seed=st.integers(0, 10_000))
def test_points_are_those_of_the_careful_method(seed):
    X, rows, coordinates, v, tau = instance(seed)
    z, a, t, left = found(X, rows, coordinates, v, tau)
    if left:
        assert not np.concatenate([z, t]).any()
        return
    q, p = coordinates["mu"] + 1.0 / tau, coordinates["linear"] + v / tau
    node = Node(X, rows, coordinates, q, p, np.nan)
    point = Point(np.zeros(len(v)), np.zeros(len(a)), np.zeros(len(v)), np.zeros(1))
    minimize(node, point)
    np.testing.assert_allclose(z, point.z, rtol=1e-7, atol=1e-9 * (1.0 + np.abs(v).max()))
    size = np.abs(X).T @ np.abs(a) + np.abs(t) + np.abs(q * z) + np.abs(p)
    assert (np.abs(X.T @ a + t + q * z - p) <= 1e-12 * size + 1e-300).all()
    assert ((rows["low"] <= a) & (a <= rows["high"])).all()
    off = X @ z - rows["y"]
    noise = 1e-12 * (np.abs(X) @ np.abs(z) + np.abs(rows["y"]))
    assert (off <= noise)[a < rows["high"]].all()
    assert (off >= -noise)[a > rows["low"]].all()


def test_no_node_is_left():
    assert not any(found(*instance(seed))[3] for seed in range(300))


def test_it_goes_on_from_the_multipliers_of_the_last_call():
    X, rows, coordinates, v, tau = instance(3)
    z, a, t, _ = found(X, rows, coordinates, v, tau)
    again = found(X, rows, coordinates, v, tau, a)
    np.testing.assert_allclose(again[0], z, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again[1], a, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again[2], t, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("m", [1, 12])
def test_rows_that_depend_on_each_other_share(m):
    """Copies of one row: no matrix of theirs has an inverse."""
    rng = np.random.default_rng(m)
    X = np.tile(rng.standard_normal((1, 60)), (m, 1))
    rows, table = rows_of("absolute", X, np.linspace(0.3, 0.5, m)), coordinates_of(60)[0]
    z, a, _, left = found(X, rows, table, rng.standard_normal(60), 0.1)
    assert not left
    off = X @ z - rows["y"]
    assert (np.abs(off[np.abs(a) < rows["high"]]) <= 1e-12).all()


def test_nodes_with_other_rows_sums_or_too_many_rows_are_left_to_others():
    X, y = np.ones((70, 40)), np.ones(70)
    rows = rows_of("absolute", X, y)
    rows[1] = rows_of("squared", X[:1], y[:1])[0]
    indptr = np.array([0, 1, 3, 4, 4, 69])
    free = kinked_and_free(rows, indptr, np.array([np.nan, np.nan, 1.0, np.nan, np.nan]))
    np.testing.assert_array_equal(free, [True, False, False, False, False])
