"""Our own interior-point method: right for every term and penalty, within limits, or stuck."""

import cvxpy as cp
import numpy as np
import pytest
from _driven import driven
from _instances import cases, reference

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, missing
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point.blockwise import _blockwise
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned
from gtvcvx.solvers.interior_point.blockwise._newton import Newton

EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4))
PENALTIES = ("l1", "l2", "linf", "pnorm", "squared", "quadratic")
KINDS = (
    "squared",
    "point",
    "lasso",
    "absolute",
    "quantile",
    "hinge",
    "huber",
    "logistic",
    "poisson",
    "pseudo-huber",
    "box",
    "simplex",
)


def losses(kind, rng, d, m=4):
    X = rng.standard_normal((m, d))
    z = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m)
    signs = np.where(z > 0.0, 1.0, -1.0)
    return {
        "squared": lambda: gtv.SquaredLoss(X, z),
        "point": lambda: gtv.PointLoss(X[0]) + gtv.Ridge(np.arange(1.0, d + 1.0)),
        "lasso": lambda: gtv.SquaredLoss(X, z) + gtv.L1(np.linspace(0.0, 0.3, d)),
        "absolute": lambda: gtv.AbsoluteLoss(X, z) + gtv.AbsoluteLoss(X[:1], z[:1] + 1.0),
        "quantile": lambda: gtv.QuantileLoss(X, z, 0.8) + gtv.L1(0.1),
        "hinge": lambda: gtv.HingeLoss(X, signs) + gtv.Ridge(0.1),
        "huber": lambda: gtv.HuberLoss(X, z, 0.4),
        "logistic": lambda: gtv.LogisticLoss(X, 0.5 + 0.5 * signs) + gtv.Ridge(0.01),
        "poisson": lambda: gtv.PoissonLoss(X, np.floor(np.exp(np.clip(z, -2.0, 2.0)))),
        "pseudo-huber": lambda: gtv.PseudoHuberLoss(X, z, 0.4) + gtv.AbsoluteLoss(X, z),
        "box": lambda: gtv.SquaredLoss(X, z) + gtv.Box(-0.2, np.linspace(0.3, 0.5, d)),
        "simplex": lambda: gtv.SquaredLoss(X, z) + gtv.Simplex(0.7),
    }[kind]()


# Any two of kind, penalty and d together; which third comes with them is the business of the fuzz.
PAIRS = [
    (kind, penalty, 1 + (i + j) % 3)
    for i, kind in enumerate(KINDS)
    for j, penalty in enumerate(PENALTIES)
]


def instance(kind, penalty, d=2, lam=0.1):
    """Six nodes in a ring with a chord, two of them without data, and another one alone."""
    rng = np.random.default_rng(d)
    graph = gtv.EmpiricalGraph(7, EDGES, rng.uniform(0.5, 2.0, len(EDGES)))
    # Sums have to be given everywhere.
    none = gtv.Simplex(0.4) if kind == "simplex" else gtv.ZeroLoss()
    each = [losses(kind, rng, d) if i not in (2, 4) else none for i in range(7)]
    if penalty == "quadratic":
        root = rng.standard_normal((d, d))
        return gtv.GTVProblem(graph, each, gtv.Quadratic(root @ root.T), lam)
    if penalty == "pnorm":
        return gtv.GTVProblem(graph, each, gtv.PNorm(1.5 if d == 2 else 3.0), lam)
    return gtv.GTVProblem(graph, each, penalty, lam)


@pytest.mark.parametrize(("kind", "penalty", "d"), PAIRS)
def test_it_agrees_with_clarabel_behind_cvxpy(kind, penalty, d):
    problem = instance(kind, penalty, d)
    run = driven(problem)
    assert run.satisfied
    assert run.n_iter < 40
    value = problem.solve(solver="CLARABEL").value
    assert run.incumbent.value == pytest.approx(value, abs=1e-6)


KNOWN = [
    case
    for case in cases(penalties=["l1", "l2", "linf", "squared"])
    if missing(case.problem(), Blockwise.requires) is None
]


