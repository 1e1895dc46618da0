"""Witnesses of a quadratic penalty: whatever is in them, the bound is on the right side."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from _plain_instances import instance

import verify
from verify.kernel.data import canonical, digest
from verify.kernel.numbers import scaled, unit

Document = dict[str, Any]


def number(text: Any) -> Fraction:
    (v,), k = scaled([text])
    return v * unit(k)


def text(x: Fraction | int) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


#: A matrix of full rank and one of rank 2, whose null space is spanned by (2, -1, 1). Neither is
#: diagonally dominant.
MATRICES = {
    "definite": [[2.0, 1.5, -1.0], [1.5, 2.0, 0.5], [-1.0, 0.5, 3.0]],
    "singular": [[1.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 1.0]],
}


@cache
def certified(name: str) -> Document:
    data = instance(5, "mixed", "quadratic", d=3)
    data["penalty"]["Q"] = MATRICES[name]
    proof = verify.certify(data, np.zeros((data["n_nodes"], 3)), rtol=1e6)
    assert proof.status == "CERTIFIED"
    assert verify.check(proof.document, rtol=1e6).status == "CERTIFIED"
    return proof.document


def tight(name: str) -> tuple[Document, Fraction]:
    """Return a document that may be changed and the lower bound that it proves."""
    doc = copy.deepcopy(certified(name))
    doc["claim"]["lower"] = None
    result = verify.check(doc, rtol=1e6)
    assert result.lower is not None
    return doc, result.lower


def answer(doc: Document) -> tuple[str, str]:
    result = verify.check(doc, rtol=1e6)
    return result.status, result.reason


def flow(doc: Document) -> list[list[Fraction]]:
    return [[number(x) for x in row] for row in doc["dual"]["u"]]


def times(q: list[list[float]], v: list[Fraction]) -> list[Fraction]:
    return [sum((Fraction(a) * x for a, x in zip(row, v, strict=True)), Fraction(0)) for row in q]


@pytest.mark.parametrize("name", MATRICES)
def test_documents_without_the_witness_are_unproved_and_say_which_is_missing(name: str) -> None:
    doc, _ = tight(name)
    del doc["dual"]["quadratic"]
    status, reason = answer(doc)
    assert status == "UNPROVED"
    assert "has no `quadratic`, the witness" in reason
    doc["dual"]["u"][0][0] = text(number(doc["dual"]["u"][0][0]) + 1)
    assert answer(doc)[0] == "REFUTED"  # what is false is refused first


def test_the_witness_is_for_quadratic_penalties_alone() -> None:
    doc, _ = tight("definite")
    doc["data"]["penalty"] = {"kind": "squared"}
    doc["sha256"] = digest(canonical(doc["data"]))
    status, reason = answer(doc)
    assert (status, "unknown ['quadratic']" in reason) == ("REFUTED", True)


@pytest.mark.parametrize("name", MATRICES)
def test_any_x_gives_a_lower_bound_and_the_exact_one_the_conjugate(name: str) -> None:
    """x^T (u + s) + ||s||^2 / mu is never below u^T Q^+ u, whatever x is."""
    doc, lower = tight(name)
    q, x = MATRICES[name], doc["dual"]["quadratic"]["x"]
    inverse = np.linalg.pinv(np.array(q))
    z = [[Fraction(v) for v in row] for row in (inverse @ np.array(flow(doc), float).T).T.tolist()]
    rng = np.random.default_rng(0)
    bounds = []
    for size in (0.0, 2.0**-60, 2.0**-20, 1.0, 100.0):
        moved = rng.integers(-9, 10, (len(z), 3)) * size
        x[:] = [[text(a + Fraction(b)) for a, b in zip(*rows, strict=True)]
                for rows in zip(z, moved.tolist(), strict=True)]  # fmt: skip
        result = verify.check(doc, rtol=1e6)
        assert result.lower is not None
        bounds.append(result.lower)
    best = max(lower, bounds[0])
    assert bounds[1:] == sorted(bounds[1:], reverse=True)
    assert best - bounds[1] < Fraction(1, 1 << 40)  # hardly anything is lost to rounding,
    assert bounds[-1] < best - 100  # but what is not Q^+ u costs its square
    assert abs(best - exact_bound(doc, name)) < Fraction(1, 1 << 60)
    assert best <= exact_bound(doc, name)


def exact_bound(doc: Document, name: str) -> Fraction:
    """Return the bound with x that solves Q x = u, by Cramer's rule for a full-rank block."""
    part = copy.deepcopy(doc)
    q = MATRICES[name]
    (a, b), (c, d) = (tuple(map(Fraction, row[:2])) for row in q[:2])
    rows = []
    for u in flow(doc):
        if name == "singular":  # x_3 = 0
            det = a * d - b * c
            rows.append([(d * u[0] - b * u[1]) / det, (a * u[1] - c * u[0]) / det, Fraction(0)])
        else:
            m = [[Fraction(x) for x in row] for row in q]
            rows.append([_det(_replaced(m, j, u)) / _det(m) for j in range(3)])
        assert times(q, rows[-1]) == u
    part["dual"]["quadratic"]["x"] = [[text(x) for x in row] for row in rows]
    lower = verify.check(part, rtol=1e6).lower
    assert lower is not None
    return lower


