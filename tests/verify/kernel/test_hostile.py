"""Documents from strangers: an answer for any bytes, within a budget of work and of memory.

The documents are small and ask for a lot: dimensions out of proportion, numbers of thousands of
digits, denominators that have nothing in common, matrices to be eliminated. They run with a
twentieth of the default budget, and must end within a twentieth of the promised 10 s.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verify
from verify.__main__ import main
from verify.kernel import checker
from verify.kernel.data import canonical, digest
from verify.kernel.work import STEPS

Document = dict[str, Any]
ROOT = Path(verify.__file__).parents[1]
SHARE = 20
SECONDS, BYTES = 10, 1 << 30  # what is promised for the default budget and 1 MB


def problem(n: int, d: int, edges: Any, terms: Any, penalty: Document | None = None) -> Document:
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": [list(e) for e in edges],
        "weights": [1.0] * len(edges),
        "lam": 1.0,
        "penalty": penalty or {"kind": "l2"},
        "terms": terms,
    }


def path(n: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(n - 1)]


def certificate(data: Document, w: Any, u: Any = (), r: Any = None) -> Document:
    return {
        "schema": "gtv-certificate/1",
        "sha256": digest(canonical(data)),
        "claim": {"rtol": 1e-6, "upper": None, "lower": None},
        "w": w,
        "dual": None if r is None else {"u": u, "r": r},
        "data": data,
    }


def connectivity(data: Document, nodes: int, **proof: Any) -> Document:
    claim = "well-connected" if "flow" in proof else "not well-connected"
    witness = {
        "claim": claim,
        "cluster": list(range(nodes)),
        "alpha": 1.0,
        "beta": [1.0] * nodes,
        "delta": [0] * nodes,
        "center": None,
        "modulus": None,
        **({"sink": 0, "scale": 1} if "flow" in proof else {"sets": [[0], [1]], "left_out": []}),
    }
    return {
        "schema": "gtv-connectivity/1",
        "sha256": digest(canonical(data)),
        "claim": claim,
        "clusters": [witness | proof],
        "data": data,
    }


def ratios(count: int, bits: int) -> list[str]:
    rng = random.Random(count)
    return [f"{rng.getrandbits(bits):#x}/{rng.getrandbits(bits) | 1:#x}" for _ in range(count)]


def symmetric(d: int, low: int, high: int) -> Document:
    """Return a matrix of full doubles, positive definite, its exponents within some range."""
    rng = random.Random(d)
    q = [[0.0] * d for _ in range(d)]
    for i in range(d):
        q[i][i] = (1.0 + rng.random()) * 2.0**high * 2 * d
        for j in range(i):
            q[i][j] = q[j][i] = rng.random() * 2.0 ** rng.randint(low, high)
    return {"kind": "quadratic", "Q": q}


def ridge(nodes: int) -> Document:
    return {"kind": "ridge", "node": list(range(nodes)), "mu": [1.0] * nodes}


def rows(kind: str, count: int, x: float = 1.0) -> Document:
    more = {"delta": [1.0] * count} if "huber" in kind else {}
    return {"kind": kind, "node": [0] * count, "X": [[x]] * count, "y": [1] * count, **more}


def dimension_of_two_terms(kind: str) -> Document:
    field = "mu" if kind == "ridge" else "kappa"
    term = {"kind": kind, "node": [0], field: [1.0]}
    return certificate(problem(1, 1 << 26, [], [term]), [[0]])


def partition_of_dimension(d: int, norm: str, **proof: Any) -> Document:
    data = problem(3, d, [(0, 1), (0, 2)], [ridge(2)], {"kind": norm})
    return connectivity(data, 2, **proof)


def many_spreads() -> Document:
    n = 150
    return certificate(problem(n, n, [], [ridge(n)] * 450), [[0] * n] * n)


def long_ratios_in_rows() -> Document:
    data = problem(1, 1, [], [rows("squared", 4000)])
    return certificate(data, [[0]], [], [ratios(4000, 400)])


def long_ratios_in_w() -> Document:
    data = problem(1000, 1, path(1000), [])
    return certificate(data, [[x] for x in ratios(1000, 400)], [[0]] * 999, [])


def long_ratios_in_demands() -> Document:
    data = problem(2000, 1, [(0, i) for i in range(1, 2000)], [])
    sets = [list(range(1999))] * 30
    return connectivity(data, 2000, beta=[0] * 2000, delta=ratios(2000, 300), sets=sets)


def wide_exponents(n: int) -> Document:
    point = {"kind": "point", "node": list(range(n)), "a": [[1]] * n}
    w = [["0x1p20000"] if i % 2 else ["0x1p-19999"] for i in range(n)]
    return certificate(problem(n, 1, [], [point]), w, [], [[[0]] * n])


def wide_roots() -> Document:
    w = [["0x1p2000", 1] if i % 2 else ["0x1p-1999", 3] for i in range(900)]
    return certificate(problem(900, 2, path(900), []), w, [[0, 0]] * 899, [])


def logarithms(kind: str, x: float) -> Document:
    data = problem(1, 1, [], [rows(kind, 3000, x)])
    return certificate(data, [[1.5 if x < 9 else 1]], [], [[-1e-9] * 3000])


def empty_terms() -> Document:
    term = {"kind": "l1", "node": [], "kappa": []}
    return certificate(problem(1, 1, [], [term] * 4000), [[0]], [], [[]] * 4000)


def terms_at_one_node() -> Document:
    term = {"kind": "l1", "node": [0], "kappa": [1]}
    return certificate(problem(4000, 1, [], [term] * 4000), [[0]] * 4000, [], [[[0]]] * 4000)


def different_ridges() -> Document:
    rng = random.Random(0)
    terms = [{"kind": "ridge", "node": [0], "mu": [rng.random()]} for _ in range(2000)]
    return certificate(problem(1, 1, [], terms), [[1]], [], [[[1]]] * 2000)


def long_numbers() -> Document:
    point = {"kind": "point", "node": list(range(7)), "a": [[0]] * 7}
    number = "0x" + "f" * 65000 + "/0x" + "7" * 64000
    return certificate(problem(7, 1, [], [point]), [[number]] * 7)


def endless_number() -> Document:
    return certificate(problem(1, 1, [], [ridge(1)]), [["0x" + "f" * 900000 + "p0"]])


def sets_times_edges() -> Document:
    n = 4000
    data = problem(n, 1, [(0, i) for i in range(1, n)], [])
    sets = [[0]] * 20000
    return connectivity(data, n, alpha=None, beta=[0] * n, delta=[2**20] * n, sets=sets)


def long_flow() -> Document:
    data = problem(100, 1, [(0, i) for i in range(1, 100)], [])
    return connectivity(data, 100, flow=[-(10**4200)] * 99, scale=10**4200)


def long_dense_losses() -> Document:
    n, d = 20, 60
    rng = random.Random(0)
    term = {
        "kind": "squared",
        "node": list(range(n)),
        "X": [[rng.random() for _ in range(d)] for _ in range(n)],
        "y": [0] * n,
    }
    data = problem(n + 1, d, path(n + 1), [term, ridge(n)])
    data["weights"] = [1e9] * n
    return connectivity(data, n, flow=[-(1 << 26)] * (n - 1), center=[0] * d)


def quadratic(d: int, edges: int, **witness: Any) -> Document:
    """Return a document whose penalty is the identity, with another witness."""
    n, zeros = edges + 1, [0] * d
    q = [[float(i == j) for j in range(d)] for i in range(d)]
    data = problem(n, d, path(n), [], {"kind": "quadratic", "Q": q})
    doc = certificate(data, [zeros] * n, [zeros] * edges, [])
    doc["dual"]["quadratic"] = {"root": [], "null_space": [], "x": [zeros] * edges} | witness
    return doc


def table(rows: int, d: int, entries: list[Any]) -> list[list[Any]]:
    return [[entries[(i * d + j) % len(entries)] for j in range(d)] for i in range(rows)]


def roots_of_a_partition(d: int, norm: str, entries: list[Any]) -> Document:
    square = table(d, d, entries)
    roots = {"total": square, "inverse": square, "local": [square] * 2}
    proof = {"center": [0] * d, "flow": [-(1 << 40)], "roots": roots, "alpha": 2.0, "beta": [1, 1]}
    doc = partition_of_dimension(d, norm, **proof)
    doc["data"]["weights"] = [2.0**41, 1.0]
    doc["sha256"] = digest(canonical(doc["data"]))
    return doc


DOCUMENTS: dict[str, Callable[[], Document]] = {
    "dimension 2^26, ridge": lambda: dimension_of_two_terms("ridge"),
    "dimension 2^26, l1": lambda: dimension_of_two_terms("l1"),
    "partition, 20,000": lambda: partition_of_dimension(20_000, "l2"),
    "partition, 3,000": lambda: partition_of_dimension(3_000, "l1"),
    "partition, 700": lambda: partition_of_dimension(700, "linf"),
    "partition, 200": lambda: partition_of_dimension(200, "l2"),
    "center 2^2000": lambda: partition_of_dimension(
        1, "l2", delta=[1, 1], center=["0x1p2000"], modulus="0x1p-20"
    ),
    "Q, wide exponents": lambda: certificate(
        problem(1, 24, [], [], symmetric(24, -900, 300)), [[0] * 24]
    ),
    "Q of 60 x 60": lambda: certificate(problem(1, 60, [], [], symmetric(60, -1, 0)), [[0] * 60]),
    "many spreads": many_spreads,
    "4,000 ratios of 400 bits": long_ratios_in_rows,
    "ratios in w": long_ratios_in_w,
    "ratios in demands": long_ratios_in_demands,
    "wide exponents": lambda: wide_exponents(30_000),
    "wide exponents, few": lambda: wide_exponents(100),
    "wide roots": wide_roots,
    "logistic": lambda: logarithms("logistic", 3.0),
    "Poisson, large": lambda: logarithms("poisson", 16_000.0),
    "pseudo-Huber, small": lambda: logarithms("pseudohuber", 1e-300),
    "empty terms": empty_terms,
    "terms at one node": terms_at_one_node,
    "different ridges": different_ridges,
    "long numbers": long_numbers,
    "endless number": endless_number,
    "sets times edges": sets_times_edges,
    "long flow": long_flow,
    "dense losses": long_dense_losses,
    "root, long numbers": lambda: quadratic(40, 1, root=table(40, 40, ["0x" + "f" * 400 + "p-9"])),
    "root, many rows": lambda: quadratic(6, 1, root=table(20_000, 6, ["0x1p-900", 1])),
    "root, ratios": lambda: quadratic(30, 1, root=table(30, 30, ratios(900, 300))),
    "root, wide exponents": lambda: quadratic(20, 1, root=table(20, 20, ["0x1p-20000", 1])),
    "null space, ratios": lambda: quadratic(30, 1, null_space=table(30, 30, ratios(900, 300))),
    "null space of zeros": lambda: quadratic(1, 1, null_space=[[0]] * 100_000),
    "zeros on many edges": lambda: quadratic(1, 2_000, null_space=[[0]] * 20_000),
    "x, ratios": lambda: quadratic(10, 100, x=table(100, 10, ratios(1000, 300))),
    "x, wide exponents": lambda: quadratic(3, 3_000, x=table(3_000, 3, ["0x1p-20000"])),
    "x, long numbers": lambda: quadratic(3, 30, x=table(30, 3, ["0x" + "f" * 9000 + "p-20000"])),
    "roots, long numbers": lambda: roots_of_a_partition(40, "l2", ["0x" + "f" * 200 + "p-900"]),
    "roots, ratios": lambda: roots_of_a_partition(8, "l1", ratios(64, 3000)),
    "inverse, ratios": lambda: roots_of_a_partition(24, "linf", ratios(576, 300)),
}

BYTES_OF: dict[str, bytes] = {
    "empty": b"",
    "no UTF-8": b"\xff\xfe" * 1000,
    "zeros": bytes(1000),
    "byte order mark": b"\xef\xbb\xbf{}",
    "nested lists": b"[" * 500_000,
    "nested objects": b'{"a":' * 100_000,
    "half": b'{"schema":',
    "long integer": b'{"schema":' + b"9" * 900_000 + b"}",
    "same key twice": b'{"schema":"gtv-certificate/1","schema":"gtv-certificate/1"}',
    "NaN": b'{"schema":NaN}',
    "infinity": b'{"schema":-Infinity}',
    "a list": b"[]",
    "a text": b'"x"',
    "many lists": b"[" + b"[]," * 100_000 + b"[]]",
    "surrogates": b'{"schema":"\\ud800","\\udfff":1}',
    "schema nested": b'{"schema":' + b"[" * 900 + b"]" * 900 + b',"sha256":1,"claim":{},"w":[]}',
    "rtol nested": b'{"schema":"gtv-certificate/1","sha256":1,"claim":{"upper":1,"lower":1,'
    b'"rtol":' + b"[" * 900 + b"]" * 900 + b'},"w":[]}',
}


def timed(file: Path, budget: int | None) -> tuple[verify.Result, float]:
    start = time.process_time()
    result = verify.check(file, budget=budget)
    return result, time.process_time() - start


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_ask_for_a_lot(name: str, tmp_path: Path) -> None:
    file = tmp_path / "document.json"
    file.write_text(json.dumps(DOCUMENTS[name]()))
    result, seconds = timed(file, STEPS // SHARE)
    assert not result.reason.startswith("internal error")
    # A twentieth of the budget: what is not counted at all shows, a slow machine does not.
    assert seconds < SECONDS


@pytest.mark.parametrize("name", BYTES_OF)
def test_bytes_that_are_no_document(name: str, tmp_path: Path) -> None:
    file = tmp_path / "document.json"
    file.write_bytes(BYTES_OF[name])
    result, seconds = timed(file, None)
    assert result.status == "REFUTED"
    assert result.reason.startswith("malformed")
    assert seconds < SECONDS


def test_bytes_that_are_no_data(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_bytes(b"[" * 500_000)
    outside = verify.check({"schema": "gtv-certificate/1"}, file)
    assert outside.reason.startswith("malformed: data: not a JSON text")


def test_the_reason_says_how_to_raise_the_budget(tmp_path: Path) -> None:
    file = tmp_path / "document.json"
    file.write_text(json.dumps(terms_at_one_node()))
    short = verify.check(file, budget=1000)
    assert short == verify.check(file, budget=1000)  # counted, not clocked
    assert short.status == "UNPROVED"
    assert "budget of 1000 steps" in short.reason
    assert "--budget" in short.reason
    assert verify.check(file).status == "CERTIFIED"


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def _command(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "verify", "check", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        preexec_fn=_limited,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("wide exponents", 3),
        ("partition, 20,000", 3),
        ("endless number", 5),
        ("empty terms", 0),
        ("long flow", 4),
    ],
)
def test_command_line_within_the_promised_memory(name: str, code: int, tmp_path: Path) -> None:
    """The default budget, 1 GB of address space, and an exit status for each answer."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps(DOCUMENTS[name]()))
    status, out, err = _command(tmp_path, str(file))
    assert (status, err) == (code, "")
    assert out.startswith(("CERTIFIED", "REFUTED", "UNPROVED"))


