"""Zip files and manifests from strangers: malformed, or counted, but never a traceback."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
import sys
import time
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _plain_instances import document
from _zip_files import Members, edited, members_of, setting, zipped

import verify
from verify.kernel import work
from verify.kernel.large import layout
from verify.kernel.large.archive import Archive, Stream
from verify.kernel.large.ratios import RatioBalance, over_common
from verify.kernel.numbers import Number
from verify.kernel.result import Result
from verify.kernel.verdict import Verdict
from verify.kernel.work import STEPS

SHARE = 20  # of the default budget and of the 10 s that are promised for it


@pytest.fixture(scope="module")
def members() -> Members:
    return members_of(document(7, "everything", "l2"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.gtvc"


def checked(path: Path, raw: bytes, **options: Any) -> Result:
    path.write_bytes(raw)
    return verify.check(path, **options)


def test_the_plain_file_is_certified(members: Members, path: Path) -> None:
    assert checked(path, zipped(members)).status == "CERTIFIED"
    assert checked(path, zipped(members, deflate=True)).status == "CERTIFIED"


def _without_end(raw: bytes) -> bytes:
    """Return a deflate stream whose last block is not marked as the last."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(raw) + packer.flush(zlib.Z_FULL_FLUSH)


BROKEN: dict[str, dict[str, Any]] = {
    "garbage behind": {"behind": b"x"},
    "another end record behind": {"behind": b"PK\5\6" + bytes(18)},
    "a comment": {"comment": b"x"},
    "bytes between members": {"between": b"x"},
    "bytes before the directory": {"before": b"x"},
    "bytes after the directory": {"after": b"x"},
    "one member more": {"more": 1},
    "CRC of the local header": {"local": {"only_local": {"crc": 1}}},
    "size of the local header": {"local": {"only_local": {"size": 1}}},
    "flags of the local header": {"local": {"only_local": {"flags": 8}}},
    "one member less": {"more": -1},
    "encrypted": {"local": {"flags": 1}},
    "data descriptors": {"local": {"flags": 8}},
    "utf-8 names": {"local": {"flags": 2048}},
    "bzip2": {"local": {"method": 12}},
    "zip64 sizes": {"local": {"size": 0xFFFFFFFF, "stored": 0xFFFFFFFF}},
    "zip64 extra": {"local": {"extra": struct.pack("<HHQ", 1, 8, 100)}},
    "wrong CRC": {"local": {"crc": 1}},
    "CRC of the central header": {"local": {"central": {"crc": 1}}},
    "size of the central header": {"local": {"central": {"size": 1}}},
    "method of the central header": {"local": {"central": {"method": 8}}},
    "extra in the central header": {"local": {"central": {"extra": b"abcd"}}},
    "overlapping members": {"local": {"central": {"offset": 0}}},
    "too large": {"deflate": True, "local": {"size": 1 << 20}},
    "too small": {"deflate": True, "local": {"size": 3}},
    "unused bytes": {"deflate": True, "local": {"unused": b"x"}},
    "two streams": {"deflate": True, "local": {"unused": b"\3\0"}},
    "stored as deflated": {"local": {"method": 8}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_zip_files_that_are_not_plain(name: str, members: Members, path: Path) -> None:
    result = checked(path, zipped(members, **BROKEN[name]))
    assert result.reason.startswith("malformed"), result.reason


def test_streams_without_an_end(members: Members, path: Path) -> None:
    raw = dict(members)["weights"]
    packed = _without_end(raw)
    fields = {"size": len(raw), "crc": zlib.crc32(raw), "stored": len(packed), "method": 8}
    pieces = [(name, packed if name == "weights" else raw) for name, raw in members]
    bad = zipped(pieces)
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # only this member is deflated
        bad = _patched(bad, signature, at, fields)
    assert "has no end" in checked(path, bad).reason


def _patched(raw: bytes, signature: bytes, at: int, fields: dict[str, int]) -> bytes:
    """Write other fields into the header of `weights`."""
    name = raw.index(b"weights", raw.index(b"PK\1\2") if signature == b"PK\1\2" else 0)
    start = raw.rindex(signature, 0, name)
    new = struct.pack("<5H3L", 0, fields["method"], 0, 33, 0, 0, 0, 0)[:8]
    new += struct.pack("<3L", fields["crc"], fields["stored"], fields["size"])
    return raw[: start + at] + new + raw[start + at + len(new) :]


def test_truncations_and_single_bits(members: Members, path: Path) -> None:
    good = zipped(members)
    rng = random.Random(1)
    for _ in range(60):
        assert checked(path, good[: rng.randrange(5, len(good))]).status == "REFUTED"
    changed = 0
    for _ in range(150):
        at, bit = rng.randrange(4, len(good)), 1 << rng.randrange(8)
        result = checked(path, good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        assert not result.reason.startswith("internal error"), (at, bit)
        changed += result.status != "CERTIFIED"
    assert changed > 100  # all but dates, versions and attributes, which nobody looks at


def test_members_in_another_order_missing_or_twice(members: Members, path: Path) -> None:
    for other in (
        [members[1], members[0], *members[2:]],
        [members[0], members[2], members[1], *members[3:]],
        members[:-1],
        [*members, members[-1]],
        [*members, ("more", b"")],
        members[1:],
        [],
    ):
        assert checked(path, zipped(other)).reason.startswith("malformed") or not other


MANIFESTS = {
    "no text": lambda raw: b"\xff",
    "no object": lambda raw: b"[]",
    "key twice": lambda raw: raw.replace(b'"schema"', b'"schema": 1, "schema"', 1),
    "NaN": lambda raw: raw.replace(b'"producer"', b'"producer": NaN, "x"', 1),
    "nested": lambda raw: b"[" * 100_000,
    "schema": setting("schema", value="gtv-certificate/1"),
    "unknown key": setting("more", value=1),
    "n": setting("data", "n_nodes", value=0),
    "n as a float": setting("data", "n_nodes", value=6.0),
    "huge n": setting("data", "n_nodes", value=(1 << 32) - 1),
    "huge d": setting("data", "dim", value=(1 << 32) - 1),
    "beyond 32 bits": setting("data", "n_nodes", value=1 << 32),
    "lam as a number": setting("data", "lam", value=0.25),
    "lam not canonical": setting("data", "lam", value="0x1p-2"),
    "penalty": setting("data", "penalty", value={"kind": "l3"}),
    "nodes": setting("data", "nodes", value=False),
    "term kind": setting("data", "terms", 0, "kind", value="cubic"),
    "term rows": setting("data", "terms", 0, "rows", value=True),
    "wide": setting("data", "terms", 3, "wide", value=1),
    "layers": setting("w", value={}),
    "many layers": setting("w", value=[{"type": "ratio", "rows": [], "values": []}] * 17),
    "layer type": setting("w", 0, value={"type": "float32"}),
    "no words": setting("w", 0, value={"type": "int", "words": 0, "exponent": 0}),
    "many words": setting("w", 0, value={"type": "int", "words": 1025, "exponent": 0}),
    "exponent": setting("w", 0, value={"type": "int", "words": 1, "exponent": 20001}),
    "more rows than there are": setting("w", 0, value={"type": "float64", "rows": 7}),
    "ratio rows": setting("w", value=[{"type": "ratio", "rows": [1, 1], "values": [[0, 0]] * 2}]),
    "ratio columns": setting("w", value=[{"type": "ratio", "rows": [1], "values": [[0]]}]),
    "ratio": setting("w", value=[{"type": "ratio", "rows": [1], "values": [["0x1/0x0", 0]]}]),
    "r": setting("dual", "r", value=[]),
    "rtol": setting("claim", "rtol", value=-1),
    "claim": setting("claim", "lower", value="x"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(name: str, members: Members, path: Path) -> None:
    change = MANIFESTS[name]
    if change.__name__ == "change":
        other = edited(members, manifest=change)
        layers = json.loads(other[0][1])["w"]
        if layers and all(x["type"] == "ratio" for x in layers):  # they have no members
            other = [(key, raw) for key, raw in other if not key.startswith("w/")]
    else:
        other = edited(members, **{"manifest.json": change})
    result = checked(path, zipped(other))
    assert result.reason.startswith("malformed"), result.reason


def _first(kind: str, value: Any) -> Any:
    def change(raw: bytes) -> bytes:
        values = np.frombuffer(raw, kind).copy()
        values[0] = value
        return values.tobytes()

    return change


ARRAYS = {
    "head": _first("<u4", 9),
    "tail": _first("<u4", 0),
    "weights": _first("<f8", 0.0),
    "terms.0.node": _first("<u4", 5),
    "terms.0.X": _first("<f8", np.nan),
    "terms.0.y": _first("<f8", -0.0),
    "terms.2.y": _first("<f8", 0.5),
    "terms.3.mu": _first("<f8", np.inf),
    "w.0": _first("<f8", np.inf),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_entries_of_arrays(name: str, members: Members, path: Path) -> None:
    result = checked(path, zipped(edited(members, **{name: ARRAYS[name]})))
    assert result.reason.startswith("malformed"), result.reason


def test_indices_of_sparse_layers(members: Members, path: Path) -> None:
    layer = [{"type": "float64", "rows": 2}]
    for rows, good in (([1, 2], True), ([2, 1], False), ([1, 1], False), ([1, 6], False)):
        arrays = [("w/0/rows", np.array(rows, "<u4").tobytes()), ("w/0", bytes(32))]
        at = [name for name, _ in members].index("w/0")
        other = [*members[:at], *arrays, *members[at + 1 :]]
        result = checked(path, zipped(edited(other, manifest=setting("w", value=layer))))
        assert result.reason.startswith("malformed") != good, rows


def test_labels_are_written_in_one_way(path: Path) -> None:
    labelled = document(7, "everything", "l2")
    labelled["data"]["nodes"] = ["a", "b", "c", 1, 2, 3]
    members = members_of(labelled)
    assert checked(path, zipped(members)).status == "CERTIFIED"
    for change in (b'["a", "b","c",1,2,3]', b'["a","a","c",1,2,3]', b'["a","b","c",1,2]', b"[",
                   b'["\\u0061","b","c",1,2,3]'):  # fmt: skip
        other = edited(members, **{"nodes.json": change})
        assert checked(path, zipped(other)).reason.startswith("malformed")


def test_every_change_of_a_witness_is_refuted_or_unproved(members: Members, path: Path) -> None:
    rng = random.Random(2)
    names = [name for name, _ in members if name[0] in "ur" or name.startswith("terms")]
    for name in names:
        for _ in range(4):
            raw = bytearray(dict(members)[name])
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            result = checked(path, zipped(edited(members, **{name.replace("/", "."): bytes(raw)})))
            assert result.status == "REFUTED", name  # conservation, the hash, or malformed


def test_other_data_are_a_false_document(members: Members, path: Path) -> None:
    other = edited(members, **{"terms.0.y": _first("<f8", 3.0)})
    assert checked(path, zipped(other)).reason.startswith("false document: the SHA-256")


# --- work ------------------------------------------------------------------------------------


def bomb(size: int, d: int = 1) -> Members:
    """Return a document of one node and so many bytes of zeros in its data rows."""
    rows = size // 8 // d
    head = {
        **{"schema": "gtv-problem/1", "n_nodes": 1, "dim": d, "n_edges": 0},
        **{"lam": (1.0).hex(), "penalty": {"kind": "l2"}},
        "terms": [{"kind": "squared", "rows": rows}],
    }
    manifest = {
        **{"schema": "gtv-certificate-arrays/1", "sha256": "", "data": head, "w": []},
        "claim": {"rtol": 0, "upper": None, "lower": None},
    }
    arrays = [("head", b""), ("tail", b""), ("weights", b""), ("terms/0/node", bytes(4 * rows))]
    arrays += [("terms/0/X", bytes(8 * rows * d)), ("terms/0/y", bytes(8 * rows))]
    return [("manifest.json", json.dumps(manifest).encode()), *arrays]


@pytest.mark.parametrize("d", [1, 1 << 16])
def test_bombs_end_within_the_budget(d: int, path: Path) -> None:
    raw = zipped(bomb(1 << 26, d), deflate=True)
    assert len(raw) < 1 << 18
    start = time.process_time()
    result = checked(path, raw, budget=STEPS // SHARE)
    assert time.process_time() - start < 10 / SHARE
    assert (result.status, "--budget" in result.reason) == ("UNPROVED", True)


@pytest.mark.parametrize("n", [1, (1 << 32) - 1])
def test_dimensions_out_of_proportion(n: int, path: Path) -> None:
    """An empty table is zero everywhere, but that is counted before it is made."""
    members = edited(bomb(0), manifest=setting("data", "n_nodes", value=n))
    members = edited(members, manifest=setting("data", "dim", value=(1 << 32) - 1))
    members = edited(members, manifest=setting("data", "terms", value=[]))
    plain = [m for m in members if not m[0].startswith("terms")]
    sha = _sha_of(plain)
    result = checked(path, zipped(edited(plain, manifest=setting("sha256", value=sha))))
    assert (result.status, "--budget" in result.reason) == ("UNPROVED", True)


def _sha_of(members: Members) -> str:
    head = json.loads(members[0][1])["data"]
    digests = [hashlib.sha256(raw).hexdigest() for _, raw in members[1:]]
    text = json.dumps({"data": head, "sha256": digests}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_deflated_manifests_are_counted(members: Members, path: Path) -> None:
    long = edited(members, manifest=setting("producer", value=[0] * 10**7))
    start = time.process_time()
    raw = zipped(long, deflate=True)
    build = time.process_time() - start
    result = checked(path, raw, budget=STEPS // SHARE)
    assert (result.status, "--budget" in result.reason) == ("UNPROVED", True)
    assert time.process_time() - start - build < 10 / SHARE


def test_the_command_has_the_same_exit_statuses(members: Members, path: Path) -> None:
    def status(raw: bytes, *options: str) -> int:
        path.write_bytes(raw)
        command = [sys.executable, "-m", "verify", "check", str(path), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode

    assert status(zipped(members)) == 0
    assert status(zipped(members), "--rtol", "0") == 3
    assert status(zipped(edited(members, **{"terms.0.y": _first("<f8", 3.0)}))) == 4
    assert status(zipped(members, behind=b"x")) == 5


def test_long_ratios_are_counted(members: Members, path: Path) -> None:
    """Coprime denominators of 60,000 bits, 3 MB of text that deflate well."""
    values = [[f"0x1/{(1 << 60_000) + 2 * k + 1:#x}"] * 2 for k in range(6)]
    layer = {"type": "ratio", "rows": list(range(6)), "values": values}
    for key, target in (("u", ("dual", "u")), ("w", ("w",))):
        other = edited(members, manifest=setting(*target, value=[layer] * 8))
        other = [(name, raw) for name, raw in other if not name.startswith(f"{key}/")]
        raw = zipped(other, deflate=True)
        start = time.process_time()
        result = checked(path, raw, budget=STEPS // SHARE)
        assert time.process_time() - start < 10 / SHARE
        assert (result.status, "--budget" in result.reason) == ("UNPROVED", True)


def test_sums_of_ratios_are_counted_before_they_are_made() -> None:
    """Coprime denominators of 1,000 bits: one in common has 400,000, and 400 numerators as many."""
    row: list[Number] = [Fraction(1, (1 << 1000) + 2 * k + 1) for k in range(400)]
    for work_on in (over_common, lambda row: RatioBalance(0, 400).add(0, row, [1] * 400)):
        start = time.process_time()
        with work.counted(STEPS // SHARE), pytest.raises(Verdict, match="--budget"):
            work_on(row)
        assert time.process_time() - start < 10 / SHARE


def test_ratios_over_a_common_denominator_are_the_ratios() -> None:
    row: list[Number] = [Fraction(1, 6), 5, Fraction(-7, 4), 0]
    common, numerators = over_common(row, 10)
    assert (common, [Fraction(x, common) for x in numerators]) == (60, row)
    balance = RatioBalance(0, 4)
    for node, factors in ((2, [1, 2, 3, 4]), (2, [-1] * 4), (0, [5] * 4)):
        balance.add(node, row, factors)
    sums = {i: [Fraction(x, common) for x in own] for i, (common, own) in balance.sums.items()}
    assert sums == {2: [0, 5, Fraction(-7, 2), 0], 0: [5 * x for x in row]}


def test_exponents_of_ratios_are_counted() -> None:
    """A text of ten characters is a number of 20,000 bits."""
    with work.counted(10**6), pytest.raises(Verdict, match="--budget"):
        list(map(layout._ratio, ["0x1p-20000"] * 1000))


@pytest.mark.parametrize("piece", [1, 4, 100])
def test_what_an_inflater_holds_back_is_read(piece: int, tmp_path: Path) -> None:
    """All bytes are taken before all that they stand for has been asked for."""
    path = tmp_path / "x.zip"
    raw = bytes(1000)
    path.write_bytes(zipped([("manifest.json", raw)], deflate=True))
    with open(path, "rb") as file:
        found = Archive(file)
        stream = Stream(found, found.members["manifest.json"])
        assert b"".join(stream.pieces(piece)) == raw
