"""The compiled passes against readable NumPy twins."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers import _kernels

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


def random_state(d, seed):
    rng = np.random.default_rng(seed)
    n = 7
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6])
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.2, 2.0, len(edges)))
    return rng, graph, rng.standard_normal((n, d)), rng.standard_normal((graph.n_edges, d))


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_node_pass_is_its_naive_twin(d):
    rng, graph, w, u = random_state(d, seed=d)
    balance = graph.divergence @ u
    matrix = rng.standard_normal((len(w), d, d))
    offset = rng.standard_normal((len(w), d))
    tau = rng.uniform(0.1, 2.0, len(w))
    new, bar, moved = naive_node_pass(w, balance, matrix, offset, tau, 1.9)
    out = np.empty_like(w)
    total = _kernels.node_pass(w, out, balance, matrix, offset, tau, 1.9)
    np.testing.assert_allclose(w, new, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, bar, rtol=1e-12, atol=1e-12)
    assert total == pytest.approx(moved, rel=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_edge_pass_is_its_naive_twin(name, d, scale):
    penalty = PENALTIES[name]
    _, graph, w, u = random_state(d, seed=10 + d)
    u *= scale
    balance = np.asarray(graph.divergence @ u)
    expected, moved = naive_edge_pass(u, w, graph.edges, graph.weights, 0.7, 1.9, penalty)
    edges = graph.edges.astype(np.int32)
    total = _kernels.edge_pass(u, w, balance, edges, graph.weights, 0.7, 1.9, penalty.kernel_code)
    np.testing.assert_allclose(u, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(balance, graph.divergence @ expected, rtol=1e-11, atol=1e-10)
    assert total == pytest.approx(moved, rel=1e-10)


def test_fused_iterations_are_the_two_passes_in_turn():
    rng, graph, w, u = random_state(2, seed=3)
    n, d = w.shape
    tau = 1.0 / np.maximum(graph.degrees, 1)
    matrix = np.broadcast_to(0.5 * np.eye(d), (n, d, d)).copy()
    offset = rng.standard_normal((n, d))
    edges = graph.edges.astype(np.int32)
    one = [w.copy(), u.copy(), w.copy(), np.asarray(graph.divergence @ u)]
    many = [x.copy() for x in one]
    fixed = (edges, graph.weights, matrix, offset, tau, 0.5, 1.9, gtv.L2Norm().kernel_code)
    for _ in range(5):
        _kernels.node_pass(one[0], one[2], one[3], matrix, offset, tau, 1.9)
        _kernels.edge_pass(one[1], one[2], one[3], edges, graph.weights, 0.5, 1.9, fixed[-1])
    _kernels.iterate(5, *many, *fixed)
    for left, right in zip(one, many, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