def test_names_that_the_terminal_cannot_print(tmp_path: Path) -> None:
    doc = certificate(problem(1, 1, [], [{"kind": "opaque", "node": [0], "name": "\u03bb"}]), [[0]])
    file = tmp_path / "document.json"
    file.write_text(json.dumps(doc))
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    status, out, err = _command(tmp_path, str(file), **environment)
    assert (status, err) == (3, "")
    assert "\\u03bb" in out


def test_a_defect_of_the_checker_says_nothing_about_the_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(checker, "check_certificate", broken)
    file = tmp_path / "document.json"
    file.write_text("{}")
    assert main(["check", str(file)]) == 1
    assert capsys.readouterr().out.startswith("UNPROVED: internal error: ZeroDivisionError")


@pytest.mark.parametrize("kind", ["floats", "long ratios"])
def test_honest_documents_are_far_from_the_budget(kind: str) -> None:
    """Certificates whose last multipliers are ratios of determinants, and long, are no attack."""
    rng = np.random.default_rng(0)
    n, d, count = (60, 2, 5) if kind == "floats" else (12, 24, 4)
    truth = rng.standard_normal(d)
    x = rng.standard_normal((n * count, d))
    term = {
        "kind": "squared",
        "node": np.repeat(np.arange(n), count),
        "X": x,
        "y": x @ truth + 0.01 * rng.standard_normal(n * count),
    }
    data = problem(n, d, path(n), [term]) | {"lam": 1e4}
    w = np.linalg.lstsq(x, term["y"], rcond=None)[0]  # constant, since lambda is large
    slopes = 2 / count * (x * (x @ w - term["y"])[:, None]).reshape(n, count, d).sum(axis=1)
    u = -np.cumsum(slopes, axis=0)[:-1]
    proof = verify.certify(data, np.tile(w, (n, 1)), u, search=False)
    assert proof.status == "CERTIFIED"
    assert verify.check(proof.document, budget=STEPS // 3).status == "CERTIFIED"


def test_ratios_of_many_components_are_far_from_the_budget() -> None:
    """Each component has denominators of its own, which only its own sums have."""
    rng = np.random.default_rng(0)
    n, d, count = 150, 4, 6
    x, y = rng.standard_normal((n, count, d)), rng.standard_normal((n, count))
    term = {
        "kind": "squared",
        "node": np.repeat(np.arange(n), count),
        "X": x.reshape(-1, d),
        "y": y.ravel(),
        "weight": np.full(n * count, 0.3),
    }
    w = np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(x, y, strict=True)])
    proof = verify.certify(problem(n, d, [], [term]), w, np.zeros((0, d)), search=False)
    assert sum("/" in r for r in proof.document["dual"]["r"][0]) > n
    assert verify.check(proof.document, budget=STEPS // 3).status == "CERTIFIED"


def test_ratios_of_flows_are_far_from_the_budget() -> None:
    """The entries of a flow have one denominator, and not as many as there are coordinates."""
    rng = np.random.default_rng(0)
    n, d, length = 40, 15, 5  # paths; no node has as many rows as coordinates
    ends = [[i, i + 1] for i in range(n - 1) if (i + 1) % length]
    node = np.repeat(np.arange(n), 8)
    term = {
        "kind": "absolute",
        "node": node,
        "X": rng.standard_normal((len(node), d)),
        "y": rng.standard_normal(len(node)),
    }
    root = rng.standard_normal((d, d))
    penalty = {"kind": "quadratic", "Q": root @ root.T / d}
    data = problem(n, d, ends, [term]) | {"penalty": penalty}
    proof = verify.certify(data, np.zeros((n, d)))
    assert sum("/" in x for row in proof.document["dual"]["u"] for x in row) > n
    assert verify.check(proof.document, budget=STEPS // 2).status == "REFUTED"
