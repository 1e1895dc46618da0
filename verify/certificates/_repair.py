"""Float repair of a dual point: multipliers that conserve the flow, then both together.

What the losses absorb of a given flow is shared out among their blocks node by node
(`_node_multipliers`). Where that does not suffice, as at an unlabelled or rank-deficient node i,
whose conjugate L_i*(-(D^T u)_i) is finite only where -(D^T u)_i lies in the range of the loss, flow
and multipliers are corrected together (`_correction`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._coordinates import diagonal
from verify.certificates._correction import Correction
from verify.certificates._exact_point import Absorb
from verify.certificates._factor_work import factor_seconds
from verify.certificates._limits import Clock
from verify.certificates._node_multipliers import node_multipliers
from verify.certificates._step import DualPoint, Step, balance
from verify.certificates._thin_rounds import is_thin
from verify.instance._blocks import Part
from verify.instance._functions import Piecewise
from verify.instance._instance import Instance

# Curvature of a quadratic in place of an equation, relative to the node's other losses, in whatever
# coordinate it is least.
STIFF = 1e6
# Of matrices (n, d, d), of which there are some at a time: 2 GB each.
MOST_ENTRIES = 2**28
BEYOND = 1e-6  # of the size of B w and y: a solver's kinks are closer


@dataclass
class FloatFlow:
    """A dual point in floats.

    Attributes
    ----------
    u : ndarray, shape (m, d)
        Flow inside the capacities.
    parts, r : list of ndarray
        Multipliers inside their intervals, per part and per term.
    gap : float
        That at w, were the flow conserved.
    missing : float
        What is not conserved, times the largest entries of w.
    absorb : callable or None
        Returns changes of (u, r) that make up a small rest (n, d) of the balance.
    careful : callable or None
        The same, but leaves alone what is at an end, and so less of the rest is made up.
    near : callable or None
        The same, but for each rest in a metric of its own: nothing moves by more than all of it.
    """

    u: FloatArray
    parts: list[FloatArray]
    r: list[FloatArray]
    gap: float
    missing: float
    absorb: Absorb | None = None
    careful: Absorb | None = None
    near: Absorb | None = None


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
    typical = np.zeros((inst.n, inst.d))
    for part in inst.parts:
        if not part.equation:
            typical += part.hessian_diagonal(part.curvature(None))
    top = typical.max(axis=1, keepdims=True)
    typical = np.where(typical > 0, typical, np.where(top > 0, top, 1.0))
    out = []
    for part in inst.parts:
        if part.equation:
            y, f = part.push(w), part.function
            c = np.where(f.limited, 0.0, STIFF * part.stiffness_of(typical))
            out.append(Part(part, Piecewise(y, c, f.lo, f.hi), equation=True))
        else:
            out.append(part)
    return out


class Repair:
    """Repairs flows for one problem and one point w, in units in which columns are alike.

    Parameters
    ----------
    inst : Instance
        The problem.
    w : ndarray, shape (n, d)
        The point.
    clock : Clock, optional
        When to stop; by default never.

    Raises
    ------
    OverflowError
        The data are too large for floats.
    MemoryError
        A matrix (d, d) for each node takes too much.
    """

    def __init__(self, inst: Instance, w: FloatArray, clock: Clock | None = None) -> None:
        self.units = inst.units
        self.inst = inst = inst.rescaled()
        self.w, self.clock = w * self.units, Clock(None, w.size) if clock is None else clock
        self.active = ~negligible(inst, self.w)
        self.parts = anchored(inst, self.w)
        # No entry of a Hessian is beyond its diagonal.
        diagonals = (part.hessian_diagonal(part.curvature(None)) for part in self.parts)
        if not all(np.isfinite(diagonal).all() for diagonal in diagonals):
            raise OverflowError("the data are too large for floats")
        self.large = inst.n * inst.d**2 > MOST_ENTRIES
        if self.large and not (diagonal(self.parts, inst.d) or is_thin(self.parts, inst.d)):
            raise MemoryError("a matrix (d, d) for each node takes too much memory")

    @property
    def may_grow(self) -> bool:
        """Whether there are rows whose multipliers may grow, see `Correction`."""
        return any(part.function.entropic for part in self.parts)

    @cached_property
    def _seconds(self) -> float:
        """What a factor of all active edges takes, about."""
        return factor_seconds(self.inst.edges[self.active], self.inst.n, self.inst.d)

    def given(self, u: FloatArray) -> FloatFlow:
        """Return u inside the capacities, with multipliers that conserve it where they can."""
        u = np.where(self.active[:, None], u / self.units, 0.0)
        u = self.inst.penalty.clip(u, self.inst.cap)
        count = sum(part.function.y.size for part in self.parts)
        tolerance = 1e-12 * max(1.0, abs(self.inst.value(self.w))) / max(count, 1)
        target = -self.inst.divergence(u)
        r = node_multipliers(self.parts, self.w, target, tolerance, self.clock.expired)
        return self._flow(DualPoint(u, r))

    def with_slopes(self, given: FloatFlow) -> list[FloatArray]:
        """Return multipliers per part, those of w where that is clearly beyond a kink.

        What a rough flow makes the losses absorb there costs its first order.
        """
        out = []
        for part, r in zip(self.parts, given.parts, strict=True):
            f, z = part.function, part.push(self.w)
            beyond = np.abs(f.kink_distance(z)) > BEYOND * np.maximum(np.abs(z), np.abs(f.y))
            out.append(np.where(beyond & np.isfinite(f.slope(z)), f.slope(z), r))
        return out

    def corrected(
        self,
        given: FloatFlow,
        start: list[FloatArray] | None = None,
        growing: bool = False,
    ) -> FloatFlow | None:
        """Return flow and multipliers corrected together; None where that takes too long.

        Parameters
        ----------
        given : FloatFlow
        start : list of ndarray, optional
            Multipliers per part to start from, by default those given.
        growing : bool
            Whether those of decided rows may grow, see `Correction`.

        Raises
        ------
        OverflowError
            The data are too large for floats.
        """
        inst = self.inst

        def over() -> bool:
            return not self.clock.affords(self._seconds)

        if self.large or over():
            return None
        correction = Correction(inst, self.parts, self.w, self.active, growing)
        found = correction.run(DualPoint(given.u / self.units, start or given.parts), over)

        def absorbing(make: Callable[[DualPoint], Step]) -> Absorb:
            @cache
            def step() -> Step:
                return make(found)

            def absorb(rest: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
                change = step().response(rest / self.units)
                return change.u * self.units, self.inst.joined(change.r)

            return absorb

        def near(rest: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
            own = rest / self.units
            change = correction.near(found, own).response(own)
            return change.u * self.units, inst.joined(change.r)

        polish, careful = (absorbing(make) for make in (correction.polish, correction.step))
        return replace(self._flow(found), absorb=polish, careful=careful, near=near)

    def _flow(self, point: DualPoint) -> FloatFlow:
        r = self.inst.joined(point.r)
        node, edge = gaps(self.inst, self.w, point.u, r)
        gap = float(node.sum() + edge.sum())
        missing = np.abs(balance(self.inst, self.parts, point)) @ np.abs(self.w).max(axis=0)
        own = point.u * self.units
        return FloatFlow(own, point.r, r, gap, float(missing.sum()))
