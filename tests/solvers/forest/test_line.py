"""Chains numbered from end to end: the short way gives what the general one does."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._line_gap import line_gap
from gtvcvx.duality._scalar_gap import scalar_gap
from gtvcvx.solvers.forest import rooted_forest
from gtvcvx.solvers.forest._forest import scalar_solution
from gtvcvx.solvers.forest._line import line_solution
from gtvcvx.solvers.scalar._problems import extent_in, slopes_in
from tests.solvers.forest.test_forest import random_problem


def scalar(problem):
    return slopes_in(problem, 0), problem.capacities, extent_in(problem, 0)


@pytest.mark.parametrize("seed", range(80, 92))
def test_as_on_any_forest(seed):
    """Unlabelled nodes, offsets and ties included; capacities that flows do not reach are not."""
    problem = random_problem(seed, "chain", quadratic=True)
    found = line_solution(*scalar(problem))
    w, u = scalar_solution(rooted_forest(problem.graph), *scalar(problem))
    if found is None:
        assert problem.lam == 10.0
        return
    np.testing.assert_allclose(found[0], w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[1], u, rtol=1e-12, atol=1e-13)
    assert (np.abs(found[1]) <= problem.capacities).all()


def test_a_long_chain_goes_on_where_it_was_left():
    """More nodes than between two looks at the clock, far from zero."""
    rng, n = np.random.default_rng(0), 230_000
    y = 1e6 + np.cumsum(rng.standard_normal(n) * (rng.random(n) < 0.01)) + rng.standard_normal(n)
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(y[:, None]), "l2", 0.7)
    w, u = line_solution(*scalar(problem))
    expected = scalar_solution(rooted_forest(graph), *scalar(problem))
    np.testing.assert_array_equal(w, expected[0])
    np.testing.assert_array_equal(u, expected[1])
    solution = problem.solve(rtol=1e-11)
    assert (solution.status, solution.info["method"]) == ("optimal", "dynamic programming")
    np.testing.assert_array_equal(solution.w[:, 0], w)


def test_kinks_are_not_for_it():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    problem = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(None, np.arange(3.0)), "l1", 0.1)
    assert line_solution(*scalar(problem)) is None


@pytest.mark.parametrize("seed", range(92, 96))
def test_the_gap_in_one_pass_is_that_in_two(seed):
    """At solutions, beside them, and where the flow exceeds a capacity."""
    problem = random_problem(seed, "chain", quadratic=True)
    (slopes, capacities, found), edges = scalar(problem), problem.graph.edges
    w, u = scalar_solution(rooted_forest(problem.graph), slopes, capacities, found)
    rng = np.random.default_rng(seed)
    for factor in (1.0, 0.9, 3.0):
        for step in (0.0, 1.0):
            point = w + step * rng.standard_normal(len(w)), factor * u
            gap, variation = line_gap(slopes.q, slopes.b, found[:2], capacities, *point)
            twin, expected = scalar_gap(slopes, found[:2], edges, capacities, *point)
            np.testing.assert_array_equal(gap.node, twin.node)
            np.testing.assert_array_equal(gap.edge, twin.edge)
            assert gap.rounding == pytest.approx(twin.rounding, rel=1e-12, abs=0.0)
            assert variation == pytest.approx(expected, rel=1e-14)
