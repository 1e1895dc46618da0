"""Rules of every kind of loss in the kernel: values, domains and conjugates against brute force."""

from __future__ import annotations

import math
import os
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verify
from verify.kernel.data import ROWS, TERMS, canonical, digest
from verify.kernel.losses import Term, term_of
from verify.kernel.numbers import table
from verify.kernel.verdict import Verdict

EXAMPLES = 200 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
TINY = Fraction(1, 2**900)
INF = math.inf
Data = dict[str, Any]


def _problem(terms: list[Data], n: int, d: int) -> Data:
    return {
        "schema": "gtv-problem/1", "n_nodes": n, "dim": d, "edges": [], "weights": [], "lam": 1.0,
        "penalty": {"kind": "l1"}, "terms": terms,
    }  # fmt: skip


def _rules(term: Data, n: int = 1, d: int = 1) -> Term:
    return term_of(canonical(_problem([term], n, d))["terms"][0], d)


def _text(x: Fraction | int) -> str:
    x = Fraction(x)
    return f"{x.numerator:#x}/{x.denominator:#x}"


def _value(rules: Term, w: list[Fraction]) -> tuple[Fraction, Fraction]:
    rows, k = table([[_text(x) for x in w]], 1, len(w), "w")
    assert rules.violation(rows, k) is None
    return rules.value(rows, k)


def _conjugate(rules: Term, r: Any) -> Fraction:
    """Return the upper bound of h*(r), one number or a list of one node's numbers."""
    return rules.dual([[_text(x) for x in r] if isinstance(r, list) else _text(r)], "r")[0]


# One data row x = 1 each, m = 1: kind, fields, h as a function of floats, domain of h*.
ROW_RULES: dict[str, tuple[Data, Any, tuple[Fraction | None, Fraction | None]]] = {
    "squared": ({"y": 0.75}, lambda z: (z - 0.75) ** 2, (None, None)),
    "huber": (
        {"y": -0.5, "delta": 0.375},
        lambda z: (z + 0.5) ** 2 if abs(z + 0.5) <= 0.375 else 0.75 * abs(z + 0.5) - 0.375**2,
        (Fraction(-3, 4), Fraction(3, 4)),
    ),
    "pseudohuber": (
        {"y": -0.5, "delta": 0.375},
        lambda z: 0.375 * (math.hypot(0.375, z + 0.5) - 0.375),
        (Fraction(-3, 8), Fraction(3, 8)),
    ),
    "absolute": ({"y": 0.25}, lambda z: abs(z - 0.25), (Fraction(-1), Fraction(1))),
    "quantile": (
        {"y": 1.0, "level": 0.3125},
        lambda z: max(0.3125 * (1 - z), -0.6875 * (1 - z)),
        (Fraction(-5, 16), Fraction(11, 16)),
    ),
    "hinge": ({"y": 1.0}, lambda z: max(0.0, 1 - z), (Fraction(-1), Fraction(0))),
    "hinge of the other class": (
        {"y": -1.0}, lambda z: max(0.0, 1 + z), (Fraction(0), Fraction(1)),
    ),
    "logistic": ({"y": 1.0}, lambda z: np.logaddexp(0, z) - z, (Fraction(-1), Fraction(0))),
    "poisson": ({"y": 1.5}, lambda z: math.exp(z) - 1.5 * z, (Fraction(-3, 2), None)),
    "poisson of a zero": ({"y": 0.0}, lambda z: math.exp(z), (Fraction(0), None)),
}  # fmt: skip


def _row(name: str, rows: int = 1) -> Data:
    fields = {key: [value] * rows for key, value in ROW_RULES[name][0].items()}
    kind = name.split()[0]
    return {"kind": kind, "node": [0] * rows, "X": [[1.0]] * rows, **fields}


def test_every_kind_of_data_rows_has_a_case() -> None:
    # Rows with several classes have a file of their own.
    assert {name.split()[0] for name in ROW_RULES} == set(ROWS) - {"multinomial"}


