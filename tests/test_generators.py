"""Graph and data generators: shapes, distributions against naive ones, refusals."""

from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from gtvcvx import generators
from gtvcvx.generators import (
    chain,
    geometric,
    grid,
    nearest_neighbours,
    random_geometric,
    regression_data,
    sbm,
    star,
)


def edge_set(graph):
    return set(map(tuple, graph.edges.tolist()))


def same_graph(a, b):
    return np.array_equal(a.edges, b.edges) and np.array_equal(a.weights, b.weights)


class TestSBM:
    def test_certain_edges(self):
        graph = sbm([3, 1, 2], 1.0, 0.0, 0)
        assert edge_set(graph) == {(0, 1), (0, 2), (1, 2), (4, 5)}
        graph = sbm([3, 1, 2], 0.0, 1.0, 0)
        complete = nx.complete_multipartite_graph(3, 1, 2)
        assert edge_set(graph) == set(complete.edges)
        assert same_graph(sbm([6], 1.0, 0.0, 0), sbm([1] * 6, 0.0, 1.0, 0))

    def test_every_pair_has_its_probability(self):
        sizes, p_in, p_out, draws = [5, 2, 4], 0.6, 0.15, 3000
        rng = np.random.default_rng(7)
        count = np.zeros((11, 11))
        squares = []
        for _ in range(draws):
            edges = sbm(sizes, p_in, p_out, rng).edges
            count[edges[:, 0], edges[:, 1]] += 1
            squares.append(len(edges))
        block = np.repeat(range(3), sizes)
        p = np.where(block[:, None] == block[None, :], p_in, p_out)[np.triu_indices(11, 1)]
        z = (count[np.triu_indices(11, 1)] - draws * p) / np.sqrt(draws * p * (1 - p))
        # 55 standard normal values: beyond 4.5 by chance once in 2,700 seeds.
        assert np.abs(z).max() < 4.5
        # Independence of the pairs: the number of edges has the variance of their sum.
        assert np.var(squares) == pytest.approx((p * (1 - p)).sum(), rel=0.15)

    def test_seed_decides(self):
        assert same_graph(sbm([50, 50], 0.5, 0.01, 3), sbm([50, 50], 0.5, 0.01, 3))
        assert not same_graph(sbm([50, 50], 0.5, 0.01, 3), sbm([50, 50], 0.5, 0.01, 4))
        assert same_graph(
            sbm([50, 50], 0.5, 0.01, 3), sbm([50, 50], 0.5, 0.01, np.random.default_rng(3))
        )

    def test_setting_of_the_paper(self):
        graph = sbm([100, 100], 0.5, 0.01, 0)
        inside = (graph.edges[:, 0] < 100) == (graph.edges[:, 1] < 100)
        assert graph.n_nodes == 200
        assert inside.sum() == pytest.approx(4950, abs=250)
        assert (~inside).sum() == pytest.approx(100, abs=50)
        assert (graph.weights == 1).all()

    def test_large_and_sparse_is_quick(self):
        started = time.perf_counter()
        graph = sbm([10_000] * 4, 1e-3, 1e-5, 0)
        assert time.perf_counter() - started < 5
        assert graph.n_edges == pytest.approx(4 * 49_995 + 6e8 * 1e-5, rel=0.02)

    def test_tiny_probability(self):
        assert sbm([1000, 1000], 1e-300, 0.0, 0).n_edges == 0

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (([], 0.5, 0.5, 0), ValueError, "sizes: at least one"),
            (([3, 0], 0.5, 0.5, 0), ValueError, r"sizes\[1\]: at least 1"),
            (([3, 2.0], 0.5, 0.5, 0), TypeError, r"sizes\[1\]: an integer"),
            (([3], 1.5, 0.5, 0), ValueError, "p_in: a probability"),
            (([3], 0.5, float("nan"), 0), ValueError, "p_out: a probability"),
            (([3], 0.5, 0.5, None), TypeError, "seed: an integer"),
            (([3], 0.5, 0.5, True), TypeError, "seed: an integer"),
        ],
    )
    def test_refusals(self, arguments, error, message):
        with pytest.raises(error, match=message):
            sbm(*arguments)


def test_triangle_numbers_the_pairs():
    pairs = generators._triangle(np.arange(45))
    assert list(map(tuple, pairs)) == [(i, j) for j in range(10) for i in range(j)]


@pytest.mark.parametrize("j", [2**16, 2**25 + 1, 10**8, 2**30])
def test_triangle_is_exact_where_the_square_root_rounds(j):
    first = j * (j - 1) // 2
    pairs = generators._triangle(np.array([first - 1, first, first + j - 1, first + j]))
    assert pairs.tolist() == [[j - 2, j - 1], [0, j], [j - 1, j], [0, j + 1]]


class TestChain:
    def test_edges_and_weights(self):
        graph = chain(3, 0.25)
        assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
        assert graph.weights.tolist() == [1, 1, 0.25, 1, 1]

    def test_eps_zero_splits_it(self):
        graph = chain(3, 0)
        assert graph.components.tolist() == [0, 0, 0, 1, 1, 1]
        assert chain(1, 0.0).n_edges == 0

    @pytest.mark.parametrize("eps", [-0.1, float("nan"), float("inf")])
    def test_refuses_weights(self, eps):
        with pytest.raises(ValueError, match="eps: a finite weight"):
            chain(3, eps)

    def test_refuses_sizes(self):
        with pytest.raises(ValueError, match="n_per_cluster: at least 1"):
            chain(0, 1.0)