@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_it_solves_every_shape_of_graph(case):
    run = driven(case.problem())
    assert run.satisfied
    assert run.incumbent.value == pytest.approx(reference(case).value, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_start_is_as_large_as_the_answer(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4, 2))
    y = scale * (X.sum(axis=2) + 0.1 * rng.standard_normal((30, 4)))
    graph = gtv.EmpiricalGraph(30, [(i, i + 1) for i in range(29)])
    each = [gtv.LassoLoss(X[i], y[i], 0.1 * scale) for i in range(30)]
    problem = gtv.GTVProblem(graph, each, "l2", 0.1 * scale)
    run = driven(problem, atol=0.0, rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 25


def test_the_objective_of_its_own_is_the_problems():
    for kind in ("lasso", "quantile", "huber", "poisson", "pseudo-huber"):
        problem = instance(kind, "linf")
        method = Blockwise(problem, planned(problem))
        method.begin(Limits(1e-6, 10), np.inf)
        method.run(3)
        newton = method._newton
        assert newton.value() == pytest.approx(problem.value(newton.w))
        # Balance is left to be found by some share at every step.
        assert newton.gap > 0.0


def test_slopes_of_all_rows_come_with_the_point():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 2)), rng.standard_normal(4)
    each = gtv.SquaredLoss(X, y) + gtv.AbsoluteLoss(X, y)
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, [each + gtv.L1([0.0, 0.2]), each], "l2", 0.1)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    while not method.due():
        method.run(1)
    assert len(method._newton._terms.slopes.b) == 8 + 1
    found = method.proposal()
    w, a = found.w, found.a
    kinds = [term["kind"] for term in problem.losses.terms() for _ in term["node"]][:16]
    kinds = np.array(kinds)
    np.testing.assert_array_equal(np.isnan(a), kinds == "squared")
    rows = next(term for term in problem.losses.terms() if term["kind"] == "absolute")
    residuals = np.einsum("rk,rk->r", rows["X"], w[rows["node"]]) - rows["y"]
    away = np.abs(residuals) > 1e-3
    assert away.any()
    np.testing.assert_allclose(a[~np.isnan(a)][away], np.sign(residuals[away]) / 4, atol=1e-3)


def test_slopes_of_smooth_rows_are_among_them():
    problem = instance("pseudo-huber", "l2")
    run = driven(problem)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    while not method.due():
        method.run(1)
    found = method.proposal()
    assert np.isfinite(found.a).all()
    parts, _ = problem.bounds.corrected(found.w, found.u, found.a)
    assert parts.total < 1e-6
    assert run.incumbent.value == pytest.approx(problem.value(found.w), abs=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_simplices_beside_data_in_large_units(penalty):
    """What the graph tells is 1e-11 of what data do; fewer rows than columns leave it to that."""
    rng = np.random.default_rng(0)
    X, w = 1e5 * rng.standard_normal((40, 2, 6)), rng.dirichlet(np.ones(6), 2)
    y = np.einsum("nrd,nd->nr", X, w[np.arange(40) // 20])
    y *= 1.0 + 1e-9 * rng.standard_normal(y.shape)
    graph = gtv.generators.nearest_neighbours(rng.random((40, 2)), 4)
    each = [gtv.SquaredLoss(X[i], y[i]) + gtv.Simplex() for i in range(40)]
    problem = gtv.GTVProblem(graph, each, penalty, 0.1)
    run = driven(problem, rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 50


def test_squares_in_boxes_are_iterated_first_where_features_have_one_unit(iterations_first):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 8, 3)), rng.standard_normal((100, 8))
    graph = gtv.generators.nearest_neighbours(rng.random((100, 2)), 4)
    boxed = [gtv.SquaredLoss(X[i], y[i]) + gtv.Box(0.0, 1.0) for i in range(100)]
    problem = gtv.GTVProblem(graph, boxed, "l2", 0.1)
    assert problem.solve().info["method"].startswith("primal-dual")
    assert type(next(Alternative(problem, 1e-6, False).methods())) is Blockwise


def test_limits_leave_the_point_so_far():
    problem = instance("absolute", "l2")
    few = driven(problem, max_iter=3)
    assert few.n_iter == 3
    assert few.stopped
    assert np.isfinite(few.incumbent.gap)
    late = driven(problem, time_limit=1e-9)
    assert late.stopped
    assert late.n_iter <= 1


def test_ctrl_c_leaves_the_point_so_far(monkeypatch):
    iterate = Newton.iterate

    def interrupted(self):
        iterate(self)
        if asked.append(1) or len(asked) == 4:
            raise KeyboardInterrupt

    asked = []
    monkeypatch.setattr(Newton, "iterate", interrupted)
    run = driven(instance("absolute", "l2"))
    assert run.stopped
    assert np.isfinite(run.incumbent.gap)


def test_a_check_that_finds_more_asks_for_less():
    problem = instance("absolute", "l2")
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    while not method.due():
        method.run(1)
    before = method.proposal().expected_gap
    assert before <= 0.5e-6
    method.learn(1e-5)
    assert not method.due()
    while not method.due():
        method.run(1)
    assert method.proposal().expected_gap <= 1e-2 * 0.5e-6
    for _ in range(3):
        method.learn(1e-5)
    assert method.finished


def test_it_gives_up_where_hardly_anything_gets_better(monkeypatch):
    problem = instance("absolute", "l2")
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 1000), np.inf)

    def slowly(self):
        self.gap, self.imbalance = 0.99 * self.gap, 0.0

    monkeypatch.setattr(Newton, "iterate", slowly)
    while not method.finished:
        method.run(1)
    assert method.n_iter == 21


