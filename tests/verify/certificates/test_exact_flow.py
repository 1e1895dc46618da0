"""Exact flows and multipliers, recomputed in Fractions."""

from fractions import Fraction

import pytest
from _plain_instances import KINKED, LOSSES, PENALTIES, instance, solve

from verify.certificates._exact_flow import exact_flow
from verify.certificates._repair import Repair
from verify.instance._constraints import Constraints
from verify.instance._instance import load


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", [*LOSSES, *KINKED, "everything"])
def test_exact_flow_is_conserved_and_within_capacity(loss: str, phi: str) -> None:
    """Recompute both in Fractions, from the definition."""
    data = instance(4, loss, phi, "connected", 8, 2)
    inst = load(data)
    w, u = solve(data)
    w, _ = Constraints(inst).moved(w)
    repair = Repair(inst, w)
    found = repair.run(u, 0.0)
    flow = exact_flow(inst, found.u, found.r, w, repair.active)
    residual = [[Fraction(0)] * 2 for _ in range(inst.n)]
    for (i, j), row, cap in zip(data["edges"], flow.u, data["weights"], strict=True):
        x = [Fraction(v) / 2**flow.k for v in row]
        limit = Fraction(data["lam"]) * Fraction(cap)
        assert phi != "l1" or max(map(abs, x)) <= limit
        assert phi != "linf" or sum(map(abs, x)) <= limit
        assert phi != "l2" or sum(v * v for v in x) <= limit * limit
        for c in range(2):
            residual[i][c] += x[c]
            residual[j][c] -= x[c]
    for term, r, k in zip(data["terms"], flow.r, flow.k_r, strict=True):
        for p, i in enumerate(term["node"]):
            for c in range(2):
                if "X" in term:
                    residual[i][c] += Fraction(r[p]) / 2**k * Fraction(term["X"][p, c])
                else:
                    residual[i][c] += Fraction(r[p][c]) / 2**k
    assert residual == [[0, 0]] * inst.n
