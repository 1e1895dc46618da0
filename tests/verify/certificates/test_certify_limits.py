"""The time limit of a certificate, Ctrl-C, and what the reason advises."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _plain_instances import Data, instance, solve

import verify
from verify.certificates import _entry, _limits
from verify.certificates._dual_points import Candidate, DualSearch
from verify.certificates._limits import Clock


class _Problem(SimpleNamespace):
    """A problem whose solver is given."""

    def to_data(self) -> Data:
        data: Data = self.data
        return data


def test_what_runs_out_of_time_is_unproved_and_says_what_to_change() -> None:
    data = instance(11, "mixed", "l2")
    w, _ = solve(data)
    certificate = verify.certify(data, w, time_limit=1e-9)
    assert certificate.status == "UNPROVED"
    assert "ran out: raise time_limit, or give u, the flow of a solution" in certificate.reason
    assert "time limit of 1e-09 s" in certificate.reason


def test_who_gave_a_flow_is_not_told_to_give_one() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    late = verify.certify(data, w + 0.1, u, time_limit=1e-9).reason
    assert "raise time_limit, or give w and u of a solution with a smaller gap" in late
    clock = Clock(None)
    clock.stopped_solving = 10.0
    assert "give u" in str(clock.note())
    assert "give w and u" in str(clock.note(_limits.GIVE_BETTER))


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan])
def test_a_time_limit_is_positive(limit: float) -> None:
    data = instance(11, "mixed", "l2")
    with pytest.raises(ValueError, match="time_limit must be positive"):
        verify.certify(data, np.zeros((12, 2)), time_limit=limit)


@pytest.mark.parametrize("limit", [None, 30.0])
def test_the_solver_of_the_problem_is_given_a_limit(limit: float | None) -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    seen = []

    def solver(rtol: float, time_limit: float) -> Any:
        seen.append(time_limit)
        return SimpleNamespace(w=w, u=u)

    certificate = verify.certify(_Problem(data=data, solve=solver), w, time_limit=limit)
    assert certificate.status == "CERTIFIED"
    assert 5 < seen[0] <= (limit or 60)


@pytest.mark.parametrize("large", [False, True])
def test_reading_the_data_counts(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is solved where reading has taken all of the time: in texts, and in arrays."""
    data = instance(11, "point", "l2")
    if large:
        monkeypatch.setattr(_entry, "LARGE", 0)
        data = {**data, "edges": np.array(data["edges"]), "weights": np.array(data["weights"])}

    class Slow(_Problem):
        def to_data(self) -> Data:
            time.sleep(0.06)
            return super().to_data()

    def solver(rtol: float, time_limit: float) -> Any:
        raise AssertionError("it was too late")

    n, d = data["n_nodes"], data["dim"]
    found = verify.certify(Slow(data=data, solve=solver), np.zeros((n, d)), time_limit=0.05)
    assert found.status == "UNPROVED"
    assert "time limit of 0.05 s ran out" in found.reason


def test_a_solver_that_takes_no_limit_is_given_none() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    problem = _Problem(data=data, solve=lambda rtol: SimpleNamespace(w=w, u=u))
    assert verify.certify(problem, w, time_limit=60).status == "CERTIFIED"


def test_warnings_of_a_solve_that_was_not_asked_for_are_kept() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)

    def solver(rtol: float) -> Any:
        warnings.warn("lambda is large", UserWarning, stacklevel=2)
        return SimpleNamespace(w=w, u=u)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verify.certify(_Problem(data=data, solve=solver), w).status == "CERTIFIED"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_control_c_propagates_though_the_solver_returns() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)

    def solver(rtol: float, time_limit: float) -> Any:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        return SimpleNamespace(w=w, u=u)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        verify.certify(_Problem(data=data, solve=solver), w)
    assert signal.getsignal(signal.SIGINT) is before


def test_solving_again_gets_seconds_for_its_size_and_for_what_was_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(_limits.CLOCK, "now", lambda: now[0])
    clock = Clock(None, 1000)
    now[0] = 2.0
    with clock.solving() as seconds:
        now[0] += seconds
    assert seconds == pytest.approx(10 + 1 + 20)
    assert "solving again was stopped after 31 s" in str(clock.note())
    assert clock.for_solving() == pytest.approx(31)  # not more for what was spent on solving
    assert not clock.expired()


def test_the_advised_tolerance_is_enough() -> None:
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    rough = verify.certify(data, w + 1e-4, u, rtol=1e-9, search=False)
    assert rough.status == "UNPROVED"
    rtol = float(rough.reason.rpartition("rtol=")[2].rstrip(")"))
    assert verify.certify(data, w + 1e-4, u, rtol=rtol, search=False).status == "CERTIFIED"


def test_a_flow_is_tried_before_solving_again_though_much_of_it_seems_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In raw units the estimate of what rounding costs is far above what it does cost."""
    data = instance(11, "mixed", "l2")
    w, u = solve(data)
    made = DualSearch._candidate
    tried = []

    def pessimistic(self: DualSearch, *arguments: Any) -> Candidate:
        return replace(made(self, *arguments), lower=-1e9)

    def solver(rtol: float) -> Any:
        tried.append(rtol)
        return SimpleNamespace(w=w, u=u)

    monkeypatch.setattr(DualSearch, "_candidate", pessimistic)
    assert verify.certify(_Problem(data=data, solve=solver), w, u).status == "CERTIFIED"
    assert not tried
