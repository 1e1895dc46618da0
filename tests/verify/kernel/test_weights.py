"""Weights of rows and of points in the kernel: rules, data, and certificates with them."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _plain_instances import instance, solve

import verify
from verify.kernel.data import ROWS, TERMS, WEIGHTED, canonical, digest
from verify.kernel.losses import Term, term_of
from verify.kernel.numbers import table, unit
from verify.kernel.rules import ENCLOSED
from verify.kernel.verdict import Verdict

Data = dict[str, Any]
TINY = Fraction(1, 2**900)
# No power of two, tiny and huge: doubles that are far from 1/m for any m.
WEIGHTS = (0.3, 2.5, 1e-300, 1e300)
FIELDS: dict[str, Data] = {
    "squared": {"y": 0.75},
    "huber": {"y": -0.5, "delta": 0.375},
    "pseudohuber": {"y": -0.5, "delta": 0.375},
    "absolute": {"y": 0.25},
    "quantile": {"y": 1.0, "level": 0.3125},
    "hinge": {"y": 1.0},
    "logistic": {"y": 1.0},
    "poisson": {"y": 1.5},
}
# Ends of the multipliers without a weight; None: there is none.
ENDS: dict[str, tuple[Fraction | None, Fraction | None]] = {
    "squared": (None, None),
    "huber": (Fraction(-3, 4), Fraction(3, 4)),
    "pseudohuber": (Fraction(-3, 8), Fraction(3, 8)),
    "absolute": (Fraction(-1), Fraction(1)),
    "quantile": (Fraction(-5, 16), Fraction(11, 16)),
    "hinge": (Fraction(-1), Fraction(0)),
    "logistic": (Fraction(-1), Fraction(0)),
    "poisson": (Fraction(-3, 2), None),
}


def problem(terms: list[Data], n: int = 1, d: int = 1) -> Data:
    return {
        "schema": "gtv-problem/1", "n_nodes": n, "dim": d, "edges": [], "weights": [], "lam": 1.0,
        "penalty": {"kind": "l1"}, "terms": terms,
    }  # fmt: skip


def rows(kind: str, weights: list[float] | None, m: int = 1) -> Term:
    term: Data = {"kind": kind, "node": [0] * m, "X": [[1.0]] * m}
    term |= {key: [value] * m for key, value in FIELDS[kind].items()}
    if weights is not None:
        term["weight"] = weights
    return term_of(canonical(problem([term]))["terms"][0], 1)


def text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def value(rules: Term, z: Fraction) -> tuple[Fraction, Fraction]:
    found, k = table([[text(z)]], 1, 1, "w")
    return rules.value(found, k)


def conjugate(rules: Term, *r: Fraction) -> Fraction:
    return rules.dual([text(x) for x in r], "r")[0]


def inner(kind: str) -> list[Fraction]:
    """Multipliers inside the interval of a row without a weight."""
    first, last = ENDS[kind]
    low, high = Fraction(-2) if first is None else first, Fraction(2) if last is None else last
    return [low + (high - low) * Fraction(i, 8) for i in range(1, 8)]


def test_every_kind_with_weights_is_here() -> None:
    # Rows with several classes have a rule and tests of their own.
    assert set(FIELDS) == set(ENDS) == set(ROWS) & set(WEIGHTED) - {"multinomial"}
    assert set(WEIGHTED) - set(ROWS) == {"point"}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("kind", FIELDS)
class TestRule:
    def test_the_loss_is_multiplied(self, kind: str, weight: float) -> None:
        one, many, c = rows(kind, None), rows(kind, [weight]), Fraction(weight)
        for z in (Fraction(-7, 3), Fraction(0), Fraction(5, 8), Fraction(3)):
            assert value(many, z) == tuple(c * bound for bound in value(one, z))

    def test_its_conjugate_is(self, kind: str, weight: float) -> None:
        """(c f)*(c p) = c f*(p), from above, and no further above than without weights."""
        one, many, c = rows(kind, None), rows(kind, [weight]), Fraction(weight)
        for p in inner(kind):
            assert conjugate(many, c * p) == pytest.approx(c * conjugate(one, p), rel=1e-30)
            assert conjugate(many, c * p) + value(many, Fraction(3, 8))[1] >= c * p * Fraction(3, 8)

    def test_so_is_the_domain_to_the_last_digit(self, kind: str, weight: float) -> None:
        many, c = rows(kind, [weight]), Fraction(weight)
        for end, outwards in zip(ENDS[kind], (-TINY, TINY), strict=True):
            if end is None:
                conjugate(many, outwards * 2**1000)
                continue
            conjugate(many, c * end)
            with pytest.raises(Verdict, match=f"outside the domain of the {kind} conjugate"):
                conjugate(many, c * (end + outwards))

    def test_half_is_the_mean_of_two(self, kind: str, weight: float) -> None:
        mean, halves = rows(kind, None, 2), rows(kind, [0.5, 0.5], 2)
        for p in inner(kind):
            assert value(mean, p) == value(halves, p)
            both = conjugate(mean, p / 2, p / 2), conjugate(halves, p / 2, p / 2)
            # What is enclosed is so in other units.
            assert both[0] == pytest.approx(both[1], rel=0 if kind not in ENCLOSED else 1e-40)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_points(weight: float) -> None:
    term = {"kind": "point", "node": [0], "a": [[0.5, -1.0]], "weight": [weight]}
    rules, c = term_of(canonical(problem([term], d=2))["terms"][0], 2), Fraction(weight)
    found, k = table([["0x3p0", "0x1/0x3"]], 1, 2, "w")
    exact = c * (Fraction(5, 2) ** 2 + Fraction(4, 3) ** 2)
    assert rules.value(found, k) == (exact, exact)
    r = [Fraction(1, 3), Fraction(-2)]
    bound = rules.dual([[text(x) for x in r]], "r")[0]
    assert bound == r[0] / 2 - r[1] + (r[0] ** 2 + r[1] ** 2) / (4 * c)
    assert rules.lower_moduli() == [(0, [2 * c, 2 * c])]


def test_many_weights_are_enclosed() -> None:
    """More than 64 denominators: from above, and close."""
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200)
    rules, r = rows("squared", weights.tolist(), 200), Fraction(1, 3)
    exact = sum(r * Fraction(3, 4) + r**2 / (4 * Fraction(c)) for c in weights)
    assert exact <= conjugate(rules, *[r] * 200) <= exact + Fraction(1, 2**240)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([0.0], "entry 0 must be positive, got 0.0"),
        ([-1.0], "entry 0 must be positive, got -1.0"),
        ([float("nan")], "expected a finite double"),
        ([float("inf")], "expected a finite double"),
        ([1.0, 1.0], "must be a list of length 1"),
        (None, "must be a list of length 1"),
    ],
)
def test_weights_that_are_none(weight: Any, words: str) -> None:
    term = {"kind": "squared", "node": [0], "X": [[1.0]], "y": [0.0], "weight": weight}
    with pytest.raises(Verdict, match=rf"terms\[0\]\.weight:? .*{words}"):
        canonical(problem([term]))


def test_other_kinds_have_none() -> None:
    for kind in set(TERMS) - set(WEIGHTED):
        term = {"kind": kind, "node": [], "weight": [], **{key: [] for key in TERMS[kind]}}
        with pytest.raises(Verdict, match=r"terms\[0\]: unknown \['weight'\]"):
            canonical(problem([term]))


def weighted_instance(seed: int = 3) -> Data:
    """Every kind of rows with weights; points with weights beside them."""
    data, rng = instance(seed, "every_kind", "l2"), np.random.default_rng(seed)
    n, d = data["n_nodes"], data["dim"]
    point = {"kind": "point", "node": np.arange(n), "a": rng.standard_normal((n, d))}
    data["terms"].append(point)
    for term in data["terms"]:
        if term["kind"] in WEIGHTED:
            term["weight"] = rng.uniform(0.05, 0.6, len(term["node"]))
    return data


@pytest.fixture(scope="module")
def document() -> Data:
    data = weighted_instance()
    certificate = verify.certify(data, *solve(data))
    assert certificate.status == "CERTIFIED"
    found: Data = certificate.document
    return found


def changed(document: Data, kind: str, factor: float) -> Data:
    """The document with the weights of a kind multiplied, and the hash of what it says then."""
    out = copy.deepcopy(document)
    (term,) = (t for t in out["data"]["terms"] if t["kind"] == kind)
    term["weight"] = [(float.fromhex(c) * factor).hex() for c in term["weight"]]
    out["sha256"] = digest(canonical(out["data"]))
    return out


@pytest.mark.parametrize("factor", [0.25, 4.0])
@pytest.mark.parametrize("kind", [*FIELDS, "point"])
def test_other_weights_are_not_certified(document: Data, kind: str, factor: float) -> None:
    assert verify.check(document).status == "CERTIFIED"
    assert verify.check(changed(document, kind, factor)).status != "CERTIFIED"
    lie = {**changed(document, kind, factor), "sha256": document["sha256"]}
    assert verify.check(lie).status == "REFUTED"


def test_bounds_are_those_of_repeated_rows() -> None:
    """Integer weights times 1/8, and each row so often: the same bounds at the same witness."""
    rng = np.random.default_rng(5)
    for kind in FIELDS:
        times = rng.integers(1, 4, 3)
        weights = (times / 8).tolist()
        many = rows(kind, weights, 3)
        all_rows = rows(kind, [1 / 8] * int(times.sum()), int(times.sum()))
        p = inner(kind)[2]
        assert value(many, p) == value(all_rows, p)
        r = [p * Fraction(c) for c in weights]
        repeated = [p / 8] * int(times.sum())
        assert conjugate(many, *r) == pytest.approx(conjugate(all_rows, *repeated), rel=1e-30)


def test_moduli_are_read_with_their_unit() -> None:
    term = {"kind": "point", "node": [0], "a": [[0.0]], "weight": [0.375]}
    rules = term_of(canonical(problem([term]))["terms"][0], 1)
    assert rules.lower_moduli() == [(0, [Fraction(3, 4)])]
    assert rules.modulus[1] >= 2
    assert unit(rules.modulus[1]) <= 1
