"""Points of the method that are right, and whose bound a correction has to keep."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned
from gtvcvx.solvers.interior_point.blockwise._undetermined import Undetermined


def driven(problem, rtol=1e-6):
    run, method = Run(problem, Limits(rtol, 60), "TEST"), Blockwise(problem, planned(problem))
    run.drive(method)
    return run, method


def in_large_units(size, noise):
    """Sparse models of columns of some size along a chain."""
    rng, n, d = np.random.default_rng(0), 40, 6
    X = size * rng.standard_normal((n, 1, d))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal((n, 1))
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    return gtv.GTVProblem(graph, gtv.LassoLoss.stack(X, y, kappa=0.1), "l1", 1.0)


def test_l1_terms_take_nothing_of_what_gradients_in_large_units_miss(monkeypatch):
    """Gradients of squares of size 1e11 are known to 1e-5: it was lost beside l1 terms of .1."""
    monkeypatch.setattr(Blockwise, "_lost_to_rounding", lambda _: False)
    run, method = driven(in_large_units(1e5, 10.0))
    assert method._newton._terms.P.any()  # squares are folded into quadratic functions
    assert run.satisfied
    assert run.n_iter < 25


@pytest.mark.parametrize(("size", "apart"), [(1.0, False), (1e5, True)])
def test_squares_are_rows_where_their_gradients_are_rounding(size, apart):
    run, method = driven(in_large_units(size, 1e-4 * size))
    assert run.satisfied
    assert run.n_iter < 25
    assert method._newton._terms.P.any() != apart


def test_points_do_not_go_astray_where_gradients_are_rounding():
    """Squares beside rows with kinks, both in large units, and small capacities."""
    rng, n, m, d = np.random.default_rng(2), 30, 3, 6
    X = 1e6 * rng.standard_normal((n, m, d))
    y = X @ np.ones(d) + 1e6 * rng.standard_normal((n, m))
    each = [(gtv.SquaredLoss, gtv.AbsoluteLoss)[i % 2](X[i], (1e-6, 1.0)[i % 2] * y[i])
            for i in range(n)]  # fmt: skip
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    run, _ = driven(gtv.GTVProblem(graph, each, "l1", 1e-4))
    assert run.satisfied


def test_points_stay_small_along_what_nothing_determines():
    """A lonely node with fewer rows than coordinates; some other rows ask for twice the digits."""
    rng, n, m, d = np.random.default_rng(0), 13, 3, 6
    X = 1e5 * rng.standard_normal((n, m, d))
    y = X.sum(axis=2) + 1e5 * rng.standard_normal((n, m))
    labelled = np.arange(n) % 3 > 0
    labelled[-1] = True
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % (n - 1)) for i in range(n - 1)])
    losses = gtv.AbsoluteLoss.stack(X, y, labelled=labelled)
    run, method = driven(gtv.GTVProblem(graph, losses, "l2", 1e-3))
    assert method._newton._system.twofold
    assert run.satisfied
    units = np.abs(X[labelled]).max(axis=(0, 1))
    w, rows = method._newton.w[-1] * units, X[-1] / units
    assert w == pytest.approx(np.linalg.pinv(rows) @ rows @ w, rel=1e-6)


def test_which_directions_nothing_determines():
    rng = np.random.default_rng(1)
    # Components 0, 1, 2: with all columns, with two alike, without rows. 6: not rows alone.
    graph = gtv.EmpiricalGraph(7, [(0, 1), (2, 3), (4, 5)])
    X = rng.standard_normal((8, 3)) * [1.0, 1e6, 1.0]
    node = np.array([0, 1, 0, 1, 2, 2, 3, 3])
    X[4:, 2] = X[4:, 0]
    held = np.arange(7) == 6
    x = rng.standard_normal((7, 3))
    found = Undetermined(graph, X, node, held).without(x)
    assert np.array_equal(found[[0, 1, 6]], x[[0, 1, 6]])
    assert found[4] + found[5] == pytest.approx(np.zeros(3))
    change = x[2] - found[2]
    assert change == pytest.approx(x[3] - found[3])
    assert change[1] == pytest.approx(0.0, abs=1e-12)
    assert change[0] == pytest.approx(-change[2])
    assert Undetermined(graph, X, node, held).without(found) == pytest.approx(found)
