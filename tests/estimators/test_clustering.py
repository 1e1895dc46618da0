"""Convex clustering: against CVXPY, its path and dendrogram, numbers of clusters, bad input."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import gtvcvx as gtv
from gtvcvx.estimators import ConvexClustering
from gtvcvx.estimators._linkage import linkage
from gtvcvx.graph_construction import knn_graph
from gtvcvx.path import lambda_max


def blobs(n=60, centers=3, seed=0, **options):
    return make_blobs(n, centers=centers, cluster_std=0.6, random_state=seed, **options)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


class TestOneLambda:
    @pytest.mark.parametrize(("penalty", "norm"), [("l2", 2), ("l1", 1), ("linf", "inf")])
    def test_against_cvxpy(self, penalty, norm):
        X, _ = blobs(25)
        graph = knn_graph(X, 4, connect=True)
        model = ConvexClustering(lam=0.3, penalty=penalty, rtol=1e-8).fit(X, graph=graph)
        w = cp.Variable(X.shape)
        variation = sum(
            a * cp.norm(w[i] - w[j], norm)
            for (i, j), a in zip(graph.edges, graph.weights, strict=True)
        )
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w - X) + 0.3 * variation))
        problem.solve(solver=cp.CLARABEL)
        assert model.solution_.value == pytest.approx(problem.value, rel=1e-6)
        np.testing.assert_allclose(model.solution_.w, w.value, atol=1e-3)
        assert model.graph_ is graph
        assert model.lam_ == 0.3
        assert model.flows_.shape == (graph.n_edges, 2)
        assert model.dual_gap_ <= 1e-8 * model.solution_.value

    def test_centres(self):
        X, _ = blobs()
        model = ConvexClustering(lam=5.0).fit(X)
        assert model.n_clusters_ == len(model.cluster_centers_) == model.labels_.max() + 1
        np.testing.assert_allclose(
            model.cluster_centers_[model.labels_], model.solution_.w, atol=1e-2
        )
        assert 1 < model.n_clusters_ < 60

    def test_extremes(self):
        X, _ = blobs()
        assert ConvexClustering(lam=1e-9).fit(X).n_clusters_ == 60
        # The common centre is the mean, be it 0 or not.
        for shift in (X.mean(axis=0), 0.0, 1e5):
            model = ConvexClustering(lam=1e7).fit(X - shift)
            assert model.n_clusters_ == 1
            np.testing.assert_allclose(
                model.cluster_centers_, (X - shift).mean(axis=0)[None], rtol=1e-6, atol=1e-4
            )

    @pytest.mark.parametrize(("factor", "shift"), [(1e-5, 0.0), (1e5, 0.0), (1.0, 1e6)])
    def test_unit_and_origin_of_the_data_do_not_matter(self, factor, shift):
        X, _ = blobs()
        for lam in (1.0, 10.0, 100.0):
            expected = ConvexClustering(lam=lam).fit(X).labels_
            assert same_partition(
                ConvexClustering(lam=lam).fit_predict(factor * X + shift), expected
            )

    def test_graph_by_default(self):
        X, _ = blobs()
        model = ConvexClustering(lam=1.0, n_neighbors=5, weights="inverse", bandwidth=2.0).fit(X)
        expected = knn_graph(X, 5, weights="inverse", bandwidth=2.0, floor=0.01, connect=True)
        np.testing.assert_array_equal(model.graph_.edges, expected.edges)
        ratio = model.graph_.weights / expected.weights
        np.testing.assert_allclose(ratio, ratio[0])
        assert model.graph_.components.max() == 0

    def test_frames(self):
        X, _ = blobs()
        frame = pd.DataFrame(X, columns=["a", "b"])
        model = ConvexClustering(lam=1.0).fit(frame)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.n_features_in_ == 2
        np.testing.assert_array_equal(model.labels_, ConvexClustering(lam=1.0).fit_predict(X))


class TestNumberOfClusters:
    @pytest.mark.parametrize("k", [1, 2, 3, 7, 60])
    def test_as_wanted(self, k):
        X, _ = blobs()
        model = ConvexClustering(n_clusters=k).fit(X)
        assert model.n_clusters_ == k
        assert len(set(model.labels_.tolist())) == k
        # The labels are those of the solution at this lambda.
        alone = ConvexClustering(lam=model.lam_).fit(X)
        assert same_partition(alone.labels_, model.labels_)
        assert alone.solution_.value == pytest.approx(model.solution_.value, rel=1e-5)
        assert model.problem_.lam == model.lam_

    def test_blobs_are_found(self):
        X, y = blobs(150, seed=4)
        assert adjusted_rand_score(ConvexClustering(n_clusters=3).fit_predict(X), y) > 0.95
        found = ConvexClustering().fit(X)
        assert found.n_clusters_ == 3
        assert adjusted_rand_score(found.labels_, y) > 0.95

    def test_real_data(self):
        X, y = load_iris(return_X_y=True)
        model = ConvexClustering().fit(X)
        # Setosa is apart from the two other species, which touch, and are split.
        setosa = model.labels_ == model.labels_[0]
        np.testing.assert_array_equal(setosa, y == 0)
        assert adjusted_rand_score(y, model.labels_) > 0.6

    def test_several_fuse_at_once(self):
        """The corners of a square: four clusters or one, nothing between."""
        square = gtv.EmpiricalGraph(4, [[0, 1], [1, 2], [2, 3], [0, 3]])
        X = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
        with pytest.warns(ConvergenceWarning, match="no lambda with n_clusters=3 clusters; took 4"):
            model = ConvexClustering(n_clusters=3).fit(X, graph=square)
        assert model.n_clusters_ == 4
        assert not model.converged_

    def test_components_never_fuse(self):
        X, _ = blobs(40, centers=2)
        graph = knn_graph(X, 4)
        assert graph.components.max() == 1
        assert ConvexClustering().fit(X, graph=graph).n_clusters_ >= 2
        model = ConvexClustering(n_clusters=2).fit(X, graph=graph)
        assert same_partition(model.labels_, graph.components)
        with pytest.raises(ValueError, match="dendrogram_: the graph has 2 connected components"):
            _ = model.dendrogram_
        with pytest.warns(ConvergenceWarning, match="took 2: the graph has 2 connected components"):
            ConvexClustering(n_clusters=1).fit(X, graph=graph)

    def test_nothing_to_cluster(self):
        for X in ([[1.0, 2.0]], [[3.0]] * 5, [[0.1, -7.3]] * 30, [[0.1], [0.1 + 2e-16]]):
            for options in ({}, {"lam": 2.0}, {"n_clusters": 1}):
                model = ConvexClustering(**options).fit(X)
                assert model.labels_.tolist() == [0] * len(X)
                assert model.dendrogram_.shape == (len(X) - 1, 4)


class TestPath:
    @pytest.fixture(scope="class")
    @staticmethod
    def model():
        X, _ = blobs(40)
        return ConvexClustering(n_clusters=3, rtol=1e-9).fit(X)

    def test_from_one_cluster_to_single_points(self, model):
        path = model.clusterpath_
        assert path.n_clusters[0] == 1
        assert path.n_clusters[-1] == 40
        assert (np.diff(path.lams) < 0).all()
        assert path.lams[0] == pytest.approx(lambda_max(model.problem_), rel=1e-3)
        assert path.rel_gaps.max() <= 1e-9
        assert len(path) <= 51
        assert model.lam_ in path.lams
        assert path.w.shape == (len(path), 40, 2)

    def test_clusters_by_their_number(self, model):
        path = model.clusterpath_
        assert same_partition(path.clusters(3), model.labels_)
        assert path.clusters(40).tolist() == list(range(40))
        assert np.bincount(path.clusters(2, min_cluster_size=9)).min() >= 9
        with pytest.raises(ValueError, match=r"n_clusters: one of .* 1, 2, 3.* got 41"):
            path.clusters(41)

    def test_is_refined_where_clusters_change(self):
        X, _ = blobs(40)
        coarse = ConvexClustering(n_clusters=1, n_lams=12).fit(X).clusterpath_
        fine = ConvexClustering(n_clusters=1, n_lams=120).fit(X).clusterpath_
        assert len(coarse) <= 12 < len(fine) <= 120

        assert np.diff(fine.n_clusters).max() < np.diff(coarse.n_clusters).max()

    def test_dendrogram(self, model):
        Z = model.dendrogram_
        assert Z.shape == (39, 4)
        assert is_valid_linkage(Z, throw=True)
        assert Z[-1, 3] == 40
        assert (np.diff(Z[:, 2]) >= 0).all()
        assert set(Z[:, 2]) <= set(model.clusterpath_.lams)
        # Cut at any lambda of the path it is the partition there.
        for lam, labels in zip(model.clusterpath_.lams, model.clusterpath_.labels, strict=True):
            assert same_partition(fcluster(Z, lam, "distance"), labels)
        assert len(dendrogram(Z, no_plot=True)["leaves"]) == 40

    def test_with_lam_it_is_computed_when_asked_for(self):
        X, _ = blobs(30)
        model = ConvexClustering(lam=3.0).fit(X)
        assert model.clusterpath_.n_clusters[0] == 1
        other = ConvexClustering(n_clusters=2).fit(X)
        np.testing.assert_allclose(model.dendrogram_, other.dendrogram_, rtol=1e-9)
        assert (model.lam_, model.problem_.lam) == (3.0, 3.0)

    def test_gaps_that_are_not_met(self):
        X, _ = blobs(30)
        with pytest.warns(ConvergenceWarning, match="after 1 iterations the relative") as seen:
            model = ConvexClustering(lam=5.0, max_iter=1, n_lams=5).fit(X)
        assert not model.converged_
        with pytest.warns(ConvergenceWarning, match="of the path have larger gaps than") as more:
            _ = model.clusterpath_
        assert {warning.filename for warning in [*seen, *more]} == {__file__}

    def test_pictures(self, model):
        from gtvcvx.plotting import plot_clusterpath, plot_dendrogram

        assert plot_dendrogram(model.clusterpath_).get_title().startswith("fusions of 40 nodes")
        assert plot_clusterpath(model.clusterpath_, at=model.lam_) is not None

    def test_a_path_that_splits_says_so(self):
        """Weights that are no decreasing function of the distance may split clusters again."""
        model = splitting()
        with pytest.warns(UserWarning, match="the path is no tree, some clusters split again"):
            Z = model.dendrogram_
        assert is_valid_linkage(Z, throw=True)


def splitting():
    """Search small random graphs for one whose clusters split as lambda grows."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 1))
        edges = [(i, j) for i in range(6) for j in range(i) if rng.random() < 0.6]
        edges += [(i, i + 1) for i in range(5)]
        graph = gtv.EmpiricalGraph(6, edges, rng.choice([0.01, 1.0, 10.0], len(edges)))
        model = ConvexClustering(n_clusters=1, penalty="l1", n_lams=40).fit(X, graph=graph)
        if not model.clusterpath_.nested:
            return model
    raise AssertionError("no path splits")


