"""Proximal maps of quadratic losses as the iteration hands them to compiled passes."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import AffineProx
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


@pytest.mark.parametrize("d", [1, 3])
def test_maps_of_nodes_may_lie_column_by_column(d):
    """Compiled passes take rows of numbers as they lie in memory."""
    rng = np.random.default_rng(d)
    graph = gtv.EmpiricalGraph(30, [(i, i + k) for k in (1, 2, 5) for i in range(30 - k)])
    losses = gtv.SquaredLoss.stack(rng.standard_normal((30, 2, d)), rng.standard_normal((30, 2)))
    found = []
    for order in "CF":
        method = PrimalDual(gtv.GTVProblem(graph, losses, "l2", 0.1))
        matrix, offset = method.state._prox
        prox = AffineProx(np.array(matrix, order=order), np.array(offset, order=order))
        method.state._prox = prox
        method.state.advance(7)
        found.append(method.w.copy())
    np.testing.assert_array_equal(*found)
