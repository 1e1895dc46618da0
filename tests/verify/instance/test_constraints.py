"""Points moved onto boxes and simplices, exactly, and what `certify` says about the others."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from _plain_instances import instance, solve

import verify
from verify.instance._constraints import Constraints
from verify.instance._instance import load

INF = np.inf


def _constraints(seed: int, n: int, d: int) -> tuple[dict[str, Any], Constraints]:
    """Return data with a box, a simplex, both, or nothing at the nodes in turn."""
    rng = np.random.default_rng(seed)
    every = np.arange(n)
    boxed, summed = every[(every % 4 == 1) | (every % 4 == 3)], every[every % 4 >= 2]
    lower = rng.uniform(-1, 0.1, (len(boxed), d))
    upper = 1.0 / d + rng.uniform(0.1, 0.5, lower.shape)
    lower[rng.random(lower.shape) < 0.3] = -INF
    upper[(rng.random(lower.shape) < 0.3)] = INF
    data = {
        **instance(seed, "point", "l2", "path", n, d),
        "terms": [
            {"kind": "point", "node": every, "a": rng.standard_normal((n, d))},
            {"kind": "box", "node": boxed, "lower": lower, "upper": upper},
            {"kind": "simplex", "node": summed, "total": rng.uniform(0.3, 1.0, len(summed))},
        ],
    }
    return data, Constraints(load(data))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_moved_points_are_the_projection_and_exactly_feasible(d: int) -> None:
    n = 16
    data, constraints = _constraints(d, n, d)
    w = 2 * np.random.default_rng(0).standard_normal((n, d))
    moved, exact = constraints.moved(w)
    assert exact is not None
    x = cp.Variable((n, d))
    lower = np.maximum(constraints.lower, -1e3)
    upper = np.minimum(constraints.upper, 1e3)
    sums = cp.sum(x[constraints.summed], axis=1) == constraints.totals
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - w)), [x >= lower, x <= upper, sums])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    np.testing.assert_allclose(moved, x.value, atol=1e-5)
    np.testing.assert_allclose(moved, exact.astype(float), atol=1e-15)
    for i, row in enumerate(exact):
        for j, v in enumerate(row):
            assert constraints.lower[i, j] <= v <= constraints.upper[i, j]
        if i in constraints.summed:
            assert sum(row) == Fraction(
                data["terms"][2]["total"][list(constraints.summed).index(i)]
            )
    again, _ = constraints.moved(moved)
    np.testing.assert_allclose(again, moved, atol=1e-15)


def test_violations_are_measured_per_node() -> None:
    _, constraints = _constraints(1, 8, 2)
    w, _ = constraints.moved(np.zeros((8, 2)))
    assert constraints.violation(w).max() < 1e-15
    w[0] += 100.0  # no constraint there
    w[2] += 0.25
    violation = constraints.violation(w)
    assert violation[2] == pytest.approx(0.5)
    assert np.delete(violation, 2).max() < 1e-15
    assert constraints.near(w, 1.0)
    assert not constraints.near(w, 0.1)


@pytest.mark.parametrize("kind", ["box", "simplex", "box_lasso"])
def test_nearly_feasible_points_are_moved_and_the_certificate_is_about_the_moved_one(
    kind: str, tmp_path: Any
) -> None:
    data = instance(41, kind, "l2", "connected", 8, 3)
    w, u = solve(data)
    w, _ = Constraints(load(data)).moved(w)
    off = w + 1e-8 * np.random.default_rng(0).standard_normal(w.shape)
    certificate = verify.certify(data, off, u, rtol=1e-6)
    assert certificate.status == "CERTIFIED"
    assert 0 < certificate.moved < 1e-7
    assert np.abs(certificate.w - off).max() == pytest.approx(certificate.moved, rel=1e-6)
    assert "w was moved by at most" in certificate.summary()
    certificate.save(tmp_path / "c.json")
    assert verify.check(tmp_path / "c.json").status == "CERTIFIED"
    inside = verify.certify(data, certificate.w, u, rtol=1e-6)
    assert inside.moved < 1e-15
    assert inside.upper == pytest.approx(certificate.upper, abs=1e-14)


@pytest.mark.parametrize("kind", ["box", "simplex"])
@pytest.mark.parametrize("search", [True, False])
def test_points_that_break_a_constraint_are_refuted(kind: str, search: bool) -> None:
    data = instance(42, kind, "l1", "connected", 8, 2)
    w, u = solve(data)
    term = data["terms"][1]
    i = int(term["node"][0])
    if kind == "simplex":
        w[i, 0] += 1e-4
    else:
        ends = np.concatenate([term["lower"][0] - 1e-4, term["upper"][0] + 1e-4])
        j = int(np.flatnonzero(np.isfinite(ends))[0])
        w[i, j % 2] = ends[j]
    certificate = verify.certify(data, w, u, rtol=1e-6, search=search)
    assert certificate.status == "REFUTED"
    assert certificate.reason.startswith(f"w is not feasible: node {i} is")
    assert certificate.upper == INF
    assert certificate.moved == 0
    np.testing.assert_array_equal(certificate.w, w)
    assert verify.check(certificate.document).status == "REFUTED"


def test_tolerance_of_the_move_is_rtol_but_not_less_than_rounding() -> None:
    data = instance(43, "box", "l2", "connected", 6, 1)
    w, u = solve(data)
    w, _ = Constraints(load(data)).moved(w)
    upper = data["terms"][1]["upper"]
    i = int(np.flatnonzero(np.isfinite(upper[:, 0]))[0])
    w[i] = upper[i]
    for shift, rtol, moved in ((1e-10, 1e-12, True), (1e-7, 1e-12, False), (1e-7, 1e-5, True)):
        point = w.copy()
        point[i] += shift
        certificate = verify.certify(data, point, u, rtol=rtol)
        assert certificate.reason.startswith("w is not feasible") != moved
        assert (certificate.moved > 0) == moved


def test_rational_points_are_never_moved() -> None:
    """||w - (1, 0, 0)||^2 on the simplex of total 1/2, and one node more: all exact."""
    data = {
        "schema": "gtv-problem/1", "n_nodes": 2, "dim": 3, "edges": [[0, 1]], "weights": [1.0],
        "lam": 1.0, "penalty": {"kind": "l1"},
        "terms": [
            {"kind": "simplex", "node": [0], "total": [0.5]},
            {"kind": "point", "node": [0], "a": [[1.0, 1.0, 1.0]]},
        ],
    }  # fmt: skip
    sixth = Fraction(1, 6)
    w = [[sixth] * 3, [sixth] * 3]
    certificate = verify.certify(data, w, [[0, 0, 0]], rtol=1e-9)
    assert certificate.status == "CERTIFIED"
    assert certificate.moved == 0
    assert certificate.document["w"][0] == ["0x1/0x6"] * 3
    assert verify.check(certificate.document).upper == Fraction(25, 12)
    w[0][0] += Fraction(1, 10**40)
    refuted = verify.certify(data, w, [[0, 0, 0]], rtol=1e-9)
    assert refuted.status == "REFUTED"
    assert "node 0 is not on its simplex" in refuted.reason


def test_constraints_that_contradict_each_other_have_no_feasible_point() -> None:
    data = instance(44, "point", "l2", "connected", 5, 1)
    for low, high in ((0.0, 1.0), (2.0, 3.0)):
        data["terms"].append(
            {"kind": "box", "node": [2], "lower": np.array([[low]]), "upper": np.array([[high]])}
        )
    for point in (0.5, 1.5, 2.5):
        certificate = verify.certify(data, np.full((5, 1), point))
        assert certificate.status == "REFUTED"
        assert certificate.reason.startswith("w is not feasible: node 2")


def test_better_points_are_feasible_to_the_last_digit() -> None:
    """A feasible point that is not optimal is refuted by our own solution, moved likewise."""
    data = instance(45, "simplex", "l2", "connected", 7, 3)
    w = data["terms"][1]["total"][:, None] * np.array([[0.75, 0.25, 0.0]])
    certificate = verify.certify(data, w, rtol=1e-6)
    assert certificate.status == "REFUTED"
    assert certificate.reason.startswith("w is not within rtol")
    better = verify.certify(data, certificate.better, rtol=1e-6)
    assert (better.status, better.moved < 1e-15) == ("CERTIFIED", True)
