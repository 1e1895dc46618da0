"""Documents about partitions in arrays: the answers of the JSON documents, damaged ones included.

`decoded` reads the arrays by itself, from SCHEMA.md, so that what the kernel makes of any file is
compared with what it makes of the JSON document that says the same.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _zip_files import Members, edited, members_of_partition, setting, zipped

import verify
from verify.certificates.arrays._archive import write
from verify.kernel.data import canonical, digest
from verify.kernel.large import archive, content
from verify.kernel.result import Result
from verify.kernel.work import STEPS
from verify.partitions._large_document import from_document
from verify.partitions.well_connected._check import well_connected

CORPUS = Path(__file__).parents[2] / "corpus" / "documents"
SHARE = 20  # of the default budget and of the 10 s that are promised for it


def problem(lam: float, kind: str, d: int, rows: bool) -> dict[str, Any]:
    """Two triangles joined by a weak edge, and a node of its own."""
    rng = np.random.default_rng(d)
    a = np.repeat([0.0, 3.0, 9.0], [3, 3, 1])[:, None] + rng.normal(size=(7, d)) / 8
    x = np.round(rng.normal(size=(7 * (d + 1), d)), 3)
    node = np.repeat(np.arange(7), d + 1)
    terms: list[dict[str, Any]] = [
        {"kind": "point", "node": list(range(7)), "a": a.tolist()},
        {"kind": "ridge", "node": [0, 4], "mu": [0.5, 0.25]},
        {"kind": "ridge", "node": [1], "mu": [[0.0] + [1.0] * (d - 1)]},
    ]
    if rows:
        y = (x * a[node]).sum(axis=1)
        squared = {"node": node.tolist(), "X": x.tolist(), "y": y.tolist()}
        terms.append({"kind": "squared", **squared})
    return {
        **{"schema": "gtv-problem/1", "n_nodes": 7, "dim": d, "lam": lam},
        "edges": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5], [5, 6]],
        "weights": [2.0, 1.5, 1.0, 2.0**-12, 1.0, 1.0, 1.25, 2.0**-12],
        "penalty": {"kind": kind},
        "terms": terms,
    }


LABELS = ["a", "a", "a", "b", "b", "b", "c"]
CASES = [
    (kind, d, (k + j) % 2 == 0, lam)
    for k, kind in enumerate(("l1", "l2", "linf"))
    for j, d in enumerate((1, 3, 9))
    for lam in (1e3, 1e-3)
]


def checked(members: Members, folder: Path, **options: Any) -> Result:
    path = folder / "x.gtvc"
    path.write_bytes(zipped(members, **options))
    return verify.check(path)


# --- an independent reader -------------------------------------------------------------------


def table(layers: Any, name: str, arrays: dict[str, bytes], rows: int, d: int) -> list[list[str]]:
    found = [[Fraction(0)] * d for _ in range(rows)]
    for number, layer in enumerate(layers):
        raw = arrays.get(f"{name}/{number}", b"")
        chosen: Any = range(rows)
        if layer["type"] == "ratio":
            chosen, values = layer["rows"], [x for row in layer["values"] for x in map(exact, row)]
        elif layer["type"] == "float64":
            values = [Fraction(x) for x in np.frombuffer(raw, "<f8").tolist()]
        else:
            size, unit = 8 * layer["words"], Fraction(2) ** -layer["exponent"]
            pieces = (raw[at : at + size] for at in range(0, len(raw), size))
            values = [int.from_bytes(p, "little", signed=True) * unit for p in pieces]
        if layer["type"] != "ratio" and "rows" in layer:
            chosen = np.frombuffer(arrays[f"{name}/{number}/rows"], "<u4").tolist()
        for i, row in zip(chosen, zip(*[iter(values)] * d, strict=True), strict=True):
            found[i] = [a + b for a, b in zip(found[i], row, strict=True)]
    return [[f"{x.numerator:#x}/{x.denominator:#x}" for x in row] for row in found]


def exact(text: Any) -> Fraction:
    if isinstance(text, str) and "p" in text:
        mantissa, exponent = text.split("p")
        assert "." not in mantissa
        return int(mantissa, 16) * Fraction(2) ** int(exponent)
    return (
        Fraction(*(int(x, 16) for x in text.split("/")))
        if isinstance(text, str)
        else Fraction(text)
    )


def decoded(members: Members, data: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON document that says the same, about the given data."""
    manifest, arrays = json.loads(members[0][1]), dict(members)
    d, entries = manifest["data"]["dim"], manifest["clusters"]
    ints = {
        name: iter(np.frombuffer(arrays[name], "<u4").tolist())
        for name in ("cluster", "sets", "left_out", "directions/count", "local/count")
    }

    def rows(name: str, count: int, columns: int) -> Iterator[list[str]]:
        return iter(table(manifest[name], name, arrays, count, columns))

    def take(source: Iterator[Any], count: int) -> list[Any]:
        return [next(source) for _ in range(count)]

    def total(key: str, part: str) -> int:
        return sum(e.get(key, {}).get(part, 0) for e in entries)

    nodes = sum(e["cluster"] for e in entries)
    beta, delta = rows("beta", nodes, 1), rows("delta", nodes, 1)
    flow = rows("flow", sum(e.get("flow", 0) for e in entries), 1)
    along = rows("directions", total("directions", "beta"), d)
    local = rows("local", total("roots", "local"), d)
    clusters = []
    for entry in entries:
        size, out = entry["cluster"], dict(entry)
        out["cluster"] = take(ints["cluster"], size)
        out["beta"] = [x for (x,) in take(beta, size)]
        out["delta"] = [x for (x,) in take(delta, size)]
        if "flow" in entry:
            out["flow"] = [int(exact(x)) for (x,) in take(flow, entry["flow"])]
        if "sets" in entry:
            out["sets"] = [take(ints["sets"], k) for k in entry["sets"]]
            out["left_out"] = take(ints["left_out"], entry["left_out"])
        if "beta" in entry.get("directions", {}):
            some = [next(along) if c else None for c in take(ints["directions/count"], size)]
            out["directions"] = {**entry["directions"], "beta": some}
        if "local" in entry.get("roots", {}):
            counts = take(ints["local/count"], size)
            roots = [take(local, c - 1) if c else None for c in counts]
            out["roots"] = {**entry["roots"], "local": roots}
        clusters.append(out)
    plain = canonical(data)
    return {
        **{"schema": "gtv-connectivity/1", "sha256": digest(plain), "data": plain},
        **{"claim": manifest["claim"], "clusters": clusters},
    }


