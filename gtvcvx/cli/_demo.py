"""``gtvcvx demo``: two embedded instances, solved exactly and fast, certified, their partitions."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np

import verify
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._progress import format_seconds
from gtvcvx.cli import _clusters
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._proof import certificate_data, certify, rounded_up
from gtvcvx.cli._report import counted, emit, entry, table, working
from gtvcvx.cli._status import NOT_PROVED, PROVED
from gtvcvx.datasets import load_us_income
from gtvcvx.generators import regression_data, sbm
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import SquaredLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

INCOME_LAM = 0.25
# The stochastic block model of [GTV] section VI-A in small, with few edges between the clusters,
# as Theorem 2 asks for.
SBM_SIZES, SBM_P_IN, SBM_P_OUT = (40, 40), 0.5, 0.003
SBM_ROWS, SBM_NOISE, SBM_LABELLED, SBM_LAM, SBM_SEED = 10, 0.1, 0.6, 0.2, 9
SBM_TRUE_W = ((2.0, 2.0), (-2.0, 2.0))


@dataclass(frozen=True)
class Outcome:
    """A solution of a demo instance and its certificate."""

    problem: GTVProblem
    solution: Solution
    certificate: verify.Certificate

    @property
    def certified(self) -> bool:
        """Whether the certificate proves the tolerance asked for."""
        return bool(self.certificate.status == "CERTIFIED")


def run(args: Namespace) -> int:
    """Solve, certify, check, report."""
    income, features = _income()
    planted, partition, truth = _block_model()
    with working(args, "compiling"):
        compile_seconds = _compile()
    income_lines, income_data, income_done = _income_account(args, income, features)
    block_lines, block_data, block_done = _block_account(args, planted, partition, truth)
    lines = [*income_lines, "", *block_lines]
    lines += [
        "",
        f"The first call of the fast solver, which compiles it, took "
        f"{format_seconds(compile_seconds)}, not counted above.",
    ]
    data = {
        "compile_seconds": compile_seconds,
        "us_income": income_data,
        "block_model": block_data,
    }
    emit(args, lines, data)
    return PROVED if income_done and block_done else NOT_PROVED


def _income() -> tuple[GTVProblem, list[str]]:
    income = load_us_income()
    X, y = income.trend_regression()
    problem = GTVProblem(income.graph(), SquaredLoss.stack(X, y), "l2", INCOME_LAM)
    return problem, ["in 1969", "in 40 years"]


def _block_model() -> tuple[GTVProblem, IntArray, FloatArray]:
    """Return the problem, the planted partition (n,) and the true parameters (n, d)."""
    graph = sbm(SBM_SIZES, SBM_P_IN, SBM_P_OUT, SBM_SEED)
    partition = np.repeat(np.arange(len(SBM_SIZES)), SBM_SIZES)
    truth = np.array(SBM_TRUE_W)[partition]
    X, y, labelled = regression_data(truth, SBM_ROWS, SBM_NOISE, SBM_LABELLED, SBM_SEED)
    losses = SquaredLoss.stack(X, y, labelled)
    return GTVProblem(graph, losses, "l2", SBM_LAM), partition, truth


def _compile() -> float:
    """Have the fast solver compiled; return the seconds that it took."""
    start = time.perf_counter()
    graph = EmpiricalGraph(2, [[0, 1]])
    losses = [SquaredLoss(np.eye(2), [1.0, 0.0]), SquaredLoss(np.eye(2), [0.0, 1.0])]
    GTVProblem(graph, losses, "l2", 0.1).solve(verbose=False)
    return time.perf_counter() - start


def _solve_both(args: Namespace, problem: GTVProblem) -> list[Outcome]:
    """Solve exactly and fast, and certify both."""
    outcomes = []
    for solver in ("CLARABEL", "AUTO"):
        with working(args, f"solving with {solver}"):
            solution = problem.solve(solver, rtol=0.5 * DEFAULT_RTOL, verbose=False)
        certificate = certify(args, problem, solution, DEFAULT_RTOL)
        outcomes.append(Outcome(problem, solution, certificate))
    return outcomes


def _solved_lines(title: str, outcomes: list[Outcome]) -> list[str]:
    problem = outcomes[0].problem
    rows = [
        [
            outcome.solution.solver,
            f"{outcome.solution.seconds:.3f}",
            f"{outcome.solution.value:.9f}",
            outcome.certificate.status,
            rounded_up(outcome.certificate.rel_gap),
        ]
        for outcome in outcomes
    ]
    header = ["solver", "seconds", "objective", "certificate", "relative gap, proved"]
    return [
        title,
        entry(
            "Problem",
            f"{counted(problem.graph.n_nodes, 'node')}, {counted(problem.graph.n_edges, 'edge')}, "
            f"{problem.dim} parameters a node, penalty {problem.penalty.name}, "
            f"lambda {problem.lam:g}",
        ),
        *table(header, rows),
        entry("Agreement", f"parameters differ by {_difference(outcomes):.2g} at most"),
    ]


def _solved_data(outcomes: list[Outcome]) -> dict[str, Any]:
    problem = outcomes[0].problem
    return {
        "nodes": problem.graph.n_nodes,
        "edges": problem.graph.n_edges,
        "dim": problem.dim,
        "lam": problem.lam,
        "difference": _difference(outcomes),
        "solvers": {
            outcome.solution.solver: {
                "seconds": outcome.solution.seconds,
                "value": outcome.solution.value,
                "certificate": certificate_data(outcome.certificate),
            }
            for outcome in outcomes
        },
    }


def _difference(outcomes: list[Outcome]) -> float:
    exact, fast = (outcome.solution.w for outcome in outcomes)
    return float(np.abs(exact - fast).max())


def _income_account(
    args: Namespace, problem: GTVProblem, features: list[str]
) -> tuple[list[str], dict[str, Any], bool]:
    """Return text, data, and whether both solutions are certified."""
    outcomes = _solve_both(args, problem)
    clusters = _clusters.find_clusters(outcomes[1].solution)
    report = verify.well_connected(problem.to_data(), clusters.labels)
    several = [c for c in report.clusters.values() if len(c.nodes) > 1]
    proved = sum(c.holds for c in several)
    title = "Income of the US states relative to their mean, 1929-2009: level and trend (log)"
    lines = [
        *_solved_lines(title, outcomes),
        entry("Clusters", str(len(clusters.members))),
        *clusters.lines(features),
        entry(
            "Theorem 2",
            f"{proved} of the {counted(len(several), 'cluster')} of several states "
            f"{'is' if proved == 1 else 'are'} proved well-connected; the theorem is sufficient, "
            "not necessary",
        ),
    ]
    data = {
        **_solved_data(outcomes),
        "clusters": clusters.data(),
        "well_connected": report.to_dict(witnesses=False),
    }
    return lines, data, all(outcome.certified for outcome in outcomes)


def _block_account(
    args: Namespace,
    problem: GTVProblem,
    partition: IntArray,
    truth: FloatArray,
) -> tuple[list[str], dict[str, Any], bool]:
    """Return text, data, and whether solutions and partition are proved."""
    outcomes = _solve_both(args, problem)
    solution = outcomes[1].solution
    found = solution.clusters()
    recovered = _same_partition(found, partition)
    error = float(np.abs(solution.w - truth).max())
    report = verify.well_connected(problem.to_data(), partition)
    margins = ", ".join(f"{c.margin:.4g}" for c in report.clusters.values())
    verdict = (
        "well-connected, so every solution is constant on them" if report.holds else "unproved"
    )
    title = (
        f"Stochastic block model: {' + '.join(map(str, SBM_SIZES))} nodes, {SBM_LABELLED:.0%} of "
        "them with data"
    )
    lines = [
        *_solved_lines(title, outcomes),
        entry(
            "Clusters",
            f"{int(found.max()) + 1} found, "
            f"{'the planted ones' if recovered else 'not the planted ones'}; "
            f"true parameters missed by {error:.2g} at most",
        ),
        entry("Theorem 2", f"planted clusters: {verdict} (margins {margins}, above 1 needed)"),
        entry("", f"holds for every lambda > {report.lam_min:.4g}"),
    ]
    data = {
        **_solved_data(outcomes),
        "recovered": recovered,
        "error": error,
        "well_connected": report.to_dict(witnesses=False),
    }
    done = report.holds and all(outcome.certified for outcome in outcomes)
    return lines, data, done


def _same_partition(a: IntArray, b: IntArray) -> bool:
    pairs = len(np.unique(np.column_stack([a, b]), axis=0))
    return bool(pairs == len(np.unique(a)) == len(np.unique(b)))
