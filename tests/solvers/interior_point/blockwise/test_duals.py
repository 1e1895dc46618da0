"""Dual variables: steps solve the linearized equations, and central points stay where they are."""

import numpy as np
import pytest
from _central_path import approach

from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.losses.node._scalar import LOGISTIC, POISSON, PSEUDO_HUBER, ROW
from gtvcvx.solvers.interior_point.blockwise._class_duals import ClassDuals
from gtvcvx.solvers.interior_point.blockwise._constraints import Walls
from gtvcvx.solvers.interior_point.blockwise._curved_duals import CurvedIntervals
from gtvcvx.solvers.interior_point.blockwise._duals import Intervals, longest
from gtvcvx.solvers.interior_point.blockwise._edge_duals import LargestEntries, Moduli, Springs
from gtvcvx.solvers.interior_point.blockwise._lengths import Lengths
from gtvcvx.solvers.interior_point.blockwise._node_terms import Slopes
from gtvcvx.solvers.interior_point.blockwise._powers import Powers
from gtvcvx.solvers.interior_point.blockwise._row_duals import RowDuals
from tests.solvers.interior_point.blockwise import _plain_lengths as plain
from tests.solvers.interior_point.blockwise._plain_lengths import Scaling, Vectors

CAPACITIES = np.array([0.5, 1.0, 3.0])
D = 3


def intervals():
    return Intervals(-np.array([1.0, 2.0, 0.5]), np.array([1.0, 0.5, 4.0]), np.array([0.0, 1.0, 0]))


def some_without_bounds():
    ends = np.array([1.0, np.inf, 4.0])
    rate, node = np.array([0.0, 0.5, 1.0]), np.arange(3)
    rows = Slopes.free(np.ones((3, 1)), np.zeros(3), -ends, ends, rate, node)
    return RowDuals(rows, np.empty(0, ROW), ClassRows([], 3, 1))


def curved():
    inf = np.inf
    rows = [
        (LOGISTIC, 1.0, 0.7, inf, -0.7, 0.0),
        (POISSON, 3.0, 0.5, inf, -1.5, inf),
        (PSEUDO_HUBER, 0.3, 2.0, 0.6, -1.2, 1.2),
    ]
    return CurvedIntervals(np.array(rows, ROW))


def some_bounds():
    infinite = np.inf
    return Walls(np.array([-1.0, -infinite, -2.0]), np.array([infinite, 3.0, 4.0]))


KINDS = {
    "intervals": intervals,
    "rows": some_without_bounds,
    "curved": curved,
    "walls": some_bounds,
    "l1": lambda: Moduli(CAPACITIES, D),
    "l2": lambda: Lengths(CAPACITIES, D),
    "linf": lambda: LargestEntries(CAPACITIES, D),
    "p = 1.5": lambda: Powers(CAPACITIES, D, 1.5),
    "p = 2": lambda: Powers(CAPACITIES, D, 2.0),
    "p = 3": lambda: Powers(CAPACITIES, D, 3.0),
    "squared": lambda: Springs(CAPACITIES, np.diag([1.0, 2.0, 0.5])),
}


