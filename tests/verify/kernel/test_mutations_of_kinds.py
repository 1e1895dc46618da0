"""Mutations that only the newer kinds of terms can have, each refused; and their numbers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from _plain_instances import document

import verify
from verify.kernel.data import ROWS, TERMS, canonical, digest
from verify.kernel.numbers import scaled, unit
from verify.kernel.verdict import Verdict

Doc = dict[str, Any]


def _value(text: str) -> Fraction:
    (v,), k = scaled([text])
    return v * unit(k)


def _text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def _find(doc: Doc, kind: str) -> tuple[Doc, list[Any]]:
    """Return the term of a kind and its multipliers."""
    t = next(t for t, x in enumerate(doc["data"]["terms"]) if x["kind"] == kind)
    return doc["data"]["terms"][t], doc["dual"]["r"][t]


def _times(kind: str, key: str, factor: float) -> Callable[[Doc], None]:
    def apply(doc: Doc) -> None:
        term, _ = _find(doc, kind)
        term[key] = [
            [(float.fromhex(x) * factor).hex() for x in v] if isinstance(v, list)
            else (float.fromhex(v) * factor).hex()
            for v in term[key]
        ]  # fmt: skip

    return apply


def _box_below_w(doc: Doc) -> None:
    term, _ = _find(doc, "box")
    i = term["node"][0]
    w = float(_value(doc["w"][i][0]))
    term["upper"][0][0] = (w - 1e-9).hex()
    term["lower"][0][0] = "-inf"


def _all_multipliers_negated(kind: str) -> Callable[[Doc], None]:
    def apply(doc: Doc) -> None:
        _, r = _find(doc, kind)
        r[:] = [
            [_text(-_value(x)) for x in v] if isinstance(v, list) else _text(-_value(v)) for v in r
        ]

    return apply


def _swapped_bounds(doc: Doc) -> None:
    term, _ = _find(doc, "box")
    term["lower"], term["upper"] = term["upper"], term["lower"]


def _w_off_its_simplex(doc: Doc) -> None:
    i = _find(doc, "simplex")[0]["node"][0]
    doc["w"][i][0] = _text(_value(doc["w"][i][0]) + Fraction(1, 2**900))


def _w_leaves_its_simplex_along_it(doc: Doc) -> None:
    i = _find(doc, "simplex")[0]["node"][0]
    first, second = (_value(x) for x in doc["w"][i])
    doc["w"][i] = [_text(first + second + 1), _text(Fraction(-1))]


def _labels_flipped(kind: str) -> Callable[[Doc], None]:
    def apply(doc: Doc) -> None:
        term, _ = _find(doc, kind)
        term["y"] = [(-float.fromhex(y)).hex() for y in term["y"]]

    return apply


def _count_raised(doc: Doc) -> None:
    term, _ = _find(doc, "poisson")
    term["y"][0] = (float.fromhex(term["y"][0]) + 1).hex()


def _kind_renamed(old: str, new: str) -> Callable[[Doc], None]:
    def apply(doc: Doc) -> None:
        _find(doc, old)[0]["kind"] = new

    return apply


MUTATIONS: dict[str, Callable[[Doc], None]] = {
    "delta halved": _times("huber", "delta", 0.5),
    "delta of the smooth kind halved": _times("pseudohuber", "delta", 0.5),
    "delta of the smooth kind doubled": _times("pseudohuber", "delta", 2.0),
    "targets of the smooth kind negated": _labels_flipped("pseudohuber"),
    "pseudohuber is huber": _kind_renamed("pseudohuber", "huber"),
    "huber is pseudohuber": _kind_renamed("huber", "pseudohuber"),
    "level lowered": _times("quantile", "level", 0.5),
    "kappa lowered": _times("l1", "kappa", 1 / 64),
    "mu raised": _times("ridge", "mu", 3.0),
    "mu zero": _times("ridge", "mu", 0.0),
    "total raised": _times("simplex", "total", 1.25),
    "bounds swapped": _swapped_bounds,
    "box below w": _box_below_w,
    "w off its simplex": _w_off_its_simplex,
    "w negative with the right sum": _w_leaves_its_simplex_along_it,
    "labels flipped": _labels_flipped("hinge"),
    "count raised": _count_raised,
    "targets negated": _labels_flipped("absolute"),
    "absolute is squared": _kind_renamed("absolute", "squared"),
    "squared is absolute": _kind_renamed("squared", "absolute"),
    "poisson is logistic": _kind_renamed("poisson", "logistic"),
    **{f"multipliers of {kind} negated": _all_multipliers_negated(kind)
       for kind in TERMS if kind not in ("point", "multinomial")},
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("seed", [7, 9])
def test_mutation_is_refused(seed: int, name: str) -> None:
    doc = document(seed, "every_kind", "l2")
    assert verify.check(doc).status == "CERTIFIED"
    MUTATIONS[name](doc)
    try:
        doc["sha256"] = digest(canonical(doc["data"]))
    except Verdict:  # refused by the gate, which the kernel has to notice by itself
        doc["sha256"] = digest(doc["data"])
    result = verify.check(doc)
    assert (result.status, name) == ("REFUTED", name), result.reason


@pytest.mark.parametrize("kind", [kind for kind in TERMS if kind not in ("point", "multinomial")])
def test_every_multiplier_counts_to_the_last_digit(kind: str) -> None:
    original = document(7, "every_kind", "l2")
    _, r = _find(original, kind)
    for row in range(0, len(r), 3):
        doc = copy.deepcopy(original)
        _, changed = _find(doc, kind)
        if kind in ROWS:
            changed[row] = _text(_value(changed[row]) + Fraction(1, 2**900))
        else:
            changed[row][0] = _text(_value(changed[row][0]) + Fraction(1, 2**900))
        result = verify.check(doc)
        assert result.status == "REFUTED"
        assert result.reason.startswith("false document")


def test_document_survives_json() -> None:
    doc = document(7, "every_kind", "l2")
    text = json.dumps(doc)
    assert "Infinity" not in text
    assert '"inf"' in text
    assert verify.check(json.loads(text)).status == "CERTIFIED"
