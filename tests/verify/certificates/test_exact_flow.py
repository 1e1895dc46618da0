"""Exact flows and multipliers, recomputed in Fractions."""

from fractions import Fraction

import numpy as np
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
    found = repair.corrected(repair.given(u))
    flow = exact_flow(inst, found.u, found.r, w, repair.active, found.absorb)
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


def test_a_load_beyond_the_room_of_a_term_goes_to_rows_that_have_it() -> None:
    """Node 1 has an l1 term of .01 alone, and a flow that it cannot take all of."""
    rows = {"kind": "squared", "node": np.array([0, 0, 2, 2]), "X": np.vstack([np.eye(2)] * 2)}
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 3,
        "dim": 2,
        "edges": np.array([[0, 1], [1, 2]]),
        "weights": np.ones(2),
        "lam": 1.0,
        "penalty": {"kind": "l1"},
        "terms": [
            rows | {"y": np.array([1.0, 2.0, 3.0, 4.0])},
            {"kind": "l1", "node": np.arange(3), "kappa": np.full((3, 2), 0.01)},
        ],
    }
    inst = load(data)
    w, u = solve(data)
    repair = Repair(inst, w)
    found = repair.corrected(repair.given(u))
    moved = found.u + np.array([[0.2, 0.0], [0.0, 0.0]])
    flow = exact_flow(inst, moved, found.r, w, repair.active)
    # Nothing was scaled down: the load went along an edge, and the other edge is as it was.
    assert np.abs(flow.floats()[0] - found.u).max() < 0.25
    assert np.abs(flow.floats()[0]).max() > 0.9 * np.abs(found.u).max()


def test_a_root_whose_bounds_take_nothing_leaves_it_to_rows_elsewhere() -> None:
    """Each node with a row spans one direction only; the last one, all of them, with bounds."""
    X = np.repeat(np.eye(2), 2, axis=0)
    data = {
        "schema": "gtv-problem/1", "n_nodes": 5, "dim": 2, "lam": 1.0,
        "edges": np.column_stack([np.arange(4), np.arange(1, 5)]),
        "weights": np.full(4, 2.0), "penalty": {"kind": "l2"},
        "terms": [{"kind": "squared", "node": np.arange(4), "X": X, "y": np.ones(4)},
                  {"kind": "box", "node": np.array([4]), "lower": np.zeros((1, 2)),
                   "upper": np.full((1, 2), np.inf)}],
    }  # fmt: skip
    inst = load(data)
    r = [np.array([-1.0, 1.0, -1.0, 1.0]), np.full((1, 2), -1e-13)]
    u = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1e-11, 1e-11]])  # the last: too much
    flow = exact_flow(inst, u, r, np.ones((5, 2)), np.ones(4, dtype=bool))
    np.testing.assert_allclose(flow.floats()[1][0], r[0], rtol=1e-9)