def jumps(kind, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(3 if kind in ("intervals", "rows", "curved", "walls") else (3, D))


def weighted(duals, dx):
    """Return the weights times a step of x."""
    return duals.weights * dx if dx.ndim == 1 else np.einsum("mij,mj->mi", duals.weights, dx)


def walk(duals, kind, mu, rounds):
    """Take Newton's steps towards a product of mu, with x as it is."""
    x = jumps(kind)
    duals.begin(x, 0.3)
    approach(duals, x, mu, rounds)
    return x


def gradient(kind, x, mu):
    """Return the gradient of the smoothed function whose dual variable is at mu."""
    if kind == "l2":
        # u = x (c - mu / t) / |x| ..., from c t - <u, x> = mu and u = c x / t.
        t = mu / CAPACITIES / 2 + np.sqrt((mu / CAPACITIES / 2) ** 2 + np.sum(x**2, axis=1))
        return CAPACITIES[:, None] * x / t[:, None]
    bounds = np.repeat(CAPACITIES, D).reshape(3, D)
    # y x = 2 mu y^2 / (c^2 - y^2) + ...: above - below = x, (c - y) above = (c + y) below = mu.
    return (-mu + np.sqrt(mu**2 + (bounds * x) ** 2)) / x


@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_the_central_point_is_the_gradient_of_a_smooth_function(kind):
    duals = KINDS[kind]()
    x = walk(duals, kind, 0.01, 30)
    np.testing.assert_allclose(duals.y, gradient(kind, x, 0.01), rtol=1e-6)
    assert duals.complementarity() == pytest.approx(0.01 * duals.degree, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_the_derivative_by_x_at_a_central_point(kind):
    duals = KINDS[kind]()
    x, step, mu = walk(duals, kind, 0.1, 30), 1e-5 * jumps(kind, 1), 0.1
    duals.linearize(x)
    predicted = duals.y + weighted(duals, step)
    offset = duals.offset(mu, corrected=False)
    np.testing.assert_allclose(offset, 0.0, atol=1e-9)
    np.testing.assert_allclose(duals.step(step), weighted(duals, step) + offset)
    duals.move(1.0)
    for _ in range(5):
        duals.linearize(x + step)
        duals.offset(mu, corrected=False)
        duals.step(np.zeros_like(x))
        duals.move(1.0)
    np.testing.assert_allclose(duals.y, predicted, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_symmetric_and_not_negative(kind):
    duals = KINDS[kind]()
    duals.linearize(walk(duals, kind, 1e-4, 10))
    if duals.weights.ndim == 1:
        assert (duals.weights > 0.0).all()
    else:
        np.testing.assert_allclose(duals.weights, duals.weights.transpose(0, 2, 1))
        assert np.linalg.eigvalsh(duals.weights).min() > 0.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "squared"])
def test_the_longest_step_reaches_the_boundary(kind):
    duals = KINDS[kind]()
    x = jumps(kind)
    duals.begin(x, 0.3)
    duals.linearize(x)
    duals.offset(0.0, corrected=False)
    duals.step(10.0 * jumps(kind, 2))
    length = duals.longest()
    assert 0.0 < length < np.inf
    duals.move((1.0 - 1e-9) * length)
    assert duals.longest() < 1e-6


# Flows of other p bend beside their balls, too, which is no part of it; a corrector for the
# curvature of conjugates would take no iteration less.
PLAIN = ("squared", "curved", "p = 1.5", "p = 3")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in PLAIN])
def test_the_corrector_gets_nearer_to_what_it_aims_at(kind):
    def left(corrected):
        duals = KINDS[kind]()
        x = walk(duals, kind, 0.1, 30)
        dx = 0.02 * jumps(kind, 3)
        duals.linearize(x)
        duals.offset(0.1, corrected=False)
        duals.step(dx)
        if corrected:
            duals.offset(0.1, corrected=True)
            duals.step(dx)
        duals.move(1.0)
        found = duals.y.copy()
        for _ in range(8):
            duals.linearize(x + dx)
            duals.offset(0.1, corrected=False)
            duals.step(np.zeros_like(x))
            duals.move(1.0)
        return np.abs(found - duals.y).max()

    assert left(True) < 0.3 * left(False)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_flows_of_p_norms_are_those_of_shorter_jumps_at_a_central_point(p):
    """``z_k = (|x_k| / t)^(p - 1)`` with ``t (1 - ||x||^p / t^p) = mu / c``: t by bisection."""
    duals = Powers(CAPACITIES, D, p)
    x, mu = walk(duals, "p", 1e-3, 40), 1e-3
    size = np.sum(np.abs(x) ** p, axis=1)
    low, high = size ** (1.0 / p), size ** (1.0 / p) + mu / CAPACITIES
    for _ in range(100):
        t = 0.5 * (low + high)
        short = t - size * t ** (1.0 - p) < mu / CAPACITIES
        low, high = np.where(short, t, low), np.where(short, high, t)
    flow = CAPACITIES[:, None] * np.sign(x) * (np.abs(x) / t[:, None]) ** (p - 1.0)
    np.testing.assert_allclose(duals.y, flow, rtol=1e-6)
    gap = CAPACITIES @ size ** (1.0 / p) - np.sum(duals.y * x)
    assert duals.complementarity() == pytest.approx(gap)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_entries_of_jumps_that_are_zero_do_not_hold_up_the_others(p):
    """Derivatives are zero there, or infinite."""
    x = np.array([[1.0, 0.0, -1e-3]] * 3)
    duals = Powers(CAPACITIES, D, p)
    duals.begin(x, 1.0)
    for mu in 10.0 ** -np.arange(9.0):
        duals.linearize(x)
        duals.offset(mu, corrected=False)
        duals.step(np.zeros_like(x))
        duals.move(min(1.0, 0.99 * duals.longest()))
    assert 0.0 <= duals.complementarity() < 1e-6


def test_forms_come_inside_their_walls_as_they_move():
    """Outside they are violated by what every step leaves its share of."""
    walls = Walls(np.array([0.0]), np.array([1.0]))
    x = np.array([-3.0])
    walls.begin(x, 1.0)
    assert walls.complementarity() > 6.0 * 0.9
    for _ in range(40):
        walls.linearize(x)
        walls.offset(1e-8, corrected=False)
        # Of (x + 3)^2 / 2 alone the minimum is outside.
        dx = -(x + 3.0 + walls.y + walls._offset) / (1.0 + walls.weights)
        walls.step(dx)
        length = min(1.0, 0.99 * walls.longest())
        walls.move(length)
        x = x + length * dx
    assert x[0] == pytest.approx(0.0, abs=1e-6)
    assert walls.y[0] == pytest.approx(-3.0, abs=1e-6)
    assert walls.complementarity() < 1e-6


