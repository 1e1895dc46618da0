"""Formulas of papers related to [GTV] as they are printed, and what holds instead.

[nLasso] SarcheshmehPour, Leinonen, Jung, "Federated Learning from Big Data over Networks".
[Notes] Jung, "CS-E4740 Federated Learning", lecture notes 2023.
[FedADMM] Wang, Zhao, Lin, "Heterogeneous Federated Learning on Arbitrary Graphs".
[PGFL] Gauthier et al., "Personalized Graph Federated Learning with Differential Privacy".
"""

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import quad

import gtvcvx as gtv
import verify

N, D = 6, 2
GRAPH = gtv.EmpiricalGraph(
    N, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)], [1.0, 0.5, 1.5, 0.7, 1.0, 2.0, 0.8]
)
UNWEIGHTED = gtv.EmpiricalGraph(N, GRAPH.edges)
HEADS, TAILS = GRAPH.edges.T


def local_data(rows, seed=0):
    """Features and targets of the nodes, ``rows[i]`` of node i."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((m, D)) for m in rows]
    return X, [x @ rng.standard_normal(D) + 0.1 * rng.standard_normal(len(x)) for x in X]


def optimum(graph, losses, penalty, lam):
    """Solution by an interior-point method, with a proof that it is one."""
    problem = gtv.GTVProblem(graph, losses, penalty, lam)
    solution = problem.solve("CLARABEL", rtol=1e-11)
    assert verify.certify(problem, solution.w, solution.u, rtol=1e-8).status == "CERTIFIED"
    return solution.w


def squared_losses(X, y):
    return [gtv.SquaredLoss(x, t) for x, t in zip(X, y, strict=True)]


# [Notes] FedRelax


def fed_relax(X, y, lam):
    """All nodes at once minimize L_i(v) + lam sum_j A_ij ||v - w_j||^2, until nothing moves."""
    A = np.zeros((N, N))
    A[HEADS, TAILS] = A[TAILS, HEADS] = GRAPH.weights
    Q = np.array([x.T @ x / len(x) for x in X])
    b = np.array([x.T @ t / len(t) for x, t in zip(X, y, strict=True)])
    system = Q + lam * A.sum(axis=1)[:, None, None] * np.eye(D)
    w, moved = np.zeros((N, D)), np.inf
    while moved > 1e-13:
        previous = w
        w = np.linalg.solve(system, (b + lam * A @ w)[:, :, None])[:, :, 0]
        moved = np.abs(w - previous).max()
    return w


def test_fed_relax_needs_lam_and_with_the_printed_half_solves_the_problem_for_half_of_lam():
    """[Notes] (53)-(54) print lam/2 where block minimization of (51) has lam.

    (51) has no 1/2 in its penalty: its lam is half of that of the penalty "squared".
    """
    lam = 0.3
    X, y = local_data([4] * N)
    right, for_half = (
        optimum(GRAPH, squared_losses(X, y), "squared", 2 * value) for value in (lam, lam / 2)
    )
    np.testing.assert_allclose(fed_relax(X, y, lam), right, atol=1e-5)
    np.testing.assert_allclose(fed_relax(X, y, lam / 2), for_half, atol=1e-5)
    assert np.abs(right - for_half).max() > 0.05


# [nLasso] (20), (21): the primal update of Algorithm 1


def algorithm_1(graph, X, y, lam, mean, n_iter=4000):
    """Primal-dual method, l2 penalty; prox of the mean (20) or, as printed in (21), the sum."""
    tau = 1 / graph.degrees
    weight = 2 * tau / ([len(t) for t in y] if mean else 1)
    gram = np.array([x.T @ x for x in X])
    inverse = np.linalg.inv(np.eye(D) + weight[:, None, None] * gram)
    linear = weight[:, None] * [x.T @ t for x, t in zip(X, y, strict=True)]
    capacity = lam * graph.weights[:, None]
    w, u = np.zeros((N, D)), np.zeros((graph.n_edges, D))
    for _ in range(n_iter):
        previous = w
        v = w - tau[:, None] * (graph.divergence @ u) + linear
        w = np.einsum("nij,nj->ni", inverse, v)
        u = u + 0.5 * (graph.incidence @ (2 * w - previous))
        u = u * np.minimum(1, capacity / np.linalg.norm(u, axis=1, keepdims=True))
    return w


def test_nlasso_21_without_the_number_of_data_points_solves_another_problem_than_20():
    """[nLasso] (20) is the mean squared error; (21), without 1/m_i, is the prox of the sum."""
    lam = 0.2
    X, y = local_data([2, 3, 5, 8, 4, 6])
    mean = optimum(GRAPH, squared_losses(X, y), "l2", lam)
    sums = [
        gtv.SquaredLoss(np.sqrt(len(t)) * x, np.sqrt(len(t)) * t) for x, t in zip(X, y, strict=True)
    ]
    total = optimum(GRAPH, sums, "l2", lam)
    np.testing.assert_allclose(algorithm_1(GRAPH, X, y, lam, mean=True), mean, atol=1e-5)
    np.testing.assert_allclose(algorithm_1(GRAPH, X, y, lam, mean=False), total, atol=1e-5)
    assert np.abs(mean - total).max() > 0.05


def test_nlasso_21_with_equally_many_data_points_m_divides_lam_by_m():
    """[nLasso] (21): with m_i = m at all nodes it solves (20) for lam / m."""
    lam, m = 0.8, 4
    X, y = local_data([m] * N)
    divided = optimum(GRAPH, squared_losses(X, y), "l2", lam / m)
    np.testing.assert_allclose(algorithm_1(GRAPH, X, y, lam, mean=False), divided, atol=1e-5)


def test_nlasso_24_divides_a_sum_over_the_test_nodes_by_the_number_of_all_nodes():
    """[nLasso] (24) sums over V without M and divides by |V|: not the mean error of a test node.

    In consensus all nodes of a truth that is the same everywhere err by the same amount, and the
    printed value is below it.
    """
    X, _ = local_data([4] * N)
    truth = np.array([1.0, -2.0])
    rng = np.random.default_rng(1)
    y = [x @ truth + 0.3 * rng.standard_normal(len(x)) for x in X]
    training = [0, 3]
    losses = {i: gtv.SquaredLoss(X[i], y[i]) for i in training}
    w = optimum(GRAPH, losses, "l2", 100.0)
    errors = np.sum((w - truth) ** 2, axis=1)
    test = np.setdiff1d(np.arange(N), training)

    printed = errors[test].sum() / N
    np.testing.assert_allclose(errors, errors[0], rtol=1e-4)
    assert printed < 0.7 * errors[test].min()
    assert printed * N / len(test) == pytest.approx(errors[test].mean())


# [FedADMM] (5), (13), (14)


def test_fed_admm_13_with_lam_is_5_with_lam_times_the_number_of_nodes():
    """[FedADMM] (13) divides the loss by V, (5) does not."""
    lam = 0.05
    X, y = local_data([4] * N)
    theta = cp.Variable((N, D))
    loss = sum(cp.sum_squares(X[i] @ theta[i] - y[i]) / len(y[i]) for i in range(N))
    variation = cp.sum(cp.norm(theta[HEADS] - theta[TAILS], 2, axis=1))
    cp.Problem(cp.Minimize(loss / N + lam * variation)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12
    )
    scaled, plain = (
        optimum(UNWEIGHTED, squared_losses(X, y), "l2", value) for value in (N * lam, lam)
    )
    np.testing.assert_allclose(theta.value, scaled, atol=1e-5)
    assert np.abs(theta.value - plain).max() > 0.05


def fed_admm(X, y, lam, rho=0.5, n_iter=6000):
    """[FedADMM] Algorithm 1 with full gradients, constant steps; alpha, beta at edge ends."""
    ends = np.stack([HEADS, TAILS])
    Q = np.array([2 * x.T @ x / len(x) for x in X])
    b = np.array([2 * x.T @ t / len(t) for x, t in zip(X, y, strict=True)])
    step = 1 / (np.linalg.norm(Q, 2, axis=(1, 2)) + rho * UNWEIGHTED.degrees)
    theta = np.zeros((N, D))
    beta, alpha = np.zeros((2, len(HEADS), D)), np.zeros((2, len(HEADS), D))
    for _ in range(n_iter):
        gradient = np.einsum("nij,nj->ni", Q, theta) - b
        np.add.at(gradient, ends, rho * (theta[ends] - beta) - alpha)
        theta = theta - step[:, None] * gradient  # (14)
        p, q = theta[ends] - alpha / rho
        size = np.linalg.norm(p - q, axis=1, keepdims=True)
        half = 0.5 * (p - q) * np.maximum(0, 1 - 2 * lam / rho / np.maximum(size, 1e-300))
        beta = np.stack([(p + q) / 2 + half, (p + q) / 2 - half])
        alpha = alpha - rho * (theta[ends] - beta)
    return theta


def test_fed_admm_step_14_solves_5_and_not_13():
    """[FedADMM] (14) takes the gradient of (5): its limit for lam is not the solution of (13)."""
    lam = 0.05
    X, y = local_data([4] * N)
    of_5, of_13 = (
        optimum(UNWEIGHTED, squared_losses(X, y), "l2", value) for value in (lam, N * lam)
    )
    limit = fed_admm(X, y, lam)
    np.testing.assert_allclose(limit, of_5, atol=1e-5)
    assert np.abs(limit - of_13).max() > 0.05


# [PGFL] (46): privacy of the Gaussian mechanism


def renyi_divergence(alpha, shift, deviation):
    """Order-alpha divergence of N(shift, deviation^2) from N(0, deviation^2), by quadrature."""

    def log_density(x, mean):
        return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2 * np.pi))

    def integrand(x):
        return np.exp(alpha * log_density(x, shift) + (1 - alpha) * log_density(x, 0.0))

    centre, reach = alpha * shift, 12 * deviation
    integral, _ = quad(integrand, centre - reach, centre + reach, epsabs=0, epsrel=1e-10)
    return np.log(integral) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 5.0])
@pytest.mark.parametrize(("shift", "deviation"), [(0.3, 0.5), (2.0, 1.5), (0.5, 2.0)])
def test_pgfl_privacy_loss_is_quadratic_in_the_sensitivity(alpha, shift, deviation):
    """[PGFL] proof of Theorem III ends with Delta / (2 delta^2); (46), with Delta^2, is right."""
    loss = renyi_divergence(alpha, shift, deviation) / alpha
    assert loss == pytest.approx(shift**2 / (2 * deviation**2), rel=1e-8)
    assert loss != pytest.approx(shift / (2 * deviation**2), rel=0.1)


# [Notes] (25): strong convexity


def random_quadratic(rng):
    """A strongly convex quadratic, its gradient and its constant alpha."""
    root, b = rng.standard_normal((5, 3)), rng.standard_normal(3)
    H = root.T @ root
    return lambda v: 0.5 * v @ H @ v - b @ v, lambda v: H @ v - b, np.linalg.eigvalsh(H)[0]


def test_notes_25_needs_the_gradient_at_v_and_fails_with_the_printed_one_at_v_prime():
    """[Notes] (25): f(v') >= f(v) + <grad f(v), v' - v> + (alpha/2) ||v' - v||^2.

    With the gradient at v' it fails at every pair of points, for alpha = 0 already.
    """
    rng = np.random.default_rng(0)
    for _ in range(50):
        f, gradient, alpha = random_quadratic(rng)
        assert alpha > 0
        v, v_prime = rng.standard_normal((2, 3))
        step = v_prime - v
        rise = f(v_prime) - f(v)
        assert rise >= gradient(v) @ step + 0.5 * alpha * step @ step - 1e-12
        assert rise < gradient(v_prime) @ step
