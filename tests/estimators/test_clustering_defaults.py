"""Convex clustering by default: real data, outliers, units, orders, repeated points, odd data."""

from __future__ import annotations

import itertools
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from gtvcvx.estimators import ConvexClustering
from gtvcvx.estimators._grouping import Counts, Grouping, most_between
from gtvcvx.estimators._point_graph import point_graph, spread_of
from gtvcvx.estimators._search import Search, Wanted
from gtvcvx.estimators._solving import Solving
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.graph_construction import knn_graph

ONE = "ConvexClustering: no clusters stand out with 90% of the points"
# Not among the seeds that the defaults were chosen with, 0 to 4.
SEED = 7104


def three_groups(seed=SEED, n=120, std=0.7):
    X, y = make_blobs(
        n, centers=[[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], cluster_std=std, random_state=seed
    )
    return X, y


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


class TestRealData:
    """At least as near to the known classes as k-means and Ward, where the example says so."""

    @pytest.mark.parametrize(
        ("load", "prepare"),
        [(load_wine, scale), (load_wine, None), (load_iris, None), (load_breast_cancer, scale)],
    )
    def test_beside_kmeans_and_ward(self, load, prepare):
        X, y = load(return_X_y=True)
        X = X if prepare is None else prepare(X)
        k = len(set(y))
        model = ConvexClustering(n_clusters=k).fit(X)
        found = adjusted_rand_score(y, model.labels_)
        kmeans = [
            adjusted_rand_score(y, KMeans(k, random_state=seed).fit_predict(X))
            for seed in range(20)
        ]
        ward = adjusted_rand_score(y, AgglomerativeClustering(k).fit_predict(X))
        assert found >= max(np.mean(kmeans), ward)
        assert model.converged_
        assert model.n_clusters_ == k
        assert model.dual_gap_ <= 1e-6 * model.solution_.value

    def test_standardized(self):
        X, _ = load_wine(return_X_y=True)
        model = ConvexClustering(n_clusters=3, standardize=True).fit(X)
        assert same(model.labels_, ConvexClustering(n_clusters=3).fit_predict(scale(X)))
        units = 10.0 ** np.arange(13)
        again = ConvexClustering(n_clusters=3, standardize=True).fit(X * units + units)
        assert same(model.labels_, again.labels_)
        # Centres are told in the units of X, and lie between the means of the clusters.
        assert (model.cluster_centers_ >= X.min(axis=0)).all()
        assert (model.cluster_centers_ <= X.max(axis=0)).all()
        np.testing.assert_allclose(
            again.cluster_centers_, model.cluster_centers_ * units + units, rtol=1e-4
        )

    def test_number_on_its_own(self):
        X, y = load_wine(return_X_y=True)
        model = ConvexClustering(standardize=True).fit(X)
        assert model.n_clusters_ == 3
        assert adjusted_rand_score(y, model.labels_) > 0.85
        X, y = three_groups()
        assert same(ConvexClustering().fit_predict(X), y)


class TestOutliers:
    """Points so far away that they stay alone longer than the groups; nearer ones fuse early."""

    @pytest.fixture(scope="class")
    @staticmethod
    def data():
        X, y = three_groups()
        angle = np.arange(6)
        return np.concatenate([X, 3e3 * np.column_stack([np.cos(angle), np.sin(angle)])]), y

    def test_do_not_use_up_the_number(self, data):
        X, y = data
        model = ConvexClustering(n_clusters=3).fit(X)
        assert model.n_clusters_ == 3
        assert set(model.labels_.tolist()) == {0, 1, 2}
        assert adjusted_rand_score(y, model.labels_[: len(y)]) > 0.95
        assert model.min_cluster_size_ == 126 // 15
        assert 0 < model.outliers_.sum() <= 12
        # They join the cluster whose centre is nearest to their own.
        to = cdist(model.solution_.w[model.outliers_], model.cluster_centers_)
        np.testing.assert_array_equal(model.labels_[model.outliers_], to.argmin(axis=1))

    def test_as_noise(self, data):
        X, _ = data
        joined = ConvexClustering(n_clusters=3).fit(X)
        model = ConvexClustering(n_clusters=3, noise=True).fit(X)
        np.testing.assert_array_equal(model.labels_ == -1, model.outliers_)
        np.testing.assert_array_equal(model.outliers_, joined.outliers_)
        np.testing.assert_array_equal(
            model.labels_[~model.outliers_], joined.labels_[~model.outliers_]
        )

    def test_size_one_counts_all(self, data):
        X, _ = data
        model = ConvexClustering(n_clusters=9, min_cluster_size=1).fit(X)
        assert not model.outliers_.any()
        assert sorted(np.bincount(model.labels_).tolist()) == [1] * 6 + [40] * 3

    def test_with_lam_only_where_asked_for(self, data):
        X, _ = data
        model = ConvexClustering(lam=3.0).fit(X)
        np.testing.assert_array_equal(model.labels_, model.fused_)
        some = ConvexClustering(lam=3.0, min_cluster_size=10, noise=True).fit(X)
        np.testing.assert_array_equal(some.fused_, model.fused_)
        assert some.n_clusters_ == (np.bincount(model.fused_) >= 10).sum()
        # No cluster is large enough: the largest ones are.
        least = ConvexClustering(lam=3.0, min_cluster_size=10**6).fit(X)
        assert least.n_clusters_ == np.bincount(np.bincount(model.fused_))[-1]

    def test_the_default_gives_way_the_given_does_not(self):
        X = np.concatenate([np.linspace(0.0, 1.0, 40)[:, None], [[9.0], [9.1]]])
        model = ConvexClustering(n_clusters=2).fit(X)
        assert model.n_clusters_ == 2
        assert model.converged_
        with pytest.warns(ConvergenceWarning, match="lower min_cluster_size=40, or change n_nei"):
            model = ConvexClustering(n_clusters=2, min_cluster_size=40).fit(X)
        assert model.n_clusters_ == 1
        assert not model.converged_

    def test_a_cluster_just_below_the_default_size(self, monkeypatch):
        """17 points, where 18 are asked for: smaller sizes come before numbers of brief life."""
        X, y = make_blobs(
            [200, 60, 20], centers=[[0, 0], [6, 0], [0, 6]], cluster_std=1.2, random_state=1016
        )
        model = ConvexClustering(n_clusters=3).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9
        assert model.min_cluster_size_ == 9
        monkeypatch.setattr("gtvcvx.estimators._search.BRIEF", 1.001)
        worse = ConvexClustering(n_clusters=3).fit(X)
        assert adjusted_rand_score(y, worse.labels_) < 0.6

    def test_remainders_are_no_clusters(self):
        """Of rings that broke, two arcs are left where most points are alone."""
        X, _ = make_circles(300, noise=0.05, factor=0.4, random_state=2003)
        with pytest.warns(ConvergenceWarning, match="n_clusters=2 clusters; took"):
            model = ConvexClustering(n_clusters=2).fit(X)
        assert 2 * model.outliers_.sum() <= 300


class TestInvariance:
    @pytest.mark.parametrize("seed", [SEED, SEED + 1])
    @pytest.mark.parametrize("k", [3, None])
    def test_order_unit_and_origin(self, seed, k):
        X, _ = make_moons(150, noise=0.06, random_state=seed)
        model = ConvexClustering(n_clusters=k).fit(X)
        assert model.n_clusters_ == (k or 2)
        order = np.random.default_rng(seed).permutation(len(X))
        assert same(ConvexClustering(n_clusters=k).fit_predict(X[order]), model.labels_[order])
        for factor, shift in ((1e3, 0.0), (1e-6, 0.0), (2.0**10, 2.0**12)):
            other = ConvexClustering(n_clusters=k).fit(factor * X + shift)
            assert same(other.labels_, model.labels_)
            assert other.lam_ == pytest.approx(model.lam_)

    @pytest.mark.parametrize("seed", range(SEED, SEED + 3))
    def test_equal_points_have_one_label(self, seed):
        rng = np.random.default_rng(seed)
        X, _ = make_moons(40, noise=0.15, random_state=seed)
        of = rng.integers(0, len(X), 150)
        for k in (2, 5, 17):
            labels = ConvexClustering(n_clusters=k, min_cluster_size=1).fit_predict(X[of])
            for i in range(len(X)):
                assert len(set(labels[of == i].tolist())) <= 1

    def test_equal_points_are_a_weight(self):
        """A point that is there three times pulls three times."""
        X = np.array([[0.0], [1.0], [3.0]])
        graph = point_graph(X[[0, 0, 0, 1, 2]], 1, weights="binary")
        assert graph.edges.tolist() == [[0, 1], [0, 2], [0, 3], [3, 4]]
        model = ConvexClustering(lam=0.5, n_neighbors=1, weights="binary", rtol=1e-10)
        w = model.fit(X[[0, 0, 0, 1, 2]]).solution_.w[:, 0]
        pull = 0.5 * model.graph_.weights[2]
        np.testing.assert_allclose(w[:3], pull / 6.0, atol=1e-6)


class TestOddData:
    @pytest.mark.parametrize("n", [1, 2, 3, 10])
    def test_few_points(self, n):
        X = np.random.default_rng(SEED).standard_normal((n, 3))
        for k in range(1, n + 1):
            model = ConvexClustering(n_clusters=k).fit(X)
            assert model.n_clusters_ == k == len(set(model.labels_.tolist()))
        # Of one point there is one cluster, and nothing else to look for.
        unsure = pytest.warns(ConvergenceWarning, match=ONE) if n > 1 else nullcontext()
        with unsure:
            model = ConvexClustering().fit(X)
        assert model.n_clusters_ == 1
        assert model.converged_ == (n == 1)

    def test_fewer_distinct_points_than_clusters(self):
        X = np.repeat([[0.0, 1.0], [2.0, 5.0]], 6, axis=0)
        with pytest.warns(ConvergenceWarning, match="took 2: X has 2 distinct points"):
            model = ConvexClustering(n_clusters=4).fit(X)
        assert same(model.labels_, np.repeat([0, 1], 6))

    def test_constant_columns(self):
        X, y = three_groups()
        wide = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
        for standardize in (False, True):
            model = ConvexClustering(n_clusters=3, standardize=standardize).fit(wide)
            assert same(model.labels_, y)
            np.testing.assert_allclose(model.cluster_centers_[:, 0], 7.0)

    def test_a_point_very_far_away(self):
        X, y = three_groups()
        X = np.concatenate([X, [[1e6, -1e6]]])
        model = ConvexClustering(n_clusters=3).fit(X)
        assert same(model.labels_[:-1], y)
        assert model.outliers_.nonzero()[0].tolist() == [len(y)]

    def test_one_cloud(self):
        """There is no cluster but one; as many as wanted are found all the same."""
        X = np.random.default_rng(SEED).standard_normal((300, 3))
        model = ConvexClustering(n_clusters=3).fit(X)
        assert np.bincount(model.labels_).shape == (3,)
        with pytest.warns(ConvergenceWarning, match=ONE) as caught:
            model = ConvexClustering().fit(X)
        assert model.n_clusters_ == 1
        assert not model.converged_
        message = str(caught[0].message)
        assert "at least min_cluster_size=15; took 1: give n_clusters, or lower min_c" in message
        assert caught[0].filename == __file__

    def test_components_are_a_stable_number(self):
        """Each falls apart into nothing, but they never fuse: no warning."""
        X = np.random.default_rng(SEED).standard_normal((120, 3))
        near = knn_graph(X[:60], 10).edges
        graph = EmpiricalGraph(120, np.concatenate([near, 60 + near]))
        model = ConvexClustering().fit(X, graph=graph)
        assert model.n_clusters_ == 2
        assert model.converged_

    def test_many_columns(self):
        rng = np.random.default_rng(SEED)
        y = np.repeat([0, 1, 2], 30)
        X = rng.standard_normal((90, 64)) + 2.0 * rng.standard_normal((3, 64))[y]
        assert same(ConvexClustering(n_clusters=3).fit_predict(X), y)

    def test_missing_values(self):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            ConvexClustering().fit([[0.0], [np.nan], [1.0]])

    def test_standardize_refuses_what_it_cannot(self):
        with (
            np.errstate(over="ignore", invalid="ignore"),
            pytest.raises(ValueError, match="X: the values of a column are too large"),
        ):
            ConvexClustering(standardize=True).fit([[1e300], [-1e300], [0.0]])

    def test_time_limit(self):
        X, _ = three_groups()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = ConvexClustering(n_clusters=3, time_limit=1e-3).fit(X)
        assert model.labels_.shape == (120,)

    @pytest.mark.parametrize("n_clusters", [None, 3])
    def test_nothing_is_looked_for_after_the_time_limit(self, n_clusters, monkeypatch):
        """Each solve takes its setup, however little time it is given."""
        X, _ = three_groups()
        solve, calls = Solving.solve, []

        def counted(self, problem, warm_start=None):
            calls.append(problem.lam)
            return solve(self, problem, warm_start)

        monkeypatch.setattr(Solving, "solve", counted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ConvexClustering(n_clusters=n_clusters, time_limit=1e-9).fit(X)
        assert len(calls) == 2  # one to look, one to the tolerance


class TestPointGraph:
    def test_weights_are_local_and_without_unit(self):
        X, _ = three_groups(std=1.0)
        graph = point_graph(X, 10, weights="gaussian", bandwidth="local", floor=0.01)
        plain = knn_graph(X, 10, bandwidth="local", floor=0.01, connect=True)
        np.testing.assert_allclose(
            graph.weights, plain.weights * spread_of(X) * 120 / plain.weights.sum()
        )
        again = point_graph(50.0 * X, 10, weights="gaussian", bandwidth="local", floor=0.01)
        np.testing.assert_allclose(again.weights, 50.0 * graph.weights)

    def test_spread(self):
        X = np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, -4.0], [1e9, 0.0], [0.0, 0.0]])
        assert spread_of(X) == 5.0
        assert spread_of(np.full((4, 2), 0.1)) == 0.0
        assert spread_of(np.array([[1.0], [1.0 + 1e-12]])) == 0.0


