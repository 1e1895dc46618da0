"""Bounds where rounding is worth much: nearly equal rows, data far from zero, raw units.

The truth is the exact value of a point that another solver found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from _instances import far_from_solutions
from cvxpy.error import SolverError

import gtvcvx as gtv
import verify
from gtvcvx._arrays import FloatArray
from gtvcvx.duality import _lengths
from gtvcvx.duality._conservation import FlowConservation
from gtvcvx.duality._lengths import Lengths, ends_of_sets, pooled_lengths, triangle
from gtvcvx.duality._terms import GapTerms
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._doubt import Doubt
from gtvcvx.losses.batched._stacked import stacked_from_terms
from gtvcvx.losses.batched.composite._absorption import Absorption

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


def terms(kind: str, n: int, **numbers: float) -> StackedLoss:
    """Return a term of all coordinates, d = 3, of n nodes."""
    node, fields = np.arange(n), {k: np.full((n, 3), x) for k, x in numbers.items()}
    return stacked_from_terms([{"kind": kind, "node": node, **fields}], 3)


Stack = Callable[[FloatArray, FloatArray], StackedLoss]
LOSSES: dict[str, Stack] = {
    "squared": gtv.SquaredLoss.stack,
    "ridge": lambda X, y: gtv.SquaredLoss.stack(X, y) + terms("ridge", len(X), mu=1e-3),
    "absolute": gtv.AbsoluteLoss.stack,
    "huber": lambda X, y: gtv.HuberLoss.stack(X, y, delta=0.4),
    "pseudohuber": lambda X, y: gtv.PseudoHuberLoss.stack(X, y, delta=0.4),
    "lasso": lambda X, y: gtv.LassoLoss.stack(X, y, kappa=0.3),
}


def features(rng: np.random.Generator, kind: str, shape: tuple[int, int, int]) -> FloatArray:
    """Return features (n, m, d), d >= 2: an intercept and a year, or rows that are nearly equal."""
    X = 1e3 * rng.standard_normal(shape)
    if kind == "raw":
        X[:, :, 0], X[:, :, 1] = 1.0, 1985.0 + 20.0 * rng.standard_normal(shape[:2])
    else:
        change = rng.standard_normal((*shape[:1], shape[1] - 1, shape[2]))
        X[:, 1:] = X[:, :1] * (1.0 + 1e-9 * change)
    return X


def problem(
    rng: np.random.Generator, loss: str, kind: str, offset: float, rows: int
) -> gtv.GTVProblem:
    X = features(rng, kind, (5, rows, 3))
    y = offset + rng.standard_normal((5, rows))
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 0), (3, 4)], rng.random(4) + 0.1)
    return gtv.GTVProblem(graph, LOSSES[loss](X, y), "l2", 10.0 ** rng.uniform(-3.0, 0.0))


def at_most(bound: float, best: Fraction) -> bool:
    return bound == -np.inf or Fraction(bound) <= best


def reference(p: gtv.GTVProblem) -> list[FloatArray]:
    """Return the point that another solver finds, if it does."""
    try:
        return [p.solve("CLARABEL").w]
    except SolverError:
        return []


def least_known(p: gtv.GTVProblem, *points: FloatArray) -> Fraction:
    """Return the least exact objective of some points."""
    return min(verify.certify(p, w, search=False).upper for w in points)


@pytest.mark.parametrize("kind", ["raw", "nearly equal"])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_bound_is_above_the_exact_value_of_a_point(loss, offset, kind):
    rng = np.random.default_rng([len(loss), int(offset > 0.0), len(kind)])
    for rows in (2, 3)[-MULTIPLIER:]:
        p = problem(rng, loss, kind, offset, rows)
        ours = p.solve(rtol=1e-9, max_iter=100)
        best = least_known(p, ours.w, *reference(p))
        assert at_most(ours.dual_value, best)
        for share in (1.0, 1e-2, 1e-6, 0.0):
            u = ours.u * (1.0 + share * rng.standard_normal(ours.u.shape))
            assert at_most(p.lower_bound(u)[0], best)
            gap, _ = p.bounds.gap(ours.w, u)
            assert at_most(ours.value - gap.total, best)


def test_a_leak_beside_nearly_equal_rows_is_worth_more_than_its_product_with_the_point():
    # Two rows that differ by 1e-9 and targets that differ by 1: w is a billion, the optimum 0.
    X, y = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-9]]]), np.array([[0.0, 1.0]])
    p = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), gtv.AbsoluteLoss.stack(X, y), "l2", 1.0)
    batch = p.losses.parts[0][1]
    absorption = batch._absorption
    assert isinstance(absorption, Absorption)
    a, zero = np.array([0.5, -0.5]), np.zeros((1, 2))
    leak = np.array([[0.0, 0.5e-9]])  # what a misses of s = 0
    cost = absorption.cost(zero, a, zero, leak, zero, np.zeros(2))
    # Both multipliers have to go: the bound of 1/2 that they seem to give is lost.
    assert cost.total(0.5) >= 0.49
    assert p.lower_bound(np.zeros((0, 2)))[0] <= 1e-6


def test_a_leak_in_a_box_is_worth_its_product_with_the_width():
    losses = gtv.AbsoluteLoss.stack(np.ones((1, 1, 3)), np.ones((1, 1)))
    losses = losses + terms("box", 1, lower=0.0, upper=3.0)
    p = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), losses, "l2", 1.0)
    zero, leak = np.zeros((1, 3)), np.array([[1e-3, -1e-3, 0.0]])
    cost = p.losses.parts[0][1]._absorption.cost(zero, np.zeros(1), zero, leak, zero, np.zeros(3))
    assert cost.total(1.0) == pytest.approx(6e-3)


def test_what_nothing_makes_up_pairs_with_how_far_solutions_may_be():
    p = gtv.GTVProblem(
        gtv.EmpiricalGraph(1, []),
        gtv.AbsoluteLoss.stack(np.array([[[1.0, 0.0]]]), np.array([[1.0]])),
        "l2",
        1.0,
    )
    zero, leak = np.zeros((1, 2)), np.array([[0.0, 1e-3]])
    cost = p.losses.parts[0][1]._absorption.cost(
        zero, np.zeros(1), zero, leak, zero, np.array([0.0, 7.0])
    )
    assert cost.total(1.0) == pytest.approx(2.0 * 7e-3)


def test_the_divergence_of_a_flow_is_unsure_where_it_has_to_vanish():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    losses = gtv.PointLoss.stack(np.zeros((1, 1))).completed(3)
    conservation = FlowConservation(graph, losses, gtv.GTVProblem(graph, losses, "l2", 1.0).penalty)
    found = conservation.missing(np.zeros((2, 1)), np.full((3, 1), 1e-16))
    assert found.ravel().tolist() == [0.0, 1e-16, 1e-16]


@pytest.mark.parametrize("size", [1.0, 1e30])
@pytest.mark.parametrize("cancelling", [False, True])
def test_sums_of_flows_in_extended_precision_are_as_exact_as_is_said(cancelling, size):
    """Also where flows nearly cancel at each node; the truth in rationals."""
    rng = np.random.default_rng(4)
    graph = gtv.generators.chain(20, 1.0) if cancelling else gtv.generators.grid(5, 8)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.normal(size=(40, 2))), "l2", 1.0)
    noise = rng.normal(size=(graph.n_edges, 2))
    u = size * (1.0 + 1e-13 * noise if cancelling else noise)
    terms = problem.bounds._terms
    found, unsure = terms._precise(u)
    exact = [[Fraction(0)] * 2 for _ in range(graph.n_nodes)]
    for (head, tail), flow in zip(graph.edges.tolist(), u.tolist(), strict=True):
        for k in range(2):
            exact[head][k] -= Fraction(flow[k])
            exact[tail][k] += Fraction(flow[k])
    for i in range(graph.n_nodes):
        for k in range(2):
            assert abs(Fraction(float(found[i, k])) - exact[i][k]) <= Fraction(float(unsure[i, k]))
    # Where numbers are wider than doubles it says much more than sums of doubles do.
    if cancelling and np.finfo(np.longdouble).eps < np.finfo(float).eps:
        assert np.all(unsure[1:-1] <= 1e-2 * terms.unsure(u)[1:-1])


def test_a_point_far_from_all_solutions_does_not_say_how_far():
    """A solver ended at w = 0, or so, where solutions are a million long."""
    p, w, flow = far_from_solutions()
    bounds = p.bounds
    gap = bounds.gap_of(w, flow)
    assert gap.total > 1e-3 * p.value(w)
    assert np.all(bounds._terms.alone[0] > 100.0 * bounds._terms.reach(w)[0])
    bounds._terms.__dict__ |= {"_lengths": Lengths(np.zeros(3 + p.dim)), "alone": np.zeros(p.dim)}
    assert gap.rounding > 10.0 * bounds.gap_of(w, flow).rounding


def test_far_from_the_optimum_rounding_counts_whatever_the_size_of_the_objective(monkeypatch):
    """Solutions may be as long as targets ask for; gaps below 1e-3 were taken for small ones."""
    rng = np.random.default_rng(4)
    X, y = features(rng, "raw", (5, 2, 3)), rng.standard_normal((5, 2))
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 0), (3, 4)])
    u = np.zeros((4, 3))
    u[:3] = 1e-3 * rng.standard_normal(3)  # round a cycle
    w = 1e-3 * rng.standard_normal((5, 3))

    def rounding(unit: float, length: float) -> float:
        monkeypatch.setattr(GapTerms, "alone", np.full(3, unit * length))
        p = gtv.GTVProblem(graph, LOSSES["squared"](X, unit * y), "squared", 1.0)
        gap, _ = p.bounds.gap(unit * w, unit * u)
        return gap.rounding / unit**2

    for unit in (1.0, 2.0**-30):
        assert rounding(unit, 1e12) > 1e3 * rounding(unit, 1.0)


@pytest.mark.parametrize("seed", [3, 23, 26])
def test_columns_that_are_dependent_together_let_solutions_be_far(seed):
    """Fewer rows than columns at each node: how large the intercept is all nodes tell together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4, 3, 5)) + 10.0 ** rng.uniform(1.0, 5.0, 5)
    X[:, :, 0] = 1.0
    losses = gtv.PseudoHuberLoss.stack(X, 1.0 + rng.standard_normal((4, 3)), delta=0.5)
    p = gtv.GTVProblem(gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)]), losses, "squared", 10.0)
    ours = p.solve(rtol=1e-9, max_iter=150)
    assert at_most(p.lower_bound(ours.u)[0], least_known(p, ours.w))
    assert (np.abs(ours.w) <= p.bounds._reach).all()


