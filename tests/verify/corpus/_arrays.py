"""Certificates as raw arrays in a zip file, SCHEMA.md section 8: made from those in JSON."""

from __future__ import annotations

import copy
import hashlib
import json
import struct
import zlib
from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

from _cases import Case, case, encoded
from _numbers import Document
from _partitions import parsed
from _plants import CLASSES, Plant
from _powers import circulation

BAD, LIE = "malformed", "false document"
FIELDS = {
    "a": "a",
    "mu": "mu",
    "kappa": "kappa",
    "lower": "lower",
    "upper": "upper",
    "total": "total",
}
ROW_FIELDS = ("X", "y", "delta", "level")
LAST = ("weight",)
GRID = 40  # multipliers of plants are multiples of 2^-40, but for thirds


class Arrays:
    """A manifest and its members, which may be changed before they are written."""

    def __init__(self, document: Document, sparse: bool = False) -> None:
        data = document["data"]
        n, d, m = data["n_nodes"], data["dim"], len(data["edges"])
        self.members: dict[str, bytes] = {}
        self.head = {
            "schema": "gtv-problem/1",
            "n_nodes": n,
            "dim": d,
            "n_edges": m,
            "lam": data["lam"],
            "penalty": data["penalty"],
            "terms": [],
        }
        self._indices("head", [i for i, _ in data["edges"]])
        self._indices("tail", [j for _, j in data["edges"]])
        self._doubles("weights", data["weights"])
        if "nodes" in data:
            self.head["nodes"] = True
            self.members["nodes.json"] = json.dumps(data["nodes"], separators=(",", ":")).encode()
        for t, term in enumerate(data["terms"]):
            self._term(t, term)
        self.of_data = list(self.members)
        self.manifest: Document = {
            "schema": "gtv-certificate-arrays/1",
            "sha256": self.digest(),
            "claim": document["claim"],
            "data": self.head,
            "w": self._table("w", document["w"], sparse),
            "dual": {"u": self._table("u", document["dual"]["u"], sparse)},
        }
        self._dual(document)

    def _dual(self, document: Document) -> None:
        dual = self.manifest["dual"]
        if "quadratic" in document["dual"]:
            quadratic = copy.deepcopy(document["dual"]["quadratic"])
            quadratic["x"] = self._table("x", quadratic["x"], False)
            dual["quadratic"] = quadratic
        dual["r"] = []
        for t, r in enumerate(document["dual"]["r"]):
            rows = r if r and isinstance(r[0], list) else [[x] for x in r]
            dual["r"].append(self._table(f"r/{t}", rows, False))

    def _indices(self, name: str, values: list[int]) -> None:
        self.members[name] = struct.pack(f"<{len(values)}I", *values)

    def _doubles(self, name: str, values: Any) -> None:
        flat = [x for v in values for x in (v if isinstance(v, list) else [v])]
        numbers = [float(x) if "inf" in x else float.fromhex(x) for x in flat]
        self.members[name] = struct.pack(f"<{len(numbers)}d", *numbers)

    def _term(self, t: int, term: Document) -> None:
        head = {"kind": term["kind"], "rows": len(term["node"])}
        if term["kind"] in ("ridge", "l1"):
            value = term["mu" if term["kind"] == "ridge" else "kappa"]
            head["wide"] = isinstance(value[0], list)
        self.head["terms"].append(head)
        self._indices(f"terms/{t}/node", term["node"])
        if "weight" in term:
            head["weighted"] = True
        for key in (*ROW_FIELDS, *FIELDS, *LAST):
            if key in term:
                self._doubles(f"terms/{t}/{key}", term[key])

    def _table(self, name: str, rows: list[list[Any]], sparse: bool) -> list[Document]:
        """Return a layer of integers on a grid, and one of ratios for the rows off the grid."""
        exact = [[parsed(x) if isinstance(x, str) else F(x) for x in row] for row in rows]
        on_grid = [[x * 2**GRID for x in row] for row in exact]
        off = [k for k, row in enumerate(on_grid) if any(x.denominator > 1 for x in row)]
        dense = [[0 if k in off else int(x) for x in row] for k, row in enumerate(on_grid)]
        if not rows:
            return []
        layer: Document = {"type": "int", "words": 2, "exponent": GRID}
        if sparse:
            shown = [k for k, row in enumerate(dense) if any(row)]
            layer["rows"] = len(shown)
            self._indices(f"{name}/0/rows", shown)
            dense = [dense[k] for k in shown]
        flat = [x % 2**128 for row in dense for x in row]
        self.members[f"{name}/0"] = b"".join(x.to_bytes(16, "little") for x in flat)
        ratios = [[rows[k] for k in off]][0]
        return [layer, {"type": "ratio", "rows": off, "values": ratios}]

    def digest(self) -> str:
        hashes = [hashlib.sha256(self.members[name]).hexdigest() for name in self.of_data]
        whole = {"data": self.head, "sha256": hashes}
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def hashed(self) -> Arrays:
        self.manifest["sha256"] = self.digest()
        return self

    def items(self) -> list[tuple[str, bytes]]:
        return [("manifest.json", json.dumps(self.manifest).encode()), *self.members.items()]

    def zipped(self) -> bytes:
        return archive(self.items())


