"""Gaps of scalar problems in two compiled passes: never below the truth, and tight at solutions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._scalar_gap import Extent, Slopes, _extent, extent, scalar_gap, total_gap
from gtvcvx.solvers.forest import rooted_forest
from gtvcvx.solvers.forest._forest import scalar_solution
from gtvcvx.solvers.scalar._problems import extent_in, slopes_in
from gtvcvx.solvers.scalar._slopes import quadratic_slopes
from tests.solvers.forest.test_forest import SHAPES, random_problem


def exact_supremum(slopes, i, s, w, low, high):
    """Return sup of s (x - w) - (f(x) - f(w)) over [low, high], in rationals: the plain twin."""
    at = np.flatnonzero(slopes.node == i)
    changes = [
        (Fraction(slopes.position[k]), Fraction(slopes.bend[k]), Fraction(slopes.jump[k]))
        for k in at
    ]
    q, b = Fraction(slopes.q[i]), Fraction(slopes.b[i])

    def value(x):
        bends = sum(((c * (x - p) / 2 + j) * (x - p) for p, c, j in changes if x > p), Fraction(0))
        return s * (x - w) - (q * x / 2 - b) * x - bends + (q * w / 2 - b) * w

    ends = sorted({low, high, *(p for p, _, _ in changes if low < p < high)})
    found = [value(x) for x in ends]
    for left, right in pairwise(ends):
        middle = (left + right) / 2
        curvature = q + sum((c for p, c, _ in changes if p < middle), Fraction(0))
        slope = q * middle - b + sum((c * (middle - p) + j for p, c, j in changes if p < middle), 0)
        if curvature > 0 and left < (x := middle + (s - slope) / curvature) < right:
            found.append(value(x))
    return max(found) - value(w)


def exact_gap(slopes, edges, capacities, w, u, low, high):
    """Return the gap of w against u over the box, in rationals."""
    n, zero = len(w), Fraction(0)
    w, u, injection = [Fraction(x) for x in w], [Fraction(x) for x in u], [zero] * n
    total = zero
    for (head, tail), c, flow in zip(edges, map(Fraction, capacities), u, strict=True):
        injection[head] -= flow
        injection[tail] += flow
        jump = w[head] - w[tail]
        total += c * abs(jump) - flow * jump
    low, high = min(Fraction(low), *w), max(Fraction(high), *w)
    return total + sum(exact_supremum(slopes, i, injection[i], w[i], low, high) for i in range(n))


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_never_below_the_exact_gap_and_close_to_it_at_solutions(shape, quadratic):
    for seed in range(60, 63):
        problem = random_problem(seed, shape, quadratic)
        slopes, box = slopes_in(problem, 0), extent_in(problem, 0)[:2]
        edges, capacities = problem.graph.edges, problem.capacities
        solved = scalar_solution(rooted_forest(problem.graph), slopes, capacities)
        rng = np.random.default_rng(seed)
        moved = solved[0] + rng.standard_normal(len(solved[0])), 0.9 * solved[1]
        other = solved[0], rng.uniform(-1.0, 1.0, len(edges)) * capacities
        for w, u in (solved, moved, other):
            found = scalar_gap(slopes, box, edges, capacities, w, u)[0]
            truth = exact_gap(slopes, edges, capacities, w, u, *box)
            assert found.total >= truth >= 0
        found = scalar_gap(slopes, box, edges, capacities, *solved)[0]
        assert found.total <= 1e-12 * max(1.0, problem.value(solved[0][:, None]))


def test_any_pair_gives_a_valid_bound():
    """Far from solutions, too: the bound is below what EXACT finds."""
    for seed in range(70, 76):
        problem = random_problem(seed, SHAPES[seed % 5], quadratic=True)
        best = problem.solve(solver="EXACT").value
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(problem.graph.n_nodes)
        u = rng.uniform(-1.0, 1.0, problem.graph.n_edges) * problem.capacities
        slopes, box = slopes_in(problem, 0), extent_in(problem, 0)[:2]
        found, variation = scalar_gap(slopes, box, problem.graph.edges, problem.capacities, w, u)
        value = float(problem.losses.value(w[:, None]).sum()) + variation
        assert value == pytest.approx(problem.value(w[:, None]), rel=1e-14)
        assert value - total_gap([found], value).total <= best


def test_a_flow_beyond_its_capacity_bounds_nothing():
    problem = random_problem(80, "tree", quadratic=True)
    u = np.zeros(problem.graph.n_edges)
    u[1] = -1.001 * problem.capacities[1]
    slopes, box = slopes_in(problem, 0), extent_in(problem, 0)[:2]
    w = np.ones(problem.graph.n_nodes)
    edges, capacities = problem.graph.edges, problem.capacities
    assert scalar_gap(slopes, box, edges, capacities, w, u)[0].total == np.inf


def test_a_hull_by_hand():
    """A kink at 3, and a parabola around -1 whose kink at 5 is beyond its minimizer."""
    slopes = Slopes(
        q=np.array([0.0, 2.0, 0.0]),
        b=np.array([1.0, -2.0, 0.0]),
        rise=np.array([2.0, 1.0, 0.0]),
        node=np.array([0, 1]),
        position=np.array([3.0, 5.0]),
        bend=np.zeros(2),
        jump=np.array([2.0, 1.0]),
    )
    found = extent(slopes)
    assert (found.low, found.high) == (-1.0, 5.0)
    assert (found.size, found.bends, found.flattest) == (6.0, 2.0, 2.0)


@pytest.mark.parametrize("labelled", [1.0, 0.4, 0.0])
def test_without_changes_the_extent_is_the_same(labelled):
    """Vectorized passes, and the one for any slopes; nodes without a loss count in neither."""
    rng = np.random.default_rng(11)
    q = rng.random(50) * (rng.random(50) < labelled)
    slopes = quadratic_slopes(q, np.where(q > 0.0, rng.standard_normal(50), 0.0))
    np.testing.assert_allclose(extent(slopes), Extent(*_extent(slopes)), rtol=1e-13)


def test_the_extent_of_what_overflows_is_infinite():
    """Quietly: whoever asks refuses such data by its size."""
    assert extent(quadratic_slopes(np.ones(2), np.array([np.inf, -np.inf]))).size == np.inf


def test_solutions_far_from_the_origin_keep_their_digits():
    """Values of 1e6 apart by 1: what rounding may do to kinks there is small beside the gap."""
    rng = np.random.default_rng(5)
    y = 1e6 + np.round(rng.standard_normal(400), 2)
    graph = gtv.EmpiricalGraph(400, [(i, i + 1) for i in range(399)])
    problem = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(None, y), "l1", 0.7)
    solution = problem.solve(rtol=1e-9)
    assert solution.info["method"] == "dynamic programming"
    assert solution.status == "optimal"
    reference = problem.solve(solver="HIGHS", rtol=None).value
    assert solution.value - solution.gap <= reference + 1e-6


def test_a_gap_by_hand():
    """|x| at 0 is pulled by 1.5, half of it too much, up to 3; the other node by -1.5, to -2."""
    slopes = Slopes(
        q=np.zeros(2),
        b=np.array([1.0, 0.0]),
        rise=np.array([2.0, 0.0]),
        node=np.array([0]),
        position=np.zeros(1),
        bend=np.zeros(1),
        jump=np.array([2.0]),
    )
    w, u = np.zeros(2), np.array([-1.5])
    found = scalar_gap(slopes, (-2.0, 3.0), np.array([[0, 1]]), np.array([2.0]), w, u)[0]
    np.testing.assert_allclose(found.node, [1.5, 3.0], rtol=1e-14)
    assert found.edge == 0.0
    assert 0.0 < found.rounding < 1e-13
