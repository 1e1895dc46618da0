"""Our own interior-point method where units and few rows make systems nearly singular."""

import numpy as np
import pytest
from _driven import driven

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned
from gtvcvx.solvers.interior_point.blockwise._newton import Newton

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


@pytest.mark.parametrize("seed", [0, 1])
def test_patience_does_not_end_where_values_overflow(seed):
    """Points as large as targets ask for have no finite counts for most of the way."""
    rng, n, rows = np.random.default_rng(seed), 30, 12
    each = []
    for i in range(n):
        X, y = rng.standard_normal((rows, 6)), 1e6 * rng.standard_normal(rows)
        squared, counts = gtv.SquaredLoss(X, y), rng.poisson(1.5, rows).astype(float)
        each.append(gtv.PoissonLoss(X, counts) if i % 2 else squared)
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    run = driven(gtv.GTVProblem(graph, each, "l1", 1000.0), rtol=1e-6)
    assert run.satisfied
    assert 40 < run.n_iter < 120


def star_in_raw_units(seed, n=120, lam=1e-6):
    """A row of five numbers in raw units at each node, and weights over eight decades."""
    rng = np.random.default_rng(seed)
    columns = [np.ones(n), rng.uniform(1930, 2060, n).round(), rng.lognormal(9.0, 1.2, n)]
    X = np.stack([*columns, rng.uniform(0.0, 0.1, n), rng.lognormal(3.0, 1.0, n)], axis=1)
    y = 1e5 + 5.0 * X[:, 2] + rng.normal(0.0, 3e4, n)
    weights = 10.0 ** rng.uniform(-4.0, 4.0, n - 1)
    graph = gtv.EmpiricalGraph(n, [(0, i) for i in range(1, n)], weights)
    each = [gtv.SquaredLoss(X[i : i + 1], y[i : i + 1]) for i in range(n)]
    return gtv.GTVProblem(graph, each, "l1", lam)


@pytest.mark.parametrize(("seed", "n", "lam"), [(4, 120, 1e-6), (3, 242, 8e-5), (1, 60, 1e-7)])
def test_no_more_is_lost_than_the_weakest_edges_make_up_for(seed, n, lam):
    """The first steps lost balance to rounding, little beside the gap of all nodes together.

    Where capacities are small points then went for 1e15: two of these got stuck, with 1.6e-3 left
    of the first, and one took 32 iterations.
    """
    run = driven(star_in_raw_units(seed, n, lam), rtol=1e-6, atol=0.0)
    assert run.satisfied
    assert run.n_iter < 20


def counts_in_raw_units(seed, n=20, d=12):
    """More columns than rows at each node, under a p-norm."""
    rng = np.random.default_rng(seed)
    mean, std = RAW[np.arange(d) % len(RAW)].T
    X = mean + std * rng.standard_normal((n, 6, d))
    losses = gtv.PoissonLoss.stack(X, rng.poisson(1.0, (n, 6)).astype(float))
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 5)
    return gtv.GTVProblem(graph, losses, gtv.penalties.PNorm(3.0), 1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_counts_beside_weak_edges_keep_their_balance(seed):
    """Two of these got stuck, and one took 33 iterations."""
    run = driven(counts_in_raw_units(seed), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 30


def test_predictors_and_correctors_are_of_the_same_factor(monkeypatch):
    """A predictor of 1e23, by doubles, was in a corrector by twice the digits (F8 20264501/68).

    Residuals were no longer those of the point from that step on.
    """
    factors, step = [], Newton._step
    pairs, direction = [], Newton._direction

    def noted(self, mu, corrected, last):
        found = step(self, mu, corrected, last)
        if last and len(pairs) == 5:
            # As where a step misses too much; whether this one does depends on last digits.
            self._system.sharpen()
        factors.append(self._system.twofold)
        return found

    def paired(self):
        found = direction(self)
        pairs.append(tuple(factors[-2:]))
        return found

    monkeypatch.setattr(Newton, "_step", noted)
    monkeypatch.setattr(Newton, "_direction", paired)
    driven(counts_in_raw_units(2), rtol=1e-6)
    assert pairs[4:6] == [(False, False), (True, True)]
    assert (False, True) not in pairs


@pytest.mark.parametrize("smooth", [False, True])
def test_short_steps_are_followed_by_straight_ones(smooth, monkeypatch):
    """Kinks alone, 14,542 nodes, weights over eight decades: left with a gap of 1, now 36 steps.

    What is of second order along the whole predictor drove products apart where steps were short.
    Rates have short steps for most of the way, and are lost without it.
    """
    rng, made = np.random.default_rng(1), Newton._step
    X, y = rng.standard_normal((20, 3, 2)), rng.poisson(1.0, (20, 3)).astype(float)
    losses = (gtv.PoissonLoss if smooth else gtv.AbsoluteLoss).stack(X, y)
    graph = gtv.EmpiricalGraph(20, [(i, i + 1) for i in range(19)])
    problem = gtv.GTVProblem(graph, losses, "l1", 0.1)
    seen = []

    def noted(self, mu, corrected, last):
        if last:
            seen.append(corrected)
        return made(self, mu, corrected, last)

    monkeypatch.setattr(Newton, "_step", noted)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    for length in (1.0, 0.04, 0.06):
        method.run(1)
        method._newton.length = length
    method.run(1)
    assert seen == [True, True, smooth, True]


@pytest.mark.parametrize("penalty", ["l2", gtv.PNorm(1.5)], ids=str)
def test_a_first_point_that_bounds_have_ruined_is_not_begun_with(penalty):
    """Columns far from zero are nearly dependent: least squares without the bounds are far off."""
    rng = np.random.default_rng(2)
    n, d, rows = 60, 10, 14
    X = 10.0 ** rng.uniform(2, 4, d) + rng.standard_normal((rows, 1, d))
    X[:, :, 0] = 1.0
    y = 2358.0 + rng.standard_normal((rows, 1))
    losses = [gtv.ZeroLoss() + gtv.Box(np.zeros(d), np.full(d, np.inf)) for _ in range(n)]
    for k, i in enumerate(rng.choice(n, rows, replace=False)):
        losses[i] = gtv.SquaredLoss(X[k], y[k]) + gtv.Box(np.zeros(d), np.full(d, np.inf))
    chain = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    run = driven(gtv.GTVProblem(chain, losses, penalty, 2e-4), rtol=1e-6)
    assert run.satisfied
    assert run.n_iter < 30
