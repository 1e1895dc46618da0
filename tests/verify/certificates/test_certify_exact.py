"""`verify.certify` of rational pairs, without a search, with huge numbers, and its files."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _plain_instances import Data, instance, solve

import gtvcvx as gtv
import verify
from gtvcvx.cli import main

FOLDER = Path(verify.__file__).parent


def _losses(kind: str, n: int, d: int, rng: np.random.Generator) -> Any:
    if kind == "point":
        return gtv.PointLoss.stack(rng.standard_normal((n, d)))
    rows = 1 if kind == "few rows" else 3
    X, y = rng.standard_normal((n, rows, d)), rng.standard_normal((n, rows))
    labelled = rng.random(n) < 0.7 if kind == "unlabelled" else np.full(n, True)
    return gtv.SquaredLoss.stack(X, y, labelled=labelled)


def _problem(seed: int, loss: str, penalty: str, n: int, d: int, lam: float) -> gtv.GTVProblem:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(1, n) for i in range(j) if i == j - 1 or rng.random() < 0.2]
    graph = gtv.EmpiricalGraph(n, pairs, rng.uniform(0.5, 2, len(pairs)))
    return gtv.GTVProblem(graph, _losses(loss, n, d, rng), penalty, lam)


def _exact(problem: gtv.GTVProblem) -> Any:
    exact = problem.solve(solver="EXACT", verbose=False).exact
    assert exact is not None
    return exact


@pytest.mark.parametrize(
    ("loss", "penalty", "n", "d", "lam"),
    [
        ("point", "l1", 8, 1, 0.1),
        ("point", "l1", 8, 2, 0.3),
        ("point", "linf", 6, 1, 0.2),
        ("point", "l2", 8, 1, 0.1),
        ("squared", "l2", 8, 1, 0.1),
        ("squared", "l1", 8, 2, 0.1),
        ("squared", "l1", 6, 3, 100.0),
        ("unlabelled", "l1", 10, 2, 0.2),
        ("few rows", "l1", 8, 2, 0.05),
    ],
)
def test_exact_solutions_have_gap_zero(
    tmp_path: Path, loss: str, penalty: str, n: int, d: int, lam: float
) -> None:
    problem = _problem(n + d, loss, penalty, n, d, lam)
    exact = _exact(problem)
    assert any(Fraction(float(x)) != x for row in exact.w for x in row)  # not in floats
    certificate = verify.certify(problem, exact.w, exact.u, rtol=0.0, search=False)
    assert (certificate.status, certificate.gap, certificate.rel_gap) == ("CERTIFIED", 0.0, 0.0)
    assert not certificate.node_gaps.any()
    assert not certificate.edge_gaps.any()
    assert certificate.distance_bound in (0.0, None)
    assert Fraction(certificate.lower) <= exact.value <= Fraction(certificate.upper)
    assert certificate.upper <= np.nextafter(certificate.lower, np.inf)
    certificate.save(tmp_path / "c.json")
    result = verify.check(tmp_path / "c.json", rtol=0.0)
    assert (result.status, result.gap) == ("CERTIFIED", 0)
    assert result.upper == result.lower == exact.value
    assert result.to_json()["upper"] == certificate.upper
    assert result.to_json()["lower"] == certificate.lower
    claim = json.loads((tmp_path / "c.json").read_text())["claim"]
    assert claim["upper"] == claim["lower"]


def test_exact_certificate_is_checked_with_the_standard_library_alone(tmp_path: Path) -> None:
    problem = _problem(5, "unlabelled", "l1", 9, 2, 0.2)
    exact = _exact(problem)
    verify.certify(problem, exact.w, exact.u, rtol=0.0).save(tmp_path / "c.json")
    shutil.copytree(FOLDER, tmp_path / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-S", "-m", "verify", "check", "c.json", "--rtol", "0", "--json"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["status"], figures["gap"], figures["rel_gap"]) == ("CERTIFIED", 0, 0)


@pytest.mark.parametrize("place", ["w", "u", "r", "upper", "lower"])
def test_nothing_but_the_exact_numbers_is_accepted(place: str) -> None:
    """A change by 10^-40 of any of the witness's numbers or of the claim is noticed."""
    problem = _problem(4, "point", "l1", 8, 2, 0.2)
    exact = _exact(problem)
    document = verify.certify(problem, exact.w, exact.u, rtol=0.0).document
    claim, dual = document["claim"], document["dual"]
    tables = {"w": document["w"][0], "u": dual["u"][0], "r": dual["r"][0][0]}
    row: Any = tables.get(place, claim)
    key: Any = place if row is claim else 0
    changed = _read(row[key]) + Fraction(-1 if place == "upper" else 1, 10**40)
    row[key] = f"{changed.numerator:#x}/{changed.denominator:#x}"
    result = verify.check(document)
    assert result.status == "REFUTED"
    assert result.reason.startswith("false document")


