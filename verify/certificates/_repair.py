"""Float repair of a dual point: conserve the flow where no loss absorbs it, inside the capacities.

At an unlabelled or rank-deficient node i the conjugate L_i*(-(D^T u)_i) is finite only where
-(D^T u)_i lies in the range of the loss, so N_i^T (D^T u)_i = 0 with N_i a basis of the null space.
The projection on these equations and the projection on the capacities are alternated with
over-relaxation; multipliers with an interval of their own (an absolute value, a hinge, an l1 norm,
a bound) take part as edges to a ground node whose capacities are the ends. What the losses absorb
is shared out among their blocks: by `_node_multipliers` where there are such intervals, else by
Newton steps, which give the witnesses r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._forest import components
from verify.certificates._node_multipliers import node_multipliers
from verify.certificates._projection import Projection, pulled
from verify.instance._blocks import Part
from verify.instance._functions import Piecewise
from verify.instance._instance import Instance
from verify.instance._terms import NULL, pseudo_inverse

SWEEPS = 12
PATIENCE = 5  # Newton steps that come no closer, where rounding is all that is left
SHRINK = 1e-12  # capacities are left by this much, so that the exact step rarely has to scale
STIFF = 1e6  # curvature of a quadratic in place of an equation, relative to the node's other losses


@dataclass
class FloatFlow:
    """A repaired dual point: u (m, d), r per part and per term, and the gap at w in floats."""

    u: FloatArray
    parts: list[FloatArray]
    r: list[FloatArray]
    gap: float


def gaps(
    inst: Instance, w: FloatArray, u: FloatArray, r: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the duality gap at (w, u, r) per node, (n,), and per edge, (m,); all >= 0.

    The brackets of the Fenchel-Young inequality, each in a form without cancellation; their sum is
    P(w) - Dual(u, r) for a feasible (u, r).
    """
    node = np.zeros(inst.n)
    for term, multiplier in zip(inst.terms, r, strict=True):
        node += term.gaps(multiplier, w)
    return node, inst.penalty.gaps(u, inst.differences(w), inst.cap)


def negligible(inst: Instance, w: FloatArray) -> BoolArray:
    """Return (m,) edges whose capacity is nothing next to the gradients and to P(w).

    Their flow is set to zero, which costs at most lam A_e phi(D_e) each, and residuals are not
    routed along them: rounding errors of the gradients would exceed such capacities.
    """
    scale = np.zeros(inst.n)
    for part in inst.parts:
        f = part.function
        scale += np.abs(part.pull(f.clip(part.slope(w)))).sum(axis=1)
        part.largest(scale, f.size())
    size = max(float(scale.max(initial=0.0)), 0.0)
    value = inst.value(w)
    cheap = inst.edge_costs(w) * max(1, len(inst.cap)) <= 1e-13 * max(1.0, abs(value))
    return (inst.cap <= 1e-17 * size) & cheap


def anchored(inst: Instance, w: FloatArray) -> list[Part]:
    """Return the parts, each equation B w_i = y replaced by a stiff quadratic around B w_i."""
    typical = np.zeros((inst.n, inst.d, inst.d))
    for part in inst.parts:
        if not part.equation:
            typical += part.hessian(part.curvature(None))
    curvature = np.einsum("njj->nj", typical).max(axis=1)
    curvature = STIFF * np.where(curvature > 0, curvature, 1.0)
    out = []
    for part in inst.parts:
        if part.equation:
            y, f = part.push(w), part.function
            c = np.where(f.limited, 0.0, part.of_nodes(curvature) / part.norms_squared())
            out.append(Part(part, Piecewise(y, c, f.lo, f.hi), equation=True))
        else:
            out.append(part)
    return out


