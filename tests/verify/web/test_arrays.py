"""checker.js reads large documents in pieces, and holds arrays, not objects."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from _zip_files import Members, edited, zipped

import verify

CHECKER = Path(__file__).resolve().parents[3] / "verify" / "web" / "checker.js"
#: Of the checker.
PIECE = 2**16
#: Arrays of edges are longer than a piece, and end within one.
NODES = 10_001
#: Of a path, some edges have more in them than a word: in a few rows, and in many.
FEW = [0, 7, 8, NODES - 2]
MANY = range(3, NODES - 1, 5)
DIGITS = 2**20


def certificate() -> Members:
    """Return the certificate of a path with points as data whose gap is exactly zero.

    w and the flow u are chosen, u at its capacity in the direction of the differences; the points
    are then w + (D^T u)/2. Of u the members have one layer on all edges, another one on few, in
    three words, and one of doubles on many; the rest of a few rows are ratios.
    """
    w = [[(i * i) % 1013 - 500, (37 * i) % 11] for i in range(NODES)]
    weights = [(5 + e % 9) / 8 for e in range(NODES - 1)]
    u = [
        [Fraction(c) * sign(a - b) for a, b in zip(w[e], w[e + 1], strict=True)]
        for e, c in enumerate(weights)
    ]
    zero = [Fraction(0)] * 2
    out = [
        [b - a for a, b in zip(*pair, strict=True)]
        for pair in zip([zero, *u], [*u, zero], strict=True)
    ]
    points = [[x + y / 2 for x, y in zip(*rows, strict=True)] for rows in zip(w, out, strict=True)]
    data = [
        ("head", integers("I", range(NODES - 1))),
        ("tail", integers("I", range(1, NODES))),
        ("weights", integers("d", weights)),
        ("terms/0/node", integers("I", range(NODES))),
        ("terms/0/a", integers("d", map(float, flat(points)))),
    ]
    few, many = Fraction(5 * 2**63 + 1, 2**150), Fraction(1, 16)
    few_left = {e: [few, -few] for e in FEW}
    many_left = {e: [many, -many] for e in MANY}
    ratio = [Fraction(1, 3), Fraction(-1, 3)]
    # What the ratios add is a whole number: the other two thirds are beside them.
    rest = [
        [
            x - many_left.get(e, zero)[j] + (0 if e not in FEW else Fraction(-1) ** (j + 1))
            for j, x in enumerate(row)
        ]
        for e, row in enumerate(u)
    ]
    witnesses = [
        ("w/0", words(1, (x for row in w for x in row), 0)),
        ("u/0", words(1, flat(rest), 20)),
        ("u/1/rows", integers("I", FEW)),
        ("u/1", words(3, flat(few_left.values()), 150)),
        ("u/2/rows", integers("I", MANY)),
        ("u/2", integers("d", map(float, flat(many_left.values())))),
        ("r/0/0", words(1, (-x for x in flat(out)), 20)),
    ]
    thirds = [[written(x * 3 - y) for x, y in zip(ratio, few_left[e], strict=True)] for e in FEW]
    head: dict[str, Any] = {
        "schema": "gtv-problem/1",
        "n_nodes": NODES,
        "dim": 2,
        "n_edges": NODES - 1,
        "lam": (1.0).hex(),
        "penalty": {"kind": "l1"},
        "terms": [{"kind": "point", "rows": NODES}],
    }
    manifest = {
        "schema": "gtv-certificate-arrays/1",
        "sha256": digest(head, data),
        "claim": {"rtol": 0, "upper": None, "lower": None},
        "data": head,
        "w": [{"type": "int", "words": 1, "exponent": 0}],
        "dual": {
            "u": [
                {"type": "int", "words": 1, "exponent": 20},
                {"type": "int", "words": 3, "exponent": 150, "rows": len(FEW)},
                {"type": "float64", "rows": len(MANY)},
                {"type": "ratio", "rows": FEW, "values": thirds},
            ],
            "r": [[{"type": "int", "words": 1, "exponent": 20}]],
        },
    }
    return [("manifest.json", json.dumps(manifest).encode()), *data, *witnesses]


def sign(x: int) -> int:
    return (x > 0) - (x < 0)


def flat(rows: Any) -> list[Any]:
    return [x for row in rows for x in row]


def written(x: Fraction) -> str:
    return f"{'-' if x < 0 else ''}{abs(x.numerator):#x}/{x.denominator:#x}"


def integers(kind: str, values: Any) -> bytes:
    found = list(values)
    return struct.pack(f"<{len(found)}{kind}", *found)


def words(count: int, values: Any, exponent: int) -> bytes:
    """Write integers times 2^-exponent."""
    whole = [x * 2**exponent for x in values]
    assert all(Fraction(x).denominator == 1 for x in whole)
    return b"".join(int(x).to_bytes(8 * count, "little", signed=True) for x in whole)


def digest(head: dict[str, Any], data: Members) -> str:
    hashes = [hashlib.sha256(content).hexdigest() for _, content in data]
    text = json.dumps({"data": head, "sha256": hashes}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.fixture(scope="module")
def members() -> Members:
    return certificate()


@pytest.fixture(scope="module", params=["stored", "deflated"])
def file(request: Any, members: Members, tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("arrays") / "proof.gtvc"
    path.write_bytes(zipped(members, deflate=request.param == "deflated"))
    return path


# MB for the checker and its small numbers: 12 are enough, rationals of 10,000 edges need above 20.
SMALL_HEAP = "--max-old-space-size=16"


def test_a_file_in_pieces(node: str, file: Path) -> None:
    """Every layer counts, down to the last bit: the gap is zero, for both checkers."""
    result = verify.check(file, rtol=0)
    assert (result.status, result.upper) == ("CERTIFIED", result.lower), result.reason
    done = subprocess.run(
        [node, SMALL_HEAP, str(CHECKER), str(file), "--rtol", "0", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[:1000]
    figures, theirs = json.loads(done.stdout), result.to_json()
    for key in ("upper", "lower", "gap", "rel_gap"):
        assert figures[key] == theirs[key]


READS = """
const fs = require("node:fs");
const { check } = require(process.argv[1]);
const bytes = fs.readFileSync(process.argv[2]);
let [most, all] = [0, 0];
const read = (target, at) => {
  most = Math.max(most, target.length);
  all += target.length;
  if (at < 0 || at + target.length > bytes.length) throw new Error("beyond the end");
  target.set(bytes.subarray(at, at + target.length));
};
const { status, upper, lower } = check({ length: bytes.length, read }, { rtol: 0 });
console.log(JSON.stringify([status, upper.equals(lower), most, all, bytes.length]));
"""


def test_what_is_read_is_read_once(node: str, file: Path) -> None:
    done = subprocess.run(
        [node, "-e", READS, str(CHECKER), str(file)], capture_output=True, text=True, check=True
    )
    status, is_exact, most, read, size = json.loads(done.stdout)
    assert (status, is_exact) == ("CERTIFIED", True)
    assert most <= PIECE
    assert read <= size + 100  # the signature is looked at before


def one_more(at: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_what_is_changed_behind_the_first_piece_is_found(
    javascript: Callable[..., Any], members: Members
) -> None:
    """As damage, by CRC-32; where that is right by the hash; in the witness by conservation."""
    raw = zipped(members)
    long = {name: content for name, content in members if len(content) > PIECE}
    assert {"weights", "terms/0/a", "u/0", "r/0/0"} <= long.keys()
    documents, expected = [], []
    for name, content in long.items():
        for at in (PIECE - 8, PIECE, len(content) - 8):
            documents.append(one_more(raw.index(content) + at)(raw))
            expected.append("CRC-32")
            change = {name.replace("/", "."): one_more(at)}
            documents.append(zipped(edited(members, **change)))
            is_data = name in ("weights", "terms/0/a")
            expected.append("SHA-256" if is_data else "rtol" if name == "w/0" else "not conserved")
    for name in ("u/1", "u/2"):
        for at in (0, 8 * 6 * 3):
            documents.append(zipped(edited(members, **{name.replace("/", "."): one_more(at)})))
            expected.append("not conserved")
    answers = javascript({"document": raw, "rtol": 0.0} for raw in documents)
    for answer, word in zip(answers, expected, strict=True):
        assert word in answer["reason"], (answer, word)
        assert answer["status"] == ("UNPROVED" if word == "rtol" else "REFUTED")


def test_wrong_entries_are_malformed(javascript: Callable[..., Any], members: Members) -> None:
    changes = {
        "terms.0.a": (lambda raw: raw[:-8] + struct.pack("<d", -0.0), "no -0"),
        "weights": (lambda raw: raw[:-8] + bytes(8), "positive"),
        "tail": (lambda raw: raw[:-4] + struct.pack("<I", NODES), "head < tail"),
        "terms.0.node": (lambda raw: raw[:-8] + 2 * raw[-8:-4], "increasing"),
        "u.1.rows": (lambda raw: raw[:-4] + raw[-8:-4], "rows must increase"),
        "u.2.rows": (lambda raw: raw[:-4] + struct.pack("<I", NODES - 1), "rows must increase"),
        "u.2": (lambda raw: raw[:-8] + struct.pack("<d", float("nan")), "not finite"),
    }
    answers = javascript(
        {"document": zipped(edited(members, **{name: change}))}
        for name, (change, _) in changes.items()
    )
    for (name, (_, word)), answer in zip(changes.items(), answers, strict=True):
        assert (answer["kind"], word in answer["reason"]) == ("malformed", True), (name, answer)


LONGER = """
const fs = require("node:fs");
const { fstatSync } = fs;
fs.fstatSync = (file) => ({ size: fstatSync(file).size + 100 });
"""


def test_a_file_that_becomes_shorter_is_no_proof(node: str, file: Path, tmp_path: Path) -> None:
    """It cannot be read: that is no answer about the document."""
    (tmp_path / "longer.js").write_text(LONGER, encoding="ascii")
    done = subprocess.run(
        [node, "--require", str(tmp_path / "longer.js"), str(CHECKER), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "it has become shorter" in done.stderr
