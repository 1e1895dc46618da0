"""Clustering data, and peers that run as programs: their adapters, with stand-ins for them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from _benchmark_modules import FOLDER, module, siblings

import gtvcvx as gtv

__all__ = ["siblings"]  # a fixture for all of the tests

# A package that solves what the adapter hands over as the peer's own documentation describes it.
CCMMPY = """
import cvxpy as cp, numpy as np

class SparseWeights:
    def __init__(self, X, k, phi): raise AssertionError("weights are given")

class CCMM:
    def __init__(self, X, weights, tau, center, scale, eps_conv, max_iter_conv):
        assert isinstance(weights, SparseWeights) and not (center or scale) and 0 < tau < 1
        self.X, self.pairs, self.values = X, weights.indices(), weights.values()
        assert (np.diff(self.pairs[:, 1]) >= 0).all()

    def convex_clusterpath(self, lambdas, save_clusterpath):
        w, pairs = cp.Variable(self.X.shape), self.pairs
        jumps = cp.norm(w[pairs[:, 0]] - w[pairs[:, 1]], 2, axis=1)
        loss = cp.sum_squares(self.X - w) / 2 + lambdas[0] * (self.values @ jumps) / 2
        cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
        self.coordinates = w.value
"""
PROX_TV = """
import cvxpy as cp

def tv1_1d(x, w, method):
    y = cp.Variable(len(x))
    cp.Problem(cp.Minimize(cp.sum_squares(x - y) / 2 + w * cp.tv(y))).solve(solver="CLARABEL")
    return y.value
"""
PYCLUSTRPATH = """
import types
import cvxpy as cp, numpy as np

gv = types.SimpleNamespace(_init=lambda args: None)

class DataProcessor:
    def __init__(self, X, k, device):
        self.X, self.k = X, k

class ConvexClusterSolver:
    def __init__(self, method, gamma_list, stop_tol, max_iter, use_kkt, device):
        assert method == "ssnal"
        self.gamma = gamma_list[0]

    def solve(self, data):
        from gtvcvx.generators import nearest_neighbours
        points = data.X.T
        edges = nearest_neighbours(points, data.k).edges
        w, squared = cp.Variable(points.shape), ((points[edges[:, 0]] - points[edges[:, 1]]) ** 2)
        weights = np.exp(-squared.sum(axis=1) / 2)
        jumps = cp.norm(w[edges[:, 0]] - w[edges[:, 1]], 2, axis=1)
        loss = cp.sum_squares(points - w) / 2 + self.gamma * (weights @ jumps)
        cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
        return [w.value.T]