def test_lengths_of_columns_together(monkeypatch):
    rng = np.random.default_rng(0)

    def found(*tables):
        units = Lengths(np.append(np.ones(3), sum(np.sum(X**2, axis=0) for X in tables))).units
        parts = [triangle([X], units) for X in tables]
        assert all(len(part) <= len(units) for part in parts)
        return pooled_lengths(triangle(parts, np.ones(len(units))), units)

    X = np.array([0.0, 1e3, 1e4, 1e5]) + rng.standard_normal((40, 4))
    exact = np.linalg.norm(np.linalg.pinv(X), axis=1)
    np.testing.assert_allclose(found(X), exact, rtol=1e-9)
    monkeypatch.setattr(_lengths, "PIECE", 20)
    np.testing.assert_allclose(found(X[:13], X[13:]), exact, rtol=1e-9)
    # Columns that add up to another one, and one of zeros: nothing changes along that.
    several = found(np.column_stack([X[:, :2], X[:, 0] + X[:, 1], np.zeros(40)]))
    assert (several[:3] <= 1.0).all()
    assert several[3] == 0.0
    np.testing.assert_array_equal(found(np.zeros((0, 2))), [0.0, 0.0])


@pytest.mark.parametrize("seed", [1, 4, 7, 11][: 2 * MULTIPLIER])
def test_a_flow_of_the_size_of_rounding_proves_nothing(seed):
    """One model has all classes right, so that the optimum is zero."""
    rng = np.random.default_rng([7, seed])
    X, model = rng.standard_normal((5, 1, 3)), rng.standard_normal(3)
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 3), (3, 4)], rng.random(4) + 0.1)
    for lam in 10.0 ** np.arange(-2.0, 2.0):
        p = gtv.GTVProblem(graph, gtv.HingeLoss.stack(X, np.sign(X @ model)), "l2", lam)
        for size in 10.0 ** np.arange(-15.0, -9.0, 2.0 / MULTIPLIER):
            u = size * rng.standard_normal((4, 3))
            assert p.lower_bound(u)[0] <= 0.0
            w = rng.standard_normal((5, 3))
            assert p.bounds.gap(w, u)[0].total >= p.value(w) * (1.0 - 1e-15)


