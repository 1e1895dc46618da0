"""True documents in every form that the format allows, and true ones that prove less than asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

from _cases import Case, case, changed, encoded, put, text_with, without
from _numbers import Document, double, hashed, number
from _plants import AT_NODES, CLASSES, KINDS, PENALTIES, ROWS, Plant
from _powers import powers


def every_kind() -> Iterator[Case]:
    """Every loss with every penalty: one document of each pair, of dimension 1 or 2."""
    for a, kind in enumerate(KINDS):
        for b, penalty in enumerate(PENALTIES):
            d = 1 if (a + b) % 4 == 0 and kind != CLASSES else 2
            plant = Plant(kind, penalty, d)
            # Rounded slopes of these leave a gap; all other pairs are exact.
            rtol = None if kind in ("logistic", "poisson", CLASSES) else 0.0
            yield case(f"{kind}-{penalty}", "certified", plant.document(), rtol=rtol)


def weights() -> Iterator[Case]:
    """Every loss that may have weights, beside points with weights."""
    for b, kind in enumerate(("none", *ROWS)):
        plant = Plant(kind, PENALTIES[b % 5], 2 - b % 2, weighted=True)
        rtol = None if kind in ("logistic", "poisson") else 0.0
        yield case(f"weights-{kind}", "certified", plant.document(), rtol=rtol)


def three_classes() -> Iterator[Case]:
    """Two features and three classes, and tails that no double can tell from certainty."""
    for penalty in ("l1", "linf", "squared"):
        for seed in range(2):
            plant = Plant(CLASSES, penalty, 6, seed)
            yield case(f"classes-{penalty}-{seed}", "certified", plant.document())
    plant = Plant(CLASSES, "l2", 2, weighted=True)
    yield case("weights-multinomial", "certified", plant.document())
    plant = Plant(CLASSES, "l1", 6)
    none = changed(
        plant.document(), ["terms", 0], lambda t: {"kind": CLASSES, "node": [], "X": [], "y": []}
    )
    # Without rows the point terms alone do not balance the flow.
    yield case("classes-no-rows", "false document", put(none, ["dual", "r", 0], []))
    far = Plant(CLASSES, "l1", 6)
    scaled = changed(far.document(), ["terms", 0, "X", 0, 0], double(F(2**20)))
    yield case("classes-far-without-dual", "no dual witness", put(scaled, ["dual"], None))


def tiny(a: F = F(1), w: F = F(1)) -> Document:
    """Return a certificate of min (x - a)^2, whose gap at w is (w - a)^2."""
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 1,
        "dim": 1,
        "edges": [],
        "weights": [],
        "lam": double(1),
        "penalty": {"kind": "l2"},
        "terms": [{"kind": "point", "node": [0], "a": [[double(a)]]}],
    }
    document = {
        "schema": "gtv-certificate/1",
        "data": data,
        "claim": {"rtol": number(0), "upper": None, "lower": None},
        "w": [[number(w)]],
        "dual": {"u": [], "r": [[[number(0)]]]},
    }
    return hashed(document)


def forms() -> Iterator[Case]:
    """The same document in other words."""
    base = Plant("box", "l2").document()
    backwards = json.dumps(dict(reversed(base.items())), indent=3)
    yield case("keys-in-another-order", "certified", backwards)
    yield case("white-space", "certified", " \t\r\n" + json.dumps(base, indent=1) + "\n\n")
    yield case("escaped-key", "certified", json.dumps(base).replace('"w"', '"\\u0077"'))
    outside = without(base, ["data"])
    yield case("data-given", "certified", outside, data=encoded(base["data"]))
    yield case("data-given-twice", "certified", base, data=encoded(base["data"]))
    yield case(
        "data-null-and-given", "certified", {**outside, "data": None}, data=encoded(base["data"])
    )
    for name, value in (
        ("null", None),
        ("nested", {"a": [{"w": []}]}),
        ("integer", 10**4299),
        ("escapes", '\\ \x00 " / \ud800 日本 \U0001f600'),
    ):
        yield case(f"producer-{name}", "certified", {**base, "producer": value})
    yield case("producer-above-doubles", "certified", text_with(base, ["producer"], "1e999"))
    labels = ["a", 1, "1", '</script>"\\', "\U0001f600", "\ud800", "\x7f\x00\n", "日本"]
    n = base["data"]["n_nodes"]
    yield case("labels", "certified", changed(base, ["nodes"], labels[:n]))
    yield case("labels-strange", "certified", changed(base, ["nodes"], labels[-n:]))
    ends = [-(2**63), 2**64 - 1, 0, 7, 8][:n]
    yield case("labels-64-bits", "certified", changed(base, ["nodes"], ends))


def number_forms() -> Iterator[Case]:
    """One number, 3/4 or zero, as it may be written."""
    base = tiny(F(3, 4), F(3, 4))
    for k, literal in enumerate(
        ('"0x3p-2"', '"0x0.cp+0"', '"0x000c.000p-04"', '"0x3/0x4"', '"0x30/0x40"', "0.75", "7.5E-1")
    ):
        text = text_with(base, ["w", 0, 0], literal)
        yield case(f"number-{k}", "certified", text, rtol=0.0)
    long = text_with(base, ["w", 0, 0], "0.7500000000000000000000000000000000000000000000001")
    yield case("number-of-many-digits", "certified", long, rtol=0.0)
    above = text_with(base, ["w", 0, 0], "0.75000000000000011102230246251565404236316680908203126")
    yield case("number-just-above-a-tie", "relative gap", above, rtol=0.0)
    tie = text_with(base, ["w", 0, 0], "0.75000000000000005551115123125782702118158340454101562500")
    yield case("number-at-a-tie", "certified", tie, rtol=0.0)
    for k, literal in enumerate(
        ("0", "-0", "-0.0", "0.0", "0e5", '"-0x0p0"', '"0x0/0x7"', "1e-999")
    ):
        text = text_with(tiny(F(0), F(0)), ["w", 0, 0], literal)
        yield case(f"zero-{k}", "certified", text, rtol=0.0)
    for k, literal in enumerate(("0", "-0.0", "0.0", "1e-400")):
        text = text_with(tiny(F(0), F(0)), ["data", "terms", 0, "a", 0, 0], literal)
        yield case(f"zero-of-the-data-{k}", "certified", text, rtol=0.0)
    yield case("lam-as-json", "certified", text_with(base, ["data", "lam"], "1"))
    yield case(
        "lam-as-decimal", "certified", text_with(base, ["data", "lam"], "1.00000000000000000000001")
    )
    wide = F(3, 4) + F(1, 3 * 2**9000)
    yield case("wide-ratio", "certified", put(base, ["w", 0, 0], number(wide)))
    yield case(
        "wide-exponent", "certified", put(base, ["w", 0, 0], number(F(3, 4) + F(1, 2**20000)))
    )
    yield case("huge-point", "relative gap", put(base, ["w", 0, 0], "0x3p20000"))
    yield case("denormal", "certified", tiny(F(1, 2**1074), F(1, 2**1074)), rtol=0.0)
    yield case("denormal-off", "relative gap", tiny(F(3, 2**1074), F(1, 2**1074)), rtol=0.0)
    top = F(2**1024 - 2**971)
    yield case("largest-double", "certified", tiny(top, top), rtol=0.0)
    bound = Plant("box", "l1")
    for name, literal in (("text", '"-inf"'), ("json", "-1e999")):
        text = text_with(bound.document(), ["data", "terms", 0, "lower", 0, 0], literal)
        yield case(f"infinite-bound-as-{name}", "certified", text)


def claims_and_tolerances() -> Iterator[Case]:
    near = tiny(F(1), F(3, 2))  # the gap is 1/4
    for name, rtol, answer in (
        ("reached", 0.25, "certified"),
        ("missed", 0.25 - 2**-54, "relative gap"),
        ("usual", None, "relative gap"),
        ("zero", 0.0, "relative gap"),
    ):
        yield case(f"tolerance-{name}", answer, near, rtol=rtol)
    for name, rtol in (("huge", "0x1p20000"), ("one", 1)):
        yield case(
            f"tolerance-of-the-file-{name}", "relative gap", put(near, ["claim", "rtol"], rtol)
        )
    for name, claim in (
        ("exact", {"rtol": 0, "upper": "0x1/0x4", "lower": 0}),
        ("weaker", {"rtol": 0, "upper": 3, "lower": -7}),
        ("half", {"rtol": 0, "upper": None, "lower": "-0x1/0x3"}),
    ):
        yield case(f"claim-{name}", "certified", put(near, ["claim"], claim), rtol=1.0)
    far = poissons(F(3))  # P is about -27.9, and its optimum -28.4
    for name, rtol, answer in (("reached", 0.1, "certified"), ("missed", 0.01, "relative gap")):
        yield case(f"tolerance-of-a-negative-objective-{name}", answer, far, rtol=rtol)
    refuted = {**without(far, ["dual"]), "better": [["0x2cp-4"]]}
    yield case("better-with-a-negative-objective", "w is not within rtol", refuted, rtol=0.01)
    yield case("better-within-a-negative-objective", "no dual witness", refuted, rtol=0.1)
    large = tiny(F(0), F(1024))  # relative to 2^20
    yield case("tolerance-of-a-large-objective", "certified", large, rtol=1.0)


def poissons(w: F) -> Document:
    """Return a certificate of min exp w - 16 w, which is 16 - 16 ln 16 at ln 16."""
    rows = {"kind": "poisson", "node": [0], "X": [[double(1)]], "y": [double(16)]}
    document = put(put(tiny(F(1), w), ["dual", "r"], [[0]]), ["data", "terms"], [rows])
    return hashed(document)


def better_points() -> Iterator[Case]:
    base = tiny(F(1), F(1))
    yield case("better-null", "certified", {**base, "better": None})
    yield case("better-is-worse", "certified", {**base, "better": [[3]]}, rtol=0.0)
    yield case("better-is-the-same", "certified", {**base, "better": [[1]]}, rtol=0.0)
    boxed = Plant("box", "l2").document()
    far = [[number(1000)] * 2] * boxed["data"]["n_nodes"]
    yield case("better-is-not-feasible", "certified", {**boxed, "better": far})
    near = tiny(F(1), F(3, 2))
    yield case("better-within-rtol", "certified", {**near, "better": [[1]]}, rtol=0.25)
    yield case("better-refutes", "w is not within rtol", {**near, "better": [[1]]})
    alone = without({**near, "better": [["0x9/0x8"]]}, ["dual"])
    yield case("better-without-dual", "w is not within rtol", alone)


def small_problems() -> Iterator[Case]:
    """No edges, no terms, nodes without data, all kinds at once."""
    bare = changed(tiny(), ["terms"], [])
    yield case("no-terms", "certified", put(bare, ["dual", "r"], []), rtol=0.0)
    plant = Plant("none", "l2", 2)
    unlabelled = changed(plant.document(), ["n_nodes"], plant.n + 1)
    more = put(unlabelled, ["w", plant.n], ["0x1/0x3", 7])
    yield case("isolated-node-without-data", "certified", more, rtol=0.0)
    yield case("all-kinds", "certified", together("l2"))
    yield case("all-kinds-linf", "certified", together("linf"))
    for kind in AT_NODES[1:5]:
        plant = Plant(kind, "l1", 2, seed=1)
        yield case(f"{kind}-again", "certified", plant.document(), rtol=0.0)


def together(penalty: str) -> Document:
    """Return an instance with many terms at the same nodes."""
    plant = Plant("squared", penalty)
    plant.sums = plant._divergence()
    plant.terms, plant.r = [], []
    for kind in KINDS[1:]:
        if kind in AT_NODES[1:-1]:
            plant._add_at_nodes(kind)
        elif kind == CLASSES:
            plant._add_class_rows()
        elif kind not in AT_NODES:
            plant._add_rows(kind)
    plant._absorb()
    return plant.document()


def unproved() -> Iterator[Case]:
    """True or harmless, and no proof."""
    base = Plant("huber", "l2").document()
    yield case("no-data", "problem data", without(base, ["data"]))
    yield case("data-null", "problem data", {**base, "data": None})
    yield case("no-dual", "no dual witness", without(base, ["dual"]))
    yield case("dual-null", "no dual witness", {**base, "dual": None})
    claim = {"rtol": 0, "upper": None, "lower": number(-(10**9))}
    alone = {**base, "dual": None, "claim": claim}
    yield case("claimed-lower-without-dual", "false document", alone)
    opaque: dict[str, Any] = {"kind": "opaque", "name": "something"}
    yield case("opaque-penalty", "no exact rule", changed(base, ["penalty"], opaque))
    loss = changed(base, ["terms"], lambda terms: [*terms, {**opaque, "node": [0]}])
    yield case("opaque-loss", "no exact rule", loss)
    for penalty in ("quadratic", "singular"):
        plant = Plant("squared", penalty).document()
        yield case(f"{penalty}-alone", "quadratic", without(plant, ["dual", "quadratic"]))
        yield case(f"{penalty}-null", "quadratic", put(plant, ["dual", "quadratic"], None))
    negative = changed(Plant("none", "quadratic").document(), ["penalty", "Q", 0, 0], double(-2))
    yield case("indefinite-without-dual", "no dual witness", {**negative, "dual": None})
    poisson = Plant("poisson", "l2").document()
    yield case("exp-too-large", "too large to be enclosed", far_exponential(poisson, "w"))
    better = {**poisson, "better": poisson["w"]}
    yield case(
        "exp-of-better-too-large", "too large to be enclosed", far_exponential(better, "better")
    )
    yield case("budget", "budget", base, budget=200)
    yield case("logistic-exact", "relative gap", Plant("logistic", "l2").document(), rtol=0.0)
    off = put(base, ["w", 0, 0], number(5))
    yield case("point-moved", "relative gap", off)


def far_exponential(document: Document, key: str) -> Document:
    """Return the document with a point whose x.w is far above what is enclosed."""
    term = document["data"]["terms"][0]
    k = next(k for k, x in enumerate(term["X"]) if any(float.fromhex(c) for c in x))
    j = next(j for j, c in enumerate(term["X"][k]) if float.fromhex(c))
    sign = 1 if float.fromhex(term["X"][k][j]) > 0 else -1
    return put(document, [key, term["node"][k], j], sign * 2**20)


def accepted() -> Iterator[Case]:
    """All of them."""
    for part in (every_kind, weights, three_classes, forms, number_forms, claims_and_tolerances,
                 better_points, small_problems, unproved, powers):  # fmt: skip
        yield from part()
