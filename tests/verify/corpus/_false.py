"""Certificates that lie, and points that are proved not to be solutions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

from _accepted import tiny
from _cases import Case, case, changed, encoded, put, without
from _numbers import Document, digest, double, hashed, number
from _partitions import parsed
from _plants import CLASSES, PENALTIES, Plant

LIE = "false document"


def added(text: Any, amount: F) -> str:
    """Return a witness number plus an amount."""
    return number(parsed(text) + amount)


def hashes() -> Iterator[Case]:
    base = Plant("squared", "l2").document()
    for name, value in (
        ("zeros", "0" * 64),
        ("short", base["sha256"][:-1]),
        ("capitals", base["sha256"].upper()),
        ("null", None),
        ("list", [base["sha256"]]),
        ("digit", base["sha256"].replace(base["sha256"][7], "x")),
    ):
        yield case(f"hash-{name}", LIE, {**base, "sha256": value})
    y = ["data", "terms", 0, "y", 0]
    yield case("hash-of-other-data", LIE, put(base, y, double(77)))
    yield case(
        "hash-of-other-labels",
        LIE,
        put(base, ["data", "nodes"], list("abcdefgh")[: base["data"]["n_nodes"]]),
    )
    yield case(
        "hash-of-terms-in-another-order", LIE, put(base, ["data", "terms"], lambda t: t[::-1])
    )
    outside = without(base, ["data"])
    other = {**base["data"], "lam": double(2)}
    yield case("given-data-are-others", LIE, outside, data=encoded(other))
    yield case("given-data-differ", LIE, base, data=encoded(other))
    yield case("embedded-data-differ", LIE, {**base, "data": other}, data=encoded(base["data"]))
    # The same loss in other words is another document.
    ridge = Plant("ridge", "l2", 1).document()
    mu = [[x] for x in ridge["data"]["terms"][0]["mu"]]
    yield case("hash-of-the-other-form-of-mu", LIE, put(ridge, ["data", "terms", 0, "mu"], mu))
    spaced = {**tiny(), "sha256": digest(tiny()["data"])[::-1]}
    yield case("hash-backwards", LIE, spaced)


def weights() -> Iterator[Case]:
    """Other weights make other problems, whose multipliers have other ends."""
    base = Plant("huber", "l2", 2, weighted=True).document()
    for term in (0, 1):
        path: list[Any] = ["terms", term, "weight"]
        doubled = put(base, ["data", *path, 0], lambda x: double(2 * F(float.fromhex(x))))
        yield case(f"hash-of-other-weights-{term}", LIE, doubled)
        left_out = without(base, ["data", *path])
        yield case(f"hash-of-no-weights-{term}", LIE, left_out)
    for kind in ("absolute", "quantile", "hinge", "logistic", "pseudohuber"):
        base = Plant(kind, "l2", 2, weighted=True).document()
        tiny_weights = [double(F(1, 2**40))] * len(base["data"]["terms"][0]["node"])
        yield case(f"weights-tiny-{kind}", LIE, changed(base, ["terms", 0, "weight"], tiny_weights))
    base = Plant("none", "l2", 2, weighted=True).document()
    path = ["terms", 0, "weight"]
    eight = changed(base, path, [double(8)] * base["data"]["n_nodes"])
    yield case("weights-of-points-changed", "relative gap", eight)


def conservation() -> Iterator[Case]:
    for k, penalty in enumerate(PENALTIES):
        base = Plant("squared", penalty, 2).document()
        amount = F(1, 2 ** (10 * k))
        yield case(
            f"flow-lost-{penalty}",
            LIE,
            put(base, ["dual", "u", 0, 0], lambda x, a=amount: added(x, a)),
        )
    base = Plant("huber", "l2", 2).document()
    point = ["dual", "r", 1, 0, 1]
    for name, amount in (("third", F(1, 3)), ("tiny", F(1, 2**20000)), ("much", F(-(10**30)))):
        yield case(f"slope-off-by-{name}", LIE, put(base, point, lambda x, a=amount: added(x, a)))
    yield case("rows-exchanged", LIE, put(base, ["dual", "u"], lambda u: [u[-1], *u[:-1]]))
    yield case(
        "flow-backwards", LIE, put(base, ["dual", "u"], lambda u: [[flip(x) for x in v] for v in u])
    )
    free = Plant("none", "l2", 2)
    lonely = changed(free.document(), ["n_nodes"], free.n + 1)
    lonely = changed(
        put(lonely, ["w", free.n], [0, 0]), ["edges"], lambda e: [*e, [free.n - 1, free.n]]
    )
    lonely = changed(lonely, ["weights"], lambda x: [*x, double(1)])
    yield case(
        "node-without-data", LIE, put(lonely, ["dual", "u", len(free.edges)], ["0x1p-99", 0])
    )


def flip(text: str) -> str:
    return text.removeprefix("-") if text.startswith("-") else f"-{text}"


def moved(plant: Plant, path: list[Any], i: int, along: list[F], by: F = F(7)) -> Document:
    """Add to a multiplier of the first term, and take it from the point's of the node."""
    document = put(plant.document(), ["dual", "r", 0, *path], lambda x: added(x, by))
    for j, a in enumerate(along):
        document = put(document, ["dual", "r", 1, i, j], lambda x, a=a: added(x, -by * a))
    return document


