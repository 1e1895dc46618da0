"""Numbers and hashes of documents: written anew from SCHEMA.md, sections 1 and 2."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction as F
from typing import Any

Document = dict[str, Any]


def read(value: Any) -> Any:
    """Return nested lists of texts as nested lists of rational numbers; infinite bounds stay."""
    if isinstance(value, list | tuple):
        return [read(v) for v in value]
    if not isinstance(value, str):
        return F(value)
    if value in ("inf", "-inf"):
        return value
    top, slash, below = value.partition("/")
    if slash:
        return F(int(top, 16), int(below, 16))
    digits, _, exponent = value.partition("p")
    whole, _, part = digits.partition(".")
    return int(whole + part, 16) * F(2) ** (int(exponent) - 4 * len(part))


def witness(value: Any) -> Any:
    """Return nested lists of rational numbers as witness numbers."""
    if isinstance(value, list | tuple):
        return [witness(v) for v in value]
    q = F(value)
    sign, size = "-" * (q < 0), abs(q.numerator)
    k = q.denominator.bit_length() - 1
    dyadic = q.denominator == 1 << k
    return f"{sign}{size:#x}p-{k}" if dyadic else f"{sign}{size:#x}/{q.denominator:#x}"


def rounded(value: Any) -> Any:
    """Return nested lists of numbers, each the double next to it as a rational number."""
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return value if isinstance(value, str) else F(float(value))


def data_numbers(value: Any) -> Any:
    """Return nested lists of doubles in the canonical form of problem data."""
    if isinstance(value, list | tuple):
        return [data_numbers(v) for v in value]
    return value if isinstance(value, str) else (float(value) + 0.0).hex()


def hashed(document: Document) -> Document:
    """Put the right hash into a document."""
    text = json.dumps(document["data"], sort_keys=True, separators=(",", ":"))
    return {**document, "sha256": hashlib.sha256(text.encode("ascii")).hexdigest()}