class Repair:
    """Repairs flows for one problem and one point w; the factorizations are made once."""

    def __init__(self, inst: Instance, w: FloatArray) -> None:
        self.inst, self.w = inst, w
        self.active = ~negligible(inst, w)
        self.parts = anchored(inst, w)
        hessian = np.zeros((inst.n, inst.d, inst.d))
        for part in self.parts:
            hessian += part.hessian(part.curvature(None))
        if not np.isfinite(hessian).all():
            raise OverflowError("the data are too large for floats")
        values, vectors = np.linalg.eigh(hessian)
        null = values <= NULL * np.maximum(values[:, -1:], 0)
        self.range = (vectors * ~null[:, None, :]) @ vectors.transpose(0, 2, 1)
        self.newton_inverse = pseudo_inverse(values, vectors)  # everywhere if all is quadratic
        self.quadratic = all(np.isinf(part.function.reach) for part in self.parts)
        self.projection = Projection(inst, self.parts, w, self.active, (vectors, null))
        _, self.component = components(inst.edges[self.active], inst.n)

    def clip(
        self, u: FloatArray, q: list[FloatArray], shrink: float
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return (u, q) moved into the capacities times 1 - shrink and into the intervals."""
        u = self.inst.penalty.clip(u, self.inst.cap * (1 - shrink))
        return u, [part.function.clip(v) for part, v in zip(self.parts, q, strict=True)]

    def theta(self, u: FloatArray, q: list[FloatArray]) -> FloatArray:
        """Return per component the largest factor <= 1 that respects all its capacities.

        An end that is zero is not among them: what is beyond it is cut off.
        """
        inst = self.inst
        out = np.ones(self.component.max(initial=0) + 1)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if inst.penalty.bounded and len(u):
                norms = inst.penalty.dual_norm(u)
                ratio = np.where(norms > inst.cap, inst.cap / norms, 1.0)
                np.minimum.at(out, self.component[inst.edges[:, 0]], ratio)
            for part, v in zip(self.parts, q, strict=True):
                f = part.function
                if not f.limited.any():
                    continue
                ratio = np.ones(inst.n)
                for end, over in ((f.hi, (v > f.hi) & (f.hi > 0)), (f.lo, (v < f.lo) & (f.lo < 0))):
                    part.least(ratio, np.where(f.limited & over, end / v, 1.0))
                np.minimum.at(out, self.component, ratio)
        return out

    def run(
        self, given: FloatFlow, target: float, expired: Callable[[], bool] = lambda: False
    ) -> FloatFlow:
        """Repair a flow; stops once the float gap is below the target, or the time is over."""
        u, q = given.u, given.parts
        best: FloatFlow | None = None
        for _ in range(SWEEPS + 1):
            inside, inside_q = self.projection.project(u, q)
            theta = self.theta(inside, inside_q)
            flow = self.evaluate(inside, inside_q, theta)
            stalled = best is not None and theta.min() > 1 - 1e-6 and flow.gap > 0.9 * best.gap
            if best is None or flow.gap < best.gap:
                best = flow
            if best.gap <= target or stalled or expired():
                break
            clipped, clipped_q = self.clip(inside, inside_q, SHRINK)
            u = clipped + 0.9 * (clipped - inside)
            q = [a + 0.9 * (a - b) for a, b in zip(clipped_q, inside_q, strict=True)]
        assert best is not None
        u, q = best.u, best.parts
        for _ in range(2):  # the second pass removes the rounding of the first
            u, q = self.projection.project(u, q, 1e-11)
        return self.evaluate(u, q, self.theta(u, q))

    def given(self, u: FloatArray) -> FloatFlow:
        """Return u inside the capacities, with multipliers that conserve it at every node.

        For the flow of a good solution that is all: projections move it along nearly collinear
        columns, by more than small capacities leave room for.
        """
        u = self.inst.penalty.clip(np.where(self.active[:, None], u, 0.0), self.inst.cap)
        return self._flow(u, self._multipliers(u))

    def _flow(self, u: FloatArray, parts: list[FloatArray]) -> FloatFlow:
        r = self.inst.joined(parts)
        node, edge = gaps(self.inst, self.w, u, r)
        return FloatFlow(u, parts, r, float(node.sum() + edge.sum()))

    def _multipliers(self, u: FloatArray) -> list[FloatArray]:
        """Return multipliers per part that conserve the flow where that is possible."""
        if not self.projection.limited:
            return [np.zeros(part.shape) for part in self.parts]
        count = sum(part.function.y.size for part in self.parts)
        tolerance = 1e-12 * max(1.0, abs(self.inst.value(self.w))) / max(count, 1)
        return node_multipliers(self.parts, self.w, -self.inst.divergence(u), tolerance)

    def evaluate(self, u: FloatArray, q: list[FloatArray], theta: FloatArray) -> FloatFlow:
        """Scale into the capacities, find the witnesses r and the gap."""
        inst = self.inst
        u = u * theta[self.component[inst.edges[:, 0]]][:, None]
        factor = theta[self.component]
        pairs = zip(self.parts, q, strict=True)
        q = [part.function.clip(v * part.of_nodes(factor)) for part, v in pairs]
        return self._flow(u, self._witnesses(u, q))

    def _witnesses(self, u: FloatArray, q: list[FloatArray]) -> list[FloatArray]:
        """Return r with sum_k B_k^T r_k = -(D^T u)_i and the limited entries as in q.

        The other blocks have their gradients at a point close to w: Newton on  grad L_i(v) = s_i
        from v = w, damped where it does not descend; for quadratic losses one step, and r - grad h
        is the correction of least cost.
        """
        inst = self.inst
        target = -inst.divergence(u) - pulled(self.parts, q)
        target = np.einsum("nij,nj->ni", self.range, target)
        v = self.w.copy()
        forces = [np.abs(self._pull_smooth(part, v)).max(initial=0.0) for part in self.parts]
        size = np.abs(target).max(initial=0.0) + max(forces, default=0.0)
        best, stale = np.inf, 0
        for _ in range(1 if self.quadratic else 40):
            step, rest = self._newton(v, target)
            missed = float(np.abs(rest).max(initial=0.0))
            stale = 0 if missed < 0.5 * best else stale + 1
            best = min(best, missed)
            if self.quadratic or not missed > 1e-14 * size or stale == PATIENCE:
                break
            v = v + step
        step, _ = self._newton(v, target)
        out = []
        for part, fixed in zip(self.parts, q, strict=True):
            f = part.function
            r = f.clip(part.slope(v) + part.curvature(v) * part.push(step))
            out.append(np.where(f.limited, fixed, r))
        return out

    @staticmethod
    def _pull_smooth(part: Part, v: FloatArray) -> FloatArray:
        """Return B^T h'(B v) over the entries that are not limited, (n, d)."""
        return part.pull(np.where(part.function.limited, 0.0, part.slope(v)))

    def _newton(self, v: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the (limited) Newton step at v and the residual target - grad L(v)."""
        inst = self.inst
        rest = target.copy()
        for part in self.parts:
            rest -= self._pull_smooth(part, v)
        rest = np.einsum("nij,nj->ni", self.range, rest)
        inverse = self.newton_inverse
        if not self.quadratic:
            hessian = np.zeros((inst.n, inst.d, inst.d))
            for part in self.parts:
                hessian += part.hessian(part.curvature(v))
            inverse = pseudo_inverse(*np.linalg.eigh(hessian))
        step = np.einsum("nij,nj->ni", inverse, rest)
        # A logistic block is close to its quadratic model only for |x.step| of order one.
        limit = np.ones(inst.n)
        for part in self.parts:
            if np.isfinite(part.function.reach):
                move = np.abs(part.push(step)) / part.function.reach
                part.least(limit, 1 / np.maximum(move, 1.0))
        return step * limit[:, None], rest
