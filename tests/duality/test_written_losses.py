"""How large solutions may be where losses are written with CVXPY, and gaps that depend on it."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx.duality._lengths import CONIC, CURVED, Lengths, rows_of_forms

FAR = 1e6


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def problem_of(losses, d, edges=None, lam=10.0):
    edges = [(i, i + 1) for i in range(len(losses) - 1)] if edges is None else edges
    return gtv.GTVProblem(gtv.EmpiricalGraph(len(losses), edges), losses, "l2", lam)


@given(leak=st.floats(1e-6, 1.0))
def test_flow_that_is_not_conserved_pairs_with_points_as_large_as_targets(leak):
    """What a node without a loss takes would be worth FAR times as much at the optimum."""
    loss = gtv.CvxpyLoss(lambda w: cp.sum(cp.abs(w - FAR)), dim=1)
    problem = problem_of([loss, gtv.ZeroLoss()], 1)
    w = np.full((2, 1), FAR - leak)
    # The loss alone is at its best for the flow; and the value is the leak above the least.
    u = np.linalg.lstsq(problem.graph.divergence.toarray(), [[1.0], [-1.0]], rcond=None)[0]
    assert problem.value(w) == pytest.approx(leak, abs=1e-9)
    for flow in (u, -u):
        assert problem.bounds.gap_of(w, flow).total >= problem.value(w)


def test_small_points_tell_nothing_of_solutions_that_are_large(rng):
    """A gap counts with solutions as large as data ask for, whatever w is: as with known losses."""
    X = np.column_stack([np.ones(6), rng.normal(1e3, 1.0, (6, 2))])
    y = X @ np.array([-1e3, 1.0, 2.0])
    written = [
        gtv.CvxpyLoss(lambda w, x=x, t=t: cp.norm(x[None] @ w - t, 2), dim=3)
        for x, t in zip(X, y, strict=True)
    ]
    known = [gtv.AbsoluteLoss(x[None], [t]) for x, t in zip(X, y, strict=True)]
    ours, theirs = (problem_of(each, 3).bounds._terms for each in (written, known))
    np.testing.assert_array_less(theirs.alone, 10.0 * ours.alone)
    np.testing.assert_array_less(ours.alone, 10.0 * theirs.alone)
    w = rng.standard_normal((6, 3))
    assert (ours.reach(w) >= np.abs(w).max(axis=0)).all()


BUILDS = {
    "norm": lambda X, y: lambda w: cp.norm(X @ w - y, 2),
    "absolute": lambda X, y: lambda w: cp.norm1(X @ w - y),
    "squares": lambda X, y: lambda w: cp.sum_squares(X @ w - y),
    "huber": lambda X, y: lambda w: cp.sum(cp.huber(X @ w - y)),
    "quadratic": lambda X, y: lambda w: cp.quad_form(w, X.T @ X, assume_PSD=True) - 2 * (y @ X) @ w,
    "bounded": lambda X, y: (
        lambda w: (cp.norm1(X @ w - y), [w >= -1e9, w <= 1e9, 1e-6 * w[0] <= 1.0])
    ),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_rows_of_forms_say_about_as_much_as_the_data(build, rng):
    """Bounds on w, far from all that matters, change nothing."""
    X, y = rng.standard_normal((8, 3)) * [1.0, 1e3, 1e-2], 50.0 * rng.standard_normal(8)
    problem = problem_of([gtv.ZeroLoss(), gtv.CvxpyLoss(build(X, y), dim=3)], 3)
    (term,) = rows_of_forms(problem.losses)
    assert term["kind"] == CONIC
    assert (term["node"] == 1).all()
    assert len(term["node"]) == len(term["X"]) == len(term["y"])
    squares = np.sum(X**2, axis=0)
    expected = Lengths(np.concatenate([[0.0, 8.0, np.sum(y**2)], squares])).alone
    found = problem.bounds._terms.alone
    assert (found >= 0.3 * expected).all()
    solution = np.linalg.lstsq(X, y, rcond=None)[0]
    assert (found >= 0.3 * np.abs(solution)).all()


def test_what_falls_without_end_is_known_as_such():
    X = np.array([[1.0, 2.0]])
    loss = gtv.CvxpyLoss(lambda w: cp.sum(cp.logistic(X @ w)), dim=2)
    problem = problem_of([loss, gtv.ZeroLoss()], 2)
    (term,) = rows_of_forms(problem.losses)
    assert term["kind"] == CURVED
    known = problem_of([gtv.LogisticLoss(X, [0.0]), gtv.ZeroLoss()], 2)
    long = problem.bounds._terms.reach(np.zeros((2, 2)))
    assert (long >= 0.3 * known.bounds._terms.reach(np.zeros((2, 2)))).all()


def test_a_loss_without_rows_has_none():
    loss = gtv.CvxpyLoss(lambda w: (cp.Constant(0.0) + 0.0 * cp.sum(w), [w >= 0.0]), dim=2)
    problem = problem_of([loss, gtv.PointLoss([-1.0, 2.0])], 2)
    (term,) = rows_of_forms(problem.losses)
    assert term["X"].shape == (0, 2)
    assert problem.solve(rtol=1e-6, verbose=False).status == "optimal"
