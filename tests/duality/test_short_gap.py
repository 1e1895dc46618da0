"""Bounds from a share of a flow, without a repair: true, and there before time is over."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired, now, until
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.duality._cheap_gaps import short_gap
from gtvcvx.losses import stacked_from_terms
from gtvcvx.losses.batched.composite import _batch, _parts
from gtvcvx.losses.batched.composite._batch import BatchedComposite
from gtvcvx.solvers.driver import Options, Run, _incumbent, _run
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

N, M, D = 6, 3, 40


def problem_of(kind="squared", kappa=0.1, mu=0.0, lower=-np.inf):
    """Three rows at each of six nodes on a ring, and terms of coordinates."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N * M, D)), rng.standard_normal(N * M)
    y = {"logistic": (y > 0.0).astype(float), "hinge": np.sign(y), "poisson": np.rint(y**2)}.get(
        kind, y
    )
    nodes, shape = np.arange(N), (N, D)
    terms = [
        {"kind": kind, "node": np.repeat(nodes, M), "X": X / 4.0, "y": y},
        {"kind": "ridge", "node": nodes, "mu": np.full(shape, mu)},
        {"kind": "l1", "node": nodes, "kappa": np.full(shape, kappa)},
        {
            "kind": "box",
            "node": nodes,
            "lower": np.full(shape, lower),
            "upper": np.full(shape, np.inf),
        },
    ]
    graph = gtv.EmpiricalGraph(N, [(i, (i + 1) % N) for i in range(N)])
    return gtv.GTVProblem(graph, stacked_from_terms(terms, D), "l2", 0.05)


@pytest.mark.parametrize("kind", ["squared", "absolute", "logistic", "hinge", "poisson"])
@pytest.mark.parametrize("terms", [{}, {"mu": 0.1}, {"lower": 0.0}])
def test_bounds_are_below_the_optimum(kind, terms):
    """And no worse than the flow zero where slopes are those of a solution."""
    problem = problem_of(kind, **terms)
    best, rng = problem.solve(rtol=1e-8), np.random.default_rng(1)
    for size in (0.0, 1e-3, 1e-1, 1.0):
        w = problem.losses.project_domain(best.w + size * rng.standard_normal((N, D)))
        u = best.u + size * rng.standard_normal((N, D))
        p = problem
        found = short_gap(p.graph, p.losses, p.penalty, p.capacities, w, u)
        if found is None:
            assert size > 0.0
            continue
        gap, flow = found
        assert p.value(w) - gap.total <= best.value + 1e-12
        assert p.lower_bound(flow)[0] >= p.value(w) - gap.total - 1e-9
    short = short_gap(p.graph, p.losses, p.penalty, p.capacities, best.w, best.u)[0]
    assert short.total <= 0.01 * max(1.0, abs(best.value))


def test_rows_that_nothing_stands_beside_take_no_share():
    """Their conjugates are finite along them alone."""
    problem = problem_of(kappa=0.0)
    rng = np.random.default_rng(0)
    w, u = rng.standard_normal((2, N, D))
    p = problem
    assert short_gap(p.graph, p.losses, p.penalty, p.capacities, w, u) is None


def test_a_check_that_does_not_end_leaves_a_bound(monkeypatch):
    """The gap was that of the flow zero, all of the objective."""

    def expired(*_):
        raise Expired

    problem = problem_of()
    best = problem.solve()
    monkeypatch.setattr(DualBounds, "repaired", expired)
    monkeypatch.setattr(_incumbent, "FEW", 0)  # as beside more numbers
    run = Run(problem, Options(time_limit=5.0).limits(), "test")
    run.consider(best.w, best.u)
    assert run.stopped
    assert run.incumbent.rel_gap < 0.01


