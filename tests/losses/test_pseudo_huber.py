"""A loss from end to end: solved by default, certified by the exact kernel, as CVXPY has it."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import pseudo_huber

import gtvcvx as gtv
import verify

N, M = 24, 5


def data(d, units=1.0, targets=1.0):
    """Two groups of nodes on a ring with chords, and outliers among the targets."""
    rng = np.random.default_rng(d)
    edges = [(i, (i + 1) % N) for i in range(N)] + [(i, i + 7) for i in range(0, N - 7, 3)]
    scale = np.geomspace(1.0, units, d)
    X = rng.standard_normal((N, M, d)) * scale
    signal = np.where(np.arange(N) < N // 2, 1.0, -1.0)[:, None] * (X / scale).sum(axis=2)
    y = targets * (signal + 0.3 * rng.standard_t(1.5, (N, M)))
    return gtv.EmpiricalGraph(N, edges), X, y


def certified(problem):
    solution = problem.solve(rtol=1e-7)
    assert solution.status == "optimal"
    certificate = verify.certify(problem, solution.w, solution.u, rtol=1e-6)
    assert certificate.status == "CERTIFIED", certificate.reason
    return solution


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
@pytest.mark.parametrize("d", [1, 3])
def test_certified_and_as_cvxpy_has_it(d, penalty):
    graph, X, y = data(d)
    labelled = np.arange(N) % 4 != 1
    losses = gtv.PseudoHuberLoss.stack(X, y, labelled, delta=0.5)
    problem = gtv.GTVProblem(graph, losses, penalty, 0.2)
    solution = certified(problem)
    w = cp.Variable((N, d))
    root = cp.norm(
        cp.vstack([np.ones(M * labelled.sum()), _residuals(X, y, w, labelled) / 0.5]), axis=0
    )
    jumps = w[graph.edges[:, 0]] - w[graph.edges[:, 1]]
    variation = {
        "l1": lambda: cp.sum(cp.abs(jumps)),
        "l2": lambda: cp.sum(cp.norm(jumps, 2, axis=1)),
        "linf": lambda: cp.sum(cp.norm(jumps, "inf", axis=1)),
        "squared": lambda: 0.5 * cp.sum_squares(jumps),
    }[penalty]()
    model = cp.Problem(cp.Minimize(cp.sum(root - 1.0) * 0.25 / M + 0.2 * variation))
    assert model.solve(solver=cp.CLARABEL) == pytest.approx(solution.value, rel=1e-6)


def _residuals(X, y, w, labelled):
    rows = [X[i] @ w[i] - y[i] for i in np.flatnonzero(labelled)]
    return cp.hstack(rows)


@pytest.mark.parametrize(("units", "targets"), [(1e3, 1.0), (1.0, 1e5), (30.0, 1e4)])
@pytest.mark.parametrize("d", [1, 3])
def test_data_in_raw_units(d, units, targets):
    graph, X, y = data(d, units, targets)
    losses = gtv.PseudoHuberLoss.stack(X, y, delta=0.5 * targets)
    certified(gtv.GTVProblem(graph, losses, "l2", 0.1 * targets))


@pytest.mark.parametrize("delta", [1e-3, 1e3])
def test_nearly_absolute_and_nearly_squared(delta):
    graph, X, y = data(2)
    certified(
        gtv.GTVProblem(graph, gtv.PseudoHuberLoss.stack(X, y, delta=delta), "l2", 0.1 * delta)
    )


def test_every_way_to_write_it_is_one_loss():
    graph, X, y = data(2)
    delta = np.linspace(0.2, 2.0, N * M).reshape(N, M)
    stacked = gtv.PseudoHuberLoss.stack(X, y, delta=delta)
    node = np.repeat(np.arange(N), M)
    rows = gtv.PseudoHuberLoss.from_rows(X.reshape(-1, 2), y.ravel(), node, N, delta=delta.ravel())
    single = [gtv.PseudoHuberLoss(X[i], y[i], delta[i]) for i in range(N)]
    w = np.random.default_rng(0).standard_normal((N, 2))
    expected = pseudo_huber(delta, np.einsum("nmd,nd->nm", X, w) - y).mean(axis=1)
    for losses in (stacked, rows, single):
        problem = gtv.GTVProblem(graph, losses, "l2", 0.2)
        np.testing.assert_allclose(problem.losses.value(w), expected, rtol=1e-13)
    certified(problem)


def test_sums_with_regularizers_and_constraints():
    graph, X, y = data(2)
    losses = gtv.PseudoHuberLoss.stack(X, y, delta=0.5)
    for more in (gtv.Ridge(0.1), gtv.L1(0.05), gtv.Nonnegative()):
        certified(gtv.GTVProblem(graph, losses + more.everywhere(N, 2), "l2", 0.2))


def test_many_outputs():
    graph, X, y = data(2)
    Y = np.stack([y.ravel(), -2.0 * y.ravel()], axis=1)
    losses = gtv.multi_output(
        X.reshape(-1, 2), Y, gtv.PseudoHuberLoss, node=np.repeat(np.arange(N), M), delta=0.5
    )
    certified(gtv.GTVProblem(graph, losses, "l2", 0.2))


def test_files_keep_it(tmp_path):
    graph, X, y = data(1)
    problem = gtv.GTVProblem(graph, gtv.PseudoHuberLoss.stack(X, y, delta=0.5), "l2", 0.2)
    problem.save(tmp_path / "p.npz")
    w = np.random.default_rng(0).standard_normal((N, 1))
    assert gtv.GTVProblem.load(tmp_path / "p.npz").value(w) == problem.value(w)
