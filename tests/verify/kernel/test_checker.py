"""The one rule of the kernel: values against the formulas, bounds against weak duality."""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _plain_instances import KINKED, LOSSES, PENALTIES, document, document_text, instance
from hypothesis import given, settings
from hypothesis import strategies as st

import verify
from verify.instance._constraints import Constraints
from verify.instance._instance import load
from verify.instance._roots import semidefinite, texts
from verify.kernel.checker import Problem, _judge
from verify.kernel.data import canonical, digest
from verify.kernel.numbers import Bounds, table
from verify.kernel.verdict import Verdict

EXAMPLES = 200 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


def _huber(t: float, delta: float) -> float:
    return t * t if abs(t) <= delta else 2 * delta * abs(t) - delta**2


ROW_LOSSES: dict[str, Callable[[float, dict[str, Any], int], float]] = {
    "squared": lambda z, t, p: (z - t["y"][p]) ** 2,
    "logistic": lambda z, t, p: float(np.logaddexp(0, z)) - t["y"][p] * z,
    "huber": lambda z, t, p: _huber(z - t["y"][p], t["delta"][p]),
    "pseudohuber": lambda z, t, p: (
        t["delta"][p] * (math.hypot(t["delta"][p], z - t["y"][p]) - t["delta"][p])
    ),
    "poisson": lambda z, t, p: math.exp(z) - t["y"][p] * z,
    "absolute": lambda z, t, p: abs(z - t["y"][p]),
    "quantile": lambda z, t, p: max(
        t["level"][p] * (t["y"][p] - z), (t["level"][p] - 1) * (t["y"][p] - z)
    ),
    "hinge": lambda z, t, p: max(0.0, 1 - t["y"][p] * z),
}


def _value_in_floats(data: dict[str, Any], w: np.ndarray) -> float:
    """Return P(w) row by row from the formulas of the data format, for a feasible w."""
    total = 0.0
    for term in data["terms"]:
        for p, i in enumerate(term["node"]):
            m = int(np.sum(term["node"] == i))
            if term["kind"] in ROW_LOSSES:
                total += ROW_LOSSES[term["kind"]](float(term["X"][p] @ w[i]), term, p) / m
            elif term["kind"] == "point":
                total += float(np.sum((w[i] - term["a"][p]) ** 2))
            elif term["kind"] == "ridge":
                total += float(np.sum(term["mu"][p] / 2 * w[i] ** 2))
            elif term["kind"] == "l1":
                total += float(np.sum(term["kappa"][p] * np.abs(w[i])))
    penalty = data["penalty"]
    for (i, j), a in zip(data["edges"], data["weights"], strict=True):
        v = w[i] - w[j]
        q = penalty.get("Q", np.eye(len(v)))
        phi = {
            "l1": np.abs(v).sum(),
            "l2": np.sqrt(v @ v),
            "linf": np.abs(v).max(),
        }.get(penalty["kind"], v @ q @ v / 2)
        total += data["lam"] * a * float(phi)
    return total


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", [*LOSSES, *KINKED, "everything"])
def test_value_is_the_formula(loss: str, phi: str) -> None:
    data = instance(2, loss, phi)
    w = np.random.default_rng(0).standard_normal((data["n_nodes"], data["dim"]))
    w, exact = Constraints(load(data)).moved(w)
    rows = w if exact is None else [[_fraction(x) for x in row] for row in exact]
    bounds = Problem(canonical(data)).value(*table(rows, *w.shape, "w"))
    assert bounds.lo <= bounds.hi
    assert bounds.hi - bounds.lo < Fraction(1, 2**50)
    assert float(bounds.hi) == pytest.approx(_value_in_floats(data, w), rel=1e-12)