def test_a_gap_is_finite_where_multipliers_for_the_flow_zero_are_lost_to_rounding():
    rng = np.random.default_rng(0)
    X = 1e3 * rng.standard_normal((2, 3, 1)) * (1.0 + 1e-9 * rng.standard_normal((2, 3, 5)))
    losses = gtv.HingeLoss.stack(X, np.sign(rng.standard_normal((2, 3))))
    p = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, "l2", 4e-3)
    w = 1e6 * rng.standard_normal((2, 5))
    assert p.value(w) <= p.bounds.gap(w, np.zeros((1, 5)))[0].total < np.inf


def test_a_point_near_the_optimum_does_not_say_how_far_solutions_are():
    """Rows with kinks: another point is as good, and the intercept, shared by all, elsewhere."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((4, 1, 3)), rng.standard_normal((4, 1))
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)])
    p = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(X, y), "l2", 0.1)
    ours = p.solve(rtol=1e-9)
    u = (1.0 - 1e-8) * ours.u + 1e-10 * rng.standard_normal(ours.u.shape)  # leaks that much

    def rounding(length: float) -> float:
        p.bounds._terms.__dict__["alone"] = np.full(3, length)
        return p.bounds.gap_of(ours.w, u).rounding

    assert p.bounds.gap_of(ours.w, u).total < 1e-3 * ours.value
    assert rounding(1e6) > 1e4 * rounding(1.0)


def test_what_corrections_leave_pairs_with_how_far_solutions_are():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((4, 1, 3)), rng.standard_normal((4, 1))
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)])
    p = gtv.GTVProblem(graph, gtv.HuberLoss.stack(X, y, delta=0.4), "l2", 0.1)
    ours = p.solve(rtol=1e-9)

    def rounding(length: float) -> float:
        p.bounds._terms.__dict__["alone"] = np.full(3, length)
        found = p.bounds.corrected(ours.w, ours.u, np.full(4, np.nan))
        assert found is not None
        return found[0].rounding

    assert rounding(1e12) > 1e4 * rounding(1.0)


def test_rows_that_are_decided_far_from_zero_cost_little_rounding():
    """Margins of features at 1e7 lose digits; what is left of the losses, 1e-7, hardly changes."""
    rng = np.random.default_rng(0)
    n, d, m = 12, 6, 4
    X, y = 1e7 + rng.standard_normal((n, m, d)), rng.integers(0, 2, (n, m))
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    terms = [gtv.LogisticLoss(X[i], y[i]) for i in range(n)]
    problem = gtv.GTVProblem(graph, terms, "l2", 1e-9)
    found = problem.solve(rtol=1e-12, atol=1e-6, max_iter=2_000, verbose=False)
    assert found.status == "optimal"
    assert found.gap <= 1e-6


def test_coordinates_that_are_bounded_below_take_what_leaks():
    """Their multipliers have no upper end: however far solutions may be, it is a few products."""
    losses = gtv.AbsoluteLoss.stack(np.array([[[1.0, 0.0]]]), np.ones((1, 1)))
    losses = losses + stacked_from_terms(
        [{"kind": "box", "node": np.arange(1), "lower": np.zeros((1, 2)),
          "upper": np.full((1, 2), np.inf)}], 2)  # fmt: skip
    p = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), losses, "l2", 1.0)
    absorption, zero, far = p.losses.parts[0][1]._absorption, np.zeros((1, 2)), np.full(2, 1e9)
    w, a, room = np.array([[1.0, 3.0]]), np.zeros(1), np.array([[0.0, -1e-6]])
    for size in (1e-9, -1e-9):
        leak = np.array([[0.0, size]])
        taken = absorption.cost(w, a, room, leak, zero, far).total(1.0)
        assert taken == pytest.approx(max(-3.0 * size, 0.0))
    doubt = np.array([[0.0, 1e-9]])
    assert absorption.cost(w, a, room, zero, doubt, far).total(1.0) == pytest.approx(3e-9)
    # At the end of the multipliers only one sign is taken.
    assert absorption.cost(w, a, zero, np.array([[0.0, 1e-9]]), zero, far).total(1.0) >= 1.0
    assert absorption.cost(w, a, zero, np.array([[0.0, -1e-9]]), zero, far).total(1.0) < 1e-8


def test_solutions_are_no_larger_than_sets_allow():
    terms = [
        {"kind": "absolute", "node": np.array([0, 1])},
        {"kind": "box", "node": np.array([0]), "lower": -np.array([[1.0, 2.0]]),
         "upper": np.array([[3.0, np.inf]])},
        {"kind": "simplex", "node": np.array([1]), "total": np.array([7.0])},
    ]  # fmt: skip
    assert ends_of_sets(terms, (3, 2), clipping=True).tolist() == [7.0, np.inf]
    assert ends_of_sets(terms, (3, 2), clipping=False).tolist() == [np.inf, np.inf]  # node 2
    assert ends_of_sets(terms, (2, 2), clipping=False).tolist() == [7.0, np.inf]
    assert ends_of_sets(terms[:2], (2, 2), clipping=True).tolist() == [np.inf, np.inf]  # node 1
    X, y = np.array([[[1.0, 1.0 + 1e-9]]]), np.ones((1, 1))
    losses = gtv.AbsoluteLoss.stack(X, y)
    losses = losses + stacked_from_terms(
        [{"kind": "box", "node": np.arange(1), "lower": np.full((1, 2), -0.125),
          "upper": np.full((1, 2), 0.25)}], 2)  # fmt: skip
    p = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses.completed(2), "linf", 1.0)
    assert p.bounds._terms.alone.tolist() == [0.25, 0.25]


def test_a_lonely_node_tells_nothing_of_solutions_elsewhere():
    """Its solution is a billion long; leaks of the others are worth no more for that."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((5, 1, 3)), rng.standard_normal((5, 1))
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 3)])
    p = gtv.GTVProblem(graph, gtv.HuberLoss.stack(X, y, delta=0.4), "l2", 0.1)
    ours = p.solve(rtol=1e-9)
    u = ours.u + 1e-9 * rng.standard_normal(ours.u.shape)
    far = ours.w.copy()
    far[4] += 1e9 * np.cross(X[4, 0], [1.0, 0.0, 0.0])  # as good
    near_by, far_off = (p.bounds.corrected(w, u, np.full(5, np.nan)) for w in (ours.w, far))
    assert near_by is not None
    assert far_off is not None
    assert far_off[0].rounding <= 1e-8 + 2.0 * near_by[0].rounding


