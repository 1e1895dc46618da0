"""The default solver switches where iterations stall, and nowhere else; counts decide."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Proposal
from gtvcvx.solvers.driver._run import Run
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._prices import Prices, quadratic_iteration
from gtvcvx.solvers.interior_point._stalling import DEFAULTS as STALLING
from gtvcvx.solvers.interior_point._stalling import Stalling
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


def raw_units(n=100, lam=0.1, penalty="l1"):
    """One row a node: intercept, year, income, a rate, and an age."""
    rng = np.random.default_rng(1)
    columns = (
        np.ones(n),
        1960.0 + rng.integers(0, 50, n),
        3e4 * np.exp(0.4 * rng.standard_normal(n)),
        0.05 + 0.03 * rng.random(n),
        20.0 + 10.0 * rng.random(n),
    )
    X = np.stack(columns, axis=1)
    w = np.array([[1.0, 0.01, 1e-4, 3.0, 0.2], [2.0, -0.01, 2e-4, -3.0, 0.1]])
    y = np.einsum("nk,nk->n", X, w[(np.arange(n) >= n // 2).astype(int)])
    y += 0.1 * rng.standard_normal(n)
    edges = sorted({(i, (i + k) % n) for i in range(n) for k in (1, 2, 7) if i + k < n})
    graph = gtv.EmpiricalGraph(n, edges)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X[:, None], y[:, None]), penalty, lam)


class Falling:
    """An iteration whose residual, and the gap by it, falls by a factor every ten iterations."""

    stride, finished = 10, False

    def __init__(self, factor=0.5, checks=()):
        self.n_iter, self._factor, self._checks = 0, factor, checks

    @property
    def work(self):
        return float(self.n_iter)

    def begin(self, limits, rel_gap):
        pass

    def run(self, n_iter):
        self.n_iter += n_iter

    def due(self):
        return self.n_iter in self._checks

    def residual(self):
        return self._factor ** (self.n_iter / 10)

    def expected_gap(self):
        return 0.1 * self.residual()

    def proposal(self, final=False):
        return Proposal(np.zeros((1, 1)), np.zeros((0, 1)), 1.0)

    def learn(self, rel_gap):
        pass

    def info(self):
        return {}


class Costing:
    """Another method, with a known cost."""

    def __init__(self, cost, least=0.0):
        self._cost, self._least, self.asked = cost, least, 0

    @property
    def iteration(self):
        return 1000.0

    @property
    def least_cost(self):
        return self._least

    @property
    def bound(self):
        return self._least

    @property
    def cost(self):
        self.asked += 1
        return self._cost


def run_until_stalled(factor, other, most=20_000, rtol=1e-6):
    """Return after how many iterations a method stalls, `most` if it does not."""
    method = Stalling(Falling(factor), other)
    method.begin(Limits(rtol, 10**6), np.inf)
    while method.n_iter < most and not method.finished:
        method.run(10)
    return method.n_iter


@pytest.mark.parametrize("penalty", ["l1", "linf"])
def test_a_table_in_raw_units_is_solved(penalty, iterations_first):
    problem = raw_units(penalty=penalty)
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.rel_gap <= 1e-6
    assert solution.info["switched"] is True
    assert solution.info["method"] == "primal-dual, interior point"
    assert solution.n_iter < 20_000
    assert solution.value == pytest.approx(problem.solve(solver="CLARABEL").value, rel=1e-5)
    counts = [record.n_iter for record in solution.history]
    assert counts == sorted(set(counts))


def test_iterations_are_dearer_where_projections_have_several_weights():
    def price(penalty, factor):
        problem = raw_units(penalty=penalty)
        X, y = problem.losses.plain[0]["X"], problem.losses.plain[0]["y"]
        losses = gtv.SquaredLoss.stack((X * factor)[:, None], y[:, None])
        scaled = gtv.GTVProblem(problem.graph, losses, penalty, 0.1)
        return Alternative(scaled, 1e-6, False).iteration

    alike = 1.0 / np.array([1.0, 2e3, 3e4, 0.05, 25.0])
    assert price("l1", 1.0) == price("l1", alike) == price("l2", alike)
    assert price("l2", 1.0) == price("linf", 1.0) > 2.0 * price("l2", alike)


def test_the_same_run_gives_the_same_result(iterations_first):
    first, second = raw_units().solve(), raw_units().solve()
    assert first.n_iter == second.n_iter
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.u, second.u)


@pytest.mark.parametrize("limit", [{"max_iter": 300}, {"max_iter": 100}])
def test_limits_before_the_switch_end_the_run(limit, iterations_first):
    solution = raw_units().solve(**limit)
    assert solution.status == "user_limit"
    assert solution.n_iter == limit["max_iter"]
    assert solution.info["switched"] is False
    assert solution.info["method"] == "primal-dual"


def test_where_the_interior_point_method_fails_iterations_go_on(monkeypatch, iterations_first):
    for method in (Blockwise, InteriorPoint):
        monkeypatch.setattr(method, "proposal", lambda self, final=False: None)
    solution = raw_units().solve(max_iter=15_000)
    assert solution.n_iter == 15_000
    assert solution.status == "user_limit"
    assert solution.info["switched"] is True
    assert np.isfinite(solution.gap)


def test_ctrl_c_during_the_interior_point_method_returns_the_incumbent(
    monkeypatch, iterations_first
):
    def interrupted(self, n_iter):
        raise KeyboardInterrupt

    monkeypatch.setattr(Blockwise, "run", interrupted)
    solution = raw_units().solve()
    assert solution.status == "user_limit"
    assert solution.info["switched"] is True
    assert solution.gap == pytest.approx(solution.value - solution.dual_value)


def test_what_gave_way_unseen_is_not_lost_where_nothing_better_was_found(
    monkeypatch, tuned, iterations_first
):
    """Iterations that end far from done are not checked before Clarabel begins."""

    def interrupted(self, n_iter):
        raise KeyboardInterrupt

    tuned(Stalling, hopeless=0.0)
    monkeypatch.setattr(Blockwise, "run", interrupted)
    problem = raw_units()
    solution = problem.solve()
    assert solution.info["switched"] is True
    assert solution.value < 0.5 * problem.value(np.zeros_like(solution.w))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_runs_that_converge_do_not_switch(penalty):
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(60, [(i, i + 1) for i in range(59)])
    X = rng.standard_normal((60, 4, 2))
    losses = gtv.SquaredLoss.stack(X, X.sum(axis=2))
    solution = gtv.GTVProblem(graph, losses, penalty, 0.1).solve(atol=1e-6)
    assert solution.status == "optimal"
    assert solution.info["switched"] is False


def test_no_program_is_made_for_runs_that_converge(monkeypatch):
    def made(*arguments):
        raise AssertionError("the interior-point method was made")

    monkeypatch.setattr(InteriorPoint, "__init__", made)
    rng = np.random.default_rng(7)
    losses = gtv.SquaredLoss.stack(rng.standard_normal((300, 6, 5)), rng.standard_normal((300, 6)))
    ends = [(i, (i + k) % 300) for i in range(300) for k in (1, 7, 31)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(300, ends), losses, "l2", 0.1)
    assert problem.solve().info["method"] == "primal-dual"


def test_small_tables_in_raw_units_do_not_iterate():
    """Iterations took 700 and more, and gave way after all."""
    solution = raw_units(n=50).solve()
    assert solution.status == "optimal"
    assert solution.info["method"] == "interior point"


def test_what_takes_models_or_multipliers_whatever_its_size_goes_to_the_other_method_first():
    """Their fixed work is more than the whole of the other method takes for a few nodes."""
    rng, graph = np.random.default_rng(5), gtv.EmpiricalGraph(20, [(i, i + 1) for i in range(19)])
    X = rng.standard_normal((20, 3, 2))
    logistic = gtv.LogisticLoss.stack(X, (rng.random((20, 3)) < 0.5).astype(float))
    boxed = [gtv.SquaredLoss(x, x.sum(axis=1)) + gtv.Box(0.0, 1.0) for x in X]
    for losses in (logistic, boxed):
        solution = gtv.GTVProblem(graph, losses, "l2", 0.1).solve()
        assert (solution.status, solution.info["method"]) == ("optimal", "interior point")


@pytest.mark.parametrize("loss", [gtv.LogisticLoss, gtv.PoissonLoss])
def test_smooth_losses_of_some_thousand_nodes_go_to_the_other_method_first(loss):
    """Models were left for it in most runs, after as long as it takes by itself."""
    rng, n = np.random.default_rng(6), 2_000
    edges = [(i, i + k) for i in range(n) for k in (1, 5) if i + k < n]
    X = rng.standard_normal((n, 4, 3))
    losses = loss.stack(X, (X.sum(axis=2) > 0.3).astype(float))
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l2", 0.3)
    assert STALLING.fewest < Alternative(problem, 1e-6, modelled=True).cost
    solution = problem.solve()
    assert (solution.status, solution.info["method"]) == ("optimal", "interior point")


def test_other_stopping_rules_never_switch():
    solution = raw_units().solve(stop="iterations", max_iter=9000)
    assert solution.n_iter == 9000
    assert solution.info["switched"] is False


def test_scalar_problems_say_that_nothing_was_switched():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0], [3.0]]), "l1", 0.1)
    assert problem.solve().info == {"method": "dynamic programming", "switched": False}


def test_an_iteration_has_a_share_of_what_the_other_method_costs():
    # Falling by .999 every ten iterations takes some 115,000 for five and a half digits.
    for cost in (400.0, 2000.0, 10_000.0):
        n_iter = run_until_stalled(0.999, Costing(cost))
        assert 0.5 * cost <= n_iter <= 0.5 * cost + 20
    assert run_until_stalled(0.999, Costing(np.inf)) == 20_000
    assert run_until_stalled(0.999, Costing(1e6)) == 20_000


def test_no_iteration_gives_way_before_the_fewest_that_any_problem_takes():
    assert run_until_stalled(1.0, Costing(1.0)) == 100


def test_an_iteration_that_will_be_done_soon_goes_on():
    # Half as much every ten iterations: done after some 170.
    assert run_until_stalled(0.5, Costing(300.0), most=170) == 170


def test_the_cost_is_not_asked_for_where_its_lower_bound_says_enough():
    other = Costing(1.0, least=1e6)
    assert run_until_stalled(0.999, other) == 20_000
    assert other.asked == 0


def test_gaps_that_do_not_fall_stall_a_method_whose_residual_does():
    method = Stalling(Falling(0.9, checks=range(0, 10**6, 500)), Costing(1000.0))
    method.begin(Limits(1e-6, 10**6), np.inf)
    while not method.finished and method.n_iter < 5000:
        method.run(500)
        method.learn(1e-3)
    assert method.n_iter == 1000


def test_a_check_may_see_it_otherwise():
    method = Stalling(Falling(0.97), Costing(300.0))
    method.begin(Limits(1e-6, 10**6), np.inf)
    while not method.finished:
        method.run(10)
    method.learn(1.2e-6)
    assert not method.finished


def test_no_iteration_stalls_at_the_rounding_of_bounds():
    method = Stalling(Falling(1.0), Costing(100.0))
    method.begin(Limits(1e-15, 10**6), np.inf)
    for _ in range(100):
        method.run(10)
        method.learn(5e-11)
        assert not method.finished


def test_what_cannot_be_solved_costs_infinitely_much(monkeypatch):
    problem = raw_units()
    known = Alternative(problem, 1e-6, False)
    assert 100 < known.least_cost < known.cost < 1e4
    other = gtv.GTVProblem(problem.graph, problem.losses, gtv.PNorm(3), 0.1)
    monkeypatch.setattr(gtv.PNorm, "to_data", lambda self: {"kind": "opaque", "name": "own"})
    assert (
        Alternative(other, 1e-6, False).cost == Alternative(other, 1e-6, False).least_cost == np.inf
    )


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_an_iteration_beside_few_rows_goes_through_them_alone(loss):
    """No entry of the matrices (n, d, d) that nobody makes is paid for."""
    n, m, d = 40, 3, 200
    rng, graph = np.random.default_rng(0), gtv.EmpiricalGraph(40, [(i, i + 1) for i in range(39)])
    X, y = rng.standard_normal((n, m, d)), rng.standard_normal((n, m))
    kind = {"squared": gtv.SquaredLoss, "absolute": gtv.AbsoluteLoss}[loss]
    problem = gtv.GTVProblem(graph, kind.stack(X, y), "l2", 0.1)
    entries = (2 * n * m + n) * d
    expected = Prices().call + Prices().edge * 39 * d + Prices().node * entries
    assert quadratic_iteration(problem) == pytest.approx(expected)
    small = gtv.GTVProblem(graph, kind.stack(X[:, :, :9], y), "l2", 0.1)
    expected = Prices().call + Prices().edge * 39 * 9 + Prices().node * n * 81
    assert quadratic_iteration(small) == pytest.approx(expected)


def test_no_program_is_ordered_that_costs_more_by_its_entries_alone(monkeypatch):
    """Hinges and a ridge, 500 nodes with 1,500 coordinates: Clarabel's ordering took 20 s."""
    n, d = 20, 200
    rng = np.random.default_rng(0)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 6)
    X, y = rng.standard_normal((n, 2, d)), rng.standard_normal((n, 2))
    losses = gtv.AbsoluteLoss.stack(X, y)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    other = Alternative(problem, 1e-4, False)
    monkeypatch.setattr(InteriorPoint, "fill", property(pytest.fail))
    monkeypatch.setattr(Alternative, "_plan", None)
    assert other.bound > 10.0 * other.least_cost
    stalled = Stalling(Falling(1.0), other)
    stalled.begin(Limits(1e-4, 10**6), np.inf)
    for _ in range(20):
        stalled.run(int(other.least_cost))
        assert not stalled.finished