def _fraction(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


@st.composite
def weak_duality_cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """Draw point-loss data, an arbitrary flow inside the capacities and any w: all rational."""
    n, d = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    number = st.fractions(-4, 4, max_denominator=12)
    dyadic = st.integers(-64, 64).map(lambda x: x / 16)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if draw(st.booleans())]
    weights = [draw(st.integers(1, 32)) / 8 for _ in edges]
    kind = draw(st.sampled_from(PENALTIES))
    penalty: dict[str, Any] = {"kind": kind}
    if kind == "quadratic":
        b = np.array([[draw(st.integers(-2, 2)) for _ in range(d)] for _ in range(d)])
        penalty["Q"] = (b @ b.T).astype(float).tolist()
    a = [[draw(dyadic) for _ in range(d)] for _ in range(n)]
    data = {
        "schema": "gtv-problem/1", "n_nodes": n, "dim": d, "edges": edges, "weights": weights,
        "lam": draw(st.integers(1, 16)) / 4, "penalty": penalty,
        "terms": [{"kind": "point", "node": list(range(n)), "a": a}],
    }  # fmt: skip
    flow, points = [], []
    for weight in weights:
        v = [draw(number) for _ in range(d)]
        points.append([x + draw(st.sampled_from([0, Fraction(1, 3), -2])) for x in v])
        if kind == "quadratic":
            v = [sum((Fraction(q) * x for q, x in zip(row, v, strict=True)), Fraction(0))
                 for row in penalty["Q"]]  # fmt: skip
        size = sum((abs(x) for x in v), Fraction(0))
        cap = Fraction(data["lam"]) * Fraction(weight)
        shrink = min(Fraction(1), cap / size) if size else Fraction(1)
        flow.append([x * shrink for x in v] if kind in ("l1", "l2", "linf") else v)
    r = [[Fraction(0)] * d for _ in range(n)]
    for (i, j), u in zip(edges, flow, strict=True):
        for c in range(d):
            r[i][c] -= u[c]
            r[j][c] += u[c]
    dual: dict[str, Any] = {
        "u": [[_fraction(x) for x in row] for row in flow],
        "r": [[[_fraction(x) for x in row] for row in r]],
    }
    if kind == "quadratic":  # any x is allowed: the bound is then worse, and still a bound
        proof = semidefinite([[Fraction(x) for x in row] for row in penalty["Q"]])
        assert proof is not None
        dual["quadratic"] = {
            "root": texts(proof.root),
            "null_space": texts(proof.null_space),
            "x": [[_fraction(Fraction(x)) for x in row] for row in points],
        }
    w = [[_fraction(draw(number)) for _ in range(d)] for _ in range(n)]
    return data, dual, w


@settings(max_examples=EXAMPLES)
@given(weak_duality_cases())
def test_no_feasible_pair_has_a_negative_gap(
    case: tuple[dict[str, Any], dict[str, Any], list[Any]],
) -> None:
    data, dual, w = case
    result = verify.check(_claim(data, w, dual, 1e-6))
    assert result.status in ("CERTIFIED", "UNPROVED"), result.reason
    assert result.gap is not None
    assert result.gap >= 0


def _claim(data: dict[str, Any], w: Any, dual: Any, rtol: float) -> dict[str, Any]:
    plain = canonical(data)
    claim = {"rtol": rtol, "upper": None, "lower": None}
    head = {"schema": "gtv-certificate/1", "sha256": digest(plain), "data": plain}
    return {**head, "claim": claim, "w": w, "dual": dual}


FAMILIES = [("everything", "l2"), ("squared", "quadratic"), ("logistic_ridge", "l1"),
            ("unlabelled", "linf"), ("lasso", "squared"), ("every_kind", "l2")]  # fmt: skip


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, item in pairs for leaf in _leaves(item, (*path, key))]
    return [path]


def _replacement(value: Any, rng: random.Random) -> Any:
    pool: list[Any] = [None, -1, 0, 2**70, "", "0x1p-30", [], {}, "0x1/0x3", float("nan")]
    if isinstance(value, str):
        pool += [value[:-1], value.replace("p", "p1"), "-" + value, value.replace("1", "2")]
        pool += [value.swapcase(), value + "0"]
    if isinstance(value, int):
        pool += [value + 1, value - 1, float(value), str(value)]
    return rng.choice(pool)


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(FAMILIES), st.integers(0, 2**32), st.booleans(), st.integers(1, 3))
def test_random_edits_never_prove_what_is_false(
    family: tuple[str, str], seed: int, rehash: bool, edits: int
) -> None:
    """After any edit: no traceback, and what is still certified is true of the data at hand."""
    rng = random.Random(seed)
    original, doc = document(7, *family), document(7, *family)
    for _ in range(edits):
        path = rng.choice(_leaves(doc))
        target: Any = doc
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = _replacement(target[path[-1]], rng)
    same_data = False
    with contextlib.suppress(Verdict):
        found = digest(canonical(doc.get("data")))  # 0 for "0x0.0p+0" is the same data
        same_data = found == original["sha256"]
        if rehash:
            doc["sha256"] = found
    result = verify.check(doc)
    assert "defect" not in result.reason
    best = verify.check(original)
    assert best.upper is not None
    assert best.lower is not None
    if result.lower is not None and same_data:
        assert result.lower <= best.upper  # the optimum is at most P at the original point
    if result.upper is not None and same_data:
        assert result.upper >= best.lower
    if result.status == "CERTIFIED":
        assert same_data or rehash


