"""Joining components: a minimum spanning tree between them, and a report of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import gtvcvx as gtv
from gtvcvx.graph_construction import connect_components, knn_graph, radius_graph


def least_length(D, components):
    """Total length of a minimum spanning tree between groups, by Kruskal's algorithm."""
    root = {c: c for c in set(components.tolist())}

    def find(c):
        return c if root[c] == c else find(root[c])

    total = 0.0
    n = len(D)
    pairs = ((i, j) for i in range(n) for j in range(i))
    for i, j in sorted(pairs, key=lambda pair: D[pair]):
        a, b = find(components[i]), find(components[j])
        if a != b:
            root[a] = b
            total += D[i, j]
    return total


@given(st.integers(0, 2**32 - 1), st.integers(2, 25), st.booleans(), st.integers(0, 20))
def test_the_shortest_edges_that_connect(seed, n, on_a_grid, n_edges):
    rng = np.random.default_rng(seed)
    # On a grid many distances are equal.
    X = rng.integers(0, 4, (n, 2)).astype(float) if on_a_grid else rng.standard_normal((n, 2))
    ends = rng.integers(0, n, (n_edges, 2))
    graph = gtv.EmpiricalGraph(n, ends[ends[:, 0] != ends[:, 1]])
    D = cdist(X, X)
    for given_as, metric in ((X, "euclidean"), (D, "precomputed")):
        found = connect_components(graph, given_as, metric=metric)
        assert found.n_components == graph.components.max() + 1
        assert len(found.edges) == len(found.lengths) == found.n_components - 1
        assert found.graph.components.max() == 0
        assert found.graph.n_edges == graph.n_edges + len(found.edges)
        np.testing.assert_allclose(found.lengths, D[tuple(found.edges.T)], rtol=1e-12)
        assert (np.diff(found.lengths) >= 0).all()
        assert found.lengths.sum() == pytest.approx(least_length(D, graph.components), rel=1e-12)


def test_on_the_sphere():
    places = np.array([[0.0, 179.0], [0.0, -179.0], [0.0, 0.0], [10.0, 178.0], [1.0, 1.0]])
    found = connect_components(gtv.EmpiricalGraph(5, [[2, 4]]), places, metric="haversine")
    assert found.edges.tolist() == [[0, 1], [0, 3], [3, 4]]


def test_the_option_is_the_function():
    X = np.random.default_rng(0).standard_normal((60, 2)) + 9.0 * (np.arange(60) % 3)[:, None]
    for options in ({}, {"bandwidth": 0.5}, {"weights": "inverse"}, {"floor": 0.3}):
        found = connect_components(knn_graph(X, 3, **options), X, **options)
        graph = knn_graph(X, 3, connect=True, **options)
        assert found.n_components == 3
        np.testing.assert_array_equal(graph.edges, found.graph.edges)
        np.testing.assert_array_equal(graph.weights, found.graph.weights)
    assert radius_graph(X, 0.5, connect=True).components.max() == 0


def test_weights_by_the_bandwidth_of_the_graphs_own_edges():
    X = np.array([[0.0], [2.0], [6.0], [8.0]])
    found = connect_components(knn_graph(X, 1), X)
    assert found.lengths.tolist() == [4.0]
    assert found.weights.tolist() == pytest.approx([np.exp(-2.0)])
    alone = connect_components(gtv.EmpiricalGraph(3, []), X[:3], weights="exponential")
    assert alone.weights.tolist() == pytest.approx([np.exp(-2 / 3), np.exp(-4 / 3)])


def test_connected_graph_is_returned_as_it_is():
    X = np.arange(5.0)[:, None]
    graph = knn_graph(X, 2)
    found = connect_components(graph, X)
    assert found.graph is graph
    assert found.edges.shape == (0, 2)
    assert str(found) == "The graph is connected; no edge was added."


class TestReport:
    def test_edges_by_their_labels(self):
        graph = gtv.EmpiricalGraph(3, [[0, 1]], nodes=["Bonn", "Graz", "Lund"])
        report = str(connect_components(graph, [[0.0], [1.0], [3.0]], weights="binary"))
        assert report.splitlines() == [
            "2 components were joined by an edge:",
            "  'Graz' - 'Lund', distance 2, weight 1",
        ]

    def test_long_ones_are_cut(self):
        X = np.cumsum(np.arange(14.0))[:, None]
        lines = str(connect_components(gtv.EmpiricalGraph(14, []), X)).splitlines()
        assert lines[0] == "14 components were joined by 13 edges:"
        assert len(lines) == 12
        assert lines[-1] == "  and 3 more, up to 13"


def test_many_components():
    """A path of 2,000 places without any edge: the tree is the path."""
    X = np.random.default_rng(3).permutation(2000).astype(float)[:, None]
    found = connect_components(gtv.EmpiricalGraph(2000, []), X)
    assert (found.lengths == 1.0).all()
    assert found.graph.components.max() == 0
    full = sp.csgraph.minimum_spanning_tree(cdist(X[:300], X[:300]))
    assert (
        full.sum()
        == connect_components(gtv.EmpiricalGraph(300, []), X[:300], weights="binary").lengths.sum()
    )


def test_bad_input():
    graph = gtv.EmpiricalGraph(3, [])
    with pytest.raises(ValueError, match="X: one row for each of the 3 nodes is expected, got 2"):
        connect_components(graph, [[0.0], [1.0]])
    with pytest.raises(TypeError, match="graph: an EmpiricalGraph is expected, got list"):
        connect_components([], [[0.0], [1.0]])
