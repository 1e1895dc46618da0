"""Renumbered problems are the same problems."""

import numpy as np
import pytest
from _instances import Case, cases

from gtvcvx.solvers import _auto
from gtvcvx.solvers.primal_dual._ordering import Ordering


@pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
def test_values_and_flows_are_carried_over(case):
    problem = case.problem()
    ordering = Ordering(problem)
    w = case.rng.standard_normal((problem.graph.n_nodes, problem.dim))
    u = case.rng.standard_normal((problem.graph.n_edges, problem.dim))
    moved = ordering.problem
    assert moved.value(ordering.apply_w(w)) == pytest.approx(problem.value(w), rel=1e-12)
    np.testing.assert_allclose(
        moved.graph.divergence @ ordering.apply_u(u),
        ordering.apply_w(problem.graph.divergence @ u),
        atol=1e-13,
    )
    np.testing.assert_array_equal(ordering.restore_w(ordering.apply_w(w)), w)
    np.testing.assert_array_equal(ordering.restore_u(ordering.apply_u(u)), u)


def test_large_problems_come_back_in_their_own_order(monkeypatch):
    problem = Case("isolated", "mix", "l2").problem()
    plain = problem.solve(rtol=1e-9)
    monkeypatch.setattr(_auto, "ORDERING_EDGES", 1)
    seen = []
    ordered = problem.solve(rtol=1e-9, callback=seen.append)
    np.testing.assert_allclose(ordered.w, plain.w, atol=1e-4)
    assert problem.value(ordered.w) == pytest.approx(ordered.value, rel=1e-14)
    assert problem.value(seen[-1].w) == pytest.approx(seen[-1].value, rel=1e-14)
    parts = problem.bounds.gap_of(ordered.w, ordered.u)
    np.testing.assert_allclose(ordered.node_gaps, parts.node, atol=1e-14)
    np.testing.assert_allclose(ordered.edge_gaps, parts.edge, atol=1e-14)
    again = problem.solve(rtol=1e-9, warm_start=ordered)
    assert again.n_iter <= 120


def test_one_ordering_serves_all_values_of_lambda():
    problem = Case("connected", "squared", "l2").problem()
    first, other = Ordering.of(problem), Ordering.of(problem.with_lam(2.0 * problem.lam))
    assert first.problem.graph is other.problem.graph
    assert (first.problem.lam, other.problem.lam) == (problem.lam, 2.0 * problem.lam)
    w = np.arange(1.0, problem.graph.n_nodes * problem.dim + 1).reshape(-1, problem.dim)
    expected = problem.with_lam(2.0 * problem.lam).value(w)
    assert other.problem.value(other.apply_w(w)) == pytest.approx(expected, rel=1e-12)