# --- the same answers --------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d", "rows", "lam"), CASES)
def test_claims_of_all_kinds(kind: str, d: int, rows: bool, lam: float, tmp_path: Path) -> None:
    data = problem(lam, kind, d, rows)
    report = well_connected(data, LABELS)
    assert report.holds == (lam > 1)
    report.save(tmp_path / "x.gtvc")
    members = members_of_partition(report.document())
    results = {
        verify.check(report.document()),
        verify.check(tmp_path / "x.gtvc"),
        verify.check(decoded(members, data)),
        checked(members, tmp_path, deflate=True),
    }
    assert len(results) == 1
    assert results.pop().status == "CERTIFIED"


def test_documents_of_the_corpus(tmp_path: Path) -> None:
    """All that arrays can state get the same answer for the same reason."""
    found = []
    for path in sorted(CORPUS.glob("about-*.json")):
        try:
            document = json.loads(path.read_bytes())
            result = verify.check(document)
            arrays = from_document(document)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # no document at all
        if result.reason.startswith("malformed") or "SHA-256" in result.reason:
            continue  # arrays have other shapes and another hash
        write(arrays, tmp_path / "x.gtvc")
        assert verify.check(tmp_path / "x.gtvc") == result, path.name
        found.append(result.status)
    assert {s: found.count(s) >= 8 for s in ("CERTIFIED", "REFUTED", "UNPROVED")} == {
        "CERTIFIED": True, "REFUTED": True, "UNPROVED": True,
    }  # fmt: skip


