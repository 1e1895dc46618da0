"""Contracted problems by Clarabel against CVXPY, the optimality conditions and closed forms."""

from types import SimpleNamespace

import clarabel
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import gtvcvx as gtv
from gtvcvx.solvers.interior_point._prices import DEFAULTS as PRICES
from gtvcvx.solvers.polishing._cluster_problem import ClusterProblem

PENALTIES = {"l1": gtv.L1Norm(), "l2": gtv.L2Norm()}
# Clusters have one coordinate each for l1, and all of them otherwise.
SHAPES = [("l1", 1), ("l2", 1), ("l2", 2), ("l2", 3)]
PATH = [(k, k + 1) for k in range(6)]
DENSE = [(i, j) for i in range(6) for j in range(i + 1, 6)]


def make_problem(width, n_clusters, ends, rows, seed=0, lam=0.3):
    """Clusters of `width` coordinates with as many data points each as `rows` says, in turn."""
    rng = np.random.default_rng(seed)
    size = n_clusters * width
    hessian, linear = np.zeros((size, size)), np.zeros(size)
    for k in range(n_clusters):
        at = slice(k * width, (k + 1) * width)
        X = rng.standard_normal((rows[k % len(rows)], width))
        hessian[at, at] = X.T @ X
        linear[at] = X.T @ (X @ rng.standard_normal(width) + 1.0)
    groups = np.array(ends, dtype=np.int64).reshape(-1, 2)
    coordinates = np.arange(width)
    return ClusterProblem(
        sp.csc_array(np.triu(hessian)),
        linear,
        groups[:, :1] * width + coordinates,
        groups[:, 1:] * width + coordinates,
        lam * rng.uniform(0.2, 2.0, len(groups)),
    )


def full_hessian(problem):
    upper = problem.hessian.toarray()
    return upper + np.triu(upper, 1).T


def jumps(problem, z):
    return z[problem.heads] - z[problem.tails]


def balance(problem, z, flows):
    """P z - q + D^T u, which vanishes at the optimum."""
    left = full_hessian(problem) @ z - problem.linear
    np.add.at(left, problem.heads, flows)
    np.add.at(left, problem.tails, -flows)
    return left


def value(problem, z, penalty):
    loss = 0.5 * z @ full_hessian(problem) @ z - problem.linear @ z
    return loss + problem.capacities @ penalty.value(jumps(problem, z))


def cvxpy_value(problem, penalty):
    z = cp.Variable(len(problem.linear))
    loss = 0.5 * cp.quad_form(z, cp.psd_wrap(full_hessian(problem))) - problem.linear @ z
    r, q = problem.heads.shape
    if r:
        ends = problem.heads.ravel(), problem.tails.ravel()
        v = cp.reshape(z[ends[0]] - z[ends[1]], (r, q), order="C")
        loss += penalty.weighted_expression(v, problem.capacities)
    model = cp.Problem(cp.Minimize(loss))
    model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert model.status == cp.OPTIMAL
    return model.value


def check_optimal(problem, name):
    """Solve; check balance, capacities and alignment, which prove the optimum, and CVXPY's."""
    penalty = PENALTIES[name]
    z, flows = problem.solve()
    assert z.shape == problem.linear.shape
    assert flows.shape == problem.heads.shape
    assert np.abs(balance(problem, z, flows)).max() <= 1e-9
    assert (penalty.dual_norm(flows) <= problem.capacities + 1e-9).all()
    across = jumps(problem, z)
    work = problem.capacities * penalty.value(across) - np.sum(flows * across, axis=1)
    assert np.abs(work).max(initial=0.0) <= 1e-9
    assert value(problem, z, penalty) == pytest.approx(cvxpy_value(problem, penalty), abs=1e-8)
    return z, flows


@pytest.mark.parametrize(("name", "width"), SHAPES)
@pytest.mark.parametrize("ends", [PATH, DENSE], ids=["path", "dense"])
@pytest.mark.parametrize("lam", [0.03, 0.3, 30.0])
def test_optimum_of_clusters_with_data(name, width, ends, lam):
    check_optimal(make_problem(width, 7, ends, [width + 1], lam=lam), name)


@pytest.mark.parametrize(("name", "width"), SHAPES)
@pytest.mark.parametrize("ends", [PATH, DENSE], ids=["path", "dense"])
def test_optimum_with_free_and_rank_deficient_variables(name, width, ends):
    """Every other cluster has no data, and the rest too few to know all their coordinates."""
    check_optimal(make_problem(width, 7, ends, [0, max(width - 1, 1)], seed=1), name)


