"""The best pair keeps a finite gap where a flow tells nothing of another point."""

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses.batched.composite import _ascent
from gtvcvx.solvers.driver._best_pair import BestPair
from gtvcvx.solvers.driver._incumbent import Incumbent


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    losses = gtv.SquaredLoss.stack(rng.standard_normal((6, 3, 2)), rng.standard_normal((6, 3)))
    return gtv.GTVProblem(gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)]), losses, "l2", 0.1)


@pytest.fixture
def silent(monkeypatch):
    """From now on flows tell nothing of points that they were not found with."""

    def lost(self, w, against, enough=0.0):
        return dataclasses.replace(self._loose_gap(w), rounding=np.inf)

    return lambda: monkeypatch.setattr(Incumbent, "_gap_against", lost)


def bounded(problem, best, optimum):
    assert best.value == problem.value(best.w)
    assert best.dual_value <= optimum <= best.value
    assert np.isfinite(best.gap)


def test_a_better_point_is_taken(problem, silent):
    solved = problem.solve(rtol=1e-9)
    for take in ("update", "update_point"):
        best = Incumbent(problem)
        best.update(np.ones((6, 2)), solved.u)
        silent()
        if take == "update":
            best.update(solved.w, np.zeros_like(solved.u), keep_last=True)
        else:
            best.update_point(solved.w)
        np.testing.assert_array_equal(best.w, solved.w)
        bounded(problem, best, solved.value)


def test_a_better_flow_is_left_where_it_tells_nothing_of_the_point(problem, silent):
    solved = problem.solve(rtol=1e-9)
    best = Incumbent(problem)
    best.update(solved.w, 0.5 * solved.u)
    before = best.dual_value
    silent()
    best.update(np.ones((6, 2)), solved.u)
    np.testing.assert_array_equal(best.w, solved.w)
    assert best.dual_value == before
    bounded(problem, best, solved.value)


@pytest.mark.parametrize("lower", [-np.inf, 0.5])
def test_zero_costs_no_look_at_the_edges(problem, monkeypatch, lower):
    """What it begins with where time is over: the same as by all terms."""
    losses = problem.losses
    if lower > 0.0:
        box = {"kind": "box", "node": np.arange(6)}
        box |= {"lower": np.full((6, 2), lower), "upper": np.full((6, 2), np.inf)}
        losses = losses + gtv.losses.stacked_from_terms([box], 2)
    problem = gtv.GTVProblem(problem.graph, losses, "l2", 0.1)
    fast, full = Incumbent(problem), Incumbent(problem)
    BestPair.begin(full)
    if lower < 0.0:
        monkeypatch.setattr(type(problem.penalty), "value", pytest.fail)
    fast.begin()
    assert fast.value == pytest.approx(full.value, rel=1e-14)
    assert fast.gap == pytest.approx(full.gap, rel=1e-12)
    np.testing.assert_array_equal(fast.w, full.w)
    np.testing.assert_array_equal(fast.u, full.u)


def test_beside_many_coordinates_multipliers_stay_with_their_flow(monkeypatch):
    """The best ones for a better point take longer than all else, and prove hardly more."""
    rng, n, d = np.random.default_rng(8), 20, 250
    X, y = rng.standard_normal((n, 2, d)), rng.standard_normal((n, 2))
    losses = [gtv.LassoLoss(X[i], y[i], 0.05) for i in range(n)]
    problem = gtv.GTVProblem(gtv.generators.grid(4, 5), losses, "l2", 0.02)
    found = problem.solve(rtol=1e-7)
    best = Incumbent(problem)
    best.update(1.1 * found.w, found.u)
    bound = best.dual_value
    assert bound == pytest.approx(found.value, rel=1e-2)

    def sought(*_):
        raise AssertionError

    monkeypatch.setattr(_ascent, "_maximize", sought)
    best.update_point(found.w)
    assert best.value == pytest.approx(found.value, rel=1e-9)
    assert best.dual_value == pytest.approx(bound, rel=1e-9)
    assert best.gap >= found.value - found.gap - bound
    # Bounds, and no better ones than what is sought proves.
    monkeypatch.undo()
    sought_bound = found.value - problem.bounds.gap_of(found.w, best.u).total
    assert best.dual_value <= sought_bound + 1e-9
    assert sought_bound <= found.value


def test_a_repair_waits_for_a_better_pair_where_multipliers_prove_something(problem, monkeypatch):
    """It takes as long as a few iterations of the method that knows them."""
    solved, a = problem.solve(rtol=1e-9), np.full(18, np.nan)
    repaired = []
    inside = Incumbent._checked
    monkeypatch.setattr(
        Incumbent, "_checked", lambda self, *rest: repaired.append(1) or inside(self, *rest)
    )
    for waits in (True, False):
        best = Incumbent(problem)
        best.update(1.01 * solved.w, solved.u, a=a, enough=1e-9, waits=waits)
        assert len(repaired) == 1 - waits
        assert 1e-9 < best.gap < np.inf
        assert best.dual_value <= solved.value <= best.value
    # Without multipliers there would be nothing.
    monkeypatch.setattr(Incumbent, "_corrected", lambda *_: False)
    best = Incumbent(problem)
    best.update(solved.w, solved.u, a=a, enough=1e-9, waits=True)
    assert len(repaired) == 2
    assert np.isfinite(best.gap)


@pytest.mark.parametrize("waits", [False, True])
def test_a_tiny_objective_needs_no_flow(waits):
    """Where losses' own bounds are enough, no flow is repaired, and no better one waited for."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((6, 3, 2)), rng.standard_normal((6, 3))
    losses = gtv.AbsoluteLoss.stack(x, 1e-8 * y)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)]), losses, "l2")
    far, signs = np.full((5, 2), 0.9), np.ones(18)
    w = np.zeros((6, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Incumbent, "_checked", lambda *_: pytest.fail("repaired"))
        best = Incumbent(problem)
        best.update(w, far, a=signs, enough=1e-6, waits=waits)
    np.testing.assert_array_equal(best.w, w)
    assert best.gap == pytest.approx(problem.value(w))
    assert best.gap <= 1e-6
