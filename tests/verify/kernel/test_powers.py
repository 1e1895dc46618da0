"""Norms with powers: enclosed on their sides, tight, and no flow outside its ball is let in."""

from __future__ import annotations

import copy
import random
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest
from _plain_instances import instance, solve

import verify
from verify.kernel import grid_powers, work
from verify.kernel import powers as powers_module
from verify.kernel.data import canonical, digest
from verify.kernel.grid_powers import GRID
from verify.kernel.powers import PowerNorm

DIGITS = Context(200)
# 4/3 as the double that it is has no short exponents, 1 + 2^-52 a q of 4.5e15.
TINY = Fraction(1, 10**100)
EXPONENTS = (1.5, 3.0, 4 / 3, 1.1, 17.3, 16.0, 1.0625, 1 + 2.0**-52, 2.0**60, 1e300)


def oracle(x: Fraction | int, s: Fraction) -> Fraction:
    """Return x^s, right to some 150 digits unless s is very large."""
    x, s = (DIGITS.divide(Decimal(v.numerator), Decimal(v.denominator)) for v in (x, s))
    return Fraction(DIGITS.exp(DIGITS.multiply(s, DIGITS.ln(x))))


def norm(v: list[int], p: Fraction) -> Fraction:
    most = max(map(abs, v))
    total = sum((oracle(Fraction(abs(x), most), p) for x in v if x), Fraction(0))
    return most * oracle(total, 1 / p)


def vectors(count: int) -> list[list[int]]:
    rng = random.Random(count)
    sizes = [rng.choice((2, 3, 8)) for _ in range(count)]
    return [
        [rng.getrandbits(rng.randint(1, 90)) * rng.choice((-1, 0, 1)) for _ in range(d)] + [7]
        for d in sizes
    ]


@pytest.mark.parametrize("p", EXPONENTS)
def test_norms_are_enclosed_tightly(p: float) -> None:
    rule = PowerNorm(p)
    for v in vectors(20):
        low, high = (Fraction(x, 1 << GRID) for x in rule.value(v))
        true = norm(v, rule.p)
        assert low <= true * (1 + TINY), v
        assert true * (1 - TINY) <= high, v
        assert high - low <= true / 2**60, v


@pytest.mark.parametrize("p", EXPONENTS[:-3])
def test_flows_are_told_from_their_capacity(p: float) -> None:
    """A part in 10^30 is enough to decide on either side, and what is outside is never let in."""
    rule = PowerNorm(p)
    for u in vectors(20):
        true = norm(u, rule.q) * (1 << 500)
        flow = [x << 500 for x in u]
        for digits in (15, 20, 25, 30):
            part = Fraction(1, 10**digits)
            assert rule.is_within(flow, int(true * (1 + part))) is True
            assert rule.is_within(flow, int(true * (1 - part))) is False
        for digits in (35, 36, 37, 38, 40, 100):
            part = Fraction(1, 10**digits)
            assert rule.is_within(flow, int(true * (1 + part))) is not False
            assert rule.is_within(flow, int(true * (1 - part))) is not True


