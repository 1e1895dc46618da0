"""Problems whose nodes have losses written with CVXPY, by every solver."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
import verify

_RNG = np.random.default_rng(12)
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (4, 5)]
ROWS = [_RNG.standard_normal((m, 2)) for m in (4, 1, 3, 5, 2, 4)]
TARGETS = [_RNG.standard_normal(len(rows)) for rows in ROWS]
PROBLEMS = {
    "squares": lambda A, b: lambda w: cp.sum_squares(A @ w - b) / len(b),
    "huber+group": lambda A, b: lambda w: cp.sum(cp.huber(A @ w - b)) / len(b) + 0.1 * cp.norm(w),
    "logistic": lambda A, b: (
        lambda w: (
            cp.sum(cp.logistic(A @ w)) / len(b)
            - (b > 0) @ A @ w / len(b)
            + 0.05 * cp.sum_squares(w)
        )
    ),
    "simplex": lambda A, b: (
        lambda w: (
            cp.sum_squares(A @ w - b) / len(b),
            [w >= 0, cp.sum(w) == 1],
        )
    ),
    "absolute": lambda A, b: lambda w: cp.norm1(A @ w - b) / len(b),
}


def solved(problem):
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


def graph():
    return gtv.EmpiricalGraph(6, EDGES, np.linspace(0.5, 1.5, len(EDGES)), list("abcdef"))


def problem_of(name, penalty="l2", lam=0.1):
    """Node c is unlabelled, and node e has a loss of the library."""
    losses = {
        label: gtv.CvxpyLoss(PROBLEMS[name](ROWS[i], TARGETS[i]))
        for i, label in enumerate("abcdef")
        if label not in "ce"
    }
    losses["e"] = gtv.SquaredLoss(ROWS[4], TARGETS[4])
    return gtv.GTVProblem(graph(), losses, penalty, lam)


@pytest.mark.parametrize("penalty", ["l2", "l1", "squared"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_primal_dual_and_iterative_solver_agree(name, penalty):
    problem = problem_of(name, penalty)
    reference = solved(problem.cvxpy())
    dual = problem.dual().cvxpy()
    dual.solve(solver=cp.CLARABEL)
    assert dual.value == pytest.approx(reference, abs=1e-6)
    solution = problem.solve(rtol=1e-6)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(reference, abs=2e-6 * max(1.0, abs(reference)))
    assert solution.gap >= solution.value - reference - 1e-8
    assert solution.dual_value <= reference + 1e-8
    exact = problem.solve(solver="CLARABEL", rtol=1e-8)
    assert exact.value == pytest.approx(reference, abs=1e-6)
    assert exact.gap <= 1e-6


def test_squares_make_the_problem_of_the_squared_loss():
    losses = {
        label: gtv.SquaredLoss(ROWS[i], TARGETS[i])
        for i, label in enumerate("abcdef")
        if label != "c"
    }
    twin = gtv.GTVProblem(graph(), losses, "l2", 0.1)
    ours = problem_of("squares").solve(rtol=1e-8)
    theirs = twin.solve(rtol=1e-9)
    assert ours.value == pytest.approx(theirs.value, abs=1e-7)
    # The flow is optimal for the other problem as well.
    assert twin.lower_bound(ours.u)[0] >= theirs.value - 1e-6


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_bound_lies_above_the_optimum(name):
    problem = problem_of(name)
    optimum = solved(problem.cvxpy())
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.05, 0.2, 1.0):
        u = size * rng.standard_normal((len(EDGES), 2))
        bound, flow = problem.lower_bound(u)
        assert -np.inf < bound <= optimum + 1e-8
        assert problem.dual_value(flow) <= optimum + 1e-8
    for n_iter in (1, 5, 20):
        solution = problem.solve(max_iter=n_iter)
        assert solution.gap >= solution.value - optimum - 1e-8


def test_flows_are_shortened_into_bounded_domains():
    """The slopes of absolute values are bounded: a repaired flow is feasible at every node."""
    problem = problem_of("absolute", lam=10.0)
    rng = np.random.default_rng(7)
    for _ in range(5):
        flow = problem.bounds.repair(3.0 * rng.standard_normal((len(EDGES), 2)))
        assert np.abs(flow).max() > 0.0
        assert np.isfinite(problem.dual_value(flow))
        assert np.isfinite(problem.bounds.gap_of(np.zeros((6, 2)), flow).total)


def test_constraints_hold_at_the_solution():
    problem = problem_of("simplex")
    w = problem.solve(rtol=1e-6).w
    constrained = [i for i in range(6) if i not in (2, 4)]
    assert w[constrained].min() >= -1e-7
    np.testing.assert_allclose(w[constrained].sum(axis=1), 1.0, atol=1e-7)
    # The paper's method, cold from a point outside the constraints, has a finite gap as well.
    first = problem.solve(solver="PDHG", max_iter=1)
    assert np.isfinite(first.gap)
    assert problem.solve(solver="PDHG", rtol=1e-5).status == "optimal"


def test_certificates_are_unproved_and_their_estimates_true():
    problem = problem_of("huber+group")
    solution = problem.solve(rtol=1e-6)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert certificate.status == "UNPROVED"
    assert "CvxpyLoss" in certificate.reason
    assert 0.0 <= certificate.gap <= 1e-5
    assert certificate.upper == pytest.approx(solution.value)


def test_problems_cannot_be_written_down(tmp_path):
    with pytest.raises(TypeError, match=r"'a' has a CvxpyLoss"):
        problem_of("squares").save(tmp_path / "problem.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_loss_of_many_nodes_is_made_once():
    calls = []

    def build(w):
        calls.append(w)
        return cp.norm1(w - 1.0)

    loss = gtv.CvxpyLoss(build)
    problem = gtv.GTVProblem(graph(), [loss] * 5 + [gtv.PointLoss([0.0, 0.0])], "l2", 0.1)
    assert problem.solve(rtol=1e-6).status == "optimal"
    assert problem.with_lam(0.2).solve(rtol=1e-6).status == "optimal"
    assert len(calls) == 1


def test_what_is_not_convex_is_refused_by_the_name_of_its_node():
    losses = {"a": gtv.PointLoss([1.0, 2.0]), "d": gtv.CvxpyLoss(lambda w: -cp.sum_squares(w))}
    with pytest.raises(cp.DCPError, match=r"(?s)losses: node 'd': build: .*concave"):
        gtv.GTVProblem(graph(), losses)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda w: np.ones((4, 3)) @ w,
            ValueError,
            r"build: failed for a variable of shape \(2,\)",
        ),
        (lambda w: w, ValueError, r"a real scalar is expected, got shape \(2,\)"),
        (lambda w: "loss", TypeError, "an expression, or a pair"),
        (lambda w: (cp.norm(w), w >= 0), TypeError, "an expression, or a pair"),
        (lambda w: (cp.norm(w), [True]), TypeError, "True is not a CVXPY constraint"),
        (lambda w: cp.norm(w) * cp.Parameter(name="p", value=1, nonneg=True), ValueError, "'p'"),
        (lambda w: cp.norm(w - cp.Variable(2, boolean=True)), ValueError, "integer"),
    ],
)
def test_bad_builds_are_refused_by_the_name_of_their_node(build, error, message):
    losses = {"a": gtv.PointLoss([1.0, 2.0]), "d": gtv.CvxpyLoss(build)}
    with pytest.raises(error, match=r"losses: node 'd': .*" + message):
        gtv.GTVProblem(graph(), losses)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda w: cp.sum(w), "unbounded below"),
        (lambda w: -cp.log(w[0]), "unbounded below"),
        (lambda w: (cp.norm(w), [w[0] >= 1, w[0] <= 0]), "no point satisfies the constraints"),
    ],
)
def test_what_has_no_least_value_is_refused_by_the_solver(build, message):
    losses = {"a": gtv.PointLoss([1.0, 2.0]), "d": gtv.CvxpyLoss(build)}
    problem = gtv.GTVProblem(graph(), losses)
    with pytest.raises(ValueError, match=r"losses: node 'd': build: .*" + message):
        problem.solve()


def test_dimensions_that_differ_are_refused_by_the_name_of_the_node():
    losses = {"a": gtv.PointLoss([1.0, 2.0]), "b": gtv.CvxpyLoss(cp.norm, dim=3)}
    with pytest.raises(ValueError, match="node 'b' has dimension 3"):
        gtv.GTVProblem(graph(), losses)
