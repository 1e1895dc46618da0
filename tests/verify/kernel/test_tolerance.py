"""Whoever checks says what is near enough, and sees how near it is."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _plain_instances import document

import verify
from verify.__main__ import main
from verify.kernel.data import canonical, digest

DOC = ("squared", "l2")


def certificate(scale: float, shift: float = 0.0) -> dict[str, Any]:
    """Return one point loss ||w - a||^2 with a = scale, at w = a + shift, its bound exact."""
    a = Fraction(scale)
    data = canonical(
        {
            "schema": "gtv-problem/1",
            "n_nodes": 1,
            "dim": 1,
            "edges": [],
            "weights": [],
            "lam": 1.0,
            "penalty": {"kind": "l2"},
            "terms": [{"kind": "point", "node": [0], "a": [[scale]]}],
        }
    )
    w = a + Fraction(shift)
    return {
        "schema": "gtv-certificate/1",
        "sha256": digest(data),
        "claim": {"rtol": 1e-6, "upper": None, "lower": None},
        "w": [[f"{w.numerator:#x}/{w.denominator:#x}"]],
        "dual": {"u": [], "r": [[[0]]]},
        "data": data,
    }


@pytest.mark.parametrize("own", [0, 1e-9, 1.0, 1e300, "0x1p20000"])
def test_the_tolerance_of_the_document_decides_nothing(own: Any) -> None:
    doc = document(7, *DOC)
    found = verify.check(doc)
    assert found.rel_gap is not None
    coarse = document(7, *DOC)
    coarse["w"] = (np.array([[float.fromhex(x) for x in row] for row in doc["w"]]) + 0.01).tolist()
    coarse["claim"] = {"rtol": own, "upper": None, "lower": None}
    answer = verify.check(coarse)
    assert answer.rtol == Fraction(1e-6)
    assert answer.status == "UNPROVED"
    assert ("the document asks for no more than" in answer.reason) == (own not in (0, 1e-9))
    assert answer.rel_gap is not None
    assert verify.check(coarse, rtol=2 * float(answer.rel_gap)).status == "CERTIFIED"
    doc["claim"] = {"rtol": own, "upper": None, "lower": None}
    assert verify.check(doc).status == "CERTIFIED"
    assert verify.check(doc, rtol=0).status == "UNPROVED"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rtol": -1.0}, ValueError, "rtol must be finite and not negative"),
        ({"rtol": float("nan")}, ValueError, "rtol must be finite"),
        ({"rtol": float("inf")}, ValueError, "rtol must be finite"),
        ({"rtol": "1e-6"}, TypeError, "rtol must be a number, got str"),
        ({"rtol": 1e-6 + 0j}, TypeError, "rtol must be a number, got complex"),
        ({"rtol": np.ma.masked}, TypeError, "rtol must be a number"),
        ({"rtol": True}, TypeError, "rtol must be a number"),
        ({"budget": 0}, ValueError, "budget must be at least 1"),
        ({"budget": 1e6}, TypeError, "budget must be an integer"),
    ],
)
def test_bad_options_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        verify.check({}, **options)


def test_tolerances_of_any_kind_of_number_are_exact() -> None:
    doc = certificate(1.0, 2.0**-10)
    assert verify.check(doc, rtol=Fraction(1, 1 << 20)).status == "CERTIFIED"
    assert verify.check(doc, rtol=Fraction((1 << 20) - 1, 1 << 40)).status == "UNPROVED"
    assert verify.check(doc, rtol=np.float32(2.0**-20)).status == "CERTIFIED"
    assert verify.check(doc, rtol=np.int64(1)).status == "CERTIFIED"


def test_a_small_objective_is_said_to_be_small(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """At a = 1e-4 the point w = 0 is within 1e-6 of optimal by max(1, .), and means nothing."""
    result = verify.check(certificate(1e-4, -1e-4))
    assert (result.status, result.plain_gap) == ("CERTIFIED", 1)
    assert "gap / |upper|" in result.warning
    file = tmp_path / "small.json"
    file.write_text(json.dumps(certificate(1e-4, -1e-4)))
    assert main(["check", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("CERTIFIED: relative gap 1e-08")
    assert [line.split()[0] for line in lines[1:4]] == ["rel_gap", "plain_gap", "gap"]
    assert lines[-1].split()[0] == "warning:"
    assert verify.check(certificate(1.0, 1e-4)).warning == ""  # P(0) = 1: small, and rightly so
    assert verify.check(certificate(1e4, 1.0), rtol=1).warning == ""


def test_figures_beyond_doubles_are_no_infinity(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps(certificate(1e308, -1e308)))
    assert main(["check", str(file), "--json"]) == 3

    def refused(name: str) -> None:
        raise AssertionError(name)

    figures = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert figures["upper"] is None
    assert figures["rel_gap"] == 1.0
    assert main(["check", str(file)]) == 3
    assert "Infinity" not in capsys.readouterr().out


def test_an_exact_solution_has_no_plain_gap_where_the_objective_is_zero() -> None:
    result = verify.check(certificate(3.0), rtol=0)
    assert (result.status, result.gap, result.plain_gap) == ("CERTIFIED", 0, None)
