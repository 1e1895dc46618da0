"""Random edits of documents: of their bytes, of their structure, and written with a new hash."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Sequence
from typing import Any

from verify.kernel.data import canonical, digest
from verify.kernel.verdict import Verdict

#: How many kinds of edits of bytes, and of structures, there are.
BYTES, STRUCTURES = 4, 5


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a document."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        box = waiting.pop()
        for key in list(box) if isinstance(box, dict) else range(len(box)):
            found.append((box, key))
            if isinstance(box[key], dict | list):
                waiting.append(box[key])
    return found


def leaves(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a document that contains nothing itself."""
    return [(box, key) for box, key in places(value) if not isinstance(box[key], dict | list)]


def edit_bytes(raw: bytearray, at: int, kind: int, rng: random.Random) -> None:
    """Change, delete, insert or repeat some bytes at a place."""
    if kind == 0:
        raw[at] = rng.randrange(256)
    elif kind == 1:
        del raw[at : at + rng.randint(1, 40)]
    elif kind == 2:
        raw[at:at] = bytes(rng.choice(b'[]{},:"0123456789efxp.-') for _ in range(5))
    else:
        raw[at:at] = raw[at : at + rng.randint(1, 200)]


def edit_structure(document: Any, kind: int, copies: Sequence[int], rng: random.Random) -> None:
    """Repeat, delete, replace, wrap or rename an entry, where that can be done."""
    box, key = rng.choice(places(document))
    other, name = rng.choice(places(document))
    if kind == 0 and isinstance(box, list):
        box.insert(key, copy.deepcopy(box[key]))
    elif kind == 1:
        del box[key]
    elif kind == 2:
        box[key] = copy.deepcopy(other[name])
    elif kind == 3:
        box[key] = [copy.deepcopy(box[key])] * rng.choice(copies)
    elif isinstance(box, dict):
        box[str(name)] = box.pop(key)


def text(document: Any, share: float, rng: random.Random) -> bytes:
    """Write a document, mostly with the hash of its data, so that it is looked at further."""
    if isinstance(document, dict) and rng.random() < share:
        with contextlib.suppress(Verdict):
            document["sha256"] = digest(canonical(document.get("data")))
    return json.dumps(document).replace("NaN", "null").replace("Infinity", "1e999").encode()