def test_checks_of_few_numbers_are_not_prepared_for(monkeypatch):
    """They take as long as the preparation."""
    problem = problem_of()
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent.Incumbent, "update_shortly", pytest.fail)
    run = Run(problem, Options(time_limit=5.0).limits(), "test")
    run.consider(best.w, best.u)
    assert run.satisfied
    assert run.incumbent.quick
    function = gtv.losses.CvxpyLoss(lambda w: cp.sum_squares(w - 1.0), dim=2)
    own = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), {0: function}, "l2", 1.0)
    assert not _incumbent.Incumbent(own).quick  # one function may take as long as it likes


def test_a_bound_below_that_of_no_flow_is_not_taken(monkeypatch):
    """Slopes at kinks may leave much to ridges: hinge and a ridge, gaps of 1e6."""
    problem = problem_of("hinge", kappa=0.0, mu=1e-6)
    best = problem.solve(atol=1e-9)
    slopes = BatchedComposite._slopes
    monkeypatch.setattr(BatchedComposite, "_cheap_multipliers", lambda self, w, s: slopes(self, w))
    run = Run(problem, Options(time_limit=5.0).limits(), "test")
    run.incumbent.update_shortly(best.w, best.u)
    assert run.incumbent.empty
    assert not run.incumbent.suffices_shortly(best.w, best.u, 1e-4)


def test_where_a_share_of_the_flow_proves_enough_nothing_is_repaired(monkeypatch):
    """Beside many coordinates a repair takes as long as a hundred iterations."""
    problem = problem_of()
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    monkeypatch.setattr(DualBounds, "repaired", pytest.fail)
    run = Run(problem, Options(rtol=1e-2).limits(), "test")
    run.consider(best.w, best.u)
    assert run.satisfied
    assert run.incumbent.value - best.value <= run.incumbent.gap + 1e-12


def test_iterations_go_on_until_a_share_proves_enough(monkeypatch):
    """Where it is asked for too often, or the end has come, there is a repair all the same."""
    problem = problem_of()
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    incumbent = Run(problem, Options(rtol=1e-6).limits(), "test").incumbent
    shares = (0.1, 0.7, 0.96, 0.98, 0.99, 0.995)  # the first one proves hardly anything
    assert len(shares) == _incumbent.MOST_ASKED
    assert all(incumbent.suffices_shortly(best.w, share * best.u, 1e-4) for share in shares)
    assert incumbent.rel_gap > 1e-4
    assert not incumbent.suffices_shortly(best.w, 0.998 * best.u, 1e-4)


def test_a_share_that_proves_less_than_what_is_known_is_not_waited_for(monkeypatch):
    """Checks of the hinge loss ended there, with the gap of the first one, for 400 iterations."""
    problem = problem_of()
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    incumbent = Run(problem, Options(rtol=1e-6).limits(), "test").incumbent
    assert incumbent.suffices_shortly(best.w, 0.99 * best.u, 1e-4)
    assert not incumbent.suffices_shortly(best.w, 0.98 * best.u, 1e-4)
    monkeypatch.setattr(_incumbent, "short_gap", lambda *_: None)
    incumbent = Run(problem, Options(rtol=1e-6).limits(), "test").incumbent
    assert not incumbent.suffices_shortly(best.w, best.u, 1e-4)  # there is none


def test_cheap_checks_come_oftener(monkeypatch):
    """Gaps of hinges were small enough after 160 iterations, and looked at again after 500."""
    problems = [problem_of("hinge"), problem_of(kappa=0.1)]  # rows, and coordinates, with kinks
    smooth = gtv.SquaredLoss.stack(np.ones((N, 1, D)), np.ones((N, 1)))
    problems.append(gtv.GTVProblem(problems[0].graph, smooth, "l2", 0.05))
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    hinge, lasso, seldom = (PrimalDual(problem).checks for problem in problems)
    assert hinge.cost == lasso.cost < seldom.cost
    monkeypatch.undo()
    assert all(PrimalDual(problem).checks == seldom for problem in problems)


def test_a_share_looks_at_the_clock_on_its_way():
    """Of 500 x 5,000 it took three seconds after the limit."""
    p = problem_of()
    w, u = np.ones((N, D)), np.ones((N, D))
    with until(0.0), pytest.raises(Expired):
        short_gap(p.graph, p.losses, p.penalty, p.capacities, w, u)


