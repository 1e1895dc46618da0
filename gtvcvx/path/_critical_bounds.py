r"""Lower and upper bounds of lambda_max, from directions and from flows.

Let w_bar be the consensus. A direction y and a flow u with s_i = -(D^T u)_i in dL_i(w_bar_i) give

.. math:: -L'(\bar w; y) / \sum_e A_e \phi((D y)_e) \le \lambda_{max} \le \max_e \|u_e\|_* / A_e,

the left side over each component alone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.duality._electrical import ElectricalRouting
from gtvcvx.losses import PointLoss
from gtvcvx.path._consensus import Components
from gtvcvx.problem import GTVProblem

EPS = float(np.finfo(np.float64).eps)
# Gradients at the consensus below this share of those at zero are rounding.
NO_GRADIENT = 1e-11
# Shares of the demands that the first potentials, rough flows, and the flow of an upper bound may
# leave unrouted.
FIRST, ROUGH, EXACT = 0.1, 1e-3, 0.0
# Room that the flow of an upper bound has in its capacities, so that rounding cannot violate them.
MARGIN = 1e-10
# Without gradients: the largest relative gap of w_bar that counts as optimal ...
OPTIMAL_GAP = 1e-8
# ... and the shares of a direction over which slopes are taken.
SHARES = (1.0, 1e-2, 1e-4)


class CriticalBounds(Protocol):
    """Best bounds so far, in units of the model, whose solutions improve them.

    Attributes
    ----------
    model : GTVProblem
        A problem with the same lambda_max, but for the unit.
    unit : float
        What lambda = 1 of the model is in the problem.
    least_gap : float
        Solutions of the model with a smaller relative gap teach nothing more.
    lower, upper : float
    flow : ndarray, shape (m, d)
        That of the upper bound.
    """

    model: GTVProblem
    unit: float
    least_gap: float
    lower: float
    upper: float
    flow: FloatArray

    def improve(self, w: FloatArray, u: FloatArray, lam: float, goal: float) -> None:
        """Learn from a point w (n, d) and a flow u (m, d) that is feasible for the model.

        The flow is only looked at closely if it may bring the upper bound within ``goal`` times
        the lower one.
        """


class GradientBounds:
    """Bounds for smooth losses, from their gradients g_i at the consensus.

    The model's losses are ||y_i + g_i / 2||^2, with g scaled to length one. They have the same
    gradients at their consensus y = 0, so the same flows prove it optimal; and they are strongly
    convex at every node, unlabelled ones included. Flows are corrected to D^T u = -g.
    """

    least_gap = 1e-13

    def __init__(self, problem: GTVProblem, components: Components, w: FloatArray) -> None:
        self._components, self._graph = components, problem.graph
        self.lower = self.upper = 0.0
        self.flow = np.zeros((problem.graph.n_edges, problem.dim))
        gradient = components.centred(problem.losses.gradient(w))
        size = np.abs(problem.losses.gradient(np.zeros_like(w)))
        largest, reference = (_largest(components, x) for x in (np.abs(gradient), size))
        gradient[(largest <= NO_GRADIENT * reference)[components.of]] = 0.0
        self.unit = _norm(gradient)
        vanishes = self.unit == 0.0 or not problem.graph.n_edges
        self._gradient = gradient / (1.0 if vanishes else self.unit)
        losses = PointLoss.stack(-0.5 * self._gradient)
        self.model = GTVProblem(problem.graph, losses, problem.penalty, 1.0)
        if not vanishes:
            self.upper = np.inf
            self._routing = ElectricalRouting(problem.graph)
            _, potentials = self._routing(-self._gradient, FIRST)
            self._raise_lower(potentials)

    def improve(self, w: FloatArray, u: FloatArray, lam: float, goal: float) -> None:
        """Learn from a point and a flow; see `CriticalBounds`."""
        self._raise_lower(w)
        if self.lower >= lam or not u.any():
            return  # the flow keeps to lam, which is not enough; or there is none yet
        rest = -self._gradient - self._graph.divergence @ u
        rough, _ = self._routing(rest, ROUGH)
        if self._congestion(u + rough) > (1.0 + 0.5 * ROUGH) * goal * self.lower:
            return
        rest = rest - self._graph.divergence @ rough
        u = u + rough + self._routing(rest, EXACT, _norm(u))[0]
        congestion = (1.0 + MARGIN) * self._congestion(u)
        if congestion < self.upper:
            self.upper, self.flow = congestion, u

    def _congestion(self, u: FloatArray) -> float:
        return float((self.model.penalty.dual_norm(u) / self._graph.weights).max())

    def _raise_lower(self, y: FloatArray) -> None:
        work = -(self._components.sums @ np.sum(self._gradient * y, axis=1))
        self.lower = max(self.lower, _best_ratio(work, _variation(self.model, self._components, y)))


class ValueBounds:
    """Bounds for any losses, from their values alone; the model is the problem itself.

    By convexity -L'(w_bar; y) >= (L(w_bar) - L(w_bar + t y)) / t for every t > 0. A flow proves
    w_bar optimal if its duality gap is at most 1e-8, relative to max(1, |value|).
    """

    least_gap = 1e-10
    unit = 1.0

    def __init__(self, problem: GTVProblem, components: Components, w: FloatArray) -> None:
        self._components, self._w = components, w
        self.model = problem
        self.flow = np.zeros((problem.graph.n_edges, problem.dim))
        self.lower, self.upper = 0.0, np.inf
        self._losses = problem.losses.value(w)
        best = problem.losses.minimizer(problem.graph.n_nodes)
        self._raise_lower(best - w)
        if self._proves(self.flow, problem):
            self.upper = 0.0

    def improve(self, w: FloatArray, u: FloatArray, lam: float, goal: float) -> None:
        """Learn from a point and a flow; see `CriticalBounds`."""
        self._raise_lower(w - self._w)
        if lam <= min(goal * self.lower, self.upper) and self._proves(u, self.model.with_lam(lam)):
            self.upper, self.flow = lam, u

    def _raise_lower(self, y: FloatArray) -> None:
        variation = _variation(self.model, self._components, y)
        for share in SHARES:
            losses = self.model.losses.value(self._w + share * y)
            rounding = 8.0 * EPS * (np.abs(self._losses) + np.abs(losses))
            fall = self._components.sums @ (self._losses - losses - rounding)
            self.lower = max(self.lower, _best_ratio(fall / share, variation))

    def _proves(self, u: FloatArray, problem: GTVProblem) -> bool:
        size = max(1.0, abs(float(np.sum(self._losses))))
        return problem.bounds.gap_of(self._w, u).total <= OPTIMAL_GAP * size


def _largest(components: Components, x: FloatArray) -> FloatArray:
    """Largest entry of x (n, d) over each component, (k,), for x >= 0."""
    found = np.zeros(components.count)
    np.maximum.at(found, components.of, x.max(axis=1))
    return found


def _variation(problem: GTVProblem, components: Components, y: FloatArray) -> FloatArray:
    """Total variation sum_e A_e phi((D y)_e) over each component, (k,)."""
    edges = problem.graph.weights * problem.penalty.value(problem.differences(y))
    owner = components.of[problem.graph.edges[:, 0]]
    return np.asarray(np.bincount(owner, edges, components.count), dtype=np.float64)


def _best_ratio(above: FloatArray, below: FloatArray) -> float:
    ratio = np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)
    return float(np.nanmax(ratio, initial=0.0))


def _norm(x: FloatArray) -> float:
    """Frobenius norm without BLAS, whose threads stall on a busy machine."""
    return float(np.sqrt(np.sum(x * x)))
