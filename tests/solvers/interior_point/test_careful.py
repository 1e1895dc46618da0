"""What CVXPY's rules describe: proved by the whole program's multipliers, solved carefully."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.conic._scaled import solve_scaled
from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point import _careful, _interior_point
from gtvcvx.solvers.interior_point._careful import Careful
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._program import Units
from gtvcvx.solvers.interior_point._proof import proved
from gtvcvx.solvers.interior_point.careful._squares import SHIFTS

SIZES = np.array([1.0, 2e3, 3e4, 0.05, 40.0, 2e5])


def norm_of(X, y):
    return gtv.CvxpyLoss(lambda w: cp.norm(X @ w - y), X.shape[1])


def in_raw_units(penalty="l1", n=12, rows=2):
    """Fewer rows than columns, in units that differ by 1e7."""
    rng = np.random.default_rng(5)
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    X = SIZES * (1.0 + 0.3 * rng.standard_normal((n, rows, len(SIZES))))
    X[..., 0] = 1.0
    y = 5e4 + 2e4 * rng.standard_normal((n, rows))
    return gtv.GTVProblem(graph, [norm_of(*each) for each in zip(X, y, strict=True)], penalty, 0.01)


def run_of(method, problem):
    run = Run(problem, Limits(1e-6, 10_000), "test")
    run.drive(method)
    return run


@pytest.mark.parametrize("penalty", ["l1", "linf", "l2"])
def test_norms_of_residuals_in_raw_units_are_solved(penalty):
    problem = in_raw_units(penalty)
    found = run_of(Careful(problem, 1e-6), problem)
    assert found.satisfied
    assert found.n_iter <= 40
    # By nobody else as well.
    others = run_of(InteriorPoint(problem, 1e-6), problem)
    assert found.incumbent.dual_value <= others.incumbent.value * (1.0 + 1e-12)


def logistic_in_raw_units():
    """Beside a custom penalty: exponential cones, in units that differ by 1e7."""
    problem, rng = in_raw_units(), np.random.default_rng(5)
    X = SIZES * (1.0 + 0.3 * rng.standard_normal((12, 2, len(SIZES))))
    X[..., 0] = 1.0
    labels = rng.integers(0, 2, (12, 2))
    losses = [gtv.LogisticLoss(*each) for each in zip(X, labels, strict=True)]
    custom = gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
    return gtv.GTVProblem(problem.graph, losses, custom, 0.01)


@pytest.mark.parametrize("name", ["power", "exponential"])
def test_clarabel_gives_way_beside_cones_that_are_not_symmetric(name):
    """Where it is stuck, all that was left did not solve these in ten seconds."""
    problem = in_raw_units(gtv.PNorm(1.5)) if name == "power" else logistic_in_raw_units()
    names = [type(each).__name__ for each in Alternative(problem, 1e-6, False).methods()]
    assert names[:2] == ["InteriorPoint", "Careful"]
    solution = problem.solve(rtol=1e-6, max_iter=400)
    assert solution.status == "optimal"
    found = run_of(Careful(problem, 1e-6), problem)
    assert found.satisfied
    assert found.incumbent.dual_value <= solution.value * (1.0 + 1e-12)


def test_the_default_solver_gives_way_to_it(monkeypatch):
    """Clarabel is held to be stuck from the first round on; the second one has other units."""
    problem, rounds = in_raw_units(), []

    def nothing(self):
        rounds.append(type(self).__name__)
        self._round += 1

    monkeypatch.setattr(InteriorPoint, "_solve_once", nothing)
    names = [type(each).__name__ for each in Alternative(problem, 1e-6, False).methods()]
    assert names == ["InteriorPoint", "Careful", "InteriorPoint"]
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.info["method"].endswith("interior point")
    assert rounds == ["InteriorPoint"] * 2


def test_where_clarabel_has_not_solved_a_round_another_method_goes_on(monkeypatch):
    problem, begun = in_raw_units(), []

    def stuck(self, solver):
        begun.append(self._round)
        nothing = np.full(self._program.size, np.nan), np.empty(0), np.full(1, np.nan)
        return SimpleNamespace(
            status="NumericalError", iterations=1, **dict(zip("xsz", nothing, strict=True))
        )

    monkeypatch.setattr(InteriorPoint, "_solved", stuck)
    monkeypatch.setattr(Units, "multipliers", lambda self, z: z)
    for gives_way, rounds in ((True, 1), (False, 5)):
        method = InteriorPoint(problem, 1e-6)
        method.gives_way = gives_way
        method.begin(Limits(1e-6, 1000), np.inf)
        method.run(1)
        assert method.finished
        assert begun == list(range(rounds))
        begun.clear()


def test_what_is_stuck_begins_again_with_stiffer_systems_once(monkeypatch):
    monkeypatch.setattr(_careful, "DEFAULTS", _careful.CarefulSettings(most_iterations=3))
    problem = in_raw_units()
    method = Careful(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(3)
    assert not method.finished
    assert method._newton._squares.shift == SHIFTS[1]
    method.run(100)
    assert method.finished
    assert method.n_iter == 6


def test_programs_that_are_too_large_or_unknown_are_left_to_clarabel(monkeypatch):
    problem = in_raw_units()
    monkeypatch.setattr(_careful, "DEFAULTS", _careful.CarefulSettings(most_size=10))
    names = [type(each).__name__ for each in Alternative(problem, 1e-6, False).methods()]
    assert names == ["InteriorPoint"]
    monkeypatch.undo()
    few = _careful.CarefulSettings(most_multiplications=10.0)
    monkeypatch.setattr(_careful, "DEFAULTS", few)
    method = Careful(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    assert method.finished
    assert method.proposal() is None
    monkeypatch.undo()
    eigenvalues = gtv.CvxpyLoss(lambda w: cp.lambda_max(cp.diag(w)) + cp.sum_squares(w), 2)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), [eigenvalues] * 2, "l1", 1.0)
    names = [type(each).__name__ for each in Alternative(problem, 1e-6, False).methods()]
    assert names == ["InteriorPoint"]


def every_loss(rng, d=2):
    X, y = rng.standard_normal((7, d)), rng.standard_normal(7)
    sign = np.sign(y)
    return {
        "squared": gtv.SquaredLoss(X, 1e3 + y),
        "absolute": gtv.AbsoluteLoss(X, y),
        "quantile": gtv.QuantileLoss(X, y, 0.3),
        "hinge": gtv.HingeLoss(X, sign) + gtv.Ridge(0.1),
        "huber": gtv.HuberLoss(X, y, 0.5),
        "pseudo-huber": gtv.PseudoHuberLoss(X, y, 0.5),
        "logistic": gtv.LogisticLoss(X, (sign + 1) / 2) + gtv.Ridge(0.1),
        "poisson": gtv.PoissonLoss(X, np.round(np.abs(y))) + gtv.Ridge(0.1),
        "point": gtv.PointLoss(np.array([3.0, -2.0])),
        "lasso": gtv.SquaredLoss(X, y) + gtv.L1(0.5),
        "custom": gtv.CvxpyLoss(lambda w: cp.norm(X @ w - y) + 5.0, d),
    }


@pytest.mark.parametrize("name", every_loss(np.random.default_rng(0)))
@pytest.mark.parametrize("penalty", ["l2", "squared", "custom"])
def test_multipliers_prove_pairs_of_every_loss(name, penalty):
    """Constants of the programs' costs among them; pairs that are worse have larger gaps."""
    rng = np.random.default_rng(3)
    custom = gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    penalty = custom if penalty == "custom" else penalty
    each = [every_loss(rng)[name], gtv.ZeroLoss(), every_loss(rng)[name]]
    problem = gtv.GTVProblem(graph, each, penalty, 0.3)
    model = InteriorPoint(problem)._program
    plain = Units(np.ones(model.size), 1.0, np.zeros(model.size))
    program, constants = model.cone_program(plain), model.constants
    x, z, *_ = solve_scaled(program)
    w = problem.losses.project_domain(x[:6].reshape(3, 2))
    found = proved(problem, program, constants, w, x, z)
    assert found is not None
    assert found.gap.total <= 1e-6 * max(1.0, found.value)
    assert found.value == problem.value(w)
    assert np.sum(found.gap.node) + found.gap.rounding == pytest.approx(found.gap.total)
    bound = found.value - found.gap.total
    for size in (1e-6, 1e-3, 0.1):
        moved = w + size * rng.standard_normal(w.shape)
        other = z * (1.0 + size * rng.standard_normal(len(z)))
        worse = proved(problem, program, constants, moved, x, other)
        best = found.value
        assert worse is None or worse.value - worse.gap.total <= best + 1e-12 * max(1.0, abs(best))
        again = proved(problem, program, constants, moved, x, z)
        assert again.value - again.gap.total == pytest.approx(bound, rel=1e-6, abs=1e-6)


