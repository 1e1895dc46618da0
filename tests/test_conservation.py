"""The projection on flow conservation and its compiled conjugate gradients."""

import numpy as np
import pytest
from _instances import cases

from gtvcvx.compiled import _conjugate_gradients
from gtvcvx.duality._conservation import FlowConservation, NullDirections


def dense_projectors(problem):
    """T_i of all nodes as (n, d, d), node by node."""
    n, d = problem.graph.n_nodes, problem.dim
    projectors = np.zeros((n, d, d))
    for nodes, batch in problem.losses.parts:
        projector = batch.null_projector()
        for k, i in enumerate(nodes):
            projectors[i] = projector * np.eye(d) if np.isscalar(projector) else projector[k]
    return projectors


def naive_conjugate_gradients(matrix, b, degrees, goal):
    """Textbook conjugate gradients, preconditioned by the degrees."""
    x, residual, direction, previous = np.zeros_like(b), b.copy(), np.zeros_like(b), 1.0
    for k in range(10 * len(b)):
        if np.linalg.norm(residual) <= goal:
            break
        scaled = residual / degrees
        energy = residual @ scaled
        direction = scaled + (energy / previous if k else 0.0) * direction
        product = matrix @ direction
        length = energy / (direction @ product)
        x, residual, previous = x + length * direction, residual - length * product, energy
    return x


@pytest.mark.parametrize("case", cases(penalties=["l2", "quadratic"]), ids=str)
def test_compiled_conjugate_gradients_are_their_naive_twin(case):
    problem = case.problem()
    graph, d = problem.graph, problem.dim
    n = graph.n_nodes
    null = NullDirections(problem.losses, n)
    if not null.any:
        return
    T = np.zeros((n * d, n * d))
    for i, projector in enumerate(dense_projectors(problem)):
        T[i * d : (i + 1) * d, i * d : (i + 1) * d] = projector
    R = np.eye(d)
    if not problem.penalty.is_norm:
        R = problem.penalty.project_domain(np.eye(d), np.ones(d))
    incidence = graph.incidence.toarray()
    conductance = case.rng.uniform(0.01, 1.0, graph.n_edges)
    matrix = T @ np.kron(incidence.T @ np.diag(conductance) @ incidence, R) @ T
    b = matrix @ case.rng.standard_normal(n * d)
    degrees = abs(incidence).T @ conductance
    degrees[degrees == 0.0] = 1.0
    goal = 1e-8 * np.linalg.norm(b)
    expected = naive_conjugate_gradients(matrix, b, np.repeat(degrees, d), goal)
    x = _conjugate_gradients.solve(
        (0,) * d,
        b.reshape(n, d),
        goal,
        10 * n * d,
        np.searchsorted(graph.edges[:, 0], np.arange(n + 1)),
        graph.edges[:, 1].astype(np.uint32),
        conductance,
        degrees,
        null.full,
        null.partial,
        null.projectors,
        np.empty((0, 0)) if problem.penalty.is_norm else R,
    )
    assert np.linalg.norm(matrix @ x.ravel() - b) <= 2 * goal
    np.testing.assert_allclose(matrix @ x.ravel(), matrix @ expected, atol=4 * goal)


@pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
def test_null_directions_project_node_by_node(case):
    problem = case.problem()
    x = case.rng.standard_normal((problem.graph.n_nodes, problem.dim))
    expected = np.einsum("nij,nj->ni", dense_projectors(problem), x)
    null = NullDirections(problem.losses, problem.graph.n_nodes)
    np.testing.assert_allclose(null.apply(x), expected, atol=1e-14)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_projected_flows_are_conserved_to_rounding(case):
    problem = case.problem()
    conservation = FlowConservation(problem.graph, problem.losses, problem.penalty)
    u = case.rng.standard_normal((problem.graph.n_edges, problem.dim))
    for scale in (1e-200, 1.0, 1e100):
        projected = conservation.project(scale * u, rtol=1e-16)
        assert np.linalg.norm(conservation.excess(projected / scale)) <= 1e-13
        again = conservation.project(projected, rtol=1e-16)
        np.testing.assert_allclose(again / scale, projected / scale, atol=1e-13)
