"""Whole problems: CVXPY's primal and dual, the default solver and Algorithm 1 agree; true gaps."""

import os
from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import CASES, EDGES, problem

import gtvcvx as gtv
import verify

# Some cases have the infimum zero.
pytestmark = pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")

DRAWS = 5 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
PENALTIES = ("l1", "l2", "linf", "squared")
# Multipliers of separable data are at the edge of their intervals, where Clarabel gives up: the
# dual has no interior.
SEPARABLE = {"logistic-few-rows", "hinge-few-rows", "poisson-few-rows"}


@cache
def reference(name, penalty="l2"):
    """Return CVXPY's value, w and u of a case."""
    return by_cvxpy(problem(name, penalty))


def by_cvxpy(p):
    model = p.cvxpy()
    value = model.solve(solver=cp.CLARABEL)
    assert model.status == cp.OPTIMAL
    w = p.losses.project_domain(model.var_dict["w"].value)
    return value, w, model.constraints[0].dual_value


@cache
def least(name):
    """Return the least value that our own methods find."""
    return problem(name).solve(rtol=1e-9, max_iter=5000).value


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", CASES)
def test_primal_dual_and_default_solver_agree(name, penalty):
    p = problem(name, penalty)
    value, _, _ = reference(name, penalty)
    scale = max(1.0, abs(value))
    solution = p.solve(rtol=2e-7)
    assert solution.status == "optimal"
    assert abs(solution.value - value) <= 1e-6 * scale
    assert abs(solution.dual_value - value) <= 1e-6 * scale
    if name not in SEPARABLE:
        dual = p.dual().cvxpy()
        dual.solve(solver=cp.CLARABEL)
        assert abs(dual.value - value) <= 1e-6 * scale


@pytest.mark.parametrize("name", CASES)
def test_no_gap_is_below_the_true_suboptimality(name):
    p = problem(name)
    rng = np.random.default_rng(4)
    _, w_ref, u_ref = reference(name)
    best = min(p.value(w_ref), least(name))
    for k in range(DRAWS):
        noise = 10.0 ** -rng.integers(0, 10)
        w = p.losses.project_domain(w_ref + noise * rng.standard_normal(w_ref.shape))
        u = u_ref + noise * rng.standard_normal(u_ref.shape) * rng.choice([0.1, 1.0, 30.0])
        u = np.zeros_like(u) if k == 0 else u
        gap, flow = p.bounds.gap(w, u)
        bound, _ = p.lower_bound(u)
        room = 1e-12 * max(1.0, abs(p.value(w)))
        assert gap.total >= p.value(w) - best - room
        assert bound <= best + room
        assert (gap.node >= 0.0).all()
        # The flow is dual feasible by the conjugates' own account, up to rounding.
        assert p.dual_value(flow, tol=1e-9) > -np.inf


@pytest.mark.parametrize("name", CASES)
def test_every_iterate_has_a_true_gap(name):
    p = problem(name)
    best = least(name)
    for solver in ("AUTO", "PDHG"):
        for n_iter in (1, 10, 100):
            solution = p.solve(solver=solver, max_iter=n_iter, rtol=1e-15)
            assert np.isfinite(solution.gap)
            assert solution.gap >= solution.value - best - 1e-12 * max(1.0, abs(best))


