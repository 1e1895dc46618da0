"""Witnesses of quadratic penalties as the builder writes them: short, exact, and in any units."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import verify
from verify._arrays import FloatArray
from verify.kernel.numbers import scaled

HALF = Fraction(1, 2)


def two_nodes(q: FloatArray, a: FloatArray) -> dict[str, Any]:
    """Return point losses at two nodes joined by one edge of weight 1."""
    return {
        "schema": "gtv-problem/1",
        "n_nodes": 2,
        "dim": len(q),
        "edges": [[0, 1]],
        "weights": [1.0],
        "lam": 1.0,
        "penalty": {"kind": "quadratic", "Q": q.tolist()},
        "terms": [{"kind": "point", "node": [0, 1], "a": a.tolist()}],
    }


def solution(q: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (w, u): 2 (w_0 - a_0) + Q z = 0 and 2 (w_1 - a_1) - Q z = 0 with z = w_0 - w_1."""
    z = np.linalg.solve(np.eye(len(q)) + q, a[0] - a[1])
    return np.array([a[0] - q @ z / 2, a[1] + q @ z / 2]), (q @ z)[None]


def definite(d: int) -> FloatArray:
    x = np.random.default_rng(d).standard_normal((d, d))
    return np.asarray(x @ x.T / d + 0.1 * np.eye(d))


@pytest.mark.parametrize("d", [1, 3, 30])
def test_witnesses_are_short_and_lose_nothing(d: int) -> None:
    q, a = definite(d), np.random.default_rng(d).standard_normal((2, d))
    q = (q + q.T) / 2
    proof = verify.certify(two_nodes(q, a), *solution(q, a), search=False)
    assert proof.status == "CERTIFIED"
    assert proof.rel_gap < 1e-25
    quadratic = proof.document["dual"]["quadratic"]
    assert max(len(x) for row in quadratic["root"] or [[""]] for x in row) < 16
    assert max(len(x) for row in quadratic["x"] for x in row) < 40
    assert quadratic["null_space"] == []


def test_a_singular_matrix_has_its_null_space_in_the_document() -> None:
    x = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    q, a = x.T @ x, np.array([[1.0, 0.5, -2.0], [0.25, 3.0, 1.0]])
    proof = verify.certify(two_nodes(q, a), *solution(q, a), search=False)
    assert proof.status == "CERTIFIED"
    (row,) = proof.document["dual"]["quadratic"]["null_space"]
    numbers, _ = scaled(row)
    assert [Fraction(x) / Fraction(numbers[0]) for x in numbers] == [1, Fraction(-1, 2), HALF]


def test_rational_pairs_have_a_gap_of_zero() -> None:
    q, a = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    # (I + Q) z = (1, -2): z = (6, -7)/11
    z = [Fraction(6, 11), Fraction(-7, 11)]
    u = [Fraction(int(row[0])) * z[0] + Fraction(int(row[1])) * z[1] for row in q]
    w = [
        [Fraction(x) - v / 2 for x, v in zip(a[0].tolist(), u, strict=True)],
        [Fraction(x) + v / 2 for x, v in zip(a[1].tolist(), u, strict=True)],
    ]
    proof = verify.certify(two_nodes(q, a), w, [u], rtol=0)
    assert (proof.status, proof.gap) == ("CERTIFIED", 0.0)


@pytest.mark.parametrize("units", [[1.0, 2.0**60], [2.0**-200, 2.0**200]])
def test_units_that_differ_wildly(units: list[float]) -> None:
    """Q in wild units is nearly singular for floats, and x is then made exact if need be."""
    scale = np.array(units)
    q = np.array([[2.0, 1.0], [1.0, 3.0]]) * scale * scale[:, None]
    a = np.array([[1.0, 0.0], [0.0, 2.0]]) / scale
    u = np.array([[0.25, -0.5]]) * 2.0**-40 * scale.min()
    proof = verify.certify(two_nodes(q, a), a, u, rtol=1e100, search=False)
    assert proof.status == "CERTIFIED"
