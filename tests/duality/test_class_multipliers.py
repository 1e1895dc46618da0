"""Rows with several classes keep their multipliers in corrections of flows."""

from itertools import product

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.duality._class_multipliers import ClassMultipliers
from gtvcvx.losses.batched._terms import MULTINOMIAL, merged
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned

NODES, ROWS, FEATURES, CLASSES = 14, 5, 3, 3
DIM = FEATURES * CLASSES
PENALTIES = {
    "l1": "l1",
    "l2": "l2",
    "linf": "linf",
    "squared": "squared",
}
OTHERS = ("alone", "ridge", "beside other losses")


def instance(penalty, unit=1.0, other="alone", seed=4):
    """A problem, 60% labelled, whose first feature is in another unit."""
    rng = np.random.default_rng(seed)
    graph = generators.nearest_neighbours(rng.random((NODES, 2)), 3)
    X = rng.standard_normal((NODES, ROWS, FEATURES))
    y = rng.integers(0, CLASSES, (NODES, ROWS))
    X[:, :, 0] *= unit
    losses = []
    for i in range(NODES):
        loss = gtv.MultinomialLogisticLoss(X[i], y[i], n_classes=CLASSES)
        if other == "ridge":
            loss = loss + gtv.Ridge(0.1)
        elif other == "beside other losses" and i % 3 == 1:
            loss = gtv.AbsoluteLoss(rng.standard_normal((4, DIM)), rng.standard_normal(4))
        losses.append(loss if i == 0 or rng.random() < 0.6 else gtv.ZeroLoss())
    return gtv.GTVProblem(graph, losses, PENALTIES[penalty], 0.1)


def by_clarabel(problem):
    method = InteriorPoint(problem, 1e-8)
    method.begin(Limits(1e-9, 200), np.inf)
    method.run(1)
    return method.proposal()


def blockwise(problem):
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-8, 200), np.inf)
    while not (method.due() or method.finished):
        method.run(1)
    return method.proposal(final=True)