def test_a_share_and_a_repair_have_one_moment_together(monkeypatch):
    """After the limit, where each had its own."""
    ends, inside = [], _run.until

    def noted(end):
        ends.append(end)
        return inside(end)

    monkeypatch.setattr(_incumbent, "FEW", 0)
    run = Run(problem_of(), Options(time_limit=1e-9).limits(), "test")
    monkeypatch.setattr(_run, "until", noted)
    run.consider(np.zeros((N, D)), np.zeros((N, D)))
    assert len(ends) == 2
    assert ends[0] == ends[1] <= now() + _run.GRACE_SECONDS


@pytest.mark.parametrize("kind", ["squared", "hinge"])
def test_nodes_in_pieces_have_the_same_gap(kind, monkeypatch):
    p = problem_of(kind)
    best = p.solve(rtol=1e-8)
    arguments = p.graph, p.losses, p.penalty, p.capacities, best.w, best.u
    gap, flow = short_gap(*arguments)
    monkeypatch.setattr(_parts, "PIECE", 2 * (M * D + 1))
    assert len(list(p.losses.parts[0][1]._parts.in_pieces())) == N // 2
    again, same = short_gap(*arguments)
    np.testing.assert_allclose(again.node, gap.node, rtol=1e-12)
    assert again.total == pytest.approx(gap.total, rel=1e-12)
    np.testing.assert_array_equal(same, flow)


def test_a_share_that_proves_little_more_is_not_waited_for(monkeypatch):
    """Lasso at 2,000 x 64: gaps fell by a tenth a check, where a repair proved fifty times more."""
    problem = problem_of()
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    incumbent = Run(problem, Options(rtol=1e-6).limits(), "test").incumbent
    gaps = iter([1.0, 0.8, 0.6])
    known = SimpleNamespace(total=0.0)

    def proves(w, u):
        known.total = next(gaps)
        incumbent._take(w, 2.0, None, known)

    monkeypatch.setattr(incumbent, "update_shortly", proves)
    asked = [incumbent.suffices_shortly(best.w, best.u, 1e-4) for _ in range(3)]
    assert asked == [True, False, True]


def test_nothing_is_sought_beside_shares(monkeypatch):
    """Best multipliers for a flow that came without took 18 s, lasso at 2,000 x 64, of no use."""
    problem, rng = problem_of(), np.random.default_rng(0)
    best = problem.solve(rtol=1e-8)
    monkeypatch.setattr(_incumbent, "LARGE", 1)
    monkeypatch.setattr(_batch, "best_multipliers", pytest.fail)
    monkeypatch.setattr(_batch, "smooth_multipliers", pytest.fail)
    incumbent = Run(problem, Options(rtol=1e-6).limits(), "test").incumbent
    known = []

    def offered(size, share):
        off = problem.losses.project_domain(best.w + size * rng.standard_normal((N, D)))
        incumbent.update_shortly(off, share * best.u)
        assert problem.value(incumbent.w) == incumbent.value
        assert incumbent.dual_value <= best.value + 1e-12
        known.append((incumbent.value, incumbent.dual_value))
        return off

    offered(1e-2, 0.5)
    offered(2e-2, 0.9)  # a worse point, a better flow
    assert known[1][0] == known[0][0]
    assert known[1][1] > known[0][1]
    near = offered(1e-3, 0.2)  # a better point, whose flow proves less
    np.testing.assert_array_equal(incumbent.w, near)
    assert known[2][0] < known[1][0]
    assert incumbent.gap < known[1][0] - known[1][1]
    assert incumbent.u.any()
    # A better point beside which the flow that is known proves less than it did is left.
    before, gap = incumbent.w, incumbent.gap
    monkeypatch.setattr(incumbent, "_share_of", lambda w, u: None)
    incumbent.update_point(best.w)
    assert incumbent.w is before
    assert incumbent.gap == gap
