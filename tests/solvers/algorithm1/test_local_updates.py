"""Inexact local updates of Algorithm 1: what converges, and true gaps for what does not."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv

LABELS = list("abcdefghij")


def graph():
    n = len(LABELS)
    edges = [(i, (i + 1) % (n - 1)) for i in range(n - 1)] + [(0, 4), (2, 6)]
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(edges))
    return gtv.EmpiricalGraph(n, edges, weights, LABELS)


def losses_at():
    """Squared and point losses, c and g unlabelled; j has no neighbour."""
    rng = np.random.default_rng(1)
    losses = {}
    for k, label in enumerate(LABELS):
        if label in "be":
            losses[label] = gtv.PointLoss(rng.standard_normal(2))
        elif label not in "cg":
            rows = rng.standard_normal((3 if k % 2 else 1, 2))
            losses[label] = gtv.SquaredLoss(rows, rng.standard_normal(len(rows)))
    return losses


@pytest.fixture(scope="module")
def problem():
    return gtv.GTVProblem(graph(), losses_at(), "l2", 0.2)


@pytest.fixture(scope="module")
def optimum(problem):
    exact = problem.solve(rtol=1e-10)
    return exact.value - exact.gap


def exact_update(node, v, tau, previous):
    return losses_at()[node].prox(v, tau)


class ReturnsV(gtv.LocalUpdate):
    """No training at all."""

    def __call__(self, losses, v, tau, previous, iteration):
        return v


class Noise(gtv.LocalUpdate):
    """The exact update, and an error of the size ``size(iteration)``."""

    def __init__(self, size):
        self.size, self.rng = size, np.random.default_rng(3)

    def __call__(self, losses, v, tau, previous, iteration):
        return losses.prox(v, tau) + self.size(iteration) * self.rng.standard_normal(v.shape)


def test_exact_updates_reproduce_algorithm_1(problem):
    exact = problem.solve(solver="PDHG", max_iter=60)
    by_node = problem.solve(solver="PDHG", max_iter=60, local_update=exact_update)
    np.testing.assert_allclose(by_node.w, exact.w, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(by_node.u, exact.u, rtol=1e-11, atol=1e-12)
    at_once = problem.solve(solver="PDHG", max_iter=60, local_update=Noise(lambda k: 0.0))
    np.testing.assert_allclose(at_once.w, exact.w, rtol=1e-11, atol=1e-12)
    assert by_node.n_iter == at_once.n_iter == 60


def test_updates_at_some_nodes_leave_the_others_exact(problem):
    asked = []

    def update(node, v, tau, previous):
        asked.append((node, tau))
        return exact_update(node, v, tau, previous)

    exact = problem.solve(solver="PDHG", max_iter=20)
    some = problem.solve(solver="PDHG", max_iter=20, local_update={"a": update, "e": update})
    np.testing.assert_allclose(some.w, exact.w, rtol=1e-11, atol=1e-12)
    # Nodes are named by their labels, and tau is one over the degree.
    degrees = problem.graph.degrees
    assert set(asked) == {("a", 1 / degrees[0]), ("e", 1 / degrees[4])}
    assert len(asked) == 40


def test_unlabelled_nodes_are_not_asked(problem):
    asked = set()

    def update(node, v, tau, previous):
        asked.add(node)
        return exact_update(node, v, tau, previous)

    problem.solve(solver="PDHG", max_iter=2, local_update=update)
    assert asked == set(LABELS) - {"c", "g"}


@pytest.mark.parametrize("n_steps", [1, 5])
def test_gradient_steps_converge(problem, optimum, n_steps):
    steps = gtv.GradientSteps(n_steps)
    solution = problem.solve(solver="PDHG", rtol=1e-6, max_iter=20_000, local_update=steps)
    assert solution.status == "optimal"
    assert solution.rel_gap <= 1e-6
    assert solution.gap >= solution.value - optimum >= -1e-9


def test_gradient_steps_on_logistic_and_other_smooth_losses():
    """Losses without a constant curvature, by CVXPY."""
    rng = np.random.default_rng(6)
    losses = {}
    for label in "abdf":
        rows, signs = rng.standard_normal((5, 2)), rng.choice([-1.0, 1.0], 5)
        losses[label] = gtv.CvxpyLoss(
            lambda w, A=signs[:, None] * rows: (
                cp.sum(cp.logistic(-A @ w)) / 5 + 0.05 * cp.sum_squares(w)
            ),
            dim=2,
        )
    # Without the node that has no neighbour.
    part = gtv.EmpiricalGraph(9, graph().edges, graph().weights, LABELS[:9])
    problem = gtv.GTVProblem(part, losses, "l2", 0.1)
    optimum = problem.solve(solver="CLARABEL", rtol=1e-9).value
    steps = gtv.GradientSteps(2, growth=0.2)
    solution = problem.solve(solver="PDHG", rtol=1e-5, max_iter=600, local_update=steps)
    assert solution.status == "optimal"
    assert solution.gap >= solution.value - optimum - 1e-8


@pytest.mark.parametrize("max_iter", [1, 3, 10, 40])
def test_gaps_of_few_inexact_iterations_are_true(problem, optimum, max_iter):
    for update in (gtv.GradientSteps(1, growth=0.0), Noise(lambda k: 0.3), ReturnsV()):
        solution = problem.solve(solver="PDHG", max_iter=max_iter, local_update=update)
        assert np.isfinite(solution.gap)
        assert solution.gap >= solution.value - optimum
        assert solution.value - solution.gap <= optimum + 1e-9


def test_a_wrong_update_gets_a_large_and_true_gap(problem, optimum):
    wrong = problem.solve(solver="PDHG", rtol=1e-6, max_iter=2000, local_update=ReturnsV())
    assert wrong.status == "user_limit"
    assert wrong.n_iter == 2000
    assert wrong.gap >= wrong.value - optimum > 0.1


def test_summable_errors_do_no_harm(problem, optimum):
    noisy = Noise(lambda k: 0.5 / k**2)
    solution = problem.solve(solver="PDHG", rtol=1e-6, max_iter=20_000, local_update=noisy)
    assert solution.status == "optimal"
    assert solution.gap >= solution.value - optimum >= -1e-9


def test_errors_that_stay_are_seen_in_the_gap(problem, optimum):
    noisy = Noise(lambda k: 0.05)
    solution = problem.solve(solver="PDHG", rtol=1e-6, max_iter=2000, local_update=noisy)
    assert solution.status == "user_limit"
    assert solution.gap >= solution.value - optimum > 1e-6


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
def test_backtracking_approaches_the_proximal_point(scale):
    """At curvatures far from 1 / tau, and exactly at once where there is no loss."""
    rng = np.random.default_rng(5)
    rows = scale * rng.standard_normal((4, 3, 2))
    losses = gtv.SquaredLoss.stack(rows, rng.standard_normal((4, 3))).completed(5)
    v, tau = rng.standard_normal((5, 2)), rng.uniform(0.1, 1.0, 5)
    exact = losses.prox(v, tau)
    errors = [
        np.linalg.norm(gtv.GradientSteps(n)(losses, v, tau, np.zeros((5, 2)), 1) - exact, axis=1)
        for n in (1, 30, 3000)
    ]
    assert all((after <= before + 1e-12).all() for before, after in itertools.pairwise(errors))
    assert errors[0][4] <= 1e-15
    assert errors[2].max() <= 1e-8 * max(1.0, np.abs(exact).max())


def test_given_steps_and_growth():
    losses = gtv.PointLoss.stack(np.zeros((2, 1)))
    v, tau, start = np.zeros((2, 1)), np.ones(2), np.ones((2, 1))
    # The gradient of z^2 + z^2 / 2 is 3 z: each step multiplies by 1 - 3 step.
    fixed = gtv.GradientSteps(2, step=[0.1, 0.2], growth=0.5)
    np.testing.assert_allclose(fixed(losses, v, tau, start, 1), [[0.7**2], [0.4**2]])
    np.testing.assert_allclose(fixed(losses, v, tau, start, 4), [[0.7**4], [0.4**4]])
    np.testing.assert_allclose(fixed(losses, v, tau, start, 5), [[0.7**5], [0.4**5]])
    with pytest.raises(ValueError, match=r"step: a number or shape \(3,\)"):
        fixed(
            gtv.PointLoss.stack(np.zeros((3, 1))), np.zeros((3, 1)), np.ones(3), np.ones((3, 1)), 1
        )


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (lambda node, v, tau, previous: v * np.nan, ValueError, "local_update: node 'a' has an"),
        (lambda node, v, tau, previous: v[:1], ValueError, "node 'a': 2 real numbers are expected"),
        (lambda node, v, tau, previous: None, ValueError, "node 'a': 2 real numbers are expected"),
        ({"z": exact_update}, ValueError, "'z' is not a node of the graph"),
        ({"a": 3}, TypeError, "node 'a' has 3, which is not callable"),
        ("gradient", TypeError, "a LocalUpdate, a callable, or a mapping"),
    ],
)
def test_bad_updates_are_refused_by_name(problem, update, error, message):
    with pytest.raises(error, match=message):
        problem.solve(solver="PDHG", max_iter=5, local_update=update)


def test_bad_results_at_once_are_refused_by_name(problem):
    class Infinite(ReturnsV):
        def __call__(self, losses, v, tau, previous, iteration):
            v[3] = np.inf
            return v

    class Short(ReturnsV):
        def __call__(self, losses, v, tau, previous, iteration):
            return v[1:]

    with pytest.raises(ValueError, match="local_update: node 'd' has an entry that is not finite"):
        problem.solve(solver="PDHG", max_iter=5, local_update=Infinite())
    with pytest.raises(ValueError, match=r"local_update: shape \(10, 2\) is expected"):
        problem.solve(solver="PDHG", max_iter=5, local_update=Short())


def test_other_solvers_have_no_local_updates(problem):
    with pytest.raises(TypeError, match="local_update: AUTO has no such option"):
        problem.solve(local_update=exact_update)
    with pytest.raises(ValueError, match="local_update: EXACT"):
        problem.solve(solver="EXACT", local_update=exact_update)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"n_steps": 1.5}, "n_steps"),
        ({"growth": -1.0}, "growth"),
        ({"growth": np.inf}, "growth"),
        ({"step": 0.0}, "step"),
        ({"step": [0.1, np.nan]}, "step"),
    ],
)
def test_bad_gradient_steps_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        gtv.GradientSteps(**arguments)


def test_updates_cannot_change_the_method_from_inside(problem):
    class Vandal(gtv.LocalUpdate):
        def __call__(self, losses, v, tau, previous, iteration):
            z = losses.prox(v, tau)
            for argument in (v, tau, previous):
                argument[:] = 7.0
            return z

    exact = problem.solve(solver="PDHG", max_iter=10)
    same = problem.solve(solver="PDHG", max_iter=10, local_update=Vandal())
    np.testing.assert_allclose(same.w, exact.w, rtol=1e-11, atol=1e-12)
