"""Flows a part in 10^15 to 10^80 next to their capacities, before both checkers."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest

import verify
from verify.kernel.data import canonical, digest

DIGITS = Context(160)
SIZES = [3, 5, 8]


def circulation(p: float, u: list[Fraction]) -> dict[str, Any]:
    """Return one flow around a triangle whose edges have capacity 2; everything else is zero."""
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 3,
        "dim": len(u),
        "edges": [[0, 1], [0, 2], [1, 2]],
        "weights": [(2.0).hex()] * 3,
        "lam": (1.0).hex(),
        "penalty": {"kind": "pnorm", "p": p.hex()},
        "terms": [],
    }
    own, back = ([f"{s * x.numerator:#x}/{x.denominator:#x}" for x in u] for s in (1, -1))
    return {
        "schema": "gtv-certificate/1",
        "sha256": digest(canonical(data)),
        "data": data,
        "claim": {"rtol": 0, "upper": None, "lower": None},
        "w": [[0] * len(u)] * 3,
        "dual": {"u": [own, back, own], "r": []},
    }


def at_the_capacity(p: float) -> list[Fraction]:
    """Return a flow of norm 2, right to some 150 digits."""
    exact = Fraction(p) / (Fraction(p) - 1)
    q = DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    total = reduce(DIGITS.add, (DIGITS.power(x, q) for x in SIZES))
    norm = Fraction(DIGITS.power(total, DIGITS.divide(1, q)))
    return [2 * x / norm for x in SIZES]


@pytest.mark.parametrize("p", [1.1, 1.3, 3.5, 17.3])
def test_what_is_above_is_let_in_by_neither(
    p: float, javascript: Callable[..., list[dict[str, Any]]]
) -> None:
    flow, digits = at_the_capacity(p), (15, 20, 25, 30, *range(34, 46), 80)
    parts = [sign * Fraction(1, 10**n) for n in digits for sign in (1, -1)]
    documents = [circulation(p, [x * (1 + part) for x in flow]) for part in parts]
    answers = javascript([{"document": json.dumps(x).encode(), "rtol": 0.0} for x in documents])
    for part, document, answer in zip(parts, documents, answers, strict=True):
        wanted = "REFUTED" if part > 0 else "CERTIFIED"
        both = verify.check(document, rtol=0).status, answer["status"]
        if abs(part) >= Fraction(1, 10**30):
            assert both == (wanted, wanted), part
        assert set(both) <= {wanted, "UNPROVED"}, part
