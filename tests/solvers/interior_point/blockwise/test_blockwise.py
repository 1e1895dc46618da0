"""Our own interior-point method: right for every term and penalty, within limits, or stuck."""

import cvxpy as cp
import numpy as np
import pytest
from _instances import cases, reference

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Run, missing
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


def driven(problem, rtol=1e-7, **limits):
    run = Run(problem, Limits(rtol, limits.pop("max_iter", 200), **limits), "TEST")
    run.drive(Blockwise(problem, planned(problem)))
    return run


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


def test_squares_in_boxes_are_iterated_first_where_features_have_one_unit():
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
RAW = np.array([(1.0, 0.0), (1985.0, 20.0), (3e4, 1e4), (0.05, 0.02), (2e5, 1e5), (-8.0, 3.0)])


def in_raw_units(kind, seed, n=12, m=5, d=12, penalty="l2"):
    """More columns than rows, nearly collinear, at every other node of a ring."""
    rng = np.random.default_rng(seed)
    mean, std = RAW[np.arange(d) % len(RAW)].T
    each = [gtv.ZeroLoss()] * n
    for i in range(0, n, 2):
        z = rng.standard_normal((m, d))
        y = 1e5 + 9e4 * (z.sum(axis=1) / 4.0 + 0.3 * rng.standard_normal(m))
        X = mean + std * z
        each[i] = {
            "quantile": lambda X, y: gtv.QuantileLoss(X, y, 0.7),
            "huber": lambda X, y: gtv.HuberLoss(X, y, 4e4),
            "lasso": lambda X, y: gtv.LassoLoss(X, y, 1.0),
        }[kind](X, y)
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    return gtv.GTVProblem(graph, each, penalty, 0.1)


@pytest.mark.parametrize("kind", ["quantile", "huber"])
def test_steps_are_refined_where_columns_are_collinear(kind):
    for seed in range(3):
        run = driven(in_raw_units(kind, seed), rtol=1e-6)
        assert run.satisfied
        assert run.n_iter < 40


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_squares_in_raw_units_balance_beside_l1_terms(monkeypatch, penalty):
    """Gradients of squares are rounding there, and multipliers of l1 terms had to make it up."""
    monkeypatch.setattr(Newton, "_refine", lambda *_: pytest.fail("it was refined"))
    problem = in_raw_units("lasso", 0, penalty=penalty)
    run = driven(problem, rtol=1e-8)
    assert run.satisfied
    assert run.n_iter < 30


