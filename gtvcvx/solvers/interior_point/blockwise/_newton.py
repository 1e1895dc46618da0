"""Mehrotra's predictor-corrector method for a GTV problem, with the equations in w alone.

The dual variables are the slopes of rows and the flow on edges, strictly inside their bounds; any w
is feasible. Slopes of smooth rows are derivatives at w, linear in every step, which is shortened
where that leads too far. What is missing on the way is balance: gradients, slopes and flow cancel
at each node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.block_cholesky._factor import BlockCholesky
from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point.blockwise._duals import Intervals, dot
from gtvcvx.solvers.interior_point.blockwise._edge_duals import edge_duals
from gtvcvx.solvers.interior_point.blockwise._node_terms import NodeTerms, rows_matrix
from gtvcvx.solvers.interior_point.blockwise._smooth_rows import safe_length


@dataclass(frozen=True)
class NewtonSettings:
    """Steps.

    Attributes
    ----------
    inside : float
        Share of the longest step that is taken at most.
    power : float
        mu falls by this power of what the predictor leaves, as usual.
    behind : float
        With smooth rows, which may find balance slowly, products add up to at least this share of
        what the imbalance may be wrong by.
    """

    inside: float = 0.99
    power: float = 3.0
    behind: float = 0.5


DEFAULTS = NewtonSettings()


class Newton:
    """A point near the central path, which moves on by an iteration at a time.

    Parameters
    ----------
    problem : GTVProblem
    terms : NodeTerms
        Its losses.
    plan : Plan
        Of its graph.
    settings : NewtonSettings

    Attributes
    ----------
    w : ndarray, shape (n, d)
    gap : float
        Value of w less that of the dual variables, if these were on balance.
    imbalance : float
        What that may be wrong by, since they are not.
    length : float
        Of the last step.
    """

    def __init__(
        self,
        problem: GTVProblem,
        terms: NodeTerms,
        plan: Plan,
        settings: NewtonSettings = DEFAULTS,
    ) -> None:
        self._problem, self._terms, self._settings = problem, terms, settings
        slopes, smooth, graph = terms.slopes, terms.smooth, problem.graph
        # Rows with bounded slopes come first, smooth ones after them.
        X, node = np.concatenate([slopes.X, smooth.X]), np.concatenate([slopes.node, smooth.node])
        self._bounded, self._curved = slice(len(slopes.b)), slice(len(slopes.b), None)
        self._targets = np.concatenate([slopes.b, np.zeros(len(smooth.node))])
        self._rows = rows_matrix(X, node, graph.n_nodes)
        self._columns = self._rows.T.tocsr()
        self._system = BlockCholesky(plan, graph.edges, node, X)
        self._slopes = Intervals(slopes.low, slopes.high, slopes.rate)
        self._flow = edge_duals(problem)
        self._degree = self._slopes.degree + self._flow.degree
        self.length = 1.0
        self._begin()

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self._flow.y

    @property
    def row_slopes(self) -> FloatArray:
        """Slopes (N,) of all rows of data, as proposals have them."""
        return self._terms.row_slopes(self._slopes.y)

    @property
    def finite(self) -> bool:
        """Whether nothing has overflowed."""
        return bool(np.isfinite(self.gap) and np.isfinite(self.imbalance))

    def value(self) -> float:
        """Return the objective at w."""
        problem, terms = self._problem, self._terms
        penalty = dot(problem.capacities, problem.penalty.value(self._jumps))
        rows = terms.slopes.value(self._residuals[self._bounded])
        rows += terms.smooth.value(self._residuals[self._curved]) + terms.classes.value(self.w)
        return terms.value(self.w) + rows + penalty

    def _begin(self) -> None:
        """Start from least squares, with mu such that slacks are as large as what they are for."""
        slopes, smooth = self._terms.slopes, self._terms.smooth
        capacities = self._problem.capacities
        half, scale = 0.5 * (slopes.high - slopes.low), self._terms.residual_scale()
        each, zero = np.eye(self._problem.dim), np.zeros(len(smooth.node))
        row_weights = 1.0 / (slopes.rate + scale / half)
        edge_weights = (capacities / scale)[:, None, None] * each
        curvatures = smooth.curvatures(zero)
        self.w = np.zeros_like(self._terms.q)
        self._factorize(np.concatenate([row_weights, curvatures]), edge_weights)
        down = np.concatenate([row_weights * slopes.b - self._slopes.y, -smooth.slopes(zero)])
        right = self._gather(down) - self._terms.q - self._terms.classes.gradient(self.w)
        step = self._system.solve(right)
        self._row_step, self._descent = self._rows @ step.ravel(), _product(right, step)
        self._residuals = np.zeros_like(self._row_step)
        self.w = self._safe_length(step, 1.0, curvatures) * step
        self._look()
        lengths = self._problem.penalty.value(self._jumps)
        products = dot(half, np.abs(self._residuals[self._bounded])) + dot(capacities, lengths)
        mu = products / (len(half) + len(capacities))
        # Without any residual or jump the point is a solution already, but for the others' sake.
        mu = mu if mu > 0.0 else float(np.mean(np.concatenate([half, capacities]))) * scale
        self._slopes.begin(self._residuals[self._bounded], mu)
        self._flow.begin(self._jumps, mu)
        self._balance()

    def _factorize(self, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Factorize; the Hessians of rows with several classes, at w, stay as they are."""
        P, classes = self._terms.P, self._terms.classes
        self._hessians = None if classes.empty else classes.hessians(self.w)
        P = P if self._hessians is None else P + self._hessians
        self._system.factorize(P, row_weights, edge_weights)

    def _safe_length(self, step: FloatArray, length: float, curvatures: FloatArray) -> float:
        """Return the length of the step of w, shorter where smooth rows say so."""
        images, change = self._residuals[self._curved], self._row_step[self._curved]
        of_classes = self._turn_of_classes(step)

        def turn(length: float) -> float:
            smooth = self._terms.smooth.turn(images, change, curvatures, length)
            return smooth + of_classes(length)

        return safe_length(turn, length, self._descent)

    def _turn_of_classes(self, step: FloatArray) -> Callable[[float], float]:
        """Return how much more the slope of rows with several classes changes than Hessians say."""
        classes = self._terms.classes
        if self._hessians is None:
            return lambda length: 0.0
        slopes = classes.gradient(self.w)
        bend = float(np.einsum("ni,nij,nj->", step, self._hessians, step))

        def turn(length: float) -> float:
            change = classes.gradient(self.w + length * step) - slopes
            return _product(step, change) - length * bend

        return turn

    def _gather(self, y: FloatArray) -> FloatArray:
        """Add up rows (N,) at their nodes."""
        found: FloatArray = (self._columns @ y).reshape(self._problem.graph.n_nodes, -1)
        return found

    def _look(self) -> None:
        """Take residuals and jumps at w."""
        self._residuals = self._rows @ self.w.ravel() - self._targets
        self._jumps = self._problem.differences(self.w)

    def _balance(self) -> None:
        """Take what is missing at each node."""
        smooth = self._terms.smooth.slopes(self._residuals[self._curved])
        self._missing = self._terms.gradient(self.w)
        if not self._terms.classes.empty:
            self._missing += self._terms.classes.gradient(self.w)
        self._missing += self._gather(np.concatenate([self._slopes.y, smooth]))
        self._missing += self._problem.graph.divergence @ self._flow.y
        self.gap = self._slopes.complementarity() + self._flow.complementarity()
        self.imbalance = float(np.sum(np.abs(self._missing * self.w)))

    def iterate(self) -> None:
        """Do one iteration."""
        slopes, flow, settings = self._slopes, self._flow, self._settings
        slopes.linearize(self._residuals[self._bounded])
        flow.linearize(self._jumps)
        images = self._residuals[self._curved]
        curvatures = self._terms.smooth.curvatures(images)
        self._factorize(np.concatenate([slopes.weights, curvatures]), flow.weights)
        self._step(0.0, corrected=False)
        left = 1.0 - min(1.0, self._longest())
        aim = left**settings.power * self.gap
        if len(images) or not self._terms.classes.empty:  # balance may take longer
            aim = max(aim, min(settings.behind * self.imbalance, self.gap))
        step = self._step(aim / max(self._degree, 1.0), corrected=True)
        length = min(1.0, settings.inside * self._longest())
        self.length = self._safe_length(step, length, curvatures)
        self.w = self.w + self.length * step
        slopes.move(self.length)
        flow.move(self.length)
        self._look()
        self._balance()

    def _step(self, mu: float, corrected: bool) -> FloatArray:
        """Return the step of w towards mu; the dual variables remember theirs."""
        slopes, flow = self._slopes.offset(mu, corrected), self._flow.offset(mu, corrected)
        slopes = np.concatenate([slopes, np.zeros(len(self._terms.smooth.node))])
        right = -self._missing - self._gather(slopes) - self._problem.graph.divergence @ flow
        step = self._system.solve(right)
        self._row_step, self._descent = self._rows @ step.ravel(), _product(right, step)
        self._slopes.step(self._row_step[self._bounded])
        self._flow.step(self._problem.differences(step))
        return step

    def _longest(self) -> float:
        return min(self._slopes.longest(), self._flow.longest())


def _product(x: FloatArray, y: FloatArray) -> float:
    return dot(x.ravel(), y.ravel())
