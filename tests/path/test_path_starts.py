"""What a value of lambda takes from the one before it: less work, never another answer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.solvers._auto import CLUSTERS
from gtvcvx.solvers.driver._schedule import DEFAULTS as SCHEDULE
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.polishing._contraction import Contraction

LAMS = np.geomspace(0.5, 0.02, 8)


def geometric(n=60, penalty="l2"):
    rng = np.random.default_rng(2)
    places = rng.random((n, 2))
    points = np.where(places > 0.5, 1.0, -1.0) + 0.4 * rng.standard_normal((n, 2))
    graph = generators.geometric(places, 6)
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), penalty)


def with_split(penalty, seed):
    """Five nodes, all of them neighbours, whose weights let a cluster come apart again."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(5) for j in range(i)]
    weights = np.exp(1.5 * rng.standard_normal(len(edges)))
    points = rng.standard_normal((5, 2)).round(1)
    graph = gtv.EmpiricalGraph(5, edges, weights)
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), penalty)


def check_against_cvxpy(problem, path):
    for lam, solution in zip(path.lams, path, strict=True):
        truth = problem.with_lam(float(lam)).cvxpy()
        truth.solve("CLARABEL")
        size = 1e-7 * max(1.0, abs(truth.value))
        assert solution.dual_value - size <= truth.value <= solution.value + size


@pytest.mark.parametrize(("penalty", "seed"), [("l1", 15), ("l2", 6)])
def test_clusters_may_split_as_lambda_grows(penalty, seed):
    problem = with_split(penalty, seed)
    path = lambda_path(problem, n_lams=40, min_ratio=0.02, rtol=1e-10)
    assert "split" in {change.kind for change in path.changes}
    assert not path.nested
    assert path.rel_gaps.max() <= 1e-10
    check_against_cvxpy(problem, path)


def test_a_neighbour_tells_when_to_look():
    """Its ratio of gap to residual makes for a check as soon as the residual is small enough."""
    problem = geometric()
    first = problem.with_lam(0.1).solve(rtol=1e-3)
    assert first.info["gap_ratio"] > 0.0
    near = problem.with_lam(0.0999)
    told = near.solve(rtol=1e-3, warm_start=first)
    info = {"primal_weight": first.info["primal_weight"]}
    untold = near.solve(rtol=1e-3, warm_start=dataclasses.replace(first, info=info))
    assert told.status == untold.status == "optimal"
    assert told.n_iter == SCHEDULE.told_check
    assert untold.n_iter > told.n_iter


def test_what_a_neighbour_tells_saves_nine_tenths_of_the_wait():
    """Told, a value this near is proved after a tenth of the iterations that others wait for.

    Not at once, either: the first residuals of a start say little, and each check costs hundreds.
    """
    problem = geometric(300)
    first = problem.with_lam(0.1).solve(rtol=1e-3)
    told = problem.with_lam(0.0999).solve(rtol=1e-3, warm_start=first)
    assert told.info["method"] == "primal-dual"
    assert [record.n_iter for record in told.history] == [SCHEDULE.first_check // 10]


@pytest.mark.parametrize("ratio", ["no", None, True, 0.0, -1.0, np.nan, np.inf, 1e-300, 1e300])
def test_a_ratio_from_elsewhere_does_no_harm(ratio):
    problem = geometric().with_lam(0.1)
    start = problem.with_lam(0.2).solve(rtol=1e-6)
    start = dataclasses.replace(start, info=start.info | {"gap_ratio": ratio})
    best = problem.solve("CLARABEL", rtol=1e-9).value
    found = problem.solve(rtol=1e-6, warm_start=start)
    assert found.rel_gap <= 1e-6
    assert found.dual_value - 1e-8 <= best <= found.value + 1e-8


def test_the_ratio_goes_through_files(tmp_path):
    path = lambda_path(geometric(), LAMS[:2], rtol=1e-5)
    path.save(tmp_path / "path.npz")
    for before, after in zip(path, LambdaPath.load(tmp_path / "path.npz"), strict=True):
        assert before.info["gap_ratio"] == after.info["gap_ratio"]


def test_what_another_method_costs_is_known_once_for_all_values(monkeypatch):
    fill, asked = InteriorPoint.fill.fget, []
    monkeypatch.setattr(InteriorPoint, "fill", property(lambda self: asked.append(1) or fill(self)))
    problem = geometric()
    costs = [Alternative(problem.with_lam(lam), 1e-6, False).cost for lam in (0.1, 0.2, 0.3)]
    assert len(asked) == 1
    assert np.isfinite(costs).all()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_value_is_polished_once_where_nodes_are_unlabelled(penalty, monkeypatch):
    """Iterations are cheap beside polishes: these wait until the clusters are nearly known."""
    solve, polishes = Contraction.solve, []
    monkeypatch.setattr(Contraction, "solve", lambda *a: polishes.append(1) or solve(*a))
    rng = np.random.default_rng(0)
    places = rng.random((300, 2))
    data = generators.regression_data(np.where(places > 0.5, 1.0, -1.0), 3, 0.3, 0.4, rng)
    problem = gtv.GTVProblem(generators.geometric(places, 8), gtv.SquaredLoss.stack(*data), penalty)
    path = lambda_path(problem, np.geomspace(2.0, 0.1, 8), rtol=1e-6)
    assert path.rel_gaps.max() <= 1e-6
    assert len(polishes) <= 10


@pytest.mark.parametrize(("dim", "grows"), [(2, False), (30, True)])
def test_few_nodes_grow_where_their_flows_have_many_coordinates(dim, grows):
    rng = np.random.default_rng(4)
    graph = generators.geometric(rng.random((80, 2)), 6)
    points = rng.standard_normal((3, dim))[rng.integers(3, size=80)]
    points += 0.3 * rng.standard_normal((80, dim))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")
    path = lambda_path(problem, np.geomspace(8.0, 1.0, 6), rtol=1e-6)
    assert path.rel_gaps.max() <= 1e-6
    assert any(solution.info["method"] == CLUSTERS for solution in path) == grows


def absolute_rows(n=60, d=3):
    rng = np.random.default_rng(5)
    graph = generators.nearest_neighbours(rng.random((n, 2)), 4)
    X = rng.standard_normal((n, 4, d))
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal((n, 4))
    return gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(X, y))


def test_iterations_that_gave_way_are_not_tried_again():
    """They had 19 of 20 values to lose, and took a third of the time in vain."""
    problem = absolute_rows()
    path = lambda_path(problem, LAMS, rtol=1e-6)
    switched = [solution.info["switched"] for solution in path]
    assert switched.count(True) == 1
    at = switched.index(True)
    for solution in path.solutions[at + 1 :]:
        assert solution.info["method"] == "interior point"
        assert solution.info["gave_way"]
    assert path.rel_gaps.max() <= 1e-6
    check_against_cvxpy(problem, path)
    # Nor by a solve that starts there, but one from nowhere knows nothing.
    warm = problem.with_lam(0.03).solve(warm_start=path.solutions[-1])
    assert warm.info["method"] == "interior point"
    assert not problem.with_lam(0.03).solve().info["gave_way"]


def test_where_the_other_method_takes_long_iterations_are_tried_again(monkeypatch):
    problem = absolute_rows()
    before = problem.with_lam(0.1).solve()
    before = dataclasses.replace(before, info={**before.info, "gave_way": True})
    monkeypatch.setattr(Alternative, "cost", 1e5)
    warm = problem.with_lam(0.09).solve(warm_start=before, max_iter=50)
    assert warm.info["method"].startswith("primal-dual")
