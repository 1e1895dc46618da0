"""The compiled edge pass with a weight for each coordinate against readable twins."""

import numpy as np
import pytest
from _twins import alone
from scipy.optimize import brentq

import gtvcvx as gtv
from gtvcvx.compiled import _primal_dual, _weighted_primal_dual
from gtvcvx.compiled._edges import EdgeStep, edge_room
from gtvcvx.compiled._primal_dual import NodeStep, Point
from gtvcvx.compiled._team import run_together
from gtvcvx.compiled._weighted_primal_dual import WeightedEdgeStep

edge_block = alone(_primal_dual.edge_block)
weighted_edge_block = alone(_weighted_primal_dual.weighted_edge_block)
ellipsoid_multiplier = alone(_weighted_primal_dual.ellipsoid_multiplier)
weighted_l1_threshold = alone(_weighted_primal_dual.weighted_l1_threshold)
PENALTIES = {"l2": gtv.L2Norm(), "l1": gtv.L1Norm(), "linf": gtv.LinfNorm()}
PENALTIES["squared"] = gtv.SquaredNorm()


def root_of(excess, high):
    """The zero of a falling function on [0, high], 0 where it is not positive there."""
    return 0.0 if excess(0.0) <= 0.0 else brentq(excess, 0.0, high, xtol=1e-300, rtol=1e-15)


def naive_prox(name, z, s, sigma, cap):
    """Prox of cap phi*(y / (s cap)) at one z: a scalar equation where there is a norm."""
    if name == "l1":
        return np.clip(z, -cap * s, cap * s)
    if name == "squared":
        return z / (1.0 + sigma / (cap * s**2))
    if name == "l2":

        def point(mu):
            return z / (1.0 + mu / s**2)

        norm, high = np.linalg.norm, np.linalg.norm(z / s) / cap * np.max(s**2)
    else:

        def point(t):
            return np.sign(z) * np.maximum(np.abs(z) - t / s, 0.0)

        norm, high = (lambda v: np.sum(np.abs(v))), np.max(np.abs(z) * s)
    return point(root_of(lambda t: norm(point(t) / s) - cap, high))


def naive_edge_pass(name, y, bar, edges, capacities, s, sigma, relaxation):
    new, moved = y.copy(), 0.0
    for e, (head, tail) in enumerate(edges):
        z = y[e] + sigma * (bar[head] - bar[tail])
        step = naive_prox(name, z, s, sigma, capacities[e]) - y[e]
        new[e] = y[e] + relaxation * step
        moved += np.sum(step**2) / sigma
    return new, moved


def random_state(d, seed, spread, threads=1):
    """A random graph and state, with the capacities of some edges far below their flow."""
    rng = np.random.default_rng(seed)
    n = 9
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6])
    graph = gtv.EmpiricalGraph(n, edges, 10.0 ** rng.uniform(-2, 1, len(edges)))
    s = spread ** rng.uniform(-0.5, 0.5, d)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((graph.n_edges, d)) * s
    nodes = np.zeros((threads, n, 2 * d))
    nodes[0, :, d:] = graph.divergence @ y
    return rng, graph, s, x, y, nodes


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("spread", [1.0, 1e2, 1e6])
@pytest.mark.parametrize("measured", [False, True])
def test_weighted_edge_block_is_its_naive_twin(name, d, spread, measured):
    rng, graph, s, _, y, nodes = random_state(d, 10 + d, spread)
    bar = rng.standard_normal((9, d)) * s
    nodes[0, :, :d] = bar
    capacities = graph.weights
    expected, moved = naive_edge_pass(name, y, bar, graph.edges, capacities, s, 0.5, 1.9)
    step = WeightedEdgeStep(capacities, s, 0.5, 1.9, PENALTIES[name].compiled_form)
    total = weighted_edge_block((0,) * d, 0, 9, y, nodes[0], graph.by_head, step, measured)
    np.testing.assert_allclose(y / s, expected / s, rtol=1e-10, atol=1e-11)
    divergence = graph.divergence @ (expected / s)
    np.testing.assert_allclose(nodes[0, :, d:] / s, divergence, rtol=1e-10, atol=1e-10)
    assert total == pytest.approx(moved if measured else 0.0, rel=1e-9)


