"""Second-order models under the driver: agreement, hostile data, warm starts, giving up."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers import _auto
from gtvcvx.solvers.driver import Limits, drive, missing
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.second_order._second_order import SecondOrder


@pytest.fixture(autouse=True)
def models_first(monkeypatch):
    """Keep our own interior-point method from problems that are small enough for it."""
    monkeypatch.setattr(Blockwise, "requires", (lambda problem: "nothing",))


def path(losses, n, penalty="l2", lam=0.1):
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    return gtv.GTVProblem(graph, losses, penalty, lam)


def small(kind):
    """Six nodes in a ring with a chord; two of them have no data."""
    rng = np.random.default_rng(3)
    X, owner = rng.standard_normal((20, 3)), np.repeat([0, 1, 3, 5], 5)
    z = X @ np.array([1.0, -1.0, 0.5])
    losses = {
        "logistic": lambda: gtv.LogisticLoss.from_rows(X, (rng.random(20) < 0.5) * 1.0, owner),
        "huber": lambda: gtv.HuberLoss.from_rows(X, z + rng.standard_t(2, 20), owner, delta=0.4),
        "poisson": lambda: gtv.PoissonLoss.from_rows(X, rng.poisson(np.exp(z)) * 1.0, owner),
        "absolute": lambda: gtv.AbsoluteLoss.from_rows(X, z, owner),
    }[kind]()
    edges = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4))
    return gtv.GTVProblem(gtv.EmpiricalGraph(6, edges), losses, "l2", 0.1)


def hostile(kind, n=30, rows=4, d=2):
    """Data on a path that plain Newton steps do not survive."""
    rng = np.random.default_rng(5)
    X, owner = rng.standard_normal((n * rows, d)), np.repeat(np.arange(n), rows)
    z = X @ np.array([2.0, -1.0])
    if kind == "separable":
        return path(gtv.LogisticLoss.from_rows(X, (z > 0.0) * 1.0, owner), n)
    if kind == "large counts":
        return path(gtv.PoissonLoss.from_rows(X, rng.poisson(np.exp(z + 9.0)) * 1.0, owner), n)
    if kind == "gross outliers":
        y = z + 1e6 * (rng.random(len(z)) < 0.3)
        return path(gtv.HuberLoss.from_rows(X, y, owner, delta=0.1), n)
    y = z + rng.standard_t(1, len(z))
    units = X * np.array([1.0, 1e4])
    return path(gtv.PseudoHuberLoss.from_rows(units, y, owner, delta=0.01), n)


# The infimum of separable data is zero.
@pytest.mark.filterwarnings("ignore:the objective is")
@pytest.mark.parametrize("kind", ["separable", "large counts", "gross outliers", "units"])
def test_hostile_data_are_solved(kind, iterations_first):
    problem = hostile(kind)
    solution = problem.solve(rtol=1e-6, max_iter=30_000)
    # Separable data have no minimizer: models get nearer to one by a step each, and give up.
    assert solution.info["method"].startswith(_auto.SECOND_ORDER)
    assert solution.status == "optimal"


def test_what_it_needs_of_a_problem():
    requires = SecondOrder.requires
    assert missing(small("logistic"), requires) is None
    assert "not quadratic" in missing(path(gtv.PointLoss.stack(np.eye(2)), 2), requires)
    assert "smooth" in missing(small("absolute"), requires)
    alone = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), [gtv.LogisticLoss([[1.0]], [1.0])])
    assert "edges" in missing(alone, requires)


def test_other_rules_of_stopping_keep_the_plain_method():
    solution = small("logistic").solve(stop="objective")
    assert solution.info["method"] == _auto.PRIMAL_DUAL
    assert "models" not in solution.info


def test_a_warm_start_is_gone_on_from():
    problem = small("huber")
    cold = problem.solve(rtol=1e-9)
    near = problem.with_lam(0.11).solve(rtol=1e-8, warm_start=cold)
    assert near.status == "optimal"
    assert problem.solve(rtol=1e-8, warm_start=cold).n_iter == 0


def test_a_start_far_off_is_survived():
    problem = small("poisson")
    optimum = problem.solve(rtol=1e-7)
    method = SecondOrder(problem)
    method.move_to(np.full_like(optimum.w, 50.0), optimum.u)
    solution = drive(problem, method, Limits(1e-6, 20_000), "test")
    assert solution.value == pytest.approx(optimum.value, rel=1e-5)


# No step is ever short enough; no residual small enough.
@pytest.mark.parametrize("changes", [{"enough": 0.0}, {"progress": 0.0, "failures": 1}])
def test_models_that_fail_are_given_up(tuned, changes):
    tuned(SecondOrder, **changes)
    problem = small("logistic")
    method = SecondOrder(problem)
    solution = drive(problem, method, Limits(1e-6, 5000), "test")
    assert solution.status == "optimal"
    assert solution.info["models"] <= 3
    plain = drive(problem, PrimalDual(problem), Limits(1e-6, 5000), "test")
    assert solution.value == pytest.approx(plain.value, rel=2e-6)


def test_isolated_nodes_are_at_minimizers_of_their_own():
    rng = np.random.default_rng(0)
    X, owner = rng.standard_normal((12, 2)), np.repeat(np.arange(3), 4)
    losses = gtv.HuberLoss.from_rows(X, rng.standard_normal(12), owner, delta=0.1)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 1)]), losses, "l1", 0.1)
    solution = problem.solve(rtol=1e-8)
    assert solution.status == "optimal"
    assert np.abs(problem.losses.gradient(solution.w)[2]).max() <= 1e-8


def test_maps_of_the_losses_own_proximal_points_count_as_work():
    """An iteration with models costs as much as one that makes none."""
    method = SecondOrder(small("logistic"))
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(20)
    assert method.work == method.n_iter
    method._give_up()
    method.run(10)
    assert method.work >= method.n_iter + 5
