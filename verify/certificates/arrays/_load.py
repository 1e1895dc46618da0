"""Large problem data: checked and kept as arrays, without the texts of JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.certificates.arrays._archive import Array, hash_of
from verify.certificates.arrays._convert import Members, labels_of
from verify.instance._instance import Instance, decoded, plain_data
from verify.instance._penalties import penalty_from
from verify.instance._terms import term_from
from verify.kernel.data import (
    CLASSES,
    ROWS,
    TERMS,
    WEIGHTED,
    canonical,
    range_of,
    term_arrays,
)
from verify.kernel.verdict import Verdict

_INDICES = 1 << 32  # what indices of 32 bits count
_INTEGERS = 1 << 53  # doubles are all integers up to there


class LargeData(NamedTuple):
    """Problem data in arrays.

    Attributes
    ----------
    head : dict
        Their head, as in a manifest.
    members : list of (str, ndarray)
        Their arrays.
    labels : sequence or None
        Of the nodes.
    """

    head: dict[str, Any]
    members: Members
    labels: Any

    @property
    def sha256(self) -> str:
        """Their hash."""
        return hash_of(self.head, self.members)


class _Unfit(Exception):
    """The data are no arrays of the right kind, or are wrong: `canonical` says what is wrong."""


def load_arrays(problem: Any) -> tuple[Instance, LargeData] | None:
    """Read and validate a problem whose data are arrays; None where they are not, or are wrong."""
    data = plain_data(problem)
    try:
        return _load(data)
    except (_Unfit, Verdict, ValueError, TypeError, KeyError, OverflowError):
        return None


def _load(data: Mapping[str, Any]) -> tuple[Instance, LargeData]:
    small = {key: data[key] for key in ("schema", "n_nodes", "dim", "lam", "penalty")}
    plain = canonical({**small, "edges": [], "weights": [], "terms": []})
    n, d = plain["n_nodes"], plain["dim"]
    edges, weights = _edges(data["edges"], n), _reals(data["weights"])
    _need(weights.shape == (len(edges),) and bool((weights > 0).all()))
    _need(set(data) <= {*small, "edges", "weights", "terms", "nodes"} and n < _INDICES)
    terms = [_term(t, n, d) for t in data["terms"]]
    head: dict[str, Any] = {
        **{key: plain[key] for key in small},
        "n_edges": len(edges),
        "terms": [_head(t) for t in terms],
    }
    members: Members = [("head", _indices(edges[:, 0])), ("tail", _indices(edges[:, 1]))]
    members.append(("weights", weights.astype("<f8")))
    labels = None
    if "nodes" in data:
        labels = canonical({**plain, "nodes": list(data["nodes"])})["nodes"]
        head["nodes"] = True
        members.append(("nodes.json", labels_of(labels)))
    for t, term in enumerate(terms):
        members.append((f"terms/{t}/node", _indices(term["node"])))
        keys = term_arrays(term["kind"], "weight" in term)
        members += [(f"terms/{t}/{key}", term[key].astype("<f8")) for key in keys]
    with np.errstate(over="ignore", under="ignore"):
        cap = float.fromhex(plain["lam"]) * weights
    penalty = penalty_from(decoded(plain["penalty"]))
    inst = Instance(plain, n, d, edges, cap, penalty, tuple(term_from(t, n, d) for t in terms), ())
    return inst, LargeData(head, members, labels)


def _need(condition: bool) -> None:
    if not condition:
        raise _Unfit


def _indices(values: IntArray) -> Array:
    return np.ascontiguousarray(values, dtype="<u4")


def _reals(value: Any) -> FloatArray:
    """Return doubles, zero without a sign."""
    found = np.asarray(value)
    _need(isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value))
    _need(found.dtype.kind in "fiu" and found.dtype.itemsize <= 8)
    if found.dtype.kind != "f":
        _need(found.size == 0 or int(abs(found).max()) <= _INTEGERS)
    return found.astype(np.float64) + 0.0


def _integers(value: Any, n: int) -> IntArray:
    found = np.asarray(value)
    _need(found.dtype.kind in "iu" and not np.ma.isMaskedArray(value))
    _need(found.size == 0 or bool(found.min() >= 0 and found.max() < n))
    return found.astype(np.int64)


def _edges(value: Any, n: int) -> IntArray:
    edges = _integers(value, n)
    _need(edges.ndim == 2 and edges.shape[1] == 2 and len(edges) < _INDICES)
    head, tail = edges.T
    ordered = (head[1:] > head[:-1]) | ((head[1:] == head[:-1]) & (tail[1:] > tail[:-1]))
    _need(bool((head < tail).all() and ordered.all()))
    return edges


def _term(value: Mapping[str, Any], n: int, d: int) -> dict[str, Any]:
    """Return a term with checked arrays."""
    kind = value["kind"]
    _need(kind != CLASSES)  # it has no form in arrays
    arrays = term_arrays(kind, "weight" in value and kind in WEIGHTED)
    _need(kind in TERMS and set(value) == {"kind", "node", *arrays})
    node = _integers(value["node"], n)
    least = 0 if kind in ROWS else 1
    _need(node.ndim == 1 and bool((np.diff(node) >= least).all()))
    out: dict[str, Any] = {"kind": kind, "node": node}
    for key, wide in arrays.items():
        out[key] = values = _reals(value[key])
        deep = values.ndim == 2 if wide is None else wide
        _need(values.shape == ((len(node), d) if deep else (len(node),)))
        _need(wide is not None or not deep or len(node) > 0)
        _need(bool((values == values).all() if kind == "box" else np.isfinite(values).all()))
        rule = range_of(kind, key)
        if rule is not None:
            few = kind in ("logistic", "hinge") and key == "y"
            _need(_in_range(values, rule[0], few, wide is None and values.ndim == 2))
    if kind == "box":
        low, high = out["lower"], out["upper"]
        _need(bool(((low <= high) & (low < np.inf) & (high > -np.inf)).all()))
    return out


def _in_range(values: FloatArray, rule: Callable[[float], bool], few: bool, wide: bool) -> bool:
    """Whether the kernel's rule for the entries holds: of each different one it is asked once."""
    if wide:
        return bool((values >= 0).all())
    ends = np.unique(values) if few else values[[]]
    if values.size and not few:
        ends = np.array([values.min(), values.max()])  # these rules are intervals
    return all(rule(float(x)) for x in ends[:3]) and len(ends) < 3


def _head(term: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": term["kind"], "rows": len(term["node"])}
    if "weight" in term:
        out["weighted"] = True
    for key, wide in TERMS[term["kind"]].items():
        if wide is None:
            out["wide"] = term[key].ndim == 2
    return out
