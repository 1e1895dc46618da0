"""Convex clustering, the number unknown: one cluster where there are no more, and where there are.

Seeds are none with which the rule was chosen.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from gtvcvx.estimators import ConvexClustering
from gtvcvx.estimators._grouping import Grouping
from gtvcvx.estimators._necks import LEVELS, RESTART, STEPS, Necks
from gtvcvx.estimators._point_graph import point_graph

SEED = 8200
ONE = "ConvexClustering: no clusters stand out with 90% of the points"


def ring(rng, n):
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0.0, 0.2, (n, 2))


NOISE = {
    "square": lambda rng: rng.uniform(0.0, 1.0, (200, 2)),
    "large square": lambda rng: rng.uniform(0.0, 1.0, (1000, 2)),
    "cube": lambda rng: rng.uniform(0.0, 1.0, (300, 3)),
    "line": lambda rng: rng.uniform(0.0, 1.0, (300, 1)),
    "blob": lambda rng: rng.standard_normal((200, 2)),
    "blob on a line": lambda rng: rng.standard_normal((300, 1)),
    "skewed": lambda rng: np.exp(0.7 * rng.standard_normal((200, 2))),
    "ring": lambda rng: ring(rng, 300),
    "few": lambda rng: rng.uniform(0.0, 1.0, (30, 2)),
}
STRUCTURE = {
    "moons": lambda seed: make_moons(300, noise=0.08, random_state=seed),
    "rings": lambda seed: make_circles(300, noise=0.05, factor=0.4, random_state=seed),
    "blobs": lambda seed: make_blobs(
        [90, 60, 40, 30],
        centers=[[0, 0], [8, 0], [0, 8], [9, 9]],
        cluster_std=[1.2, 0.6, 1, 0.5],
        random_state=seed,
    ),
    "high": lambda seed: make_blobs(200, 20, centers=4, cluster_std=2.0, random_state=seed),
    "line": lambda seed: make_blobs(200, centers=[[0], [6]], random_state=seed),
    "few": lambda seed: make_blobs(12, centers=[[0, 0], [20, 0]], random_state=seed),
}


def two_rows():
    """Two blobs of 60 points that touch, and the graph of their points."""
    X, y = make_blobs(120, centers=[[0, 0], [5, 0]], random_state=SEED)
    return X, y, point_graph(X, 10, weights="gaussian", bandwidth="local", floor=0.01)


class TestNumber:
    @pytest.mark.parametrize("kind", NOISE)
    def test_one_where_there_are_no_more(self, kind):
        X = NOISE[kind](np.random.default_rng(SEED))
        with pytest.warns(ConvergenceWarning, match=ONE):
            model = ConvexClustering().fit(X)
        assert model.n_clusters_ == 1
        assert not model.labels_.any()
        assert not model.converged_

    @pytest.mark.parametrize("kind", STRUCTURE)
    def test_structure_is_found(self, kind):
        X, y = STRUCTURE[kind](SEED + 2)
        model = ConvexClustering().fit(X)
        assert model.n_clusters_ == len(model.cluster_centers_) == y.max() + 1
        assert adjusted_rand_score(y, model.labels_) > 0.95
        assert model.converged_

    def test_unions(self):
        """An outer ring that broke into arcs is joined again; centres are those of the unions."""
        X, y = make_circles(300, noise=0.05, factor=0.4, random_state=SEED + 1)
        model = ConvexClustering(noise=True).fit(X)
        inside = ~model.outliers_
        assert adjusted_rand_score(y[inside], model.labels_[inside]) == 1.0
        np.testing.assert_array_equal(model.labels_ == -1, model.outliers_)
        assert len(set(model.fused_[inside].tolist())) > model.n_clusters_ == 2
        np.testing.assert_allclose(
            model.cluster_centers_,
            [model.solution_.w[model.labels_ == c].mean(axis=0) for c in (0, 1)],
        )
        joined = ConvexClustering().fit(X)
        assert adjusted_rand_score(y, joined.labels_) == 1.0

    @pytest.mark.parametrize("data", [NOISE["square"], NOISE["blob on a line"]])
    def test_a_given_number_is_found_all_the_same(self, data):
        model = ConvexClustering(n_clusters=3).fit(data(np.random.default_rng(SEED)))
        assert model.n_clusters_ == 3
        assert model.converged_

    def test_clusters_below_a_given_size_are_none(self):
        X, _, _ = two_rows()
        with pytest.warns(ConvergenceWarning, match="min_cluster_size=70; took 1"):
            model = ConvexClustering(min_cluster_size=70).fit(X)
        assert np.bincount(model.labels_[~model.outliers_])[0] >= 70
        assert model.n_clusters_ == 1

    def test_a_given_graph_says_itself_what_is_near(self, monkeypatch):
        X, y, graph = two_rows()
        monkeypatch.setattr("gtvcvx.estimators._clustering.Necks", None)
        model = ConvexClustering().fit(X, graph=graph)
        assert adjusted_rand_score(y, model.labels_) > 0.9


class TestInvariance:
    @pytest.mark.parametrize("data", ["square", "blob on a line", "rings", "blobs", "high"])
    def test_order_unit_and_origin(self, data):
        rng = np.random.default_rng(SEED + 1)
        X = NOISE[data](rng) if data in NOISE else STRUCTURE[data](SEED + 1)[0]
        order = rng.permutation(len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = ConvexClustering().fit_predict(X)
            again = ConvexClustering().fit_predict(X[order])
            moved = ConvexClustering().fit_predict(1e-3 * X + 5.0)
        assert adjusted_rand_score(labels[order], again) == 1.0
        assert adjusted_rand_score(labels, moved) == 1.0
        assert (labels.max() == 0) == (data in NOISE)

    def test_equal_points_are_a_mass(self):
        X, y, graph = two_rows()
        one = Necks(X, graph)
        thrice = Necks(np.repeat(X, 3, axis=0), point_graph(np.repeat(X, 3, axis=0), 10))
        neck, body, section = one.measured(y == 0)
        assert thrice.dimension == pytest.approx(one.dimension)
        assert thrice.measured(np.repeat(y == 0, 3)) == (9 * neck, 9 * body, 3 * section)


class TestNecks:
    def test_against_counting(self):
        X, y, graph = two_rows()
        n, k = len(X), 10  # of 120 points
        distance = np.linalg.norm(X[:, None] - X[None], axis=2)
        np.fill_diagonal(distance, np.inf)
        near = np.zeros((n, n), dtype=bool)
        np.put_along_axis(near, distance.argsort(axis=1)[:, :k], True, axis=1)
        near |= near.T
        inside = y == 1
        level = start = np.where(inside, 1.0, -1.0)
        for _ in range(STEPS):
            level = (near @ level / near.sum(axis=1) + RESTART * start) / (1.0 + RESTART)
        body, section = 0, 0
        for bound in np.quantile(level[inside], LEVELS):
            above = inside & (level >= bound)
            across = near & (above[:, None] & ~above[None])
            if across.sum() > body:
                body, section = across.sum(), (across.any(axis=0) | across.any(axis=1)).sum()
        necks = Necks(X, graph)
        assert necks.measured(inside) == (near[inside][:, ~inside].sum(), body, section)
        far = np.sort(distance, axis=1)[:, :k]
        logs = np.log(far[:, -1:] / far[:, :-1])
        assert necks.dimension == pytest.approx((k - 2) / (k - 1) / logs.mean())
        assert 1.5 < necks.dimension < 2.5

    def test_joins_what_does_not_stand_out(self):
        X, y, graph = two_rows()
        necks = Necks(X, graph)
        halves = np.where(y == 1, 2, X[:, 1] > 0.0)
        assert adjusted_rand_score(necks.standing(halves), y) == 1.0
        assert not necks.standing((X[:, 1] > 0.0).astype(np.int64)).any()

    def test_few_points_far_apart(self):
        """Too few for a neck: what counts is the gap, 1.5 times the longest step."""
        for gap, number in ((1.4, 1), (1.6, 2)):
            X = np.concatenate([np.arange(5.0), 4.0 + gap + np.arange(5.0)])[:, None]
            standing = Necks(X, point_graph(X, 10)).standing(np.repeat([0, 1], 5))
            assert standing.max() + 1 == number

    def test_unions_of_outliers_alone(self):
        """A union without a cluster in the last solution is kept: its points are the cluster."""
        w = np.array([[0.0], [0.0], [0.0], [5.0], [6.0]])
        groups = Grouping.of(np.array([0, 0, 0, 1, 2]), w, 3, False, np.array([0, 0, 0, 1, 1]))
        assert groups.labels.tolist() == [0, 0, 0, 1, 1]
        assert groups.centres.tolist() == [[0.0], [5.5]]


class TestOddData:
    def test_points_too_close_for_distances(self):
        with pytest.raises(ValueError, match="X: points are less than 1e-150 apart, too close"):
            ConvexClustering().fit([[0.0], [1e-200], [3e-200]])

    def test_points_that_differ_by_nothing(self):
        """Their distance is 0 in double precision; with warnings as errors."""
        X = np.concatenate(
            [np.zeros((6, 1)), np.full((6, 1), 1e-200), np.arange(1.0, 30.0)[:, None]]
        )
        necks = Necks(X, point_graph(X, 10))
        assert necks.dimension == pytest.approx(1.0, abs=0.2)
        assert not necks.standing((X[:, 0] > 15.0).astype(np.int64)).any()

    @pytest.mark.parametrize("name", ["standardize", "noise"])
    def test_switches(self, name):
        with pytest.raises(TypeError, match=f"{name}: True or False is expected, got 'no'"):
            ConvexClustering(**{name: "no"}).fit([[0.0], [1.0]])
