"""The smallest lambda at which the consensus is optimal: against trees, cuts, and verify."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from _instances import FAMILIES, NORMS, Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

import gtvcvx as gtv
import verify
from gtvcvx import generators
from gtvcvx.path import lambda_max
from gtvcvx.path._consensus import Components, consensus
from gtvcvx.path._critical import _close, critical
from gtvcvx.path._critical_bounds import GradientBounds, ValueBounds

RTOL = 1e-3
few = settings(max_examples=5)
seeds = given(seed=st.integers(0, 2**32 - 1))
norm_cases = cases(["disconnected", "isolated", "few-rows"], ["squared", "mix"], NORMS)


def tree_problem(seed, penalty, d=3, n=9):
    """Points on a random tree, where the flow that a demand needs is the only one."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(i)) for i in range(1, n)]
    graph = gtv.EmpiricalGraph(
        n, [(i + 1, p) for i, p in enumerate(parents)], rng.uniform(0.5, 2.0, n - 1)
    )
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((n, d))), penalty, 1.0)


def tree_lambda_max(problem):
    """Largest load of an edge: the gradients on one side of it, in the dual norm, by its weight."""
    points = problem.losses.minimizer(problem.graph.n_nodes)
    gradient = 2.0 * (points.mean(axis=0) - points)
    loads = []
    for e, weight in enumerate(problem.graph.weights):
        G = problem.graph.to_networkx()
        head, tail = problem.graph.edges[e].tolist()
        G.remove_edge(head, tail)
        side = list(nx.node_connected_component(G, head))
        loads.append(problem.penalty.dual_norm(gradient[side].sum(axis=0)[None])[0] / weight)
    return max(loads)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", gtv.PNorm(3)], ids=str)
@seeds
@few
def test_on_a_tree_it_is_the_largest_load(penalty, seed):
    problem = tree_problem(seed, penalty)
    expected = tree_lambda_max(problem)
    found = lambda_max(problem, RTOL)
    assert expected * (1 - 1e-9) <= found <= expected * (1 + RTOL)


@seeds
@few
def test_in_one_dimension_it_is_the_worst_cut(seed):
    """Max-flow min-cut, over all subsets of a small graph."""
    case = Case("d=1", "mix", "l2", seed)
    problem = case.problem()
    gradient = problem.losses.gradient(consensus(problem, Components(problem)))[:, 0]
    n, worst = problem.graph.n_nodes, 0.0
    for code in range(1, 2**n - 1):
        inside = (code >> np.arange(n)) & 1 == 1
        ends = inside[problem.graph.edges]
        cut = problem.graph.weights[ends[:, 0] != ends[:, 1]].sum()
        worst = max(worst, abs(gradient[inside].sum()) / cut)
    assert worst * (1 - 1e-8) <= lambda_max(problem) <= worst * (1 + RTOL)


@pytest.mark.parametrize("case", [case for case in norm_cases if case.penalty != "pnorm3"], ids=str)
def test_within_the_proved_bounds(case):
    problem = case.problem()
    proved = verify.critical_lambda(problem)
    assert proved.lower * (1 - 1e-9) <= lambda_max(problem) <= (1 + RTOL) * proved.upper


@pytest.mark.parametrize("case", norm_cases, ids=str)
def test_consensus_above_and_not_below(case):
    """By CVXPY: at lambda_max the consensus is optimal, a percent below it no longer."""
    problem = case.problem()
    found = critical(problem)
    above = problem.with_lam(found.upper * (1 + 1e-6))
    value = above.value(found.w)
    assert above.cvxpy().solve(solver=cp.CLARABEL) == pytest.approx(value, rel=1e-6, abs=1e-6)
    below = problem.with_lam(found.upper * (1 - 1e-2))
    tight = below.solve("CLARABEL", rtol=1e-9)
    assert tight.value < below.value(found.w) - 1e-9
    assert np.ptp(tight.w - found.w, axis=0).max() > 1e-4


@pytest.mark.parametrize("case", norm_cases, ids=str)
def test_the_flow_proves_it(case):
    """Its injections are the gradients at the consensus, and it keeps to the capacities."""
    problem = case.problem()
    found = critical(problem)
    at = problem.with_lam(found.upper)
    assert (at.penalty.dual_norm(found.u) <= at.capacities).all()
    gradient = at.losses.gradient(found.w)
    injection = -(at.graph.divergence @ found.u)
    size = np.abs(at.losses.gradient(np.zeros_like(found.w))).max()
    np.testing.assert_allclose(injection, gradient, rtol=0, atol=1e-12 * size)
    assert at.bounds.gap_of(found.w, found.u).total <= 1e-12 * max(1.0, at.value(found.w))


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
@seeds
@few
def test_units(penalty, seed):
    """Losses times c: lambda_max times c. Weights times c: lambda_max by c."""
    c = np.random.default_rng(seed).uniform(0.1, 10.0)
    case = Case("isolated", "squared", penalty)
    plain = lambda_max(case.problem(), 1e-4)
    losses = [
        gtv.SquaredLoss(np.sqrt(c) * x.X, np.sqrt(c) * x.y) if hasattr(x, "X") else x
        for x in case.losses()
    ]
    scaled = gtv.GTVProblem(case.graph(), losses, penalty)
    assert lambda_max(scaled, 1e-4) == pytest.approx(c * plain, rel=2e-4)
    graph = case.graph()
    heavier = gtv.EmpiricalGraph(graph.n_nodes, graph.edges, c * graph.weights)
    other = gtv.GTVProblem(heavier, case.losses(), penalty)
    assert lambda_max(other, 1e-4) == pytest.approx(plain / c, rel=2e-4)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_of_two_graphs_side_by_side_it_is_the_larger_one(penalty):
    first, second = (Case("connected", "squared", penalty, seed) for seed in (0, 1))
    graphs = first.graph(), second.graph()
    n = graphs[0].n_nodes
    both = gtv.GTVProblem(
        gtv.EmpiricalGraph(
            2 * n,
            np.concatenate([graphs[0].edges, n + graphs[1].edges]),
            np.concatenate([graph.weights for graph in graphs]),
        ),
        first.losses() + second.losses(),
        penalty,
    )
    alone = [lambda_max(case.problem(), 1e-5) for case in (first, second)]
    assert lambda_max(both, 1e-5) == pytest.approx(max(alone), rel=2e-5)


