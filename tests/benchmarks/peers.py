"""The solvers that are compared, each behind one call: a problem and a task in, an outcome out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import external
import numpy as np
from admm import NetworkLassoADMM

from gtvcvx import GTVProblem, Progress

EPS_NAMES = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "SCS": ("eps_abs", "eps_rel"),
    "OSQP": ("eps_abs", "eps_rel"),
    "HIGHS": ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
}
LIMIT_NAMES = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}
# Their default caps on iterations stop SCS and OSQP long before the time limit does.
UNCAPPED = {"SCS": {"max_iters": 10**7}, "OSQP": {"max_iter": 10**7}}


@dataclass(frozen=True)
class Task:
    """What a peer is asked for."""

    target: float  # relative gap
    goal: float  # objective at which a peer that only watches its objective is stopped
    time_limit: float
    tolerance: float  # the peer's own


@dataclass
class Outcome:
    """What a peer did, in seconds of wall-clock time."""

    status: str
    w: np.ndarray | None = None  # (n, d)
    u: np.ndarray | None = None  # (m, d)
    seconds: float = np.nan  # in all, modelling and canonicalization included
    own_seconds: float = np.nan  # of the backend, by its own account
    n_iter: int = 0
    trace: list[tuple[float, float]] = field(default_factory=list)  # seconds, objective
    memory: float = np.nan  # peak of its process, MB


def _always(problem: GTVProblem) -> bool:
    return True


@dataclass(frozen=True)
class Peer:
    """A solver, what stops it, and where it applies.

    Stops by: "proof" (its own certified gap), "goal" (told when its objective is low enough, in
    its favour: it need not know) or "tolerance" (the loosest of its own that suffices, likewise).
    """

    name: str
    title: str
    stops_by: str
    solve: Callable[[GTVProblem, Task], Outcome]
    applies: Callable[[GTVProblem], bool] = _always
    default: bool = True


def _gtvcvx(problem: GTVProblem, task: Task, **options: Any) -> Outcome:
    start = time.perf_counter()
    s = problem.solve(rtol=task.target, time_limit=task.time_limit, verbose=False, **options)
    seconds = time.perf_counter() - start
    trace = [(record.seconds, record.value) for record in s.history]
    return Outcome(s.status, s.w, s.u, seconds, seconds, s.n_iter, trace)


def _algorithm_1(problem: GTVProblem, task: Task) -> Outcome:
    def stop(progress: Progress) -> bool:
        return progress.value <= task.goal

    return _gtvcvx(problem, task, solver="PDHG", max_iter=10**8, callback=stop)


def _admm(problem: GTVProblem, task: Task) -> Outcome:
    start = time.perf_counter()
    watch: list[float] = []

    def stop(value: float) -> bool:
        watch.append(time.perf_counter() - start)
        return value <= task.goal or watch[-1] > task.time_limit

    method = NetworkLassoADMM(problem)
    values = method.run(stop)
    status = "optimal" if values[-1] <= task.goal else "user_limit"
    trace = list(zip(watch, values, strict=True))
    return Outcome(status, method.w, None, watch[-1], watch[-1], method.n_iter, trace)


def primal_model(problem: GTVProblem) -> tuple[cp.Problem, Callable[[], np.ndarray | None]]:
    """Return the model as a CVXPY user writes it, and how to read w."""
    w = cp.Variable((problem.graph.n_nodes, problem.dim))
    loss, constraints = problem.losses.expression(w)
    jumps = problem.graph.incidence @ w
    variation = problem.penalty.weighted_expression(jumps, problem.graph.weights)
    return cp.Problem(cp.Minimize(loss + problem.lam * variation), constraints), lambda: w.value


def dual_model(problem: GTVProblem) -> tuple[cp.Problem, Callable[[], np.ndarray | None]]:
    """Return the network-flow problem; w are its potentials."""
    network = problem.dual()

    def potentials() -> np.ndarray | None:
        dual = network.conservation.dual_value
        return None if dual is None else -np.asarray(dual)

    return network.cvxpy(), potentials


def conic(solver: str, model: Callable = primal_model) -> Callable[[GTVProblem, Task], Outcome]:
    """Make a peer of a solver of CVXPY."""

    def solve(problem: GTVProblem, task: Task) -> Outcome:
        start = time.perf_counter()
        built, read = model(problem)
        options = dict.fromkeys(EPS_NAMES[solver], task.tolerance) | UNCAPPED.get(solver, {})
        options[LIMIT_NAMES.get(solver, "time_limit")] = task.time_limit
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": its w is checked anyway
                built.solve(solver=solver, **options)
        except (cp.SolverError, ValueError) as error:
            return Outcome(f"failed: {str(error)[:60]}", seconds=time.perf_counter() - start)
        seconds = time.perf_counter() - start
        stats = built.solver_stats
        own = sum(x or 0.0 for x in (stats.solve_time, stats.setup_time if solver == "SCS" else 0))
        w = read()
        return Outcome(str(built.status), w, None, seconds, own, int(stats.num_iters or 0))

    return solve


def _program(name: str) -> Callable[[GTVProblem, Task], Outcome]:
    """Make a peer of a program in an environment of its own."""

    def solve(problem: GTVProblem, task: Task) -> Outcome:
        w, seconds, memory = external.run(name, problem, task.tolerance, task.time_limit)
        status = "user_limit" if w is None else "done"
        return Outcome(status, w, None, seconds, seconds, memory=memory)

    return solve


def _is_qp(problem: GTVProblem) -> bool:
    return problem.penalty.name in ("l1", "linf", "squared")


def _peers() -> Iterator[Peer]:
    yield Peer("gtvcvx", "the default solver of this package", "proof", _gtvcvx)
    for name, applies in (("CLARABEL", _always), ("SCS", _always), ("OSQP", _is_qp)):
        yield Peer(name, f"CVXPY with {name}", "tolerance", conic(name), applies)
    for name, applies in (("CLARABEL", _always), ("OSQP", _is_qp)):
        title, solve = f"CVXPY with {name}, the dual", conic(name, dual_model)
        yield Peer(f"{name}:dual", title, "tolerance", solve, applies, default=False)
    title = "CVXPY with the QP method of HiGHS"
    yield Peer("HIGHS", title, "tolerance", conic("HIGHS"), _is_qp, default=False)
    yield Peer("PDHG", "Algorithm 1 of [GTV], this package", "goal", _algorithm_1)
    yield Peer("ADMM", "network-lasso ADMM (Hallac et al.), NumPy", "goal", _admm)
    titles = {
        "cut-pursuit": "pycut-pursuit (GPL)",
        "prox-tv": "prox-tv, chains (Condat's algorithm)",
        "CCMM": "CCMMPy, convex clustering (GPL)",
        "SSNAL": "PyClustrPath, convex clustering (PyTorch)",
    }
    for name, program in external.PROGRAMS.items():
        title = f"{titles[name]}, a program of its own, with --external"
        solve = _program(name)
        yield Peer(name, title, "tolerance", solve, program.applies, default=False)


PEERS = {peer.name: peer for peer in _peers()}
