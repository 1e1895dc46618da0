"""The compiled conjugate gradients against a readable twin and dense systems."""

import numpy as np
import pytest
from _instances import cases
from _twins import dense_projectors

import gtvcvx as gtv
from gtvcvx.compiled._conjugate_gradients import (
    GroundRows,
    System,
    add_blocks,
    multiplications,
    solve,
)
from gtvcvx.duality._conservation import NullDirections


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
    allowed = None if problem.penalty.is_norm else R
    system = System(graph.by_head, conductance, degrees, null.projectors, allowed)
    x = solve(system, b.reshape(n, d), goal, 10 * n * d)
    assert np.linalg.norm(matrix @ x.ravel() - b) <= 2 * goal
    np.testing.assert_allclose(matrix @ x.ravel(), matrix @ expected, atol=4 * goal)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 16])  # the last of them is beyond unrolled loops
def test_normals_against_the_dense_system(d, straight):
    rng = np.random.default_rng(0)
    n = 9
    ends = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
    graph = gtv.EmpiricalGraph(n, ends, rng.uniform(0.2, 2.0, len(ends)))
    m = graph.n_edges
    conductance = rng.uniform(0.5, 2.0, m)
    normals = rng.uniform(0.0, 0.99, (m, 1)) * _unit(rng.standard_normal((m, d)))
    normals[rng.random(m) < 0.5] = 0.0
    if straight:
        normals[:] = 0.0
    blocks = conductance[:, None, None] * (np.eye(d) - normals[:, :, None] * normals[:, None, :])
    matrix = np.zeros((n * d, n * d))
    for (i, j), block in zip(graph.edges, blocks, strict=True):
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            matrix[a * d : (a + 1) * d, b * d : (b + 1) * d] += sign * block
    b = matrix @ rng.standard_normal(n * d)
    system = System(graph.by_head, conductance, np.ones(n), normals=None if straight else normals)
    x = solve(system, b.reshape(n, d), 1e-11 * np.linalg.norm(b), 1000)
    np.testing.assert_allclose(matrix @ x.ravel(), b, atol=1e-9 * np.linalg.norm(b))


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize("given", ["blocks", "rows", "rows and diagonals"])
def test_ground_against_the_dense_system(given):
    rng = np.random.default_rng(0)
    n, d = 5, 2
    graph = gtv.EmpiricalGraph(n, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    conductance = rng.uniform(0.5, 2.0, 5)
    roots = rng.standard_normal((n, d, 1))
    ground = roots @ roots.transpose(0, 2, 1)
    diagonal = rng.uniform(0.5, 2.0, (n, d, 1)) if given == "rows and diagonals" else None
    if diagonal is not None:
        ground += diagonal * np.eye(d)
    b = rng.standard_normal((n, d))
    incidence = graph.incidence.toarray()
    matrix = np.kron(incidence.T @ np.diag(conductance) @ incidence, np.eye(d))
    for i in range(n):
        matrix[i * d : (i + 1) * d, i * d : (i + 1) * d] += ground[i]
    of_rows = GroundRows(np.arange(n), roots[:, :, 0], diagonal)
    to_ground = ground if given == "blocks" else of_rows
    system = System(graph.by_head, conductance, np.ones(n), ground=to_ground)
    x = solve(system, b, 1e-12, 500)
    np.testing.assert_allclose(x.ravel(), np.linalg.solve(matrix, b.ravel()), rtol=1e-8)


def test_diagonals_to_the_ground_count_as_diagonals():
    """They counted as blocks: with l1 terms in 300 dimensions no check was afforded."""
    n, d, Q = 6, 40, 3
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    rows, diagonal = np.ones((Q, d)), np.ones((n, d, 1))
    blocks = np.broadcast_to(np.eye(d), (n, d, d))

    def counted(ground):
        return multiplications(System(graph.by_head, np.ones(5), np.ones(n), ground=ground), d)

    assert counted(None) == 5 * d + n * d
    assert counted(blocks) == 5 * d + n * d + n * d * d
    assert counted(GroundRows(np.arange(Q), rows)) == 5 * d + n * d + 2 * Q * d
    assert counted(GroundRows(np.arange(Q), rows, diagonal)) == 5 * d + 2 * n * d + 2 * Q * d


def test_blocks_of_generators_add_up_at_their_nodes():
    rng = np.random.default_rng(0)
    node, vectors, ground = rng.integers(0, 4, 9), rng.standard_normal((9, 3)), rng.random(9)
    blocks, expected = np.zeros((4, 3, 3)), np.zeros((4, 3, 3))
    add_blocks(node, vectors, ground, blocks)
    np.add.at(expected, node, ground[:, None, None] * vectors[:, :, None] * vectors[:, None, :])
    np.testing.assert_allclose(blocks, expected, atol=1e-15)
