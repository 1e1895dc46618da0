"""Two checkers that share no code give the answers of the corpus, and the same bounds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import verify

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
INDEX: dict[str, dict[str, Any]] = json.loads((CORPUS / "index.json").read_text(encoding="ascii"))
STATUS = {"CERTIFIED": 0, "UNPROVED": 3, "REFUTED": 4}
MALFORMED = 5
# A kernel that reads documents of JSON alone has nothing to say about the others.
READS_ARRAYS = find_spec("verify.kernel.large") is not None
# Roots, logarithms and exponentials are enclosed by each checker in its own way; here to 2^-60.
ENCLOSURE = Fraction(1, 2**60)


def file(name: str) -> Path:
    return CORPUS / "documents" / name


def options(entry: dict[str, Any]) -> dict[str, Any]:
    return {"rtol": entry.get("rtol", 1e-6), "budget": entry.get("budget")}


@pytest.fixture(scope="module")
def of_python() -> dict[str, verify.Result]:
    return {
        name: verify.check(
            file(name), file(entry["data"]) if "data" in entry else None, **options(entry)
        )
        for name, entry in INDEX.items()
        if READS_ARRAYS or not name.endswith(".gtvc")
    }


@pytest.fixture(scope="module")
def of_javascript(javascript: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    questions = [
        {
            "document": file(name).read_bytes(),
            "data": file(entry["data"]).read_bytes() if "data" in entry else None,
            **options(entry),
        }
        for name, entry in INDEX.items()
    ]
    return dict(zip(INDEX, javascript(questions), strict=True))


def test_python_answers_as_the_index_says(of_python: dict[str, verify.Result]) -> None:
    wrong = {}
    for name, result in of_python.items():
        entry = INDEX[name]
        status = MALFORMED if result.reason.startswith("malformed") else STATUS[result.status]
        if status != entry["status"] or not is_reason(entry["reason"], result.reason):
            wrong[name] = (entry, result.status, result.reason)
    assert wrong == {}


def test_javascript_answers_as_the_index_says(of_javascript: dict[str, dict[str, Any]]) -> None:
    wrong = {}
    for name, entry in INDEX.items():
        answer = of_javascript[name]
        as_expected = answer["exitStatus"] == entry["status"]
        if not as_expected or not is_reason(entry["reason"], answer["reason"]):
            wrong[name] = (entry, answer["status"], answer["reason"])
    assert wrong == {}


def is_reason(expected: str, reason: str) -> bool:
    return expected == "certified" or expected in reason


def test_bounds_agree(
    of_python: dict[str, verify.Result], of_javascript: dict[str, dict[str, Any]]
) -> None:
    """Rational bounds are the same numbers; what is enclosed, nearly."""
    exact = 0
    for name, result in of_python.items():
        answer = of_javascript[name]
        for mine, found in ((result.upper, answer["upper"]), (result.lower, answer["lower"])):
            assert (mine is None) == (found is None), name
            if mine is None:
                continue
            exact += mine == rational(found)
            assert abs(mine - rational(found)) <= ENCLOSURE * max(1, abs(mine)), name
    assert exact > 200


def rational(found: list[Any]) -> Fraction | None:
    """Read n 2^e / d."""
    if found is None:
        return None
    n, e, d = found
    return Fraction(int(n, 16), int(d, 16)) * Fraction(2) ** e


def test_figures_are_rounded_outward(
    of_python: dict[str, verify.Result], of_javascript: dict[str, dict[str, Any]]
) -> None:
    compared = 0
    for name, result in of_python.items():
        ours, theirs = of_javascript[name], result.to_json()
        if [rational(ours[key]) for key in ("upper", "lower")] != [result.upper, result.lower]:
            continue  # enclosed, each in its own way
        for key in ("upper", "lower", "gap", "rel_gap", "plain_gap"):
            assert ours["figures"][key] == theirs[key], (name, key)
            compared += theirs[key] is not None
        distances = [f["distance_bound"] or 0.0 for f in (ours["figures"], theirs)]
        assert distances[0] == pytest.approx(distances[1], rel=1e-15), name  # roots, from above
        assert bool(ours["figures"]["warning"]) == bool(theirs["warning"]), name
    assert compared > 900


def test_the_corpus_has_every_kind_of_answer() -> None:
    statuses = [entry["status"] for entry in INDEX.values()]
    for status in (0, 3, 4, 5):
        assert statuses.count(status) >= 25
    assert sum(name.endswith(".gtvc") for name in INDEX) >= 40
    assert len(statuses) >= 700
    assert {path.name for path in (CORPUS / "documents").iterdir()} == {
        *INDEX,
        *(entry["data"] for entry in INDEX.values() if "data" in entry),
    }


def test_the_script_makes_the_same_corpus(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(CORPUS / "make.py"), str(tmp_path)], check=True)
    made = {path.name: path.read_bytes() for path in (tmp_path / "documents").iterdir()}
    kept = {path.name: path.read_bytes() for path in (CORPUS / "documents").iterdir()}
    assert made == kept
    assert (tmp_path / "index.json").read_bytes() == (CORPUS / "index.json").read_bytes()