class TestCounts:
    def test_bounds_hold_for_coarser_and_finer_partitions(self):
        rng = np.random.default_rng(SEED)
        for _ in range(200):
            fine = np.unique(rng.integers(0, 12, 30), return_inverse=True)[1]
            coarse = np.unique(rng.integers(0, 5, fine.max() + 1)[fine], return_inverse=True)[1]
            least = int(rng.integers(1, 8))
            below, above = Counts.of(fine, least), Counts.of(coarse, least)
            assert above.clusters <= below.above
            assert below.clusters <= above.below
            assert below.outside >= above.outside

    def test_grouping(self):
        w = np.array([[0.0], [0.0], [5.0], [5.0], [4.0], [0.5]])
        groups = Grouping.of(np.array([0, 0, 1, 1, 2, 3]), w, 2, True)
        assert groups.labels.tolist() == [0, 0, 1, 1, 1, 0]
        assert groups.outliers.tolist() == [False] * 4 + [True] * 2
        assert groups.centres.tolist() == [[0.0], [5.0]]
        assert (
            Grouping.of(np.array([0, 0, 1, 1, 2, 3]), w, 2, False).labels[4:].tolist() == [-1] * 2
        )

    def test_sizes_that_are_looked_for(self):
        assert Wanted.of(178, 3, None).sizes == [11, 5, 2, 1]
        assert Wanted.of(178, 3, 20).sizes == [20]
        assert [Wanted.of(n, None, None).sizes[0] for n in (1, 2, 9, 30, 60, 1000)] == [
            *(1, 2, 2),
            *(3, 5, 50),
        ]


