"""Contraction for losses with kinks and constraints: exact on right clusters, never wrong."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.graph import connected_components
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._run import drive
from gtvcvx.solvers.interior_point._prices import DEFAULTS as PRICES
from gtvcvx.solvers.interior_point._prices import iteration
from gtvcvx.solvers.polishing import _conic_contraction
from gtvcvx.solvers.polishing._cluster_program import ConicLosses
from gtvcvx.solvers.polishing._conic_contraction import STRICT, ConicContraction
from gtvcvx.solvers.polishing._contraction import Contracted, Contraction
from gtvcvx.solvers.polishing._policy import CONIC, Polished
from gtvcvx.solvers.polishing._quotient_graph import blocks
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

PENALTIES = ("l1", "l2", "linf")
KINDS = ("hinge", "quantile", "absolute", "lasso", "box", "simplex", "logistic")
JUMP = 1e-5  # from here on a reference's parameters are different


def loss(kind, X, z, rng):
    signs = np.where(z > 0.0, 1.0, -1.0)
    return {
        "hinge": lambda: gtv.HingeLoss(X, signs) + gtv.Ridge(0.05),
        "quantile": lambda: gtv.QuantileLoss(X, z, 0.3),
        "absolute": lambda: gtv.AbsoluteLoss(X, z),
        "lasso": lambda: gtv.LassoLoss(X, z, 0.4),
        "box": lambda: gtv.SquaredLoss(X, z) + gtv.Box(-0.5, 0.8),
        "simplex": lambda: gtv.SquaredLoss(X, z) + gtv.Simplex(1.0),
        "logistic": lambda: gtv.LogisticLoss(X, (signs + 1.0) / 2.0) + gtv.Ridge(0.05),
    }[kind]()


def instance(kind, penalty, n=24, d=2, lam=0.15, seed=0):
    """Neighbours in the plane, two regions; every third node without data."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    places = rng.random((n, 2))
    graph = gtv.generators.nearest_neighbours(places, 4)
    truth = np.where(places[:, :1] > 0.5, 1.0, -1.0) * np.ones(d)
    losses = []
    for i in range(n):
        X = rng.standard_normal((6, d))
        z = X @ truth[i] + 0.3 * rng.standard_normal(6)
        losses.append(gtv.ZeroLoss() if i % 3 == 2 else loss(kind, X, z, rng))
    return gtv.GTVProblem(graph, losses, penalty, lam)


def optimum(problem):
    return problem.solve(solver="CLARABEL", rtol=1e-10)


def showing(problem, best):
    """The clusters of a solution, in a point and a flow that show them."""
    flow = np.zeros((problem.graph.n_edges, problem.dim))
    for block in blocks(problem):
        jumps = np.abs(problem.differences(best.w[:, block])).max(axis=1) > JUMP
        flow[jumps, block[0]] = problem.capacities[jumps]
    return best.w, flow


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", KINDS)
def test_known_clusters_give_the_optimum(kind, penalty):
    problem = instance(kind, penalty)
    best = optimum(problem)
    polished = ConicContraction(problem, 1e-8).polish(*showing(problem, best))
    assert problem.value(polished.w) == pytest.approx(best.value, rel=1e-6)
    gap, _ = problem.bounds.gap(polished.w, polished.conserved)
    truth = problem.value(polished.w) - best.value
    assert gap.total >= truth - 1e-8 * abs(best.value)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", ["hinge", "quantile", "absolute"])
def test_known_clusters_give_the_flow(kind, penalty):
    problem = instance(kind, penalty)
    best = optimum(problem)
    polished = ConicContraction(problem, 1e-8).polish(*showing(problem, best))
    assert polished.overload <= 1e-5


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_program_on_clusters_agrees_with_cvxpy(kind, penalty):
    """Whatever the clusters: here those of a few edges, with rows on all sides of their kinks."""
    problem = instance(kind, penalty, n=12)
    rng = np.random.default_rng(1)
    masks = [rng.random(problem.graph.n_edges) < 0.3 for _ in blocks(problem)]
    contracted = Contracted(problem, blocks(problem), masks, STRICT.no_jump)
    losses = ConicLosses(problem)
    near = [np.ones(len(kinks.y), dtype=bool) for kinks in losses.kinks]
    w = np.zeros((problem.graph.n_nodes, problem.dim))
    found = losses.solve(contracted, near, w, 1e-10, np.inf)
    model = problem.cvxpy()
    point, fused = model.var_dict["w"], []
    for block, mask in zip(blocks(problem), masks, strict=True):
        labels = connected_components(problem.graph.n_nodes, problem.graph.edges[mask])
        first = np.unique(labels, return_index=True)[1][labels]
        fused += [point[:, k] == point[first, k] for k in block]
    expected = cp.Problem(model.objective, model.constraints + fused).solve(cp.CLARABEL)
    assert problem.value(problem.losses.project_domain(found.w)) == pytest.approx(
        expected, rel=1e-6, abs=1e-7
    )
    # Subgradients balance the flows between clusters, cluster by cluster.
    total = np.bincount(contracted.variables.ravel(), found.slopes.ravel())
    for edges, flows in zip(contracted.edges, found.flows, strict=True):
        np.add.at(total, edges.heads, flows)
        np.add.at(total, edges.tails, -flows)
    np.testing.assert_allclose(total, 0.0, atol=1e-5)


