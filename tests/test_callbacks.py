"""Callbacks: what each is shown, that a true value stops, and that their types are checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import federated as fed

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(6, [[i, i + 1] for i in range(5)])
    losses = gtv.SquaredLoss.stack(rng.standard_normal((6, 4, 2)), rng.standard_normal((6, 4)))
    return gtv.GTVProblem(graph, losses, "l2", 0.2)


def test_a_solve_shows_its_checks(problem):
    seen: list[gtv.Progress] = []
    solution = problem.solve(solver="PDHG", callback=seen.append)
    assert {type(each) for each in seen} == {gtv.Progress}
    assert seen[-1].gap == solution.gap
    options = {"solver": "PDHG", "max_iter": 5000, "rtol": 1e-13}
    whole = problem.solve(**options, callback=lambda progress: None)
    stopped = problem.solve(**options, callback=lambda progress: progress.n_iter >= 1)
    assert stopped.n_iter < whole.n_iter


def test_a_path_shows_its_solutions(problem):
    seen: list[gtv.Solution] = []
    path = gtv.lambda_path(problem, [0.1, 1.0, 0.01], callback=seen.append)
    assert seen == path.solutions
    assert gtv.lambda_path(problem, [0.1, 1.0], callback=lambda s: True).status == "callback"


def test_cross_validation_shows_every_solve(problem):
    seen: list[gtv.CrossValidationProgress] = []
    found = gtv.cross_validate(problem, [1.0, 0.1], cv=3, callback=seen.append)
    assert [each.done for each in seen] == list(range(1, 9))
    assert {(each.total, each.n_folds) for each in seen} == {(8, 3)}
    assert [each.fold for each in seen] == [None, None, 0, 0, 1, 1, 2, 2]
    assert [each.position for each in seen] == [0, 1] * 4
    assert [each.solution for each in seen[:2]] == found.path.solutions


def test_an_answer_does_not_cut_cross_validation_short(problem):
    """Errors of some folds would mislead; an exception goes through."""
    plain = gtv.cross_validate(problem, [1.0, 0.1], cv=3)
    told = gtv.cross_validate(problem, [1.0, 0.1], cv=3, callback=lambda progress: True)
    assert np.array_equal(plain.fold_errors, told.fold_errors)

    def stop(progress):
        raise RuntimeError(f"at {progress.done}")

    with pytest.raises(RuntimeError, match="at 1"):
        gtv.cross_validate(problem, [1.0, 0.1], cv=3, callback=stop)


def test_a_federated_run_shows_its_records(problem):
    seen: list[fed.RoundProgress] = []
    net = fed.Network.star(fed.Network.from_problem(problem).models)
    run = fed.simulate(fed.FedAvg(lam=1.0), net, 10, record_every=5, callback=seen.append)
    assert [each.round for each in seen] == [0, 5, 10]
    # The star's centre is a node as well.
    assert np.array_equal(seen[-1].w, run.w)
    assert np.array_equal(seen[-1].models, run.models)
    assert len(seen[-1].w) == len(seen[-1].models) + 1
    assert not np.array_equal(seen[-1].models, seen[0].models)
    assert set(seen[-1].record) >= {"round", "gap", "bytes_up"}


USERS = """
import gtvcvx as gtv
from gtvcvx import federated as fed


def watch(progress: gtv.Progress) -> bool:
    return progress.rel_gap < 1e-3


def keep(solution: gtv.Solution) -> None:
    print(solution.value)


class Rounds:
    def __call__(self, progress: fed.RoundProgress) -> None:
        print(progress.round, progress.w.shape)


def fold(progress: gtv.CrossValidationProgress) -> None:
    print(progress.fold, progress.solution.gap)


def run(problem: gtv.GTVProblem) -> None:
    problem.solve(callback=watch)
    gtv.lambda_path(problem, callback=keep)
    gtv.cross_validate(problem, callback=fold)
    fed.simulate(fed.FedADMM(), problem, 3, callback=Rounds())
"""
WRONG = """
    problem.solve(callback=keep)
    gtv.lambda_path(problem, callback=watch)
    gtv.cross_validate(problem, callback=watch)
    fed.simulate(fed.FedADMM(), problem, 3, callback=fold)
"""


def test_types_of_callbacks_are_checked(tmp_path):
    """Users' functions of the right type pass mypy, and each wrong one is found."""
    pytest.importorskip("mypy")
    (tmp_path / "users.py").write_text(USERS + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "users.py")],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    first = USERS.count("\n") + 2
    lines = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert lines == [first, first + 1, first + 2, first + 3], done.stdout + done.stderr
