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
from verify.kernel import powers as powers_module
from verify.kernel import work
from verify.kernel.data import canonical, digest
from verify.kernel.numbers import TEN50, integer_root
from verify.kernel.powers import BITS, PowerNorm, power, short_power

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
        low, high = rule.value(v)
        true = norm(v, rule.p)
        assert low <= true * (1 + TINY), v
        assert true * (1 - TINY) <= high, v
        assert high - low <= true / 2**60, v


@pytest.mark.parametrize("p", EXPONENTS[:-3])
def test_flows_are_told_from_their_capacity(p: float) -> None:
    """A part in 10^15 is enough to decide on either side, and what is outside is never let in."""
    rule = PowerNorm(p)
    for u in vectors(20):
        true = norm(u, rule.q) * (1 << 500)
        flow = [x << 500 for x in u]
        assert rule.is_within(flow, int(true * (1 + Fraction(1, 10**15)))) is True
        assert rule.is_within(flow, int(true * (1 - Fraction(1, 10**15)))) is False
        assert rule.is_within(flow, int(true * (1 - TINY))) is not True


@pytest.mark.parametrize("p", EXPONENTS)
def test_one_entry_at_its_capacity_is_decided_exactly(p: float) -> None:
    rule, above = PowerNorm(p), Fraction(7) + Fraction(1, 2**5000)
    assert rule.is_within([0, -7], 7) is True
    assert rule.is_within([0, above], 7) is False
    assert rule.is_within([3, -4], 7) is True
    assert rule.value([0, -7, 0]) == (7, 7)
    assert rule.is_within([0, 0], 7) is True


@pytest.mark.parametrize(
    ("parts", "top", "answer"),
    [
        ([(1, 2), (1, 2)], (4, 5), True),
        ([(1, 2), (1, 3)], (4, 6), None),
        ([(1, 2), (2, 3)], (2, 2), False),
        ([(1, 2), (2, 3)], (2, 3), None),
    ],
)
def test_flows_are_decided_by_the_far_sides(
    parts: Any, top: Any, answer: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upper bounds of powers against the lower one of the capacity, or the other way round."""
    monkeypatch.setattr(powers_module, "powers", lambda *arguments: (parts, top))
    assert PowerNorm(3.0).is_within([2, 2], 3) is answer


def test_norms_are_enclosed_by_the_far_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that are wrong by much, on the sides that are said."""
    found = [([(5, 7), (8, 11)], (9, 11)), ([(3, 4)], (2, 2)), ([(6, 8)], (2, 2))]
    seen = []

    def powers(values: Any, top: Any, s: Fraction) -> Any:
        seen.append((list(values), top, s))
        return found[len(seen) - 1]

    monkeypatch.setattr(powers_module, "powers", powers)
    assert PowerNorm(3.0).value([-2, 5]) == (Fraction(5 * 3, 2), 5 * 4)
    third = Fraction(1, 3)
    ratios = [Fraction(13, 11)], [Fraction(18, 9)]
    assert seen == [([2, 5], 5, 3), (ratios[0], 1, third), (ratios[1], 1, third)]
    seen.clear()
    found[0] = [(0, 7), (8, 11)], (9, 11)  # the largest is one of the sum, whatever its enclosure
    PowerNorm(3.0).value([-2, 5])
    assert seen[1] == ([1], 1, third)


def test_short_powers_are_the_integers_below_and_above() -> None:
    rng = random.Random(1)
    for _ in range(300):
        s = Fraction(rng.randint(1, 16), rng.randint(1, 16))
        x = Fraction(rng.getrandbits(80) + 1, rng.choice((1, 3, 1 << 70)))
        low, high = short_power(x, s)
        goal = x**s.numerator * (1 << BITS * s.denominator)
        if s.denominator == 1:
            assert low == high == goal
        else:
            assert low**s.denominator <= goal <= high**s.denominator
            assert (high == low) == (low**s.denominator == goal)
            assert high - low <= 1


def test_roots_of_integers() -> None:
    for b in range(2, 17):
        for n in (0, 1, 2, 7, 2**b, 3**b - 1, 3**b, 10**60 + 1, 7 ** (9 * b), 7 ** (9 * b) - 1):
            root = integer_root(n, b)
            assert root**b <= n < (root + 1) ** b


def test_other_powers_are_enclosed() -> None:
    """With exponents so large that the rounding of a logarithm is all there is, too."""
    tiny = [Fraction(1, 10**k) for k in (20, 70, 90)]
    for x in (Fraction(1, 3), 1 - tiny[0], 1 - tiny[1], tiny[2]):
        for s in (Fraction(1, 10**6), Fraction(17, 16), Fraction(10**20), Fraction(10**65)):
            low, high = power(x, s)
            assert 0 <= low <= oracle(x, s) * TEN50 <= high <= TEN50 + 3
    low, high = power(Fraction(7, 2), Fraction(1, 17))
    assert low < oracle(Fraction(7, 2), Fraction(1, 17)) * TEN50 < high <= low + 10


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