@pytest.mark.parametrize(("kind", "iterations"), [("absolute", 21), ("logistic", 41)])
def test_it_gives_up_where_nothing_gets_better(kind, iterations, monkeypatch):
    problem = instance(kind, "l2")
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(1)
    best = method.proposal()
    monkeypatch.setattr(Newton, "iterate", lambda self: setattr(self, "gap", 2.0 * self.gap))
    while not method.finished:
        method.run(1)
    assert method.n_iter == iterations
    assert method.proposal().w is best.w
    monkeypatch.setattr(Newton, "iterate", lambda self: setattr(self, "gap", np.nan))
    other = Blockwise(problem, planned(problem))
    other.begin(Limits(1e-6, 1000), np.inf)
    other.run(1)
    assert other.finished
    assert other.proposal() is None


def test_the_default_solver_takes_it_first_and_clarabel_where_it_fails(monkeypatch):
    problem = instance("absolute", "l2")
    solution = problem.solve()
    assert solution.info["method"] == "interior point"
    assert solution.info["switched"] is False
    again = problem.solve()
    np.testing.assert_array_equal(solution.w, again.w)
    assert [type(m) for m in Alternative(problem, 1e-6, False).methods()] == [
        Blockwise,
        InteriorPoint,
    ]
    asked = []
    run = InteriorPoint.run
    monkeypatch.setattr(InteriorPoint, "run", lambda self, n: asked.append(n) or run(self, n))
    monkeypatch.setattr(Newton, "iterate", lambda self: setattr(self, "gap", np.nan))
    assert problem.solve().status == "optimal"
    assert asked


@pytest.mark.parametrize("penalty", ["l2", "pnorm"])
def test_for_quadratic_losses_clarabel_says_what_it_costs_but_under_p_norms(penalty):
    alternative = Alternative(instance("squared", penalty), 1e-6, False)
    clarabel = alternative._conic_price / alternative.iteration
    assert (alternative.cost == pytest.approx(clarabel)) == (penalty == "l2")
    own = next(alternative.methods())
    assert type(own) is Blockwise
    assert own.most_check > 0.0


def test_what_it_cannot_solve_is_declared(monkeypatch):
    def lack(problem):
        return missing(problem, Blockwise.requires)

    problem = instance("absolute", "l2")
    graph = problem.graph
    assert lack(problem) is None
    assert "norm" in lack(gtv.GTVProblem(graph, problem.losses, gtv.PNorm(8), 0.1))
    assert "edges" in lack(gtv.GTVProblem(gtv.EmpiricalGraph(7, []), problem.losses, "l2", 0.1))
    loss = gtv.AbsoluteLoss(np.eye(2), np.ones(2))
    assert lack(gtv.GTVProblem(graph, {0: loss + gtv.Box(0.0, 1.0)}, "l2", 0.1)) is None
    for some in (gtv.Box([0.0, 1.0], 1.0), gtv.Simplex()):
        assert "inside" in lack(gtv.GTVProblem(graph, {0: loss + some}, "l2", 0.1))
    custom = gtv.CvxpyLoss(lambda w: cp.norm1(w), 2)
    assert "sums of" in lack(gtv.GTVProblem(graph, {0: custom}, "l2", 0.1))
    settings = _blockwise.BlockwiseSettings(most_entries=10, most_multiplications=10.0)
    monkeypatch.setattr(_blockwise, "DEFAULTS", settings)
    assert "at most 10 entries" in lack(problem)
    assert planned(problem) is None


# Mean and standard deviation of columns as tables have them: year, income, rate, inhabitants.


def test_nothing_is_refined_where_data_are_well_scaled(monkeypatch):
    monkeypatch.setattr(Newton, "_refine", lambda *_: pytest.fail("it was refined"))
    for penalty in PENALTIES:
        assert driven(instance("absolute", penalty), rtol=1e-6).satisfied


def test_repairs_wait_as_long_as_own_gaps_can_become_smaller():
    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(3, [(0, 1), (1, 2)]),
        gtv.AbsoluteLoss.stack(np.arange(1.0, 7.0).reshape(3, 2, 1), np.ones((3, 2))),
        "l2",
        0.1,
    )
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 60), np.inf)
    method.run(3)
    assert method.proposal().waits
    assert not method.proposal(final=True).waits  # there will be no other one
    while not method.finished:
        method.learn(1.0)  # checks do not suffice: it aims at less
    assert not method.proposal().waits