def test_star():
    assert star(3).edges.tolist() == [[0, 1], [0, 2], [0, 3]]
    with pytest.raises(ValueError, match="n_leaves: at least 1"):
        star(0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (3, 4)])
def test_grid_is_that_of_networkx(shape):
    graph = grid(*shape)
    expected = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*shape))
    assert graph.n_nodes == shape[0] * shape[1]
    assert edge_set(graph) == {tuple(sorted(edge)) for edge in expected.edges}


class TestGeometric:
    @pytest.mark.parametrize(
        "points",
        [
            np.random.default_rng(0).random((60, 2)),
            np.random.default_rng(1).normal(size=(60, 3)) ** 5,
            np.random.default_rng(2).random((60, 1)) * 1e-9 + 1e3,
            np.repeat(np.random.default_rng(3).random((2, 2)), 30, axis=0),
            np.mgrid[:6, :10].reshape(2, -1).T,
        ],
        ids=["uniform", "clustered", "offset", "duplicates", "lattice"],
    )
    @pytest.mark.parametrize("mean_degree", [0.5, 4, 59])
    def test_joins_the_closest_pairs(self, points, mean_degree):
        graph = geometric(points, mean_degree)
        m = round(30 * mean_degree)
        distance = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=-1)
        rows, cols = np.triu_indices(60, 1)
        # Stable: ties in the order of (i, j).
        naive = np.argsort(distance[rows, cols], kind="stable")[:m]
        assert edge_set(graph) == set(zip(rows[naive].tolist(), cols[naive].tolist(), strict=True))
        assert graph.n_edges == m

    def test_no_edges(self):
        assert geometric([[0.0], [1.0]], 0).n_edges == 0
        assert geometric([[0.0]], 0).n_nodes == 1

    def test_random_points_are_those_documented(self):
        expected = geometric(np.random.default_rng(5).random((300, 2)), 12)
        assert same_graph(random_geometric(300, 12, 5), expected)
        assert random_geometric(300, 12, 5).degrees.mean() == pytest.approx(12)

    def test_large_is_quick(self):
        started = time.perf_counter()
        assert random_geometric(50_000, 12, 0).n_edges == 300_000
        assert time.perf_counter() - started < 5

    @pytest.mark.parametrize(
        ("points", "mean_degree", "message"),
        [
            ([[0.0], [1.0]], 1.5, r"mean_degree: a number in \[0, 1\]"),
            ([[0.0], [1.0]], -1, "mean_degree"),
            ([[0.0], [1.0]], float("nan"), "mean_degree"),
            ([[0.0], [float("nan")]], 1, r"points: entry \(1, 0\) is nan"),
            ([0.0, 1.0], 1, "points: 2 axes"),
            (np.empty((0, 2)), 0, "points: at least one row"),
        ],
    )
    def test_refusals(self, points, mean_degree, message):
        with pytest.raises(ValueError, match=message):
            geometric(points, mean_degree)


class TestNearestNeighbours:
    @pytest.mark.parametrize("k", [1, 4, 39])
    def test_against_all_distances(self, k):
        points = np.random.default_rng(0).normal(size=(40, 3))
        distance = squareform(pdist(points))
        np.fill_diagonal(distance, np.inf)
        nearest = np.argsort(distance, axis=1)[:, :k]
        expected = {tuple(sorted((i, int(j)))) for i in range(40) for j in nearest[i]}
        assert edge_set(nearest_neighbours(points, k)) == expected

    def test_equal_points(self):
        graph = nearest_neighbours(np.zeros((30, 2)), 3)
        assert graph.degrees.min() >= 3
        assert graph.weights.max() == 1

    @pytest.mark.parametrize("k", [0, 2])
    def test_refuses_k(self, k):
        with pytest.raises(ValueError, match="k: at"):
            nearest_neighbours([[0.0], [1.0]], k)


class TestRegressionData:
    def test_noise_free_data_are_the_model(self):
        w = np.random.default_rng(0).normal(size=(7, 3))
        data = regression_data(w, 5, 0.0, 1.0, 1)
        assert data.X.shape == (7, 5, 3)
        for i in range(7):
            np.testing.assert_allclose(data.y[i], data.X[i] @ w[i], rtol=1e-12, atol=1e-12)
        assert data.labelled.all()

    def test_moments(self):
        data = regression_data(np.zeros((2000, 2)), 10, 0.3, 0.4, 1)
        assert data.y.std() == pytest.approx(0.3, rel=0.03)
        covariance = np.cov(data.X.reshape(-1, 2).T)
        np.testing.assert_allclose(covariance, np.eye(2), atol=0.05)
        assert data.labelled.sum() == 800
        # Not simply the first ones.
        assert 300 < data.labelled[:1000].sum() < 500

    def test_seed_decides(self):
        w = np.ones((4, 2))
        first, again, other = (regression_data(w, 3, 0.1, 0.5, seed) for seed in (1, 1, 2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert not np.array_equal(first.y, other.y)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"true_w": [1.0, 2.0]}, "true_w: 2 axes"),
            ({"true_w": [[np.inf]]}, r"true_w: entry \(0, 0\) is inf"),
            ({"rows": 0}, "rows: at least 1"),
            ({"noise": -0.1}, "noise: a finite"),
            ({"noise": np.nan}, "noise: a finite"),
            ({"labelled": 1.1}, "labelled: a fraction"),
        ],
    )
    def test_refusals(self, change, message):
        arguments = {"true_w": [[1.0]], "rows": 2, "noise": 0.0, "labelled": 0.5, "seed": 0}
        with pytest.raises(ValueError, match=message):
            regression_data(**(arguments | change))
