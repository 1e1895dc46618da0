"""Conic forms of many losses by CVXPY, made in one canonicalization: the same as one by one."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.conic import _function, _joint
from gtvcvx.conic._function import CvxpyFunction, make_forms
from gtvcvx.conic._joint import joint_forms

_RNG = np.random.default_rng(23)
X, Y = _RNG.standard_normal((4, 3)), _RNG.standard_normal(4)

# Every kind of cone, quadratic parts, constants, and constants in the rows of cones.
BUILDS = {
    "squares": lambda w: cp.sum_squares(X @ w - Y),
    "separable": lambda w: cp.norm1(w - 1.0),
    "linear": lambda w: (Y[:3] @ w, [w >= -1, w <= 2]),
    "minus five": lambda w: cp.norm(w, 2) - 5.0,
    "plus two": lambda w: cp.sum_squares(w) + 2.0,
    "exponential": lambda w: cp.sum(cp.logistic(X @ w)) + 0.1 * cp.sum_squares(w),
    "power": lambda w: cp.sum(cp.power(cp.abs(w) + 1, 1.7, approx=False)),
    "matrix": lambda w: cp.lambda_max(cp.diag(w) + X[:3] + X[:3].T) + cp.sum_squares(w),
    "zero": lambda w: 0.0,
    "ball": lambda w: (cp.norm1(X @ w - Y), [cp.norm(w) <= 0.5, cp.sum(w) == 0]),
}


def functions(*names):
    return [CvxpyFunction(BUILDS[name], 3) for name in names]


def alone(function):
    return function.form


def assert_same(found, expected):
    """The same data, but for rows ``0 == 0``, which nobody needs."""
    kept = (np.diff(expected.A.tocsr().indptr) > 0) | (expected.b != 0.0)
    assert found.dim == expected.dim
    np.testing.assert_array_equal(found.P.toarray(), expected.P.toarray())
    np.testing.assert_array_equal(found.q, expected.q)
    assert found.offset == expected.offset
    if sum(cone.rows for cone in found.cones) == len(expected.b):
        kept[:] = True
    np.testing.assert_array_equal(found.A.toarray(), expected.A.toarray()[kept])
    np.testing.assert_array_equal(found.b, expected.b[kept])
    larger = [cone for cone in expected.cones if cone.kind not in ("zero", "nonneg")]
    assert [cone for cone in found.cones if cone.kind not in ("zero", "nonneg")] == larger


def test_forms_of_many_are_those_of_each():
    names = [*BUILDS, "squares", "exponential"]
    together = functions(*names)
    forms = joint_forms([function.part for function in together])
    assert forms is not None
    for form, name in zip(forms, names, strict=True):
        assert_same(form, alone(*functions(name)))


def test_variables_keep_their_values():
    t = cp.Variable(name="t", nonneg=True)
    t.value = 3.0
    parts = [f.part for f in functions("squares")]
    parts += [CvxpyFunction(lambda w: (t, [t >= cp.norm(w)]), 3).part]
    joint_forms(parts)
    assert t.value == 3.0


def test_a_variable_that_two_losses_share_is_minimized_over_by_each():
    t = cp.Variable(name="t")
    losses = {
        i: gtv.CvxpyLoss(lambda w, a=a: (t, [t >= cp.abs(w[0] - a), t >= 0.5]), dim=1)
        for i, a in enumerate([0.0, 4.0])
    }
    batch = gtv.CvxpyLoss.batch([losses[0], losses[1]], 1)
    assert joint_forms([f.part for f in batch.written()]) is None
    np.testing.assert_allclose(batch.conjugate(np.zeros((2, 1)), np.zeros(2)), -0.5, atol=1e-8)


@pytest.mark.parametrize("other", ["squares", "exponential"])
def test_a_constraint_without_variables_is_the_fault_of_its_own_node(other):
    never = gtv.CvxpyLoss(lambda w: (cp.sum_squares(w), [cp.Constant(1.0) <= 0 * w[0]]), dim=3)
    losses = {0: gtv.CvxpyLoss(BUILDS[other], dim=3), 1: never}
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]], [1.0]), losses, "l2", 1.0)
    with pytest.raises(ValueError, match=r"losses: node 1: build: no point satisfies"):
        problem.solve(verbose=False)


def test_every_canonicalization_serves_many_losses(monkeypatch):
    calls = []
    solve = cp.Problem.get_problem_data
    monkeypatch.setattr(
        cp.Problem,
        "get_problem_data",
        lambda self, *args, **kwargs: calls.append(1) or solve(self, *args, **kwargs),
    )
    monkeypatch.setattr(_function, "TOGETHER", 5)
    some = functions(*["squares", "ball", "zero"] * 4)
    make_forms([*some, *some])
    assert len(calls) == 3  # of five, five and two
    assert all(function.prepared for function in some)
    make_forms(some)
    assert len(calls) == 3


def test_what_cannot_be_told_apart_is_made_one_by_one(monkeypatch):
    monkeypatch.setattr(_joint, "_offsets", lambda problem, chain, count: None)
    some = functions("squares", "ball")
    make_forms(some)
    assert not any(function.prepared for function in some)
    for function, name in zip(some, ["squares", "ball"], strict=True):
        assert_same(function.form, alone(*functions(name)))


def test_nothing_is_minimized_to_know_that_a_loss_is_bounded_below(monkeypatch):
    batch = gtv.CvxpyLoss.batch([gtv.CvxpyLoss(BUILDS["squares"], dim=3)], 3)
    monkeypatch.setattr(CvxpyFunction, "minimizer", lambda self: pytest.fail("minimized"))
    np.testing.assert_allclose(batch.null_projector(), 0.0, atol=1e-12)


def test_gauges_of_the_same_flow_are_found_once(monkeypatch):
    penalty = gtv.CvxpyPenalty(lambda v: cp.norm(v, 1) + cp.norm(v, 2), norm=True)
    u = _RNG.standard_normal((5, 3))
    first = penalty.dual_norm(u)
    ball = penalty.function(3)._unit_ball
    monkeypatch.setattr(ball, "conjugate", lambda unit: pytest.fail("solved again"))
    np.testing.assert_array_equal(penalty.dual_norm(u), first)
    np.testing.assert_array_equal(penalty.dual_norm(4.0 * u), 4.0 * first)
