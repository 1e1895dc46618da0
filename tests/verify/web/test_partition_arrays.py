"""Documents about partitions in arrays: both checkers give one answer, to damaged ones as well."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _zip_files import Members, members_of_partition, zipped

import verify

EDITS = 200 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
CORPUS = Path(__file__).resolve().parents[1] / "corpus"
INDEX: dict[str, dict[str, Any]] = json.loads((CORPUS / "index.json").read_text(encoding="ascii"))
STATUS = {"CERTIFIED": 0, "UNPROVED": 3, "REFUTED": 4}
MALFORMED = 5
#: False for their hash, which is another one in arrays.
OTHER_HASH = ("about-partition-data-changed.json", "about-partition-hash.json")
NUMBERS = (0, 1, 2, 3, 5, -1, 1.0, 0.5, True, None, "", [], {}, [0], 1 << 31, 1 << 32, 1 << 70,
           "0x1p-1", "0x1/0x3", "well-connected", "not well-connected")  # fmt: skip


@pytest.fixture(scope="module")
def originals() -> dict[str, Members]:
    """Return the corpus about partitions as arrays, but for what arrays cannot state."""
    found = {}
    for name, entry in INDEX.items():
        unfit = entry["status"] == MALFORMED or name in OTHER_HASH or "data" in entry
        if name.startswith("about-") and name.endswith(".json") and not unfit:
            document = json.loads((CORPUS / "documents" / name).read_bytes())
            if "data" in document:
                found[name] = members_of_partition(document)
    return found


def of_python(raw: bytes, folder: Path) -> tuple[int, str]:
    path = folder / "x.gtvc"
    path.write_bytes(raw)
    result = verify.check(path)
    assert not result.reason.startswith("internal error")
    malformed = result.reason.startswith("malformed")
    return MALFORMED if malformed else STATUS[result.status], result.reason


def test_the_corpus_in_arrays(
    originals: dict[str, Members], javascript: Callable[..., Any], tmp_path: Path
) -> None:
    raw = {
        name: zipped(members, deflate=bool(k % 2))
        for k, (name, members) in enumerate(originals.items())
    }
    answers = javascript([{"document": x} for x in raw.values()])
    wrong = {}
    for (name, x), answer in zip(raw.items(), answers, strict=True):
        found = INDEX[name]["status"], of_python(x, tmp_path)[0], answer["exitStatus"]
        if len(set(found)) > 1:
            wrong[name] = (*found, answer["reason"])
    assert wrong == {}
    counts = Counter(INDEX[name]["status"] for name in raw)
    assert min(counts[0], counts[3], counts[4]) >= 8


def edit(members: Members, rng: random.Random) -> Members:
    """Change a bit of an array, a number of an array, or something in the manifest."""
    at = rng.randrange(len(members))
    if rng.random() < 0.4:
        manifest = json.loads(members[0][1])
        container, key = rng.choice(list(places(manifest)))
        container[key] = rng.choice(NUMBERS)
        return [("manifest.json", json.dumps(manifest).encode()), *members[1:]]
    name, raw = members[at]
    changed = bytearray(raw)
    if at and raw:
        k = rng.randrange(len(raw))
        if rng.random() < 0.5 and len(raw) >= 8:
            changed[:4], changed[-4:] = changed[-4:], changed[:4]
        else:
            changed[k] ^= 1 << rng.randrange(8)
    return [*members[:at], (name, bytes(changed)), *members[at + 1 :]]


def places(value: Any) -> Any:
    """Yield container and key of all that is in the manifest but the head of the data."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inside in list(pairs):
        if key not in ("data", "schema"):
            yield value, key
            if isinstance(inside, dict | list):
                yield from places(inside)


def test_random_edits(
    originals: dict[str, Members], javascript: Callable[..., Any], tmp_path: Path
) -> None:
    rng = random.Random(7)
    names = [name for name in originals if INDEX[name]["status"] == 0]
    some = [zipped(edit(originals[rng.choice(names)], rng)) for _ in range(EDITS)]
    wrong, counts = [], Counter[int]()
    for raw, answer in zip(some, javascript([{"document": x} for x in some]), strict=True):
        status, reason = of_python(raw, tmp_path)
        counts[status] += 1
        if status != answer["exitStatus"]:
            wrong.append((status, reason, answer["exitStatus"], answer["reason"]))
    assert wrong == []
    assert min(counts[0], counts[4], counts[5]) >= EDITS / 20


def test_what_is_no_direction_is_not_a_missing_one(javascript: Callable[..., Any]) -> None:
    document = json.loads((CORPUS / "documents" / "about-no-l2-1.json").read_bytes())
    entry = next(x for x in document["clusters"] if "directions" in x)
    for value in ("", False, 0, [], {}):
        entry["directions"]["alpha"] = value
        assert verify.check(document).reason.startswith("malformed")
        (answer,) = javascript([{"document": json.dumps(document).encode()}])
        assert answer["exitStatus"] == MALFORMED, value
