"""Restarts of large problems: without averages, and by a part of the flow's origin."""

from dataclasses import replace

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import _pieces
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._settings import DEFAULTS


def problem_of(penalty="l2", spread=1.0):
    rng = np.random.default_rng(3)
    places, X = rng.random((60, 2)), rng.standard_normal((60, 3, 4)) * spread ** np.arange(4)
    losses = gtv.SquaredLoss.stack(X, rng.standard_normal((60, 3)))
    return gtv.GTVProblem(gtv.generators.nearest_neighbours(places, 4), losses, penalty, 0.2)


@pytest.mark.parametrize("spread", [1.0, 20.0])
def test_it_converges_without_averages(spread):
    problem = problem_of(spread=spread)
    exact = problem.solve(rtol=1e-9).value
    method = PrimalDual(
        problem, settings=replace(DEFAULTS, averaged_size=0, origin_size=100, origin_kept=100)
    )
    method.run(4000)
    assert method.state.sum is None
    assert len(method.state._origin[0]) < problem.graph.n_nodes / 2
    assert len(method.state._origin[1]) < problem.graph.n_edges / 4
    assert problem.value(method.w) == pytest.approx(exact, rel=1e-6)


def test_an_average_that_is_no_better_leaves_the_point():
    method = PrimalDual(problem_of())
    method.run(35)
    point, flow = method.w.copy(), method.u.copy()
    assert method.state.sum is not None
    method._moved = 0.0
    method._try_average()
    np.testing.assert_array_equal(method.w, point)
    np.testing.assert_array_equal(method.u, flow)
    divergence = method.state._nodes[0, :, 4:]
    np.testing.assert_allclose(divergence, method._problem.graph.divergence @ flow, atol=1e-12)


def test_a_better_average_is_taken():
    method = PrimalDual(problem_of())
    method.run(35)
    assert method.state.sum is not None
    average = method.state.sum[1] / method.state._samples
    method._moved = np.inf
    method._try_average()
    step = np.abs(method.u - average).max()
    assert 0.0 < step < 0.5 * np.abs(average).max()
    assert method.state.sum[1] is not method.state.y


def test_origins_of_epochs_are_written_where_the_last_ones_were():
    state = PrimalDual(problem_of()).state
    kept = state._origin
    state.y[:] = 2.0
    state.begin_epoch()
    assert state._origin[0] is kept[0]
    assert state._origin[1] is kept[1]
    np.testing.assert_array_equal(kept[1], state.y)


def test_how_far_they_have_moved_is_told_in_pieces(monkeypatch):
    state = PrimalDual(problem_of(), settings=replace(DEFAULTS, origin_size=0)).state
    state.begin_epoch()
    rng, degrees = np.random.default_rng(0), state._degrees
    x, y = rng.standard_normal(state.x.shape), rng.standard_normal(state.y.shape)
    state.x += x
    state.y += y
    monkeypatch.setattr(_pieces, "PIECE", 16)
    found = state.travelled()
    assert np.sum(found.primal) == pytest.approx(np.sum(degrees[:, None] * x**2))
    assert np.sum(found.dual) == pytest.approx(2.0 * np.sum(y**2))