def stored_blocks(content: bytes) -> bytes:
    """Return a deflate stream without compression, the same whatever the version of zlib."""
    size = struct.pack("<HH", len(content), len(content) ^ 0xFFFF)
    return b"\x01" + size + content


def archive(items: list[tuple[str, bytes]], deflated: bool = False, **fields: int) -> bytes:
    """Return the plainest zip file; fields of all central headers may be set to something else."""
    body, directory = b"", b""
    for name, content in items:
        raw = stored_blocks(content) if deflated else content
        values = {"flags": 0, "method": 8 * deflated, "crc": zlib.crc32(content), "extra": 0}
        values |= fields
        sizes = (len(raw), len(content), len(name), values["extra"])
        stated = (values["flags"], values["method"], 0, 0, values["crc"])
        common = struct.pack("<HHHHIIIHH", *stated, *sizes)
        start = len(body)
        plain = (0, 8 * deflated, 0, 0, zlib.crc32(content))
        local = struct.pack("<HHHHIIIHH", *plain, *sizes[:3], 0)
        if "both" in fields:
            local = common
        body += b"PK\x03\x04" + struct.pack("<H", 20) + local + name.encode() + raw
        directory += b"PK\x01\x02" + struct.pack("<HH", 20, 20) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, start) + name.encode()
    count = len(items)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def arrays() -> Iterator[Case]:
    """All of them."""
    kinds = ("box", "squared", "huber", "ridges", "l1", "quantile", "simplex")
    penalties = ("l2", "l1", "squared", "linf", "singular", "quadratic", "pnorm1")
    for kind, penalty in zip(kinds, penalties, strict=True):
        document = Plant(kind, penalty, 2).document()
        made = Arrays(document, sparse=kind == "squared")
        yield case(f"{kind}-{penalty}.gtvc", "certified", made.zipped(), rtol=0.0)
    for kind in ("huber", "pseudohuber"):
        made = Arrays(Plant(kind, "l2", 2, weighted=True).document())
        yield case(f"weights-{kind}.gtvc", "certified", made.zipped(), rtol=0.0)
        for name, value in (("false", False), ("one", 1), ("null", None)):
            made.head["terms"][1]["weighted"] = value
            yield case(f"weighted-{name}-{kind}.gtvc", BAD, made.hashed().zipped())
        del made.head["terms"][1]["weighted"]
        yield case(f"weighted-left-out-{kind}.gtvc", BAD, made.hashed().zipped())
    made = Arrays(Plant("huber", "l2", 2, weighted=True).document())
    zero = struct.pack("<d", 0.0)
    made.members["terms/0/weight"] = zero + made.members["terms/0/weight"][8:]
    yield case("weights-zero.gtvc", BAD, made.hashed().zipped())
    document = Plant("box", "l2", 2).document()
    good = Arrays(document)
    yield case("deflated.gtvc", "certified", archive(good.items(), True), rtol=0.0)
    given = encoded(document["data"])
    yield case("data-given.gtvc", "certified", good.zipped(), data=given)
    other = encoded({**document["data"], "lam": "0x1.0000000000000p+0"})
    yield case("data-given-differ.gtvc", LIE, good.zipped(), data=other)
    for name, more, answer in (("", F(0), "certified"), ("-above", F(1), LIE)):
        made = Arrays(circulation("1.5", [3, 4, 5], F(6), more))
        yield case(f"power{name}.gtvc", answer, made.zipped(), rtol=0.0)
    yield case("power-3.gtvc", "certified", Arrays(Plant("huber", "pnorm3").document()).zipped())
    classes = Arrays(Plant(CLASSES, "l2", 2).document())
    yield case("multinomial.gtvc", "no exact rule", classes.zipped())
    yield from broken_files(good)
    yield from broken_contents(document)