def _replaced(m: list[list[Fraction]], j: int, v: list[Fraction]) -> list[list[Fraction]]:
    return [[*row[:j], x, *row[j + 1 :]] for row, x in zip(m, v, strict=True)]


def _det(m: list[list[Fraction]]) -> Fraction:
    (a, b, c), (d, e, f), (g, h, i) = m
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def test_sums_of_many_quotients_are_rounded_to_the_safe_side() -> None:
    """With more than 64 capacities the bound is enclosed: never above the exact value."""
    n = 80
    odd = [2 * i + 3 for i in range(n - 1)]
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 1,
        "edges": [[i, i + 1] for i in range(n - 1)],
        "weights": list(map(float, odd)),
        "lam": 1.0,
        "penalty": {"kind": "quadratic", "Q": [[3.0]]},
        "terms": [{"kind": "point", "node": [0, n - 1], "a": [[0.0]] * 2}],
    }
    doc = {
        "schema": "gtv-certificate/1",
        "sha256": digest(canonical(data)),
        "claim": {"rtol": 1.0, "upper": None, "lower": None},
        "data": data,
        "w": [[0]] * n,
        "dual": {"u": [[1]] * (n - 1), "r": [[[-1], [1]]]},
    }
    for x in (0, 1):  # u + s and s are 2 and 1, or -1 and -2: x (u + s), or ||s||^2 / 3, is left
        witness = {"root": [], "null_space": [], "x": [[x]] * (n - 1)}
        s = 1 - 3 * x
        each = x * (1 + s) + Fraction(s * s, 3)
        exact = -Fraction(1, 2) - sum(each / (2 * c) for c in odd)
        changed = doc | {"dual": {**doc["dual"], "quadratic": witness}}  # type: ignore[dict-item]
        lower = verify.check(changed).lower
        assert lower is not None
        assert exact - Fraction(1, 2**250) < lower < exact


Attack = Callable[[Document], None]


def _entry(rows: list[list[str]], change: Callable[[Fraction], Fraction]) -> None:
    rows[0][0] = text(change(number(rows[0][0])))


