"""The whole problem by Clarabel's interior-point method, called without CVXPY.

A few dozen iterations with a factorization each solve what first-order iterations take very long
for: features in raw units, whose curvatures differ by many orders of magnitude. The cost depends on
how the graph fills the factor, which Clarabel knows before it factors anything.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import clarabel
import numpy as np

from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Limits, Proposal, Requirement
from gtvcvx.solvers.interior_point._losses import LOSS_KINDS, add_losses
from gtvcvx.solvers.interior_point._penalties import PENALTY_KINDS, add_penalty
from gtvcvx.solvers.interior_point._program import Program

# What Clarabel ends with when its point is worth a check: the gap is computed afresh anyway.
USEFUL = ("Solved", "AlmostSolved", "InsufficientProgress", "MaxIterations")


@dataclass(frozen=True)
class InteriorPointSettings:
    """Accuracy, and for which sizes the method comes into question.

    Attributes
    ----------
    tolerance : float
        What Clarabel aims at. Its last steps are cheap, and bounds lose digits by repair.
    most_iterations : int
        Of Clarabel; some dozens are the rule.
    most_variables : int
        Coordinates and rows of data. Beyond that the factor may not fit in memory, and its
        ordering alone takes long.
    """

    tolerance: float = 1e-11
    most_iterations: int = 200
    most_variables: int = 30_000


DEFAULTS = InteriorPointSettings()


def losses_known(problem: GTVProblem) -> str | None:
    """Ask for losses that are known by their plain data."""
    known = all(term["kind"] in LOSS_KINDS for term in problem.losses.terms())
    return None if known else "losses that are known by their data, no CvxpyLoss"


def penalty_known(problem: GTVProblem) -> str | None:
    """Ask for a penalty that linear, quadratic and second-order cone constraints describe."""
    known = problem.penalty.to_data()["kind"] in PENALTY_KINDS
    return None if known else "a penalty 'l1', 'l2', 'linf', 'squared' or quadratic"


def not_too_large(problem: GTVProblem) -> str | None:
    """Ask for a problem whose factor fits in memory, whatever the graph."""
    most = DEFAULTS.most_variables
    size = problem.graph.n_nodes * problem.dim
    if size <= most:
        size += sum(len(term["node"]) for term in problem.losses.terms())
    return None if size <= most else f"at most {most} coordinates and rows of data, not {size}"


class InteriorPoint:
    """Clarabel as a method of one round: `run` solves the problem.

    Parameters
    ----------
    problem : GTVProblem
    settings : InteriorPointSettings

    Attributes
    ----------
    n_iter : int
        Iterations of Clarabel.
    finished : bool
    """

    stride = 1
    #: What it needs of a problem.
    requires: ClassVar[tuple[Requirement, ...]] = (not_too_large, penalty_known, losses_known)

    def __init__(self, problem: GTVProblem, settings: InteriorPointSettings = DEFAULTS) -> None:
        self._problem, self._settings = problem, settings
        self._program = Program(problem.graph.n_nodes * problem.dim)
        add_losses(self._program, problem.losses.terms(), problem.dim)
        self._read_flow = add_penalty(self._program, problem)
        self._found: Proposal | None = None
        self.n_iter = 0
        self.finished = False

    @cached_property
    def fill(self) -> tuple[int, int]:
        """Nonzeros of the matrix that Clarabel factors, and of its factor."""
        info = self._solver(np.inf, 1).get_info().linsolver
        return info.nnzA, info.nnzL

    @property
    def size(self) -> int:
        """Variables of the program."""
        return self._program.size

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def run(self, n_iter: int) -> None:
        """Solve the problem, within the limits of the run."""
        self.finished = True
        if self._limits.expired:
            return
        most = min(self._settings.most_iterations, self._limits.max_iter)
        solver = self._solver(max(self._limits.seconds_left, 1e-3), most)
        answer = _solved(solver)
        self.n_iter = max(answer.iterations, 1)
        shape = self._problem.graph.n_nodes, self._problem.dim
        x, multipliers = np.array(answer.x), np.array(answer.z)
        useful = str(answer.status) in USEFUL
        if useful and np.isfinite(x).all() and np.isfinite(multipliers).all():
            w = x[: shape[0] * shape[1]].reshape(shape)
            # Repaired by itself first: the driver's repair, near w, starts from there.
            u = self._problem.bounds.repair(self._read_flow(w, multipliers))
            self._found = Proposal(w, u, self._settings.tolerance)

    def _solver(self, seconds: float, iterations: int) -> clarabel.DefaultSolver:
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.time_limit, settings.max_iter = seconds, iterations
        goal = self._settings.tolerance
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = goal
        return self._program.solver(settings)

    def due(self) -> bool:
        """Say that nothing is worth a check before the end."""
        return False

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the solution; None if Clarabel has failed."""
        return self._found

    def learn(self, rel_gap: float) -> None:
        """Take no notice: it is over."""

    def info(self) -> dict[str, Any]:
        """Return nothing beside the method's name."""
        return {}


def _solved(solver: clarabel.DefaultSolver) -> clarabel.DefaultSolution:
    """Solve; Ctrl-C ends it at the next iteration.

    Clarabel prints exceptions of its callback and goes on: a flag has to say that it should stop.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        return solver.solve()
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        solver.set_termination_callback(lambda info: bool(pressed))
        answer = solver.solve()
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
    return answer
