"""The whole problem by Clarabel's interior-point method, called without CVXPY.

A few dozen iterations with a factorization each solve what first-order iterations take very long
for: features in raw units, whose curvatures differ by many orders of magnitude. The cost depends on
how the graph fills the factor, which Clarabel knows before it factors anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import clarabel
import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import Allowance
from gtvcvx.conic._form import Cone
from gtvcvx.conic._weak_duality import decided
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Limits, Proposal, Proved, Requirement
from gtvcvx.solvers.interior_point._losses import LOSS_KINDS, add_losses
from gtvcvx.solvers.interior_point._penalties import PENALTY_KINDS, add_penalty
from gtvcvx.solvers.interior_point._program import Program, Units
from gtvcvx.solvers.interior_point._proof import proved, rounding_of, written
from gtvcvx.solvers.interior_point._reach import within_flow
from gtvcvx.solvers.interior_point._units import choices_of_units
from gtvcvx.solvers.interior_point._written import add_written_losses, losses_written
from verify._interrupts import noticed

# What Clarabel ends with when its point is worth a check: the gap is computed afresh anyway.
USEFUL = (
    *("Solved", "AlmostSolved", "InsufficientProgress"),
    *("MaxIterations", "CallbackTerminated"),
)


@dataclass(frozen=True)
class InteriorPointSettings:
    """Accuracy, and for which sizes the method comes into question.

    Attributes
    ----------
    accuracy : float
        Clarabel aims at this share of the gap that is asked for: the bound of a flow that is
        repaired is that much worse, at most, in all but a few cases.
    least, most : float
        It aims at no less and no more than this. Least: its last steps are cheap, but rounding
        ends them.
    light : float
        What is added to the diagonal of the matrix that Clarabel factors, lightly regularized.
    most_iterations : int
        Of Clarabel; some dozens are the rule.
    fewer_iterations : int
        Of Clarabel, where another method waits for where it is stuck.
    most_coordinates : int
        Of all nodes. Beyond that the factor may not fit in memory, and its ordering alone takes
        long.
    most_rows : int
        Of data, which fill in no more than the block of their node.
    """

    accuracy: float = 1e-3
    least: float = 1e-11
    most: float = 1e-8
    light: float = 1e-12
    most_iterations: int = 150
    fewer_iterations: int = 60
    most_coordinates: int = 30_000
    most_rows: int = 200_000


DEFAULTS = InteriorPointSettings()


def losses_known(problem: GTVProblem) -> str | None:
    """Ask for losses that are known by their plain data."""
    known = all(term["kind"] in LOSS_KINDS for term in problem.losses.plain)
    return None if known else "losses that are known by their data, no CvxpyLoss"


def penalty_known(problem: GTVProblem) -> str | None:
    """Ask for a penalty that linear, quadratic and second-order cone constraints describe."""
    known = problem.penalty.to_data()["kind"] in PENALTY_KINDS
    return None if known else "a penalty 'l1', 'l2', 'linf', 'squared' or quadratic"


def losses_conic(problem: GTVProblem) -> str | None:
    """Ask for losses that are known by their plain data, or by CVXPY's rules."""
    if losses_known(problem) is None or losses_written(problem.losses):
        return None
    return "losses that are known by their data, or by CVXPY's rules"


def penalty_conic(problem: GTVProblem) -> str | None:
    """Ask for a penalty that a conic program describes."""
    penalty = problem.penalty
    known = penalty.to_data()["kind"] in {*PENALTY_KINDS, "pnorm"}
    known = known or penalty.written(problem.dim) is not None
    return None if known else "a norm or a quadratic as penalty, or one by CVXPY's rules"


def not_too_large(problem: GTVProblem) -> str | None:
    """Ask for a problem whose factor fits in memory, whatever the graph."""
    size, most = problem.graph.n_nodes * problem.dim, DEFAULTS.most_coordinates
    if size > most:
        return f"at most {most} coordinates, not {size}"
    rows, most = sum(len(term["node"]) for term in problem.losses.plain), DEFAULTS.most_rows
    return None if rows <= most else f"at most {most} rows of data, not {rows}"


