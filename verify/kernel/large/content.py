"""What the arrays of a large document must be, entry by entry, and the hash of the problem data.

Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

from verify.kernel import work
from verify.kernel.data import ROWS, canonical, range_of, term_arrays
from verify.kernel.large.archive import Archive, Stream
from verify.kernel.large.layout import FLOAT64, UINT32, Field, Head, TableHead, TermHead
from verify.kernel.verdict import false, malformed

PIECE = 1 << 15  # numbers looked at together
_NEGATIVE_ZERO = 1 << 63  # the bits of -0.0
MOST_LABELS = 1 << 26  # bytes of labels, which are read at once


def numbers_of(raw: bytes, code: str) -> array[Any]:
    """Return little-endian numbers, the code being that of `array`."""
    found = array(code, raw)
    if sys.byteorder == "big":
        found.byteswap()
    return found


class Scale:
    """What doubles are multiples of: 2^-exponent, and how long they are in that unit."""

    def __init__(self) -> None:
        self.least, self.most = math.inf, 0.0

    def see(self, values: array[float]) -> None:
        """Take some more numbers into account, all of them finite or infinite."""
        sizes = [x for x in map(abs, values) if 0 < x < math.inf]
        if sizes:
            self.least = min(self.least, min(sizes))
            self.most = max(self.most, max(sizes))

    @property
    def exponent(self) -> int:
        """Least k >= 0 known to make all numbers integers in units of 2^-k."""
        if not self.most:
            return 0
        return min(max(0, 53 - math.frexp(self.least)[1]), 1074)  # no double has finer digits

    @property
    def bits(self) -> int:
        """Return the most bits of a number in that unit."""
        return max(0, math.frexp(self.most)[1] + self.exponent) if self.most else 0


class Content:
    """All arrays of a document, looked at once: their checks, hashes and scales."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.digests: list[str] = []
        self.scales: dict[str, Scale] = {}
        self.sorted_nodes: dict[str, array[int]] = {}

    def stream(self, name: str) -> Stream:
        """Return the contents of a member from their beginning."""
        return Stream(self.archive, self.archive.members[name])

    def numbers(self, field: Field) -> Iterator[array[Any]]:
        """Yield the entries of a field in pieces."""
        for raw in self.stream(field.name).pieces(field.width * PIECE):
            yield numbers_of(raw, field.code)

    # --- problem data --------------------------------------------------------------------------

    def read_data(self, head: Head) -> None:
        """Check the problem data and note their hashes."""
        edges = [field for field in head.fields() if field.name in ("head", "tail")]
        self._check_edges(edges, head.n)
        for field in edges:
            self._hash(field)
        weights = next(field for field in head.fields() if field.name == "weights")
        self._floats(weights, _positive, "must be positive")
        if "nodes" in head.plain:
            self._labels(head)
        for term in head.terms:
            self._node(term, head.n)
            for field in term.fields[1:]:
                self._floats(field, *_range(term, field))
            if term.kind == "box":
                self._check_bounds(term)

    def _hash(self, field: Field) -> None:
        digest = hashlib.sha256()
        for raw in self.stream(field.name).pieces():
            digest.update(raw)
        self.digests.append(digest.hexdigest())

    def _check_edges(self, fields: list[Field], n: int) -> None:
        previous = -1
        for heads, tails in zip(*map(self.numbers, fields), strict=True):
            work.charge(12 * len(heads))
            keys = list(map(operator.add, map(operator.mul, heads, repeat(n)), tails))
            ordered = previous < keys[0] and all(map(operator.lt, keys, islice(keys, 1, None)))
            if not (ordered and all(map(operator.lt, heads, tails)) and max(tails) < n):
                raise malformed("edges: need head < tail < n_nodes, sorted, no duplicates")
            previous = keys[-1]

    def _node(self, term: TermHead, n: int) -> None:
        """Read the nodes of a term, which are kept: they are short."""
        field, node = term.fields[0], array("I")
        work.charge(8 * field.rows)
        for piece in self.numbers(field):
            node.extend(piece)
        compare = operator.le if term.kind in ROWS else operator.lt
        if not all(map(compare, node, islice(node, 1, None))) or (node and node[-1] >= n):
            raise malformed(f"{field.name}: not in order, or above n_nodes")
        self._hash(field)
        self.sorted_nodes[field.name] = node

    def _floats(self, field: Field, allowed: Callable[[float], bool], words: str) -> None:
        scale, digest = Scale(), hashlib.sha256()
        for raw in self.stream(field.name).pieces(FLOAT64 * PIECE):
            work.charge(len(raw))  # 8 steps a number
            digest.update(raw)
            values = numbers_of(raw, "d")
            if _NEGATIVE_ZERO in numbers_of(raw, "Q") or not all(map(allowed, values)):
                raise malformed(f"{field.name}: every entry {words}, and is no -0")
            scale.see(values)
        self.digests.append(digest.hexdigest())
        self.scales[field.name] = scale

    def _check_bounds(self, term: TermHead) -> None:
        for low, high in zip(*map(self.numbers, term.fields[1:]), strict=True):
            if not all(map(operator.le, low, high)) or math.inf in low or -math.inf in high:
                raise malformed(f"{term.fields[1].name}: needs lower <= upper")

    def _labels(self, head: Head) -> None:
        member = self.archive.members["nodes.json"]
        if member.size > MOST_LABELS:
            raise malformed(f"nodes.json: more than {MOST_LABELS} bytes")
        work.charge(8 * member.size)  # labels of two bytes are objects of sixty
        raw = self.stream("nodes.json").read(member.size)
        try:
            labels = json.loads(raw.decode("ascii"))
        except (ValueError, RecursionError) as error:
            raise malformed(f"nodes.json: {error}") from None
        read = canonical({**_NOTHING, "n_nodes": head.n, "nodes": labels})["nodes"]
        if json.dumps(read, separators=(",", ":")).encode("ascii") != raw:
            raise malformed("nodes.json: not the canonical text of the labels")
        self.digests.append(hashlib.sha256(raw).hexdigest())

    # --- witnesses -----------------------------------------------------------------------------

    def read_table(self, table: TableHead) -> None:
        """Check that indices are in order and doubles are finite; scales are noted."""
        for field in table.fields():
            if field.width == UINT32:
                self._check_indices(field, table.rows)
            elif any(v.name == field.name and not v.words for v in table.layers):
                self._check_finite(field)
            else:
                for raw in self.stream(field.name).pieces():
                    work.charge(len(raw) >> 3)

    def _check_indices(self, field: Field, rows: int) -> None:
        previous = -1
        for values in self.numbers(field):
            work.charge(8 * len(values))
            ordered = all(map(operator.lt, values, islice(values, 1, None)))
            if not (ordered and previous < values[0] and values[-1] < rows):
                raise malformed(f"{field.name}: must be increasing and below {rows}")
            previous = values[-1]

    def _check_finite(self, field: Field) -> None:
        scale = Scale()
        for values in self.numbers(field):
            work.charge(8 * len(values))
            if not all(map(math.isfinite, values)):
                raise malformed(f"{field.name}: every entry must be finite")
            scale.see(values)
        self.scales[field.name] = scale