@pytest.mark.parametrize("unit", [1.0, 1e4])
@pytest.mark.parametrize(("penalty", "other"), list(product(PENALTIES, OTHERS)))
def test_bounds_are_accurate_and_never_above_the_optimum(penalty, other, unit):
    rng = np.random.default_rng(5)
    problem = instance(penalty, unit, other)
    pair = blockwise(problem)
    w, u, a = pair.w, pair.u, pair.a
    value = problem.value(w)
    gap, found = problem.bounds.corrected(w, u, a)
    assert 0.0 <= gap.total <= 1e-6 * value
    assert (problem.bounds.slack(found.u) >= 0.0).all()
    poor = w * (1.0 + 0.1 * rng.standard_normal(w.shape))
    for noise in (1e-9, 1e-3, 1.0):
        # Poor flows and slopes prove little, or nothing, but never too much: at no point.
        near = u + noise * np.abs(u).max() * rng.standard_normal(u.shape)
        slopes = a + noise * rng.standard_normal(a.shape)
        found = problem.bounds.corrected(w, near, slopes)
        if found is not None:
            assert value - found[0].total <= value
            bound = problem.value(poor) - problem.bounds.gap_against(poor, found[1]).total
            assert bound <= value + 1e-9 * value
            p = found[1].point.p
            assert (p >= 0.0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("other", OTHERS)
def test_whoever_proposes_them_slopes_are_those_of_the_rows(other):
    problem = instance("l2", other=other)
    terms = merged(problem.losses.terms(), DIM)
    rows = ClassRows([term for term in terms if term["kind"] == MULTINOMIAL], NODES, DIM)
    for pair in (by_clarabel(problem), blockwise(problem)):
        at = rows.coefficients[:, None] * softmax.slopes(
            softmax.probabilities(rows.scores(pair.w)), rows.own
        )
        assert len(pair.a) == sum(len(t["node"]) for t in terms if "y" in t) + 2 * len(rows)
        np.testing.assert_allclose(pair.a[len(pair.a) - at.size :], at.ravel(), atol=1e-5)
        given, _ = problem.bounds.corrected(pair.w, pair.u, pair.a)
        unknown = pair.a.copy()
        unknown[len(pair.a) - at.size :] = np.nan
        told, _ = problem.bounds.corrected(pair.w, pair.u, unknown)
        assert max(given.total, told.total) <= 1e-6 * problem.value(pair.w)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_what_is_corrected_balances_at_every_node(penalty):
    problem = instance(penalty, 1e4)
    pair = blockwise(problem)
    point = problem.bounds.corrected(pair.w, pair.u, pair.a)[1].point
    balance = problem.graph.divergence @ point.u
    term = next(t for t in problem.losses.plain if t["kind"] == MULTINOMIAL)
    slopes = (point.p - (term["y"][:, None] == np.arange(CLASSES))) / ROWS
    size = np.abs(balance)
    for i, x, slope in zip(term["node"], term["X"], slopes, strict=True):
        balance[i] += np.outer(x, slope).ravel()
        size[i] += np.outer(np.abs(x), np.abs(slope)).ravel()
    assert (np.abs(balance) <= 1e-11 * size.max()).all()


@pytest.fixture
def multipliers():
    """Weighted rows of two nodes out of three: one has fewer of them than features."""
    rng = np.random.default_rng(6)
    term = {
        "kind": MULTINOMIAL, "node": np.array([0, 0, 0, 0, 2, 2]), "weight": rng.uniform(1, 2, 6),
        "X": rng.standard_normal((6, FEATURES)) * [1e3, 1.0, 1e-2],
        "y": rng.integers(0, CLASSES, 6).astype(float),
    }  # fmt: skip
    return ClassMultipliers(ClassRows([term], 3, DIM))


def chances(rng, n=6):
    p = rng.random((n, CLASSES)) ** 4
    return p / p.sum(axis=1, keepdims=True)


def test_without_a_barrier_steps_follow_the_second_derivatives(multipliers):
    rng = np.random.default_rng(7)
    p, x = chances(rng), rng.standard_normal((3, DIM))
    found = multipliers.response(x, multipliers.weights(p, 0.0, 0.0))
    z = multipliers.rows.scores(x)
    there = -p * (z - np.sum(p * z, axis=1, keepdims=True))
    np.testing.assert_allclose(found, there, atol=1e-12 * np.abs(z).max())


def test_chances_close_to_zero_have_little_room(multipliers):
    p = np.tile([1.0 - 2e-6, 1e-6, 1e-6], (6, 1))
    free = multipliers.weights(p, 0.0, 0.0)
    tight, least = (multipliers.weights(p, 1.0, share)[:, 1] for share in (0.0, 1e-3))
    c = multipliers.rows.coefficients
    np.testing.assert_allclose(free[:, 1], c * 1e-6)
    np.testing.assert_allclose(tight, (c * 1e-6) ** 2, rtol=1e-5)
    assert (tight < least).all()
    assert (least < free[:, 1]).all()


def test_rows_less_their_means_make_the_matrix_of_the_steps(multipliers):
    """What steps add up to at the nodes is minus the weighted rows' matrix, times potentials."""
    rng = np.random.default_rng(8)
    p = chances(rng)
    D = multipliers.weights(p, 0.3, 1e-3)
    framed, x = multipliers.framed(D), rng.standard_normal((3, DIM))
    node = multipliers.rows.node
    products = D.ravel() * np.sum(framed * x[node], axis=1)
    total, diagonal = np.zeros((3, DIM)), np.zeros((3, DIM))
    np.add.at(total, node, products[:, None] * framed)
    np.add.at(diagonal, node, D.ravel()[:, None] * framed**2)
    steps = multipliers.response(x, D)
    np.testing.assert_allclose(steps.sum(axis=1), 0.0, atol=1e-12 * np.abs(steps).max())
    moved = multipliers.pulled(p + steps) - multipliers.pulled(p)
    np.testing.assert_allclose(moved, -total, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(multipliers.squares(D), diagonal, rtol=1e-9)


def test_leaks_are_made_up_for_by_other_chances(multipliers):
    rng = np.random.default_rng(9)
    p, w = chances(rng), rng.standard_normal((3, DIM)) * 1e-3
    p = 0.5 * p + 0.5 / CLASSES
    other = p + 1e-3 * (chances(rng) - p)
    leak = multipliers.pulled(other) - multipliers.pulled(p)
    even = np.array([[1.0], [2.0], [3.0]]) * np.ones(DIM)
    nothing, reach = np.zeros((3, DIM)), np.ones((3, DIM))
    found = multipliers.absorbed(w, p, leak + even, nothing, reach)
    # Nothing makes up for what is the same for all classes, or where there are no rows.
    np.testing.assert_allclose(found.leak, even, atol=1e-9)
    assert found.rest == 0.0
    assert found.node[1] == 0.0
    # Least changes of chances, so that they cost about as much as those that there are, or less.
    rise = multipliers.gaps(w, other) - multipliers.gaps(w, p)
    assert (found.node[[0, 2]] <= np.abs(rise[[0, 2]]) + 1e-2).all()
    assert (found.node[[0, 2]] > 0.0).any()
    assert (found.doubt == 0.0).all()


def test_what_is_doubtful_of_a_leak_costs_more(multipliers):
    rng = np.random.default_rng(10)
    p, w = chances(rng), rng.standard_normal((3, DIM)) * 1e-3
    nothing, reach = np.zeros((3, DIM)), np.ones((3, DIM))
    doubt = np.full((3, DIM), 1e-6)
    sure = multipliers.absorbed(w, p, nothing, nothing, reach)
    found = multipliers.absorbed(w, p, nothing, doubt, reach)
    assert (found.node[[0, 2]] > sure.node[[0, 2]]).all()
    # With features of full rank chances take all but what is the same for all classes.
    np.testing.assert_array_equal(found.doubt, doubt)
    doubt[:, ::CLASSES] = 0.0
    found = multipliers.absorbed(w, p, nothing, doubt, reach)
    np.testing.assert_allclose(found.doubt[0], 2e-6 / CLASSES)
    np.testing.assert_array_equal(found.doubt[1:], doubt[1:])


def test_chances_that_would_be_negative_are_paid_for(multipliers):
    w, p = np.zeros((3, DIM)), np.tile(np.eye(CLASSES)[0], (6, 1))
    other = np.tile([1.1, -0.05, -0.05], (6, 1))
    leak = multipliers.pulled(other) - multipliers.pulled(p)
    nothing, reach = np.zeros((3, DIM)), np.ones((3, DIM))
    near = multipliers.absorbed(w, p, leak, nothing, reach).rest
    assert near > 0.0
    assert multipliers.absorbed(w, p, leak, nothing, 2.0 * reach).rest > near
    # What may be below zero, for all that is known, is paid with scores and not with reach.
    doubt = np.full((3, DIM), 1e-6)
    found = multipliers.absorbed(w, p, nothing, doubt, reach)
    assert found.rest > 0.0
    assert multipliers.absorbed(w, p, nothing, doubt, 2.0 * reach).rest == found.rest


def raw(seed, n):
    """Intercept, year, income and rate of three classes."""
    rng = np.random.default_rng(seed)
    graph = generators.nearest_neighbours(rng.random((n, 2)), 5)
    X = np.ones((n, 4, 4))
    X[:, :, 1], X[:, :, 2] = rng.uniform(1985, 2020, (n, 4)), rng.lognormal(10.5, 0.5, (n, 4))
    X[:, :, 3] = rng.normal(0.05, 0.02, (n, 4))
    y, labelled = rng.integers(0, 3, (n, 4)), rng.random(n) < 0.3
    losses = gtv.MultinomialLogisticLoss.stack(X, y, n_classes=3, labelled=labelled)
    return gtv.GTVProblem(graph, losses, "l2", 0.1)


def test_points_in_raw_units_are_proved_without_a_repair(monkeypatch):
    """Repairs took most of the time, or proved nothing: a gap of 1 beside 15,000 nodes."""
    problem = raw(1, 200)
    monkeypatch.setattr(problem.bounds, "gap_and_flow", None)
    solution = problem.solve(rtol=1e-6, verbose=False)
    assert solution.rel_gap <= 1e-6
    assert solution.info["method"] == "interior point"


def test_small_chances_keep_their_digits(multipliers):
    """That of a hopeless own class, too: the likeliest class has what the others leave."""
    own = multipliers.rows.own
    p = np.where(own, 3e-19, np.where(np.roll(own, 1, axis=1), 7e-13, 0.0))
    p = multipliers.inside(np.where(np.roll(own, 2, axis=1), 0.9, p))
    assert (p[own] == 3e-19).all()
    assert (p[np.roll(own, 2, axis=1)] == 1.0 - 7e-13).all()
    slopes = multipliers.slopes(p.astype(np.longdouble))
    np.testing.assert_allclose(slopes.sum(axis=1).astype(float), 0.0, atol=1e-18)
    c = multipliers.rows.coefficients
    if np.finfo(np.longdouble).eps < 1e-18:  # what a double less one cannot hold
        np.testing.assert_allclose(
            (slopes[own] / c + 1.0).astype(float), 3e-19, atol=2.0 * np.finfo(np.longdouble).eps
        )


@pytest.mark.parametrize("seed", [0, 2])
def test_features_far_from_zero_are_proved(seed):
    """One column of ones, one of 6243 and a bit; most nodes are separable, and lambda is small.

    Own classes of a few rows are hopeless, and what rounding left of them was a gap of 1e-5.
    """
    rng = np.random.default_rng(seed)
    n, K = 40, 4
    graph = generators.nearest_neighbours(rng.random((n, 2)), 3)
    X = np.ones((n, 3, 2))
    X[:, :, 1] = 6243.0 + rng.standard_normal((n, 3))
    scores = (X[:, :, 1, None] - 6243.0) * rng.standard_normal(K)
    y = (scores + 0.5 * rng.standard_normal((n, 3, K))).argmax(axis=2)
    labelled = rng.random(n) < 0.6
    losses = gtv.MultinomialLogisticLoss.stack(X, y, labelled, n_classes=K)
    problem = gtv.GTVProblem(graph, losses, "linf", 1e-5)
    assert problem.solve(rtol=1e-6, max_iter=100).status == "optimal"
