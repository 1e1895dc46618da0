"""checker.js as a program of its own: command line, hashes, doubles, work."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import struct
import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from verify.web import checker_source

CHECKER = Path(__file__).resolve().parents[3] / "verify" / "web" / "checker.js"
CORPUS = Path(__file__).resolve().parents[1] / "corpus"
GOOD = CORPUS / "documents" / "data-given-twice.json"
DATA = CORPUS / "documents" / "data-given-twice.data.json"


@pytest.fixture
def run(node: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [node, str(CHECKER), *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return command


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        ([GOOD], 0, "CERTIFIED: relative gap 0, rtol 1e-6"),
        ([GOOD, "--data", DATA], 0, "CERTIFIED"),
        ([GOOD, "--rtol", "0"], 0, "rel_gap"),
        ([GOOD, "--budget", "100"], 3, "--budget"),
        ([CORPUS / "documents" / "hash-zeros.json"], 4, "REFUTED: false document"),
        ([CORPUS / "documents" / "no-data.json"], 3, "UNPROVED"),
        ([CORPUS / "documents" / "json-open.json"], 5, "REFUTED: malformed"),
        ([GOOD, "--data", CORPUS / "documents" / "json-open.json"], 5, "data: not a JSON text"),
        (["missing.json"], 2, "cannot read"),
        (["."], 2, "cannot read"),
        ([], 2, "usage"),
        ([GOOD, GOOD], 2, "unexpected"),
        ([GOOD, "--rtol", "nan"], 2, "--rtol"),
        ([GOOD, "--rtol", "-1"], 2, "--rtol"),
        ([GOOD, "--rtol"], 2, "needs a value"),
        ([GOOD, "--budget", "0"], 2, "--budget"),
        (["--help"], 0, "usage"),
    ],
)
def test_command_line(run: Any, arguments: list[Any], status: int, word: str) -> None:
    done = run(*arguments)
    assert done.returncode == status, done.stdout + done.stderr
    assert word in done.stdout + done.stderr
    assert "    at " not in done.stderr


def test_json_on_the_command_line(run: Any) -> None:
    figures = json.loads(run(GOOD, "--json").stdout)
    assert figures["status"] == "CERTIFIED"
    assert figures["lower"] == figures["upper"]
    assert (figures["gap"], figures["rtol"]) == (0, 1e-6)


def test_the_package_has_the_text_of_the_checker() -> None:
    assert checker_source() == CHECKER.read_text(encoding="utf-8")
    assert "</script" not in checker_source().lower()


def test_nothing_but_itself_is_needed() -> None:
    """No network, no other module but the file system, on the command line alone."""
    text = checker_source()
    assert text.count("require(") == 1
    assert 'require("node:fs")' in text
    for word in (
        "import ",
        "fetch",
        "eval",
        "Function(",
        "XMLHttp",
        "JSON.parse(",
        "Date",
        "Math.random",
    ):
        assert word not in text, word


def evaluated(node: str, script: str, argument: Any) -> Any:
    """Return what an expression gives for the argument `x`, with the checker's names."""
    program = f"const {{sha256, internals}} = require({json.dumps(str(CHECKER))});\n" + (
        "const x = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));\n"
        f"console.log(JSON.stringify({script}));"
    )
    done = subprocess.run(
        [node, "-e", program],
        input=json.dumps(argument),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_hashes(node: str) -> None:
    texts = ["a" * k for k in (*range(0, 130), 1000, 100_003)] + ["".join(map(chr, range(128)))]
    assert evaluated(node, "x.map(sha256)", texts) == [
        hashlib.sha256(text.encode("ascii")).hexdigest() for text in texts
    ]


def test_doubles_closest_to_decimals(node: str) -> None:
    rng = random.Random(0)
    texts = [
        "1e400",
        "-1e-400",
        "0." + "0" * 400 + "1",
        "1" + "0" * 308 + ".9",
        "179769313486231580793e289",
    ]
    for _ in range(300):
        x = abs(rng.uniform(0.1, 1)) * 2.0 ** rng.randint(-1070, 1020)
        half = Fraction(x) + (Fraction(next_up(x)) - Fraction(x)) / 2  # a tie, in all its digits
        digits = half.denominator.bit_length()
        tie = f"{half * 10**digits // 1}e-{digits}"
        texts += [tie, tie.replace("e", "00000000000000000000000001e"), f"-{x!r}", f"{x:.40e}"]
    assert evaluated(node, "x.map(t => internals.hexOf(internals.doubleOf(t)))", texts) == [
        (float(text) + 0.0).hex().replace("0x0.0p+0", "0x0.0p+0").replace("-0x0.0p", "0x0.0p")
        for text in texts
    ]


def next_up(x: float) -> float:
    import math

    return math.nextafter(x, math.inf)


def test_enclosures_hold_what_they_enclose(node: str) -> None:
    """Roots, logarithms and exponentials against 120 digits of decimal arithmetic."""
    from decimal import Decimal, localcontext

    rng = random.Random(1)
    texts = [str(rng.uniform(0.1, 10) * 10.0 ** rng.randint(-30, 30)) for _ in range(60)]
    texts += ["1", "2", "0.5", "1e-300", "1e300", "4", "16384"]
    script = (
        "x.map(t => { const {rootOf, logarithmOf, exponentialOf, Rational} = internals;"
        "const q = Rational.double(Number(t)), p = Rational.double(Math.min(Number(t), 16384));"
        "const s = b => [b.lower, b.upper].map(r => [r.n.toString(16), r.e, r.d.toString(16)]);"
        "return [rootOf(q), logarithmOf(q), exponentialOf(p), exponentialOf(p.neg())].map(s); })"
    )
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 150, 10**6, -(10**6)
        for text, found in zip(texts, evaluated(node, script, texts), strict=True):
            x, p = Decimal(float(text)), Decimal(min(float(text), 16384.0))
            for true, (low, high) in zip(
                (x.sqrt(), x.ln(), p.exp(), (-p).exp()), found, strict=True
            ):
                a, b = exact(low), exact(high)
                slack = Fraction(abs(true)) / 10**140  # of the decimal numbers
                assert a - slack <= Fraction(true) <= b + slack, text
                assert b - a <= max(abs(a), Fraction(1, 2**100)) / 2**190 or true < Decimal(
                    "1e-7000"
                )


@pytest.mark.parametrize("count", [60, 64, 65, 300])
def test_sums_are_on_their_side(node: str, count: int) -> None:
    """Quotients of many denominators, of both signs, and what is on a grid."""
    script = (
        "['lower', 'upper'].map(side => { const total = new internals.OneSidedSum(side);"
        "x.forEach(([n, e, d]) => total.add(new internals.Rational(BigInt(n), e, BigInt(d))));"
        "const q = total.total(); return [q.n.toString(16), q.e, q.d.toString(16)]; })"
    )
    parts = [((-1) ** k * (k + 1), k % 7 - 3, 2 * k + 3) for k in range(count)]
    parts += [(k - 5, 3 * k - 20, 1) for k in range(20)]
    true = sum(Fraction(n, d) * Fraction(2) ** e for n, e, d in parts)
    low, high = map(exact, evaluated(node, script, parts))
    assert low <= true <= high
    assert high - low <= Fraction(count, 2**255)
    assert (low == high) == (count <= 64)


def exact(found: list[Any]) -> Fraction:
    n, e, d = found
    return Fraction(int(n, 16), int(d, 16)) * Fraction(2) ** e


def test_inflated_is_what_was_deflated(node: str) -> None:
    """All kinds of blocks, of every level and strategy of zlib; and what zlib refuses."""
    rng = random.Random(2)
    contents = [b"", b"a", b"a" * 70_000, rng.randbytes(3000), bytes(range(256)) * 40]
    contents.append(b"".join(struct.pack("<d", rng.choice((0.5, 0.25, 3.0))) for _ in range(2000)))
    streams, expected = [], []
    for content in contents:
        for level in (0, 1, 6, 9):
            for strategy in (
                zlib.Z_DEFAULT_STRATEGY,
                zlib.Z_HUFFMAN_ONLY,
                zlib.Z_FIXED,
                zlib.Z_RLE,
            ):
                packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
                streams.append(packer.compress(content) + packer.flush())
                expected.append(content)
    for k in range(0, len(streams), 7):
        for _ in range(6):
            raw = bytearray(streams[k])
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            streams.append(bytes(raw))
            expected.append(expected[k])
    script = (
        "x.map(([t, n]) => { try {"
        "return sha256(internals.inflate(new Uint8Array(Buffer.from(t, 'base64')), n));"
        "} catch (e) { return e.kind; } })"
    )
    questions = [
        [base64.b64encode(raw).decode(), len(content)]
        for raw, content in zip(streams, expected, strict=True)
    ]
    wanted = [inflated(raw, len(content)) for raw, content in zip(streams, expected, strict=True)]
    assert evaluated(node, script, questions) == wanted
    assert wanted.count("malformed") > 20


def inflated(raw: bytes, size: int) -> str:
    """Return the hash of what zlib makes of a stream, or that it makes nothing of it."""
    reader = zlib.decompressobj(-15)
    try:
        content = reader.decompress(raw)
    except zlib.error:
        return "malformed"
    whole = reader.eof and not reader.unused_data and len(content) == size
    return hashlib.sha256(content).hexdigest() if whole else "malformed"


def hostile() -> dict[str, bytes]:
    """Documents that would take long if work were not counted."""
    base = json.loads(GOOD.read_text())
    wide = "0x1/0x" + "123456789abcdef7" * 8000
    ratios = [f"0x1/{d:#x}" for d in range(2**400 + 1, 2**400 + 8001, 2)]
    data = {**base["data"], "n_nodes": 2**39, "dim": 2**39}
    return {
        "large-dimensions": json.dumps({**base, "data": data}).encode(),
        "wide-ratios": json.dumps({**base, "w": [[wide, wide]] * len(base["w"])}).encode(),
        "many-ratios": json.dumps(many_rows(ratios)).encode(),
        "wide-exponents": json.dumps(
            {**base, "w": [["0x1p20000", "0x1p-20000"]] * len(base["w"])}
        ).encode(),
        "bomb": zipped(b" " * 40_000_000),
        "bomb-of-brackets": zipped(b"[" * 40_000_000),
        "digits": b'{"schema":' + b"1" * 900_000 + b".5}",
        "brackets": b"[" * 900_000,
        "quotes": b'"' * 900_000,
        "escapes": b'{"' + b"\\u0041" * 100_000 + b'": 1}',
        "keys": ("{" + ",".join(f'"{k}": {k}' for k in range(60_000)) + "}").encode(),
    }


def zipped(manifest: bytes) -> bytes:
    """Return a zip file whose manifest is larger than it looks."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("manifest.json"), manifest, zipfile.ZIP_DEFLATED, 9)
    return file.getvalue()


def many_rows(r: list[str]) -> dict[str, Any]:
    """Return a certificate of a node with many rows, whose multipliers have nothing in common."""
    rows = {"kind": "squared", "node": [0] * len(r), "X": [[1]] * len(r), "y": [1] * len(r)}
    problem: dict[str, Any] = {"schema": "gtv-problem/1", "n_nodes": 1, "dim": 1, "edges": []}
    problem |= {"weights": [], "lam": 1, "penalty": {"kind": "l2"}, "terms": [rows]}
    one = float(1).hex()
    written = {
        **problem,
        "lam": one,
        "terms": [{**rows, "X": [[one]] * len(r), "y": [one] * len(r)}],
    }
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    return {
        "schema": "gtv-certificate/1",
        "sha256": hashlib.sha256(text.encode("ascii")).hexdigest(),
        "data": problem,
        "claim": {"rtol": 0, "upper": None, "lower": None},
        "w": [[0]],
        "dual": {"u": [], "r": [r]},
    }


def test_the_least_modulus_bounds_the_distance(javascript: Callable[..., Any]) -> None:
    """2 (upper - lower)/mu, whatever node has it: P(w) is 5/2 and the optimum zero."""
    documents = []
    for mu in ([1, 4], [4, 1]):
        term = {"kind": "ridge", "node": [0, 1], "mu": [float(x).hex() for x in mu]}
        problem: dict[str, Any] = {"schema": "gtv-problem/1", "n_nodes": 2, "dim": 1, "edges": []}
        problem |= {"weights": [], "lam": (1.0).hex(), "penalty": {"kind": "l2"}, "terms": [term]}
        text = json.dumps(problem, sort_keys=True, separators=(",", ":"))
        document = {
            "schema": "gtv-certificate/1",
            "sha256": hashlib.sha256(text.encode("ascii")).hexdigest(),
            "data": problem,
            "claim": {"rtol": 0, "upper": None, "lower": None},
            "w": [[1], [1]],
            "dual": {"u": [], "r": [[[0], [0]]]},
        }
        documents.append({"document": json.dumps(document).encode(), "rtol": 1.0})
    for answer in javascript(documents):
        assert answer["figures"]["upper"] == 2.5, answer
        assert answer["figures"]["distance_bound"] == pytest.approx(5**0.5, rel=1e-15)


def test_hostile_documents_end(javascript: Callable[..., Any]) -> None:
    documents = hostile()
    start = time.process_time()
    answers = javascript({"document": content} for content in documents.values())
    assert time.process_time() - start < 10
    for name, answer in zip(documents, answers, strict=True):
        assert answer["exitStatus"] in (3, 4, 5), (name, answer["reason"])
        # A tenth of the promise of 10 s is what these cost at most.
        assert answer["seconds"] < 10, (name, answer["seconds"])