def broken_files(good: Arrays) -> Iterator[Case]:
    raw, items = good.zipped(), good.items()
    for name, content in {
        "before": b"PK\x03\x04" + raw,
        "after": raw + b"\x00",
        "cut": raw[:-1],
        "flags": archive(items, flags=8, both=1),
        "method": archive(items, method=12, both=1),
        "crc": archive(items, crc=7, both=1),
        "headers-differ": archive(items, crc=7),
        "order": archive([items[0], *items[:0:-1]]),
        "manifest-last": archive([*items[1:], items[0]]),
        "member-missing": archive(items[:-1]),
        "member-more": archive([*items, ("more", b"")]),
        "member-twice": archive([*items, items[-1]]),
        "member-short": archive([*items[:-1], (items[-1][0], items[-1][1][:-1])]),
        "empty": archive([]),
    }.items():
        yield case(f"zip-{name}.gtvc", BAD, content)


def broken_contents(document: Document) -> Iterator[Case]:
    def made(edit: Any, again: bool = True) -> bytes:
        found = Arrays(document)
        edit(found)
        return (found.hashed() if again else found).zipped()

    def member(name: str, content: bytes) -> Any:
        return lambda a: a.members.__setitem__(name, content + a.members[name][len(content) :])

    minus, nan, one = (struct.pack("<d", x) for x in (-0.0, float("nan"), 1.0))
    edits: tuple[tuple[str, str, Any, bool], ...] = (
        ("weight-changed", LIE, member("weights", one), False),
        ("weight-minus-zero", BAD, member("weights", minus), True),
        ("weight-nan", BAD, member("weights", nan), True),
        ("edge-loop", BAD, member("head", b"\x07"), True),
        ("w-changed", "relative gap", member("w/0", b"\x00" * 7 + b"\x01"), True),
        ("u-changed", LIE, member("u/0", b"\x01"), True),
        ("type", BAD, lambda a: a.manifest["w"][0].update(type="float32"), True),
        ("words", BAD, lambda a: a.manifest["w"][0].update(words=1), True),
        ("exponent", BAD, lambda a: a.manifest["w"][0].update(exponent=20001), True),
        ("other-exponent", "w is not feasible",
         lambda a: a.manifest["w"][0].update(exponent=30), True),
        ("layers", BAD, lambda a: a.manifest.update(w=a.manifest["w"] * 9), True),
        ("ratio-row", BAD, lambda a: a.manifest["w"][1].update(rows=[9], values=[[0, 0]]), True),
        ("ratio-off", "w is not feasible", lambda a: a.manifest["w"][1].update(
            rows=[document["data"]["terms"][0]["node"][0]], values=[[0, "0x1/0x3"]]), True),
        ("head-number", BAD, lambda a: a.head.update(lam=1), True),
        ("head-more", BAD, lambda a: a.head.update(edges=[]), True),
        ("head-nodes", BAD, lambda a: a.head.update(nodes=True), True),
        ("head-edges", BAD, lambda a: a.head.update(n_edges=2**32), True),
        ("no-dual", "no dual witness", lambda a: (
            a.manifest.update(dual=None),
            [a.members.pop(k) for k in list(a.members) if k[:2] in ("u/", "r/")]), True),
        ("schema", BAD, lambda a: a.manifest.update(schema="gtv-certificate/1"), True),
        ("claim", BAD, lambda a: a.manifest["claim"].update(upper="x"), True),
    )  # fmt: skip
    for name, answer, edit, again in edits:
        yield case(f"arrays-{name}.gtvc", answer, made(edit, again))
