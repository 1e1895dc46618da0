"""Factors in twice the digits: what their steps keep, and when no more of them help."""

import dataclasses

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.interior_point.blockwise import _newton
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned
from gtvcvx.solvers.interior_point.blockwise._newton import DEFAULTS, Newton


def sharpened(problem, n_iter):
    """Return the method after some iterations, whose factor has twice the digits from then on."""
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 100), np.inf)
    method.run(n_iter)
    method._newton._system.sharpen()
    return method


def chain(losses, n=6):
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    return gtv.GTVProblem(graph, losses, "l2", 1e-3)


def in_large_units(n=6, m=2, d=4, size=1e5):
    rng = np.random.default_rng(0)
    X = size * rng.standard_normal((n, m, d))
    return X, X.mean(axis=2) + size * rng.standard_normal((n, m))


def test_points_keep_their_sums():
    """Rows do not see means that are given, but that does not make them undetermined."""
    X, y = in_large_units()
    each = [gtv.SquaredLoss(X[i], y[i]) + gtv.Simplex(1.0) for i in range(len(X))]
    method = sharpened(chain(each), 2)
    newton = method._newton
    assert newton._system.twofold
    right = np.random.default_rng(1).standard_normal(newton.w.shape)
    assert newton._system.move(right).w.sum(axis=1) == pytest.approx(0.0, abs=1e-12)
    for _ in range(6):
        method.run(1)
        assert newton.w.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_refinement_ends_where_nothing_is_left_but_rounding(monkeypatch):
    """What slopes and flows are rounded by does not go away by 40 solves a step."""
    X, y = in_large_units()
    method = sharpened(chain(gtv.AbsoluteLoss.stack(X, y)), 3)
    method._newton._doubtful = True
    monkeypatch.setattr(Newton, "_enough", 0.0)  # as if all of it were too much
    solves, add = [], _newton.ConjugateResiduals.add
    monkeypatch.setattr(_newton.ConjugateResiduals, "add", lambda *a: solves.append(1) or add(*a))
    method.run(1)
    assert 0 < len(solves) <= 15


@pytest.mark.parametrize(("share", "solves"), [(0.99, 1 + DEFAULTS.idle), (0.5, 12)])
def test_steps_are_refined_while_solves_leave_clearly_less(monkeypatch, share, solves):
    """Thirty that left a hundredth less each took most of a run (F8 20281128/96)."""
    X, y = in_large_units()
    newton = sharpened(chain(gtv.AbsoluteLoss.stack(X, y)), 3)._newton
    left, moved, sizes = np.ones_like(newton.w), [], iter(share ** np.arange(100.0))
    start, move = newton._system.move(left), newton._system.move
    monkeypatch.setattr(_newton, "_weighed", lambda left, scale: next(sizes))
    monkeypatch.setattr(newton._system, "move", lambda right: moved.append(1) or move(right))
    monkeypatch.setattr(newton, "_missed", lambda left: True)
    monkeypatch.setattr(newton, "_settings", dataclasses.replace(DEFAULTS, refinements=12))
    monkeypatch.setattr(_newton.ConjugateResiduals, "add", lambda *_: True)
    monkeypatch.setattr(_newton.ConjugateResiduals, "moved", lambda _, left, *parts: parts)
    newton._refine(start, left)
    assert len(moved) == solves