class InteriorPoint:
    """Clarabel as a method of a few rounds: `run` solves the problem.

    The second round aims at the best accuracy there is, where the gap of the first is too large,
    and starts from its point. Units that differ by many orders of magnitude make Clarabel end too
    early, or late: other rounds have other units (`gtvcvx.solvers.interior_point._units`).

    Parameters
    ----------
    problem : GTVProblem
    rtol : float
        Relative gap that is asked for.
    whole : GTVProblem, optional
        The problem with all of its capacities, if these are within reach alone.
    first : int
        Which of the rounds is the first.
    settings : InteriorPointSettings

    Attributes
    ----------
    n_iter : int
        Iterations of Clarabel.
    finished : bool
    most_check : float
        What a check may take, see `gtvcvx._deadline.Allowance`: there may be another round.
    most_rounds : int
        It is finished when so many have begun, earlier ones of others counted.
    gives_way : bool
        Whether it is finished, too, by a round that Clarabel does not call solved.
    solved : tuple of ndarray, optional
        Point (N,), slacks and multipliers (M,) of the last round that Clarabel says it has solved.
    """

    stride = 1
    #: What it needs of a problem.
    requires: ClassVar[tuple[Requirement, ...]] = (not_too_large, penalty_conic, losses_conic)

    def __init__(
        self,
        problem: GTVProblem,
        rtol: float = 0.0,
        whole: GTVProblem | None = None,
        first: int = 0,
        settings: InteriorPointSettings = DEFAULTS,
    ) -> None:
        self._settings, self._rtol = settings, rtol
        self._goal = min(max(settings.accuracy * rtol, settings.least), settings.most)
        if first:
            self._goal = settings.least
        self._whole, self._written = problem if whole is None else whole, written(problem)
        self._pose(problem)
        self._centre = np.zeros(self._program.size)  # a point that is good already
        self._found: Proposal | None = None
        self._flow: FloatArray | None = None  # of the last round
        self._round = self._begun = first
        self.most_check = np.inf
        self.most_rounds, self.gives_way = len(self._choices), False
        self.solved: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self.n_iter = 0
        self.finished = False

    def _pose(self, problem: GTVProblem) -> None:
        """Write the program of a problem."""
        self._problem = problem
        shape = problem.graph.n_nodes, problem.dim
        self._program = Program(shape[0] * shape[1])
        self._terms = problem.losses.plain
        coordinates = np.arange(self.size).reshape(shape)
        self._read_slopes = add_losses(self._program, self._terms, coordinates)
        add_written_losses(self._program, problem.losses, coordinates)
        self._read_flow = add_penalty(self._program, problem)
        self._choices = choices_of_units(problem)

    def _narrow(self, flow: FloatArray) -> None:
        """Go on with less room where the flow uses next to none, in the units that are first then.

        In the middle of far too large capacities, flows that should cancel do so by few digits.
        """
        narrower, rounds = within_flow(self._problem, flow), len(self._choices)
        if narrower is not self._problem:
            self._pose(narrower)
            before = self._choices[:1] * self._round
            self._choices = [*before, *self._choices][:rounds]

    @cached_property
    def _first(self) -> clarabel.DefaultSolver:
        """Clarabel for the first round: its ordering says what a factorization will cost."""
        return self._solver(self._goal, self._units)

    @property
    def fill(self) -> tuple[int, int]:
        """Nonzeros of the matrix that Clarabel factors, and of its factor."""
        info = self._first.get_info().linsolver
        return info.nnzA, info.nnzL

    @property
    def cones(self) -> list[Cone]:
        """The cones of the program."""
        return self._program.cones

    @property
    def n_rounds(self) -> int:
        """Rounds that have begun."""
        return self._round

    @property
    def size(self) -> int:
        """Variables and rows of the program."""
        return self._program.size + self._program.n_rows

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def run(self, n_iter: int) -> None:
        """Solve the problem, within the limits of the run, until there is something to propose."""
        self._found = None
        while self._found is None and not self.finished:
            self._found = None if self._limits.expired else self._solve_once()
            over = self._limits.expired or self.n_iter >= self._limits.max_iter
            self.finished = over or self._round >= self.most_rounds

    def _solve_once(self) -> Proposal | None:
        """Solve the problem in the next units; return what was found, if it is useful."""
        if self._flow is not None:
            self._narrow(self._flow)
        units = self._units
        begun = self._round > self._begun
        solver = self._solver(self._goal, units) if begun else self._first
        answer = self._solved(solver)
        self._round += 1
        self.n_iter += max(answer.iterations, 1)
        goal, self._goal = self._goal, self._settings.least
        x, multipliers = units.point(np.array(answer.x)), units.multipliers(np.array(answer.z))
        if str(answer.status) == "Solved":
            self.solved = x, np.array(answer.s), multipliers
        elif self.gives_way:
            self.most_rounds = self._round
        useful = str(answer.status) in USEFUL
        if not (useful and np.isfinite(x).all() and np.isfinite(multipliers).all()):
            return None
        self._centre = x
        pair = self._pair(x, multipliers, goal)
        self._flow = pair.u
        return pair._replace(another=self._round < len(self._choices) and self._provable(pair))

    def _pair(self, x: FloatArray, multipliers: FloatArray, goal: float) -> Proposal:
        """Return the pair that a solution and its multipliers are."""
        shape = self._problem.graph.n_nodes, self._problem.dim
        w = x[: shape[0] * shape[1]].reshape(shape)
        flow, slopes = self._read_flow(w, multipliers), self._slopes(multipliers)
        pair = Proposal(w, flow, goal, slopes, Allowance(self.most_check))
        if not self._written:
            return pair
        w = self._whole.losses.project_domain(w)
        return pair._replace(w=w, proved=self._proved(w, x, multipliers))

    def _provable(self, pair: Proposal) -> bool:
        """Say whether multipliers will prove a pair like this: rounding does not prevent it.

        Of some cones it is not known whether multipliers are inside.
        """
        known = all(decided(cone) for cone in self.cones)
        if not self._written or (pair.proved is None and not known):
            return False
        value = self._whole.value(pair.w) if pair.proved is None else pair.proved.value
        needed = self._rtol * max(1.0, abs(value))
        return rounding_of(self._program.constants) <= needed

    def _proved(self, w: FloatArray, x: FloatArray, multipliers: FloatArray) -> Proved | None:
        """Return what the multipliers prove of w (n, d)."""
        program, constants = self._program.cone_program(), self._program.constants
        return proved(self._whole, program, constants, w, x, multipliers, self._rtol)

    @property
    def _units(self) -> Units:
        """Units of the next round."""
        columns, cost, others, _ = self._choices[self._round]
        scales = np.full(self._program.size, others)
        scales[: columns.size] = columns.ravel()
        return Units(scales, cost, self._centre)

    def _slopes(self, multipliers: FloatArray) -> FloatArray:
        """Return the slopes (N + N' K,) of all rows; NaN for derivatives at the point.

        Those of rows with K classes come last, sorted by node.
        """
        with_rows = [term for term in self._terms if term["kind"] in (*ROW_KINDS, MULTINOMIAL)]
        slopes, nodes, of_classes = [np.empty(0)], [], []
        for term, read in zip(with_rows, self._read_slopes, strict=True):
            found = np.full(len(term["node"]), np.nan) if read is None else read(multipliers)
            if term["kind"] == MULTINOMIAL:
                nodes.append(term["node"])
                of_classes.append(found)
            else:
                slopes.append(found)
        if of_classes:
            by_node = np.argsort(np.concatenate(nodes), kind="stable")
            slopes.append(np.concatenate(of_classes)[by_node].ravel())
        return np.concatenate(slopes)

    def _solver(self, goal: float, units: Units | None = None) -> clarabel.DefaultSolver:
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        own = self._settings
        settings.max_iter = own.fewer_iterations if self.gives_way else own.most_iterations
        settings.tol_gap_rel = settings.tol_feas = goal
        settings.tol_gap_abs = goal * (1.0 if units is None else min(units.cost, 1.0))
        if self._choices[self._round].light:
            settings.static_regularization_constant = self._settings.light
            settings.static_regularization_proportional = 0.0
        return self._program.solver(settings, units)

    def _solved(self, solver: clarabel.DefaultSolver) -> clarabel.DefaultSolution:
        """Solve; limits and Ctrl-C end it at the next iteration.

        Clarabel prints exceptions of its callback and goes on: a flag has to say that it should
        stop.
        """
        limits, most = self._limits, self._limits.max_iter - self.n_iter
        with noticed(raised=False) as pressed:
            solver.set_termination_callback(
                lambda info: bool(pressed) or limits.expired or info.iterations >= most
            )
            answer = solver.solve()
        if pressed:
            raise KeyboardInterrupt
        return answer

    def due(self) -> bool:
        """Say that what was found is worth a check."""
        return self._found is not None

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the solution; None if Clarabel has failed."""
        return self._found

    def learn(self, rel_gap: float) -> None:
        """Take no notice: the driver ends what is good enough."""

    def info(self) -> dict[str, Any]:
        """Return nothing beside the method's name."""
        return {}
