"""Canonical form and hash of the plain problem data that a certificate speaks about.

`canonical` is the gate: what passes it is a well-formed convex problem except for a quadratic
penalty that is not positive semidefinite, which the kernel decides. (It may still be infeasible:
disjoint boxes at one node.) Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from verify.kernel.numbers import as_list
from verify.kernel.verdict import Verdict, false, malformed, shown

SCHEMA = "gtv-problem/1"
CONNECTIVITY = "gtv-connectivity/1"  # of documents about partitions of the nodes of such data
# Kinds of penalties and their further fields.
PENALTIES: dict[str, set[str]] = {
    "l1": set(),
    "l2": set(),
    "linf": set(),
    "squared": set(),
    "quadratic": {"Q"},
    "pnorm": {"p"},
    "opaque": {"name"},
}
NORM_OF_P = {
    "0x1.0000000000000p+0": "l1",
    "0x1.0000000000000p+1": "l2",
    "inf": "linf",
}  # canonical p
# Arrays of each kind of loss term, and whether their rows are d wide (None: either).
TERMS: dict[str, dict[str, bool | None]] = {
    "squared": {"X": True, "y": False},
    "huber": {"X": True, "y": False, "delta": False},
    "pseudohuber": {"X": True, "y": False, "delta": False},
    "absolute": {"X": True, "y": False},
    "quantile": {"X": True, "y": False, "level": False},
    "hinge": {"X": True, "y": False},
    "logistic": {"X": True, "y": False},
    "poisson": {"X": True, "y": False},
    "multinomial": {"X": True, "y": False},
    "point": {"a": True},
    "ridge": {"mu": None},
    "l1": {"kappa": None},
    "box": {"lower": True, "upper": True},
    "simplex": {"total": False},
}
CLASSES = "multinomial"  # its rows of X are p wide, d = p K for K >= 2 classes
ROWS = tuple(kind for kind in TERMS if "X" in TERMS[kind])  # one entry per data point, not per node
# Kinds whose rules know the optional array `weight`. A kind is here because it has such a rule.
WEIGHTED = (
    *("squared", "huber", "pseudohuber", "absolute", "quantile", "hinge", "logistic", "poisson"),
    "multinomial",
    "point",
)


def term_arrays(kind: str, weighted: bool) -> dict[str, bool | None]:
    """Return the arrays of a term of a kind, in their order, see `TERMS`."""
    return TERMS.get(kind, {}) | ({"weight": False} if weighted else {})


def canonical(data: object) -> dict[str, Any]:
    """Return plain problem data as lists, ints and canonical hexadecimal floats.

    Raises `Verdict` (REFUTED) that names the first field that is not as SCHEMA.md says.
    """
    required = {"schema", "n_nodes", "dim", "edges", "weights", "lam", "penalty", "terms"}
    raw = keys(data, required, {"nodes"}, "data")
    if raw["schema"] != SCHEMA:
        raise malformed(f"data.schema must be {SCHEMA!r}, got {shown(raw['schema'])}")
    n, d = (_index(raw[key], 1, 1 << 40, key) for key in ("n_nodes", "dim"))
    rows = as_list(raw["edges"], None, "edges")
    edges = [_indices(row, 2, n, f"edge {e}") for e, row in enumerate(rows)]
    for e, edge in enumerate(edges):
        if edge[0] >= edge[1] or (e and edges[e - 1] >= edge):
            raise malformed(f"edge {e} {edge}: needs head < tail, sorted, no duplicates")
    terms = enumerate(as_list(raw["terms"], None, "terms"))
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": _positive(_reals(raw["weights"], len(edges), "weights"), "weight of edge"),
        "lam": _positive([_real(raw["lam"], "lam")], "lam")[0],
        "penalty": _penalty(raw["penalty"], d),
        "terms": [_term(t, n, d, f"terms[{k}]") for k, t in terms],
    }
    if "nodes" in raw:
        out["nodes"] = _labels(raw["nodes"], n)
    return out


def digest(canonical_data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of canonical data: of their JSON text, sorted keys, no white space."""
    text = json.dumps(canonical_data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def stated(doc: Mapping[str, Any], external: object) -> dict[str, Any]:
    """Return the canonical data of a document, embedded or external, after comparing their hash."""
    found = [canonical(x) for x in (doc.get("data"), external) if x is not None]
    if not found:
        raise Verdict("UNPROVED", "the document does not contain the problem data: pass them")
    if any(digest(x) != doc["sha256"] for x in found):
        raise false("the SHA-256 of the problem data is not the one stated")
    return found[0]


def keys(value: object, required: set[str], optional: set[str], name: str) -> dict[str, Any]:
    """Return a mapping that has all required keys and none but the required and optional ones."""
    if not isinstance(value, Mapping):
        raise malformed(f"{name} must be an object")
    found = set(value)
    if missing := required - found:
        raise malformed(f"{name}: missing {sorted(missing)}")
    if unknown := found - required - optional:
        raise malformed(f"{name}: unknown {sorted(str(x)[:40] for x in unknown)[:5]}")
    return dict(value)


def _real(value: object, name: str, infinite: bool = False) -> str:
    """Return the canonical text of a double: `float.hex`, zero without a sign, "inf" and "-inf".

    NaN is refused, and so is infinity unless the field may be `infinite`.
    """
    x = _double(value)
    if not math.isfinite(x) and (math.isnan(x) or not infinite):
        wanted = "double" if infinite else "finite double"
        raise malformed(f"{name}: expected a {wanted}, got {shown(value)}")
    if isinstance(value, str) and (x.hex() != value or value == "-0x0.0p+0"):
        raise malformed(f"{name}: {value[:40]!r} is not the canonical form of a double")
    if isinstance(value, int) and x != value:
        raise malformed(f"{name}: the integer {shown(value)} is not a double")
    return (x + 0.0).hex()


def _double(value: object) -> float:
    """Return the double that a JSON value or a hexadecimal text is, NaN if it is none."""
    try:
        if isinstance(value, float | int) and not isinstance(value, bool):
            return float(value)
        return float.fromhex(value) if isinstance(value, str) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _reals(value: object, length: int | None, name: str, infinite: bool = False) -> list[str]:
    return [_real(v, name, infinite) for v in as_list(value, length, name)]


def _index(value: Any, low: int, high: int, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not low <= value < high:
        raise malformed(f"{name}: expected an integer in [{low}, {high}), got {shown(value)}")
    return operator.index(value)


def _indices(value: object, length: int | None, n: int, name: str) -> list[int]:
    return [_index(v, 0, n, name) for v in as_list(value, length, name)]


def _positive(values: list[str], name: str) -> list[str]:
    for i, v in enumerate(values):
        if v.startswith("-") or v == "0x0.0p+0":
            raise malformed(f"{name} {i}: must be positive, got {v}")
    return values


_Range = tuple[Callable[[float], bool], str]
_POSITIVE: _Range = (lambda x: x > 0, "must be positive")
# Per kind and array, what its entries must be. (Entries of k x d forms may also be zero.)
RANGES: dict[str, dict[str, _Range]] = {
    "logistic": {"y": (lambda y: y in (0, 1), "must be 0 or 1")},
    "hinge": {"y": (lambda y: y in (-1, 1), "must be -1 or 1")},
    "poisson": {"y": (lambda y: y >= 0, "must not be negative")},
    "multinomial": {"y": (lambda y: y >= 0 and y.is_integer(), "must be a class 0, 1, ...")},
    "huber": {"delta": _POSITIVE},
    "pseudohuber": {"delta": _POSITIVE},
    "quantile": {"level": (lambda q: 0 < q < 1, "must be between 0 and 1")},
    "ridge": {"mu": _POSITIVE},
    "l1": {"kappa": _POSITIVE},
    "simplex": {"total": _POSITIVE},
}


def range_of(kind: str, key: str) -> _Range | None:
    """Return what the entries of an array of a kind must be, None where any number will do."""
    return _POSITIVE if key == "weight" else RANGES.get(kind, {}).get(key)


def _labels(value: object, n: int) -> list[int | str]:
    labels: list[int | str] = [
        str(x) if isinstance(x, str) else _index(x, -(1 << 63), 1 << 64, "nodes")
        for x in as_list(value, n, "nodes")
    ]
    if len(set(labels)) != n:
        raise malformed("nodes: labels must be distinct")
    return labels


def _penalty(value: object, d: int) -> dict[str, Any]:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in PENALTIES:
        raise malformed(f"penalty: unknown kind {shown(kind)}")
    raw = keys(value, {"kind"} | PENALTIES[kind], set(), "penalty")
    if kind == "quadratic":
        q = [_reals(row, d, "penalty.Q") for row in as_list(raw["Q"], d, "penalty.Q")]
        if any(q[i][j] != q[j][i] for i in range(d) for j in range(i)):
            raise malformed("penalty.Q must be symmetric")
        return {"kind": kind, "Q": q}
    if kind == "pnorm":
        p = "inf" if raw["p"] in ("inf", math.inf) else _real(raw["p"], "penalty.p")
        if p != "inf" and float.fromhex(p) < 1:
            raise malformed(f"penalty.p must be at least 1, got {p}")
        return {"kind": kind, "p": p}
    return {"kind": kind} | ({"name": _text(raw["name"], "penalty")} if kind == "opaque" else {})


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise malformed(f"{name}.name must be a text, got {shown(value)}")
    return value


def _term(value: object, n: int, d: int, name: str) -> dict[str, Any]:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or (kind not in TERMS and kind != "opaque"):
        raise malformed(f"{name}: unknown kind {shown(kind)}")
    arrays = {"name": False} if kind == "opaque" else TERMS[str(kind)]
    raw = keys(value, {"kind", "node", *arrays}, {"weight"} if kind in WEIGHTED else set(), name)
    if "weight" in raw:
        arrays = term_arrays(kind, weighted=True)
    node = _indices(raw["node"], None, n, f"{name}.node")
    step = 0 if kind in ROWS else 1
    if any(b - a < step for a, b in pairwise(node)):
        order = "increasing" if step else "nondecreasing"
        raise malformed(f"{name}.node must be {order}")
    out: dict[str, Any] = {"kind": kind, "node": node}
    if kind == "opaque":
        return {**out, "name": _text(raw["name"], name)}
    for key, wide in arrays.items():
        field = f"{name}.{key}"
        rows = as_list(raw[key], len(node), field)
        if wide is None:
            wide = bool(rows) and (isinstance(rows[0], list | tuple) or hasattr(rows[0], "tolist"))
        infinite = kind == "box"
        width = _features(rows, d, field) if kind == CLASSES and wide else d
        out[key] = (
            [_reals(row, width, field, infinite) for row in rows]
            if wide
            else _reals(rows, None, field)
        )
    _check_range(out, name)
    if kind == CLASSES and out["X"]:
        _check_classes(out["y"], d // len(out["X"][0]), name)
    return out


def _features(rows: list[Any], d: int, name: str) -> int:
    """Return the number of features p of rows with K >= 2 classes, d = p K."""
    if not rows:
        return d
    width = len(as_list(rows[0], None, f"a row of {name}"))
    if not width or d % width or d < 2 * width:
        raise malformed(f"{name} must have p columns with d = {d} = p K, K >= 2, got {width}")
    return width


def _check_classes(y: list[str], count: int, name: str) -> None:
    for i, x in enumerate(map(float.fromhex, y)):
        if x >= count:
            raise malformed(f"{name}.y: entry {i} must be a class below {count}, got {x}")


def _check_range(term: dict[str, Any], name: str) -> None:
    """Refuse entries that have the form of a double and are outside what the kind allows."""
    kind = term["kind"]
    for key in term:
        if (rule := range_of(kind, key)) is None:
            continue
        allowed, words = rule
        for i, row in enumerate(term[key]):
            wide = isinstance(row, list)
            for x in map(float.fromhex, row if wide else [row]):
                if not (allowed(x) or (wide and x == 0)):
                    wanted = "must not be negative" if wide else words
                    raise malformed(f"{name}.{key}: entry {i} {wanted}, got {x}")
    if kind == "box":
        for i, pair in enumerate(zip(term["lower"], term["upper"], strict=True)):
            for low, high in zip(*(map(float.fromhex, row) for row in pair), strict=True):
                if low > high or low == math.inf or high == -math.inf:
                    raise malformed(f"{name}: entry {i} needs lower <= upper, got {low}, {high}")
