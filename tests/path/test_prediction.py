"""Starts along a path: solutions moved on to the next value, where that has paid before."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.path import _solve
from gtvcvx.path._prediction import predicted
from gtvcvx.solvers import _auto
from gtvcvx.solvers.driver._foreseen import FORESEEN, MISSED
from gtvcvx.solvers.driver._incumbent import _fused


@pytest.fixture(scope="module")
def problem():
    """Points all of which keep to themselves for the values of lambda below."""
    rng = np.random.default_rng(0)
    graph = generators.geometric(rng.random((60, 2)), 6)
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((60, 3))), "l2")


LAMS = [0.05, 0.045, 0.04]
NEXT = 0.035


@pytest.fixture(scope="module")
def solutions(problem):
    return [problem.with_lam(lam).solve(rtol=1e-11) for lam in LAMS]


def gap(problem, start):
    inside = problem.penalty.project_domain(start.u, problem.capacities)
    return problem.bounds.gap(start.w, inside)[0].total


def test_where_clusters_stay_flows_are_moved_on(problem, solutions):
    near = problem.with_lam(NEXT)
    start = predicted(near, LAMS, solutions)
    scaled = dataclasses.replace(start, u=NEXT / LAMS[-1] * solutions[-1].u)
    assert gap(near, start) < 0.1 * gap(near, scaled)


def test_flows_that_jump_about_are_scaled(problem, solutions):
    rng = np.random.default_rng(1)
    wild = [dataclasses.replace(s, u=rng.standard_normal(s.u.shape)) for s in solutions]
    start = predicted(problem.with_lam(NEXT), LAMS, wild)
    np.testing.assert_array_equal(start.u, NEXT / LAMS[-1] * wild[-1].u)


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_solutions_tell_nothing_of_flows(problem, solutions, count):
    start = predicted(problem.with_lam(NEXT), LAMS[-count:], solutions[-count:])
    np.testing.assert_array_equal(start.u, NEXT / LAMS[-1] * solutions[-1].u)


GROWING = LAMS[:0:-1]
MORE = 0.05


def test_growing_values_start_in_line_with_the_last_two(problem, solutions):
    near = problem.with_lam(MORE)
    start = predicted(near, GROWING, solutions[:0:-1])
    assert start.info[FORESEEN] is True
    scaled = dataclasses.replace(solutions[1], u=MORE / LAMS[1] * solutions[1].u)
    assert gap(near, start) < 1e-2 * gap(near, scaled)
    # What was seen in vain one value before is not looked at, but started from.
    missed = dataclasses.replace(solutions[1], info=solutions[1].info | {MISSED: True})
    again = predicted(near, GROWING, [solutions[2], missed])
    assert again.info[FORESEEN] is False
    np.testing.assert_array_equal(again.w, start.w)


def test_they_start_from_the_last_clusters_where_these_are_others(problem, solutions):
    w = solutions[1].w.copy()
    i, j = problem.graph.edges[0]
    w[i] = w[j]
    fused = dataclasses.replace(solutions[1], w=w)
    start = predicted(problem.with_lam(MORE), GROWING, [solutions[2], fused])
    np.testing.assert_array_equal(start.w, w)
    assert FORESEEN not in start.info
    step = (MORE - LAMS[1]) / (LAMS[1] - LAMS[2])
    line = solutions[1].u + step * (solutions[1].u - solutions[2].u)
    np.testing.assert_allclose(start.u, line, atol=1e-14)


def test_what_is_foreseen_well_enough_needs_no_iteration(problem, solutions):
    near = problem.with_lam(MORE)
    start = predicted(near, GROWING, solutions[:0:-1])
    found = near.solve(rtol=1e-4, warm_start=start)
    assert found.info["method"] == _auto.FORESIGHT
    assert found.n_iter == 0
    assert found.rel_gap <= 1e-4
    truth = near.solve(rtol=1e-10)
    assert found.dual_value <= truth.value <= found.value
    # What the next value needs is passed on.
    assert found.info["lam"] == MORE
    assert found.info["primal_weight"] == start.info["primal_weight"]
    assert MISSED not in found.info


def test_what_is_not_is_solved(problem, solutions):
    near = problem.with_lam(MORE)
    start = predicted(near, GROWING, solutions[:0:-1])
    found = near.solve(rtol=1e-10, warm_start=start)
    assert found.status == "optimal"
    assert found.info[MISSED] is True
    assert FORESEEN not in found.info
    assert found.n_iter > 0


def test_a_growing_path_foresees_some_of_its_values(problem, monkeypatch):
    monkeypatch.setattr(_solve, "GROWING_FLOWS", 0)
    path = gtv.lambda_path(problem, np.geomspace(0.1, 0.02, 30), rtol=1e-5, verbose=False)
    methods = [solution.info["method"] for solution in path]
    assert methods.count(_auto.FORESIGHT) >= 5
    assert path.rel_gaps.max() <= 1e-5
    for lam, solution in list(zip(path.lams, path, strict=True))[::5]:
        truth = problem.with_lam(lam).solve(rtol=1e-9)
        assert solution.dual_value <= truth.value <= solution.value


def test_a_point_that_would_be_worse_stays(problem, solutions):
    near = problem.with_lam(NEXT)
    far = dataclasses.replace(solutions[-2], w=solutions[-2].w + 10.0)
    start = predicted(near, LAMS[1:], [far, solutions[-1]])
    np.testing.assert_array_equal(start.w, solutions[-1].w)
    better = predicted(near, LAMS[1:], solutions[1:])
    assert near.value(better.w) < near.value(solutions[-1].w)


def test_starts_for_another_lambda_are_known_without_their_edges(problem, solutions, monkeypatch):
    assert _auto._may_be_of(problem.with_lam(LAMS[-1]), solutions[-1])
    other = problem.with_lam(NEXT)
    monkeypatch.setattr(gtv.GTVProblem, "value", lambda *_: pytest.fail("edges were looked at"))
    assert not _auto._may_be_of(other, solutions[-1])


def test_a_consensus_is_one_for_larger_lambda(problem):
    top = problem.with_lam(100.0).solve(atol=1e-6)
    assert not np.ptp(top.w, axis=0).any()
    assert _auto._may_be_of(problem.with_lam(200.0), top)


def test_a_flow_that_fuses_nothing_leaves_the_point_alone(problem, solutions):
    full = problem.with_lam(LAMS[-1])
    jumps = full.differences(solutions[-1].w)
    u = full.capacities[:, None] * jumps / np.linalg.norm(jumps, axis=1)[:, None]
    assert _fused(full, solutions[-1].w, u) is solutions[-1].w
    assert _fused(full, solutions[-1].w, 0.0 * u) is not solutions[-1].w
