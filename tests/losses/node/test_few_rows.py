"""Newton's method on few rows in many coordinates, against the method that always ends."""

import numpy as np
import pytest
from _node_problems import COORDINATES, HOSTILE, coordinates_of, minimize, rows_of
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx.losses.node._conjugate import coordinate_gap, coordinate_gaps, gaps_of_coordinates
from gtvcvx.losses.node._few_rows import few_rows_points, smooth_and_free
from gtvcvx.losses.node._problem import Node, Point, room_of
from gtvcvx.losses.node._segments import (
    images,
    products_of_sizes,
    sums,
    weighted,
    weighted_sizes,
)

SMOOTH = ["squared", "huber", "logistic", "poisson", "pseudohuber"]
FREE = [name for name in COORDINATES if name != "simplex"]


def instance(seed):
    """A few rows in 40 to 80 coordinates, and a step size."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, 5)), int(rng.integers(40, 80))
    X = rng.standard_normal((m, d)) * rng.choice([0.1, 1.0])
    HOSTILE[str(rng.choice(list(HOSTILE)))](X, rng)
    kind, name = str(rng.choice(SMOOTH)), str(rng.choice(FREE))
    y = np.rint(3.0 * rng.random(m)) if kind == "poisson" else rng.standard_normal(m)
    y = (y > 0.0).astype(float) if kind == "logistic" else y
    coordinates = coordinates_of(d, **COORDINATES[name])[0]
    return X, rows_of(kind, X, y), coordinates, rng.standard_normal(d), 10.0 ** rng.uniform(-2, 1)


def found(X, rows, coordinates, v, tau):
    """What it writes, and whether it was left undone."""
    m, d = X.shape
    z, a, t, left = np.zeros((1, d)), np.zeros(m), np.zeros((1, d)), np.ones(1, dtype=bool)
    own = np.empty(d), np.empty(d), np.empty((3, d)), room_of(d, m)
    indptr, at = np.array([0, m]), (v[None], np.array([tau]))
    few_rows_points(np.arange(1), X, rows, indptr, coordinates[None], *at, z, a, t, *own, left)
    return z[0], a, t[0], left[0]


@given(seed=st.integers(0, 10_000))
def test_points_are_those_of_the_careful_method(seed):
    X, rows, coordinates, v, tau = instance(seed)
    z, a, t, left = found(X, rows, coordinates, v, tau)
    if left:
        assert not np.concatenate([z, a, t]).any()
        return
    q, p = coordinates["mu"] + 1.0 / tau, coordinates["linear"] + v / tau
    node = Node(X, rows, coordinates, q, p, np.nan)
    point = Point(np.zeros(len(v)), np.zeros(len(a)), np.zeros(len(v)), np.zeros(1))
    minimize(node, point)
    np.testing.assert_allclose(z, point.z, rtol=1e-7, atol=1e-9 * (1.0 + np.abs(v).max()))
    size = np.abs(X).T @ np.abs(a) + np.abs(t) + np.abs(q * z) + np.abs(p)
    assert (np.abs(X.T @ a + t + q * z - p) <= 1e-12 * size + 1e-300).all()
    low, high = np.array([subgradients(c, x) for c, x in zip(coordinates, z, strict=True)]).T
    slack = 1e-12 * size + 1e-300
    assert ((low - slack <= t) & (t <= high + slack)).all()


def test_hardly_any_node_is_left():
    assert sum(found(*instance(seed))[3] for seed in range(200)) <= 10


def test_kinks_and_sums_are_left_to_others():
    X, y = np.ones((3, 40)), np.ones(3)
    rows = np.concatenate([rows_of(kind, X, y)[:1] for kind in ("squared", "absolute", "huber")])
    free = smooth_and_free(rows, np.arange(4), np.array([np.nan, np.nan, 1.0]))
    np.testing.assert_array_equal(free, [True, False, False])


@pytest.mark.parametrize("d", [5, 40])
def test_sums_and_products_of_nodes(rng, d):
    """Compiled from 33 columns on."""
    indptr, X, a = np.array([0, 2, 2, 5]), rng.standard_normal((5, d)), rng.standard_normal(5)
    w = rng.standard_normal((3, d))
    near = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(weighted(indptr, a, X), sums(indptr, a[:, None] * X), **near)
    sizes = sums(indptr, np.abs(a[:, None] * X))
    np.testing.assert_allclose(weighted_sizes(indptr, a, X), sizes, **near)
    owner = np.array([0, 0, 2, 2, 2])
    np.testing.assert_allclose(images(X, indptr, w), np.sum(X * w[owner], axis=1), **near)
    found = products_of_sizes(X, indptr, np.abs(w))
    np.testing.assert_allclose(found, np.sum(np.abs(X * w[owner]), axis=1), **near)


@pytest.mark.parametrize("name", FREE)
def test_gaps_of_many_coordinates_are_those_of_few(rng, name):
    coordinates = np.repeat(coordinates_of(40, **COORDINATES[name])[0][None], 3, axis=0)
    w, t = rng.standard_normal((3, 40)), 0.2 * rng.standard_normal((3, 40))
    expected = coordinate_gap(coordinates, w, t)
    np.testing.assert_allclose(gaps_of_coordinates(coordinates, w, t), expected, rtol=1e-12)
    np.testing.assert_allclose(coordinate_gaps(coordinates, w, t), expected.sum(axis=1), rtol=1e-12)
    t[0, 0] = np.nan
    assert gaps_of_coordinates(coordinates, w, t)[0, 0] == np.inf


def subgradients(coordinate, z):
    """Ends of the subdifferential of kappa |.| on [lower, upper]."""
    k = coordinate["kappa"]
    low, high = (k if z > 0.0 else -k), (-k if z < 0.0 else k)
    low = -np.inf if z <= coordinate["lower"] else low
    return low, (np.inf if z >= coordinate["upper"] else high)


def test_steps_that_are_long_enough_are_few():
    """Sparse points, far from where they start: each was left after thirty steps once."""
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((3, 400)), rng.standard_normal(400)
    rows, table = (
        rows_of("squared", X, 10.0 * rng.standard_normal(3)),
        coordinates_of(400, kappa=2.0),
    )
    assert not any(found(X, rows, table[0], v, tau)[3] for tau in (0.1, 1.0, 10.0, 100.0))
