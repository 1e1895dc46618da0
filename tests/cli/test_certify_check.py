"""``gtvcvx certify`` and ``gtvcvx check``: proofs as files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gtvcvx as gtv
import verify


def paths(files):
    return files.folder / "s.problem.npz", files.folder / "s.npz", files.folder / "c.json"


def test_certificate_is_written_and_checked(fitted, run):
    problem, solution, certificate = paths(fitted)
    outcome = run("certify", problem, solution, "-o", certificate)
    assert outcome.status == 0
    assert "Certificate CERTIFIED" in outcome.out
    assert verify.check(certificate).status == "CERTIFIED"
    outcome = run("check", certificate)
    assert outcome.status == 0
    assert outcome.out.startswith("CERTIFIED")


def test_arrays_are_written_and_checked_where_the_name_says_so(fitted, run):
    problem, solution, _ = paths(fitted)
    certificate = fitted.folder / "c.gtvc"
    assert run("certify", problem, solution, "-o", certificate).status == 0
    assert certificate.read_bytes()[:2] == b"PK"
    assert run("check", certificate).out.startswith("CERTIFIED")
    certificate.write_bytes(certificate.read_bytes()[:-1])
    assert "malformed" in run("check", certificate).out
    outcome = run("report", solution, "--certificate", certificate, "-o", fitted.folder / "r.html")
    assert outcome.status != 0
    assert "Traceback" not in outcome.err


def test_json_of_both_agrees(fitted, run):
    problem, solution, certificate = paths(fitted)
    made = run("certify", problem, solution, "-o", certificate, "--json").json
    seen = run("check", certificate, "--json").json
    assert seen["status"] == made["certificate"]["status"] == "CERTIFIED"
    for name in ("upper", "lower", "gap", "rel_gap", "rtol"):
        assert seen[name] == made["certificate"][name]
    assert seen["gap"] >= seen["upper"] - seen["lower"] - 1e-12
    value = gtv.GTVProblem.load(problem).value(gtv.Solution.load(solution).w)
    assert seen["upper"] == pytest.approx(value, rel=1e-12)


def test_quiet(fitted, run):
    problem, solution, certificate = paths(fitted)
    outcome = run("certify", problem, solution, "-o", certificate, "--quiet")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    outcome = run("check", certificate, "--quiet")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_worse_point_is_refuted_and_the_refutation_checks(fitted, run):
    problem, solution, certificate = paths(fitted)
    worse = gtv.Solution.load(solution)
    worse.w = worse.w + 0.5
    worse.save(solution)
    outcome = run("certify", problem, solution, "-o", certificate)
    assert outcome.status == 1
    assert "REFUTED" in outcome.out
    outcome = run("check", certificate, "--json")
    assert outcome.status == 1
    assert outcome.json["status"] == "REFUTED"


def test_tolerance_that_is_missed_is_not_proved(fitted, run):
    problem, solution, certificate = paths(fitted)
    assert run("certify", problem, solution, "-o", certificate, "--rtol", "1e-3").status == 0
    assert run("check", certificate, "--rtol", "1e-30").status == 1
    outcome = run("certify", problem, solution, "-o", certificate, "--rtol", "1e-30", "--json")
    assert outcome.status == 1
    assert outcome.json["certificate"]["status"] in ("UNPROVED", "REFUTED")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("sha256", lambda old: "0" * len(old)),
        ("schema", lambda old: "gtv-certificate/999"),
        ("w", lambda old: old[1:]),
        ("w", lambda old: [[(float.fromhex(x) + 1).hex() for x in row] for row in old]),
    ],
)
def test_changed_certificate_is_not_accepted(fitted, run, key, change):
    problem, solution, certificate = paths(fitted)
    run("certify", problem, solution, "-o", certificate)
    document = json.loads(certificate.read_text())
    document[key] = change(document[key])
    certificate.write_text(json.dumps(document))
    outcome = run("check", certificate)
    assert outcome.status == 1
    assert not outcome.out.startswith("CERTIFIED")


def test_text_that_is_no_certificate_is_refuted(files, run):
    outcome = run("check", files.edges)
    assert outcome.status == 1
    assert outcome.out.startswith("REFUTED")


def test_problem_is_compared_or_supplied(fitted, run):
    problem, solution, certificate = paths(fitted)
    run("certify", problem, solution, "-o", certificate)
    assert run("check", certificate, "--problem", problem).status == 0
    other = fitted.folder / "other.npz"
    gtv.GTVProblem.load(problem).with_lam(0.3).save(other)
    outcome = run("check", certificate, "--problem", other)
    assert outcome.status == 1
    assert "SHA-256" in outcome.out
    document = json.loads(certificate.read_text())
    del document["data"]
    certificate.write_text(json.dumps(document))
    assert run("check", certificate).status == 1
    assert run("check", certificate, "--problem", problem).status == 0


def test_distance_to_the_solution_where_it_is_proved(tmp_path, run):
    graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]])
    losses = gtv.PointLoss.stack(np.array([[0.0, 1.0], [0.5, 1.0], [3.0, 0.0]]))
    problem = gtv.GTVProblem(graph, losses, "l2", 0.3)
    problem.save(tmp_path / "p.npz")
    problem.solve(rtol=1e-9).save(tmp_path / "s.npz")
    outcome = run("certify", tmp_path / "p.npz", tmp_path / "s.npz", "-o", tmp_path / "c.json")
    assert outcome.status == 0
    assert "distance of the parameters" in outcome.out
    bound = run("check", tmp_path / "c.json", "--json").json["distance_bound"]
    exact = problem.solve("CLARABEL", rtol=1e-10).w
    assert np.linalg.norm(gtv.Solution.load(tmp_path / "s.npz").w - exact) <= bound + 1e-5
    assert bound < 1e-3
