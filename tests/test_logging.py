"""What the loggers say, on which level, and that nobody hears it who does not ask."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._compiling import Announcement


@pytest.fixture(scope="module")
def problem():
    graph = gtv.EmpiricalGraph(6, [[i, i + 1] for i in range(5)])
    rng = np.random.default_rng(0)
    losses = gtv.SquaredLoss.stack(rng.standard_normal((6, 4, 2)), rng.standard_normal((6, 4)))
    return gtv.GTVProblem(graph, losses, "l2", 0.2)


def said(caplog, name):
    return [record.getMessage() for record in caplog.records if record.name == f"gtvcvx.{name}"]


def test_a_solve_tells_its_method_and_its_end(problem, caplog):
    with caplog.at_level(logging.INFO, "gtvcvx"):
        solution = problem.solve(verbose=False)
    lines = said(caplog, "solvers")
    assert lines[0] == "AUTO: 6 nodes, 5 edges, dimension 2, penalty l2, lambda 0.2"
    assert lines[1].endswith("from iteration 0")
    assert lines[1].split(" from ")[0] in solution.info["method"]
    assert lines[-1].startswith(f"AUTO: optimal, relative gap {solution.rel_gap:.3g}")
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_methods_are_told_in_their_order(caplog):
    """Absolute errors: whatever takes over is told with the iteration at which it does."""
    rng = np.random.default_rng(1)
    graph = gtv.generators.sbm([20, 20], 0.4, 0.05, seed=0)
    losses = gtv.AbsoluteLoss.stack(rng.standard_normal((40, 3, 2)), rng.standard_normal((40, 3)))
    with caplog.at_level(logging.INFO, "gtvcvx.solvers"):
        solution = gtv.GTVProblem(graph, losses, "l2", 0.3).solve()
    lines = [line for line in said(caplog, "solvers") if " from iteration " in line]
    told = [line.split(" from ")[0] for line in lines]
    assert ", ".join(dict.fromkeys(told)) == solution.info["method"]


@pytest.mark.parametrize(
    ("edges", "method"),
    [([[0, 1], [1, 2]], "dynamic programming"), ([[0, 1], [1, 2], [0, 2]], "divide and conquer")],
)
def test_methods_of_scalar_problems_are_told(caplog, edges, method):
    graph = gtv.EmpiricalGraph(3, edges)
    with caplog.at_level(logging.INFO, "gtvcvx"):
        gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0], [5.0]]), "l1", 0.2).solve()
    assert f"{method} from iteration 0" in said(caplog, "solvers")


def test_every_check_and_restart_is_for_debugging(problem, caplog):
    with caplog.at_level(logging.DEBUG, "gtvcvx"):
        solution = problem.solve(rtol=1e-9, max_iter=5000, stop="iterations")
    checks = [line for line in said(caplog, "solvers") if line.startswith("check at")]
    assert len(checks) == len(solution.history)
    assert any("restart after" in line for line in said(caplog, "solvers.primal_dual"))


def test_polishes_are_for_debugging(problem, caplog):
    with caplog.at_level(logging.DEBUG, "gtvcvx.solvers"):
        problem.with_lam(0.06).solve(rtol=1e-9, warm_start=problem.solve())
    assert any(line.startswith("polish after") for line in said(caplog, "solvers.polishing"))


def test_paths_and_folds_are_told(problem, caplog):
    with caplog.at_level(logging.DEBUG, "gtvcvx"):
        gtv.cross_validate(problem, n_lams=3, cv=2)
    lines = said(caplog, "path")
    assert lines[0].startswith("lambda_max between ")
    assert sum(line.startswith("complete after 3 of 3 values") for line in lines) == 3
    assert sum(line.startswith("lambda ") for line in lines) == 9
    assert said(caplog, "model_selection") == [
        "fold 1 of 2: 12 data held out",
        "fold 2 of 2: 12 data held out",
    ]


def test_limits_are_told(problem, caplog):
    def interrupt(progress):
        raise KeyboardInterrupt

    with caplog.at_level(logging.INFO, "gtvcvx"):
        problem.solve(callback=interrupt)
    assert any(line.startswith("Ctrl-C after ") for line in said(caplog, "solvers"))


def test_federated_runs_tell_crashes(problem, caplog):
    net = fed.Network.from_problem(problem)
    with caplog.at_level(logging.INFO, "gtvcvx"):
        fed.simulate(fed.FedADMM(), net, 6, crashes=[fed.Crash(2, 2, 4)])
    lines = said(caplog, "federated")
    assert "6 clients, 5 links, at most 6 rounds" in lines[0]
    assert lines[1].startswith("round 2: ")
    assert lines[1].endswith(" crashes")
    assert lines[2].startswith("round 4: ")
    assert lines[2].endswith(" is back")
    assert lines[-1].startswith("finished after 6 rounds")


def test_compilation_is_told_whether_it_is_shown_or_not(caplog):
    announcement = Announcement(verbose=False)
    with caplog.at_level(logging.DEBUG, "gtvcvx"):
        announcement.begun()
        announcement.ended()
    assert [record.levelno for record in caplog.records] == [logging.INFO, logging.DEBUG]
    assert said(caplog, "compiled")[0].startswith("compiling, once")


QUIET = """
import gtvcvx as gtv
from gtvcvx._logging import room_logger
room_logger("solvers").warning("nobody asked")
losses = gtv.PointLoss.stack([[0.0], [1.0]])
gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), losses, lam=0.1).solve()
"""
LOUD = "import logging; logging.basicConfig(level=logging.INFO)\n" + QUIET


@pytest.mark.parametrize(("code", "heard"), [(QUIET, False), (LOUD, True)])
def test_nothing_is_printed_unless_somebody_asks(code, heard):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert ("nobody asked" in done.stderr) == heard
    assert ("INFO:gtvcvx.solvers:AUTO: optimal" in done.stderr) == heard
    assert bool(done.stderr) == heard