def test_multipliers_beyond_an_end_at_zero_pair_with_predictions_of_solutions():
    """A hinge's slope of 1e-9 of the wrong sign: next to nothing here, not at a point far away."""
    X = np.array([[1.0, 1968.4, 30780.5, 0.06, 69.2], [1.0, 1997.6, 25811.9, 0.053, 14.0]])
    loss = gtv.HingeLoss(X, [-1.0, 1.0])
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), [loss], "l1", 1.0)
    batch = problem.losses.parts[0][1]
    near, far = (np.linalg.lstsq(X, [-1.0, z], rcond=None)[0] for z in (1.0, 1e6))
    for wrong in (1e-9, 1e-7):
        s = X.T @ np.array([2e-6, wrong])
        doubt = Doubt(np.zeros((1, 5)), np.abs(far), lambda: 0.0)
        gap, more = batch.certain_gap(near[None], s[None], doubt)
        # L*(s) is at least s w - L(w) at any w.
        least = loss.value(near) - s @ near + s @ far - loss.value(far)
        assert least > 0.9e6 * wrong
        assert gap[0] + more >= least


@pytest.mark.parametrize("scale", [1e12, 1.7e18])
def test_an_intercept_beside_times_in_nanoseconds_explains_what_it_explains(scale: float) -> None:
    """It is less than a last digit of theirs; bounds were 2e-6 above the optimum, which is 0."""
    rng = np.random.default_rng(3)
    n, m = 5, 6
    X = np.stack([np.ones((n, m)), scale * (1.0 + 2e-4 * rng.standard_normal((n, m)))], axis=-1)
    losses = gtv.SquaredLoss.stack(X, X @ [3.0, 2.0 / scale])
    p = gtv.GTVProblem(gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)]), losses, "l1", 1.0)
    optimum = p.value(np.tile([3.0, 2.0 / scale], (n, 1)))
    zero = np.zeros((n - 1, 2))
    assert p.lower_bound(zero)[0] <= optimum
    assert p.dual_value(zero) <= optimum + 1e-20
    w = np.tile([0.0, 5.0 / scale], (n, 1))
    assert p.bounds.gap(w, zero)[0].total >= p.value(w) - optimum > 1e-7


def test_a_ridge_beside_features_of_1e12_is_no_rounding() -> None:
    """Two rows, four coordinates: a point along what only the ridge sees costs what it costs."""
    rng = np.random.default_rng(3)
    n, mu = 4, 1e-3
    X, y = 1e12 * rng.standard_normal((n, 2, 4)), rng.standard_normal((n, 2))
    losses = gtv.SquaredLoss.stack(X, y) + stacked_from_terms(
        [{"kind": "ridge", "node": np.arange(n), "mu": np.full((n, 4), mu)}], 4
    )
    p = gtv.GTVProblem(gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)]), losses, "l1", 1.0)
    w = 1e3 * rng.standard_normal((n, 4))
    for i in range(n):
        rows = np.linalg.qr(X[i].T)[0]
        for _ in range(2):
            w[i] -= rows @ (rows.T @ w[i])
    zero = np.zeros((n - 1, 4))
    assert p.bounds.gap(w, zero)[0].total >= p.value(w) - p.value(0.0 * w)
