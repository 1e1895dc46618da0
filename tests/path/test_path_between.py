"""Clusterings of a path by their number, and solutions between its values of lambda."""

from __future__ import annotations

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.path import LambdaPath, lambda_path


def problem_of(penalty="l2", loss="point"):
    rng = np.random.default_rng(1)
    places = rng.random((40, 2))
    graph = generators.geometric(places, 5)
    signal = np.where(places[:, :1] > 0.5, 1.0, -1.0) + 0.3 * rng.standard_normal((40, 2))
    if loss == "point":
        return gtv.GTVProblem(graph, gtv.PointLoss.stack(signal), penalty)
    X = rng.standard_normal((40, 3, 2))
    y = np.einsum("nij,nj->ni", X, signal)
    if loss == "logistic":
        y = (y > 0).astype(float)
        return gtv.GTVProblem(graph, gtv.LogisticLoss.stack(X, y, ridge=0.1), penalty)
    return gtv.GTVProblem(graph, gtv.HuberLoss.stack(X, y, delta=0.5), penalty)


@pytest.fixture(scope="module")
def path():
    return lambda_path(problem_of(), n_lams=12)


class TestClusters:
    def test_each_number_that_occurs(self, path):
        for k in set(path.n_clusters.tolist()):
            first = path.n_clusters.tolist().index(k)  # of the largest lambda
            assert np.array_equal(path.clusters(k), path[first].clusters())

    def test_the_nearest_number(self, path):
        counts = path.n_clusters
        absent = sorted(set(range(1, 50)) - set(counts.tolist()))
        assert absent
        for k in absent:
            found = path.clusters(k).max() + 1
            assert abs(found - k) == np.abs(counts - k).min()
            assert not (found > k and 2 * k - found in counts)  # of two the smaller one

    @pytest.mark.parametrize("k", [0, -1, 2.5, "2", True])
    def test_what_is_no_number_of_clusters(self, path, k):
        with pytest.raises(ValueError, match="k: a positive integer is expected"):
            path.clusters(k)

    def test_an_empty_path(self):
        empty = LambdaPath(np.empty(0), [], np.ones(1), "interrupted")
        with pytest.raises(ValueError, match="the path is empty"):
            empty.clusters(1)
        with pytest.raises(ValueError, match="lam: a value within the path, nothing"):
            empty.at(1.0)


class TestAt:
    @pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
    @pytest.mark.parametrize("loss", ["point", "logistic", "huber"])
    def test_gaps_are_valid(self, penalty, loss):
        problem = problem_of(penalty, loss)
        path = lambda_path(problem, [0.3, 0.2, 0.1])
        for lam in (0.29, 0.25, 0.15):
            found = path.at(lam)
            model = problem.with_lam(lam)
            exact = model.solve("CLARABEL", rtol=1e-9)
            assert found.solver == "interpolation"
            assert found.value == pytest.approx(model.value(found.w), rel=1e-12)
            assert all(found.value <= model.value(w) for w in path.w)
            assert exact.value <= found.value + 1e-8
            assert found.dual_value <= exact.value + 1e-8
            assert found.rel_gap <= 0.1
            assert found.status == ("optimal" if found.rel_gap <= 1e-6 else "optimal_inaccurate")
            polished = path.at(lam, polish=True, rtol=1e-7)
            assert polished.rel_gap <= 1e-7
            assert polished.value == pytest.approx(exact.value, rel=2e-7, abs=2e-7)

    def test_between_events_interpolation_is_exact(self):
        """Two nodes that come together: w is affine in lambda until they meet."""
        graph = gtv.EmpiricalGraph(2, [[0, 1]])
        problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0]]))
        found = lambda_path(problem, [0.8, 0.2], rtol=1e-12).at(0.5)
        np.testing.assert_allclose(found.w, [[0.25], [0.75]], atol=1e-9)
        assert found.gap <= 1e-9

    def test_solutions_of_the_path_itself(self, path):
        for lam, solution in zip(path.lams, path, strict=True):
            assert path.at(lam) is solution
            assert path.at(lam, polish=True) is solution

    def test_outside(self, path):
        for lam in (1.01 * path.lams[0], 0.99 * path.lams[-1], -1.0, np.nan):
            with pytest.raises(ValueError, match="lam: a value within the path"):
                path.at(lam)

    def test_options_of_the_solver(self, path):
        lam = float(np.sqrt(path.lams[3] * path.lams[4]))
        assert path.at(lam, polish=True, solver="CLARABEL").solver == "CLARABEL"
        seen = []
        path.at(lam, polish=True, rtol=1e-9, callback=seen.append)
        assert seen

    def test_the_problem_is_not_shown(self, path):
        bare = LambdaPath(path.lams, path.solutions, path.missing, path.status)
        assert repr(path) == repr(bare)
        assert path._repr_html_() == bare._repr_html_()

    def test_a_path_from_a_file_needs_its_problem(self, path, tmp_path):
        path.save(tmp_path / "path.npz")
        loaded = LambdaPath.load(tmp_path / "path.npz")
        lam = float(np.mean(path.lams[2:4]))
        with pytest.raises(ValueError, match="problem: a path from a file does not hold it"):
            loaded.at(lam)
        assert loaded.at(lam, problem=path.problem).value == path.at(lam).value
        other = gtv.GTVProblem(generators.chain(2, 1.0), gtv.PointLoss.stack(np.eye(4)))
        with pytest.raises(ValueError, match="path: shape"):
            loaded.at(lam, problem=other)