@pytest.mark.parametrize("p", EXPONENTS)
def test_one_entry_at_its_capacity_is_decided_exactly(p: float) -> None:
    rule, above = PowerNorm(p), Fraction(7) + Fraction(1, 2**5000)
    assert rule.is_within([0, -7], 7) is True
    assert rule.is_within([0, above], 7) is False
    assert rule.is_within([3, -4], 7) is True
    assert rule.value([0, -7, 0]) == (7 << GRID, 7 << GRID)
    assert rule.is_within([0, 0], 7) is True


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([(1, 2), (2, 3)], True),
        ([(1, 2), (2, 4)], None),
        ([(1, 2), (4, 5)], None),
        ([(2, 3), (4, 5)], False),
    ],
)
def test_flows_are_decided_by_the_far_sides(
    parts: list[tuple[int, int]], answer: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upper bounds of powers against 1, or lower ones; in fifths here."""
    found = iter(parts)
    monkeypatch.setattr(powers_module, "ONE", 5)
    monkeypatch.setattr(grid_powers, "power", lambda *arguments: next(found))
    assert PowerNorm(3.0).is_within([2, 2], 3) is answer


def test_norms_are_enclosed_by_the_far_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Powers that are wrong by much, on the sides that are said; in tenths here."""
    found = [(3, 7), (8, 11), (12, 13)]
    seen = []

    def power(*arguments: int) -> tuple[int, int]:
        seen.append(arguments)
        return found[len(seen) - 1]

    monkeypatch.setattr(powers_module, "ONE", 10)
    monkeypatch.setattr(grid_powers, "power", power)
    # 13/10 times 1 + (18 - 11) / (3 11), rounded up
    assert PowerNorm(3.0).value([-2, 5]) == (5 * 12, 5 * (13 + 2 + 1))
    assert seen == [(2, 5, 3, 1), (5, 5, 3, 1), (11, 10, 1, 3)]
    seen.clear()
    found[0], found[1] = (0, 7), (8, 11)  # the largest is one of the sum, whatever is found
    PowerNorm(3.0).value([-2, 5])
    assert seen[2] == (10, 10, 1, 3)


def integer_root(n: int, q: int) -> int:
    """Return the largest integer whose q-th power is at most n."""
    low, high = 0, 2 << n.bit_length() // q
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**q <= n else (low, middle)
    return low


@pytest.mark.parametrize("p", [1.5, 1.25, 1.0625])
def test_integer_powers_of_flows_are_compared_exactly(p: float) -> None:
    """One unit of the second entry, 2^-400 of the capacity, makes the difference."""
    rule = PowerNorm(p)
    # 1.0625 has q = 17, which is not multiplied out: undecided next to the capacity
    q, cap = int(rule.q), 3 << 400
    first = cap - (cap >> 9)
    second = integer_root(cap**q - first**q, q)
    exact = q <= powers_module.SHORT
    assert rule.is_within([first, second], cap) is (True if exact else None)
    assert rule.is_within([first, second + 1], cap) is (False if exact else None)


def test_sums_of_cubes() -> None:
    assert PowerNorm(1.5).is_within([3, 4, 5], 6) is True
    assert PowerNorm(1.5).is_within([9, 10], 12) is False  # 12^3 + 1


def solved(p: float, d: int, loss: str = "unlabelled") -> tuple[dict[str, Any], Any, Any]:
    """Return a problem with its solution; loss "unlabelled" has nodes without data."""
    data = instance(16, loss, "l2", "connected", 10, d)
    data["penalty"] = {"kind": "pnorm", "p": p}
    return data, *solve(data)


@pytest.mark.parametrize("p", [1.5, 3.0, 4 / 3, 1.1])
def test_a_forged_certificate_is_refused(p: float) -> None:
    """The bound cannot be raised, by the claim or by a flow outside of its ball."""
    data, w, u = solved(p, 3)
    document = dict(verify.certify(data, w, u, rtol=1e-7).document)
    honest = verify.check(document, rtol=1e-7)
    assert honest.status == "CERTIFIED"
    assert honest.lower is not None
    assert honest.upper is not None
    claim = {**document["claim"], "lower": ratio(honest.lower + Fraction(1, 10**40))}
    assert verify.check({**document, "claim": claim}, rtol=1e-7).status == "REFUTED"
    # A better optimum than there is: everything of the witness a part in 10^9 larger.
    larger = copy.deepcopy(document)
    larger["dual"] = times(document["dual"], 1 + Fraction(1, 10**9))
    forged = verify.check(larger, rtol=1e-7)
    assert forged.status == "REFUTED"
    assert "above its capacity" in forged.reason
    # The flow of a smaller p is in larger balls.
    smaller = copy.deepcopy(document)
    smaller["data"]["penalty"]["p"] = (8 * p).hex()
    smaller["sha256"] = digest(canonical(smaller["data"]))
    assert verify.check(smaller, rtol=1e-7).status == "REFUTED"


def ratio(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def times(dual: Any, factor: Fraction) -> Any:
    """Return all numbers of a witness times a factor."""
    if isinstance(dual, dict):
        return {key: times(value, factor) for key, value in dual.items()}
    if isinstance(dual, list):
        return [times(value, factor) for value in dual]
    (v,), k = verify.kernel.numbers.scaled([dual])
    return ratio(Fraction(v) / (1 << k) * factor)


def test_a_document_of_long_numbers_is_given_up_in_time() -> None:
    """Powers of long numbers are counted before they are taken."""
    long = (1 << 60_000) + 1
    rule = PowerNorm(16.0)
    with work.counted(work.STEPS):
        work.read(1, 60_000, [], 0)
        with pytest.raises(verify.kernel.verdict.Verdict, match="budget"):
            rule.total([[long, long - 1]] * 200, [1] * 200, 0)
