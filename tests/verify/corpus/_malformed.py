"""Files that are no document of a known schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from _accepted import tiny
from _cases import Case, case, changed, put, text_with, without
from _numbers import double
from _plants import Plant

BAD = "malformed"
# No real number of the data, and no witness number.
NEITHER: tuple[Any, ...] = (
    "", "1", "0.5", "inf ", "nan", "NaN", " 0x1.0000000000000p+0", "0X1p0", "0x1.p0", "0x1P0",
    "0x1p",
    "0x1", "0x1/2", "1/2", "0x1/0x0", "0x1/-0x2", "+0x1p0", "0x1p20001", "0x1p-20001", "0x1p1e3",
    "0x1.0p-19997", "0x\u0663p0", "0x1p0\n", True, None, [], [1], {},
)  # fmt: skip
LITERALS = (
    "1e400",
    "-1e400",
    "1" + "0" * 4300,
    "NaN",
    "Infinity",
    "01",
    "1.",
    ".5",
    "+1",
    "0x1",
    "- 1",
)


def texts() -> Iterator[Case]:
    """No JSON, or no object."""
    base = tiny()
    good = json.dumps(base)
    for name, text in {
        "empty": "",
        "open": "{",
        "cut": good[:-1],
        "list": "[]",
        "list-of-one": f"[{good}]",
        "null": "null",
        "number": "3",
        "text": '"gtv-certificate/1"',
        "object": "{}",
        "more": good + "{}",
        "nul": good + "\x00",
        "byte-order-mark": b"\xef\xbb\xbf" + good.encode(),
        "utf-16": good.encode("utf-16"),
        "no-utf-8": good.replace("l2", "\xff").encode("latin-1"),
        "surrogate-in-utf-8": (good[:-1] + ', "producer": "\ud800"}').encode(
            "utf-8", "surrogatepass"
        ),
        "comma": good[:-1] + ",}",
        "comment": good + "// all is well",
        "quotes": good.replace('"', "'"),
        "nested": "[" * 5000,
        "nested-objects": '{"a":' * 5000,
    }.items():
        yield case(f"json-{name}", BAD, text)
    for k, literal in enumerate(
        ("NaN", "Infinity", "-Infinity", "nul", "True", '"\t"', '"\\x"', '"\\u12"', '"', "[1 2]",
        "[,]",
         '{"a" 1}', "{1: 2}", '{"a":1,}', "00", "1.e3", "1" + "0" * 4300, '{"a":1,"a":1}',
         '[{"a":1,"b":[],"\\u0061":2}]')
    ):  # fmt: skip
        yield case(f"producer-bad-{k}", BAD, text_with(base, ["producer"], literal))


def same_key_twice() -> Iterator[Case]:
    good = json.dumps(tiny())
    for k, (old, new) in enumerate(
        (
            ('"w": ', '"w": [["0x5p0"]], "w": '),
            ('"w": ', '"\\u0077": [["0x5p0"]], "w": '),
            ('"lam": ', '"lam": 7, "lam": '),
            ('"lower": ', '"lower": null, "lower": '),
            ('"u": ', '"u": [], "u": '),
            ('"sha256": ', '"sha256": "", "sha256": '),
        )
    ):
        yield case(f"same-key-{k}", BAD, good.replace(old, new, 1))


def keys() -> Iterator[Case]:
    base = Plant("squared", "l2").document()
    for key in ("schema", "sha256", "claim", "w"):
        yield case(f"without-{key}", BAD, without(base, [key]))
    for key in ("schema", "n_nodes", "dim", "edges", "weights", "lam", "penalty", "terms"):
        yield case(f"data-without-{key}", BAD, without(base, ["data", key]))
    for path in (["dual", "u"], ["dual", "r"], ["claim", "rtol"], ["claim", "upper"],
                 ["data", "penalty", "kind"], ["data", "terms", 0, "y"], ["data", "terms", 0,
                 "node"]):  # fmt: skip
        name = "-".join(map(str, path))
        yield case(f"without-{name}", BAD, without(base, path))
    for path in ([], ["data"], ["data", "penalty"], ["data", "terms", 0], ["claim"], ["dual"]):
        name = "-".join(map(str, path)) or "document"
        yield case(f"unknown-key-in-{name}", BAD, put(base, [*path, "extra"], 1))
    yield case("prototype-key", BAD, put(base, ["__proto__"], {"w": []}))
    yield case(
        "quadratic-with-l2",
        BAD,
        put(base, ["dual", "quadratic"], {"root": [], "null_space": [], "x": []}),
    )
    for name, schema in (("2", "gtv-certificate/2"), ("null", None), ("list", [])):
        yield case(f"schema-{name}", BAD, put(base, ["schema"], schema))
    yield case("schema-of-the-data", BAD, changed(base, ["schema"], "gtv-problem/2"))


def witnesses() -> Iterator[Case]:
    """Numbers and shapes of the witness."""
    base = Plant("ridge", "l2", 2).document()
    for k, value in enumerate(NEITHER):
        path = (["w", 0, 0], ["dual", "u", 0, 1], ["dual", "r", 1, 0, 0])[k % 3]
        yield case(f"number-bad-{k}", BAD, put(base, path, value))
    for k, literal in enumerate(LITERALS):
        yield case(f"literal-bad-{k}", BAD, text_with(base, ["w", 0, 0], literal))
    one = {"rtol": 0, "upper": None, "lower": None}
    for k, claim in enumerate(
        (None, [], {**one, "rtol": -1}, {**one, "rtol": "0x-1p0"}, {**one, "upper": "x"}, {**one,
        "lower": []},
         {**one, "rtol": None}, {**one, "rtol": "inf"})
    ):  # fmt: skip
        yield case(f"claim-bad-{k}", BAD, {**base, "claim": claim})
    shapes: tuple[tuple[list[Any], Any], ...] = (
        (["w"], None), (["w"], []), (["w"], lambda w: w[1:]), (["w"], lambda w: [*w, w[0]]),
        (["w"], {"0": []}), (["w", 0], []), (["w", 0], lambda v: v[:1]),
        (["w", 0], lambda v: [*v, v[0]]),
        (["w", 0], 1), (["better"], []), (["better"], [["0x1p0"]]), (["better"], {}),
        (["dual"], []),
        (["dual", "u"], []), (["dual", "u"], None), (["dual", "u", 0], lambda v: [*v, v[0]]),
        (["dual", "r"], []), (["dual", "r"], lambda r: [*r, []]),
        (["dual", "r", 0], lambda r: r[:1]),
        (["dual", "r", 0, 0], 1), (["dual", "r", 0, 0], []),
    )  # fmt: skip
    for k, (path, value) in enumerate(shapes):
        yield case(f"shape-bad-{k}", BAD, put({**base, "better": None}, path, value))
    rows = Plant("huber", "l2", 2).document()
    yield case("shape-of-rows", BAD, put(rows, ["dual", "r", 0, 0], lambda x: [x]))
    quadratic = Plant("none", "singular", 2).document()
    inside = ["dual", "quadratic"]
    for k, (path, value) in enumerate(
        (
            ([], []), (["root"], None), (["null_space", 0], lambda v: v[:1]), (["x"], []),
            (["x", 0, 0], "inf"), (["more"], 1), (["root"], [[1, 2, 3]]),
        )
    ):  # fmt: skip
        yield case(f"quadratic-bad-{k}", BAD, put(quadratic, [*inside, *path], value))
    yield case("quadratic-without-x", BAD, without(quadratic, [*inside, "x"]))


def base_of(kind: str) -> Any:
    """Return a plant, or one with labels."""
    if kind != "labels":
        return Plant(kind, "l2", 2).document()
    plain = Plant("none", "l2", 2).document()
    return changed(plain, ["nodes"], list("abcdefgh")[: plain["data"]["n_nodes"]])


def data() -> Iterator[Case]:
    """Data that break section 1 of the format, with the hash that they would have."""
    edits: tuple[tuple[str, str, list[Any], Any], ...] = (
        ("n_nodes-0", "none", ["n_nodes"], 0),
        ("n_nodes-float", "none", ["n_nodes"], 3.0),
        ("n_nodes-true", "none", ["n_nodes"], True),
        ("n_nodes-text", "none", ["n_nodes"], "3"),
        ("n_nodes-large", "none", ["n_nodes"], 2**40),
        ("n_nodes-negative", "none", ["n_nodes"], -1),
        ("n_nodes-fewer", "none", ["n_nodes"], 2),
        ("dim-0", "none", ["dim"], 0),
        ("dim-large", "none", ["dim"], 10**30),
        ("dim-more", "none", ["dim"], 3),
        ("edges-reversed", "none", ["edges", 0], [1, 0]),
        ("edges-loop", "none", ["edges", 0], [0, 0]),
        ("edges-twice", "none", ["edges"], lambda e: [e[0], *e[:-1]]),
        ("edges-unsorted", "none", ["edges"], lambda e: e[::-1]),
        ("edges-outside", "none", ["edges", -1, 1], 9),
        ("edges-float", "none", ["edges", 0, 1], 1.0),
        ("edges-three", "none", ["edges", 0], lambda e: [*e, 2]),
        ("edges-object", "none", ["edges"], {}),
        ("weights-fewer", "none", ["weights"], lambda x: x[1:]),
        ("weight-zero", "none", ["weights", 0], double(0)),
        ("weight-negative", "none", ["weights", 0], double(-1)),
        ("weight-inf", "none", ["weights", 0], "inf"),
        ("lam-zero", "none", ["lam"], 0),
        ("lam-null", "none", ["lam"], None),
        ("lam-not-canonical", "none", ["lam"], "0x1p+0"),
        ("lam-not-normal", "none", ["lam"], "0x0.8000000000000p-1021"),
        ("lam-denormal-one", "none", ["lam"], "0x1.0000000000000p-1023"),
        ("lam-above-doubles", "none", ["lam"], "0x1.0000000000000p+1024"),
        ("lam-zero-exponent", "none", ["lam"], "0x1.0000000000000p+00"),
        ("lam-integer-no-double", "none", ["lam"], 2**53 + 1),
        ("minus-zero", "point", ["terms", 0, "a", 0, 0], "-0x0.0p+0"),
        ("a-inf", "point", ["terms", 0, "a", 0, 0], "inf"),
        ("a-fewer", "point", ["terms", 0, "a"], lambda a: a[1:]),
        ("penalty-unknown", "none", ["penalty", "kind"], "l3"),
        ("penalty-text", "none", ["penalty"], "l2"),
        ("penalty-p", "none", ["penalty"], {"kind": "pnorm", "p": double(0.5)}),
        ("penalty-p-missing", "none", ["penalty"], {"kind": "pnorm"}),
        ("penalty-name", "none", ["penalty"], {"kind": "opaque", "name": 3}),
        ("terms-object", "none", ["terms"], {}),
        ("term-unknown", "point", ["terms", 0, "kind"], "points"),
        ("term-constructor", "point", ["terms", 0, "kind"], "constructor"),
        ("node-decreasing", "point", ["terms", 0, "node"], lambda x: x[::-1]),
        ("node-twice", "point", ["terms", 0, "node"], lambda x: [x[0], *x[:-1]]),
        ("node-outside", "point", ["terms", 0, "node", -1], 9),
        ("node-negative", "point", ["terms", 0, "node", 0], -1),
        ("rows-decreasing", "squared", ["terms", 0, "node", -1], 0),
        ("rows-X-wide", "squared", ["terms", 0, "X", 0], lambda x: [*x, x[0]]),
        ("rows-y-inf", "squared", ["terms", 0, "y", 0], "inf"),
        ("hinge-y", "hinge", ["terms", 0, "y", 0], double(0)),
        ("logistic-y", "logistic", ["terms", 0, "y", 0], double(-1)),
        ("poisson-y", "poisson", ["terms", 0, "y", 0], double(-1)),
        ("multinomial-y-half", "multinomial", ["terms", 0, "y", 0], double(0.5)),
        ("multinomial-y-negative", "multinomial", ["terms", 0, "y", 0], double(-1)),
        ("multinomial-y-above", "multinomial", ["terms", 0, "y", 0], double(2)),
        ("multinomial-X-wide", "multinomial", ["terms", 0, "X", 0], lambda x: [*x, x[0]]),
        ("multinomial-X-other", "multinomial", ["terms", 0, "X", -1], lambda x: [*x, x[0]]),
        ("multinomial-X-empty", "multinomial", ["terms", 0, "X", 0], []),
        ("multinomial-delta", "multinomial", ["terms", 0, "delta"], [double(1)]),
        ("huber-delta", "huber", ["terms", 0, "delta", 0], double(0)),
        ("pseudohuber-delta", "pseudohuber", ["terms", 0, "delta", 0], double(-1)),
        ("quantile-level-0", "quantile", ["terms", 0, "level", 0], double(0)),
        ("quantile-level-1", "quantile", ["terms", 0, "level", 0], double(1)),
        ("ridge-mu-0", "ridge", ["terms", 0, "mu", 0], double(0)),
        ("ridge-mu-mixed", "ridge", ["terms", 0, "mu", 0], [double(1)] * 2),
        ("ridges-mu-negative", "ridges", ["terms", 0, "mu", 0, 0], double(-1)),
        ("l1-kappa-inf", "l1", ["terms", 0, "kappa", 0], "inf"),
        ("box-crossed", "box", ["terms", 0, "upper", 0, -1], double(-9)),
        ("box-lower-inf", "box", ["terms", 0, "lower", 0, 0], "inf"),
        ("box-upper-minus-inf", "box", ["terms", 0, "upper", 0, 0], "-inf"),
        ("simplex-total-0", "simplex", ["terms", 0, "total", 0], double(0)),
        ("labels-twice", "labels", ["nodes", 1], "a"),
        ("labels-fewer", "none", ["nodes"], ["a"]),
        ("labels-true", "labels", ["nodes", 1], True),
        ("labels-null", "none", ["nodes"], None),
        ("labels-wide", "labels", ["nodes", 1], 2**64),
    )  # fmt: skip
    for name, kind, path, value in edits:
        yield case(f"data-{name}", BAD, changed(base_of(kind), path, value))
    labels = base_of("labels")
    for name, label in (("float", 1.5), ("null", None), ("low", -(2**63) - 1), ("list", [])):
        yield case(f"data-label-{name}", BAD, changed(labels, ["nodes", 1], label))
    plain, box = base_of("none"), base_of("box")
    yield case("data-lam-above", BAD, text_with(plain, ["data", "lam"], "1e999"))
    upper = ["data", "terms", 0, "upper", 0, 0]
    yield case("data-integer-above", BAD, text_with(box, upper, "1" + "0" * 400))
    yield case("data-empty-bound", BAD, put(box, upper, ""))
    yield case("data-empty-lam", BAD, put(plain, ["data", "lam"], ""))
    for name, rows in (("asymmetric", [["1", "2"], ["3", "4"]]), ("narrow", [["1"], ["2"]])):
        matrix = [[double(float(x)) for x in row] for row in rows]
        yield case(
            f"data-Q-{name}",
            BAD,
            changed(Plant("none", "quadratic").document(), ["penalty", "Q"], matrix),
        )
    yield case("given-data-malformed", BAD, without(tiny(), ["data"]), data=b"{}")
    yield case("given-data-no-json", BAD, without(tiny(), ["data"]), data=b"{")
    yield case("given-data-twice-a-key", BAD, tiny(), data=b'{"a":1,"a":2}')


def weights() -> Iterator[Case]:
    """Weights of rows and points, which are positive doubles, and of nothing else."""
    rows, ridge = Plant("huber", "l2", weighted=True).document(), Plant("ridge", "l2").document()
    for term in (0, 1):
        path: list[Any] = ["terms", term, "weight"]
        for name, value in (
            ("zero", double(0)),
            ("negative", "-0x1.0000000000000p-1"),
            ("infinite", "inf"),
            ("ratio", "0x1/0x3"),
            ("list", [double(1)]),
            ("null", None),
        ):
            yield case(f"weight-{name}-{term}", BAD, changed(rows, [*path, 0], value))
        yield case(f"weight-missing-{term}", BAD, changed(rows, path, lambda w: w[1:]))
        yield case(f"weights-null-{term}", BAD, changed(rows, path, None))
    ones = [double(1)] * len(ridge["data"]["terms"][0]["node"])
    yield case("weights-of-ridge", BAD, changed(ridge, ["terms", 0, "weight"], ones))


def malformed() -> Iterator[Case]:
    """All of them."""
    for part in (texts, same_key_twice, keys, witnesses, data, weights):
        yield from part()