def test_better_point_refutes_and_a_worse_one_does_not() -> None:
    doc = document(7, "everything", "l2")
    good = doc["w"]
    doc["w"] = [["0x0.0p+0"] * 2 for _ in good]
    doc["claim"].update(upper=None, lower=None)
    doc["dual"] = None
    assert verify.check(doc).status == "UNPROVED"
    doc["better"] = good
    result = verify.check(doc)
    assert result.status == "REFUTED"
    assert result.reason.startswith("w is not within rtol")
    doc["w"], doc["better"] = doc["better"], doc["w"]
    assert verify.check(doc).status == "UNPROVED"


def test_a_point_does_not_refute_itself_by_the_width_of_an_enclosure() -> None:
    data = instance(2, "point", "l2")
    w = data["terms"][0]["a"].tolist()
    assert Problem(canonical(data)).value(*table(w, 12, 2, "w")).lo != (
        Problem(canonical(data)).value(*table(w, 12, 2, "w")).hi
    )
    assert verify.check({**_claim(data, w, None, 0.0), "better": w}).status == "UNPROVED"


def _circulation(
    penalty: dict[str, Any], u: list[Fraction], quadratic: Any = None
) -> verify.Result:
    """Check the flow u around a triangle without losses: conserved, whatever u is."""
    d = len(u)
    data = {
        "schema": "gtv-problem/1", "n_nodes": 3, "dim": d, "edges": [[0, 1], [0, 2], [1, 2]],
        "weights": [1.0, 1.0, 1.0], "lam": 0.5, "penalty": penalty, "terms": [],
    }  # fmt: skip
    flow = [[_fraction(s * x) for x in u] for s in (1, -1, 1)]
    dual = {"u": flow, "r": []} | (quadratic or {})
    return verify.check(_claim(data, [[0] * d] * 3, dual, 0.0))


TINY = Fraction(1, 2**900)
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("phi", "fits"),
    [
        ("l1", [HALF, -HALF]),
        ("l2", [Fraction(3, 10), -Fraction(4, 10)]),
        ("linf", [Fraction(1, 8), -Fraction(3, 8)]),
    ],
)
def test_capacity_is_in_the_dual_norm_to_the_last_digit(phi: str, fits: list[Fraction]) -> None:
    assert _circulation({"kind": phi}, fits).status == "CERTIFIED"
    for j, sign in ((0, 1), (1, -1)):
        above = list(fits)
        above[j] += sign * TINY
        result = _circulation({"kind": phi}, above)
        assert result.status == "REFUTED"
        assert "above its capacity" in result.reason


@pytest.mark.parametrize("q", [[[1, 0], [0, 0]], [[1, 3], [3, 9]], [[9, 3], [3, 1]]])
def test_flow_outside_the_range_of_a_singular_q_is_refused(q: list[list[int]]) -> None:
    penalty = {"kind": "quadratic", "Q": q}
    inside = [Fraction(x) for x in q[0]]
    proof = semidefinite([[Fraction(x) for x in row] for row in q])
    assert proof is not None
    root, null = texts(proof.root), texts(proof.null_space)
    more = {"quadratic": {"root": root, "null_space": null, "x": [[1, 0], [-1, 0], [1, 0]]}}
    lower = _circulation(penalty, inside, more).lower
    assert lower == -Fraction(3) * q[0][0]  # u^T Q^+ u / (2 c) each
    inside[1] += TINY
    result = _circulation(penalty, inside, more)
    assert result.status == "REFUTED"
    assert "not in the range of Q" in result.reason


@pytest.mark.parametrize("excess", [0, TINY, -TINY])
def test_l1_multiplier_above_kappa_is_refused(excess: Fraction) -> None:
    """|w - a|^2 + kappa |w| at its solution: the l1 multiplier is exactly kappa."""
    data = {
        "schema": "gtv-problem/1", "n_nodes": 1, "dim": 1, "edges": [], "weights": [], "lam": 1.0,
        "penalty": {"kind": "l1"},
        "terms": [{"kind": "point", "node": [0], "a": [[1.0]]},
                  {"kind": "l1", "node": [0], "kappa": [0.5]}],
    }  # fmt: skip
    r = [[[_fraction(-HALF - excess)]], [[_fraction(HALF + excess)]]]
    result = verify.check(_claim(data, [[0.75]], {"u": [], "r": r}, 1e-6))
    assert result.status == ("REFUTED" if excess > 0 else "CERTIFIED")
    assert ("outside the domain of the l1" in result.reason) == (excess > 0)
    assert (result.gap == 0) == (excess == 0)