def test_steps_of_edges_that_the_compiled_pass_does_not_know_have_their_price():
    """On few edges they are most of an iteration: the other method comes first."""
    n, d = 150, 2
    rng, graph = np.random.default_rng(1), gtv.EmpiricalGraph(150, [(i, i + 1) for i in range(149)])
    X, y = rng.standard_normal((n, 4, d)), rng.standard_normal((n, 4))
    losses = gtv.SquaredLoss.stack(X, y)
    known = gtv.GTVProblem(graph, losses, "squared", 0.1)
    other = gtv.GTVProblem(graph, losses, gtv.Quadratic(np.eye(d)), 0.1)
    more = quadratic_iteration(other) - quadratic_iteration(known)
    assert more == pytest.approx(Prices().steps + Prices().step * 149 * d)
    assert known.solve(verbose=False).info["method"] == "primal-dual"
    assert other.solve(verbose=False).info["method"] == "interior point"


def test_an_iteration_that_takes_detours_gives_way_between_its_strides():
    class Detouring(Falling):
        stride = 1000

        @property
        def work(self):
            return 50.0 * self.n_iter

    method = Stalling(Detouring(factor=0.999), Costing(500.0))
    method.begin(Limits(1e-9, 10_000), np.inf)
    while not method.finished and method.n_iter < 900:
        method.run(1)
    assert method.finished
    assert method.n_iter < 100