def domains() -> Iterator[Case]:
    """Multipliers and flows outside of their domains, with conservation."""
    for kind in ("huber", "pseudohuber", "absolute", "quantile", "hinge", "logistic"):
        for seed in range(2):
            plant = Plant(kind, "l2", 2, seed)
            term = plant.terms[0]
            x = [F(float.fromhex(c)) for c in term["X"][0]]
            for name, by in (("", F(7)), ("-down", F(-7))):
                lie = moved(plant, [0], term["node"][0], x, by)
                yield case(f"domain-{kind}-{seed}{name}", LIE, lie)
    for seed in range(2):
        # A chance of a class below zero, and the own class's: more than all there is.
        plant = Plant(CLASSES, "l1", 6, seed)
        term = plant.terms[0]
        x, y = (list(map(float.fromhex, term["X"][0])), int(float.fromhex(term["y"][0])))
        other = 0 if y else 1
        contrast = [F(a) * ((k == other) - (k == y)) for a in x for k in range(3)]
        for name, by in (("", F(7)), ("-down", F(-7))):
            lie = moved(plant, [0, 0], term["node"][0], contrast, by)
            yield case(f"domain-multinomial-{seed}{name}", LIE, lie)
        lie = put(plant.document(), ["dual", "r", 0, 0, 0], lambda text: added(text, F(1, 2**30)))
        yield case(f"multinomial-not-conserved-{seed}", LIE, lie)
        other_class = changed(plant.document(), ["terms", 0, "y", 0], double(F(other)))
        yield case(f"multinomial-another-class-{seed}", LIE, other_class)
    poisson = Plant("poisson", "l2", 2)
    term = poisson.terms[0]
    x = [F(float.fromhex(c)) for c in term["X"][0]]
    below = put(poisson.document(), ["dual", "r", 0, 0], lambda text: added(text, F(-99)))
    for j, a in enumerate(x):
        below = put(
            below, ["dual", "r", 1, term["node"][0], j], lambda text, a=a: added(text, 99 * a)
        )
    yield case("domain-poisson", LIE, below)
    for kind, j in (("ridges", 0), ("l1", 0), ("l1s", 1)):
        plant = Plant(kind, "l2", 2)
        unit = [F(int(k == j)) for k in range(2)]
        yield case(f"domain-{kind}", LIE, moved(plant, [0, j], plant.terms[0]["node"][0], unit))
    box = Plant("box", "l2", 2)
    i = box.terms[0]["node"][0]
    below = put(box.document(), ["dual", "r", 0, 0, 0], lambda text: added(text, F(-7)))
    yield case(
        "domain-box", LIE, put(below, ["dual", "r", 1, i, 0], lambda text: added(text, F(7)))
    )
    for penalty in ("l1", "l2", "linf", "pnorm1", "pnorm2", "pnorminf", "singular"):
        yield case(f"capacity-{penalty}", LIE, overloaded(Plant("none", penalty, 2), F(50)))
        yield case(f"capacity-{penalty}-down", LIE, overloaded(Plant("none", penalty, 2), F(-50)))
    plant = Plant("l1", "l2", 2)
    unit, i = ["dual", "r", 0, 0, 1], plant.terms[0]["node"][0]
    low = put(plant.document(), unit, lambda text: added(text, F(-7)))
    yield case("domain-l1-down", LIE, put(low, ["dual", "r", 1, i, 1], lambda t: added(t, F(7))))
    for penalty in ("l1", "l2", "linf"):
        plant = Plant("none", penalty, 1, seed=3)
        over = LIE_BY - F(0)
        room = plant.weights[0] * F(5, 4) - plant.u[0][0]
        yield case(f"capacity-just-above-{penalty}", LIE, overloaded(plant, room + over))