FALSE: dict[str, tuple[str, Attack]] = {
    "root one too large": ("root", lambda w: _entry(w["root"], lambda x: x + 1)),
    "root doubled": ("root", lambda w: w["root"].append([2, 2, 2])),
    "no root": ("root", lambda w: w["root"].clear()),
    "row that is not in the null space": (
        "null_space",
        lambda w: w["null_space"].append([1, 0, 0]),
    ),
    "row that is nearly in it": (
        "null_space",
        lambda w: w["null_space"].append([2, -1, "0x10000000000000000000000000000001p-124"]),
    ),
}
BROKEN: dict[str, Attack] = {
    "missing root": lambda w: w.pop("root"),
    "missing null space": lambda w: w.pop("null_space"),
    "missing x": lambda w: w.pop("x"),
    "another key": lambda w: w.update(inverse=[]),
    "root null": lambda w: w.update(root=None),
    "root too wide": lambda w: w["root"].append([0, 0, 0, 0]),
    "null space too narrow": lambda w: w["null_space"].append([0, 0]),
    "x too short": lambda w: w["x"].pop(),
    "x too long": lambda w: w["x"].append([0, 0, 0]),
    "x too narrow": lambda w: w["x"][0].pop(),
    "x NaN": lambda w: w["x"][0].__setitem__(0, float("nan")),
    "x zero denominator": lambda w: w["x"][0].__setitem__(0, "0x1/0x0"),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("attack", FALSE)
def test_witnesses_that_prove_nothing_are_refused(name: str, attack: str) -> None:
    doc, _ = tight(name)
    word, change = FALSE[attack]
    change(doc["dual"]["quadratic"])
    status, reason = answer(doc)
    assert status == "REFUTED"
    assert reason.startswith("false document")
    assert word in reason


@pytest.mark.parametrize("attack", BROKEN)
def test_witnesses_of_another_shape_are_malformed(attack: str) -> None:
    doc, _ = tight("singular")
    BROKEN[attack](doc["dual"]["quadratic"])
    status, reason = answer(doc)
    assert status == "REFUTED"
    assert reason.startswith("malformed")
    doc["dual"]["quadratic"] = []
    assert answer(doc)[1].startswith("malformed")


def test_a_null_space_that_is_not_whole_is_refused() -> None:
    """Then u may be outside the range, and the remainder has no margin."""
    doc, _ = tight("singular")
    doc["dual"]["quadratic"]["null_space"].clear()
    assert answer(doc)[0] == "REFUTED"


def test_a_margin_of_zero_proves_nothing() -> None:
    """The remainder of [[1, -1], [-1, 1]] without a root is dominant, but not strictly."""
    doc = pair([[1.0, -1.0], [-1.0, 1.0]], [], [])
    assert "do not prove" in answer(doc)[1]
    assert answer(pair([[1.0, -1.0], [-1.0, 1.0]], [], [[1, 1]]))[0] == "CERTIFIED"


@pytest.mark.parametrize("size", [Fraction(1), Fraction(1, 1 << 200)])
def test_flows_outside_the_range_are_refused(size: Fraction) -> None:
    """However little: the conjugate is infinite there. Nodes and flow stay in balance."""
    doc, _ = tight("singular")
    (head, tail), u = doc["data"]["edges"][0], doc["dual"]["u"][0]
    doc["data"]["terms"].append({"kind": "point", "node": [head, tail], "a": [[0.0] * 3] * 2})
    doc["sha256"] = digest(canonical(doc["data"]))
    for row in ((-size, size), (size, -size)):  # a push within the range is no offence
        changed = copy.deepcopy(doc)
        push = [size, 2 * size, Fraction(0)] if row[0] < 0 else [size] * 3
        changed["dual"]["u"][0] = [text(number(v) + p) for v, p in zip(u, push, strict=True)]
        changed["dual"]["r"].append([[text(-p) for p in push], [text(p) for p in push]])
        status, reason = answer(changed)
        if row[0] < 0:
            assert "range" not in reason
        else:
            assert (status, "not in the range of Q" in reason) == ("REFUTED", True)


def pair(q: list[list[float]], root: Any, null: Any) -> Document:
    """Return a document about two nodes at zero, where nothing flows."""
    d = len(q)
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 2,
        "dim": d,
        "edges": [[0, 1]],
        "weights": [1.0],
        "lam": 1.0,
        "penalty": {"kind": "quadratic", "Q": q},
        "terms": [{"kind": "point", "node": [0, 1], "a": [[0.0] * d] * 2}],
    }
    zeros = [[0] * d]
    quadratic = {"root": root, "null_space": null, "x": zeros}
    return {
        "schema": "gtv-certificate/1",
        "sha256": digest(canonical(data)),
        "claim": {"rtol": 1.0, "upper": None, "lower": None},
        "data": data,
        "w": zeros * 2,
        "dual": {"u": zeros, "r": [zeros * 2], "quadratic": quadratic},
    }


@pytest.mark.parametrize("q", [[[-1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]])
def test_no_witness_proves_a_matrix_that_is_indefinite(q: list[list[float]]) -> None:
    d, rng = len(q), np.random.default_rng(0)
    for _ in range(100):
        root, null = (rng.integers(-2, 3, (int(rng.integers(0, 4)), d)).tolist() for _ in range(2))
        assert answer(pair(q, root, null))[0] == "REFUTED"
    assert answer(pair(q, [], []) | {"dual": None})[0] == "UNPROVED"