def test_detours_of_proximal_maps_are_work():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20, 4, 3)) * [1.0, 2e3, 5e4] + [1.0, 2e3, 5e4]
    losses = [gtv.AbsoluteLoss(X[i], rng.standard_normal(4)) for i in range(20)]
    graph = gtv.EmpiricalGraph(20, [(i, i + 1) for i in range(19)])
    problem = gtv.GTVProblem(graph, losses, "l2", 1e-3)
    method = PrimalDual(problem)
    method.begin(Limits(1e-6, 1000), np.inf)
    method.run(20)
    assert method.work > method.n_iter == 20
    # What another solve took is not counted.
    assert PrimalDual(problem).work == 0.0


def checked_after(n_iter, spent, cost, least=100.0):
    """Return a method one of whose checks took so many iterations, and what it allowed."""
    method = Stalling(Falling(0.5), Costing(cost, least))
    method.begin(Limits(1e-6, 10**6), np.inf)
    method.run(n_iter)
    allowance = method.proposal().allowance
    allowance.spent = 1000.0 * spent
    method.learn(1.0)
    return method, allowance


def test_a_check_may_take_as_long_as_all_so_far_or_as_the_least_of_the_other_method():
    assert checked_after(50, 0.0, 1e9)[1].most == 1000.0 * 100.0
    method, allowance = checked_after(400, 300.0, 1e9)
    assert allowance.most == 1000.0 * 400.0
    method.run(10)
    assert method.proposal().allowance.most == 1000.0 * (410.0 + 300.0)
    assert method.proposal(final=True).allowance is None


