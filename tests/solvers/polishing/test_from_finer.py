"""Solutions on the clusters of a smaller lambda: cheaper where these hold, right where not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.path import lambda_path
from gtvcvx.solvers._auto import CLUSTERS
from gtvcvx.solvers.polishing._from_finer import (
    DEFAULTS,
    FAILED,
    LAM,
    RATIO,
    WEIGHT,
    FromFiner,
    grows_from_clusters,
)

LAMS = np.geomspace(0.05, 3.0, 8)


@pytest.fixture(autouse=True)
def small_problems_grow(monkeypatch):
    monkeypatch.setattr("gtvcvx.path._solve.GROWING_FLOWS", 0)


def points(n=60, d=2, penalty="l2", seed=2, jitter=0.0):
    """Two groups in the plane; the weights of all edges differ by this factor's exponential."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    centres = np.where(places[:, :1] > 0.5, 1.0, -1.0) * np.ones(d)
    graph = generators.geometric(places, 6)
    weights = graph.weights * np.exp(jitter * rng.standard_normal(graph.n_edges))
    graph = gtv.EmpiricalGraph(n, graph.edges, weights)
    values = centres + 0.4 * rng.standard_normal((n, d))
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(values), penalty)


def scaled(solution, problem):
    return dataclasses.replace(solution, u=solution.u * (problem.lam / solution.info[LAM]))


def check(problem, solution, rtol):
    truth = problem.solve("CLARABEL", rtol=1e-9)
    size = 1e-9 * max(1.0, abs(truth.value))
    assert solution.rel_gap <= rtol
    assert solution.dual_value <= truth.value + size
    assert solution.value >= truth.dual_value - size


@pytest.mark.parametrize("penalty", ["l2", "linf"])
@pytest.mark.parametrize(("jitter", "rtol"), [(0.0, 1e-4), (0.0, 1e-8), (1.5, 1e-6)])
def test_growing_paths_are_right_and_splits_are_allowed(penalty, jitter, rtol):
    problem = points(penalty=penalty, jitter=jitter, d=3)
    path = lambda_path(problem, LAMS, rtol=rtol)
    assert np.array_equal(path.lams, LAMS[::-1])
    for lam, solution in zip(path.lams, path, strict=True):
        check(problem.with_lam(float(lam)), solution, rtol)


def test_most_values_take_clusters_alone():
    path = lambda_path(points(), LAMS, rtol=1e-6)
    methods = [solution.info["method"] for solution in path]
    assert methods.count(CLUSTERS) >= len(LAMS) // 2
    assert methods[-1] != CLUSTERS  # the smallest lambda has none to start from


def test_false_clusters_cost_time_and_no_accuracy():
    """All nodes are said to be one cluster, at a lambda where they are many."""
    problem = points().with_lam(0.1)
    true = problem.with_lam(0.05).solve(rtol=1e-6)
    assert true.clusters().max() > 5
    w = np.broadcast_to(true.w.mean(axis=0), true.w.shape).copy()
    start = dataclasses.replace(true, w=w)
    found = problem.solve(rtol=1e-8, warm_start=start)
    assert found.info["method"] == f"{CLUSTERS}, primal-dual"
    assert found.info[FAILED] == 1
    check(problem, found, 1e-8)


def test_clusters_that_often_fail_are_left_alone():
    problem = points().with_lam(0.1)
    start = problem.with_lam(0.05).solve(rtol=1e-6)
    assert FromFiner.of(problem, start) is not None
    info = start.info | {FAILED: DEFAULTS.patience}
    assert FromFiner.of(problem, dataclasses.replace(start, info=info)) is None


@pytest.mark.parametrize("name", [LAM, WEIGHT, RATIO, FAILED])
@pytest.mark.parametrize("value", ["no", None, True, -1.0, np.nan, np.inf, 1e-300, [1.0], 7])
def test_notes_from_elsewhere_do_no_harm(name, value):
    problem = points(20).with_lam(0.1)
    start = problem.with_lam(0.08).solve(rtol=1e-6)
    start = dataclasses.replace(start, info=start.info | {name: value})
    check(problem, problem.solve(rtol=1e-6, warm_start=start), 1e-6)


def test_a_larger_lambda_is_no_start():
    problem = points()
    start = problem.with_lam(0.2).solve(rtol=1e-6)
    assert FromFiner.of(problem.with_lam(0.1), start) is None
    assert FromFiner.of(problem.with_lam(0.2), start) is None


@pytest.mark.parametrize("penalty", ["l1", "squared"])
def test_other_penalties_do_not_grow_from_clusters(penalty):
    assert not grows_from_clusters(points(penalty=penalty))


def test_nodes_without_points_do_not_grow_from_clusters():
    whole = points()
    some = {k: gtv.PointLoss([float(k), 1.0]) for k in range(30)}
    some |= {k: gtv.ZeroLoss() for k in range(30, 60)}
    assert grows_from_clusters(whole)
    assert not grows_from_clusters(gtv.GTVProblem(whole.graph, some, "l2"))


def test_above_lambda_max_there_is_one_cluster_a_component():
    problem = points()
    top = gtv.lambda_max(problem)
    path = lambda_path(problem, [0.5 * top, 1.1 * top, 2.0 * top], rtol=1e-8)
    components = int(problem.graph.components.max()) + 1
    assert path.n_clusters[0] == path.n_clusters[1] == components
    check(problem.with_lam(2.0 * top), path[0], 1e-8)


def test_who_may_stop_sees_the_largest_value_first():
    values = []
    path = lambda_path(points(), LAMS, callback=lambda s: values.append(s.value) or len(values) > 1)
    assert np.array_equal(path.lams, LAMS[::-1][:2])
    assert np.array_equal(path.missing, LAMS[::-1][2:])


def test_ctrl_c_leaves_the_smallest_values(monkeypatch):
    solve, calls = gtv.GTVProblem.solve, []

    def interrupted(self, *args, **options):
        calls.append(self.lam)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return solve(self, *args, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
    path = lambda_path(points(), LAMS)
    assert path.status == "interrupted"
    assert np.array_equal(path.lams, LAMS[:2][::-1])
    assert np.array_equal(path.missing, LAMS[2:][::-1])
    assert path[1].info[LAM] == LAMS[0]


def test_ctrl_c_on_the_clusters_leaves_the_start(monkeypatch):
    problem = points().with_lam(1.0)
    start = problem.with_lam(0.9).solve(rtol=1e-6)

    def pressed(self, clusters):
        raise KeyboardInterrupt

    monkeypatch.setattr(FromFiner, "_iterated", pressed)
    found = problem.solve(rtol=1e-9, warm_start=scaled(start, problem))
    assert found.status == "user_limit"
    assert found.rel_gap <= 0.1


def test_ten_dimensions_and_two_components():
    problem = points(80, d=10, seed=5)
    keep = np.flatnonzero((problem.graph.edges < 40).all(1) | (problem.graph.edges >= 40).all(1))
    graph = gtv.EmpiricalGraph(80, problem.graph.edges[keep])
    apart = gtv.GTVProblem(graph, problem.losses, "l2")
    path = lambda_path(apart, [0.1, 0.3, 1.0, 3.0, 30.0], rtol=1e-7)
    for lam, solution in zip(path.lams, path, strict=True):
        check(apart.with_lam(float(lam)), solution, 1e-7)