LIE_BY = F(1, 2**900)


def overloaded(plant: Plant, amount: F) -> Document:
    """Send more over the first edge, and let the points at its ends take it."""
    head, tail = plant.edges[0]
    document = put(plant.document(), ["dual", "u", 0, 0], lambda x: added(x, amount))
    document = put(document, ["dual", "r", 0, head, 0], lambda x: added(x, -amount))
    return put(document, ["dual", "r", 0, tail, 0], lambda x: added(x, amount))


NO_NULL_SPACE: Document = {"root": [], "null_space": [], "x": [[0, 0]]}


def two_equal_nodes() -> Document:
    """Return an instance whose flow is zero."""
    data = Plant("none", "quadratic", 2).data()
    a = [[double(1), double(2)]] * 2
    point = {"kind": "point", "node": [0, 1], "a": a}
    data |= {"n_nodes": 2, "edges": [[0, 1]], "weights": [double(1)], "terms": [point]}
    return hashed(
        {
            "schema": "gtv-certificate/1",
            "data": data,
            "claim": {"rtol": 0, "upper": None, "lower": None},
            "w": [[1, 2]] * 2,
            "dual": {"u": [[0, 0]], "r": [[[0, 0]] * 2], "quadratic": None},
        }
    )


def quadratics() -> Iterator[Case]:
    inside = ["dual", "quadratic"]
    singular = Plant("none", "singular", 2).document()
    yield case("null-space-missing", LIE, put(singular, [*inside, "null_space"], []))
    yield case("null-space-wrong", LIE, put(singular, [*inside, "null_space"], [[1, 1]]))
    yield case("root-too-large", LIE, put(singular, [*inside, "root"], [[3, 0]]))
    regular = Plant("none", "quadratic", 2).document()
    yield case("null-space-too-much", LIE, put(regular, [*inside, "null_space"], [["0x1p-90", 0]]))
    negative = changed(regular, ["penalty", "Q", 0, 0], double(-2))
    yield case("indefinite", LIE, negative)
    still = two_equal_nodes()
    yield case("null-space-of-no-use", "certified", put(still, inside, NO_NULL_SPACE), rtol=0.0)
    false_space = {**NO_NULL_SPACE, "null_space": [[1, 0]]}
    yield case("null-space-wrong-without-flow", LIE, put(still, inside, false_space))
    corner = [[double(1), double(0)], [double(0), double(0)]]
    across = changed(regular, ["penalty", "Q"], corner)
    yield case("null-space-askew", LIE, put(across, [*inside, "null_space"], [["0x1p-1", 2]]))
    zero = changed(regular, ["penalty", "Q"], [[double(0)] * 2] * 2)
    yield case("margin-zero", LIE, zero)
    yield case("x-far-off", "relative gap", put(regular, [*inside, "x", 0], [100, 0]))
    near = put(regular, [*inside, "x", 0, 0], lambda x: added(x, F(1, 2**40)))
    yield case("x-rounded", "certified", near)
    yield case("x-rounded-exactly", "relative gap", near, rtol=0.0)
    yield case("root-smaller", "certified", put(regular, [*inside, "root"], []), rtol=0.0)
    yield case(
        "null-space-longer",
        "certified",
        put(singular, [*inside, "null_space"], [["0x1/0x3", "-0x1/0x3"], [1, -1], [0, 0]]),
        rtol=0.0,
    )


