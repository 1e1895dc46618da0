"""Changes in arrays, against a plain twin and against heaps."""

from itertools import pairwise

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._scalar_gap import extent
from gtvcvx.solvers.forest import _forest, rooted_forest
from gtvcvx.solvers.forest._capacities import effective
from gtvcvx.solvers.forest._forest import clipped_by_heaps, scalar_solution
from gtvcvx.solvers.forest._nodes import Bounds
from gtvcvx.solvers.forest._positions import origins, positioned
from gtvcvx.solvers.forest._runs import MOST_MOVES, Runs, run_bounds
from gtvcvx.solvers.scalar._problems import slopes_in
from tests.solvers.forest.test_forest import SHAPES, random_problem


def prepared(problem):
    forest, slopes = rooted_forest(problem.graph), slopes_in(problem, 0)
    capacity = effective(forest, slopes, extent(slopes), problem.capacities)
    shift = origins(forest, slopes)
    return forest, positioned(forest, slopes, capacity, shift), *_forest._own(forest, slopes, shift)


def by_runs(forest, nodes, indptr, own, pieces=1):
    """All trees by runs, in pieces, whatever that takes."""
    n = len(forest.node)
    bounds, begin = Bounds(np.empty(n), np.empty(n)), 0
    for stop in forest.stops:
        runs, marks = (
            Runs.of(n, len(own.position)),
            np.linspace(begin, stop, pieces + 1).astype(int),
        )
        for start, end in pairwise(marks):
            assert not run_bounds(begin, start, end, nodes, indptr, own, runs, bounds)
        begin = int(stop)
    return bounds


def slope_at(p, x, forest, nodes, indptr, own):
    """The slope just left of x of the least cost below position p: by definition."""
    at = [k for k in range(indptr[p], indptr[p + 1]) if own.position[k] < x]
    slope = nodes.q[p] * x - nodes.b[p]
    slope += sum(own.bend[k] * (x - own.position[k]) + own.jump[k] for k in at)
    for child in np.flatnonzero(forest.parent == p):
        below, c = slope_at(child, x, forest, nodes, indptr, own), nodes.capacity[child]
        slope += min(max(below, -c), c)
    return slope


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_are_those_of_heaps_and_in_pieces_the_same(shape, quadratic):
    for seed in range(90, 98):
        forest, nodes, indptr, own = prepared(random_problem(seed, shape, quadratic))
        n = len(forest.node)
        heaps = Bounds(np.empty(n), np.empty(n))
        clipped_by_heaps(0, nodes, indptr, own, heaps)
        once, parts = (by_runs(forest, nodes, indptr, own, pieces) for pieces in (1, 3))
        for found, same, expected in zip(once, parts, heaps, strict=True):
            np.testing.assert_array_equal(found, same)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_its_bounds_a_slope_reaches_the_capacity(shape):
    """From below -c to above it at the lower one, from below c to above it at the upper one."""
    near, far = 1e-7, 1e5
    for seed in range(30, 34):
        prepared_forest = prepared(random_problem(seed, shape, quadratic=False))
        found, (forest, nodes, *_) = by_runs(*prepared_forest), prepared_forest
        for p in np.flatnonzero(forest.parent >= 0):
            c = nodes.capacity[p]
            for bound, level in ((found.low[p], -c), (found.high[p], c)):
                left, right = np.clip([bound - near, bound + near], -far, far)
                if bound > -np.inf:
                    assert slope_at(p, left, *prepared_forest) <= level + 1e-9
                if bound < np.inf:
                    assert slope_at(p, right, *prepared_forest) >= level - 1e-9


def kinked_chain(n, lam, factor=1e-3):
    """All slopes are small: nothing is clipped, and each kink lands in the midst of the others."""
    rng = np.random.default_rng(n)
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    losses = factor * gtv.AbsoluteLoss.stack(None, rng.standard_normal(n))
    return gtv.GTVProblem(graph, losses, "l1", lam)


def test_too_many_moves_are_left_to_heaps(monkeypatch):
    calls = []
    heaps = _forest.clipped_by_heaps
    monkeypatch.setattr(_forest, "clipped_by_heaps", lambda *a: (calls.append(a[0]), heaps(*a)))
    for n, given_up in ((5 * MOST_MOVES, []), (20 * MOST_MOVES, [0])):
        calls.clear()
        problem = kinked_chain(n, 1e3)
        w, _ = scalar_solution(
            rooted_forest(problem.graph), slopes_in(problem, 0), problem.capacities
        )
        assert calls == given_up
        y = np.sort(problem.to_data()["terms"][0]["y"])
        assert np.ptp(w) == 0.0  # consensus, at a median
        assert y[n // 2 - 1] - 1e-12 <= w[0] <= y[n // 2] + 1e-12


def test_trees_after_one_that_is_left_to_heaps():
    """Several trees: those before are done, the one that gave up begins anew."""
    long, rng = 20 * MOST_MOVES, np.random.default_rng(1)
    edges = [(0, 1), (1, 2), *((i, i + 1) for i in range(3, 3 + long)), (long + 4, long + 5)]
    n = long + 6
    losses = 1e-3 * gtv.AbsoluteLoss.stack(None, rng.standard_normal(n))
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l1", 1e3)
    solution = problem.solve(rtol=1e-9)
    assert solution.status == "optimal"
    assert solution.info["method"] == "dynamic programming"


def test_a_star_needs_no_more_room_than_there_is(monkeypatch):
    """Every leaf leaves its changes on the stack until the hub is met."""
    monkeypatch.setattr(_forest, "clipped_by_heaps", None)
    rng, n = np.random.default_rng(2), 500
    losses = gtv.PointLoss.stack(rng.standard_normal((n, 1)))
    losses = losses + gtv.AbsoluteLoss.stack(None, rng.standard_normal(n))
    for hub in (0, n - 1):
        edges = [(hub, i) for i in range(n) if i != hub]
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l1", 0.7)
        scalar_solution(rooted_forest(problem.graph), slopes_in(problem, 0), problem.capacities)


def test_no_change_is_written_beyond_the_room():
    forest, nodes, indptr, own = prepared(random_problem(90, "star", quadratic=True))
    n = len(forest.node)
    runs, bounds = Runs.of(n, len(own.position)), Bounds(np.empty(n), np.empty(n))
    little = runs._replace(position=runs.position[:4])
    assert run_bounds(0, 0, n, nodes, indptr, own, little, bounds)
