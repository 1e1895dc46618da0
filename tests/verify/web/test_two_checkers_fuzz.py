"""Random edits of the corpus, in bytes, structure and numbers: both checkers give one answer."""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _document_edits import (
    BYTES,
    STRUCTURES,
    edit_bytes,
    edit_structure,
    leaves,
    places,
    text,
)

import verify

# 100 of each kind, which makes 10,200 documents with a multiplier of 34.
EXAMPLES = 100 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
CORPUS = Path(__file__).resolve().parents[1] / "corpus"
STATUS = {"CERTIFIED": 0, "UNPROVED": 3, "REFUTED": 4}
HASHED = 0.85  # share of documents with the hash of their data
PARTITIONS = 0.4  # share of documents about partitions, of which there are fewer
NUMBERS = (
    0, -1, 1, 2, 3, 5, 1 << 26, 1 << 40, -(1 << 63), 10**400, 0.5, -0.0, 1e-300, 1e308, True, None,
    "", "inf", "-inf", "nan", "0x0p+0", "-0x0.0p+0", "0x1p-20001", "0x1/0x3", "0x1/0x0",
    "-0xffffffffffffffffffffffffffff/0x7", "0x1.8p-1074", "0x" + "f" * 300 + "p0",
    "0x1/0x" + "f" * 300, "0x1.0000000000000p+1023", "0x1.0000000000000p+0",
    "0x1.8000000000000p+1", "0x1p-1", "-0x3p-3", "0x1p0", [], {}, [[]], [0], {"kind": "l1"},
    "l1", "l2", "linf", "squared", "opaque", "\ud800",
)  # fmt: skip


@cache
def originals() -> tuple[bytes, ...]:
    """Return the documents that are looked at from end to end."""
    index = json.loads((CORPUS / "index.json").read_text(encoding="ascii"))
    whole = ("certified", "relative gap", "w is not within rtol")
    names = [name for name, e in index.items() if e["reason"] in whole and "data" not in e]
    names = [name for name in names if name.endswith(".json")]
    return tuple((CORPUS / "documents" / name).read_bytes() for name in names)


@cache
def parsed(schema: str) -> tuple[Any, ...]:
    found = [json.loads(raw) for raw in originals()]
    return tuple(document for document in found if document["schema"] == schema)


def chosen(rng: random.Random) -> Any:
    about = "gtv-connectivity/1" if rng.random() < PARTITIONS else "gtv-certificate/1"
    return copy.deepcopy(rng.choice(parsed(about)))


def edited_bytes(rng: random.Random) -> bytes:
    raw = bytearray(rng.choice(originals()))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(raw))
        kind = rng.randrange(BYTES + 1)
        if kind < BYTES:
            edit_bytes(raw, at, kind, rng)
        else:
            digits = [i for i, c in enumerate(raw) if c in b"0123456789abcdef"]
            raw[rng.choice(digits)] = rng.choice(b"0123456789abcdef")
    return bytes(raw)


def edited_structure(rng: random.Random) -> bytes:
    document = chosen(rng)
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(STRUCTURES + 1)
        if kind < STRUCTURES:
            edit_structure(document, kind, (1, 2, 3), rng)
            continue
        box, key = rng.choice(places(document))
        if isinstance(box, list):
            j = rng.randrange(len(box))
            box[key], box[j] = box[j], box[key]
    return text(document, HASHED, rng)


def edited_numbers(rng: random.Random) -> bytes:
    document = chosen(rng)
    for box, key in rng.sample(leaves(document), rng.randint(1, 3)):
        box[key] = near(box[key], rng) if rng.random() < 0.6 else copy.deepcopy(rng.choice(NUMBERS))
    return text(document, HASHED, rng)


def near(value: Any, rng: random.Random) -> Any:
    """Return another number like it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value + rng.choice((-1, 1, 2, value, -value))
    if not (isinstance(value, str) and value.lstrip("-").startswith("0x")):
        return value
    first = value.index("x") + 1
    at = rng.choice([i for i in range(first, len(value)) if value[i] in "0123456789abcdef"])
    return value[:at] + rng.choice("0123456789abcdef") + value[at + 1 :]


def status(result: verify.Result) -> int:
    return 5 if result.reason.startswith("malformed") else STATUS[result.status]


def test_both_checkers_give_one_answer(javascript: Callable[..., Any], tmp_path: Path) -> None:
    rng = random.Random("two checkers")
    documents = [
        make(rng)
        for make in (edited_bytes, edited_structure, edited_numbers)
        for _ in range(EXAMPLES)
    ]
    tolerances = [rng.choice((1e-6, 0.0, 0.25, 1.0)) for _ in documents]
    questions = [{"document": d, "rtol": t} for d, t in zip(documents, tolerances, strict=True)]
    file, seen, wrong = tmp_path / "document.json", Counter[int](), []
    for raw, rtol, answer in zip(documents, tolerances, javascript(questions), strict=True):
        file.write_bytes(raw)
        result = verify.check(file, rtol=rtol)
        seen[status(result)] += 1
        if "budget" in (result.reason + answer["reason"]):
            continue  # each counts in its own way, and may give up: UNPROVED
        if not agree(result, answer):
            wrong.append(
                (result.status, result.reason, answer["exitStatus"], answer["reason"], raw)
            )
    assert wrong == []
    assert min(seen[k] for k in (0, 4, 5)) >= EXAMPLES // 10


def agree(result: verify.Result, answer: dict[str, Any]) -> bool:
    """Whether status and bounds are the same, the bounds up to what is enclosed."""
    if status(result) != answer["exitStatus"]:
        return False
    theirs, mine = result.to_json(), answer["figures"]
    return all(
        mine[key] == pytest.approx(theirs[key], rel=1e-15)
        if theirs[key] is not None and mine[key] is not None
        else mine[key] is theirs[key]
        for key in ("upper", "lower")
    )
