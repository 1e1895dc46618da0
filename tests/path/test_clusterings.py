"""Every number of clusters in a range: found by refinement, or told to be missing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.estimators import ConvexClustering
from gtvcvx.path import LambdaPath, _path, lambda_path
from gtvcvx.path._foresight import Foresight, telling


def line(n=12, seed=3):
    """Points in the plane along a chain: one cluster after the other fuses."""
    points = np.cumsum(np.random.default_rng(seed).exponential(size=(n, 2)), axis=0)
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")


def test_all_numbers_from_two_values():
    problem = line()
    path = lambda_path(problem, [1.0, 0.9], rtol=1e-8)
    found = path.clusterings(1, 12, rtol=1e-8)
    assert not found.missing
    assert found.n_solves >= 10
    assert len(path) == 2
    for k, labels in found.labels.items():
        assert labels.max() + 1 == k
        alone = problem.with_lam(found.lams[k]).solve(rtol=1e-8)
        assert np.array_equal(alone.clusters(), labels)
    lams = [found.lams[k] for k in sorted(found.lams)]
    assert np.all(np.diff(lams) < 0)


def test_numbers_that_do_not_exist_are_missing():
    """Four points at the corners of a square, all joined, fuse at once."""
    points = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(4, edges), gtv.PointLoss.stack(points), "l2")
    found = lambda_path(problem, [1.0, 0.01], rtol=1e-8).clusterings(1, 6, rtol=1e-8)
    assert sorted(found.labels) == [1, 4]
    assert found.missing == [2, 3, 5, 6]


def points_of(n: int) -> gtv.GTVProblem:
    points = np.random.default_rng(0).standard_normal((n, 2))
    graph = gtv.graph_construction.knn_graph(points, 5)
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")


def test_a_time_limit_is_one_for_all_solves(monkeypatch):
    clock = iter(np.arange(1000.0))
    path = lambda_path(points_of(60), [1.0, 0.5], rtol=1e-6)
    monkeypatch.setattr(_path, "now", lambda: next(clock))
    found = path.clusterings(1, 60, time_limit=9.5)
    assert found.status == "time_limit"
    assert 1 <= found.n_solves < 10
    assert found.missing
    assert sorted([*found.labels, *found.missing]) == list(range(1, 61))
    assert all(labels.max() + 1 == k for k, labels in found.labels.items())
    assert "time_limit" in repr(found)


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, np.inf])
def test_a_time_limit_is_positive(limit):
    path = lambda_path(line(), [1.0], rtol=1e-6)
    with pytest.raises(ValueError, match="time_limit: a positive finite number"):
        path.clusterings(1, 3, time_limit=limit)
    with pytest.raises(TypeError, match="time_limit: a number is expected, got '1'"):
        path.clusterings(1, 3, time_limit="1")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("inside", [True, False])
def test_control_c_returns_what_was_found(inside, monkeypatch):
    """Pressed in a solve, which ends as at a limit and says nothing; and between two."""
    path = lambda_path(line(), [1.0, 0.9], rtol=1e-8)
    solve, calls = gtv.GTVProblem.solve, []

    def pressed(problem, **options):
        calls.append(problem.lam)
        if len(calls) == 4:
            with contextlib.suppress(KeyboardInterrupt) if inside else contextlib.nullcontext():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1.0)  # where it arrives
        return solve(problem, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", pressed)
    found = path.clusterings(1, 12, rtol=1e-8, solver="AUTO")
    assert found.status == "interrupted"
    assert len(calls) == 4
    assert found.n_solves == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_there_are_no_fewer_clusters_than_components():
    points = np.arange(8.0).reshape(4, 2) ** 2
    graph = gtv.EmpiricalGraph(4, [(0, 1), (2, 3)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")
    found = lambda_path(problem, [1.0], rtol=1e-6).clusterings(1, 4)
    assert sorted(found.labels) == [2, 3, 4]
    assert found.missing == [1]


def test_clusters_of_an_estimator_are_counted_its_own_way():
    points = np.random.default_rng(1).standard_normal((30, 2))
    model = ConvexClustering(lam=1.0, n_neighbors=5, n_lams=6, rtol=1e-5).fit(points)
    found = model.clusterpath_.clusterings(1, 6, rtol=1e-5)
    assert len(found.labels) + len(found.missing) == 6
    assert len(found.labels) >= 4
    for k, labels in found.labels.items():
        assert labels.max() + 1 == k


@pytest.mark.parametrize(
    ("first", "last", "finest"), [(0, 2, 1.1), (3, 2, 1.1), (1.5, 2, 1.1), (1, 2, 1.0)]
)
def test_wrong_ranges(first, last, finest):
    path = lambda_path(line(4), [1.0, 0.5])
    with pytest.raises(ValueError, match=r"first, last|finest"):
        path.clusterings(first, last, finest=finest)


def test_an_empty_path_and_one_without_its_problem():
    path = lambda_path(line(4), [1.0])
    with pytest.raises(ValueError, match="the path is empty"):
        LambdaPath(np.empty(0), [], np.empty(0)).clusterings(1, 2)
    with pytest.raises(ValueError, match="problem"):
        LambdaPath(path.lams, path.solutions, path.missing).clusterings(1, 2)


def scattered(n=80, penalty="l2", seed=5):
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    points = np.round(2.0 * places) + 0.3 * rng.standard_normal((n, 2))
    return gtv.GTVProblem(generators.geometric(places, 6), gtv.PointLoss.stack(points), penalty)


@pytest.mark.parametrize("penalty", ["l2", "linf"])
def test_clusters_foretell_where_to_solve(penalty):
    """Fewer values of the whole problem lead to the same numbers; options turn that off."""
    problem = scattered(penalty=penalty)
    path = lambda_path(problem, [1.0, 0.02], rtol=1e-8)
    ahead = path.clusterings(1, 12, rtol=1e-8)
    plain = path.clusterings(1, 12, rtol=1e-8, solver="AUTO")
    assert set(plain.labels) <= set(ahead.labels)
    assert ahead.n_solves < plain.n_solves
    for k, labels in ahead.labels.items():
        alone = problem.with_lam(ahead.lams[k]).solve(rtol=1e-9)
        assert labels.max() + 1 == k
        assert np.array_equal(alone.clusters(), labels)


def test_clusters_that_split_are_foretold_wrongly_and_found_all_the_same():
    """Five nodes whose weights let a cluster come apart as lambda grows, four times."""
    rng = np.random.default_rng(6)
    edges = [(i, j) for i in range(5) for j in range(i)]
    weights = np.exp(1.5 * rng.standard_normal(len(edges)))
    points = rng.standard_normal((5, 2)).round(1)
    graph = gtv.EmpiricalGraph(5, edges, weights)
    many = [[i + 5 * copy for i in edge] for copy in range(4) for edge in graph.edges]
    chain = [[5 * copy, 5 * copy + 5] for copy in range(3)]
    graph = gtv.EmpiricalGraph(20, many + chain, np.append(np.tile(graph.weights, 4), [0.1] * 3))
    points = np.concatenate([points + 4.0 * copy for copy in range(4)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")
    found = lambda_path(problem, [1.0, 0.2], rtol=1e-9).clusterings(1, 10, rtol=1e-9)
    for k, labels in found.labels.items():
        alone = problem.with_lam(found.lams[k]).solve(rtol=1e-10)
        assert labels.max() + 1 == k
        assert np.array_equal(alone.clusters(), labels)


def test_where_nothing_is_foretold():
    problem = scattered()
    solution = problem.with_lam(0.5).solve()
    labels = solution.clusters()
    assert 1 < labels.max() + 1 < 40
    assert Foresight.of(problem, solution, labels, 1e-6) is not None
    assert Foresight.of(problem, solution, np.arange(80), 1e-6) is None
    assert Foresight.of(problem, solution, np.zeros(80, dtype=np.int64), 1e-6) is None
    squared = gtv.SquaredLoss.stack(np.ones((80, 1, 2)), np.ones((80, 1)))
    free = gtv.GTVProblem(problem.graph, squared, "l2")
    assert Foresight.of(free, solution, labels, 1e-6) is None


def test_what_clusters_foretell_is_proved_for_the_whole(monkeypatch):
    """Point and flow of the clusters are the whole problem's: it is not solved once more."""
    problem = scattered()
    path = lambda_path(problem, [1.0, 0.02], rtol=1e-8)
    solved, solve = [], gtv.GTVProblem.solve

    def counted(self, *args, **options):
        solved.append(self.graph.n_nodes)
        return solve(self, *args, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", counted)
    found = path.clusterings(1, 12, rtol=1e-8)
    assert solved.count(80) <= found.n_solves - 6


def test_false_foresight_is_refused():
    problem = scattered()
    near = problem.with_lam(0.5).solve(rtol=1e-8)
    foresight = Foresight.of(problem, near, near.clusters(), 1e-6)
    alone = problem.with_lam(0.6).solve(rtol=1e-9)
    found = foresight.solve(0.6, None)
    proved = foresight.proved(0.6, found, near)
    assert proved.rel_gap <= 1e-6
    assert proved.dual_value <= alone.value
    assert alone.dual_value <= proved.value
    assert np.array_equal(proved.clusters(), alone.clusters())
    wrong = dataclasses.replace(found, w=found.w + 0.01)
    assert foresight.proved(0.6, wrong, near) is None
    unknown = dataclasses.replace(near, info={})
    assert foresight.proved(0.6, found, unknown) is None


def test_values_that_tell():
    lams, counts = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0], [1, 2, 2, 2, 5, 6]
    assert telling(lams, counts, lambda k: k in (2, 6)) == [4.0, 7.0]
    assert telling(lams, counts, lambda k: k == 3) == [5.0, 6.0]
    assert telling(lams, counts, lambda k: k > 6) == []
