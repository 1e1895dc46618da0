"""Clarabel works in units in which the data are of size 1; answers are in those of the user."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.driver._run import Run
from gtvcvx.solvers.interior_point import _interior_point
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._program import Units
from gtvcvx.solvers.interior_point._units import choices_of_units


def instance(kind, features=1.0, lam=0.1, n=30, more=None):
    """A path with features of two sizes, an intercept among them, and perhaps one term more."""
    rng = np.random.default_rng(3)
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    X = rng.standard_normal((n, 5, 3)) * [1.0, 1.0, features]
    X[:, :, 0] = 1.0
    y = X @ [0.5, 1.0, 1.0 / features] + rng.standard_normal((n, 5))
    losses = [kind(X[i], (y[i] > 0.5).astype(int) if kind is gtv.LogisticLoss else y[i])
              for i in range(n)]  # fmt: skip
    losses = losses if more is None else [loss + more for loss in losses]
    return gtv.GTVProblem(graph, losses, "l2", lam)


def test_other_units_give_the_same_answer():
    problem = instance(gtv.AbsoluteLoss)
    method = InteriorPoint(problem)
    size = method._program.size
    rng = np.random.default_rng(4)
    centre = np.zeros(size)
    centre[:90] = rng.standard_normal(90)
    columns = np.ones(size)
    columns[:90] = 2.0 ** rng.integers(-3, 4, 90)
    plain = method._solver(1e-10).solve()
    for units in (Units(np.ones(size), 8.0, np.zeros(size)), Units(columns, 0.25, centre)):
        other = method._solver(1e-10, units).solve()
        x, z = units.point(np.array(other.x)), units.multipliers(np.array(other.z))
        np.testing.assert_allclose(x, plain.x, atol=1e-5)
        np.testing.assert_allclose(z, plain.z, atol=1e-5)


def test_hessians_move_with_the_centre():
    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(2, [(0, 1)]),
        [gtv.PointLoss(np.array([1.0, 2.0])), gtv.PointLoss(np.array([3.0, -1.0]))],
        gtv.Quadratic(np.array([[2.0, 1.0], [1.0, 3.0]])),
        0.5,
    )
    method = InteriorPoint(problem)
    units = Units(np.ones(4), 1.0, np.array([5.0, -7.0, 0.5, 2.0]))
    plain, other = method._solver(1e-12).solve(), method._solver(1e-12, units).solve()
    np.testing.assert_allclose(units.point(np.array(other.x)), plain.x, atol=1e-9)


def test_good_units_are_kept_and_others_are_tried_first():
    assert choices_of_units(instance(gtv.AbsoluteLoss))[0].cost == 1.0
    raw = choices_of_units(instance(gtv.AbsoluteLoss, 1e5, 1e-4))
    assert len(raw) == 4
    assert raw[0].cost >= 2.0**12
    assert raw[0].columns[:, 2].max() <= 2.0**-17
    smooth = choices_of_units(instance(gtv.LogisticLoss, 1e5, 1e-4))
    assert smooth[0].cost >= 2.0**28
    for choice in (*raw, *smooth):
        assert np.frexp(choice.cost)[0] == 0.5
        assert (np.frexp(choice.columns)[0] == 0.5).all()


def test_given_sums_come_in_their_own_units_first():
    """Whatever the features: a share of a sum of one is at most one."""
    free = choices_of_units(instance(gtv.SquaredLoss, 1e5, 1e-4))
    summed = choices_of_units(instance(gtv.SquaredLoss, 1e5, 1e-4, more=gtv.losses.Simplex(1.0)))
    assert free[0].columns.min() < 1.0
    assert summed[0].cost == 1.0
    assert (summed[0].columns == 1.0).all()
    assert len(summed) == len(free)


@pytest.mark.parametrize(
    ("kind", "features", "lam"), [(gtv.AbsoluteLoss, 1e5, 1e-5), (gtv.LogisticLoss, 1e-5, 1e-4)]
)
def test_data_of_size_one_or_not_are_solved(kind, features, lam):
    problem = instance(kind, features, lam)
    run = Run(problem, Limits(1e-6, 10_000), "TEST")
    run.drive(InteriorPoint(problem, 1e-6))
    assert run.satisfied


def test_bounds_that_are_lost_to_rounding_are_no_exception():
    problem = instance(gtv.LogisticLoss, 1e5, 1e-5)
    solution = problem.solve(max_iter=3000)
    assert np.isfinite(solution.gap)
    noise = np.random.default_rng(5).standard_normal(solution.w.shape)
    for size in (1e-2, 1e-5):
        assert problem.value(solution.w * (1.0 + size * noise)) >= solution.dual_value


def test_rounds_begin_around_the_point_before():
    problem = instance(gtv.AbsoluteLoss, 1e5, 1e-4)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 10_000), np.inf)
    assert not method._units.centre.any()
    method.run(1)
    w = method.proposal().w
    np.testing.assert_array_equal(method._units.centre[: w.size].reshape(w.shape), w)


def test_the_incumbent_keeps_what_its_flow_came_with():
    problem = instance(gtv.AbsoluteLoss, 1e5, 1e-4)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 10_000), np.inf)
    method.run(1)
    found = method.proposal()
    w, u, a = found.w, found.u, found.a
    incumbent = Incumbent(problem)
    incumbent.update(w * (1.0 + 1e-3), u, a=a, enough=np.inf)
    point = incumbent.against.point
    assert point is not None
    assert incumbent.parts.total == problem.bounds.gap_against(incumbent.w, point).total
    before = incumbent.gap
    # A better point is compared with the same dual point.
    incumbent.update_point(w)
    assert incumbent.gap == problem.bounds.gap_against(incumbent.w, point).total < before


def test_a_round_that_fails_is_followed_by_others(monkeypatch):
    problem = instance(gtv.AbsoluteLoss, 1e5, 1e-4)
    solves, real = [], InteriorPoint._solved

    class Failure:
        status, iterations, x, z = "NumericalError", 3, (), ()

        def __init__(self, answer):
            self.x, self.z = answer.x, answer.z

    def failing(self, solver):
        solves.append(solver)
        answer = real(self, solver)
        return Failure(answer) if len(solves) == 1 else answer

    monkeypatch.setattr(_interior_point.InteriorPoint, "_solved", failing)
    run = Run(problem, Limits(1e-6, 10_000), "TEST")
    run.drive(InteriorPoint(problem, 1e-6))
    assert run.satisfied
    assert len(solves) > 1


@pytest.mark.parametrize("factor", [1.0, 1e15, 1e30])
def test_weights_beyond_what_rows_may_have_are_units_of_residuals(factor):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4, 2)), rng.standard_normal((20, 4))
    graph = gtv.EmpiricalGraph(20, [(i, (i + 1) % 20) for i in range(20)])
    # Others, of weight 1, are next to nothing beside them.
    each = [gtv.SquaredLoss(X[i], y[i]) * (factor if i % 3 else 1.0) for i in range(20)]
    problem = gtv.GTVProblem(graph, each, "l2", factor)
    run = Run(problem, Limits(1e-6, 100), "TEST")
    run.drive(InteriorPoint(problem, 1e-6))
    assert run.satisfied


def norms_in_raw_units(penalty="l1", lam=1e-4, n=12, rows=6):
    """Norms of residuals by CVXPY: an intercept, a year, an income, a rate and a percentage."""
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    X = rng.standard_normal((n, rows, 5)) * [0.0, 20.0, 1e4, 0.02, 25.0]
    X += [1.0, 1985.0, 3e4, 0.05, 40.0]
    y = 5e4 + 2e4 * rng.standard_normal((n, rows))

    def norm_of(X, y):
        return gtv.CvxpyLoss(lambda w: cp.norm(X @ w - y), 5)

    return gtv.GTVProblem(graph, list(map(norm_of, X, y)), penalty, lam)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_features_of_different_units_stay_as_they_are_for_weak_edges(penalty):
    """In units in which all have the same size Clarabel took 120 steps and more, and no proof."""
    problem = norms_in_raw_units(penalty)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 10_000), np.inf)
    method.run(1)
    assert method.n_iter <= 40
    found = method.proposal()
    assert found.proved.gap.total <= 1e-6 * found.proved.value


def test_strong_edges_and_features_of_one_size_are_units_themselves():
    weak, strong = (choices_of_units(norms_in_raw_units(lam=lam))[0] for lam in (1e-4, 1e2))
    assert weak.columns[:, 2].max() == weak.others  # an income is no unit
    assert weak.columns[:, 3].max() >= 8.0 * weak.others  # a rate is
    assert weak.cost * weak.others >= 2.0**12
    assert strong.columns[:, 2].max() <= 2.0**-14 * strong.others
    assert strong.cost * strong.others == 1.0


def test_what_clarabel_has_solved_is_returned_in_the_units_of_the_program():
    problem = norms_in_raw_units()
    method = InteriorPoint(problem, 1e-6)
    run = Run(problem, Limits(1e-6, 10_000), "TEST")
    run.drive(method)
    x, s, z = method.solved
    np.testing.assert_array_equal(x[: run.incumbent.w.size], run.incumbent.w.ravel())
    program = method._program.cone_program()
    sizes = abs(program.A) @ np.abs(x) + np.abs(program.b)
    assert np.abs(program.A @ x + s - program.b).max() <= 1e-8 * sizes.max()
    terms = abs(program.A.T) @ np.abs(z) + np.abs(program.q)
    missed = np.abs(program.P @ x + program.q + program.A.T @ z)
    assert missed.max() <= 1e-8 * terms.max()


def test_kinked_losses_beside_strong_edges_need_no_other_units():
    """Hinge losses with offsets took 150 steps with large features at 1, instead of 22.

    But small ones took 70 as they are, instead of 16.
    """

    def small(X, y):
        return gtv.AbsoluteLoss(1e-3 * X, y)

    for kind, features, lam, plain in (
        (gtv.AbsoluteLoss, 1e5, 10.0, True),
        (gtv.AbsoluteLoss, 1e5, 1e-2, False),
        (small, 1.0, 10.0, False),
    ):
        units = choices_of_units(instance(kind, features, lam))
        assert [each.cost == 1.0 and (each.columns == 1.0).all() for each in units[:2]] == [
            plain,
            not plain,
        ]