def separable_in_raw_units(seed, n=120):
    """Nearly separable classes by intercept, year and income at a fifth of the nodes."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    X = np.ones((n, 3, 3))
    X[:, :, 1], X[:, :, 2] = rng.uniform(1990, 2020, (n, 3)), rng.uniform(2e4, 2e5, (n, 3))
    slopes = np.where(places[:, :1] < 0.5, [1.0, 0.01, 1e-4], [3.0, -0.01, 2e-4])
    score = np.einsum("nrd,nd->nr", X, slopes) + 0.1 * rng.standard_normal((n, 3))
    y, labelled = 1.0 * (score > np.median(score)), rng.random(n) < 0.2
    losses = gtv.LogisticLoss.stack(X, y, labelled=labelled)
    return gtv.GTVProblem(gtv.generators.nearest_neighbours(places, 5), losses, "l2", 1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_far_on_the_right_side_do_not_hold_up_the_others(seed):
    """They have next to no curvature, and with slopes that are derivatives steps knew no end."""
    run = driven(separable_in_raw_units(seed), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 40


def mixed_in_raw_units(n=150, d=6):
    """Logistic, Poisson, absolute and squared losses beside each other, in raw units."""
    rng = np.random.default_rng(0)
    mean, std = RAW.T[:, :d]
    each = []
    for i in range(n):
        z = rng.standard_normal((3, d))
        X, y = mean + std * z, z.sum(axis=1)
        each.append(
            (
                lambda X, y: gtv.LogisticLoss(X, 1.0 * (y > 0.0)),
                lambda X, y: gtv.PoissonLoss(X, np.floor(np.exp(0.5 * y))),
                lambda X, y: gtv.AbsoluteLoss(X, 1e4 * y),
                lambda X, y: gtv.SquaredLoss(X, 1e2 * y),
            )[i % 4](X, y)
        )
    places = rng.random((n, 2))
    return gtv.GTVProblem(gtv.generators.nearest_neighbours(places, 5), each, "l1", 1.0)


def test_rows_of_all_kinds_in_raw_units_are_solved_together():
    run = driven(mixed_in_raw_units(), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 60


def fused_with_offsets(seed, n, d, m, lam):
    """A chain of nodes with an intercept beside columns far from zero, weights over six decades."""
    rng = np.random.default_rng(seed)
    mean = np.r_[1.0, 10.0 ** rng.uniform(2, 4, d - 1)]
    X = mean + np.r_[0.0, np.ones(d - 1)] * rng.standard_normal((n, m, d))
    y = 1e3 + rng.standard_normal((n, m))
    graph = gtv.EmpiricalGraph(
        n, [(i, i + 1) for i in range(n - 1)], 10.0 ** rng.uniform(-3, 3, n - 1)
    )
    losses = gtv.PseudoHuberLoss.stack(X, y, delta=0.5, labelled=rng.random(n) < 0.6)
    return gtv.GTVProblem(graph, losses, "l2", lam)


def test_fused_nodes_are_balanced_along_trees():
    """Beside the weights of loose edges what these nodes miss is lost in a factor of all."""
    run = driven(fused_with_offsets(4, n=30, d=10, m=2, lam=10.0), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 20


def test_points_keep_up_with_their_residuals_and_jumps():
    """Refined steps are sums that nearly cancel, and w was off by more than was asked for."""
    problem = fused_with_offsets(2, n=20, d=6, m=1, lam=0.3)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    method.run(10)
    newton = method._newton
    assert newton._refined or newton._system.twofold
    assert newton.value() == pytest.approx(problem.value(newton.w), abs=1e-6)
    assert driven(problem, rtol=1e-6).satisfied


def few_rows(kind, penalty, lam, size, offset, n=12, m=3, d=6):
    """Rows in large units that tell some of the coordinates, beside small capacities."""
    rng = np.random.default_rng(0)
    mean = offset * 10.0 ** rng.uniform(0, 2, d)
    X = size * (rng.standard_normal((n, m, d)) + mean)
    y = X.sum(axis=2) + size * rng.standard_normal((n, m))
    each = [kind(X[i], y[i]) if i % 3 else gtv.ZeroLoss() for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    return gtv.GTVProblem(graph, each, penalty, lam)


@pytest.mark.parametrize("penalty", ["l1", "linf", "l2"])
def test_factors_have_twice_the_digits_where_refinement_ends_too_soon(penalty):
    problem = few_rows(gtv.AbsoluteLoss, penalty, lam=1e-3, size=1e5, offset=0.0)
    run, method = Run(problem, Limits(1e-6, 50), "TEST"), Blockwise(problem, planned(problem))
    run.drive(method)
    assert method._newton._system.twofold
    assert run.satisfied
    assert run.n_iter < 20


def test_what_is_put_back_into_balls_does_not_hide_what_steps_miss():
    """No step was refined, as flows had been put back after each: stuck after 29."""
    problem = few_rows(gtv.AbsoluteLoss, gtv.PNorm(1.5), lam=1e-5, size=1.0, offset=100.0)
    run = Run(problem, Limits(1e-6, 50), "TEST")
    run.drive(Blockwise(problem, planned(problem)))
    assert run.satisfied
    assert run.n_iter < 10


@pytest.mark.parametrize(("penalty", "size"), [("squared", 1e3), (gtv.Quadratic(np.eye(6)), 1e5)])
def test_points_of_linear_equations_are_told_apart_by_what_they_miss(penalty, size):
    """Their own gaps are zero: the first point, which misses most, was the best one for good."""
    problem = few_rows(gtv.SquaredLoss, penalty, lam=1.0, size=size, offset=100.0)
    run = Run(problem, Limits(1e-6, 50), "TEST")
    run.drive(Blockwise(problem, planned(problem), apart=True))
    assert run.satisfied


def test_checks_go_on_while_less_is_missing_of_the_balance():
    """The own gap is rounding from the eighth point on, what is missing falls by a hundredth."""
    problem = few_rows(gtv.AbsoluteLoss, gtv.PNorm(1.5), lam=10.0, size=1e3, offset=100.0)
    run = Run(problem, Limits(1e-6, 50), "TEST")
    run.drive(Blockwise(problem, planned(problem)))
    assert run.satisfied


@pytest.mark.parametrize(("penalty", "lam"), [("l1", 1e-7), ("l2", 1e-5)])
def test_products_start_as_large_as_what_residuals_are_rounded_by(penalty, lam):
    """Steps were short, and points ran away to 1e11, before the balance was found."""
    problem = few_rows(gtv.SquaredLoss, penalty, lam=lam, size=1e6, offset=100.0)
    run = Run(problem, Limits(1e-6, 50), "TEST")
    run.drive(Blockwise(problem, planned(problem), apart=True))
    assert run.satisfied
    assert run.n_iter < 20


def test_products_of_p_norms_start_small():
    """As large as what was missing, they jammed."""
    rng, n, d = np.random.default_rng(1), 30, 8
    mean, std = RAW[np.arange(d) % len(RAW)].T
    each = [gtv.ZeroLoss()] * n
    for i in range(0, n, 2):
        X = mean + std * rng.standard_normal((3, d))
        each[i] = gtv.SquaredLoss(X, 1e5 + 9e4 * rng.standard_normal(3))
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    run = driven(gtv.GTVProblem(graph, each, gtv.PNorm(3.0), 0.1), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 20


def test_nothing_is_refined_where_data_are_well_scaled(monkeypatch):
    monkeypatch.setattr(Newton, "_refine", lambda *_: pytest.fail("it was refined"))
    for penalty in PENALTIES:
        assert driven(instance("absolute", penalty), rtol=1e-6).satisfied


@pytest.mark.parametrize("penalty", ["linf", "squared"])
def test_several_classes_in_raw_units(penalty):
    """With slopes that are derivatives at the point, balance was rounding there."""
    rng = np.random.default_rng(1)
    mean, std = RAW.T[:, :5]
    X = mean + std * rng.standard_normal((20, 4, 5))
    score = (X - mean) / np.maximum(std, 1.0) @ rng.standard_normal((5, 5))
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=2)
    losses = gtv.MultinomialLogisticLoss.stack(X, y, n_classes=5)
    graph = gtv.EmpiricalGraph(20, [(i, (i + 1) % 20) for i in range(20)])
    run = driven(gtv.GTVProblem(graph, losses, penalty, 1.0), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 40


def test_multipliers_of_bounds_start_as_large_as_what_they_are_for():
    rng = np.random.default_rng(0)
    X, y = 100.0 + rng.standard_normal((40, 3, 5)), 1000.0 + rng.standard_normal((40, 3))
    graph = gtv.generators.nearest_neighbours(rng.random((40, 2)), 4)
    boxed = [gtv.SquaredLoss(X[i], y[i]) + gtv.Box(0.0, 1.0) for i in range(40)]
    run = driven(gtv.GTVProblem(graph, boxed, "l2", 1e-5), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 15


def test_products_are_brought_together_after_a_short_step():
    """With capacities over eight decades steps are ever shorter where mu goes on falling."""
    rng = np.random.default_rng(5)
    n, d = 100, 16
    X = 10.0 ** rng.uniform(2, 4, d) + rng.standard_normal((n, 1, d))
    X[:, :, 0] = 1.0
    losses = gtv.QuantileLoss.stack(X, 250 + rng.standard_normal((n, 1)), level=0.3)
    near = gtv.generators.nearest_neighbours(rng.random((n, 2)), 4)
    graph = gtv.EmpiricalGraph(n, near.edges, 10.0 ** rng.uniform(-4, 4, near.n_edges))
    problem = gtv.GTVProblem(graph, losses, "l2", 5.0)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 1000), np.inf)
    while not (method.due() or method.finished):
        method.run(1)
    assert method.due()
