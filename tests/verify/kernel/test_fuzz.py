"""Documents broken at random, in bytes, structure and numbers: an answer for each, in time."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _document_edits import BYTES, STRUCTURES, edit_bytes, edit_structure, leaves, text
from _plain_instances import document

import verify
from verify.kernel.work import STEPS
from verify.partitions.well_connected._check import well_connected

# 100 of each kind, which makes 10,000 documents with a multiplier of 34.
EXAMPLES = 100 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
SHARE = 20  # of the default budget, and of the 10 s that it promises
SECONDS = 10 / SHARE + 0.5
HASHED = 0.8  # share of documents with the hash of their data
NUMBERS = (
    0, -1, 1, 2, 3, 1 << 26, 1 << 40, -(1 << 63), 10**400, 0.5, -0.0, 1e-300, 1e308, 1e400,
    True, None, "", "inf", "-inf", "nan", "0x0p+0", "-0x0.0p+0", "0x1p20000", "0x1p-20000",
    "0x1p-20001", "0x1/0x3", "0x1/0x0", "-0xffffffffffffffffffffffffffff/0x7", "0x1.8p-1074",
    "0x" + "f" * 3000 + "p0", "0x1/0x" + "f" * 3000, "0x1.0000000000000p+1023", [], {}, [[]],
    [0], {"kind": "l1"}, "l1", "l2", "linf", "squared", "opaque", "\ud800",
)  # fmt: skip


@cache
def originals() -> tuple[str, ...]:
    """Return texts of true documents, of certificates and about partitions."""
    found: list[Any] = [
        document(7, "every_kind", "l2"),
        document(7, "mixed", "quadratic"),
        document(7, "logistic_ridge", "linf"),
        document(7, "poisson_ridge", "l1"),
    ]
    rng = random.Random(0)
    for lam in (0.3, 40.0):
        for d, norm in ((1, "l2"), (2, "l1"), (9, "linf"), (9, "l1")):
            terms = [
                {"kind": "point", "node": [0, 1, 2, 3], "a": [[rng.random()] * d] * 4},
                {"kind": "ridge", "node": [0, 1, 2, 3, 4], "mu": [1.0] * 5},
            ]
            data = {
                "schema": "gtv-problem/1",
                "n_nodes": 5,
                "dim": d,
                "edges": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]],
                "weights": [2.0, 1.5, 1.0, 0.01, 1.0],
                "lam": lam,
                "penalty": {"kind": norm},
                "terms": terms,
            }
            report = well_connected(data, [0, 0, 0, 1, 1])
            if all(cluster.decided for cluster in report.clusters.values()):
                found.append(report.document())
    return tuple(json.dumps(doc) for doc in found)


def broken_bytes(rng: random.Random) -> bytes:
    raw = bytearray(rng.choice(originals()).encode())
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(raw))
        kind = rng.randrange(BYTES + 1)
        if kind < BYTES:
            edit_bytes(raw, at, kind, rng)
        else:
            raw[at:at] = b"[" * rng.choice((1, 10, 2000))
    return bytes(raw)


def broken_structure(rng: random.Random) -> bytes:
    doc = json.loads(rng.choice(originals()))
    for _ in range(rng.randint(1, 3)):
        edit_structure(doc, rng.randrange(STRUCTURES), (1, 2, 50), rng)
    return text(doc, HASHED, rng)


def broken_numbers(rng: random.Random) -> bytes:
    doc = json.loads(rng.choice(originals()))
    for box, key in rng.sample(leaves(doc), rng.randint(1, 4)):
        box[key] = copy.deepcopy(rng.choice(NUMBERS))
    return text(doc, HASHED, rng)


def strict(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("make", [broken_bytes, broken_structure, broken_numbers])
def test_every_document_gets_an_answer(make: Any, tmp_path: Path) -> None:
    rng = random.Random(make.__name__)
    file = tmp_path / "document.json"
    answers = set()
    for _ in range(EXAMPLES):
        raw = make(rng)
        file.write_bytes(raw)
        start = time.process_time()
        result = verify.check(file, budget=STEPS // SHARE)
        assert time.process_time() - start < SECONDS, raw
        assert not result.reason.startswith("internal error"), (result.reason, raw)
        json.loads(json.dumps(result.to_json()), parse_constant=strict)
        answers.add(result.status)
    assert "REFUTED" in answers