def test_slopes_without_bounds_do_not_follow_what_is_rounding_in_x():
    duals, x = some_without_bounds(), np.array([0.3, 5.0, -1.0])
    duals.begin(x, 0.1)
    before = duals.y[1]
    assert before == pytest.approx(10.0)
    duals.linearize(x + 1e-3)
    duals.offset(0.1, corrected=False)
    duals.step(np.array([0.0, 0.25, 0.0]))
    duals.move(0.5)
    # The step says what it takes, so that the balance can count on it.
    assert duals.y[1] - before == pytest.approx(0.5 * (0.5 + 2e-3))


def test_the_scaling_takes_both_vectors_to_the_same_image():
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((2, 5, D))
    s = Vectors(np.linalg.norm(x, axis=1) + rng.random(5), x)
    z = Vectors(np.linalg.norm(u, axis=1) + 10.0 ** rng.uniform(-6, 0, 5), u)
    scaling = Scaling(s, z)
    for part, image in zip(scaling.inverse(s), scaling.image, strict=True):
        np.testing.assert_allclose(part, image, rtol=1e-7)
    back = scaling.inverse(scaling.of(s))
    np.testing.assert_allclose(back.rest, s.rest, rtol=1e-7)
    product = z.times(s.divided(z))
    np.testing.assert_allclose(product.first, s.first, rtol=1e-7)
    np.testing.assert_allclose(product.rest, s.rest, rtol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("seed", range(3))
def test_lengths_take_the_steps_of_plain_ones(seed, d):
    rng = np.random.default_rng([seed, d])
    m = 9
    capacities, x = 10.0 ** rng.uniform(-2, 2, m), rng.standard_normal((m, d))
    x[0] = 0.0
    both = Lengths(capacities, d), plain.Lengths(capacities, d)

    def same(of):
        found, expected = map(of, both)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        return found

    for duals in both:
        duals.begin(x, 0.1)
    for turn in range(4):
        for duals in both:
            duals.linearize(x)
        same(lambda duals: duals.weights)
        for corrected in (False, True):  # as far as a step goes, and the products that it leaves
            dx = rng.standard_normal((m, d))
            same(lambda duals, now=corrected: duals.offset(0.05, now))
            same(lambda duals, now=dx: duals.step(now))
            longest_of_all = same(lambda duals: duals.longest())
        assert 0.0 < longest_of_all < np.inf
        length = min(1.0, 0.9 * longest_of_all)
        for duals in both:
            duals.move(length)
        x = x + length * dx
        same(lambda duals: duals.y)
        same(lambda duals: duals.complementarity())
        assert (np.linalg.norm(both[0].y, axis=1) < capacities).all(), turn


def test_steps_inside_may_be_as_long_as_they_like():
    assert longest(np.ones(2), np.array([0.0, 3.0])) == np.inf
    assert longest(np.ones(0), np.ones(0)) == np.inf
    inside = Vectors(np.ones(2), np.zeros((2, 2)))
    assert inside.longest(Vectors(np.ones(2), np.full((2, 2), 0.5))) == np.inf
    outwards = Vectors(np.zeros(2), np.array([[0.5, 0.0], [0.0, 0.25]]))
    assert inside.longest(outwards) == pytest.approx(2.0)


def test_chances_follow_their_scores():
    """At a central point they are the derivatives, and a step of a number for all is none."""
    term = {"kind": "multinomial", "node": np.zeros(4, np.int64), "X": np.eye(4)}
    duals = ClassDuals(ClassRows([term | {"y": np.array([0.0, 1.0, 2.0, 0.0])}], 1, 12))
    z = np.random.default_rng(0).standard_normal((4, 3))
    duals.begin(z.ravel(), 0.1)
    approach(duals, z.ravel(), 1e-9, 40)
    chances = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = duals.y.reshape(4, 3)
    np.testing.assert_allclose(found, 0.25 * (chances - np.eye(3)[[0, 1, 2, 0]]), atol=1e-7)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-15)
    assert 0.0 <= duals.surplus(z.ravel()) < 1e-7
    duals.linearize(z.ravel() + np.repeat([5.0, -3.0, 0.0, 1e3], 3))
    np.testing.assert_allclose(duals.offset(1e-9, corrected=False), 0.0, atol=1e-9)


def test_what_largest_entries_lose_to_rounding_is_made_up_for():
    """Slacks of 1e14, as starts with large imbalances have, are off by hundredths ever after."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 4))
    edges = LargestEntries(np.full(5, 0.5), 4)
    edges.begin(x, 1e13)
    huge = edges._above.copy()
    for _ in range(60):
        edges.linearize(x)
        edges.offset(0.1 * edges.complementarity() / edges.degree, corrected=False)
        dx = 1e-3 * rng.standard_normal(x.shape)
        edges.step(dx)
        length = min(1.0, 0.9 * edges.longest())
        edges.move(length)
        x = x + length * dx
    assert huge.min() > 1e13
    assert edges.complementarity() < 1e-6
    t = 0.5 * (edges._above + edges._below)
    np.testing.assert_allclose(0.5 * (edges._below - edges._above), x, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(t, t[:, :1] * np.ones(4), rtol=1e-9)
