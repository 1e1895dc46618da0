"""Graphs of near points against brute force and scikit-learn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import haversine_distances
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

import gtvcvx as gtv
from gtvcvx.graph_construction import knn_graph, radius_graph

METRICS = ("euclidean", "cityblock", "chebyshev")


def edge_set(graph):
    return set(map(tuple, graph.edges.tolist()))


def naive_neighbours(D, k, mutual=False):
    """Pairs of near nodes from a matrix of distances; equal ones by their number."""
    n = len(D)
    near = [sorted((D[i, j], j) for j in range(n) if j != i)[:k] for i in range(n)]
    directed = {(i, j) for i in range(n) for _, j in near[i]}
    return {
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if ((i, j) in directed) + ((j, i) in directed) >= 1 + mutual
    }


# Few values, hence many ties and equal points; their distances are computed exactly but for roots.
grids = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 14), st.integers(1, 3)),
    elements=st.integers(-2, 2).map(float),
)


class TestNeighbours:
    @given(grids, st.data())
    def test_against_brute_force_with_ties(self, X, data):
        k = data.draw(st.integers(1, len(X) - 1))
        metric = data.draw(st.sampled_from(METRICS))
        mutual = data.draw(st.booleans())
        D = cdist(X, X, metric)
        expected = naive_neighbours(D, k, mutual)
        assert edge_set(knn_graph(X, k, metric=metric, mutual=mutual)) == expected
        assert edge_set(knn_graph(D, k, metric="precomputed", mutual=mutual)) == expected

    @pytest.mark.parametrize("columns", [1, 2, 5])
    @pytest.mark.parametrize("metric", METRICS)
    def test_same_as_scikit_learn(self, metric, columns):
        X = np.random.default_rng(columns).standard_normal((80, columns))
        theirs = kneighbors_graph(X, 6, mode="distance", metric=metric)
        expected = gtv.EmpiricalGraph.from_adjacency(theirs.maximum(theirs.T))
        ours = knn_graph(X, 6, metric=metric, weights=lambda t: t)
        assert edge_set(ours) == edge_set(expected)
        np.testing.assert_allclose(ours.weights, expected.weights, rtol=1e-12)

    @given(st.integers(0, 2**32 - 1), st.booleans())
    def test_renumbering_the_nodes_renumbers_the_graph(self, seed, mutual):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 2))
        order = rng.permutation(20)
        graph = knn_graph(X, 3, mutual=mutual, connect=True)
        moved = knn_graph(X[order], 3, mutual=mutual, connect=True)
        back = gtv.EmpiricalGraph(20, order[moved.edges], moved.weights)
        np.testing.assert_array_equal(back.edges, graph.edges)
        np.testing.assert_allclose(back.weights, graph.weights, rtol=1e-12)

    def test_many_equal_points(self):
        X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 40, axis=0)
        graph = knn_graph(X, 3)
        # The first three others of each place; these three have one another and number 3.
        expected = {(a + i, a + j) for a in (0, 40) for i in range(3) for j in range(i + 1, 40)}
        expected |= {(a + i, a + 3) for a in (0, 40) for i in range(3)}
        assert edge_set(graph) == expected
        assert (graph.weights == 1.0).all()

    def test_ties_are_decided_block_by_block_as_well(self, monkeypatch):
        monkeypatch.setattr("gtvcvx.graph_construction._spaces.BLOCK", 50)
        X = np.stack(np.meshgrid(np.arange(7.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
        assert edge_set(knn_graph(X, 3)) == naive_neighbours(cdist(X, X), 3)

    def test_labels(self):
        graph = knn_graph([[0.0], [1.0], [3.0]], 1, nodes=["a", "b", "c"])
        assert list(graph.nodes) == ["a", "b", "c"]
        assert graph.index["c"] == 2


class TestRadius:
    @given(grids, st.sampled_from(METRICS), st.sampled_from([0.5, 1.0, np.sqrt(2.0), 2.0, np.inf]))
    def test_against_brute_force_with_pairs_at_the_radius(self, X, metric, radius):
        D = cdist(X, X, metric)
        n = len(X)
        expected = {(i, j) for i in range(n) for j in range(i + 1, n) if D[i, j] <= radius}
        assert edge_set(radius_graph(X, radius, metric=metric)) == expected
        assert edge_set(radius_graph(D, radius, metric="precomputed")) == expected

    def test_same_as_scikit_learn(self):
        X = np.random.default_rng(4).random((100, 2))
        theirs = gtv.EmpiricalGraph.from_adjacency(radius_neighbors_graph(X, 0.2))
        assert edge_set(radius_graph(X, 0.2)) == edge_set(theirs)

    def test_all_pairs(self):
        assert radius_graph(np.arange(9.0)[:, None], np.inf).n_edges == 36

    def test_no_pair(self):
        graph = radius_graph([[0.0], [1.0]], 0.5)
        assert (graph.n_nodes, graph.n_edges) == (2, 0)


class TestSphere:
    PLACES = np.array([[60.17, 24.94], [59.33, 18.07], [-33.87, 151.21], [0.0, 0.0], [90.0, 77.0]])

    def test_distances(self):
        kilometres = radius_graph(self.PLACES, np.inf, metric="haversine", weights=lambda t: t)
        theirs = 6371.0088 * haversine_distances(np.radians(self.PLACES))
        expected = theirs[tuple(kilometres.edges.T)]
        np.testing.assert_allclose(kilometres.weights, expected, rtol=1e-12)
        # From the pole to the equator.
        at = kilometres.edges.tolist().index([3, 4])
        assert kilometres.weights[at] == pytest.approx(np.pi / 2 * 6371.0088, rel=1e-14)

    def test_small_and_largest_distances(self):
        places = [[10.0, 20.0], [10.0 + 1e-9, 20.0], [-10.0, -160.0]]
        graph = radius_graph(places, np.inf, metric="haversine", weights=lambda t: t)
        np.testing.assert_allclose(graph.weights[0], np.radians(1e-9) * 6371.0088, rtol=1e-5)
        np.testing.assert_allclose(graph.weights[1], np.pi * 6371.0088, rtol=1e-12)

    def test_the_date_line_is_no_border(self):
        graph = knn_graph([[0.0, 179.9], [0.0, -179.9], [0.0, 170.0]], 1, metric="haversine")
        assert edge_set(graph) == {(0, 1), (0, 2)}

    @given(st.integers(0, 2**32 - 1))
    def test_neighbours_against_brute_force(self, seed):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.uniform(-90, 90, 25), rng.uniform(-180, 180, 25)])
        D = 6371.0088 * haversine_distances(np.radians(X))
        assert edge_set(knn_graph(X, 4, metric="haversine")) == naive_neighbours(D, 4)
        n_within = len(radius_graph(X, 3000.0, metric="haversine").edges)
        assert n_within == (D[np.triu_indices(25, 1)] <= 3000.0).sum()


class TestWeights:
    X = np.array([[0.0], [1.0], [3.0], [7.0]])  # the edges of a chain have lengths 1, 2, 4

    @pytest.mark.parametrize(
        ("name", "kernel"),
        [
            ("gaussian", lambda t: np.exp(-(t**2) / 2)),
            ("exponential", lambda t: np.exp(-t)),
            ("inverse", lambda t: 1 / (1 + t)),
        ],
    )
    def test_kernels(self, name, kernel):
        lengths = np.array([1.0, 2.0, 4.0])
        graph = knn_graph(self.X, 1, weights=name, bandwidth=0.7)
        np.testing.assert_allclose(graph.weights, np.maximum(kernel(lengths / 0.7), 1e-6))
        graph = knn_graph(self.X, 1, weights=name)  # the median length is 2
        np.testing.assert_allclose(graph.weights, kernel(lengths / 2))

    def test_binary(self):
        assert knn_graph(self.X, 1, weights="binary").weights.tolist() == [1.0, 1.0, 1.0]

    def test_default_bandwidth_has_the_unit_of_the_data(self):
        X = np.random.default_rng(0).standard_normal((30, 3))
        np.testing.assert_allclose(
            knn_graph(1e-12 * X, 4).weights, knn_graph(X, 4).weights, rtol=1e-9
        )

    def test_equal_points_do_not_count_in_the_default_bandwidth(self):
        X = [[0.0], [0.0], [0.0], [0.0], [2.0], [3.0]]
        graph = knn_graph(X, 1, weights="exponential")
        assert graph.weights.tolist() == [1.0, 1.0, 1.0, np.exp(-1.0)]

    def test_local_bandwidths(self):
        """Naively: h_i is the median length of the edges at i, those of length 0 left out."""
        X = np.random.default_rng(5).standard_normal((25, 2)) ** 3
        X[3] = X[4]
        graph = knn_graph(X, 3, bandwidth="local", floor=0.0)
        lengths = np.linalg.norm(X[graph.edges[:, 0]] - X[graph.edges[:, 1]], axis=1)
        width = [
            np.median(lengths[(graph.edges == i).any(axis=1) & (lengths > 0)]) for i in range(25)
        ]
        at = np.array(width)[graph.edges]
        np.testing.assert_allclose(graph.weights, np.exp(-0.5 * lengths**2 / at.prod(axis=1)))

    def test_local_bandwidths_of_joining_edges_and_lonely_points(self):
        X = [[0.0], [1.0], [10.0], [12.0], [12.0]]
        graph = knn_graph(X, 1, weights="exponential", bandwidth="local", connect=True)
        assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
        # Node 4 has no edge of positive length; the others' are 1 and 2, which 1 - 2 joins.
        np.testing.assert_allclose(
            graph.weights, np.exp([-1.0, -9.0 / np.sqrt(2.0), -1.0, 0.0]), rtol=1e-12
        )
        tiny = knn_graph(1e-150 * np.array(X), 1, weights="exponential", bandwidth="local")
        np.testing.assert_allclose(tiny.weights[0], np.exp(-1.0), rtol=1e-9)

    def test_floor(self):
        X = [[0.0], [1.0], [100.0]]
        assert knn_graph(X, 1, bandwidth=1.0).weights[1] == 1e-6
        assert knn_graph(X, 1, bandwidth=1.0, floor=0.25).weights[1] == 0.25
        with pytest.raises(ValueError, match=r"weights: edge 1 = \('b', 'c'\) has weight 0.0"):
            knn_graph(X, 1, bandwidth=1.0, floor=0.0, nodes=["a", "b", "c"])


class TestBadInput:
    X = np.arange(8.0).reshape(4, 2)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"n_neighbors": 0}, ValueError, r"n_neighbors: an integer in 1, ..., n - 1 = 3"),
            ({"n_neighbors": 4}, ValueError, r"n_neighbors: .* got 4"),
            ({"n_neighbors": 2.0}, TypeError, r"n_neighbors: an integer is expected, got 2.0"),
            ({"n_neighbors": True}, TypeError, r"n_neighbors: an integer"),
            ({"metric": "cosine"}, ValueError, r"metric: one of .* got 'cosine'"),
            ({"weights": "distance"}, ValueError, r"weights: one of .* got 'distance'"),
            ({"weights": 3}, ValueError, r"weights: one of .* got 3"),
            ({"weights": lambda t: t[:1]}, ValueError, r"weights: .* shape \(3,\), got \(1,\)"),
            ({"weights": lambda t: -t}, ValueError, r"weights: edge 0 = \(0, 1\) has weight"),
            ({"bandwidth": 0.0}, ValueError, r"bandwidth: a positive finite number"),
            ({"bandwidth": np.nan}, ValueError, r"bandwidth: a positive finite number"),
            ({"bandwidth": "2"}, TypeError, r"bandwidth: a number is expected, got '2'"),
            ({"bandwidth": 1.0, "weights": "binary"}, ValueError, r"bandwidth: it has no meaning"),
            ({"floor": 1.0}, ValueError, r"floor: a number in \[0, 1\) is expected, got 1.0"),
            ({"floor": None}, TypeError, r"floor: a number is expected, got None"),
            ({"nodes": ["a"]}, ValueError, r"nodes: 4 labels are expected, got 1"),
        ],
    )
    def test_arguments(self, options, error, message):
        with pytest.raises(error, match=message):
            knn_graph(self.X, **{"n_neighbors": 1, **options})

    @pytest.mark.parametrize(
        ("X", "metric", "error", "message"),
        [
            ([[1.0, np.nan], [0.0, 0.0]], "euclidean", ValueError, r"X: entry \(0, 1\) is nan"),
            ([["a"], ["b"]], "euclidean", TypeError, r"X: an array of numbers"),
            ([1.0, 2.0], "euclidean", ValueError, r"X: 2 axes are expected"),
            (np.empty((3, 0)), "euclidean", ValueError, r"X: at least one row and one column"),
            ([[1e160], [0.0]], "euclidean", ValueError, r"X: row 0 has a value beyond 1e\+150"),
            ([[91.0, 0.0], [0, 0]], "haversine", ValueError, r"X: row 0 has the latitude 91"),
            ([[0.0, 0.0], [0, 400]], "haversine", ValueError, r"X: row 1 has the longitude 400"),
            ([[0.0], [1.0]], "haversine", ValueError, r"X: two columns, latitude and longitude"),
            ([[0.0, 1, 1], [1, 0, 1]], "precomputed", ValueError, r"X: a square matrix"),
            ([[0.0, -1], [-1, 0]], "precomputed", ValueError, r"\(i, j\) = \(0, 1\) is negative"),
            ([[0.0, 1], [2, 0]], "precomputed", ValueError, r"\(0, 1\) is not that of \(j, i\)"),
            ([[0.0, 1], [1, 3]], "precomputed", ValueError, r"\(1, 1\) should be 0"),
        ],
    )
    def test_data(self, X, metric, error, message):
        with pytest.raises(error, match=message):
            knn_graph(X, 1, metric=metric)

    @pytest.mark.parametrize("radius", [0.0, -1.0, np.nan])
    def test_radius(self, radius):
        with pytest.raises(ValueError, match="radius: a positive number is expected"):
            radius_graph(self.X, radius)
        with pytest.raises(TypeError, match="radius: a number is expected, got 'all'"):
            radius_graph(self.X, "all")