def test_no_proof_is_waited_for_that_rounding_prevents(monkeypatch):
    """Constants of 1e10 beside an objective of 2: the flow is checked as others are."""
    rng = np.random.default_rng(1)
    graph = gtv.EmpiricalGraph(20, [(i, (i + 1) % 20) for i in range(20)])
    custom = gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
    each = [
        gtv.PseudoHuberLoss(np.eye(2), 0.1 * rng.standard_normal(2), delta=1e5) for _ in range(20)
    ]
    problem = gtv.GTVProblem(graph, each, custom, 1.0)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    assert not method.proposal().another
    near = gtv.GTVProblem(graph, [gtv.PointLoss(rng.random(2)) for _ in each], custom, 1.0)
    method = InteriorPoint(near, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    assert method.proposal().another
    monkeypatch.setattr(_interior_point, "proved", lambda *_: None)
    method = InteriorPoint(near, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    assert method.proposal().another  # the next point may miss less


def test_points_in_raw_units_are_solved_and_proved_in_one_round():
    """Squares of coordinates of 1e5 cancel to what edges of capacity 1e-5 leave: 1e-10."""
    rng = np.random.default_rng(3)
    n, d = 16, 5
    graph = gtv.EmpiricalGraph(n, [(i, j) for i in range(n) for j in range(i)])
    custom = gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
    points = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 5, d) + 1e4
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), custom, 5e-5)
    method = InteriorPoint(problem, 1e-6)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    proved = method.proposal().proved
    assert proved.gap.total <= 1e-7 * proved.value
    assert method.n_iter <= 30


def test_points_that_will_be_proved_are_not_checked_otherwise(monkeypatch):
    def refused(*_):
        raise AssertionError("a flow is repaired")

    problem = in_raw_units()
    monkeypatch.setattr(_interior_point, "proved", lambda *_: None)
    monkeypatch.setattr(Run, "_suffices", lambda *_: False)
    method = InteriorPoint(problem, 1e-6)
    method.most_rounds = 1
    run = Run(problem, Limits(1e-6, 10_000), "test")
    monkeypatch.setattr(run.incumbent, "update", refused)
    run.drive(method)
    assert run.incumbent.value == problem.value(run.incumbent.w)
    assert run.incumbent.w.any()
