"""Texts of numbers and documents: plain Python, so that the corpus is the same everywhere."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

Document = dict[str, Any]


def double(value: Any) -> str:
    """Return the canonical text of a number of the data, which must be a double."""
    if value in ("inf", "-inf"):
        return str(value)
    x = float(value)
    assert Fraction(x) == Fraction(value), f"{value} is no double"
    return (x + 0.0).hex()


def doubles(value: Any) -> Any:
    """Return the canonical texts of a list of numbers, or of a list of lists."""
    return [doubles(v) for v in value] if isinstance(value, list | tuple) else double(value)


def number(value: Any) -> str:
    """Return the text of a witness number: hexadecimal where the number is dyadic, else a ratio."""
    q = Fraction(value)
    sign = "-" if q < 0 else ""
    if q.denominator & (q.denominator - 1):
        return f"{sign}{abs(q.numerator):#x}/{q.denominator:#x}"
    return f"{sign}{abs(q.numerator):#x}p-{q.denominator.bit_length() - 1}"


def numbers(value: Any) -> Any:
    """Return the texts of a list of witness numbers, or of lists of them."""
    return [numbers(v) for v in value] if isinstance(value, list | tuple) else number(value)


def digest(data: Any) -> str:
    """Return the SHA-256 of canonical data: they are in canonical form as they are made here."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def hashed(document: Document) -> Document:
    """Put the right hash into a document whose data were changed."""
    document["sha256"] = digest(document["data"])
    return document
