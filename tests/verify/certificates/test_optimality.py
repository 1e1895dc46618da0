"""Optimality conditions, and the alignment condition that [GTV] (28) omits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _plain_instances import LOSSES, PENALTIES, instance, solve

import verify


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_conditions_hold_at_solutions_and_only_there(loss: str, phi: str) -> None:
    data = instance(21, loss, phi, "connected", 8, 2)
    w, u = solve(data)
    assert verify.optimality(data, w, u).holds(1e-5)
    rng = np.random.default_rng(0)
    assert not verify.optimality(data, w + 0.1 * rng.standard_normal(w.shape), u).holds(1e-5)
    assert not verify.optimality(data, w, u + 0.1 * rng.standard_normal(u.shape)).holds(1e-5)


def _printed_condition(data: dict[str, Any], w: np.ndarray, u: np.ndarray) -> bool:
    """Return whether [GTV] (28) accepts (w, u), to the letter, for point losses.

    Conservation with the demands of the losses; capacity; w equal across an edge whose flow is
    below its capacity.
    """
    head, tail = data["edges"].T
    divergence = np.zeros_like(w)
    np.add.at(divergence, head, u)
    np.subtract.at(divergence, tail, u)
    conserved = np.allclose(-divergence, 2 * (w - data["terms"][0]["a"]), atol=1e-12)
    size, cap = np.linalg.norm(u, axis=1), data["lam"] * data["weights"]
    below = size < cap * (1 - 1e-12)
    equal = np.allclose(w[head[below]], w[tail[below]], atol=1e-12)
    return bool(conserved and (size <= cap * (1 + 1e-12)).all() and equal)


def _misaligned(d: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return a point that (28) accepts: every edge saturated, no flow along its difference."""
    data = instance(22, "point", "l2", "path", 5, d)
    rng = np.random.default_rng(1)
    w = rng.standard_normal((5, d))
    differences = w[data["edges"][:, 0]] - w[data["edges"][:, 1]]
    direction = -differences if d == 1 else differences[:, ::-1] * np.array([1.0, -1.0])
    cap = data["lam"] * data["weights"]
    u = cap[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    s = np.zeros_like(w)
    np.subtract.at(s, data["edges"][:, 0], u)
    np.add.at(s, data["edges"][:, 1], u)
    data["terms"][0]["a"] = w - s / 2  # makes s_i the gradient of the loss at w_i
    return data, w, u


@pytest.mark.parametrize("d", [1, 2])
def test_printed_condition_accepts_a_wrong_point_that_ours_refutes(d: int) -> None:
    data, w, u = _misaligned(d)
    assert _printed_condition(data, w, u)
    report = verify.optimality(data, w, u)
    assert report.stationarity.max() < 1e-12
    assert report.capacity.max() < 1e-12
    assert (report.alignment > 0.01).all()
    assert not report.holds(1e-3)
    certificate = verify.certify(data, w, u, rtol=1e-4)
    assert certificate.status == "REFUTED"
    np.testing.assert_allclose(certificate.node_gaps.shape, (5,))


def test_each_residual_sees_its_own_violation() -> None:
    data = instance(23, "point", "l2", "path", 4, 2)
    w, u = solve(data)
    shifted = data["terms"][0]["a"].copy()
    shifted[2] += 0.5
    moved = {**data, "terms": [{**data["terms"][0], "a": shifted}]}
    report = verify.optimality(moved, w, u)
    assert report.stationarity[2] == pytest.approx(1.0, abs=1e-5)
    assert report.stationarity[[0, 1, 3]].max() < 1e-5
    narrow = {**data, "weights": data["weights"] * np.array([1.0, 0.5, 1.0])}
    report = verify.optimality(narrow, w, u)
    used = np.linalg.norm(u[1]) - 0.5 * data["lam"] * data["weights"][1]
    assert report.capacity[1] == pytest.approx(max(used, 0), abs=1e-12)
    assert report.capacity[[0, 2]].max() < 1e-9


def test_capacity_alone_can_fail() -> None:
    """A circulation on fused nodes is conserved and aligned, whatever its size."""
    data = instance(22, "point", "l2", "complete", 3, 2)
    data["terms"][0]["a"] = np.ones((3, 2))
    w = np.ones((3, 2))
    circulation = np.array([[1.0], [-1.0], [1.0]]) * np.array([[1.0, 0.0]])
    small, large = 0.1 * data["lam"] * circulation, 10 * data["lam"] * circulation
    assert verify.optimality(data, w, small).holds(1e-9)
    report = verify.optimality(data, w, large)
    assert max(report.stationarity.max(), report.alignment.max()) < 1e-12
    assert not report.holds(1e-3)


def test_l1_terms_have_an_alignment_of_their_own() -> None:
    """At w_i != 0 the multiplier must be kappa sign(w_i), not merely bounded by kappa."""
    data = {
        "schema": "gtv-problem/1", "n_nodes": 1, "dim": 1, "edges": np.zeros((0, 2), dtype=int),
        "weights": np.zeros(0), "lam": 1.0, "penalty": {"kind": "l1"},
        "terms": [{"kind": "point", "node": [0], "a": [[1.0]]},
                  {"kind": "l1", "node": [0], "kappa": [0.5]}],
    }  # fmt: skip
    u = np.zeros((0, 1))
    assert verify.optimality(data, [[0.75]], u).holds(1e-9)  # soft threshold of 1 by kappa / 2
    report = verify.optimality(data, [[0.9]], u)
    assert report.stationarity[0] == pytest.approx(0)
    assert report.node_alignment[0] == pytest.approx(0.9 * (0.5 - 0.2))
    assert not report.holds(1e-3)


def _one_node(d: int, *terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": "gtv-problem/1", "n_nodes": 1, "dim": d, "edges": np.zeros((0, 2), dtype=int),
        "weights": np.zeros(0), "lam": 1.0, "penalty": {"kind": "l1"}, "terms": list(terms),
    }  # fmt: skip


def test_kinks_have_the_alignment_that_the_balance_leaves() -> None:
    """(|w| + |w - 1|)/2: flat from 0 to 1; elsewhere conserving multipliers are no subgradients."""
    rows = {"kind": "absolute", "node": [0, 0], "X": [[1.0], [1.0]], "y": [0.0, 1.0]}
    data, u = _one_node(1, rows), np.zeros((0, 1))
    for w in (0.0, 0.3, 1.0):
        assert verify.optimality(data, [[w]], u).holds(1e-9)
    report = verify.optimality(data, [[3.0]], u)
    assert report.stationarity[0] == pytest.approx(0, abs=1e-12)
    assert report.node_alignment[0] == pytest.approx(2.0)  # 5/2 there, 1/2 at best
    assert not report.holds(1e-3)


def test_multipliers_stay_in_their_domains() -> None:
    """Of a slope of 4 the l1 term holds 1 and the hinge 1/2 (at a w where it should hold none)."""
    hinge = {"kind": "hinge", "node": [0], "X": [[0.5]], "y": [1.0]}
    lasso = {"kind": "l1", "node": [0], "kappa": [1.0]}
    point = {"kind": "point", "node": [0], "a": [[1.0]]}
    report = verify.optimality(_one_node(1, point, hinge, lasso), [[3.0]], np.zeros((0, 1)))
    assert report.stationarity[0] == pytest.approx(2.5)
    assert not report.holds(0.5)


def test_bounds_and_simplices() -> None:
    """||w - (2, 0)||^2 on w_1 <= 1 is least at (1, 0), on the simplex of total 1 as well."""
    point = {"kind": "point", "node": [0], "a": [[2.0, 0.0]]}
    box = {"kind": "box", "node": [0], "lower": [[-np.inf, -1.0]], "upper": [[1.0, np.inf]]}
    simplex = {"kind": "simplex", "node": [0], "total": [1.0]}
    u = np.zeros((0, 2))
    for constraint, inside in ((box, [0.5, 0.0]), (simplex, [0.5, 0.5])):
        data = _one_node(2, point, constraint)
        report = verify.optimality(data, [[1.0, 0.0]], u)
        assert report.holds(1e-9)
        assert report.value == pytest.approx(1.0)
        assert not verify.optimality(data, [inside], u).holds(0.1)
        report = verify.optimality(data, [[1.25, 0.0]], u)
        assert report.feasibility[0] == pytest.approx(0.25)
        assert report.value == pytest.approx(1.0)
        assert not report.holds(0.1)


def test_opaque_losses_are_refused_by_name() -> None:
    data = instance(24, "point", "l2")
    data["terms"].append({"kind": "opaque", "node": np.array([3]), "name": "mine"})
    with pytest.raises(ValueError, match="no subdifferential for the loss 'mine'"):
        verify.optimality(data, np.zeros((12, 2)), np.zeros((len(data["edges"]), 2)))