@pytest.mark.parametrize("name", ROW_RULES)
def test_value_of_a_row(name: str) -> None:
    rules, h = _rules(_row(name)), ROW_RULES[name][1]
    for z in np.linspace(-4, 4, 65):
        lo, hi = _value(rules, [Fraction(z)])
        assert lo <= hi <= lo + Fraction(1, 10**33)
        assert float(hi) == pytest.approx(h(float(z)), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("name", ROW_RULES)
def test_conjugate_of_a_row_is_the_supremum(name: str) -> None:
    """h*(r) >= r z - h(z) for all z, exactly, and no less than the best of a fine grid."""
    rules, (low, high) = _rules(_row(name)), ROW_RULES[name][2]
    grid = [Fraction(z) for z in np.linspace(-6, 6, 193)]
    values = [_value(rules, [z])[0] for z in grid]
    for t in (Fraction(i, 8) for i in range(1, 8)):
        r = (low if low is not None else -2) * (1 - t) + (high if high is not None else 2) * t
        bound = _conjugate(rules, r)
        best = max(r * z - h for z, h in zip(grid, values, strict=True))
        assert best - Fraction(1, 10**33) <= bound <= best + Fraction(1, 50)


@pytest.mark.parametrize("name", ROW_RULES)
def test_domain_of_a_row_to_the_last_digit(name: str) -> None:
    kind, (low, high) = name.split()[0], ROW_RULES[name][2]
    for rows in (1, 3):  # m r is what is limited
        rules = _rules(_row(name, rows))
        zeros = ["0x0p+0"] * (rows - 1)
        for end, outwards in ((low, -TINY), (high, TINY)):
            if end is None:
                rules.dual([_text(outwards * 2**1000), *zeros], "r")
                continue
            rules.dual([_text(end / rows), *zeros], "r")
            with pytest.raises(Verdict, match=f"outside the domain of the {kind} conjugate"):
                rules.dual([_text(end / rows + outwards), *zeros], "r")


def test_mean_over_the_rows_of_a_node() -> None:
    """(1/m) in the loss is m in the conjugate: three equal rows are one of them."""
    for name in ROW_RULES:
        one, three = _rules(_row(name)), _rules(_row(name, 3))
        assert _value(three, [Fraction(1, 3)]) == pytest.approx(_value(one, [Fraction(1, 3)]))
        low, high = ROW_RULES[name][2]
        r = ((low if low is not None else -1) + (high if high is not None else 1)) / 2
        triple = three.dual([_text(Fraction(r) / 3)] * 3, "r")
        assert float(triple[0]) == pytest.approx(float(_conjugate(one, Fraction(r))), abs=1e-15)
        assert triple[1] == {0: [3 * (Fraction(r) / 3) * 2 ** triple[2]]}


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@given(
    st.lists(
        st.tuples(st.fractions(-50, 50, max_denominator=999), st.fractions(-1, 1)),
        min_size=1,
        max_size=4,
    ),
    st.floats(1e-12, 1e12),
    st.floats(-100, 100),
)
def test_each_bound_of_pseudo_huber_rows_is_on_its_side(
    rows: list[tuple[Fraction, Fraction]], delta: float, y: float
) -> None:
    """Values are enclosed and conjugates bounded from above, both within 2^-255 per row."""
    m, slack = len(rows), Fraction(len(rows), 2**255)
    data = {"kind": "pseudohuber", "node": [0] * m, "X": [[1.0]] * m, "y": [y] * m,
            "delta": [delta] * m}  # fmt: skip
    rules, d = _rules(data), Fraction(delta)
    with localcontext() as context:
        context.prec = 400
        # Beyond the rounding of the reference itself nothing may be on the wrong side.
        rounding = Fraction(1, 10**300)
        for z, _ in rows:
            low, high = _value(rules, [z])
            t = z - Fraction(y)
            exact = Fraction(_decimal(d * d * (d * d + t * t)).sqrt()) - d * d
            assert low - rounding <= exact <= high + rounding
            assert high - low <= slack
        shares = [share * d for _, share in rows]
        bound = rules.dual([_text(p / m) for p in shares], "r")[0]
        exact = sum(
            (p * Fraction(y) + d * d - Fraction(_decimal(d * d * (d * d - p * p)).sqrt())) / m
            for p in shares
        )
        assert exact - rounding <= bound <= exact + slack


def test_roots_of_pseudo_huber_rows_that_are_dyadic_are_exact() -> None:
    """5, 12, 13 and 3, 4, 5: no enclosure is wider than what it encloses."""
    rules = _rules({"kind": "pseudohuber", "node": [0], "X": [[1.0]], "y": [0.0], "delta": [5.0]})
    assert _value(rules, [Fraction(12)]) == (Fraction(40), Fraction(40))
    assert _conjugate(rules, Fraction(3)) == 5


# Terms of one node in two dimensions: data, h, points in and directions out of the domain of h*.
BOX = {"kind": "box", "node": [0], "lower": [[-1.0, -INF]], "upper": [[2.0, 0.5]]}
NODE_RULES: dict[str, tuple[Data, Any, Any]] = {
    "point": (
        {"kind": "point", "node": [0], "a": [[0.5, -1.0]]},
        lambda w: (w[0] - 0.5) ** 2 + (w[1] + 1) ** 2,
        lambda r: True,
    ),
    "ridge": (
        {"kind": "ridge", "node": [0], "mu": [0.75]},
        lambda w: 0.375 * (w[0] ** 2 + w[1] ** 2),
        lambda r: True,
    ),
    "ridge without an intercept": (
        {"kind": "ridge", "node": [0], "mu": [[0.75, 0.0]]},
        lambda w: 0.375 * w[0] ** 2,
        lambda r: r[1] == 0,
    ),
    "l1": (
        {"kind": "l1", "node": [0], "kappa": [0.75]},
        lambda w: 0.75 * (abs(w[0]) + abs(w[1])),
        lambda r: max(abs(r[0]), abs(r[1])) <= Fraction(3, 4),
    ),
    "l1 of each coordinate": (
        {"kind": "l1", "node": [0], "kappa": [[0.25, 1.0]]},
        lambda w: 0.25 * abs(w[0]) + abs(w[1]),
        lambda r: abs(r[0]) <= Fraction(1, 4) and abs(r[1]) <= 1,
    ),
    "box": (
        BOX,
        lambda w: 0.0 if -1 <= w[0] <= 2 and w[1] <= 0.5 else INF,
        lambda r: r[1] >= 0,
    ),
    "simplex": (
        {"kind": "simplex", "node": [0], "total": [1.5]},
        lambda w: 0.0 if min(w) >= 0 and w[0] + w[1] == 1.5 else INF,
        lambda r: True,
    ),
}


def test_every_kind_at_nodes_has_a_case() -> None:
    assert {name.split()[0] for name in NODE_RULES} == set(TERMS) - set(ROWS)


@pytest.mark.parametrize("name", NODE_RULES)
def test_node_rules_against_a_grid(name: str) -> None:
    data, h, inside = NODE_RULES[name]
    rules = _rules(data, 1, 2)
    steps = [Fraction(i, 4) for i in range(-12, 13)]
    grid = [(a, b) for a in steps for b in steps]
    finite = []
    for w in grid:
        wanted = h([float(x) for x in w])
        rows, k = table([[_text(x) for x in w]], 1, 2, "w")
        assert (rules.violation(rows, k) is not None) == (wanted == INF)
        if wanted < INF:
            assert rules.value(rows, k) == (Fraction(wanted), Fraction(wanted))
            finite.append((w, Fraction(wanted)))
    for r in [(a / 2, b / 2) for a in steps[2::5] for b in steps[::6]]:
        if not inside(r):
            with pytest.raises(Verdict, match=f"outside the domain of the {data['kind']} conj"):
                _conjugate(rules, list(r))
            continue
        bound = _conjugate(rules, list(r))
        best = max(r[0] * w[0] + r[1] * w[1] - v for w, v in finite)
        assert best <= bound <= best + Fraction(1, 20)


@pytest.mark.parametrize(
    ("name", "r", "out"),
    [
        ("l1 of each coordinate", [Fraction(1, 4), Fraction(-1)], [TINY, 0]),
        ("l1 of each coordinate", [Fraction(1, 4), Fraction(-1)], [0, -TINY]),
        ("ridge without an intercept", [Fraction(7), Fraction(0)], [0, TINY]),
        ("box", [Fraction(-7), Fraction(0)], [0, -TINY]),
    ],
)
def test_domains_at_nodes_to_the_last_digit(name: str, r: list[Any], out: list[Any]) -> None:
    rules = _rules(NODE_RULES[name][0], 1, 2)
    _conjugate(rules, r)
    with pytest.raises(Verdict, match="outside the domain"):
        _conjugate(rules, [x + y for x, y in zip(r, out, strict=True)])


@pytest.mark.parametrize(
    ("term", "w", "words"),
    [
        (BOX, [-1 - TINY, Fraction(0)], "outside its box in coordinate 0"),
        (BOX, [Fraction(0), Fraction(1, 2) + TINY], "outside its box in coordinate 1"),
        (NODE_RULES["simplex"][0], [Fraction(3, 2) + TINY, Fraction(0)], "not on its simplex"),
        (NODE_RULES["simplex"][0], [Fraction(3, 2) + TINY, -TINY], "not on its simplex"),
    ],
)
def test_infeasible_points_are_refuted(term: Data, w: list[Fraction], words: str) -> None:
    """P is infinite there, however little is missing; as a better point they refute nothing."""
    point = {"kind": "point", "node": [0], "a": [[0.0, 0.0]]}
    doc = _claim(_problem([point, term], 1, 2), [[_text(x) for x in w]], None)
    result = verify.check(doc)
    assert result.status == "REFUTED"
    assert result.reason.startswith(f"w is not feasible: node 0 is {words}")
    assert result.upper is None
    assert result.gap is None
    assert result.to_json()["upper"] is None
    inside = [["0x3/0x2", "0x0p+0"]]
    assert verify.check({**doc, "w": inside}).status == "UNPROVED"
    assert verify.check({**doc, "w": inside, "better": doc["w"]}).status == "UNPROVED"


def test_lower_bound_is_reported_beside_infeasibility() -> None:
    """(w - 2)^2 on w <= 1: the optimum is 1, at w = 1 with r = -2 and 2."""
    box = {"kind": "box", "node": [0], "lower": [[-INF]], "upper": [[1.0]]}
    data = _problem([{"kind": "point", "node": [0], "a": [[2.0]]}, box], 1, 1)
    dual = {"u": [], "r": [[["-0x1p+1"]], [["0x1p+1"]]]}
    result = verify.check(_claim(data, [["0x1p+0"]], dual))
    assert (result.status, result.lower, result.gap) == ("CERTIFIED", 1, 0)
    result = verify.check(_claim(data, [["0x1p+1"]], dual))
    assert (result.status, result.lower) == ("REFUTED", 1)
    assert result.reason.startswith("w is not feasible")
    dual["r"] = [[["0x1p+1"]], [["-0x1p+1"]]]
    assert "outside the domain" in verify.check(_claim(data, [["0x1p+1"]], dual)).reason


def test_poisson_beyond_the_enclosure_is_unproved() -> None:
    data = _problem([_row("poisson")], 1, 1)
    assert verify.check(_claim(data, [[16384.0]], None)).upper > 2**20000  # type: ignore[operator]
    result = verify.check(_claim(data, [[16385.0]], None))
    assert result.status == "UNPROVED"
    assert "too large to be enclosed" in result.reason
    upper = verify.check(_claim(data, [[-1e300]], None)).upper
    assert upper is not None
    exact = 3 * Fraction(1e300) / 2 + Fraction(2, 2**120)  # two units of the grid
    assert 0 <= upper - exact < Fraction(1, 2**250)


def test_modulus_is_the_least_over_coordinates() -> None:
    """Ridge (1, 0) and point at node 0, ridge (1, 1/2) at node 1: moduli 3, 2 and 1, 1/2."""
    terms = [
        {"kind": "ridge", "node": [0, 1], "mu": [[1.0, 0.0], [1.0, 0.5]]},
        {"kind": "point", "node": [0], "a": [[1.0, 0.0]]},
    ]
    zero, gap = ["0x0p+0"] * 2, Fraction(1)
    dual: Data = {"u": [], "r": [[zero, zero], [zero]]}
    result = verify.check(_claim(_problem(terms, 2, 2), [[0, 0], [0, 0]], dual))
    assert result.gap == gap
    assert result.distance_squared == 2 * gap / Fraction(1, 2)
    terms[0]["mu"] = [[1.0, 0.0], [1.0, 0.0]]
    result = verify.check(_claim(_problem(terms, 2, 2), [[0, 0], [0, 0]], dual))
    assert result.distance_squared is None


def _claim(data: Data, w: Any, dual: Any) -> Data:
    plain = canonical(data)
    claim = {"rtol": 1e-6, "upper": None, "lower": None}
    head = {"schema": "gtv-certificate/1", "sha256": digest(plain), "data": plain}
    return {**head, "claim": claim, "w": w, "dual": dual}


def _row_ends(kind: str, term: Data, row: int) -> tuple[Fraction, Fraction]:
    """Return the domain of m r from the table of SCHEMA.md, cut where it is infinite."""
    y, extra = Fraction(term["y"][row]), Fraction(term.get("delta", term.get("level", [0]))[-1])
    ends = {
        "squared": (-4, 4),
        "huber": (-2 * extra, 2 * extra),
        "pseudohuber": (-extra, extra),
        "absolute": (-1, 1),
        "quantile": (-extra, 1 - extra),
        "hinge": (min(-y, Fraction(0)), max(-y, Fraction(0))),
        "logistic": (-y, 1 - y),
        "poisson": (-y, 4),
    }[kind]
    return Fraction(ends[0]), Fraction(ends[1])


@st.composite
def weak_duality_cases(draw: st.DrawFn) -> tuple[Data, Data, list[Any]]:
    """Draw data with one term of any kind, multipliers in its domain and any feasible w.

    A point term at every node takes what the flow and the multipliers leave.
    """
    n, d = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    number = st.fractions(-3, 3, max_denominator=9)
    part = st.fractions(0, 1, max_denominator=5)
    dyadic = st.integers(-32, 32).map(lambda x: x / 16)
    kind = draw(st.sampled_from(sorted(set(TERMS) - {"multinomial"})))
    w = [[draw(number) for _ in range(d)] for _ in range(n)]
    r: list[Any] = []
    image = [[Fraction(0)] * d for _ in range(n)]
    if kind in ROWS:
        counts = [draw(st.integers(0, 3)) for _ in range(n)]
        node = [i for i, m in enumerate(counts) for _ in range(m)]
        size = len(node)
        levels = {"logistic": [0.0, 1.0], "hinge": [-1.0, 1.0], "poisson": [0.0, 1.0, 3.0]}
        y = [draw(st.sampled_from(levels[kind]) if kind in levels else dyadic) for _ in node]
        term: Data = {"kind": kind, "node": node, "y": y,
                      "X": [[draw(dyadic) for _ in range(d)] for _ in node]}  # fmt: skip
        if kind in ("huber", "pseudohuber"):
            term["delta"] = [draw(st.integers(1, 16)) / 16] * size
        if kind == "quantile":
            term["level"] = [draw(st.integers(1, 15)) / 16] * size
        for row, i in enumerate(node):
            low, high = _row_ends(kind, term, row)
            v = (low + (high - low) * draw(part)) / counts[i]
            r.append(_text(v))
            for c in range(d):
                image[i][c] += v * Fraction(term["X"][row][c])
    else:
        node = sorted(draw(st.sets(st.integers(0, n - 1))))
        rows = [[draw(number) for _ in range(d)] for _ in node]
        positive = st.integers(1, 32).map(lambda x: x / 16)
        wide = draw(st.booleans())
        term = {"kind": kind, "node": node}
        if kind == "point":
            term["a"] = [[draw(dyadic) for _ in range(d)] for _ in node]
        elif kind in ("ridge", "l1"):
            some = st.one_of(st.just(0.0), positive)
            key = "mu" if kind == "ridge" else "kappa"
            term[key] = [[draw(some) for _ in range(d)] if wide else draw(positive) for _ in node]
            for v, size in zip(rows, term[key], strict=True):
                for c in range(d):
                    end = Fraction(size[c] if wide else size)
                    if kind == "l1":
                        v[c] = max(-end, min(end, v[c]))
                    elif end == 0:
                        v[c] = Fraction(0)
        elif kind == "box":
            pairs = [[sorted((draw(dyadic), draw(dyadic))) for _ in range(d)] for _ in node]
            term["lower"] = [[-INF if draw(st.booleans()) else p[0] for p in q] for q in pairs]
            term["upper"] = [[INF if draw(st.booleans()) else p[1] for p in q] for q in pairs]
            for i, v, low, high in zip(node, rows, term["lower"], term["upper"], strict=True):
                for c in range(d):
                    v[c] = v[c] if low[c] > -INF or v[c] > 0 else Fraction(0)
                    v[c] = v[c] if high[c] < INF or v[c] < 0 else Fraction(0)
                    w[i][c] = max(w[i][c], Fraction(low[c])) if low[c] > -INF else w[i][c]
                    w[i][c] = min(w[i][c], Fraction(high[c])) if high[c] < INF else w[i][c]
        else:
            term["total"] = [draw(positive) for _ in node]
            for i, total in zip(node, term["total"], strict=True):
                shares = [draw(part) + Fraction(1, 7) for _ in range(d)]
                w[i] = [x * Fraction(total) / sum(shares) for x in shares]
        r = [[_text(x) for x in v] for v in rows]
        for i, v in zip(node, rows, strict=True):
            image[i] = [a + b for a, b in zip(image[i], v, strict=True)]
    edges = [(i, i + 1) for i in range(n - 1)]
    flow = [[draw(st.fractions(-1, 1, max_denominator=7)) for _ in range(d)] for _ in edges]
    for (i, j), u in zip(edges, flow, strict=True):
        for c in range(d):
            image[i][c] += u[c]
            image[j][c] -= u[c]
    a = [[draw(dyadic) for _ in range(d)] for _ in range(n)]
    data = {**_problem([{"kind": "point", "node": list(range(n)), "a": a}, term], n, d),
            "edges": edges, "weights": [1.0] * len(edges)}  # fmt: skip
    rest = [[_text(-x) for x in row] for row in image]
    dual = {"u": [[_text(x) for x in row] for row in flow], "r": [rest, r]}
    return data, dual, [[_text(x) for x in row] for row in w]


@settings(max_examples=EXAMPLES)
@given(weak_duality_cases())
def test_no_feasible_pair_of_any_kind_has_a_negative_gap(
    case: tuple[Data, Data, list[Any]],
) -> None:
    data, dual, w = case
    result = verify.check(_claim(data, w, dual))
    assert result.status in ("CERTIFIED", "UNPROVED"), result.reason
    assert result.gap is not None
    assert result.gap >= 0
