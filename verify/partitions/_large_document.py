"""Documents about partitions as raw arrays, `.gtvc` (verify/SCHEMA.md, section 9), exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from verify.certificates.arrays._archive import Array, Document, hash_of
from verify.certificates.arrays._convert import Members, of_plain, table_of, words_of
from verify.certificates.arrays._load import load_arrays
from verify.kernel import numbers
from verify.kernel.data import canonical
from verify.kernel.large.layout import PARTITIONS

Rows = list[list[Any]]


def from_document(document: Mapping[str, Any], problem: object = None) -> Document:
    """Return a JSON document about a partition, as `WellConnectedReport.document` makes it.

    Parameters
    ----------
    document : mapping
        The document, with or without the problem data.
    problem : object or mapping, optional
        The problem, where the document does not have its data.
    """
    head, data = _data(document.get("data", problem))
    clusters = document["clusters"]
    d, nodes = head["dim"], [entry["cluster"] for entry in clusters]
    flows = [entry["flow"] for entry in clusters if "flow" in entry]
    of_beta = _inside(clusters, "directions", "beta")
    local = _inside(clusters, "roots", "local")
    vectors = [[[] if v is None else [v] for v in lists] for lists in of_beta]
    rows: dict[str, Rows] = {
        "beta": [[x] for entry in clusters for x in entry["beta"]],
        "delta": [[x] for entry in clusters for x in entry["delta"]],
        "directions": [row for lists in vectors for rows in lists for row in rows],
        "local": [row for lists in local for rows in lists for row in rows or ()],
    }
    tables = {name: _table(name, value, d if name in ("directions", "local") else 1)
              for name, value in rows.items()}  # fmt: skip
    tables["flow"] = _integers(list(chain.from_iterable(flows)))
    sets = [nodes for entry in clusters for nodes in entry.get("sets", ())]
    left_out = [entry.get("left_out", ()) for entry in clusters]
    members: Members = [("cluster", _indices(nodes)), ("sets", _indices(sets))]
    members.append(("left_out", _indices(left_out)))
    counts = {
        "directions": [[len(v) for v in lists] for lists in vectors],
        "local": [[0 if rows is None else len(rows) + 1 for rows in lists] for lists in local],
    }
    for name in ("beta", "delta", "flow", "directions", "local"):
        if name in counts:
            members.append((f"{name}/count", _indices(counts[name])))
        members += tables[name][1]
    manifest = {
        "schema": PARTITIONS,
        "sha256": hash_of(head, data),
        "claim": document["claim"],
        "data": head,
        "clusters": [_small(entry) for entry in clusters],
        **{name: layers for name, (layers, _) in tables.items()},
    }
    if "producer" in document:
        manifest["producer"] = document["producer"]
    return Document(manifest, data, members)


def _data(problem: Any) -> tuple[dict[str, Any], Members]:
    """Return head and arrays of the problem data, without texts where they are arrays."""
    found = load_arrays(problem)
    return (found[1].head, found[1].members) if found else of_plain(canonical(problem))


def _inside(clusters: Sequence[Mapping[str, Any]], key: str, part: str) -> list[Any]:
    return [entry[key][part] for entry in clusters if part in entry.get(key, {})]


def _small(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stays of a witness in the manifest: for lists, how long they are."""
    out = {key: value for key, value in entry.items() if key not in ("beta", "delta")}
    out |= {key: len(entry[key]) for key in ("cluster", "flow", "left_out") if key in entry}
    if "sets" in entry:
        out["sets"] = [len(nodes) for nodes in entry["sets"]]
    if "beta" in entry.get("directions", {}):
        rows = [v for v in entry["directions"]["beta"] if v is not None]
        out["directions"] = {**entry["directions"], "beta": len(rows)}
    if "local" in entry.get("roots", {}):
        count = sum(len(rows) for rows in entry["roots"]["local"] if rows is not None)
        out["roots"] = {**entry["roots"], "local": count}
    return out


def _indices(lists: Iterable[Sequence[int]]) -> Array:
    return np.fromiter(chain.from_iterable(lists), dtype="<u4")


def _integers(flow: list[int]) -> tuple[list[dict[str, Any]], Members]:
    words = max((x.bit_length() for x in flow), default=0) // 64 + 1
    return [{"type": "int", "words": words, "exponent": 0}], [("flow/0", words_of(flow, words))]


def _table(name: str, rows: Rows, columns: int) -> tuple[list[dict[str, Any]], Members]:
    return table_of([[_dyadic(x) for x in row] for row in rows], name, len(rows), columns)


def _dyadic(value: Any) -> Any:
    """Return a ratio over a power of two as a hexadecimal float, which needs no ratio."""
    if not isinstance(value, str) or "/" not in value:
        return value
    (x,), _ = numbers.scaled([value])
    x = Fraction(x)
    k = x.denominator.bit_length() - 1
    return f"{x.numerator:#x}p-{k}" if x.denominator == 1 << k else value