@pytest.mark.parametrize("lam", [1e3, 1e-3])
def test_pieces_of_any_size(lam: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = well_connected(problem(lam, "l2", 3, True), LABELS)
    monkeypatch.setattr(content, "PIECE", 3)
    monkeypatch.setattr(archive, "PIECE", 7)
    result = checked(members_of_partition(report.document()), tmp_path, deflate=True)
    assert result == verify.check(report.document())


def test_data_given_separately_must_be_the_same(tmp_path: Path) -> None:
    data = problem(1e3, "linf", 2, True)
    data["nodes"] = ["ä", "b", 3, 4, 5, 6, 7]
    arrays = {**data, "edges": np.array(data["edges"]), "weights": np.array(data["weights"])}
    path = tmp_path / "x.gtvc"
    for given in (data, arrays):
        well_connected(given, LABELS).save(path, embed=False)
        assert verify.check(path, data).status == "CERTIFIED"
        result = verify.check(path, {**data, "lam": 2e3})
        assert result.reason.startswith("false document: the SHA-256")


def mixed(members: Members) -> Members:
    """State beta in four layers: doubles, long integers in some rows, and ratios."""
    beta = np.frombuffer(dict(members)["beta/0"], "<f8")
    whole = np.floor(beta * 2.0**20).astype("<i8")
    rest = beta - whole * 2.0**-20
    layers = [
        {"type": "int", "words": 1, "exponent": 20},
        {"type": "float64"},
        {"type": "int", "words": 2, "exponent": 70, "rows": 2},
        {"type": "ratio", "rows": [1, 3], "values": [["0x1/0x3"], ["0x1p-30"]]},
    ]
    arrays = [("beta/0", whole.tobytes()), ("beta/1", rest.tobytes()),
              ("beta/2/rows", np.array([0, 2], "<u4").tobytes()),
              ("beta/2", (1).to_bytes(16, "little") * 2)]  # fmt: skip
    at = [name for name, _ in members].index("beta/0")
    members = [*members[:at], *arrays, *members[at + 1 :]]
    return edited(members, manifest=lambda m: m.update(beta=layers))


def test_layers_add_up(tmp_path: Path) -> None:
    """The clusters have other betas then, which are safe ones, larger; demands grow with them."""
    data = problem(1e6, "linf", 3, False)
    members = mixed(members_of_partition(well_connected(data, LABELS).document()))
    document = decoded(members, data)
    assert exact(document["clusters"][0]["beta"][1]).denominator % 3 == 0
    result = checked(members, tmp_path)
    assert result == verify.check(document)


@pytest.mark.parametrize("kind", ["l1", "l2", "linf"])
@pytest.mark.parametrize("lam", [1e3, 1e-3])
def test_any_change_of_an_array_is_judged_as_in_json(kind: str, lam: float, tmp_path: Path) -> None:
    data = problem(lam, kind, 3, True)
    members = members_of_partition(well_connected(data, LABELS).document())
    rng, answers = random.Random(4), []
    at = [name for name, _ in members].index("cluster")
    for name in (name for name, raw in members[at:] if raw):
        for _ in range(8):
            raw = bytearray(dict(members)[name])
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            other = edited(members, **{name.replace("/", "."): bytes(raw)})
            result = checked(other, tmp_path)
            answers.append(result.status)
            if name.endswith("/count"):  # the sum of the counts is no longer what is stated
                assert result.reason.startswith("malformed")
                continue
            try:
                expected = verify.check(decoded(other, data))
            except (ValueError, OverflowError):  # no finite number
                assert result.reason.startswith("malformed"), name
                continue
            assert (result.status, result.reason) == (expected.status, expected.reason), name
    assert answers.count("REFUTED") > len(answers) / 3


# --- hostile files -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def members() -> Members:
    return members_of_partition(well_connected(problem(1e3, "l2", 2, True), LABELS).document())


@pytest.fixture(scope="module")
def negative() -> Members:
    return members_of_partition(well_connected(problem(1e-3, "l2", 2, True), LABELS).document())


INT = {"type": "int", "words": 1}
MANIFESTS = {
    "schema": setting("schema", value="gtv-connectivity/1"),
    "schema of a certificate": setting("schema", value="gtv-certificate-arrays/1"),
    "unknown key": setting("more", value=1),
    "a table missing": lambda m: m.pop("delta"),
    "head": setting("data", "n_edges", value=7),
    "claim": setting("claim", value="maybe"),
    "clusters": setting("clusters", value={}),
    "a cluster": setting("clusters", 0, value=3),
    "no cluster": lambda m: m["clusters"][0].pop("cluster"),
    "a list": setting("clusters", 0, "cluster", value=[0, 1, 2]),
    "beta in the manifest": setting("clusters", 0, "beta", value=[1, 1, 1]),
    "negative": setting("clusters", 0, "cluster", value=-3),
    "as a float": setting("clusters", 0, "flow", value=3.0),
    "true": setting("clusters", 0, "flow", value=True),
    "huge": setting("clusters", 0, "cluster", value=(1 << 32) - 1),
    "beyond 32 bits": setting("clusters", 0, "cluster", value=1 << 32),
    "sizes that add up": lambda m: (
        m["clusters"][0].update(cluster=4), m["clusters"][1].update(cluster=2)
    ),
    "flow of floats": setting("flow", value=[{"type": "float64"}]),
    "flow with a unit": setting("flow", value=[{**INT, "exponent": 1}]),
    "flow of ratios": setting("flow", value=[{**INT, "exponent": 0},
                                          {"type": "ratio", "rows": [0], "values": [[1]]}]),
    "sets of a flow": setting("clusters", 0, "sets", value=[]),
    "sets": setting("clusters", 0, "sets", value=3),
    "local null": setting("clusters", 0, "roots", "local", value=None),
    "local of a list": setting("clusters", 0, "roots", "local", value=[]),
    "roots null": setting("clusters", 0, "roots", value=None),
    "directions null": setting("clusters", 0, "directions", value=None),
    "local rows": setting("clusters", 0, "roots", "local", value=1),
    "layers": setting("beta", value=None),
    "sink": setting("clusters", 0, "sink", value=[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(name: str, members: Members, tmp_path: Path) -> None:
    result = checked(edited(members, manifest=MANIFESTS[name]), tmp_path)
    assert result.reason.startswith("malformed"), result.reason


def test_members_in_another_order_missing_or_more(members: Members, tmp_path: Path) -> None:
    at = [name for name, _ in members].index("cluster")
    swapped = [*members[:at], members[at + 1], members[at], *members[at + 2 :]]
    for other in (swapped, members[:-1], [*members, ("more", b"")], members[:at]):
        assert checked(other, tmp_path).reason.startswith("malformed")


def test_counts_that_do_not_add_up(members: Members, negative: Members, tmp_path: Path) -> None:
    for some, name in ((members, "local/count"), (negative, "directions/count")):
        counts = np.frombuffer(dict(some)[name], "<u4").copy()
        assert counts.sum() > len(counts) or name == "directions/count"
        for values in (counts + 1, counts * 0, [*counts[:-1], 1 << 31], [2, 0, *counts[2:]]):
            raw = np.array(values, "<u4").tobytes()
            result = checked(edited(some, **{name.replace("/", "."): raw}), tmp_path)
            assert result.reason.startswith("malformed"), (name, values)


def test_nodes_in_arrays(members: Members, negative: Members, tmp_path: Path) -> None:
    for some, name in ((members, "cluster"), (negative, "cluster"), (negative, "left_out")):
        raw = dict(some)[name]
        for value in (7, (1 << 32) - 1, int.from_bytes(raw[4:8], "little")):
            other = edited(some, **{name: value.to_bytes(4, "little") + raw[4:]})
            assert checked(other, tmp_path).reason.startswith("malformed"), (name, value)


def test_a_false_flow_a_false_set_and_false_data(
    members: Members, negative: Members, tmp_path: Path
) -> None:
    flow = np.frombuffer(dict(members)["flow/0"], "<i8")
    for other in (flow * 0, -flow, flow * 0 + (1 << 62)):
        raw = other.astype("<i8").tobytes()
        assert "false flow" in checked(edited(members, **{"flow.0": raw}), tmp_path).reason
    beta = np.frombuffer(dict(negative)["beta/0"], "<f8") * 2
    assert "false" in checked(edited(negative, **{"beta.0": beta.tobytes()}), tmp_path).reason
    weights = np.frombuffer(dict(members)["weights"], "<f8") * 2
    result = checked(edited(members, weights=weights.tobytes()), tmp_path)
    assert result.reason.startswith("false document: the SHA-256")


def test_truncations_and_single_bits(members: Members, tmp_path: Path) -> None:
    good, rng, path = zipped(members), random.Random(1), tmp_path / "x.gtvc"
    for k in range(80):
        at, bit = rng.randrange(4, len(good)), 1 << rng.randrange(8)
        path.write_bytes(
            good[:at] if k % 2 else good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :]
        )
        result = verify.check(path)
        assert not result.reason.startswith("internal error"), (at, bit)
        assert result.status == "REFUTED" or k % 2 == 0


EMPTY: dict[str, Any] = {key: [] for key in ("beta", "delta", "flow", "directions", "local")}
BOMBS = {
    "rows of nothing": (
        lambda m: (m["clusters"][0].update(roots={"local": (1 << 32) - 2}), m.update(local=[])),
        {"local/count": np.array([(1 << 32) - 1, 1, 1, 3, 3, 3], "<u4").tobytes()},
    ),
    "nodes": (
        lambda m: m.update(clusters=[{"cluster": 1 << 24}], **EMPTY),
        {"cluster": bytes(1 << 26), "left_out": b""},
    ),
    "witnesses": (
        lambda m: m.update(clusters=[{"cluster": 0}] * 10**5, **EMPTY), {"cluster": b""}
    ),
    "sets": (
        setting("clusters", 0, value={"claim": "not well-connected", "cluster": 3, "left_out": 0,
                                   "sets": [1] * 10**5}),
        {"sets": bytes(4 * 10**5)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_within_the_budget(name: str, members: Members, tmp_path: Path) -> None:
    """Small files, deflated, of large arrays and of rows that no array has."""
    change, arrays = BOMBS[name]
    other = [(key, arrays.get(key, raw)) for key, raw in edited(members, manifest=change)]
    manifest = json.loads(other[0][1])
    gone = {f"{key}/0" for key in EMPTY if not manifest[key]}
    other = [(key, raw) for key, raw in other if key not in gone]
    if name in ("nodes", "witnesses"):
        other = [(key, b"" if key.endswith("/count") else raw) for key, raw in other]
    path = tmp_path / "x.gtvc"
    path.write_bytes(zipped(other, deflate=True))
    start = time.process_time()
    result = verify.check(path, budget=STEPS // SHARE)
    assert time.process_time() - start < 10 / SHARE
    assert result.status != "CERTIFIED"
    assert not result.reason.startswith("internal error")
    if name != "sets":
        assert "--budget" in result.reason, result.reason


def test_the_command(members: Members, tmp_path: Path) -> None:
    path = tmp_path / "x.gtvc"
    for other, status in ((members, 0), (edited(members, weights=bytes(64)), 5)):
        path.write_bytes(zipped(other))
        command = [sys.executable, "-m", "verify", "check", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False)