def test_tolerance_is_kept():
    graph = generators.geometric(np.random.default_rng(0).random((200, 2)), 8)
    points = np.random.default_rng(1).standard_normal((200, 2))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")
    proved = verify.critical_lambda(problem)
    for rtol in (0.1, 1e-3, 1e-5):
        assert proved.lower <= lambda_max(problem, rtol) <= (1 + rtol) * proved.upper


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_bounds_by_values_alone_agree_with_those_by_gradients(penalty):
    """What losses without gradients get, on losses that have them."""
    problem = Case("connected", "squared", penalty).problem()
    components = Components(problem)
    w = consensus(problem, components)
    by_gradients, by_values = (
        kind(problem, components, w) for kind in (GradientBounds, ValueBounds)
    )
    for bounds in (by_gradients, by_values):
        _close(bounds, RTOL, verbose=False)
        assert bounds.upper <= (1 + RTOL) * bounds.lower
    assert by_values.lower <= by_gradients.unit * by_gradients.upper
    # a gap of 1e-8 of the consensus leaves lambda free by its root
    assert by_values.upper >= by_gradients.unit * by_gradients.lower * (1 - 1e-3)


class TestConsensus:
    @pytest.mark.parametrize("case", cases(FAMILIES, ["squared", "mix"], ["l2"]), ids=str)
    def test_no_other_constant_is_better(self, case):
        problem = case.problem()
        components = Components(problem)
        w = consensus(problem, components)
        for c in range(components.count):
            assert np.ptp(w[components.of == c], axis=0).max() == 0.0
        total = components.sums @ problem.losses.gradient(w)
        size = np.abs(problem.losses.gradient(np.zeros_like(w))).max()
        assert np.abs(total).max() <= 1e-11 * max(size, 1.0)

    def test_ill_conditioned_features(self):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((4, 6, 3)) * [1.0, 1e4, 1e-3], rng.standard_normal((4, 6))
        problem = gtv.GTVProblem(generators.chain(2, 1.0), gtv.SquaredLoss.stack(X, y))
        w = consensus(problem, Components(problem))
        expected, *_ = np.linalg.lstsq(X.reshape(-1, 3), y.ravel(), rcond=None)
        assert w[0] == pytest.approx(expected, rel=1e-6)


def test_zero_where_the_consensus_is_always_optimal():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 5, 2))
    graph = generators.chain(2, 1.0)
    exact = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, X @ [1.0, -2.0]))
    assert lambda_max(exact) == 0.0
    assert lambda_max(gtv.GTVProblem(graph, gtv.PointLoss.stack(np.ones((4, 2))))) == 0.0
    no_edge = gtv.EmpiricalGraph(3, np.empty((0, 2), int))
    assert lambda_max(gtv.GTVProblem(no_edge, gtv.PointLoss.stack(rng.random((3, 2))))) == 0.0


@pytest.mark.parametrize("penalty", ["squared", "quadratic"])
def test_penalty_that_is_no_norm(penalty):
    problem = Case("connected", "squared", penalty).problem()
    with pytest.raises(ValueError, match=f"penalty '{penalty}' is not a norm"):
        lambda_max(problem)


@pytest.mark.parametrize("rtol", [0.0, -1.0, 1.0, np.nan])
def test_tolerance_out_of_range(rtol):
    with pytest.raises(ValueError, match="rtol: a number between 0 and 1"):
        lambda_max(Case("connected", "squared", "l2").problem(), rtol)


def test_not_a_problem():
    with pytest.raises(TypeError, match="problem: a GTVProblem is expected, got dict"):
        lambda_max({})


def test_tolerance_beyond_double_precision_is_said():
    problem = Case("connected", "squared", "l2").problem()
    proved = verify.critical_lambda(problem)
    with pytest.warns(UserWarning, match="rounding keeps the bounds apart"):
        found = lambda_max(problem, 1e-14)
    assert proved.lower <= found <= (1 + 1e-6) * proved.upper


@pytest.mark.parametrize("kind", [GradientBounds, ValueBounds])
def test_bounds_that_stay_apart_are_finite(kind):
    problem = Case("isolated", "squared", "l2").problem()
    components = Components(problem)
    bounds = kind(problem, components, consensus(problem, components))
    _close(bounds, 1e-15, verbose=False)
    proved = verify.critical_lambda(problem)
    assert bounds.upper * bounds.unit >= proved.lower * (1 - 1e-3)
    assert bounds.upper * bounds.unit <= 5 * proved.upper
    assert bounds.lower * bounds.unit <= proved.upper * (1 + 1e-9)
