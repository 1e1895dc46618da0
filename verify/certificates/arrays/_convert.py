"""Certificates of JSON documents as arrays, number by number: any of them, exactly.

For documents that exist; large ones are made as arrays in the first place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from verify.certificates.arrays._archive import Array, Document, hash_of
from verify.kernel import numbers
from verify.kernel.data import CLASSES, term_arrays
from verify.kernel.large.layout import LARGEST_EXPONENT, MOST_WORDS, SCHEMA
from verify.kernel.numbers import Number

Members = list[tuple[str, Array]]
_MASK = (1 << 64) - 1


def from_document(document: Mapping[str, Any]) -> Document:
    """Return a JSON certificate, as `verify.certify` makes it, as arrays."""
    data = document["data"]
    head, members = of_plain(data)
    witnesses: Members = []

    def table(value: Any, name: str, rows: int, columns: int) -> list[dict[str, Any]]:
        layers, own = table_of(value, name, rows, columns)
        witnesses.extend(own)
        return layers

    n, d = data["n_nodes"], data["dim"]
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "sha256": hash_of(head, members),
        "claim": dict(document["claim"]),
        "data": head,
        "w": table(document["w"], "w", n, d),
    }
    if document.get("dual") is not None:
        m = len(data["edges"])
        manifest["dual"] = {"u": table(document["dual"]["u"], "u", m, d)}
        if (quadratic := document["dual"].get("quadratic")) is not None:
            own = {**quadratic, "x": table(quadratic["x"], "x", m, d)}
            manifest["dual"]["quadratic"] = own
        manifest["dual"]["r"] = [
            _multipliers(term, r, f"r/{t}", d, table)
            for t, (term, r) in enumerate(zip(data["terms"], document["dual"]["r"], strict=True))
        ]
    if document.get("better") is not None:
        manifest["better"] = table(document["better"], "better", n, d)
    if "producer" in document:
        manifest["producer"] = document["producer"]
    return Document(manifest, members, witnesses)


def _multipliers(term: Mapping[str, Any], r: Any, name: str, d: int, table: Any) -> Any:
    if "X" in term:
        return table([[x] for x in r], name, len(term["node"]), 1)
    return table(r, name, len(term["node"]), d)


def of_plain(data: Mapping[str, Any]) -> tuple[dict[str, Any], Members]:
    """Return head and arrays of canonical data."""
    head = {k: v for k, v in data.items() if k not in ("edges", "weights", "terms", "nodes")}
    head |= {"n_edges": len(data["edges"]), "terms": []}
    edges = np.array(data["edges"], dtype="<u4").reshape(-1, 2)
    members: Members = [("head", edges[:, 0]), ("tail", edges[:, 1])]
    members.append(("weights", _doubles(data["weights"])))
    if "nodes" in data:
        head["nodes"] = True
        members.append(("nodes.json", labels_of(data["nodes"])))
    for t, term in enumerate(data["terms"]):
        if term["kind"] == CLASSES:
            raise ValueError(
                f"path: a certificate with the loss {CLASSES!r} has no form in arrays (.gtvc); "
                "save it as .json"
            )
        plain: dict[str, Any] = {"kind": term["kind"], "rows": len(term["node"])}
        members.append((f"terms/{t}/node", np.array(term["node"], dtype="<u4")))
        if "weight" in term:
            plain["weighted"] = True
        for key, wide in term_arrays(term["kind"], "weight" in term).items():
            rows = term[key]
            deep = bool(rows) and isinstance(rows[0], list)
            if wide is None:
                plain["wide"] = deep
            flat = list(chain.from_iterable(rows)) if deep else rows
            members.append((f"terms/{t}/{key}", _doubles(flat)))
        head["terms"].append(plain | ({"name": term["name"]} if "name" in term else {}))
    return head, members


def labels_of(labels: Sequence[Any]) -> Array:
    """Return labels as the bytes of their JSON text."""
    text = json_text(list(labels))
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8)


def json_text(value: Any) -> str:
    """Return a JSON text without white space, in ASCII."""
    return json.dumps(value, separators=(",", ":"))


def _doubles(values: Sequence[str]) -> Array:
    return np.array([float.fromhex(v) for v in values], dtype="<f8")


def table_of(
    value: Any, name: str, rows: int, columns: int
) -> tuple[list[dict[str, Any]], Members]:
    """Return the layers of a table of witness numbers, and their members."""
    table, k = numbers.table(value, rows, columns, name)
    ratios = {i: row for i, row in enumerate(table) if any(type(x) is Fraction for x in row)}
    whole = [[0] * columns if i in ratios else row for i, row in enumerate(table)]
    layers, members = _integers(list(chain.from_iterable(whole)), k, name)
    if ratios:
        values = [[_text(Fraction(x) / (1 << k)) for x in row] for row in ratios.values()]
        layers.append({"type": "ratio", "rows": list(ratios), "values": values})
    return layers, members


def _text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def _integers(values: Sequence[Number], k: int, name: str) -> tuple[list[dict[str, Any]], Members]:
    """Return a dense layer of integers in units 2^-k, as doubles where they are that exactly."""
    if not any(values):
        return [], []
    flat = [int(x) for x in values]
    found = _as_doubles(flat, k)
    if found is not None:
        return [{"type": "float64"}], [(f"{name}/0", found)]
    words = max(x.bit_length() for x in flat) // 64 + 1
    if words > MOST_WORDS or k > LARGEST_EXPONENT:
        raise ValueError(f"{name}: numbers of {64 * words} bits are too long for a large document")
    return [{"type": "int", "words": words, "exponent": k}], [(f"{name}/0", words_of(flat, words))]


def _as_doubles(values: Sequence[int], k: int) -> Array | None:
    unit, found = 1 << k, np.empty(len(values), dtype="<f8")
    for i, x in enumerate(values):
        try:
            found[i] = x / unit
        except OverflowError:
            return None
        n, q = float(found[i]).as_integer_ratio()
        if n * (unit // q if q <= unit else 0) != x:
            return None
    return found


def words_of(values: Sequence[int], words: int) -> Array:
    """Return integers as words of 64 bits, least significant first, in two's complement."""
    columns = [[(x >> 64 * c) & _MASK for x in values] for c in range(words)]
    return np.array(columns, dtype="<u8").T.copy()
