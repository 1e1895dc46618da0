"""Graphs from local models and from local datasets, against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.graph_construction import kl_divergences, kl_graph, knn_graph, local_models, model_graph


def edge_set(graph):
    return set(map(tuple, graph.edges.tolist()))


class TestModels:
    def test_ridge_regression_of_each_node(self):
        rng = np.random.default_rng(0)
        losses = [
            gtv.SquaredLoss(rng.standard_normal((m, 3)), rng.standard_normal(m))
            for m in (1, 2, 5, 9)
        ]
        found = local_models(losses, ridge=0.3)
        for loss, w in zip(losses, found, strict=True):
            m = len(loss.y)
            A = 2 / m * loss.X.T @ loss.X + 0.3 * np.eye(3)
            np.testing.assert_allclose(w, np.linalg.solve(A, 2 / m * loss.X.T @ loss.y), rtol=1e-10)
        for loss, w in zip(losses, local_models(losses, ridge=0), strict=True):
            np.testing.assert_allclose(w, np.linalg.pinv(loss.X) @ loss.y, rtol=1e-9)

    def test_clusters_of_the_models_are_found(self):
        means = np.repeat([[2.0, 2.0], [-2.0, 2.0]], 20, axis=0)
        data = generators.regression_data(means, 10, 0.1, 1.0, 3)
        graph = model_graph(gtv.SquaredLoss.stack(*data), 5)
        assert set(graph.components.tolist()) == {0, 1}
        assert (graph.components == np.repeat([0, 1], 20)).all()

    def test_is_a_graph_of_near_parameters(self):
        points = np.random.default_rng(1).standard_normal((12, 2))
        options = {"weights": "inverse", "mutual": True, "connect": True}
        graph = model_graph(gtv.PointLoss.stack(points), 3, ridge=1e-9, **options)
        expected = knn_graph(points, 3, **options)
        assert edge_set(graph) == edge_set(expected)
        np.testing.assert_allclose(graph.weights, expected.weights, rtol=1e-6)

    def test_labels(self):
        losses = {"a": gtv.PointLoss([0.0]), "b": gtv.PointLoss([1.0]), "c": gtv.PointLoss([5.0])}
        assert list(model_graph(losses, 1).nodes) == ["a", "b", "c"]
        graph = model_graph(list(losses.values()), 1, nodes=["x", "y", "z"])
        assert list(graph.nodes) == ["x", "y", "z"]
        assert edge_set(graph) == {(0, 1), (1, 2)}

    def test_bad_input(self):
        losses = {"a": gtv.PointLoss([0.0]), "b": gtv.ZeroLoss()}
        with pytest.raises(ValueError, match="losses: node 'b' has no data, so no model of its"):
            model_graph(losses, 1)
        with pytest.raises(ValueError, match="ridge: a finite number >= 0 is expected, got -1"):
            local_models([gtv.PointLoss([0.0])], -1)
        with pytest.raises(TypeError, match="ridge: a number is expected, got None"):
            local_models([gtv.PointLoss([0.0])], None)
        with pytest.raises(TypeError, match="losses: a sequence of losses, a mapping"):
            local_models(3)


def naive_gaussian_kl(mean, S, other_mean, other_S):
    """KL(N(mean, S) || N(other_mean, other_S))."""
    c = len(mean)
    inverse = np.linalg.inv(other_S)
    apart = other_mean - mean
    logs = np.linalg.slogdet(other_S)[1] - np.linalg.slogdet(S)[1]
    return 0.5 * (np.trace(inverse @ S) + apart @ inverse @ apart - c + logs)


def naive_nearest_kl(x, other, k):
    """The estimator of Wang, Kulkarni and Verdu, point by point."""
    total = 0.0
    for r in range(len(x)):
        own = sorted(np.linalg.norm(x[r] - x[t]) for t in range(len(x)) if t != r)[k - 1]
        away = sorted(np.linalg.norm(x[r] - y) for y in other)[k - 1]
        total += np.log(away / own)
    return x.shape[1] * total / len(x) + np.log(len(other) / (len(x) - 1))


def datasets(seed, n=5, c=2, rows=(3, 12)):
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal(c) + rng.standard_normal((rng.integers(*rows), c)) @ np.diag(
            rng.uniform(0.3, 2.0, c)
        )
        for _ in range(n)
    ]  # fmt: skip


class TestGaussianDivergence:
    @given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0))
    def test_against_the_formula_with_determinants(self, seed, shrinkage):
        samples = datasets(seed)
        pooled = np.concatenate(samples)
        floor = shrinkage * np.mean(np.var(pooled, axis=0)) * np.eye(2)
        fits = [(x.mean(axis=0), (1 - shrinkage) * np.cov(x.T, bias=True) + floor) for x in samples]
        expected = [
            [naive_gaussian_kl(*p, *q) + naive_gaussian_kl(*q, *p) for q in fits] for p in fits
        ]
        found = kl_divergences(samples, shrinkage=shrinkage)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert (found == found.T).all()
        assert (np.diag(found) == 0).all()

    def test_turning_shifting_and_scaling_change_nothing(self):
        samples = datasets(7, c=3)
        turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
        moved = [1e3 * x @ turn + 5.0 for x in samples]
        np.testing.assert_allclose(kl_divergences(moved), kl_divergences(samples), rtol=1e-9)

    def test_single_points_and_more_columns_than_points(self):
        rng = np.random.default_rng(2)
        samples = [rng.standard_normal((m, 6)) for m in (1, 1, 2, 4)]
        found = kl_divergences(samples)
        assert np.isfinite(found).all()
        assert (found[np.triu_indices(4, 1)] > 0).all()

    def test_equal_datasets_are_at_distance_zero(self):
        x = np.random.default_rng(3).standard_normal((8, 2))
        assert kl_divergences([x, x[::-1], x + 1.0])[0, 1] == pytest.approx(0.0, abs=1e-12)


class TestNearestDivergence:
    @pytest.mark.parametrize("order", [1, 2])
    def test_against_the_plain_estimator(self, order):
        samples = datasets(11, rows=(5, 12))
        expected = np.array(
            [
                [
                    naive_nearest_kl(x, y, order) + naive_nearest_kl(y, x, order) if x is not y
                    else 0.0
                    for y in samples
                ]
                for x in samples
            ]
        )  # fmt: skip
        found = kl_divergences(samples, estimator="nearest", order=order)
        np.testing.assert_allclose(found, np.maximum(expected, 0.0), rtol=1e-9)
        assert (found == found.T).all()

    def test_estimates_the_divergence(self):
        """Of two normal distributions with one covariance: the distance of their means counts."""
        rng = np.random.default_rng(5)
        means, spread = np.array([[0.0, 0.0], [1.0, 0.5]]), np.diag([1.0, 0.5])
        samples = [mean + rng.standard_normal((4000, 2)) @ spread for mean in means]
        p, q = ((mean, spread**2) for mean in means)
        true = naive_gaussian_kl(*p, *q) + naive_gaussian_kl(*q, *p)
        assert kl_divergences(samples, shrinkage=1e-6)[0, 1] == pytest.approx(true, rel=0.1)
        found = kl_divergences(samples, estimator="nearest", order=3)[0, 1]
        assert found == pytest.approx(true, rel=0.1)

    def test_rounded_data(self):
        """Equal points within and across datasets leave the estimates finite and sensible."""
        rng = np.random.default_rng(6)
        samples = [np.round(rng.standard_normal((60, 2)) + shift, 1) for shift in (0.0, 0.0, 4.0)]
        samples[1][:20] = samples[0][:20]
        samples[0][1] = samples[0][0]
        found = kl_divergences(samples, estimator="nearest")
        assert np.isfinite(found).all()
        assert found[0, 1] < 0.2 * min(found[0, 2], found[1, 2])


class TestGraph:
    def test_as_the_paper_does(self):
        """Four nearest neighbours, weights exp(-divergence), two kinds of local datasets."""
        rng = np.random.default_rng(0)
        samples = {
            f"node {i}": rng.standard_normal((80, 2)) + 3.0 * (i % 2) for i in range(16)
        }  # fmt: skip
        D = kl_divergences(samples, estimator="nearest")
        graph = kl_graph(samples, 4, estimator="nearest", bandwidth=1.0)
        assert list(graph.nodes) == list(samples)
        assert all(i % 2 == j % 2 for i, j in graph.edges.tolist())
        assert graph.degrees.min() >= 4
        np.testing.assert_allclose(graph.weights, np.exp(-D[tuple(graph.edges.T)]), rtol=1e-12)

    def test_of_one_array_and_of_scikit_learns_digits(self):
        """Local datasets of two digits each; nodes with the same digits are joined."""
        from sklearn.datasets import load_digits
        from sklearn.decomposition import PCA

        X, y = load_digits(return_X_y=True)
        X = PCA(8, svd_solver="full").fit_transform(X)
        rng = np.random.default_rng(0)
        pools = [np.flatnonzero(np.isin(y, pair)) for pair in ((0, 1), (2, 3))]
        samples = np.array([X[rng.choice(pools[i // 6], 60, replace=False)] for i in range(12)])
        graph = kl_graph(samples)
        assert (graph.components == np.repeat([0, 1], 6)).all()
        assert list(kl_graph(samples, nodes="abcdefghijkl").nodes) == list("abcdefghijkl")

    def test_renumbering_the_nodes_renumbers_the_graph(self):
        samples = datasets(9, n=10, rows=(6, 12))
        order = np.random.default_rng(1).permutation(10)
        for estimator in ("gaussian", "nearest"):
            graph = kl_graph(samples, 3, estimator=estimator, connect=True)
            moved = kl_graph([samples[i] for i in order], 3, estimator=estimator, connect=True)
            back = gtv.EmpiricalGraph(10, order[moved.edges], moved.weights)
            np.testing.assert_array_equal(back.edges, graph.edges)
            np.testing.assert_allclose(back.weights, graph.weights, rtol=1e-9)


@pytest.mark.parametrize(
    ("samples", "options", "error", "message"),
    [
        (3, {}, TypeError, "samples: a sequence or a mapping of arrays is expected, got int"),
        ([], {}, ValueError, "samples: at least one dataset"),
        ({"a": [[1.0]], "b": [[np.inf]]}, {}, ValueError, "samples: node 'b': entry .* is inf"),
        ([[[1.0]], [1.0]], {}, ValueError, "samples: node 1: 2 axes are expected"),
        ([[[1.0]], [[1.0, 2.0]]], {}, ValueError, r"samples: node 1: shape \(m, 1\) .* got \(1, 2"),
        ([[[1.0]], np.empty((0, 1))], {}, ValueError, r"node 1: shape .* got \(0, 1\)"),
        ([[[1.0]], [[1.0]]], {}, ValueError, "samples: all points of all nodes are equal"),
        ([[[1.0]] * 2] * 2, {"estimator": "nearest"}, ValueError, "samples: all points of all"),
        ([[[1.0]], [[2.0]]], {"estimator": "nearest"}, ValueError, "samples: node 0 has 1 points"),
        ([[[1.0]], [[2.0]]], {"estimator": "tsne"}, ValueError, "estimator: one of .* got 'tsne'"),
        ([[[1.0]], [[2.0]]], {"shrinkage": 0.0}, ValueError, r"shrinkage: a number in \(0, 1\]"),
        ([[[1.0]]], {"estimator": "nearest", "order": 0}, ValueError, "order: an integer >= 1"),
    ],
)  # fmt: skip
def test_bad_samples(samples, options, error, message):
    with pytest.raises(error, match=message):
        kl_divergences(samples, **options)