@pytest.mark.parametrize(("name", "width"), SHAPES)
def test_one_cluster_has_the_minimizer_of_its_loss(name, width):
    problem = make_problem(width, 1, [], [width + 2])
    z, flows = check_optimal(problem, name)
    np.testing.assert_allclose(z, np.linalg.solve(full_hessian(problem), problem.linear), atol=1e-9)
    assert flows.shape == (0, width)


@pytest.mark.parametrize(("name", "width"), SHAPES)
def test_clusters_without_edges_are_on_their_own(name, width):
    problem = make_problem(width, 3, [], [width + 2, 0])
    z, _ = check_optimal(problem, name)
    least = np.linalg.lstsq(full_hessian(problem), problem.linear, rcond=None)[0]
    np.testing.assert_allclose(problem.hessian @ z, problem.hessian @ least, atol=1e-9)


@pytest.mark.parametrize(("name", "width"), SHAPES)
def test_no_data_at_all_is_solved_without_jumps_and_flows(name, width):
    problem = make_problem(width, 4, PATH[:3], [0])
    z, flows = check_optimal(problem, name)
    np.testing.assert_allclose(jumps(problem, z), 0.0, atol=1e-9)
    np.testing.assert_allclose(balance(problem, z, flows), 0.0, atol=1e-12)


def test_parallel_edges_count_as_one_with_both_capacities():
    single = make_problem(2, 3, [(0, 1), (1, 2)], [3])
    twice = np.array([0, 0, 1])
    parallel = single._replace(
        heads=single.heads[twice],
        tails=single.tails[twice],
        capacities=single.capacities[twice] * [0.25, 0.75, 1.0],
    )
    z, flows = check_optimal(single, "l2")
    again, parts = check_optimal(parallel, "l2")
    # Values agree to the solver's tolerance, points and flows to its root.
    np.testing.assert_allclose(again, z, atol=1e-5)
    np.testing.assert_allclose([parts[0] + parts[1], parts[2]], flows, atol=1e-5)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("capacity", [0.5, 5.0])
def test_two_scalars_in_closed_form(name, capacity):
    """min (z_0 - 4)^2 + (z_1 - 1)^2 + c |z_0 - z_1|: both move by c / 2 until they meet."""
    problem = ClusterProblem(
        sp.csc_array(2.0 * np.eye(2)),
        np.array([8.0, 2.0]),
        np.array([[0]]),
        np.array([[1]]),
        np.array([capacity]),
    )
    z, flows = problem.solve()
    move = min(capacity / 2.0, 1.5)
    np.testing.assert_allclose(z, [4.0 - move, 1.0 + move], atol=1e-9)
    # The flow leaves the head, whose parameter is larger: 2 (z_0 - 4) + u = 0.
    np.testing.assert_allclose(flows, [[2.0 * move]], atol=1e-9)


@pytest.mark.parametrize(("name", "width"), SHAPES)
def test_unbounded_problems_have_no_solution(name, width):
    """A linear term pulls at a cluster without data, harder than its edge can hold."""
    problem = make_problem(width, 2, [(0, 1)], [width + 1, 0])
    pulled = problem._replace(linear=problem.linear + np.repeat([0.0, 1e3], width))
    assert pulled.solve() is None


@pytest.mark.parametrize("entry", [np.inf, np.nan, 1e200])
def test_numbers_that_clarabel_cannot_digest_have_no_solution(entry):
    problem = make_problem(2, 3, [(0, 1), (1, 2)], [3])
    assert problem._replace(linear=np.full(6, entry)).solve() is None


@pytest.mark.parametrize("status", ["NumericalError", "InsufficientProgress", "MaxTime"])
def test_a_failure_of_clarabel_is_no_solution(status, monkeypatch):
    answer = SimpleNamespace(status=status, x=[0.0] * 8, z=[0.0] * 6)
    solver = SimpleNamespace(solve=lambda: answer)
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *arguments: solver)
    assert make_problem(2, 3, [(0, 1), (1, 2)], [3]).solve() is None


def test_a_factor_that_takes_too_long_is_not_made(monkeypatch):
    """Clarabel looks at its time limit between steps, each of which makes one."""
    problem = make_problem(2, 7, PATH, [3])
    priced = []

    def price(*given):
        priced.append(given)
        return 1e9

    monkeypatch.setattr(type(PRICES), "by_clarabel", lambda self, *given: price(*given))
    assert problem.solve(most=0.9e9) is None
    assert problem.solve(most=1.1e9) is not None
    assert len(priced) == 2
    assert min(priced[0]) > 0