def test_a_check_is_rationed_where_there_is_no_other_method_too():
    """Logistic rows, 4,000 x 40: a first repair took 129 s after 9 s of iterations, for nothing."""
    method, allowance = checked_after(50, 300.0, np.inf, np.inf)
    assert allowance.most == 1000.0 * STALLING.least_check
    assert not method.finished  # nobody is there to give way to
    method, allowance = checked_after(2000, 2001.0, np.inf, np.inf)
    assert allowance.most == 1000.0 * 2000.0
    assert not method.finished


def test_a_method_gives_way_after_a_check_that_took_too_long():
    assert checked_after(400, 401.0, 1500.0)[0].finished
    assert not checked_after(400, 399.0, 1500.0)[0].finished
    # The other method would take far longer than all that.
    assert not checked_after(400, 401.0, 1e5)[0].finished


def test_checks_of_interior_point_methods_take_no_longer_than_they_do():
    """There are other methods, or rounds."""
    problem = raw_units(penalty="l2")
    alternative = Alternative(problem, 1e-6, False)
    first, second = alternative.methods()
    assert isinstance(first, Blockwise)
    assert first.most_check == alternative.cost * alternative.iteration
    assert first.most_check < second.most_check < np.inf
    for method in (first, second):
        method.begin(Limits(1e-6, 1000), np.inf)
        method.run(3)
        assert method.proposal().allowance.most == method.most_check


