"""``gtvcvx demo``: both instances are solved, proved, and the account is made of the numbers."""

from __future__ import annotations

import pytest

from gtvcvx.datasets import load_us_income


def test_demo_proves_everything(run):
    outcome = run("demo")
    assert outcome.status == 0
    assert outcome.err == ""
    assert outcome.out.count("CERTIFIED") == 4
    assert "UNPROVED" not in outcome.out
    assert "the planted ones" in outcome.out
    assert "every solution is constant on them" in outcome.out
    assert len(outcome.out.splitlines()) < 40


def test_demo_as_json(run):
    outcome = run("demo", "--json")
    assert outcome.status == 0
    data = outcome.json
    for instance in (data["us_income"], data["block_model"]):
        exact, fast = instance["solvers"]["CLARABEL"], instance["solvers"]["AUTO"]
        assert exact["value"] == pytest.approx(fast["value"], rel=1e-6)
        for solver in (exact, fast):
            certificate = solver["certificate"]
            assert certificate["status"] == "CERTIFIED"
            assert certificate["rel_gap"] <= 1e-6
            assert certificate["lower"] <= certificate["upper"]
        assert instance["difference"] < 1e-4
    income, block = data["us_income"], data["block_model"]
    states = sorted(state for cluster in income["clusters"] for state in cluster["nodes"])
    assert states == load_us_income().states
    assert block["recovered"] is True
    assert block["error"] < 0.1
    assert block["well_connected"]["holds"] is True


def test_demo_quiet(run):
    outcome = run("demo", "--quiet")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