def test_rows_beyond_the_kink_they_were_taken_for_are_named():
    """A row at its kink that counts on one side only goes over to the other one."""
    problem = instance("absolute", "l2")
    w, _ = showing(problem, optimum(problem))
    losses = ConicLosses(problem)
    fused = [np.abs(problem.differences(w)).max(axis=1) <= JUMP]
    contracted = Contracted(problem, blocks(problem), fused, STRICT.no_jump)
    row = int(np.argmin(np.abs(losses.kinks[0].residuals(w))))
    near = [np.arange(len(losses.kinks[0].y)) != row]
    found = losses.solve(contracted, near, w, 1e-9, np.inf)
    assert np.flatnonzero(found.wrong[0]).tolist() == [row]
    assert found.excess > 0.0


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", ["hinge", "absolute", "lasso"])
def test_polished_runs_are_right_and_take_fewer_iterations(kind, penalty):
    problem = instance(kind, penalty, n=40, seed=2)
    best = optimum(problem)
    plain = drive(problem, PrimalDual(problem), Limits(1e-6, 20_000), "PLAIN")
    seen = []
    method = Polished(problem, PrimalDual(problem), ConicContraction(problem, 1e-6), CONIC)
    limits = Limits(1e-6, 20_000, callback=lambda p: seen.append((p.value, p.gap)))
    polished = drive(problem, method, limits, "POLISHED")
    assert polished.status == "optimal"
    assert polished.n_iter <= max(plain.n_iter, CONIC.first)
    for value, gap in seen:
        assert gap >= value - best.value - 1e-8 * abs(best.value)


def test_scaling_the_problem_scales_the_polished_pair():
    problem = instance("quantile", "l2")
    w, flow = showing(problem, optimum(problem))
    data = problem.to_data()
    for term in data["terms"]:
        if "X" in term:
            term["y"] = [4.0 * y for y in term["y"]]
    scaled = gtv.GTVProblem.from_data(data)
    first = ConicContraction(problem, 1e-8).polish(w, flow)
    second = ConicContraction(scaled, 1e-8).polish(4.0 * w, flow)
    assert scaled.value(second.w) == pytest.approx(4.0 * problem.value(first.w), rel=1e-6)


def test_what_costs_too_much_is_left():
    problem = instance("hinge", "l1")
    w, flow = showing(problem, optimum(problem))
    assert ConicContraction(problem, 1e-8).polish(w, flow, 0.0) is None


def test_a_program_that_fills_in_is_left_before_it_is_factored(monkeypatch):
    """What counts of edges and rows do not tell, the ordering does."""
    problem = instance("hinge", "l1")
    w, flow = showing(problem, optimum(problem))
    polisher = ConicContraction(problem, 1e-8)
    monkeypatch.setattr(polisher, "_cost", lambda *arguments: 0.0)
    most = PRICES.by_clarabel(1, 1, 1, PRICES.rounds) / iteration(problem)
    assert polisher.polish(w, flow, most) is None
    assert polisher.polish(w, flow, 1e6 * most) is not None


def test_it_takes_losses_that_are_not_quadratic_and_every_norm():
    for penalty, expected in (("linf", None), ("squared", "the penalty 'l1', 'l2' or 'linf'")):
        problem = instance("hinge", penalty)
        assert missing(problem, ConicContraction.requires) == expected
        assert missing(problem, Contraction.requires) is not None


def test_a_failing_clarabel_is_no_pair(monkeypatch):
    problem = instance("hinge", "l2")
    w, flow = showing(problem, optimum(problem))
    monkeypatch.setattr(_conic_contraction.ConicLosses, "solve", lambda *arguments: None)
    assert ConicContraction(problem, 1e-8).polish(w, flow) is None


def test_clusters_with_many_coordinates_are_not_too_many(monkeypatch):
    """Clarabel's ordering, which nothing stops, took 20 s of a polish at 500 x 1,500."""
    problem = instance("hinge", "l2", d=40)
    w, u = np.zeros((24, 40)), np.zeros((problem.graph.n_edges, 40))
    monkeypatch.setattr(ConicLosses, "solve", pytest.fail)
    few = dataclasses.replace(_conic_contraction.DEFAULTS, most_wide=39)
    assert ConicContraction(problem, 1e-4, few).polish(w, u) is None
