"""What moves points with several classes for nothing."""

import numpy as np

from gtvcvx import EmpiricalGraph
from gtvcvx.solvers.interior_point.blockwise._node_terms import NodeTerms
from gtvcvx.solvers.interior_point.blockwise._resting import Resting

N, P, K = 5, 2, 3
GRAPH = EmpiricalGraph(N, [(0, 1), (1, 2), (3, 4)])
ROWS = {
    "kind": "multinomial",
    "node": np.array([0, 1, 3, 4]),
    "X": np.random.default_rng(0).standard_normal((4, P)),
    "y": np.array([0.0, 1.0, 2.0, 0.0]),
}


def resting(*terms):
    return Resting(NodeTerms(terms, N, P * K), GRAPH)


def test_parameters_of_all_classes_of_a_component_move_by_one_number():
    w = np.random.default_rng(1).standard_normal((N, P * K))
    found = resting(ROWS)(w)
    moved = (w - found).reshape(N, P, K)
    np.testing.assert_allclose(moved, moved[[0, 0, 0, 3, 3], :, :1] + np.zeros(K), atol=1e-15)
    sums = found.reshape(N, P, K).sum(axis=2)
    np.testing.assert_allclose([sums[:3].sum(axis=0), sums[3:].sum(axis=0)], 0.0, atol=1e-14)
    # It is the same from wherever else that is as good.
    far = w + np.repeat(np.array([[1e3, -2e3], [5.0, 0.0]])[[0, 0, 0, 1, 1]], K, axis=1)
    np.testing.assert_allclose(resting(ROWS)(far), found, atol=1e-11)


def test_what_a_quadratic_holds_stays():
    w = np.random.default_rng(1).standard_normal((N, P * K))
    one = np.repeat([[0.0, 0.5]], K, axis=1)  # of the second feature, at one node
    found = resting(ROWS, {"kind": "ridge", "node": np.array([4]), "mu": one})(w)
    moved = (w - found).reshape(N, P, K)
    assert (moved[:, 0] != 0.0).all()
    assert not moved[:, 1].any()


def test_no_other_rows_are_taken_for_scores():
    w = np.random.default_rng(1).standard_normal((N, P * K))
    kappa = {"kind": "l1", "node": np.arange(N), "kappa": np.ones(N)}
    assert resting(ROWS, kappa)(w) is w
    assert resting(kappa)(w) is w
