"""The projection on flow conservation."""

import numpy as np
import pytest
from _instances import cases
from _twins import dense_projectors

from gtvcvx.duality._conservation import FlowConservation, NullDirections


@pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
def test_null_directions_project_node_by_node(case):
    problem = case.problem()
    x = case.rng.standard_normal((problem.graph.n_nodes, problem.dim))
    expected = np.einsum("nij,nj->ni", dense_projectors(problem), x)
    null = NullDirections(problem.losses, problem.graph.n_nodes)
    np.testing.assert_allclose(null.apply(x), expected, atol=1e-14)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_projected_flows_are_conserved_to_rounding(case):
    problem = case.problem()
    conservation = FlowConservation(problem.graph, problem.losses, problem.penalty)
    u = case.rng.standard_normal((problem.graph.n_edges, problem.dim))
    for scale in (1e-200, 1.0, 1e100):
        projected = conservation.project(scale * u, rtol=1e-16)
        assert np.linalg.norm(conservation.residual(projected / scale)) <= 1e-13
        again = conservation.project(projected, rtol=1e-16)
        np.testing.assert_allclose(again / scale, projected / scale, atol=1e-13)