@pytest.mark.parametrize("name", PENALTIES)
def test_equal_weights_of_one_are_the_pass_with_one_weight(name):
    rng, graph, _, _, y, nodes = random_state(3, 0, 1.0)
    nodes[0, :, :3] = rng.standard_normal((9, 3))
    other, others = y.copy(), nodes.copy()
    code = PENALTIES[name].compiled_form
    one = EdgeStep.of(graph.weights, 0.5, 1.9, code)
    many = WeightedEdgeStep(graph.weights, np.ones(3), 0.5, 1.9, code)
    arcs = graph.by_head
    room = edge_room((0,) * 3, 1)[0]
    edge_block((0,) * 3, 0, 9, y, nodes[0], room, arcs, one, True)
    weighted_edge_block((0,) * 3, 0, 9, other, others[0], arcs, many, True)
    np.testing.assert_allclose(other, y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(others, nodes, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("exponent", [-100, 0, 100])
@pytest.mark.parametrize("spread", [1.0, 1e4, 1e10])
def test_projections_are_on_the_sphere(exponent, spread):
    """Where the multiplier is not zero the flow is at capacity, to rounding."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        d = int(rng.integers(1, 7))
        s = spread ** rng.uniform(-0.5, 0.5, d)
        unit = 2.0**exponent
        z, cap = unit * s * 10.0 ** rng.uniform(-6, 6, d), unit * 10.0 ** rng.uniform(-3, 3)
        mu = ellipsoid_multiplier(z, s, cap)
        length = np.linalg.norm(z * s / (s**2 + mu))
        assert (mu > 0.0) == (np.linalg.norm(z / s) > cap)
        assert length == pytest.approx(min(cap, np.linalg.norm(z / s)), rel=1e-12, abs=0.0)
        t = weighted_l1_threshold(z, s, cap)
        inside, total = np.sum(np.maximum(np.abs(z) - t / s, 0.0) / s), np.sum(np.abs(z / s))
        assert (t > 0.0) == (total > cap)
        assert inside == pytest.approx(min(cap, total), rel=1e-12, abs=1e-14 * total)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_iterations_are_the_passes_in_turn_on_any_number_of_threads(threads):
    d = 2
    rng, graph, s, x, y, nodes = random_state(d, 3, 1e3, threads)
    tau = 1.0 / np.maximum(graph.degrees, 1)
    matrix = np.broadcast_to(0.5 * np.eye(d), (9, d, d)).copy()
    offset = rng.standard_normal((9, d)) * s
    expected_x, expected_y = x.copy(), y.copy()
    for _ in range(5):
        prox = 0.5 * (expected_x - tau[:, None] * (graph.divergence @ expected_y)) + offset
        change = prox - expected_x
        primal = np.sum(change**2 / tau[:, None])
        bar, expected_x = expected_x + 2.0 * change, expected_x + 1.9 * change
        expected_y, dual = naive_edge_pass(
            "l2", expected_y, bar, graph.edges, graph.weights, s, 0.5, 1.9
        )
    steps = (
        NodeStep(matrix, offset, tau, 1.9),
        WeightedEdgeStep(graph.weights, s, 0.5, 1.9, gtv.L2Norm().compiled_form),
    )
    point, arcs = Point(x, y, nodes), graph.by_head
    moved, blocks = np.empty((2, threads)), np.linspace(0, 9, threads + 1).astype(np.int64)
    room = edge_room((0,) * d, threads)
    arguments = (5, (0,) * d, blocks, point, room, arcs, *steps, moved)
    run_together(_weighted_primal_dual.iterate_weighted, threads, threads, *arguments)
    np.testing.assert_allclose(x / s, expected_x / s, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(y / s, expected_y / s, rtol=1e-9, atol=1e-10)
    assert moved.sum(axis=1) == pytest.approx((primal, dual), rel=1e-8)
