"""Penalties that users write with CVXPY, against the library's own and against CVXPY."""

import doctest
import importlib

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.conic._function import MARGIN
from gtvcvx.penalties import CvxpyPenalty, Penalty

Q = np.array([[2.0, 0.5], [0.5, 1.0]])

# Each with its twin of the library.
TWINS: dict[str, tuple[CvxpyPenalty, Penalty]] = {
    "l1": (CvxpyPenalty(cp.norm1, norm=True), gtv.L1Norm()),
    "l2": (CvxpyPenalty(cp.norm, norm=True), gtv.L2Norm()),
    "linf": (CvxpyPenalty(cp.norm_inf, norm=True), gtv.LinfNorm()),
    "p=3": (CvxpyPenalty(lambda v: cp.pnorm(v, 3), norm=True), gtv.PNorm(3)),
    "squared": (CvxpyPenalty(lambda v: 0.5 * cp.sum_squares(v)), gtv.SquaredNorm()),
    "quadratic": (CvxpyPenalty(lambda v: 0.5 * cp.quad_form(v, Q)), gtv.Quadratic(Q)),
    "singular": (
        CvxpyPenalty(lambda v: 0.5 * cp.square(v[0] - v[1])),
        gtv.Quadratic([[1.0, -1.0], [-1.0, 1.0]]),
    ),
}
# Without a twin: a norm, a bounded domain without being one, both, and an infimal convolution.
OTHERS: dict[str, CvxpyPenalty] = {
    "l1+l2": CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True),
    "huber": CvxpyPenalty(lambda v: cp.huber(cp.norm(v), 0.3)),
    "l2+squared": CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.sum_squares(v)),
    "convolution": CvxpyPenalty(lambda v: convolution(v, cp.Variable(2))),
}
NORMS = ["l1", "l2", "linf", "p=3", "l1+l2"]


def convolution(v, t):
    """inf_t ||v - t||_1 + (1/2) ||t||^2: Huber's function of each coordinate."""
    return cp.norm1(v - t) + 0.5 * cp.sum_squares(t)


@pytest.fixture(params=[*TWINS])
def twins(request):
    return TWINS[request.param]


