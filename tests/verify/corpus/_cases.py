"""A case of the corpus: a document, or any bytes, and the answer that both checkers must give."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from _numbers import Document, hashed

# Exit statuses by classes of reasons, whose words are in the texts of both checkers.
STATUSES = {
    "certified": 0,
    "malformed": 5,
    "false document": 4,
    "false constant": 4,
    "false flow": 4,
    "false set": 4,
    "w is not feasible": 4,
    "w is not within rtol": 4,
    "relative gap": 3,
    "problem data": 3,
    "no exact rule": 3,
    "no dual witness": 3,
    "quadratic": 3,
    "too large to be enclosed": 3,
    "budget": 3,
    "too close": 3,
    "direction": 3,
    "strong convexity": 3,
    "root": 3,
    "norms": 3,
}
Path = Sequence[Any]


@dataclass(frozen=True)
class Case:
    """One file.

    Attributes
    ----------
    name
        Of the file.
    answer
        A key of `STATUSES`.
    content
        Bytes of the file.
    data
        Bytes of a second file, the problem data that are given.
    rtol, budget
        Of the check; None for what is usual.
    """

    name: str
    answer: str
    content: bytes
    data: bytes | None = None
    rtol: float | None = None
    budget: int | None = None


def case(name: str, answer: str, document: Any, **options: Any) -> Case:
    """Return the case of a document, of a text or of bytes."""
    assert answer in STATUSES, answer
    return Case(name, answer, encoded(document), **options)


def encoded(document: Any) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def put(document: Document, path: Path, value: Any) -> Document:
    """Return a copy with a value at a path, which may be new; a function is applied to the old."""
    changed = copy.deepcopy(document)
    box: Any = changed
    for key in path[:-1]:
        box = box[key]
    if callable(value):
        value = value(box[path[-1]])
    if isinstance(box, list) and path[-1] == len(box):
        box.append(value)
    else:
        box[path[-1]] = value
    return changed


def without(document: Document, path: Path) -> Document:
    """Return a copy in which what is at a path is missing."""
    changed = copy.deepcopy(document)
    box: Any = changed
    for key in path[:-1]:
        box = box[key]
    del box[path[-1]]
    return changed


def text_with(document: Document, path: Path, literal: str) -> str:
    """Return the text of a document with any text in the place of a value."""
    mark = "@ the place @"
    return json.dumps(put(document, path, mark)).replace(f'"{mark}"', literal)


def changed(document: Document, path: Path, edit: Callable[[Any], Any] | Any) -> Document:
    """Return a copy with a change of its data, and their hash."""
    return hashed(put(document, ("data", *path), edit))