class TestLinkage:
    def test_several_fusions_at_one_height(self):
        labels = np.array([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2], [0, 0, 0, 0, 0]])
        Z = linkage(np.array([1.0, 2.0, 5.0]), labels)
        assert Z.tolist() == [
            [0.0, 1.0, 2.0, 2.0],
            [2.0, 5.0, 2.0, 3.0],
            [3.0, 4.0, 5.0, 2.0],
            [6.0, 7.0, 5.0, 5.0],
        ]

    @settings(max_examples=50)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 6))
    def test_cut_at_any_height(self, seed, n, k):
        """Partitions that coarsen at random, to one cluster in the end."""
        rng = np.random.default_rng(seed)
        labels = [np.arange(n)]
        for _ in range(k):
            coarser = rng.integers(0, labels[-1].max() + 1, labels[-1].max() + 1)
            labels.append(np.unique(coarser[labels[-1]], return_inverse=True)[1])
        labels.append(np.zeros(n, dtype=int))
        lams = np.cumsum(rng.uniform(0.5, 1.5, len(labels)))
        Z = linkage(lams, np.array(labels))
        assert Z.shape == (n - 1, 4)
        if n > 1:
            assert is_valid_linkage(Z, throw=True)
            for lam, row in zip(lams, labels, strict=True):
                assert same_partition(fcluster(Z, lam, "distance"), row)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lam": 1.0, "n_clusters": 2}, ValueError, "n_clusters: expected only where lam is not"),
        ({"lam": 0.0}, ValueError, "lam: a positive finite number is expected, got 0.0"),
        ({"lam": "1"}, TypeError, "lam: a number is expected"),
        ({"n_clusters": 0}, ValueError, "n_clusters: an integer from 1 to 9, .* got 0"),
        ({"n_clusters": 10}, ValueError, "n_clusters: an integer from 1 to 9, .* got 10"),
        ({"n_clusters": 2.0}, TypeError, "n_clusters: an integer is expected, got 2.0"),
        ({"min_cluster_size": 0}, ValueError, "min_cluster_size: at least 1 is expected, got 0"),
        ({"min_cluster_size": 2.5}, TypeError, "min_cluster_size: an integer is expected, got 2.5"),
        ({"bandwidth": "global"}, TypeError, "bandwidth: a number is expected, got 'global'"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors: an integer of at least 1 .* got 0"),
        ({"n_neighbors": "5"}, TypeError, "n_neighbors: an integer is expected, got '5'"),
        ({"n_lams": 1}, ValueError, "n_lams: at least 2 is expected, got 1"),
        ({"n_lams": 4.5}, TypeError, "n_lams: an integer is expected, got 4.5"),
        ({"penalty": "squared"}, ValueError, "penalty: a norm is expected for a path of clusters"),
        ({"weights": "kernel"}, ValueError, "weights: one of"),
        ({"floor": 2.0}, ValueError, "floor: a number in"),
        ({"rtol": -1.0}, ValueError, "rtol: a positive number is expected"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        ConvexClustering(**options).fit(np.arange(18.0).reshape(9, 2))


def test_bad_graph():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=r"graph: one node for each of the 3 rows of X .* got 2"):
        ConvexClustering().fit(X, graph=gtv.EmpiricalGraph(2, []))
    with pytest.raises(TypeError, match="graph: an EmpiricalGraph is expected, got list"):
        ConvexClustering().fit(X, graph=[(0, 1)])
