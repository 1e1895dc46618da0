"""Gaps that are true: no reported gap below the suboptimality, at whatever iterate."""

import os

import numpy as np
import pytest
from _instances import PENALTIES, Case, cases, reference

import gtvcvx as gtv
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.duality._conservation import Alternation, FlowConservation
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import DomainRepair
from gtvcvx.solvers.algorithm1._algorithm1 import Algorithm1

# 126 cases (7 families, 3 losses, 6 penalties) with 8 random iterates each: 1,008.
ITERATES = 8 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
# What the reference may be off by: it only has to be an upper bound on the optimum.
ULPS = 1e-13


def true_suboptimality(case, value):
    """At least P(w) - P(w_ref): the optimum is not above P(w_ref)."""
    return value - case.problem().value(reference(case).w)


def random_iterates(case, count):
    """Points between noise and the optimum, with flows that need not be feasible."""
    rng, ref, problem = case.rng, reference(case), case.problem()
    for k in range(count):
        noise = 10.0 ** -rng.integers(0, 10)
        w = ref.w + noise * rng.standard_normal(ref.w.shape)
        if k % 3 == 0:
            u = np.zeros((problem.graph.n_edges, problem.dim))
        else:
            u = ref.u + noise * rng.standard_normal(ref.u.shape) * rng.choice([0.1, 1.0, 30.0])
        yield w, u


