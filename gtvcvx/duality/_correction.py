"""Corrections of nearly feasible flows that come with the multipliers of all rows.

An interior-point method knows a flow and multipliers inside all of their bounds that miss only the
balance of the nodes, and that by little:

    (D^T u)_i + X_i^T a_i + t_i + nu_i 1 = 0,

with a the multipliers of the rows, t those of the coordinates' own terms and nu those of sums. The
least change that makes up the balance, in a metric that leaves alone what is close to an end
(`gtvcvx.duality._room`), takes one sparse factorization:

    delta = -W B^T x,   (B W B^T) x = balance,   B = (D^T, X^T, I, 1).

What leaves its bounds is put back and stays there in the next step. In units of data that differ
by many orders of magnitude this keeps a bound that projections of the flow alone would lose. Where
balance among fused nodes is rounding in such a factor, they are taken together
(`gtvcvx.duality._loose_clusters`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._norms import EPS
from gtvcvx._pieces import rows_at_once
from gtvcvx.duality._class_multipliers import ClassMultipliers
from gtvcvx.duality._dual_points import Certain, DualPoint, FeasiblePoint, attached
from gtvcvx.duality._judged import Aim, Found, Judged, better
from gtvcvx.duality._loose_clusters import LooseClusters
from gtvcvx.duality._room import (
    WEIGHTED_PENALTIES,
    Intervals,
    curvatures,
    edge_weights,
)
from gtvcvx.duality._settings import CORRECTION
from gtvcvx.duality._systems import BalanceRows, Metric, Systems
from gtvcvx.graph import EmpiricalGraph, differences
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._doubt import SUM_ULPS
from gtvcvx.losses.batched._terms import FIELDS, MULTINOMIAL, ROW_KINDS, Term
from gtvcvx.losses.batched.composite._absorption import Absorption, doubts
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.losses.node import _batch as compiled
from gtvcvx.losses.node._conjugate import coordinate_gap
from gtvcvx.losses.node._scalar import row_slope
from gtvcvx.penalties import Penalty


def correctable(terms: list[Term], penalty: Penalty, shape: tuple[int, int], m: int) -> bool:
    """Say whether losses (n, d) are known by their rows, and blocks are not too many.

    Whether their factors are too large is seen when they are planned.
    """
    n, d = shape
    known = all(term["kind"] in FIELDS for term in terms)
    small = (n + m) * d * d <= CORRECTION.most_entries
    return known and small and penalty.to_data()["kind"] in WEIGHTED_PENALTIES


def row_order(terms: list[Term]) -> IntArray:
    """Return which rows of the terms, one after the other, come first if sorted by node."""
    owners = [term["node"] for term in terms if term["kind"] in ROW_KINDS]
    return np.argsort(np.concatenate([np.empty(0, np.int64), *owners]), kind="stable")


class Correction:
    """Corrections for one problem that is `correctable`.

    Parameters
    ----------
    graph, losses, penalty
        Of the problem.
    capacities : ndarray, shape (m,)
        lambda A_e.
    """

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: StackedLoss,
        penalty: Penalty,
        capacities: FloatArray,
    ) -> None:
        self._graph, self._losses = graph, losses
        self._penalty, self._capacities = penalty, capacities
        self._shape = n, d = graph.n_nodes, losses.dim
        self._allowed = penalty.span_projector(d)
        terms = losses.plain
        self._order = row_order(terms)
        self._parts = parts = Parts.of(terms, n, d)
        self._operator = parts.operator
        self._transposed = self._operator.T.tocsr()
        self._classes = ClassMultipliers(
            ClassRows([term for term in terms if term["kind"] == MULTINOMIAL], n, d)
        )
        self._rows = Intervals(parts.rows["low"], parts.rows["high"], parts.rows["c"])
        self._summed = ~np.isnan(parts.totals)
        self._curved = parts.coordinates["mu"] > 0.0
        self._low, self._high = parts.intervals
        self._touched = self._low < self._high
        self._kinked = bool((parts.coordinates["kappa"] > 0.0).any())

    def corrected(
        self, w: FloatArray, u: FloatArray, a: FloatArray, enough: float = 0.0
    ) -> Found | None:
        """Return a feasible dual point near a flow u (m, d) and multipliers, and the gap of w.

        Parameters
        ----------
        w : ndarray, shape (n, d)
            Point near which changes are to cost little; inside all constraints.
        u : ndarray, shape (m, d)
        a : ndarray, shape (N + N' K,)
            Multipliers of the rows of ``losses.terms()``, one term after the other, and after them
            those of rows with K classes, sorted by node; NaN stands for the derivative at w.
        enough : float
            A gap that is no larger is not made smaller.

        Returns
        -------
        None where the balance cannot be made up.
        """
        a, slopes = a[: len(self._order)][self._order], a[len(self._order) :]
        unknown = np.isnan(a)
        if unknown.any():
            a = np.where(unknown, row_slope(self._parts.rows, self._operator @ w.ravel()), a)
        if not (np.isfinite(a).all() and not np.isinf(slopes).any()):
            return None
        point = self._started(w, u, a, self._classes.chances(slopes, w))
        aim = Aim(self._size(point), enough)
        found = self._attached(w, point, aim)
        if found is not None:
            return found
        found, done = self._steps(w, point, aim, None, CORRECTION.first_room)
        if aim.reached(found):
            return found
        if not self._penalty.is_norm or (done and not self._lost(w, point, found)):
            return found
        slack = self._capacities - self._penalty.dual_norm(point.u)
        room = np.where(slack > CORRECTION.loose * self._capacities, slack, 0.0)
        other = None
        for _ in range(CORRECTION.forests):
            clusters = LooseClusters(self._graph, self._balance_rows, room)
            # Most of it is made up for inside of them, so that the rest stays close to its ends.
            other, _ = self._steps(w, point, aim, clusters, CORRECTION.least_room)
            if other is not None or not clusters.overloaded.any():
                break
            room[clusters.overloaded] = 0.0
        return better(found, other)

    def _attached(self, w: FloatArray, point: DualPoint, aim: Aim) -> Found | None:
        """Return what a point leads to if coordinates' own terms take none of what is missing.

        None where they have not taken it, or nothing else does.
        """
        own = self._of_coordinates(w, point)
        before = self._balanced_gap(w, point).parts if own > 0.0 else 0.0
        if not own > CORRECTION.taken * (before - own):
            return None
        t = attached(self._parts.coordinates, w, point.t)
        found, _ = self._steps(w, point._replace(t=t), aim, None, CORRECTION.first_room)
        return found if found is not None and found[1].total < before else None

    def _of_coordinates(self, w: FloatArray, point: DualPoint) -> float:
        """Return what of the gap at w (n, d) is that of the coordinates' own terms."""
        if not self._kinked:
            return 0.0
        return float(np.sum(coordinate_gap(self._parts.coordinates, w, point.t)))

    def _lost(self, w: FloatArray, point: DualPoint, found: Found | None) -> bool:
        """Say whether making up the balance of a point has cost much more than its own gap."""
        if found is None:
            return True
        if found[0].point is point:  # it was on balance
            return False
        before = self._balanced_gap(w, point).parts
        return found[1].total > CORRECTION.lost * before

    def _steps(
        self,
        w: FloatArray,
        point: DualPoint,
        aim: Aim,
        clusters: LooseClusters | None,
        first_room: float,
    ) -> tuple[Found | None, bool]:
        """Return what steps from a point lead to, and whether more of them are no use."""
        now = self._judged(w, point, aim)
        best = now.found
        if now.done:
            return best, True
        barrier, systems = self._barrier(w, point), clusters or self._systems
        for k in range(CORRECTION.rounds if systems.planned else 0):
            look()
            room = first_room if k == 0 else CORRECTION.least_room
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
                change = self._change(point, self._metric(point, barrier, room), systems)
            if change is None:
                break
            point = self._inside(point.plus(change))
            sent = systems.sent(self._balance(point))
            if sent is not None:
                point = self._inside(point._replace(u=point.u + sent))
            before, now = now, self._judged(w, point, aim)
            best = now.found if now.done else better(best, now.found)
            # The first step leaves room where later ones do not.
            stuck = k > 0 and now.little_less_than(before)
            if now.done or (stuck and not (aim.asks_more_than(best) and systems.sharpen())):
                break
        return best, now.done

    def _judged(self, w: FloatArray, point: DualPoint, aim: Aim) -> Judged:
        """Return the gap where the balance is made up, and whether more of that is no use."""
        size = aim.size
        missing = np.abs(self._balance(point))
        # Hardly anything may flow at some nodes: what is rounding at others is no leak there.
        rounding = CORRECTION.rounding * size.max(axis=0, initial=0.0)
        allowed = CORRECTION.leak * size + rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            left = float(np.max(np.where(missing > 0.0, missing / allowed, 0.0), initial=0.0))
        if not (missing <= allowed).all():
            return Judged(None, False, left)
        feasible = FeasiblePoint(point, self._largest(w))
        gap = self.gap(w, feasible)
        done = gap.missing <= CORRECTION.negligible * gap.parts or gap.total <= aim.enough
        if (missing <= CORRECTION.rounding * size).all():
            found = feasible, gap
            return Judged(found, done or not aim.asks_more_than(found), left)
        # More than rounding pairs with the solution, which w tells of only if it is close: the less
        # is missing, the less close it need be.
        near = min(CORRECTION.near / left, CORRECTION.nearest)
        if not gap.parts + gap.missing <= near * self._at_zero:
            return Judged(None, False, left)
        return Judged((feasible, gap), done, left)

    def gap(self, w: FloatArray, feasible: FeasiblePoint) -> Certain:
        """Return the gap of w (n, d) against a feasible dual point."""
        found = self._balanced_gap(w, feasible.point)
        little = CORRECTION.doubtful * found.parts
        missing = self.missing(w, feasible, self.reach(w, feasible), little)
        return found._replace(missing=missing)

    def _balanced_gap(self, w: FloatArray, point: DualPoint) -> Certain:
        """Return the gap of w (n, d) as if a dual point missed nothing."""
        parts, u = self._parts, point.u
        w = np.ascontiguousarray(w)
        node = compiled.gaps(
            parts.X, parts.centred, parts.indptr, parts.coordinates, w, point.a, point.t
        )
        node = np.where(parts.sums_right(w), node, np.inf)
        if len(self._classes):
            node += self._classes.gaps(w, point.p)
        edge = self._penalty.fenchel_gap(differences(self._graph.edges, w), u, self._capacities)
        return Certain(node, edge, 0.0)

    def reach(self, w: FloatArray, feasible: FeasiblePoint) -> FloatArray:
        """Return how large w (n, d) and the point found with a dual point are, (n, d)."""
        return np.maximum(self._largest(w), feasible.largest)

    def _largest(self, w: FloatArray) -> FloatArray:
        """Return the largest sizes of w (n, d) in the component of each node.

        Components are problems of their own: a lonely node whose solution is large, or free, tells
        nothing of the others.
        """
        component = self._graph.components
        found = np.zeros((int(component.max()) + 1, w.shape[1]))
        np.maximum.at(found, component, np.abs(w))
        return found[component]

    def missing(
        self, w: FloatArray, feasible: FeasiblePoint, reach: FloatArray, little: float
    ) -> float:
        """Return what it costs that a dual point misses the balance.

        Where no loss tells, solutions are no larger than reach (n, d). What is missing is told more
        precisely where it costs more than a little.
        """
        point = feasible.point
        doubt = self._doubts(point)
        cost = self._leaking(w, point, -self._balance(point), doubt, reach)
        if cost <= little:
            return cost
        leak, doubt = self._precise(point, doubt)
        return min(cost, self._leaking(w, point, leak, doubt, reach))

    def _doubts(self, point: DualPoint) -> FloatArray:
        """Return what rounding makes of what adds up at the nodes, (n, d)."""
        s = self._graph.divergence @ point.u
        around = doubts(self._parts, s, point.a, np.abs(point.t) + np.abs(point.nu)[:, None])
        around += SUM_ULPS * EPS * (abs(self._graph.divergence) @ np.abs(point.u))
        return around + self._classes.doubts(point.p) if len(self._classes) else around

    def _precise(self, point: DualPoint, doubt: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return leaks (n, d) from sums in extended precision, and how unsure these are.

        Where the machine has no wider numbers, that is no less than before.
        """
        leak = -self._wide_balance(point)
        share = float(np.finfo(np.longdouble).eps) / EPS
        return leak, np.asarray(share * doubt + EPS * np.abs(leak))

    def _wide_balance(self, point: DualPoint) -> FloatArray:
        """Return what adds up at the nodes, (n, d), from sums in extended precision."""
        wide = np.longdouble
        flow = self._graph.divergence.astype(wide) @ point.u.astype(wide)
        rows = (self._transposed.astype(wide) @ point.a.astype(wide)).reshape(self._shape)
        total = flow + rows + point.t + point.nu[:, None].astype(wide)
        if len(self._classes):
            total = total + self._classes.pulled(point.p.astype(wide))
        return np.asarray(total, dtype=np.float64)

    def _leaking(
        self,
        w: FloatArray,
        point: DualPoint,
        leak: FloatArray,
        doubt: FloatArray,
        reach: FloatArray,
    ) -> float:
        """Return what leaks (n, d), known up to a doubt (n, d), cost at w (n, d)."""
        own = 0.0
        if len(self._classes):
            absorbed = self._classes.absorbed(w, point.p, leak, doubt, reach)
            leak, doubt = absorbed.leak, absorbed.doubt
            own = float(np.sum(absorbed.node)) + absorbed.rest
        cost = self._absorption.cost(w, point.a, point.t, leak, doubt, reach)
        return own + cost.total(self._level(w) if cost.share > 0.0 else 0.0)

    def _level(self, w: FloatArray) -> float:
        """Return how far the objective is above its value at the flow zero."""
        edge = self._penalty.value(differences(self._graph.edges, w)) * self._capacities
        return float(np.sum(self._losses.loose_gap(w)) + np.sum(edge))

    @cached_property
    def _absorption(self) -> Absorption:
        return Absorption(self._parts)

    def _started(self, w: FloatArray, u: FloatArray, a: FloatArray, p: FloatArray) -> DualPoint:
        """Return a dual point inside all bounds."""
        a = self._rows.inside(a)
        rest = -(self._graph.divergence @ u) - self._of_rows(a, p)
        # The multiplier of a sum is what is left where coordinates are not at zero.
        total = np.where(self._summed, self._parts.totals, 1.0)
        weight = (
            np.where(self._summed[:, None], w, 0.0) / np.where(total == 0.0, 1.0, total)[:, None]
        )
        nu = np.sum(weight * rest, axis=1)
        return self._inside(DualPoint(u, a, rest - nu[:, None], nu, p))

    def _inside(self, point: DualPoint) -> DualPoint:
        """Put back what has left its bounds."""
        u = point.u
        if self._penalty.is_norm and len(u):
            within = (1.0 - 4.0 * EPS) * self._capacities
            u = self._penalty.project_domain(u, within)
        elif self._allowed is not None:
            u = u @ self._allowed
        t = np.where(self._touched, np.clip(point.t, self._low, self._high), 0.0)
        nu, p = np.where(self._summed, point.nu, 0.0), point.p
        if len(self._classes):
            p = self._classes.inside(p)
        return DualPoint(u, self._rows.inside(point.a), t, nu, p)

    def _balance(self, point: DualPoint) -> FloatArray:
        """Return what adds up at the nodes, (n, d): zero if the point is feasible."""
        if len(self._classes):
            return self._wide_balance(point)
        rows = self._of_rows(point.a, point.p)
        total: FloatArray = self._graph.divergence @ point.u + rows + point.t + point.nu[:, None]
        return total

    def _of_rows(self, a: FloatArray, p: FloatArray) -> FloatArray:
        """Return what multipliers of rows and chances add up to at the nodes, (n, d)."""
        found: FloatArray = (self._transposed @ a).reshape(self._shape)
        return found + self._classes.pulled(p) if len(self._classes) else found

    def _size(self, point: DualPoint) -> FloatArray:
        """Size (n, d) of what adds up at the nodes; bounded multipliers count as intervals."""
        span = np.maximum(np.abs(point.a), self._rows.span)
        rows = (abs(self._transposed) @ span).reshape(self._shape)
        if len(self._classes):
            rows += self._classes.sizes_pulled()
        flow = abs(self._graph.divergence) @ np.abs(point.u)
        return np.asarray(flow + rows + np.abs(point.t) + np.abs(point.nu)[:, None])

    def _barrier(self, w: FloatArray, point: DualPoint) -> float:
        """Return the weight of rooms beside curvatures."""
        count = point.u.size + point.a.size + point.p.size + 1
        return max(CORRECTION.barrier * abs(self._value(w)) / count, CORRECTION.least_barrier)

    def _value(self, w: FloatArray) -> float:
        return float(np.sum(self._losses.value(w)))

    @cached_property
    def _at_zero(self) -> float:
        """Size of the losses at zero, or at what is allowed close to it."""
        return abs(self._value(self._losses.project_domain(np.zeros(self._shape))))

    def _metric(self, point: DualPoint, barrier: float, least: float) -> Metric:
        c = self._parts.coordinates
        edges = edge_weights(self._penalty, point.u, self._limits(point), barrier, least)
        rows = self._rows.weights(point.a, curvatures(self._parts.rows, point.a), barrier, least)
        largest = np.abs(point.t).max(initial=0.0)
        own = Intervals(self._low, self._high, np.abs(point.t) + 1e-3 * largest)
        curvature = np.where(self._curved, c["mu"], np.inf)
        t = np.where(self._touched, own.weights(point.t, curvature, barrier, least), 0.0)
        reach = np.abs(point.nu) + np.abs(point.t).max(axis=1, initial=0.0)
        nu = np.where(self._summed, reach**2 / barrier, 0.0)
        chances, diagonal = point.p, t.copy()
        if len(self._classes):
            chances = self._classes.weights(point.p, barrier, least)
            diagonal += self._classes.squares(chances)
        np.add.at(diagonal, self._parts.owner, rows[:, None] * self._parts.X**2)
        return Metric(self._held(edges, diagonal), rows, t, nu, chances)

    def _held(self, edges: FloatArray, own: FloatArray) -> FloatArray:
        """Return blocks W (m, d, d) of edges that are not too loose beside rows and coordinates.

        That is beside their diagonals (n, d).
        What clusters of nodes have to balance among themselves would be rounding in the factor.
        """
        most = CORRECTION.loosest * own.max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            least = np.where(most > 0.0, 1.0 / most, 0.0)
        held = np.empty_like(edges)
        for at in rows_at_once(len(edges), least.size**2):
            blocks = np.linalg.solve(np.eye(len(most)) + edges[at] * least, edges[at])
            held[at] = 0.5 * (blocks + blocks.transpose(0, 2, 1))
        return held

    def _limits(self, point: DualPoint) -> FloatArray:
        """Return the capacities, or less where that is more than whatever can flow.

        Beside far too large ones what the rows take would be rounding.
        """
        if not self._penalty.is_norm:
            return self._capacities
        reach = float(self._size(point).max(initial=0.0))
        return np.minimum(self._capacities, self._penalty.dual_norm(point.u) + reach)

    def _change(
        self, point: DualPoint, metric: Metric, systems: Systems | LooseClusters
    ) -> DualPoint | None:
        """Return the least change that makes up the balance; None if rounding prevents it."""
        systems.factorize(metric)
        change = DualPoint(*(np.zeros_like(x) for x in point))
        for _ in range(1 + CORRECTION.refinements):
            x = systems.solve(self._balance(point.plus(change)))
            if not np.isfinite(x).all():
                return None
            change = change.plus(self._response(x, metric))
        return change if all(np.isfinite(part).all() for part in change) else None

    @cached_property
    def _systems(self) -> Systems:
        return Systems(self._graph, self._parts, self._penalty, self._balance_rows)

    @cached_property
    def _balance_rows(self) -> BalanceRows:
        return BalanceRows(self._parts, self._classes)

    def _response(self, x: FloatArray, metric: Metric) -> DualPoint:
        """Return ``-W B^T x`` for potentials x (n, d)."""
        jumps = differences(self._graph.edges, x)
        return DualPoint(
            -np.einsum("eij,ej->ei", metric.u, jumps),
            -metric.a * (self._operator @ x.ravel()),
            -metric.t * x,
            -metric.nu * x.sum(axis=1),
            self._classes.response(x, metric.p) if len(self._classes) else metric.p,
        )