@pytest.fixture(params=[*TWINS, *OTHERS])
def penalty(request):
    return TWINS[request.param][0] if request.param in TWINS else OTHERS[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def test_values_and_conjugates_are_the_twins(twins, rng):
    ours, theirs = twins
    v = 2.0 * rng.standard_normal((10, 2))
    np.testing.assert_allclose(ours.value(v), theirs.value(v), rtol=1e-10)
    z = theirs.project_domain(rng.standard_normal((10, 2)), np.ones(10)) * 0.999
    np.testing.assert_allclose(ours.conjugate(z), theirs.conjugate(z), rtol=1e-9, atol=1e-9)
    assert ours.is_norm == theirs.is_norm
    if ours.is_norm:
        # An upper bound, as feasible flows depend on it.
        found, exact = ours.dual_norm(v), theirs.dual_norm(v)
        assert np.all(found >= exact)
        np.testing.assert_allclose(found, exact, rtol=1e-8)
        # What passes for feasible, by a tolerance, is feasible.
        edge = v * ((1.0 + 0.3 * MARGIN) / found)[:, None]
        np.testing.assert_array_equal(ours.conjugate(edge), 0.0)
        assert np.all(theirs.dual_norm(edge) <= 1.0)
        np.testing.assert_array_equal(ours.conjugate(1.001 * v / exact[:, None]), np.inf)


def test_proxes_are_the_twins(twins, rng):
    ours, theirs = twins
    v, t = 2.0 * rng.standard_normal((10, 2)), np.geomspace(0.05, 20.0, 10)
    np.testing.assert_allclose(ours.prox(v, t), theirs.prox(v, t), atol=2e-6)
    sigma, cap = np.geomspace(0.1, 10.0, 10), rng.uniform(0.1, 2.0, 10)
    found = ours.prox_conjugate(v, sigma, cap)
    np.testing.assert_allclose(found, theirs.prox_conjugate(v, sigma, cap), atol=2e-6)
    inside = ours.project_domain(v, cap)
    np.testing.assert_allclose(inside, theirs.project_domain(v, cap), atol=2e-6)


def test_gaps_are_the_twins(twins, rng):
    ours, theirs = twins
    D, cap = rng.standard_normal((10, 2)), rng.uniform(0.1, 2.0, 10)
    u = 0.99 * theirs.project_domain(rng.standard_normal((10, 2)), cap)
    expected = theirs.fenchel_gap(D, u, cap)
    np.testing.assert_allclose(ours.fenchel_gap(D, u, cap), expected, atol=1e-8)


def test_fenchel_young_and_feasibility(penalty, rng):
    """The dual update gives subgradients of the prox; projections and scalings are feasible."""
    v, sigma, cap = 2.0 * rng.standard_normal((8, 2)), np.full(8, 0.5), rng.uniform(0.2, 1.0, 8)
    u = penalty.prox_conjugate(v, sigma, cap)
    x = (v - u) / sigma[:, None]
    inside = penalty.project_domain(u, cap)
    np.testing.assert_allclose(inside, u, atol=1e-6)
    gap = penalty.fenchel_gap(x, inside, cap)
    assert np.all(gap >= 0.0)
    assert np.all(gap <= 1e-6)
    far = 5.0 * rng.standard_normal((8, 2))
    assert np.isfinite(penalty.fenchel_gap(x, penalty.project_domain(far, cap), cap)).all()
    allowed = penalty.span_projector(2)
    along = far if allowed is None else far @ allowed
    theta = penalty.scale_to_feasible(along, cap)
    assert np.isfinite(penalty.fenchel_gap(x, theta * along, cap)).all()
    assert penalty.scale_to_feasible(theta * along, cap) == 1.0
    if theta < 1.0:
        assert np.isinf(penalty.fenchel_gap(x, 1.00001 * theta * along, cap)).any()


def test_flows_inside_the_dual_ball_are_left_alone(rng):
    z = 0.3 * rng.standard_normal((6, 2))
    for name in NORMS:
        penalty = OTHERS[name] if name in OTHERS else TWINS[name][0]
        cap = penalty.dual_norm(z) * 1.001
        np.testing.assert_array_equal(penalty.prox_conjugate(z, np.ones(6), cap), z)
        np.testing.assert_array_equal(penalty.project_domain(z, cap), z)


def test_the_convolution_is_hubers_function(rng):
    penalty, v = OTHERS["convolution"], 3.0 * rng.standard_normal((10, 2))
    huber = np.where(np.abs(v) <= 1.0, 0.5 * v**2, np.abs(v) - 0.5).sum(axis=1)
    np.testing.assert_allclose(penalty.value(v), huber, atol=1e-9)
    z = rng.uniform(-1.0, 1.0, (10, 2))
    np.testing.assert_allclose(penalty.conjugate(z), 0.5 * np.sum(z**2, axis=1), atol=1e-9)
    assert np.isinf(penalty.conjugate(z + 2.0)).all()


EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (4, 5)]


def problem_with(penalty, lam=0.1):
    rng = np.random.default_rng(2)
    losses = {
        i: gtv.SquaredLoss(rng.standard_normal((m, 2)), rng.standard_normal(m))
        for i, m in enumerate((4, 1, 0, 5, 2, 4))
        if m
    }
    return gtv.GTVProblem(
        gtv.EmpiricalGraph(6, EDGES, np.linspace(0.5, 1.5, 7)), losses, penalty, lam
    )


@pytest.mark.parametrize("lam", [0.02, 0.3])
def test_primal_dual_and_iterative_solver_agree(penalty, lam):
    problem = problem_with(penalty, lam)
    primal = problem.cvxpy()
    assert primal.is_dpp()
    primal.solve(solver=cp.CLARABEL)
    dual = problem.dual().cvxpy()
    assert dual.is_dpp()
    dual.solve(solver=cp.CLARABEL)
    assert dual.value == pytest.approx(primal.value, abs=1e-6)
    solution = problem.solve(rtol=1e-6)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(primal.value, abs=1e-6 * max(1.0, primal.value))
    assert solution.gap >= solution.value - primal.value - 1e-8
    exact = problem.solve(solver="CLARABEL")
    assert exact.gap <= 1e-6
    # Another lambda, in the same compiled problem.
    dual.param_dict["lam"].value = 2.0 * lam
    dual.solve(solver=cp.CLARABEL)
    again = problem.with_lam(2.0 * lam).cvxpy()
    again.solve(solver=cp.CLARABEL)
    assert dual.value == pytest.approx(again.value, abs=1e-6)


