"""Smooth losses by quadratic models: primal-dual iterations whose proximal maps are affine.

The losses are replaced by quadratic models at the current point, and the problem that this makes,
on the same graph, is iterated on until it is some digits better solved than at its start; then new
models are made (inexact proximal Newton, [1]_). Every iteration is compiled, and costs a small part
of one with exact proximal points; point, flow and primal weight go on from model to model. Models
that turn out to be too flat lead to shorter steps, and to steeper models (`BatchedLoss.model`).

References
----------
.. [1] J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite
   functions", SIAM J. Optim. 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.losses import StackedLoss
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Iteration, Limits, Proposal, Requirement
from gtvcvx.solvers.primal_dual._coordinates import Weight
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual


@dataclass(frozen=True)
class SecondOrderSettings:
    """When models are renewed, and when they are given up.

    Attributes
    ----------
    fewest : int
        Iterations on a model: the first say little, and a new model costs about ten.
    accuracy : float
        A model is solved when the residual is down to this share of that at its start. The next
        model's residual is larger again than what is left, until the models are nearly right.
    most, longest : int, float
        No model has more iterations than `most`, or than this share of the run: it may be hard to
        solve, and is only a model.
    enough : float
        A step t is short enough when the losses are above their tangents by at most so many times
        t times what the models are at the full step: below 2 the objective falls [1]_.
    shortest : float
        Where only shorter steps are short enough, the models are given up.
    progress, failures : float, int
        They are given up as well after so many models in a row that did not begin with this share
        of the least residual so far.
    exploded : float
        And where the residual has grown by this factor: rounding has taken over.
    margins, largest_margin : tuple of float, float
        Flows are proposed shorter by a share of the relative gap that is expected of them, or of
        rtol, and at most by so much: the bound loses about as much. Where all rows of a node are
        in their tails, its flow is at the boundary of what the losses' conjugates allow, and
        repairs leave it a little outside, where the gap is infinite. One share after the other is
        tried, so that what is lost by it cannot be what keeps the gap open.
    """

    fewest: int = 40
    accuracy: float = 0.1
    most: int = 1000
    longest: float = 0.5
    enough: float = 1.5
    shortest: float = 1e-3
    progress: float = 0.5
    failures: int = 12
    exploded: float = 1e6
    margins: tuple[float, ...] = (0.5, 0.05, 0.005)
    largest_margin: float = 1e-3


DEFAULTS = SecondOrderSettings()


def has_edges(problem: GTVProblem) -> str | None:
    """Ask for an edge: without one, nodes are minimized one by one."""
    return None if problem.graph.n_edges else "a graph with edges"


def models_known(problem: GTVProblem) -> str | None:
    """Ask for losses that have quadratic models and are not quadratic themselves."""
    losses = problem.losses
    if losses.is_quadratic:
        return "losses that are not quadratic"
    return None if losses.modelled else "smooth losses that are known by their data"


class SecondOrder(Iteration):
    """Primal-dual iterations on quadratic models of the losses.

    Where models make no progress, iterations go on with the losses' own proximal points.

    Parameters
    ----------
    problem : GTVProblem
    warm_start : Solution, optional
        Start from its w, u and primal weight.
    settings : SecondOrderSettings
    """

    #: What it needs of a problem.
    requires: ClassVar[tuple[Requirement, ...]] = (has_edges, models_known)

    def __init__(
        self,
        problem: GTVProblem,
        warm_start: Solution | None = None,
        settings: SecondOrderSettings = DEFAULTS,
    ) -> None:
        self._problem, self._settings = problem, settings
        self.warm = warm_start is not None
        self.n_iter = 0
        self._models = self._failures = 0
        self._least = self._residual = np.inf
        self._isolated = np.flatnonzero(problem.graph.degrees == 0)
        # Nodes without neighbours stay at minimizers of their own losses.
        some = len(self._isolated)
        self._resting = problem.losses.minimizer(problem.graph.n_nodes) if some else None
        self._losses: StackedLoss | None = None  # the models
        w = np.zeros((problem.graph.n_nodes, problem.dim))
        u, weight = np.zeros((problem.graph.n_edges, problem.dim)), 1.0
        if warm_start is not None:
            w = problem.checked_w(warm_start.w, "warm_start.w").copy()
            u = problem.checked_u(warm_start.u, "warm_start.u").copy()
            weight = warm_start.info.get("primal_weight", 1.0)
        self._renew(w, u, weight)

    def _renew(self, w: FloatArray, u: FloatArray, weight: Weight) -> None:
        """Make models at a point, and go on from there."""
        problem = self._problem
        if self._resting is not None:
            w[self._isolated] = self._resting[self._isolated]
        losses = problem.losses.model(w, self._losses)
        assert losses is not None, "only losses that have models are replaced by them"
        model = GTVProblem(problem.graph, losses, problem.penalty, problem.lam)
        inner = PrimalDual(model, weight=weight)
        inner.move_to(w, u)
        self._losses, self._inner = losses, inner
        self._w, self._u = w, u
        self._first = np.inf
        self._models += 1

    def _give_up(self) -> None:
        """Go on with the losses' own proximal points."""
        inner = PrimalDual(self._problem, weight=self._inner.weight)
        inner.move_to(self._w, self._u)
        self._losses, self._inner = None, inner

    @property
    def w(self) -> FloatArray:
        """The point (n, d)."""
        return self._inner.w

    @w.setter
    def w(self, w: FloatArray) -> None:
        self.move_to(w, self.u)

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self._inner.u

    @u.setter
    def u(self, u: FloatArray) -> None:
        self.move_to(self.w, u)

    @property
    def weight(self) -> Weight:
        """Primal weight, or that of each coordinate."""
        return self._inner.weight

    def move_to(self, w: FloatArray, u: FloatArray) -> None:
        """Go on from another point."""
        if self._losses is None:
            self._inner.move_to(w, u)
        else:
            self._renew(w.copy(), u.copy(), self.weight)

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations, and make the models that they call for."""
        end = self.n_iter + n_iter
        while self.n_iter < end:
            inner = self._inner
            steps = min(end - self.n_iter, self.stride - inner.n_iter % self.stride)
            inner.run(steps)
            self.n_iter += steps
            if inner.n_iter % self.stride == 0:
                self._look()

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as detours to the points."""
        return self.n_iter + self._inner.work - self._inner.n_iter

    def _look(self) -> None:
        """See how far the residual is down, and go on to other models if that is far enough."""
        settings, inner = self._settings, self._inner
        self._residual = inner.residual()
        if self._losses is None:
            return
        if inner.n_iter == self.stride:
            self._first = self._residual
        if not self._residual <= settings.exploded * self._first:
            self._give_up()
        elif inner.n_iter >= settings.fewest and (self._solved or inner.n_iter >= self._most):
            look()
            self._advance()

    @property
    def _solved(self) -> bool:
        """Whether the model is solved well enough."""
        return self._residual <= self._settings.accuracy * self._first

    @property
    def _most(self) -> float:
        """Most iterations on this model."""
        settings = self._settings
        return min(settings.most, max(settings.longest * self.n_iter, settings.fewest))

    def _advance(self) -> None:
        """Go to the models' solution, or part of the way, and make new models there."""
        settings, w, u = self._settings, self._inner.w.copy(), self._inner.u.copy()
        length = self._step_length(w)
        if self._first >= settings.progress * self._least:
            self._failures += 1
        else:
            self._failures = 0
        self._least = min(self._least, self._first)
        if length > 0.0:
            self._residual /= length
            self._renew(self._w + length * (w - self._w), u, self._inner.weight)
        if length == 0.0 or self._failures >= settings.failures:
            self._give_up()

    def _step_length(self, w: FloatArray) -> float:
        """Return the longest of the steps 1, 1/2, ... to w (n, d) that is short enough, or 0."""
        models, losses, settings = self._losses, self._problem.losses, self._settings
        assert models is not None, "steps are made with models"
        with np.errstate(over="ignore", invalid="ignore"):
            expected = float(np.sum(models.rise(w, self._w)))
            length = 1.0 if np.isfinite(expected) else 0.0
            while length >= settings.shortest:
                there = self._w + length * (w - self._w)
                rise = float(np.sum(losses.rise(there, self._w)))
                if rise <= settings.enough * length * expected:
                    return length
                length *= 0.5
        return 0.0

    def residual(self) -> float:
        """Length of the last step in the method's own metric, longer after a shortened step."""
        return self._residual if np.isfinite(self._residual) else self._inner.residual()

    def due(self) -> bool:
        """Say whether the current point is worth a check; between two models it never is."""
        due = self.schedule.due(self.n_iter, self.residual())
        return due and (self._losses is None or self._inner.n_iter == 0)

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Make the schedule of checks."""
        super().begin(limits, rel_gap)
        self._rtol, self._checks = limits.rtol, 0

    def proposal(self, final: bool = False) -> Proposal:
        """Return the current point, or the one with the models if its value is lower."""
        settings, value = self._settings, self._problem.value
        found = super().proposal(final)
        margin = settings.margins[self._checks % len(settings.margins)]
        margin *= max(found.expected_gap, self._rtol)
        found = found._replace(u=(1.0 - min(margin, settings.largest_margin)) * found.u)
        if self._losses is None or self._inner.n_iter == 0:
            return found
        return found if value(found.w) < value(self._w) else found._replace(w=self._w)

    def learn(self, rel_gap: float) -> None:
        """Take note of the gap of what was proposed."""
        super().learn(rel_gap)
        self._checks += 1

    def info(self) -> dict[str, Any]:
        """Return the last primal weight, and how many models there were."""
        return {"primal_weight": self.weight, "models": self._models}
