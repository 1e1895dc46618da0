"""The projection on flow conservation and its linear solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from _plain_instances import PENALTIES, instance

from verify.certificates._projection import conjugate_gradients
from verify.certificates._repair import Repair
from verify.instance._instance import load


def test_conjugate_gradients_on_a_singular_consistent_system() -> None:
    rng = np.random.default_rng(3)
    root = rng.standard_normal((20, 12))
    matrix = sp.csr_array(root @ root.T)
    rhs = matrix @ rng.standard_normal(20) * 1e-280
    x = conjugate_gradients(matrix.__matmul__, rhs, np.ones(20), 1e-12)
    np.testing.assert_allclose(matrix @ x, rhs, atol=1e-10 * np.abs(rhs).max())


@pytest.mark.parametrize("phi", PENALTIES)
def test_projection_conserves_flow_and_l1_multipliers(phi: str) -> None:
    """At a node with only an l1 term, D^T u + q must vanish after the projection."""
    data = instance(6, "lasso", phi, "connected", 10, 2)
    term = data["terms"][0]
    bare = data["terms"][1]["node"][:2]
    kept = ~np.isin(term["node"], bare)
    for key in ("node", "X", "y"):
        term[key] = term[key][kept]
    inst = load(data)
    rng = np.random.default_rng(0)
    repair = Repair(inst, rng.standard_normal((10, 2)))
    u, q = rng.standard_normal((len(inst.edges), 2)), [np.zeros(len(term["node"]))]
    q.append(rng.standard_normal((5, 2)))
    inside, inside_q = repair.projection.project(u, q, 1e-13)
    residual = inst.divergence(inside) + inst.terms[1].pull(inside_q[1])
    assert np.abs(residual[bare]).max() < 1e-10
    again, again_q = repair.projection.project(inside, inside_q, 1e-13)
    np.testing.assert_allclose(again, inside, atol=1e-9)
    np.testing.assert_allclose(again_q[1], inside_q[1], atol=1e-9)
    assert not np.allclose(inside_q[1], q[1])