@pytest.mark.parametrize("case", cases(), ids=str)
def test_no_gap_is_below_the_true_suboptimality(case):
    problem = case.problem()
    best = problem.value(reference(case).w)
    for w, u in random_iterates(case, ITERATES):
        value = problem.value(w)
        gap, _ = problem.bounds.gap(w, u)
        bound, _ = problem.lower_bound(u)
        room = ULPS * max(1.0, abs(value))
        assert gap.total >= value - best - room
        assert bound <= best + room
        assert (gap.node >= 0).all()
        assert (gap.edge >= 0).all()


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_bound_is_tight_at_the_optimum(case):
    problem, ref = case.problem(), reference(case)
    bound, flow = problem.lower_bound(ref.u)
    assert problem.value(ref.w) - bound <= 1e-6 * max(1.0, abs(ref.value))
    assert problem.dual_value(flow) == pytest.approx(bound, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", cases(losses=["mix"]), ids=str)
def test_every_iterate_of_a_solver_has_a_true_gap(case):
    problem = case.problem()
    best = problem.value(reference(case).w)
    for solver in ("AUTO", "PDHG"):
        for n_iter in (1, 3, 10, 30, 100):
            solution = problem.solve(solver=solver, max_iter=n_iter, rtol=1e-15)
            assert solution.gap >= solution.value - best - ULPS * max(1.0, abs(best))
            assert solution.dual_value <= best + ULPS * max(1.0, abs(best))


@pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
def test_projection_is_the_least_change_that_conserves_flow(case):
    """Against the dense least-norm correction, also with conductances."""
    problem = case.problem()
    graph, d = problem.graph, problem.dim
    u = case.rng.standard_normal((graph.n_edges, d))
    projectors = np.zeros((graph.n_nodes, d, d))
    for nodes, batch in problem.losses.parts:
        projector = batch.null_projector()
        projectors[nodes] = np.eye(d) * projector if np.isscalar(projector) else projector
    # Rows of the linear map u -> T D^T u, on flattened arrays.
    divergence = np.kron(graph.divergence.toarray(), np.eye(d))
    constraint = np.zeros((graph.n_nodes * d, graph.n_nodes * d))
    for i, projector in enumerate(projectors):
        constraint[i * d : (i + 1) * d, i * d : (i + 1) * d] = projector
    linear = constraint @ divergence
    conservation = FlowConservation(graph, problem.losses, problem.penalty)
    for conductance in (np.ones(graph.n_edges), case.rng.uniform(0.01, 1.0, graph.n_edges)):
        # Least change in the norm sum_e ||u_e||^2 / c_e.
        root = np.sqrt(np.repeat(conductance, d))
        change = root * (np.linalg.pinv(linear * root, rcond=1e-10) @ (linear @ u.ravel()))
        projected = conservation.project(u, 1e-15, conductance)
        np.testing.assert_allclose(projected.ravel(), u.ravel() - change, atol=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_repaired_flows_are_dual_feasible(penalty):
    for case in cases(penalties=[penalty]):
        problem = case.problem()
        u = 10.0 * case.rng.standard_normal((problem.graph.n_edges, problem.dim))
        assert problem.dual_value(problem.bounds.repair(u), tol=1e-9) > -np.inf


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_repairs_take_no_more_care_than_the_gap_asks_for(penalty, monkeypatch):
    """They end a little outside the capacities, and are scaled: a share of the gap, no more."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((80, 3, 2)), rng.standard_normal((80, 3))
    losses = gtv.SquaredLoss.stack(X, y, rng.random(80) < 0.4)
    problem = gtv.GTVProblem(
        gtv.generators.geometric(rng.random((80, 2)), 6), losses, penalty, 0.05
    )
    ref = problem.solve(rtol=1e-8)
    u = ref.u * (1.0 + 0.05 * rng.standard_normal((len(ref.u), 1)))
    sweeps, sweep = [], Alternation.sweep
    monkeypatch.setattr(Alternation, "sweep", lambda *a: sweeps.append(a) or sweep(*a))
    counts, gaps = [], []
    for enough in (0.0, 0.1, np.inf):
        sweeps.clear()
        flow = problem.bounds.repaired(u, ref.w, enough).u
        counts.append(len(sweeps))
        assert problem.dual_value(flow, tol=1e-9) > -np.inf
        gaps.append(problem.bounds.gap_of(ref.w, flow).total)
    assert counts[0] >= counts[1] + 3
    assert counts[2] == counts[0]  # nothing is known of what is enough
    assert gaps[1] <= gaps[0] + 0.1 * 0.1


def test_repair_keeps_a_feasible_flow():
    problem = Case("unlabelled", "squared", "l2").problem()
    flow = problem.solve(rtol=1e-9).u
    np.testing.assert_allclose(problem.bounds.repair(flow), flow, atol=1e-9)


def test_gap_is_the_difference_of_the_objectives():
    for case in cases(losses=["mix"], penalties=["l2", "quadratic"]):
        problem, (w, u) = case.problem(), next(random_iterates(case, 1))
        gap, flow = problem.bounds.gap(w, u)
        difference = problem.value(w) - problem.dual_value(flow)
        assert gap.total == pytest.approx(difference, rel=1e-9, abs=1e-9)


def test_bad_flows_are_named():
    problem = Case("connected", "squared", "l2").problem()
    u = np.zeros((problem.graph.n_edges, problem.dim))
    u[3, 0] = np.nan
    edge = tuple(problem.graph.edges[3].tolist())
    with pytest.raises(ValueError, match=rf"u: edge {edge[0]}-{edge[1]}|u: edge \({edge[0]}"):
        problem.lower_bound(u)
    with pytest.raises(ValueError, match="u: shape"):
        problem.dual_value(u[:-1])


@pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")
def test_the_gap_of_the_printed_34_is_infinite_and_its_pseudo_inverse_version_negative():
    """[GTV] (34) evaluates L_i^* where it is infinite; the pseudo-inverse answers nonsense."""
    rng = np.random.default_rng(0)
    n, d, rows = 40, 3, 2
    edges = [(i, i + 1) for i in range(n - 1)] + [(i, (7 * i + 3) % n) for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [e for e in edges if e[0] != e[1]])
    X = rng.standard_normal((n, rows, d))
    y = X @ np.array([1.0, -2.0, 3.0])
    labelled = rng.random(n) < 0.4
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y, labelled), "l2", 0.3)
    best = problem.solve(rtol=1e-9)
    negative = 0
    for n_iter in (5, 20, 60):
        # An early iterate of Algorithm 1 itself, before any repair.
        method = Algorithm1(problem)
        method.run(n_iter)
        w, u = method.w, method.u
        assert problem.dual_value(u) == -np.inf
        s = -(graph.divergence @ u)
        gram = np.einsum("nri,nrj->nij", X, X) * (2 / rows) * labelled[:, None, None]
        linear = np.einsum("nri,nr->ni", X, y) * (2 / rows) * labelled[:, None]
        inverse = np.linalg.pinv(gram, rcond=1e-9)
        conjugate = 0.5 * np.einsum("ni,nij,nj->n", s + linear, inverse, s + linear)
        constant = np.sum(y**2, axis=1) / rows * labelled
        naive = problem.value(w) + np.sum(conjugate - constant)
        gap, _ = problem.bounds.gap(w, u)
        assert gap.total >= problem.value(w) - best.value
        negative += naive < problem.value(w) - best.value
    assert negative


def test_a_gap_is_finite_where_every_repair_ends_off_a_domain(monkeypatch):
    """Zero is always feasible."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    losses = [gtv.AbsoluteLoss(np.eye(1), [y]) for y in (0.0, 3.0)]
    problem = gtv.GTVProblem(graph, losses, "l2", 0.5)
    w, u = np.array([[0.0], [1.0]]), np.array([[0.1]])
    astray = Flow(np.array([[7.0]]), np.empty(0))
    monkeypatch.setattr(DualBounds, "repaired", lambda self, u, w=None, enough=0.0: astray)
    gap, flow = problem.bounds.gap(w, u)
    assert not flow.any()
    assert gap.total == pytest.approx(problem.value(w))


def test_a_gap_computes_the_losses_once_and_their_data_are_made_once(monkeypatch):
    def problem():
        X, y = np.random.default_rng(1).standard_normal((5, 3, 2)), np.ones((5, 3))
        losses = gtv.SquaredLoss.stack(X, y)
        return gtv.GTVProblem(gtv.generators.chain(5, 1.0), losses.completed(10), "l2", 0.1)

    calls = []
    value, merged = gtv.StackedLoss.value, gtv.StackedLoss._merged
    first = problem()
    w, u = np.ones((10, 2)), np.ones((first.graph.n_edges, 2))
    with monkeypatch.context() as patch:
        patch.setattr(gtv.StackedLoss, "value", lambda *a: calls.append(a) or value(*a))
        first.bounds.gap_of(w, first.bounds.repair(u))
    assert len(calls) == 1
    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(gtv.StackedLoss, "_merged", lambda *a: calls.append(a) or merged(*a))
        assert problem().solve(rtol=1e-6, verbose=False).status == "optimal"
    assert len(calls) == 1


def several_classes(penalty="l2"):
    """A problem whose nodes have domains, and a pair near its solution."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 8, 2)), rng.integers(0, 3, (6, 8))
    losses = gtv.MultinomialLogisticLoss.stack(X, y, n_classes=3)
    graph = gtv.EmpiricalGraph(6, [(i, (i + 1) % 6) for i in range(6)])
    problem = gtv.GTVProblem(graph, losses, penalty, 0.05)
    found = problem.solve(rtol=1e-8, verbose=False)
    return problem, found.w, found.u


def test_a_flow_whose_gap_is_enough_is_not_repaired_at_the_nodes(monkeypatch):
    problem, w, u = several_classes()
    bounds = problem.bounds
    monkeypatch.setattr(DomainRepair, "repair", lambda *_: pytest.fail("it was repaired"))
    size = problem.value(w)
    near = bounds.repaired(u, w, 1e-6 * size)
    assert bounds.gap(w, u, near)[0].total <= 1e-6 * size
    # Capacities are kept to, however much is enough.
    near = bounds.repaired(3.0 * u, w, 1e3 * size)
    assert (problem.penalty.dual_norm(near.u) <= problem.capacities * (1.0 + 1e-12)).all()
    for enough in (0.0, 1e-16 * size):
        with pytest.raises(pytest.fail.Exception):
            bounds.repaired(u, w, enough)