@pytest.mark.parametrize("name", sorted(set(CASES) - SEPARABLE))
def test_the_bound_is_tight_at_the_optimum(name):
    p = problem(name)
    value, w, u = reference(name)
    bound, flow = p.lower_bound(u)
    assert value - bound <= 1e-6 * max(1.0, abs(value))
    gap, _ = p.bounds.gap(w, u)
    assert gap.total <= 1e-5 * max(1.0, abs(value))
    assert p.dual_value(flow) == pytest.approx(bound, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_exact_kernel_certifies_the_solution(name):
    """It shares no code with the bounds here, and finds the same gap."""
    p = problem(name)
    solution = p.solve(rtol=1e-8, max_iter=20_000)
    certificate = verify.certify(p, solution.w, solution.u, rtol=1e-6)
    assert certificate.status == "CERTIFIED"
    assert float(certificate.rel_gap) <= 10.0 * solution.rel_gap + 1e-10


@pytest.mark.parametrize("name", CASES)
def test_reference_solver_reports_a_small_true_gap(name):
    p = problem(name)
    solution = p.solve(solver="CLARABEL")
    assert np.isfinite(p.losses.value(solution.w)).all()
    assert solution.rel_gap <= 1e-4


def network(loss, n=150, d=2, labelled=0.5):
    """Nodes in the plane, the nearest of them joined; four clusters."""
    rng = np.random.default_rng(0)
    place = rng.random((n, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    edges = np.argwhere(np.triu(distance < np.sqrt(10.0 / (np.pi * n)), 1))
    truth = rng.standard_normal((4, d))[2 * (place[:, 0] > 0.5) + (place[:, 1] > 0.5)]
    node = np.repeat(np.flatnonzero(rng.random(n) < labelled), 4)
    X = rng.standard_normal((len(node), d))
    signal = np.sum(X * truth[node], axis=1) + 0.3 * rng.standard_normal(len(node))
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.5, 1.5, len(edges)))
    return gtv.GTVProblem(graph, loss(X, signal, node), "l2", 0.1)


@pytest.mark.parametrize(
    "loss",
    [
        lambda X, z, i: gtv.LogisticLoss.from_rows(X, (z > 0).astype(float), i),
        lambda X, z, i: gtv.HingeLoss.from_rows(X, np.where(z > 0, 1.0, -1.0), i),
        lambda X, z, i: gtv.QuantileLoss.from_rows(X, z, i, level=0.7),
        lambda X, z, i: gtv.PseudoHuberLoss.from_rows(X, z, i, delta=0.3),
        lambda X, z, i: (
            gtv.HuberLoss.from_rows(X, z, i, 150, delta=0.3) + gtv.Nonnegative().everywhere(150, 2)
        ),
    ],
    ids=["logistic", "hinge", "quantile", "pseudo-Huber", "huber nonnegative everywhere"],
)
def test_networks_are_solved_to_a_certified_gap(loss):
    p = network(loss)
    solution = p.solve(rtol=1e-6, max_iter=10_000)
    assert solution.status == "optimal"
    value = p.cvxpy().solve(solver=cp.CLARABEL)
    assert abs(solution.value - value) <= 2e-6 * max(1.0, abs(value))


def test_mixed_kinds_on_one_graph():
    rng = np.random.default_rng(8)
    X, z = rng.standard_normal((6, 5, 2)), rng.standard_normal((6, 5))
    losses = [
        gtv.LogisticLoss(X[0], z[0] > 0, 0.1),
        gtv.AbsoluteLoss(X[1], z[1]) + gtv.Nonnegative(),
        gtv.SquaredLoss(X[2], z[2]) + gtv.Ridge(0.2),
        gtv.PointLoss([1.0, 2.0]),
        gtv.PoissonLoss(X[4], np.arange(5)),
        gtv.ZeroLoss(),
    ]
    for penalty in PENALTIES:
        p = gtv.GTVProblem(gtv.EmpiricalGraph(6, EDGES), losses, penalty, 0.2)
        value, _, _ = by_cvxpy(p)
        assert p.solve(rtol=1e-7).value == pytest.approx(value, rel=1e-6, abs=1e-6)


def test_separable_labels_have_the_infimum_zero_and_a_valid_bound():
    X = np.random.default_rng(2).standard_normal((3, 2, 4))
    losses = gtv.LogisticLoss.stack(X, X @ [1.0, -1.0, 2.0, 0.5] > 0)
    p = gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 1), (1, 2)]), losses, "l2", 0.1)
    solution = p.solve(rtol=1e-5, max_iter=5000)
    assert 0.0 <= solution.value <= 1e-3
    assert solution.dual_value <= 0.0
    assert p.lower_bound(np.ones((2, 4)))[0] <= 0.0


def test_quadratic_sums_stay_quadratic():
    """They keep their affine proximal operator, and divide and conquer in one dimension."""
    rng = np.random.default_rng(1)
    y = rng.standard_normal((6, 1))
    squared = gtv.SquaredLoss.stack(np.ones((6, 1, 1)), y)
    losses = squared + gtv.Ridge(0.3).everywhere(6, 1) + gtv.PointLoss.stack(y)
    p = gtv.GTVProblem(gtv.EmpiricalGraph(6, EDGES), losses, "l1", 0.2)
    tau = rng.uniform(0.1, 2.0, 6)
    matrix, offset = losses.affine_prox(tau)
    v = rng.standard_normal((6, 1))
    np.testing.assert_allclose(
        losses.prox(v, tau), np.einsum("kij,kj->ki", matrix, v) + offset, rtol=1e-12
    )
    solution = p.solve(rtol=1e-9)
    assert solution.info["method"] == "divide and conquer"
    assert solution.value == pytest.approx(by_cvxpy(p)[0], rel=1e-7)