def points() -> Iterator[Case]:
    """Points that are not feasible, not good enough, and claims that are not proved."""
    box, simplex = Plant("box", "l2", 2).document(), Plant("simplex", "l2", 2).document()
    i, k = (x["data"]["terms"][0]["node"][0] for x in (box, simplex))
    wrong = "w is not feasible"
    yield case("outside-its-box", wrong, put(box, ["w", i, 1], lambda x: added(x, F(1, 2**500))))
    yield case(
        "off-its-simplex", wrong, put(simplex, ["w", k, 1], lambda x: added(x, F(1, 3**300)))
    )
    negative = put(simplex, ["w", k, 0], lambda x: added(x, F(-9)))
    yield case(
        "negative-on-its-simplex", wrong, put(negative, ["w", k, 1], lambda x: added(x, F(9)))
    )
    disjoint = {"kind": "box", "node": [0], "lower": [[double(5)]], "upper": [[double(6)]]}
    two = changed(
        tiny(),
        ["terms"],
        lambda t: [*t, disjoint, {**disjoint, "lower": [[double(1)]], "upper": [[double(2)]]}],
    )
    for name, w in (("one", 1), ("other", 5)):
        case_of = put({**two, "dual": None}, ["w", 0, 0], w)
        yield case(f"disjoint-boxes-{name}", wrong, case_of)
    near = tiny(F(1), F(3, 2))
    for name, claim in (
        ("upper", {"rtol": 0, "upper": "0x3p-4", "lower": None}),
        ("lower", {"rtol": 0, "upper": None, "lower": "0x1p-300"}),
        ("both", {"rtol": 0, "upper": -1, "lower": 1}),
    ):
        yield case(f"false-claim-{name}", LIE, {**near, "claim": claim}, rtol=1.0)
    for kind in ("logistic", "poisson"):
        base = Plant(kind, "squared", 2).document()
        value = objective_below(base)
        yield case(f"false-claim-{kind}", LIE, put(base, ["claim", "upper"], number(value)))
        claim = put(base, ["claim", "upper"], number(value + F(1, 2**20)))
        yield case(f"true-claim-{kind}", "certified", claim)
    both = {**near, "better": [[1]], "claim": {"rtol": 0, "upper": 0, "lower": 0}}
    yield case("false-claim-but-a-better-point", "w is not within rtol", both)
    lie = put({**near, "better": [[1]]}, ["dual", "r", 0, 0, 0], 1)
    yield case("better-point-but-a-false-dual", LIE, lie)
    bad_hash = {**near, "sha256": "", "w": "nothing"}
    yield case("false-hash-before-a-bad-shape", LIE, bad_hash)


def objective_below(document: Document) -> F:
    """Return a number just below P at the point of a plant with squared penalty, in floats."""
    data = document["data"]
    w = [[float(parsed(x)) for x in row] for row in document["w"]]
    rows, point = data["terms"]
    total = 0.0
    for i, x, text in zip(rows["node"], rows["X"], rows["y"], strict=True):
        z = sum(float.fromhex(a) * b for a, b in zip(x, w[i], strict=True))
        loss = math.log1p(math.exp(z)) if rows["kind"] == "logistic" else math.exp(z)
        total += (loss - float.fromhex(text) * z) / rows["node"].count(i)
    for v, a in zip(w, point["a"], strict=True):
        total += sum((x - float.fromhex(y)) ** 2 for x, y in zip(v, a, strict=True))
    for (i, j), weight in zip(data["edges"], data["weights"], strict=True):
        square = sum((x - y) ** 2 for x, y in zip(w[i], w[j], strict=True))
        total += float.fromhex(data["lam"]) * float.fromhex(weight) * square / 2
    return F(round(total * 2**24) - 2, 2**24)


def false() -> Iterator[Case]:
    """All of them."""
    for part in (hashes, conservation, domains, weights, quadratics, points):
        yield from part()
