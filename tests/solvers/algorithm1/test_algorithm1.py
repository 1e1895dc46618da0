"""`solver="PDHG"` is Algorithm 1 of [GTV] to the letter."""

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv


def letter_by_letter(problem, X, y, labelled, n_iter):
    """Algorithm 1 with (32) and (33), node by node and edge by edge, for the l2 penalty."""
    graph = problem.graph
    n, d = graph.n_nodes, problem.dim
    w, u = np.zeros((n, d)), np.zeros((graph.n_edges, d))
    degree = graph.degrees
    for _ in range(n_iter):
        new = w.copy()
        for i in range(n):
            flow = np.zeros(d)
            for e, (head, tail) in enumerate(graph.edges):
                flow += u[e] * (float(i == head) - float(i == tail))
            v = w[i] - flow / degree[i]
            if labelled[i]:
                m = len(y[i])
                gram = np.eye(d) + (2 / (m * degree[i])) * X[i].T @ X[i]
                new[i] = np.linalg.solve(gram, v + (2 / (m * degree[i])) * X[i].T @ y[i])
            else:
                new[i] = v
        for e, (head, tail) in enumerate(graph.edges):
            z = u[e] + 0.5 * (2 * (new[head] - new[tail]) - (w[head] - w[tail]))
            capacity = problem.lam * graph.weights[e]
            u[e] = z * min(1.0, capacity / max(np.linalg.norm(z), 1e-300))
        w = new
    return w, u


@pytest.fixture
def instance():
    rng = np.random.default_rng(4)
    n, d, rows = 8, 2, 3
    edges = [(i, (i + 1) % n) for i in range(n)] + [(0, 4), (2, 6)]
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.5, 1.5, len(edges)))
    X, y = rng.standard_normal((n, rows, d)), rng.standard_normal((n, rows))
    labelled = np.array([True, True, False, True, True, True, False, True])
    losses = gtv.SquaredLoss.stack(X, y, labelled)
    return gtv.GTVProblem(graph, losses, "l2", 0.2), X, y, labelled


@pytest.mark.parametrize("n_iter", [1, 2, 30])
def test_iterates_are_those_of_the_paper(instance, n_iter):
    problem, X, y, labelled = instance
    w, _ = letter_by_letter(problem, X, y, labelled, n_iter)
    solution = problem.solve(solver="PDHG", max_iter=n_iter)
    assert solution.n_iter == n_iter
    np.testing.assert_allclose(solution.w, w, rtol=1e-12, atol=1e-13)


def test_the_last_iterate_is_returned_even_if_an_earlier_one_was_better(instance):
    problem, *_ = instance
    best = problem.solve(rtol=1e-10)
    without_flow = dataclasses.replace(best, u=np.zeros_like(best.u))
    one = problem.solve(solver="PDHG", max_iter=1, warm_start=without_flow)
    assert one.value > best.value + 1e-3
    assert one.gap >= one.value - best.value


def test_stopping_rules(instance):
    problem, *_ = instance
    by_gap = problem.solve(solver="PDHG", rtol=1e-7)
    assert by_gap.status == "optimal"
    assert by_gap.rel_gap <= 1e-7
    by_objective = problem.solve(solver="PDHG", stop="objective", rtol=1e-3)
    assert by_objective.n_iter <= by_gap.n_iter
    fixed = problem.solve(solver="PDHG", stop="iterations", max_iter=7, rtol=1e-12)
    assert fixed.n_iter == 7
    assert fixed.status == "user_limit"
    assert problem.solve(solver="PDHG").n_iter == 1000
