"""The default solver: Algorithm 1 over-relaxed, with restarts and an adaptive primal weight.

The iteration restarts, and its primal weight follows, as `_restarts` says; it is over-relaxed [3]_,
fused and compiled. Where columns of the data are in different units, every coordinate has its own
weight (`_coordinates`).

References
----------
.. [1] [GTV] Algorithm 1.
.. [2] T. Pock, A. Chambolle, "Diagonal preconditioning for first order primal-dual algorithms in
   convex optimization", ICCV 2011.
.. [3] L. Condat, "A primal-dual splitting method for convex optimization involving Lipschitzian,
   proximable and linear composite terms", JOTA 2013.
"""

from __future__ import annotations

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._terms import ROW_KINDS, SMOOTH_KINDS
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._incumbent import asked_shortly
from gtvcvx.solvers.driver._schedule import CHEAP, checked_ratio
from gtvcvx.solvers.primal_dual._coordinates import Coordinates, Weight, first_weight
from gtvcvx.solvers.primal_dual._restarts import Restarted
from gtvcvx.solvers.primal_dual._settings import DEFAULTS, PrimalDualSettings
from gtvcvx.solvers.primal_dual._state import State
from gtvcvx.solvers.primal_dual._whole import Whole


class PrimalDual(Restarted[State]):
    """Over-relaxed primal-dual iteration with restarts and an adaptive primal weight.

    Parameters
    ----------
    problem : GTVProblem
    warm_start : Solution, optional
        Start from its w, u and primal weight.
    settings : PrimalDualSettings
    weight : float or list of float, optional
        Primal weight to start with. Default: that of the warm start, or what the losses tell.
    """

    def __init__(
        self,
        problem: GTVProblem,
        warm_start: Solution | None = None,
        settings: PrimalDualSettings = DEFAULTS,
        weight: Weight | None = None,
    ) -> None:
        whole = Whole.of(problem)
        coordinates = Coordinates.of_parts(whole)[0]
        averaged = problem.graph.n_edges * problem.dim <= settings.averaged_size
        super().__init__(State(problem, coordinates, settings, averaged), settings)
        self._problem = problem
        kinds = {term["kind"] for term in problem.losses.plain}
        kinks = kinds & ({*ROW_KINDS, "l1"} - {*SMOOTH_KINDS})
        if kinks and asked_shortly(problem):
            # Gaps fall faster than residuals there, and cost little to know.
            self.checks = CHEAP
        self.warm = warm_start is not None
        self._detours = problem.losses.detours  # of others, before
        if weight is None and warm_start is not None:
            weight = warm_start.info.get("primal_weight")
        if weight is None:
            weight = first_weight(whole) if coordinates is None else 1.0
        self.state.weight = weight
        if warm_start is not None:
            self.w = problem.checked_w(warm_start.w, "warm_start.w")
            self.u = problem.checked_u(warm_start.u, "warm_start.u")
            self.gap_ratio = checked_ratio(warm_start.info.get("gap_ratio"))
        self._begin_here()

    @property
    def w(self) -> FloatArray:
        """The point (n, d)."""
        return self.state.w

    @w.setter
    def w(self, w: FloatArray) -> None:
        self.state.w = w

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self.state.u

    @u.setter
    def u(self, u: FloatArray) -> None:
        self.state.u = u

    def move_to(self, w: FloatArray, u: FloatArray) -> None:
        """Go on from another point, with the primal weight as it is."""
        self.w, self.u = w, u
        self._begin_here()

    @property
    def work(self) -> float:
        """Iterations so far, and those that would have taken as long as detours to the points."""
        if self.state.affine:
            return float(self.n_iter)
        return self.n_iter + self._problem.losses.detours - self._detours
