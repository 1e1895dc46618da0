"""The compiled passes against readable NumPy twins."""

import numpy as np
import pytest
from _twins import alone, random_graph

import gtvcvx as gtv
from gtvcvx.compiled import _edges, _primal_dual, dims_of
from gtvcvx.compiled._edges import EdgeStep, edge_room
from gtvcvx.compiled._one_pass import complete_nodes, pass_edges
from gtvcvx.compiled._primal_dual import NodeStep, Point
from gtvcvx.compiled._team import run_together

node_block, edge_block = alone(_primal_dual.node_block), alone(_edges.edge_block)
PENALTIES = {"l2": gtv.L2Norm(), "l1": gtv.L1Norm(), "linf": gtv.LinfNorm()}
PENALTIES["squared"] = gtv.SquaredNorm()


def naive_node_pass(w, balance, matrix, offset, tau, relaxation):
    new, bar, moved = w.copy(), w.copy(), 0.0
    for i in range(len(w)):
        prox = matrix[i] @ (w[i] - tau[i] * balance[i]) + offset[i]
        bar[i] = 2 * prox - w[i]
        new[i] = w[i] + relaxation * (prox - w[i])
        moved += np.sum((prox - w[i]) ** 2) / tau[i]
    return new, bar, moved


def naive_edge_pass(u, bar, edges, capacities, sigma, relaxation, penalty):
    z = u + sigma * (bar[edges[:, 0]] - bar[edges[:, 1]])
    prox = penalty.prox_conjugate(z, sigma, capacities)
    return u + relaxation * (prox - u), np.sum((prox - u) ** 2) / sigma


def random_state(d, seed, threads=1):
    """A random graph and state, in the layout of the passes: balance split over the threads."""
    rng = np.random.default_rng(seed)
    n = 9
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6])
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.2, 2.0, len(edges)))
    w, u = rng.standard_normal((n, d)), rng.standard_normal((graph.n_edges, d))
    nodes = np.zeros((threads, n, 2 * d))
    nodes[:, :, d:] = rng.standard_normal((threads, n, d))
    nodes[0, :, d:] += graph.divergence @ u - nodes[:, :, d:].sum(axis=0)
    return rng, graph, w, u, nodes