def _read(text: str) -> Fraction:
    """Return a witness number, a ratio or an integer times a power of two."""
    if "/" in text:
        p, q = (int(part, 16) for part in text.split("/"))
        return Fraction(p, q)
    mantissa, exponent = text.split("p")
    return int(mantissa, 16) * Fraction(2) ** int(exponent)


def test_isolated_nodes_ridge_and_plain_integers() -> None:
    """Two nodes (w - 3)^2 + (w - 0)^2 fused at 3/2, and one with ridge 2 and point 1: w = 1/2."""
    data: Data = {
        "schema": "gtv-problem/1",
        "n_nodes": 3,
        "dim": 1,
        "edges": [[0, 1]],
        "weights": [1.0],
        "lam": 3.0,
        "penalty": {"kind": "l1"},
        "terms": [
            {"kind": "point", "node": [0, 1, 2], "a": [[3.0], [0.0], [1.0]]},
            {"kind": "ridge", "node": [2], "mu": [2.0]},
        ],
    }
    w = [[Fraction(3, 2)], [Fraction(3, 2)], [Fraction(1, 2)]]
    certificate = verify.certify(data, w, [[3]], rtol=0.0, search=False)
    assert (certificate.status, certificate.gap, certificate.upper) == ("CERTIFIED", 0.0, 5.0)
    objects = verify.certify(data, np.array(w), np.array([[np.int64(3)]]), rtol=0.0, search=False)
    assert objects.document == certificate.document
    assert verify.certify(data, w, [[-3]], rtol=0.0, search=False).status == "UNPROVED"
    assert verify.certify(data, w, [[-3]], rtol=1e-9).status == "CERTIFIED"
    data["edges"], data["weights"] = [], []
    empty = verify.certify(data, [[3], [0], [Fraction(1, 2)]], [], rtol=0.0, search=False)
    assert (empty.status, empty.gap, empty.upper) == ("CERTIFIED", 0.0, 0.5)


@pytest.mark.parametrize("change", [Fraction(1, 10**30), Fraction(1, 100)])
def test_rational_points_that_are_not_optimal_have_a_gap(change: Fraction) -> None:
    problem = _problem(4, "point", "l1", 8, 2, 0.2)
    exact = _exact(problem)
    w = [[x + change for x in row] for row in exact.w]
    near = verify.certify(problem, w, exact.u, rtol=0.0, search=False)
    assert near.status == "UNPROVED"
    result = verify.check(near.document)
    assert result.gap is not None
    assert result.upper is not None
    assert 0 < result.upper - exact.value <= result.gap
    # 8 nodes in 2 dimensions, each moved by the change: ||w - a||^2 grows by its square.
    assert result.upper - exact.value == 16 * change**2


def test_rational_point_with_a_float_flow_keeps_its_digits() -> None:
    problem = _problem(4, "point", "l1", 8, 2, 0.2)
    exact = _exact(problem)
    u = np.array(exact.u, dtype=np.float64)
    certificate = verify.certify(problem, exact.w, u, rtol=1e-9, search=False)
    assert (certificate.status, certificate.gap > 0) == ("CERTIFIED", True)
    assert verify.check(certificate.document).upper == exact.value


