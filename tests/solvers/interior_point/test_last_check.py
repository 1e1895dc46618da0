"""Whether an iteration that gives way is checked once more."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.interior_point._cost import Alternative
from gtvcvx.solvers.interior_point._stalling import Stalling
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


@pytest.mark.parametrize(("expected", "worth"), [(5e-5, True), (2e-4, False)])
def test_what_is_far_from_done_is_not_checked(monkeypatch, expected, worth):
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    losses = gtv.PointLoss.stack(np.array([[0.0, 1.0], [2.0, 3.0], [2.0, 5.0]]))
    problem = gtv.GTVProblem(graph, losses, "l2", 0.5)
    monkeypatch.setattr(PrimalDual, "expected_gap", lambda _: expected)
    method = Stalling(PrimalDual(problem), Alternative(problem, 1e-6, False))
    method.begin(Limits(1e-6, 100), np.inf)
    method.run(10)
    assert method.proposal() is not None
    method.finished = True
    assert (method.proposal() is not None) is worth
    assert method.proposal(final=True) is not None