def test_of_the_two_methods_the_cheaper_one_comes_first_for_quadratic_losses():
    """In one unit that is large, with capacities over eight decades, iterations stall."""
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.standard_normal((20, 5, 6)), rng.standard_normal((20, 5))
    edges = [(i, j) for i in range(20) for j in range(i + 1, 20)]
    graph = gtv.EmpiricalGraph(20, edges, 10.0 ** rng.uniform(-4, 4, len(edges)))
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "linf", 1e-4)

    def kinds(tries):
        methods = Alternative(problem, 1e-6, False, Prices(tries=tries)).methods()
        return [type(method) for method in methods]

    assert kinds(100.0) == [Blockwise, InteriorPoint]
    assert kinds(0.0) == [InteriorPoint, Blockwise]
    own = next(Alternative(problem, 1e-6, False).methods())
    run = Run(problem, Limits(1e-6, 100), "TEST")
    run.drive(own)
    assert run.satisfied
    # Folded into quadratic functions, squares would not balance: they have slopes of their own.
    assert np.isfinite(own.proposal().a).all()


def test_a_system_of_linear_equations_is_solved_by_one_factorization():
    """Columns of few rows that are alike: hundreds of iterations, or one step of Newton's."""
    rng = np.random.default_rng(2)
    n, d = 200, 10
    X = rng.standard_normal((n, 2, 1)) + 0.1 * rng.standard_normal((n, 2, d))
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    squares = [gtv.SquaredLoss(X[i], rng.standard_normal(2)) for i in range(n)]
    quadratic = gtv.Quadratic(np.eye(d) + 0.5)
    linear = gtv.GTVProblem(graph, squares, quadratic, 0.1)
    found = linear.solve()
    assert found.status == "optimal"
    assert (found.info["method"], found.n_iter) == ("interior point", 1)
    boxed = [loss + gtv.Box(-1.0, 1.0) for loss in squares]
    bounded = gtv.GTVProblem(graph, boxed, quadratic, 0.1)
    assert Alternative(bounded, 1e-6, False).fewest < Alternative(linear, 1e-6, False).fewest


def test_no_factorization_of_a_dense_graph_is_ordered_to_learn_that_it_takes_long(monkeypatch):
    rng = np.random.default_rng(0)
    n = 200
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
    squares = gtv.SquaredLoss.stack(rng.standard_normal((n, 3, 2)), rng.standard_normal((n, 3)))
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), squares, "squared", 0.1)
    monkeypatch.setattr(Alternative, "_plan", property(lambda _: pytest.fail("it was ordered")))
    assert problem.solve().info["method"] == "primal-dual"


@pytest.mark.parametrize("kind", ["hinge", "logistic"])
def test_what_takes_a_moment_comes_first_where_iterations_compile_for_long(monkeypatch, kind):
    """From 16 coordinates on, where loops are not unrolled; quadratic losses compile no more."""

    def short(d, n=12, loss=None):
        rng = np.random.default_rng(0)
        X, signs = rng.standard_normal((n, 3, d)), np.sign(rng.standard_normal((n, 3)))
        made = gtv.HingeLoss if kind == "hinge" else gtv.LogisticLoss
        ends = signs if kind == "hinge" else signs > 0
        losses = [(loss or made)(X[i], ends[i]) for i in range(n)]
        graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
        return Alternative(gtv.GTVProblem(graph, losses, "l2", 0.1), 1e-6, False).is_short

    assert short(16)
    assert not short(15)
    assert not short(16, loss=gtv.SquaredLoss)
    monkeypatch.setattr(Alternative, "_plan", property(lambda _: pytest.fail("it was ordered")))
    assert not short(60, n=3_000)