def test_problems_are_the_twins(twins):
    ours, theirs = (problem_with(p).solve(rtol=1e-7) for p in twins)
    assert ours.value == pytest.approx(theirs.value, abs=1e-6)
    # Where the penalty is singular, nodes without data are free along its null directions.
    span = twins[1].span_projector(2)
    span = np.eye(2) if span is None else span
    np.testing.assert_allclose(ours.w @ span, theirs.w @ span, atol=1e-2)
    if twins[0].is_norm:
        np.testing.assert_array_equal(ours.clusters(), theirs.clusters())


def test_no_bound_lies_above_the_optimum(penalty, rng):
    problem = problem_with(penalty, 0.2)
    model = problem.cvxpy()
    model.solve(solver=cp.CLARABEL)
    for size in (0.01, 0.1, 1.0):
        bound, flow = problem.lower_bound(size * rng.standard_normal((7, 2)))
        assert -np.inf < bound <= model.value + 1e-8
        assert -np.inf < problem.dual_value(flow) <= model.value + 1e-8
    solution = problem.solve(max_iter=15)
    assert solution.gap >= solution.value - model.value - 1e-8


def test_one_dimension_and_any_multiple_of_a_norm():
    """For d = 1 the default solver divides and conquers, by the norm of 1."""
    rng = np.random.default_rng(4)
    graph = gtv.EmpiricalGraph(6, EDGES)
    losses = gtv.PointLoss.stack(rng.standard_normal((6, 1)))
    triple = gtv.GTVProblem(graph, losses, CvxpyPenalty(lambda v: 3 * cp.abs(v[0]), norm=True), 0.1)
    single = gtv.GTVProblem(graph, losses, "l1", 0.3)
    assert triple.solve().value == pytest.approx(single.solve().value, rel=1e-8)
    with pytest.raises(ValueError, match="EXACT does not support"):
        triple.solve(solver="EXACT")


def test_certificates_are_unproved():
    problem = problem_with(OTHERS["l1+l2"])
    solution = problem.solve(rtol=1e-6)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert certificate.status == "UNPROVED"
    assert "CvxpyPenalty" in certificate.reason
    assert 0.0 <= certificate.gap <= 1e-5


def test_problems_cannot_be_written_down(tmp_path):
    with pytest.raises(TypeError, match="penalty: CvxpyPenalty"):
        problem_with(OTHERS["huber"]).save(tmp_path / "problem.npz")
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_the_docstring():
    assert doctest.testmod(importlib.import_module("gtvcvx.penalties._cvxpy")) == (0, 2)


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "norm", "error", "message"),
    [
        (lambda v: -cp.norm(v), False, cp.DCPError, "build: "),
        (lambda v: cp.norm(v) + 1.0, False, ValueError, r"phi\(0\) = 0 is expected, got 1"),
        (lambda v: cp.pos(v[0]), False, ValueError, r"phi\(-v\) = phi\(v\) is expected"),
        (lambda v: cp.sum_squares(v), True, ValueError, r"phi\(2 v\) = 2 phi\(v\) is expected"),
        (lambda v: cp.abs(v[0]), True, ValueError, "norm: phi is zero along"),
        (lambda v: (cp.norm(v), [v <= 1]), False, ValueError, "has no constraints"),
        (lambda v: -cp.log(1 - cp.norm(v)), False, ValueError, "finite everywhere"),
        (lambda v: v, False, ValueError, "a real scalar is expected"),
        (lambda v: cp.norm(np.ones((2, 7)) @ v), False, ValueError, "build: failed for a variable"),
        (lambda v: None, False, TypeError, "an expression"),
    ],
)
def test_what_is_no_penalty_is_refused(build, norm, error, message):
    with pytest.raises(error, match=message):
        CvxpyPenalty(build, norm=norm, dim=2)
    # Where d is not known, the problem says it.
    with pytest.raises(error, match=message):
        problem_with(CvxpyPenalty(build, norm=norm))


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="build: a callable"):
        CvxpyPenalty("l2")
    with pytest.raises(TypeError, match="norm: True or False"):
        CvxpyPenalty(cp.norm, norm=2)
    for dim in (0, True, 1.5):
        with pytest.raises(ValueError, match="dim: a positive integer"):
            CvxpyPenalty(cp.norm, dim=dim)
    with pytest.raises(ValueError, match="made for d = 3"):
        problem_with(CvxpyPenalty(cp.norm, dim=3))
    with pytest.raises(TypeError, match="is not a norm"):
        OTHERS["huber"].dual_norm(np.ones((1, 2)))
