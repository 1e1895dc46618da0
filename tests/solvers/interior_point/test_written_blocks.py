"""The block of many written losses: the program that one block for each of them makes."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Proposal
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._program import Program
from gtvcvx.solvers.interior_point._written import add_form, add_written_losses

RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((5, 3, 2)), RNG.standard_normal((5, 3))
# Cones of several kinds, squares, a constant, and a loss without any row.
LOSSES = [
    gtv.CvxpyLoss(lambda w: cp.norm(X[0] @ w - Y[0]), dim=2),
    gtv.CvxpyLoss(lambda w: cp.sum_squares(X[1] @ w - Y[1]) + 3.0, dim=2),
    gtv.CvxpyLoss(lambda w: 0.0 * w[0], dim=2),
    gtv.CvxpyLoss(lambda w: (cp.sum(cp.logistic(X[3] @ w)), [w >= -1.0, cp.sum(w) == 1.0]), dim=2),
    gtv.CvxpyLoss(lambda w: cp.norm1(X[4] @ w - Y[4]), dim=2),
]


def problem(losses):
    graph = gtv.EmpiricalGraph(5, [[0, 1], [1, 2], [2, 3], [3, 4]], np.ones(4))
    return GTVProblem(graph, losses, "l2", 0.5)


def test_one_block_is_the_same_program_as_many():
    losses, at = problem(LOSSES).losses, np.arange(10).reshape(5, 2)
    together, apart = Program(10), Program(10)
    add_written_losses(together, losses, at)
    for nodes, batch in losses.parts:
        for node, function in zip(nodes, batch.written() or (), strict=False):
            add_form(apart, function.form, at[node][None], np.ones(1))
    found, expected = together.cone_program(), apart.cone_program()
    np.testing.assert_array_equal(found.P.toarray(), expected.P.toarray())
    np.testing.assert_array_equal(found.A.toarray(), expected.A.toarray())
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.b, expected.b)
    assert found.cones == expected.cones
    assert together.constants == apart.constants
    assert len(together._P) == 1


def test_the_value_of_a_proved_pair_is_not_taken_again(monkeypatch):
    method = InteriorPoint(problem([LOSSES[i] for i in (0, 1, 4, 0, 1)]), 1e-6)
    answer = method._first.solve()
    units = method._units
    pair = method._pair(
        units.point(np.array(answer.x)), units.multipliers(np.array(answer.z)), 1e-8
    )
    assert pair.proved is not None
    monkeypatch.setattr(GTVProblem, "value", lambda self, w: pytest.fail("taken again"))
    assert method._provable(pair)


def test_where_a_round_proves_nothing_another_may_but_for_cones_that_are_not_decided():
    """A check of the flow would take cone programs for each node or edge."""
    spectral = gtv.CvxpyLoss(lambda w: cp.lambda_max(cp.diag(w)) + cp.sum_squares(w), dim=2)
    for losses, provable in ((LOSSES, True), ([*LOSSES[:4], spectral], False)):
        method = InteriorPoint(problem(losses), 1e-6)
        pair = Proposal(np.zeros((5, 2)), np.zeros((4, 2)), 1e-8)
        assert method._provable(pair) == provable
