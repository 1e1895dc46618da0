"""p-norms with roots and powers: flows in their balls, outside, and too close to tell."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F

from _cases import Case, case
from _numbers import Document, double, hashed, number, numbers
from _plants import POWERS, Plant

TINY = F(1, 2**900)


def circulation(p: str, flow: list[int], c: F, more: F = F(0)) -> Document:
    """Return one flow around a triangle whose edges have capacity c; everything else is zero."""
    u = [F(x) for x in flow]
    u[-1] += more
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 3,
        "dim": len(u),
        "edges": [[0, 1], [0, 2], [1, 2]],
        "weights": [double(c)] * 3,
        "lam": double(1),
        "penalty": {"kind": "pnorm", "p": float(p).hex()},
        "terms": [],
    }
    return hashed(
        {
            "schema": "gtv-certificate/1",
            "data": data,
            "claim": {"rtol": number(0), "upper": None, "lower": None},
            "w": [[0] * len(u)] * 3,
            "dual": {"u": [numbers(v) for v in (u, [-x for x in u], u)], "r": []},
        }
    )


def powers() -> Iterator[Case]:
    """Return all of them."""
    for penalty, kind in zip(POWERS, ("none", "huber", "logistic", "box"), strict=True):
        for d in (1, 2, 6):
            if d < 6 or kind != "box":
                document = Plant(kind, penalty, d).document()
                yield case(f"{kind}-{penalty}-{d}", "certified", document)
    # 3^3 + 4^3 + 5^3 = 6^3 with q = 3, and q-norms of one entry, whatever q is: no enclosure.
    exact = "1.5", [3, -4, 5], F(6)
    yield case("power-at-the-capacity", "certified", circulation(*exact), rtol=0.0)
    yield case("power-just-above", "false document", circulation(*exact, TINY))
    for p in ("1.1", "3"):
        alone = circulation(p, [0, 7], F(7))
        yield case(f"power-of-one-entry-{p}", "certified", alone, rtol=0.0)
        above = circulation(p, [0, 7], F(7), TINY)
        yield case(f"power-of-one-entry-above-{p}", "false document", above)
    # 2 (1/2)^q < 1 for q = 11, and 8 (1/4)^(3/2) = 1, which powers of 3 and 12 do not show.
    yield case("power-inside", "certified", circulation("1.1", [1, 1], F(2)), rtol=0.0)
    yield case("power-too-close", "too close", circulation("3", [3] * 8, F(12)))
    for name, more, answer in (("below", F(-1, 2**60), "certified"),
                               ("above", F(1, 2**60), "false document")):  # fmt: skip
        yield case(f"power-clearly-{name}", answer, circulation("3", [3] * 8, F(12), more))
