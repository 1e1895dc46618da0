"""Documents about partitions: true ones, false ones, and those without a proof."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

from _cases import Case, case, changed, encoded, put, text_with, without
from _numbers import Document, double, hashed, number
from _partitions import NO, SCALE, WEIGHTS, YES, Partitioned, form, numbers, parsed, squared_norm

BAD = "malformed"
NORMS = ("l1", "l2", "linf")
FLAT, STEEP = F(1, 16), F(2**14)  # lambdas for which the claims NO and YES are true


def true() -> Iterator[Case]:
    for norm in NORMS:
        for d in (1, 2, 3, 8, 9):
            coupled, moved = d != 1, d in (2, 9)
            yes = Partitioned(norm, d, STEEP, coupled, moved)
            yield case(f"yes-{norm}-{d}", "certified", yes.document())
            no = Partitioned(norm, d, FLAT, coupled, moved)
            yield case(f"no-{norm}-{d}", "certified", no.document([NO, NO]))
        for name, lam, claims in (("yes", STEEP, None), ("no", FLAT, [NO, NO])):
            ridges = Partitioned(norm, 2, lam, True, True, ridge=True)
            yield case(f"{name}-{norm}-ridge", "certified", ridges.document(claims))
            bent = put(ridges.document(claims), ["data", "terms", -1, "mu", 0, 1], double(4))
            lie = "root" if (name, norm) == ("yes", "l2") else "false constant"
            yield case(f"{name}-{norm}-other-ridge", lie, hashed(bent))
    mixed = Partitioned("l2", 2, STEEP)
    yield case(
        "data-given", "certified", without(mixed.document(), ["data"]), data=encoded(mixed.data())
    )
    one = Partitioned("l1", 2, FLAT).document([NO, NO])
    yield case("no-for-one-cluster", "certified", put(one, ["clusters"], lambda c: c[:1]))
    yield case("no-and-a-producer", "certified", {**one, "producer": [1]})
    for name, p in (("1", double(1)), ("2", double(2)), ("inf", "inf")):
        norm = {"1": "l1", "2": "l2", "inf": "linf"}[name]
        document = changed(
            Partitioned(norm, 2, STEEP).document(), ["penalty"], {"kind": "pnorm", "p": p}
        )
        yield case(f"yes-pnorm-{name}", "certified", document)


def bare(cluster: list[int], **others: Any) -> Document:
    """Return a negative witness without constants."""
    zeros = [0] * len(cluster)
    return {"claim": NO, "cluster": cluster, "alpha": None, "beta": zeros, "delta": zeros,
    "center": None,
            "modulus": None, "sets": [], "left_out": [], **others}  # fmt: skip


def others() -> Iterator[Case]:
    """Clusters that need no constants, and clusters of one node."""
    base = Partitioned("l2", 2, STEEP).document()
    apart = {**base, "claim": NO, "clusters": [bare([0, 4], sets=[[0], [4]])]}
    yield case("disconnected", "certified", apart)
    yield case(
        "disconnected-left-out",
        "certified",
        put(apart, ["clusters", 0], bare([0, 4], left_out=[0, 4])),
    )
    slopes = bare([0, 4], sets=[[0], [4]], beta=[1, 0])
    yield case("disconnected-with-beta", "direction", {**apart, "clusters": [slopes]})
    single = {"claim": YES, "cluster": [0], "alpha": None, "beta": [0], "delta": [0],
    "center": None,
              "modulus": None, "sink": 0, "flow": [], "scale": 1}  # fmt: skip
    singles = [{**single, "cluster": [i], "sink": i} for i in range(5)]
    yield case("one-node-each", "certified", {**base, "clusters": singles})
    lonely = {**base, "claim": NO, "clusters": [bare([0])]}
    yield case("one-node-is-well-connected", "false set", lonely)
    for k, more in enumerate(({"left_out": [0]}, {"sets": [[0]]}, {"sets": [[]]})):
        empty = {**lonely, "clusters": [bare([0], **more)]}
        yield case(f"one-node-and-the-empty-set-{k}", BAD, empty)
    constants = {"alpha": 1, "beta": [1], "delta": [1], "center": [0, 0], "modulus": 1}
    lonely = {**lonely, "clusters": [bare([0], **constants)]}
    yield case("one-node-with-constants", "false set", lonely)
    null = put(base, ["clusters", 0, "roots", "local"], None)
    yield case("roots-local-null", BAD, null)
    null = put(base, ["clusters", 0, "roots", "inverse"], None)
    yield case("roots-inverse-null", "certified", null)
    connected = put(apart, ["clusters", 0], bare([0, 1], sets=[[0], [1]]))
    yield case("connected-without-constants", "false set", connected)


def false_constants() -> Iterator[Case]:
    for norm in NORMS:
        for d in (2, 9):
            yes = Partitioned(norm, d, STEEP, True, True).document()
            no = Partitioned(norm, d, FLAT, True, True).document([NO, NO])
            at = ["clusters", 0]
            edits = (
                ("yes-alpha", yes, ["alpha"], lambda x: scaled(x, F(3))),
                ("yes-beta", yes, ["beta", 1], lambda x: scaled(x, F(99, 100))),
                ("yes-delta", yes, ["delta", 0], lambda x: scaled(x, F(99, 100))),
                ("no-alpha", no, ["alpha"], lambda x: scaled(x, 1 - F(1, 2**99))),
                ("no-beta", no, ["beta", 0], lambda x: scaled(x, 1 + F(1, 2**99))),
                ("no-delta", no, ["delta", 0], lambda x: scaled(x, F(101, 100))),
                ("no-modulus", no, ["modulus"], lambda x: scaled(x, F(9))),
            )
            for name, document, path, edit in edits:
                yield case(
                    f"{name}-{norm}-{d}", "false constant", put(document, [*at, *path], edit)
                )


def scaled(text: str, factor: F) -> str:
    return number(parsed(text) * factor)


def unsound_once() -> Iterator[Case]:
    """Constants beyond 8 dimensions that bound from the wrong side: accepted by an old checker."""
    for norm, key in (("linf", "beta"), ("l1", "alpha")):
        problem = Partitioned(norm, 9, FLAT, True, False)
        document = problem.document([NO, NO])
        if key == "beta":
            H = problem.hessian(1)
            above = sum((abs(x) for row in H for x in row), F(0))
            v = [F(1)] * 9
            assert form(H, v) < above * squared_norm(norm, v)
            document = put(document, ["clusters", 0, "beta", 1], number(above))
            document = put(document, ["clusters", 0, "directions", "beta", 1], numbers(v))
        else:
            document = put(
                document, ["clusters", 0, "alpha"], number(problem.alpha_below([0, 1, 2]))
            )
        yield case(f"wrong-side-{norm}", "false constant", document)


def degenerate() -> Iterator[Case]:
    """Margins of zero, and infinite alphas."""
    for norm in NORMS:
        yes = Partitioned(norm, 2, STEEP).document()
        at = ["clusters", 0]
        # H - R^T R is zero in one coordinate: 6 I + 2 x x^T with x = (1, -1/2) or (1, 1/2).
        rows = numbers([[F(2), F(0)], [F(2), F(0)]])
        flat = put(yes, [*at, "roots", "total"], rows)
        yield case(f"margin-zero-{norm}", "false constant", flat)
        yield case(f"yes-alpha-infinite-{norm}", "false constant", put(yes, [*at, "alpha"], None))
        no = put(Partitioned(norm, 2, FLAT).document([NO, NO]), [*at, "alpha"], None)
        yield case(f"no-alpha-infinite-{norm}", "certified", no)
        large = put(no, [*at, "delta", 0], 99)
        yield case(f"no-alpha-infinite-delta-{norm}", "false constant", large)
        yield case(
            f"no-alpha-infinite-beta-{norm}", "false constant", put(no, [*at, "beta", 0], 99)
        )


def missing() -> Iterator[Case]:
    """Witnesses that are not there."""
    yes, no = Partitioned("l2", 2, STEEP).document(), Partitioned("l2", 2, FLAT).document([NO, NO])
    at = ["clusters", 0]
    yield case("yes-without-roots", "root", without(yes, [*at, "roots"]))
    yield case("yes-without-total", "strong convexity", without(yes, [*at, "roots", "total"]))
    yield case("no-without-directions", "direction", without(no, [*at, "directions"]))
    yield case(
        "no-without-a-direction-of-alpha", "direction", without(no, [*at, "directions", "alpha"])
    )
    yield case(
        "no-without-a-direction-of-beta", "direction", put(no, [*at, "directions", "beta", 1], None)
    )
    yield case("partition-without-data", "problem data", without(yes, ["data"]))
    for name in ("squared", "opaque", "pnorm"):
        penalty = {"kind": name, **({"name": "x"} if name == "opaque" else {})}
        if name == "pnorm":
            penalty["p"] = double(3)
        yield case(f"partition-{name}", "norms", changed(yes, ["penalty"], penalty))
    for kind, more in (("logistic", {}), ("absolute", {}), ("huber", {"delta": [double(1)]})):
        rows = {"kind": kind, "node": [1], "X": [[double(1)] * 2], "y": [double(1)], **more}
        document = changed(yes, ["terms"], lambda t, rows=rows: [*t, rows])
        yield case(f"partition-{kind}", "no exact rule", document)


def false_flows() -> Iterator[Case]:
    yes = Partitioned("linf", 2, STEEP).document()
    at = ["clusters", 0]
    lie = "false flow"
    yield case("flow-above-capacity", lie, put(yes, [*at, "flow", 0], -2 * SCALE - 1))
    yield case("flow-too-small", lie, put(yes, [*at, "flow", 0], 0))
    yield case("flow-backwards", lie, put(yes, [*at, "flow"], lambda f: [-x for x in f]))
    yield case("flow-with-another-scale", lie, put(yes, [*at, "scale"], 2 * SCALE))
    yield case("flow-to-another-sink", lie, put(yes, [*at, "sink"], 1))
    # At equality a demand is not met: the inequality is strict.
    single = Partitioned("l1", 1, F(2), coupled=False)
    document = single.document()
    first = document["clusters"][0]
    beta, delta = ([parsed(x) for x in first[key]] for key in ("beta", "delta"))
    demands = single.demands(0, parsed(first["alpha"]), beta, delta)
    scale = 1
    for x in demands:
        scale *= x.denominator
    tie = [*(int(-x * scale) for x in demands[1:]), 0]
    assert all(abs(x) <= a * scale for x, a in zip(tie, WEIGHTS[:3], strict=True))
    for name, more, answer in (("tie", 0, lie), ("just-enough", 1, "certified")):
        flow = [x - more * (k < 2) for k, x in enumerate(tie)]
        edited = put(put(document, [*at, "flow"], flow), [*at, "scale"], scale)
        yield case(f"flow-{name}", answer, edited)


def false_sets() -> Iterator[Case]:
    no = Partitioned("l2", 2, FLAT, True, False).document([NO, NO])
    at = ["clusters", 0]
    lie = "false set"
    yield case("sets-none", lie, put(put(no, [*at, "sets"], []), [*at, "left_out"], []))
    yield case("sets-with-a-node-in-all", lie, put(no, [*at, "left_out"], []))
    yield case(
        "sets-alike", lie, put(put(no, [*at, "left_out"], []), [*at, "sets"], [[0], [0, 1], [0, 2]])
    )
    steep = Partitioned("l2", 2, STEEP, True, False).document([NO, NO])
    yield case("sets-that-do-not-violate", lie, steep)
    yield case("left-out-that-does-not-violate", lie, put(steep, [*at, "sets"], []))
    every = put(put(steep, [*at, "sets"], []), [*at, "left_out"], [0, 1, 2])
    yield case("left-out-all-that-do-not-violate", lie, every)
    for node, answer in ((1, lie), (2, "certified")):
        sets = put(put(no, [*at, "sets"], [[node]]), [*at, "left_out"], [node])
        yield case(f"left-out-{node}", answer, sets)


def wrong_partitions() -> Iterator[Case]:
    yes = Partitioned("l1", 2, STEEP).document()
    no = Partitioned("l1", 2, FLAT).document([NO, NO])
    lie = "false document"
    yield case("partition-not-covered", lie, put(yes, ["clusters"], lambda c: c[:1]))
    yield case("partition-of-nothing", lie, put(yes, ["clusters"], []))
    yield case("partition-no-is-yes", lie, {**no, "claim": YES})
    yield case("partition-yes-is-no", lie, {**yes, "claim": NO})
    yield case("partition-no-of-nothing", lie, {**no, "clusters": []})
    yield case("partition-hash", lie, {**yes, "sha256": "0" * 64})
    yield case("partition-data-changed", lie, put(yes, ["data", "lam"], double(2**15)))


def malformed_partitions() -> Iterator[Case]:
    yes = Partitioned("l1", 2, STEEP, True, True).document()
    no = Partitioned("l1", 2, FLAT, True, True).document([NO, NO])
    for key in ("sha256", "claim", "clusters", "schema"):
        yield case(f"partition-without-{key}", BAD, without(yes, [key]))
    for key in (
        "claim",
        "cluster",
        "alpha",
        "beta",
        "delta",
        "center",
        "modulus",
        "sink",
        "flow",
        "scale",
    ):
        yield case(f"yes-without-{key}", BAD, without(yes, ["clusters", 0, key]))
    for key in ("sets", "left_out", "modulus"):
        yield case(f"no-without-{key}", BAD, without(no, ["clusters", 0, key]))
    edits: tuple[tuple[Document, list[Any], Any], ...] = (
        (yes, ["claim"], "perhaps"), (yes, ["clusters"], {}), (yes, ["w"], []),
        (yes, ["better"], None),
        (yes, ["clusters", 0], []), (yes, ["clusters", 0, "sets"], []),
        (yes, ["clusters", 0, "directions"], {}),
        (no, ["clusters", 0, "sink"], 0), (yes, ["clusters", 0, "claim"], NO),
        (yes, ["clusters", 0, "cluster"], []), (yes, ["clusters", 0, "cluster"], [0, 1, 1]),
        (yes, ["clusters", 0, "cluster"], [0, 1, 9]),
        (yes, ["clusters", 0, "cluster"], [0, 1.0, 2]),
        (yes, ["clusters"], lambda c: [*c, c[0]]), (yes, ["clusters", 0, "alpha"], 0),
        (yes, ["clusters", 0, "alpha"], "x"), (yes, ["clusters", 0, "beta", 0], "-0x1p-99"),
        (yes, ["clusters", 0, "beta"], lambda b: b[1:]), (yes, ["clusters", 0, "delta", 0], -1),
        (yes, ["clusters", 0, "center"], None), (yes, ["clusters", 0, "center"], [1]),
        (yes, ["clusters", 0, "sink"], 3), (yes, ["clusters", 0, "sink"], None),
        (yes, ["clusters", 0, "scale"], 0), (yes, ["clusters", 0, "scale"], 1.5),
        (yes, ["clusters", 0, "flow", 0], 0.5), (yes, ["clusters", 0, "flow"], lambda f: f[1:]),
        (yes, ["clusters", 0, "roots"], None), (yes, ["clusters", 0, "roots", "more"], []),
        (yes, ["clusters", 0, "roots", "total"], [[1]]),
        (yes, ["clusters", 0, "roots", "inverse"], [[1, 0]]),
        (yes, ["clusters", 0, "roots", "local"], []), (no, ["clusters", 0, "sets", 0], []),
        (no, ["clusters", 0, "sets", 0], [0, 1, 2]), (no, ["clusters", 0, "sets", 0], [4]),
        (no, ["clusters", 0, "sets", 0], [0, 0]), (no, ["clusters", 0, "left_out"], [4]),
        (no, ["clusters", 0, "left_out"], [0, 0]),
        (no, ["clusters", 0, "directions", "alpha"], [0, 0]),
        (no, ["clusters", 0, "directions", "alpha"], [1]),
        (no, ["clusters", 0, "directions", "beta"], []),
        (no, ["clusters", 0, "directions", "gamma"], []), (no, ["clusters", 0, "center"], None),
        (no, ["clusters", 0, "modulus"], 0),
    )  # fmt: skip
    for k, (document, path, value) in enumerate(edits):
        yield case(f"partition-bad-{k}", BAD, put(document, path, value))
    yield case(
        "partition-duplicate-key", BAD, text_with(yes, ["clusters", 0, "alpha"], '1, "alpha": 1')
    )


def tight() -> Iterator[Case]:
    """Constants at the very end of what the inverse and the roots prove."""
    for norm in ("l1", "linf"):
        problem = Partitioned(norm, 2, STEEP)
        document = problem.document()
        # The exact inverse gives alpha as by its formula, above what the diagonal alone gives.
        (a, b), (_, c) = problem.total([0, 1, 2])
        det = a * c - b * b
        inverse = [[c / det, -b / det], [-b / det, a / det]]
        best = max(inverse[0][0], inverse[1][1])
        if norm == "l1":
            best = inverse[0][0] + inverse[1][1] + 2 * abs(inverse[0][1])
        for name, alpha, answer in (
            ("reached", 1 / best, "certified"),
            ("missed", 1 / best + F(1, 2**200), "false constant"),
        ):
            edited = put(document, ["clusters", 0, "roots", "inverse"], numbers(inverse))
            edited = put(edited, ["clusters", 0, "alpha"], number(alpha))
            yield case(f"inverse-{norm}-{name}", answer, edited)


def many_dimensions() -> Iterator[Case]:
    """The inverse in nine dimensions, where sums of sizes stand for maxima over signs."""
    problem = Partitioned("l1", 9, STEEP)
    # (6 I + 2 x x^T)^-1 = (I - x x^T / (3 + x.x)) / 6
    size = sum((a * a for a in problem.x), F(0))
    inverse = [
        [((j == k) - a * b / (3 + size)) / 6 for k, b in enumerate(problem.x)]
        for j, a in enumerate(problem.x)
    ]
    alpha = 1 / sum((abs(x) for row in inverse for x in row), F(0))
    at = ["clusters", 0]
    # Twice the flow: alpha is less than what the diagonal alone would give, demands are more.
    base = put(problem.document(), [*at, "scale"], SCALE // 2)
    base = put(base, [*at, "roots", "inverse"], numbers(inverse))
    base = put(base, [*at, "roots", "total"], numbers([problem.x]))  # a short root: less than alpha
    yield case("inverse-l1-9-reached", "certified", put(base, [*at, "alpha"], number(alpha)))
    more = number(alpha + F(1, 2**200))
    yield case("inverse-l1-9-missed", "false constant", put(base, [*at, "alpha"], more))


def partitions() -> Iterator[Case]:
    """All of them."""
    for part in (true, others, false_constants, unsound_once, degenerate, missing, false_flows,
                 false_sets, wrong_partitions, malformed_partitions, tight,
                 many_dimensions):  # fmt: skip
        yield from part()