@pytest.mark.parametrize("kind", ["squared", "ridge"])
def test_sums_of_many_quotients_are_rounded_down_as_bounds(kind: str) -> None:
    """With more than 64 denominators the lower bound is enclosed: never above the exact value."""
    n = 80
    odd = [float(2 * i + 3) for i in range(n)]
    mu = odd if kind == "ridge" else [1.0] * n
    flow = [Fraction((-1) ** i if kind == "ridge" else 1) for i in range(n - 1)]
    r = [-flow[0], *(flow[i - 1] - flow[i] for i in range(1, n - 1)), flow[-1]]
    data = {
        "schema": "gtv-problem/1", "n_nodes": n, "dim": 1,
        "edges": [[i, i + 1] for i in range(n - 1)], "weights": odd[: n - 1], "lam": 1.0,
        "penalty": {"kind": "l1" if kind == "ridge" else "squared"},
        "terms": [{"kind": "ridge", "node": list(range(n)), "mu": mu}],
    }  # fmt: skip
    exact = sum((x * x / (2 * Fraction(m)) for x, m in zip(r, mu, strict=True)), Fraction(0))
    if kind == "squared":
        exact += sum(1 / (2 * Fraction(c)) for c in odd[: n - 1])
    dual = {"u": [[_fraction(x)] for x in flow], "r": [[[_fraction(x)] for x in r]]}
    lower = verify.check(_claim(data, [[0]] * n, dual, 1e-6)).lower
    assert lower is not None
    assert -exact - Fraction(1, 2**250) < lower < -exact


def test_negative_gap_is_reported_as_a_defect() -> None:
    """No valid document can have one; the judge is given figures that contradict each other."""
    impossible = verify.Result("UNPROVED", "", Fraction(1), Fraction(2), Fraction(1))
    answer = _judge(impossible, {"upper": None, "lower": None}, Bounds(Fraction(1), Fraction(1)))
    assert answer.status == "REFUTED"
    assert answer.reason.startswith("defect")
    assert answer.gap == -1


def test_data_may_stay_outside_the_document() -> None:
    doc = document(7, "squared", "quadratic")
    data = doc.pop("data")
    assert verify.check(doc).status == "UNPROVED"
    assert verify.check(doc, data=data).status == "CERTIFIED"
    assert verify.check({**doc, "data": data}, data=data).status == "CERTIFIED"
    other = {**data, "lam": (2.0).hex()}
    assert verify.check(doc, data=other).status == "REFUTED"
    assert verify.check({**doc, "data": data}, data=other).status == "REFUTED"


def test_arrays_and_canonical_lists_have_one_hash() -> None:
    data = instance(2, "everything", "quadratic")
    plain = canonical(data)
    assert digest(canonical(plain)) == digest(plain)
    negative_zero = {**data, "weights": data["weights"].tolist()}
    assert digest(canonical(negative_zero)) == digest(plain)


def test_caller_may_ask_for_less_slack() -> None:
    doc = document(7, "squared", "quadratic")
    result = verify.check(doc, rtol=0.0)
    assert result.status == "UNPROVED"
    assert result.rel_gap is not None
    assert verify.check(doc, rtol=float(result.rel_gap) * 2).status == "CERTIFIED"


def test_float_that_needs_sixty_bits_is_not_rounded() -> None:
    """1 + 2^-60 as a flow is above the capacity 1, and no double can tell."""
    for excess, status in ((0, "CERTIFIED"), (1, "REFUTED")):
        u = f"{2**60 + excess:#x}p-60"
        data = {
            "schema": "gtv-problem/1", "n_nodes": 3, "dim": 1, "edges": [[0, 1], [0, 2], [1, 2]],
            "weights": [1.0, 1.0, 1.0], "lam": 1.0, "penalty": {"kind": "l1"}, "terms": [],
        }  # fmt: skip
        w = [["0x0p+0"]] * 3
        doc = _claim(data, w, {"u": [[u], ["-" + u], [u]], "r": []}, 0.0)
        assert verify.check(doc).status == status


def test_p_norms_of_the_three_rules_are_these_norms() -> None:
    for p, kind in ((1.0, "l1"), (2.0, "l2"), (np.inf, "linf")):
        data = instance(2, "point", kind)
        same = {**data, "penalty": {"kind": "pnorm", "p": p}}
        w = table(data["terms"][0]["a"], data["n_nodes"], 2, "w")
        assert Problem(canonical(same)).value(*w) == Problem(canonical(data)).value(*w)


def test_valid_documents_are_certified() -> None:
    for family in FAMILIES:
        assert document_text(7, *family)
        assert verify.check(document(7, *family)).status == "CERTIFIED"