_NOTHING: dict[str, Any] = {
    "schema": "gtv-problem/1",
    "dim": 1,
    "edges": [],
    "weights": [],
    "lam": 1,
    "penalty": {"kind": "l1"},
    "terms": [],
}


def _positive(x: float) -> bool:
    return 0 < x < math.inf


def _range(term: TermHead, field: Field) -> tuple[Callable[[float], bool], str]:
    """Return what entries of a field must be, as JSON documents have it."""
    key = field.name.rsplit("/", 1)[1]
    allowed, words = range_of(term.kind, key) or (None, "must be finite")
    if term.kind == "box":
        return (lambda x: x == x), "must be a number"
    if allowed is None:
        return math.isfinite, words
    rule = allowed
    if term.wide:
        return (lambda x: 0 <= x < math.inf), "must not be negative"
    return (lambda x: rule(x) and x < math.inf), words


def digest(plain_head: Mapping[str, Any], digests: list[str]) -> str:
    """Return the hash of problem data, from their head and the hashes of their arrays."""
    whole = {"data": plain_head, "sha256": digests}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check_hash(head: Head, content: Content, stated: object, data: object) -> None:
    """Refuse data in a document, and given beside it, that do not have the hash stated."""
    found = [digest(head.plain, content.digests)]
    if data is not None:
        found.append(digest_of_plain(canonical(data)))
    if any(x != stated for x in found):
        raise false("the SHA-256 of the problem data is not the one stated")


def digest_of_plain(data: Mapping[str, Any]) -> str:
    """Return the same hash of canonical data of a JSON document."""
    head = {k: v for k, v in data.items() if k not in ("edges", "weights", "terms", "nodes")}
    head |= {"n_edges": len(data["edges"]), "terms": []}
    arrays = [_bytes("I", [e[c] for e in data["edges"]]) for c in (0, 1)]
    arrays.append(_bytes("d", map(float.fromhex, data["weights"])))
    if "nodes" in data:
        head["nodes"] = True
        arrays.append(json.dumps(data["nodes"], separators=(",", ":")).encode("ascii"))
    for term in data["terms"]:
        plain: dict[str, Any] = {"kind": term["kind"], "rows": len(term["node"])}
        arrays.append(_bytes("I", term["node"]))
        weighted = "weight" in term
        if weighted:
            plain["weighted"] = True
        for key, wide in term_arrays(term["kind"], weighted).items():
            rows = term[key]
            if wide is None:
                plain["wide"] = bool(rows) and isinstance(rows[0], list)
            flat = chain.from_iterable(rows) if rows and isinstance(rows[0], list) else rows
            arrays.append(_bytes("d", map(float.fromhex, flat)))
        head["terms"].append(plain | ({"name": term["name"]} if "name" in term else {}))
    return digest(head, [hashlib.sha256(raw).hexdigest() for raw in arrays])


def _bytes(code: str, values: Iterable[Any]) -> bytes:
    found = array(code, values)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()