class TestSearch:
    """Against every lambda of a fine grid."""

    # Of the second, four clusters of four points are between lambda 1.32 and 1.57 alone, fewer on
    # both sides; numbers of the third rise and fall, too.
    @pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
    def test_finds_every_number_that_is_there(self, seed):
        X, _ = make_blobs(30, centers=3, cluster_std=1.5, random_state=seed)
        model = ConvexClustering(lam=1.0, rtol=1e-8).fit(X)
        partitions = {
            lam: model.set_params(lam=lam).fit(X).fused_ for lam in np.geomspace(0.3, 100.0, 20)
        }
        model.set_params(lam=None)
        for least in (1, 4):
            numbers = {Counts.of(found, least).clusters for found in partitions.values()}
            for k in numbers - {0}:
                found = model.set_params(n_clusters=k, min_cluster_size=least).fit(X)
                assert found.n_clusters_ == k

    @pytest.mark.parametrize("least", [1, 2, 3])
    def test_partitions_between_two_have_no_more_clusters(self, least):
        """All of them are tried: the bound holds, and without remainders it is reached."""
        rng = np.random.default_rng(SEED)
        for _ in range(6):
            fine = np.sort(rng.integers(0, 5, 9))
            fine = np.unique(fine, return_inverse=True)[1]
            coarse = rng.integers(0, 2, fine.max() + 1)
            coarse = np.unique(coarse, return_inverse=True)[1]
            between = [
                np.unique(2 * np.array(joined) + coarse, return_inverse=True)[1][fine]
                for joined in itertools.product(range(len(coarse)), repeat=len(coarse))
            ]
            most = max(Counts.of(partition, least).clusters for partition in between)
            bound = most_between(coarse[fine], fine, least)
            assert most <= bound <= Counts.of(coarse[fine], least).below
            assert bound <= Counts.of(fine, least).above
            assert bound == most or least > 1

    def test_gives_up(self, monkeypatch):
        """Of all that was seen, for any least size, the nearest is taken."""
        monkeypatch.setattr("gtvcvx.estimators._search.MOST_SOLVES", 5)
        seen = []
        visit = Search._visit
        monkeypatch.setattr(
            Search, "_visit", lambda self, lam: (seen.append(lam), visit(self, lam))
        )
        with pytest.warns(ConvergenceWarning, match="found no lambda with n_clusters=29"):
            ConvexClustering(n_clusters=29, rtol=1e-4).fit(three_groups(n=60)[0])
        assert len(seen) == 5