@pytest.mark.parametrize("d", [1, 2, 3, 6, 40])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("measured", [False, True])
def test_node_block_is_its_naive_twin(d, threads, diagonal, measured):
    rng, graph, w, u, nodes = random_state(d, d, threads)
    matrix, offset = rng.standard_normal((9, d, d)), rng.standard_normal((9, d))
    tau = rng.uniform(0.1, 2.0, 9)
    matrix += matrix.transpose(0, 2, 1)
    if diagonal:
        matrix *= np.eye(d)
    new, bar, moved = naive_node_pass(w, graph.divergence @ u, matrix, offset, tau, 1.9)
    given = np.einsum("nkk->nk", matrix).copy() if diagonal else matrix
    step = NodeStep(given, offset, tau, 1.9)
    dims = dims_of(d)
    room = edge_room(dims, 1)[0]
    total = node_block(dims, 0, 9, w, nodes, step, measured, room)
    np.testing.assert_allclose(w, new, rtol=1e-12, atol=1e-12)
    for copy in nodes:
        np.testing.assert_allclose(copy[:, :d], bar, rtol=1e-12, atol=1e-12)
    assert total == pytest.approx(moved if measured else 0.0, rel=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("d", [1, 2, 3, 6, 40])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("measured", [False, True])
def test_edge_block_is_its_naive_twin(name, d, scale, measured):
    penalty = PENALTIES[name]
    rng, graph, _, u, nodes = random_state(d, 10 + d)
    u *= scale
    bar = rng.standard_normal((9, d))
    nodes[0] = np.hstack([bar, graph.divergence @ u])
    expected, moved = naive_edge_pass(u, bar, graph.edges, graph.weights, 0.7, 1.9, penalty)
    step = EdgeStep.of(graph.weights, 0.7, 1.9, penalty.compiled_form)
    dims = dims_of(d)
    room = edge_room(dims, 1)[0]
    total = edge_block(dims, 0, 9, u, nodes[0], room, graph.by_head, step, measured)
    np.testing.assert_allclose(u, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(nodes[0, :, d:], graph.divergence @ expected, rtol=1e-11, atol=1e-10)
    assert total == pytest.approx(moved if measured else 0.0, rel=1e-10)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_edges_fill_several_blocks_and_part_of_one(name, d):
    penalty, n = PENALTIES[name], 45
    rng = np.random.default_rng(d)
    graph = random_graph(rng, n, 0.7)
    heads = graph.edges[:, 0]
    assert graph.n_edges > 2 * _edges._BLOCK
    u, bar = rng.standard_normal((graph.n_edges, d)), rng.standard_normal((n, d))
    nodes = np.hstack([bar, graph.divergence @ u])
    expected, _ = naive_edge_pass(u, bar, graph.edges, graph.weights, 0.7, 1.9, penalty)
    step = EdgeStep.of(graph.weights, 0.7, 1.9, penalty.compiled_form)
    # Those of the nodes in between alone, and then the others.
    part, others = (heads >= 7) & (heads < 31), u.copy()
    others[part] = expected[part]
    dims = dims_of(d)
    room = edge_room(dims, 1)[0]
    edge_block(dims, 7, 31, u, nodes, room, graph.by_head, step, True)
    np.testing.assert_allclose(u, others, rtol=1e-11, atol=1e-11)
    for first, last in ((0, 7), (31, n)):
        edge_block(dims, first, last, u, nodes, room, graph.by_head, step, True)
    np.testing.assert_allclose(u, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(nodes[:, d:], graph.divergence @ expected, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_iterations_are_the_naive_passes_in_turn_on_any_number_of_threads(threads):
    d = 2
    rng, graph, w, u, nodes = random_state(d, 3, threads)
    tau = 1.0 / np.maximum(graph.degrees, 1)
    matrix = np.broadcast_to(0.5 * np.eye(d), (9, d, d)).copy()
    offset = rng.standard_normal((9, d))
    expected_w, expected_u = w.copy(), u.copy()
    for _ in range(5):
        expected_w, bar, primal = naive_node_pass(
            expected_w, graph.divergence @ expected_u, matrix, offset, tau, 1.9
        )
        expected_u, dual = naive_edge_pass(
            expected_u, bar, graph.edges, graph.weights, 0.5, 1.9, gtv.L2Norm()
        )
    point, arcs, room = Point(w, u, nodes), graph.by_head, edge_room((0,) * d, threads)
    steps = (
        NodeStep(matrix, offset, tau, 1.9),
        EdgeStep.of(graph.weights, 0.5, 1.9, gtv.L2Norm().compiled_form),
    )
    moved, blocks = np.empty((2, threads)), np.linspace(0, 9, threads + 1).astype(np.int64)
    arguments = (5, (0,) * d, blocks, point, room, arcs, *steps, moved)
    run_together(_primal_dual.iterate, threads, threads, *arguments)
    np.testing.assert_allclose(w, expected_w, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(u, expected_u, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        nodes[:, :, d:].sum(axis=0), graph.divergence @ expected_u, rtol=1e-10, atol=1e-11
    )
    assert moved.sum(axis=1) == pytest.approx((primal, dual), rel=1e-9)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("measured", [False, True])
def test_an_iteration_is_completed_around_given_proximal_points(name, measured):
    d, penalty = 3, PENALTIES[name]
    rng, graph, w, u, nodes = random_state(d, 4)
    prox, tau = rng.standard_normal((9, d)), rng.uniform(0.1, 2.0, 9)
    expected_w, bar = w + 1.9 * (prox - w), 2.0 * prox - w
    primal = float(np.sum((prox - w) ** 2 / tau[:, None]))
    expected_u, dual = naive_edge_pass(u, bar, graph.edges, graph.weights, 0.7, 1.9, penalty)
    step = EdgeStep.of(graph.weights, 0.7, 1.9, penalty.compiled_form)
    dims, room, arcs = (0,) * d, edge_room((0,) * d, 1), graph.by_head
    moved = (
        complete_nodes(dims, prox, tau, w, nodes, 1.9),
        pass_edges(dims, u, nodes[0], room[0], arcs, step, measured),
    )
    np.testing.assert_allclose(w, expected_w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(u, expected_u, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(nodes[0, :, :d], bar, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(nodes[0, :, d:], graph.divergence @ expected_u, atol=1e-10)
    assert moved == pytest.approx((primal, dual if measured else 0.0), rel=1e-10)
