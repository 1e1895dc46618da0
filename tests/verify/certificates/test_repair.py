"""Float repair of flows, and the gaps per edge."""

import numpy as np
import pytest
from _plain_instances import PENALTIES, instance, solve

from verify.certificates._repair import Repair, gaps
from verify.instance._instance import load


@pytest.mark.parametrize("phi", [*PENALTIES, "pnorm"])
def test_float_edge_gaps_are_the_brackets_of_fenchel_young(phi: str) -> None:
    """Per edge c phi(D) + (c phi)*(u) - <u, D>."""
    data = instance(4, "point", "l2" if phi == "pnorm" else phi)
    if phi == "pnorm":
        data["penalty"] = {"kind": "pnorm", "p": 3.0}
    inst = load(data)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((inst.n, 2))
    u = inst.penalty.clip(rng.standard_normal((len(inst.edges), 2)), 0.9 * inst.cap)
    _, edge = gaps(inst, w, u, [np.zeros(t.shape) for t in inst.terms])
    d = inst.differences(w)
    conjugate = np.zeros(len(u))
    if phi in ("squared", "quadratic"):
        q = data["penalty"].get("Q", np.eye(2))
        conjugate = np.einsum("ej,jk,ek->e", u, np.linalg.inv(q), u) / (2 * inst.cap)
    wanted = inst.cap * inst.penalty.value(d) + conjugate - (u * d).sum(axis=1)
    np.testing.assert_allclose(edge, wanted, atol=1e-12)
    assert (edge >= 0).all()


@pytest.mark.parametrize("phi", ["l1", "l2", "linf", "squared"])
def test_repair_makes_a_rough_flow_nearly_as_good_as_the_solution(phi: str) -> None:
    data = instance(5, "unlabelled", phi, n=30)
    inst = load(data)
    w, u = solve(data)
    rough = u + 1e-3 * np.random.default_rng(0).standard_normal(u.shape)
    repair = Repair(inst, w)
    assert repair.corrected(repair.given(u)).gap < 1e-8
    found = repair.corrected(repair.given(rough))
    assert found.gap < 0.05
    assert found.missing < 1e-10
    unlabelled = np.setdiff1d(np.arange(inst.n), data["terms"][0]["node"])
    assert np.abs(inst.divergence(found.u)[unlabelled]).max() < 1e-12