@pytest.mark.parametrize(
    ("w", "message"),
    [
        ([[Fraction(1, 3)]], r"w must have shape \(12, 2\), got \(1, 1\)"),
        ([[Fraction(10**400), 0]] + [[0, 0]] * 11, "w is beyond the range of doubles at node 0"),
        ([[Fraction(1, 3), float("nan")]] + [[0, 0]] * 11, "w has NaN or infinity at node 0"),
        ([[Fraction(1, 3), "x"]] + [[0, 0]] * 11, "w must be real numbers, got an entry of str"),
        ([[Fraction(1, 3)]] + [[0, 0]] * 11, "w must be an array of numbers"),
    ],
)
def test_bad_ratios_are_named(w: list[Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        verify.certify(instance(18, "point", "l2"), w)


class _NeverAsked(SimpleNamespace):
    """A problem whose solver must not be called."""

    def to_data(self) -> Data:
        data: Data = self.data
        return data

    def solve(self, rtol: float) -> None:
        raise AssertionError("solve was called")


@pytest.mark.parametrize("flow", ["none", "zero"])
def test_without_search_nothing_is_solved(flow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("the dual was solved")

    monkeypatch.setattr("verify.certificates._dual_problem.solve_dual", forbidden)
    data = instance(11, "mixed", "l2", "connected", 15, 2)
    w, u = solve(data)
    problem = _NeverAsked(data=data)
    assert verify.certify(problem, w, u, rtol=1e-7, search=False).status == "CERTIFIED"
    given = None if flow == "none" else 0 * u
    for point in (w, w + 1.0):  # the second one is far from optimal, which is not looked into
        certificate = verify.certify(problem, point, given, rtol=1e-7, search=False)
        assert certificate.status == "UNPROVED"
        words = "no flow was given" if given is None else "the given flow does not suffice"
        assert f"{words}, and search=False forbids" in certificate.reason
        assert certificate.better is None
        assert (certificate.lower == -np.inf) == (given is None)
    with pytest.raises(AssertionError, match="solve was called"):
        verify.certify(problem, w, given, rtol=1e-7)


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared", "pnorm"])
@pytest.mark.parametrize("loss", ["squared", "point", "logistic", "lasso", "mixed"])
@pytest.mark.parametrize("size", [1e160, 1.7e308])
def test_huge_points_cause_no_warning(loss: str, penalty: str, size: float) -> None:
    data = instance(3, loss, "l2" if penalty == "pnorm" else penalty, "connected", 8, 2)
    w, u = solve(data)
    if penalty == "pnorm":
        data["penalty"] = {"kind": "pnorm", "p": 3.0}
    signs = np.sign(np.random.default_rng(0).standard_normal(w.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for flow in (u, None):
            certificate = verify.certify(data, size * signs, flow, rtol=1e-6)
            assert certificate.status == "REFUTED"
            assert np.isfinite(certificate.lower)
            assert verify.check(certificate.document).status == certificate.status
        certificate = verify.certify(data, size * signs, u, rtol=1e-6, search=False)
        assert certificate.status == "UNPROVED"
        assert verify.check(certificate.document).status == "UNPROVED"  # well-formed, though huge


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_permissions_of_saved_files(tmp_path: Path) -> None:
    certificate = verify.certify(instance(18, "point", "l2"), np.zeros((12, 2)), search=False)
    path, link = tmp_path / "c.json", tmp_path / "link.json"
    before = os.umask(0o027)
    try:
        certificate.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        path.write_text("old")
        link.symlink_to(path)
        certificate.save(link)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert json.loads(path.read_text()) == certificate.document
    assert {p.name for p in tmp_path.iterdir()} == {"c.json", "link.json"}


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    certificate = verify.certify(instance(18, "point", "l2"), np.zeros((12, 2)), search=False)
    with pytest.raises(ValueError, match="not a regular file"):
        certificate.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        certificate.save(tmp_path / "nowhere" / "c.json")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path: Path) -> list[str]:
    """Return the arguments that certify an exact solution and its problem, both in files."""
    problem = _problem(4, "point", "l1", 8, 2, 0.2)
    problem.save(tmp_path / "p.npz")
    problem.solve(solver="EXACT", verbose=False).save(tmp_path / "s.npz")
    names = [str(tmp_path / name) for name in ("p.npz", "s.npz", "c.json")]
    return ["certify", *names[:2], "-o", names[2], "--json"]


def _report(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Data]:
    status = main(arguments)
    report: Data = json.loads(capsys.readouterr().out)["certificate"]
    return status, report


def test_command_certifies_the_rational_numbers(
    saved: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = _report([*saved, "--rtol", "1e-300", "--no-search"], capsys)
    assert (status, report["status"], report["gap"]) == (0, "CERTIFIED", 0.0)
    assert verify.check(saved[4], rtol=0.0).status == "CERTIFIED"


@pytest.mark.parametrize("name", ["w", "u"])
def test_command_certifies_the_arrays_if_they_were_changed(
    saved: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    solution = gtv.Solution.load(saved[2])
    setattr(solution, name, getattr(solution, name) * 0.5)
    solution.save(saved[2])
    status, report = _report([*saved, "--no-search"], capsys)
    assert (status, report["status"]) == (1, "UNPROVED")
    assert "search=False" in report["reason"]
    assert report["gap"] > 1e-3
    status, report = _report(saved, capsys)
    assert report["status"] == ("REFUTED" if name == "w" else "CERTIFIED")
    assert status == int(name == "w")