"""
TORCH = "class Tensor: pass\ndef from_numpy(x): return x\n"


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """An environment for each program, with stand-ins for the packages that it should have."""
    packages = tmp_path / "packages"
    packages.mkdir()
    sources = {"ccmmpy": CCMMPY, "prox_tv": PROX_TV, "pyclustrpath": PYCLUSTRPATH, "torch": TORCH}
    for name, source in sources.items():
        (packages / f"{name}.py").write_text(source)
    paths = [str(packages), str(FOLDER.parents[1]), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    for name in module("external").PROGRAMS:
        home = tmp_path / "environments" / name / "bin"
        home.mkdir(parents=True)
        (home / "python").symlink_to(sys.executable)
        (home.parent / "ready").touch()
    # Told to the workers in the environment, of which monkeypatch takes note.
    monkeypatch.setenv(module("external").FOLDER, "")
    return tmp_path / "environments"


@pytest.mark.parametrize(
    ("peer", "family", "variant", "penalty", "lam"),
    [
        ("prox-tv", "F10", "chain points", "l1", 0.5),
        ("CCMM", "F9", "mixture", "l2", 3.0),
        ("SSNAL", "F9", "moons", "l2", 30.0),
    ],
)
def test_programs_solve_the_same_problem(stand_ins, peer, family, variant, penalty, lam):
    external, peers = module("external"), module("peers")
    assert external.prepare(stand_ins, [peer]) == []
    problem = module("families").Case(family, 40, variant, penalty, lam).problem()
    assert peers.PEERS[peer].applies(problem)
    outcome = peers.PEERS[peer].solve(problem, peers.Task(1e-6, -np.inf, 60.0, 1e-6))
    best = problem.solve(rtol=1e-9, verbose=False)
    assert (problem.value(outcome.w) - best.dual_value) / best.value <= 1e-5
    assert outcome.seconds > 0.0
    assert outcome.memory > 1.0


def test_programs_that_fail_say_why(stand_ins, tmp_path):
    external = module("external")
    (tmp_path / "packages" / "prox_tv.py").write_text("raise ImportError('no such library')")
    external.prepare(stand_ins, ["prox-tv"])
    problem = module("families").Case("F10", 5, "chain points", "l1", 0.5).problem()
    with pytest.raises(RuntimeError, match="prox-tv: ImportError: no such library"):
        external.run("prox-tv", problem, 1e-6, 10.0)


def test_programs_that_nobody_has_installed_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv(module("external").FOLDER, "")
    (said,) = module("external").prepare(tmp_path, ["CCMM"])
    assert said.startswith(f"CCMM: no environment {tmp_path / 'CCMM'}")
    assert "not on PyPI" in said


def test_programs_apply_to_what_they_can_solve_alone():
    programs = module("external").PROGRAMS
    case = module("families").Case
    chain = case("F10", 9, "chain points", "l1", 0.5).problem()
    tree = case("F10", 9, "tree points", "l1", 0.5).problem()
    kinks = case("F10", 9, "chain absolute", "l1", 0.5).problem()
    moons = case("F9", 30, "moons", "l2", 3.0).problem()
    weighted = np.arange(1.0, 31.0) * moons.losses
    found = {
        name: [program.applies(problem) for problem in (chain, tree, kinks, moons)]
        for name, program in programs.items()
    }
    assert found["prox-tv"] == [True, False, False, False]
    assert found["CCMM"] == [True, True, False, True]
    assert found["SSNAL"] == [False, False, False, True]
    for name in ("CCMM", "SSNAL"):
        assert not programs[name].applies(gtv.GTVProblem(moons.graph, weighted, "l2", 3.0))
    other = gtv.EmpiricalGraph(30, moons.graph.edges)
    assert not programs["SSNAL"].applies(gtv.GTVProblem(other, moons.losses, "l2", 3.0))


def test_a_user_s_files_are_read_and_missing_ones_are_told(tmp_path, monkeypatch):
    clustering, families = module("clustering"), module("families")
    monkeypatch.setenv(clustering.FOLDER, "")
    points = np.random.default_rng(0).standard_normal((360, 7))
    labels = np.arange(360.0)[:, None]
    scipy.io.savemat(tmp_path / "movement_libras.mat", {"X": points.T, "y": labels})
    said = clustering.find_data(tmp_path)
    assert [line.split(":")[0] for line in said] == ["F9 coil20", "F9 mnist"]
    assert "no COIL20.mat in" in said[0]
    chosen = [case for case in families.cases("F9") if case.variant == "libras"]
    assert [case.size for case in chosen] == [360, 360]
    problem = chosen[0].problem()
    (term,) = problem.to_data()["terms"]
    np.testing.assert_allclose(term["a"] * (points[0] / term["a"][0])[0], points)
    squared = np.sum(problem.differences(term["a"]) ** 2, axis=1)
    np.testing.assert_allclose(problem.graph.weights, np.exp(-0.5 * squared))
    assert np.median(squared) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="there is no folder"):
        clustering.find_data(tmp_path / "none")
    scipy.io.savemat(tmp_path / "COIL20.mat", {"X": points})
    with pytest.raises(ValueError, match="a matrix of 1440 points is expected, found"):
        clustering.points_of("coil20", 50)


def test_without_files_there_are_no_cases_of_them_and_a_clear_error(monkeypatch):
    clustering, families = module("clustering"), module("families")
    monkeypatch.delenv(clustering.FOLDER, raising=False)
    variants = {case.variant for case in families.cases("F9")}
    assert variants == {"digits", "moons", "mixture"}
    assert {case.size for case in families.cases("F9", quick=True)} == {120}
    with pytest.raises(ValueError, match="--data DIR"):
        clustering.points_of("mnist", 10)


def test_the_command_names_what_is_missing(tmp_path):
    command = [sys.executable, FOLDER, "--list", "--family", "F9", "--data", Path(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "F9 mnist: no MNIST_test.mat" in done.stdout
    command[-1] = tmp_path / "none"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--data: there is no folder" in done.stderr
