"""CVXPY's primal, CVXPY's dual and the default solver agree, on every family, loss and penalty."""

import cvxpy as cp
import numpy as np
import pytest
from _instances import cases, reference

import gtvcvx as gtv


@pytest.mark.parametrize("case", cases(), ids=str)
def test_primal_dual_and_default_solver_agree(case):
    problem, ref = case.problem(), reference(case)
    dual = problem.dual().cvxpy()
    dual.solve(solver=cp.CLARABEL)
    solution = problem.solve(rtol=1e-7)
    assert solution.status == "optimal"
    scale = max(1.0, abs(ref.value))
    assert abs(dual.value - ref.value) <= 1e-6 * scale
    assert abs(solution.value - ref.value) <= 1e-6 * scale
    assert abs(solution.dual_value - ref.value) <= 1e-6 * scale
    np.testing.assert_allclose(problem.value(solution.w), solution.value, rtol=1e-12)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
def test_reference_solvers_report_true_gaps(solver):
    for case in cases(losses=["mix"], penalties=["l1"]):
        problem = case.problem()
        solution = problem.solve(solver=solver)
        best = problem.value(reference(case).w)
        assert solution.gap >= solution.value - best - 1e-13 * max(1.0, abs(best))
        assert solution.rel_gap <= 1e-2
        assert solution.solver == solver


def relabelled(problem, rng):
    """The same problem with its nodes numbered otherwise, which also flips edges."""
    graph = problem.graph
    order = rng.permutation(graph.n_nodes)
    place = np.argsort(order)
    moved = gtv.EmpiricalGraph(graph.n_nodes, place[graph.edges], graph.weights)
    parts = [(place[nodes], batch) for nodes, batch in problem.losses.parts]
    losses = gtv.StackedLoss(parts, problem.dim)
    return gtv.GTVProblem(moved, losses, problem.penalty, problem.lam), order


@pytest.mark.parametrize("case", cases(losses=["mix"]), ids=str)
def test_relabelling_nodes_relabels_the_solution(case):
    problem = case.problem()
    moved, _ = relabelled(problem, case.rng)
    left, right = problem.solve(rtol=1e-8), moved.solve(rtol=1e-8)
    assert right.value == pytest.approx(left.value, rel=2e-8, abs=2e-8)


def test_splitting_an_edge_weight_changes_nothing():
    for case in cases(families=["connected"], losses=["squared"]):
        problem = case.problem()
        graph = problem.graph
        edges = np.concatenate([graph.edges, graph.edges[:3, ::-1]])
        weights = np.concatenate([graph.weights, 0.25 * graph.weights[:3]])
        weights[:3] *= 0.75
        split = gtv.EmpiricalGraph(graph.n_nodes, edges, weights)
        np.testing.assert_allclose(split.weights, graph.weights, rtol=1e-15)
        again = gtv.GTVProblem(split, problem.losses, problem.penalty, problem.lam)
        value = problem.solve(rtol=1e-8).value
        assert again.solve(rtol=1e-8).value == pytest.approx(value, rel=2e-8, abs=2e-8)


def test_a_disjoint_union_is_solved_part_by_part():
    for penalty in ("l1", "l2", "linf", "squared"):
        parts = [c.problem() for c in cases(["connected"], ["squared"], [penalty], (0, 1))]
        n = parts[0].graph.n_nodes
        graph = gtv.EmpiricalGraph(
            2 * n,
            np.concatenate([parts[0].graph.edges, parts[1].graph.edges + n]),
            np.concatenate([p.graph.weights for p in parts]),
        )
        stacked = [
            (nodes + k * n, batch)
            for k, part in enumerate(parts)
            for nodes, batch in part.losses.parts
        ]
        union = gtv.GTVProblem(graph, gtv.StackedLoss(stacked), penalty, parts[0].lam)
        total = sum(part.solve(rtol=1e-8).value for part in parts)
        assert union.solve(rtol=1e-8).value == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
def test_lambda_to_zero_gives_the_local_fits_and_to_infinity_the_pooled_fit(penalty):
    (case,) = cases(["connected"], ["squared"], [penalty])
    problem = case.problem()
    local = problem.with_lam(1e-9).solve(rtol=1e-9)
    np.testing.assert_allclose(local.w, problem.losses.minimizer(7), atol=1e-3)
    pooled = problem.with_lam(1e6).solve(rtol=1e-6, max_iter=20000)
    X = np.concatenate([loss.X / np.sqrt(len(loss.y)) for loss in case.losses()])
    y = np.concatenate([loss.y / np.sqrt(len(loss.y)) for loss in case.losses()])
    consensus = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(pooled.w, np.tile(consensus, (7, 1)), atol=1e-2)


def test_scaling_losses_and_lambda_scales_the_value():
    """L_i(w) = ||w - a||^2 with a, w scaled by c: value c^2 P if lambda is scaled by c."""
    rng = np.random.default_rng(5)
    graph = gtv.EmpiricalGraph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
    a = rng.standard_normal((6, 3))
    one = gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l2", 0.4).solve(rtol=1e-9)
    ten = gtv.GTVProblem(graph, gtv.PointLoss.stack(10 * a), "l2", 4.0).solve(rtol=1e-9)
    assert ten.value == pytest.approx(100 * one.value, rel=1e-7)


def test_a_graph_without_edges_is_solved_node_by_node():
    graph = gtv.EmpiricalGraph(3, np.empty((0, 2), dtype=int))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[1.0], [2.0], [5.0]]), "l2", 1.0)
    for solver in ("AUTO", "PDHG", "CLARABEL"):
        solution = problem.solve(solver=solver)
        np.testing.assert_allclose(solution.w, [[1.0], [2.0], [5.0]], atol=1e-6)
        assert solution.u.shape == (0, 1)
        assert solution.gap <= 1e-9


def test_all_nodes_unlabelled():
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2)])
    problem = gtv.GTVProblem(graph, gtv.StackedLoss([], dim=2), "l2", 1.0)
    solution = problem.solve()
    assert solution.value == solution.gap == 0.0
