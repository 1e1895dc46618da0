"""Limits that strike anywhere in the building of a certificate, and in the check by the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from _plain_instances import instance, solve

import verify
from verify import _deadline
from verify.certificates import _entry
from verify.kernel import work


class Ticking:
    """A clock that goes on by one second at every look."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        self.time += 1.0
        return self.time


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["mixed", "absolute", "box"])
def test_whenever_the_limit_strikes_there_is_an_answer(
    kind: str, large: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = instance(11, kind, "l2")
    w, u = solve(data)
    if large:
        monkeypatch.setattr(_entry, "LARGE", 0)
    found = set()
    for looks in (1, 3, 10, 30, 60, 100, 200, 400, 3000):
        clock = Ticking()
        monkeypatch.setattr(_deadline.CLOCK, "now", clock.now)
        certificate = verify.certify(data, w, u, search=False, time_limit=looks)
        found.add(certificate.status)
        if certificate.status == "UNPROVED":
            assert f"limit of {looks:g} s" in certificate.reason
            assert clock.time < looks + 60  # it does not go on as if nothing had happened
        certificate.save(tmp_path / "c.json")
        assert verify.check(tmp_path / "c.json").status != "REFUTED"
    assert found == {"UNPROVED", "CERTIFIED"}


def test_a_check_gives_up_where_it_counts_work() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    document = verify.certify(data, w, u).document
    asked = []

    def over() -> bool:
        asked.append(None)
        return len(asked) > 5

    with work.unless(over):
        result = verify.check(document)
    assert (result.status, result.upper) == ("UNPROVED", None)
    assert verify.check(document).status == "CERTIFIED"
