"""The compiled passes of flows inside clusters against readable NumPy twins."""

import numpy as np
import pytest
from _twins import clipped, random_graph

from gtvcvx.compiled._cluster_flow import ALONG, Clipped, clip, shift

# Stands where a pass has nothing to write.
UNTOUCHED = 7.0


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def huber(z, capacities):
    lengths = np.linalg.norm(z, axis=1)
    inside = lengths <= capacities
    return np.where(inside, 0.5 * lengths**2, capacities * lengths - 0.5 * capacities**2)


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_clip_is_its_naive_twin(q, scale, rng):
    graph = random_graph(rng)
    m = graph.n_edges
    inner = rng.random(m) < 0.7
    z, demand = scale * rng.standard_normal((m, q)), rng.standard_normal((9, q))
    flow, normals = np.full((m, q), UNTOUCHED), np.full((m, q), UNTOUCHED)
    conductance, degrees, missing = np.full(m, UNTOUCHED), np.empty(9), demand.copy()
    out = Clipped(flow, conductance, normals, degrees)
    value = clip((0,) * q, graph.by_head, graph.weights, inner, z, out, missing)
    expected = clipped(z, graph.weights)
    np.testing.assert_allclose(flow[inner], expected[inner], rtol=1e-12)
    for array in (flow, normals, conductance):
        assert (array[~inner] == UNTOUCHED).all()
    through = graph.divergence @ np.where(inner[:, None], expected, 0.0)
    np.testing.assert_allclose(missing, demand - through, atol=1e-12)
    assert value == pytest.approx(huber(z, graph.weights)[inner].sum(), rel=1e-12)
    # The derivative of the projection, by differences; along the flow a little is left.
    mean = np.zeros(m)
    for e in np.flatnonzero(inner):
        derivative = conductance[e] * (np.eye(q) - np.outer(normals[e], normals[e]))
        mean[e] = np.trace(derivative) / q
        for k in range(q):
            step = np.zeros((m, q))
            step[e, k] = 1e-6 * scale
            ahead, behind = clipped(z + step, graph.weights), clipped(z - step, graph.weights)
            slope = (ahead - behind)[e] / (2e-6 * scale)
            np.testing.assert_allclose(derivative[k], slope, atol=2 * ALONG)
    np.testing.assert_allclose(degrees, np.abs(graph.divergence) @ mean, rtol=1e-9)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_shift_is_its_naive_twin(q, rng):
    graph = random_graph(rng)
    inner = rng.random(graph.n_edges) < 0.7
    z, x = rng.standard_normal((graph.n_edges, q)), rng.standard_normal((9, q))
    out = np.full_like(z, UNTOUCHED)
    shift(graph.by_head, inner, z, x, 0.3, out)
    expected = np.where(inner[:, None], z + 0.3 * (graph.incidence @ x), UNTOUCHED)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
