"""From a float flow and float multipliers to exact ones.

Per connected component, in exact arithmetic: the conservation residual of the rounded (u, r)
(`_exact_point`); its routing along a spanning tree of the edges with most slack and its absorption
at the root (`_absorb`); and one dyadic factor that moves the component into its capacities, which
keeps the homogeneous equations (here).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates._absorb import Absorber
from verify.certificates._exact_point import Absorb, ExactPoint
from verify.certificates._forest import components
from verify.instance import _integers as integers
from verify.instance._instance import Instance, floats
from verify.instance._integers import Exact

__all__ = ["ExactFlow", "NoWitness", "exact_flow"]


class NoWitness(Exception):
    """No exact witness was found; says why."""


@dataclass
class ExactFlow:
    """u (m, d) in units 2^-k and r per term in units 2^-k_r[t]."""

    u: Exact
    k: int
    r: list[Exact]
    k_r: list[int]

    def floats(self) -> tuple[FloatArray, list[FloatArray]]:
        """Return (u, r) rounded to floats."""
        r = [integers.to_floats(v, k) for v, k in zip(self.r, self.k_r, strict=True)]
        return integers.to_floats(self.u, self.k), r


def exact_flow(
    inst: Instance,
    u: FloatArray,
    r: list[FloatArray],
    w: FloatArray,
    active: BoolArray,
    absorb: Absorb | None = None,
    careful: Absorb | None = None,
) -> ExactFlow:
    """Return an exactly feasible (u, r) next to the given floats.

    Parameters
    ----------
    inst : Instance
        The problem.
    u : ndarray, shape (m, d)
        Float flow, conserved up to rounding, zero on inactive edges.
    r : list of ndarray
        Float multipliers, one array per term.
    w : ndarray, shape (n, d)
        The point, for the curvature of the losses.
    active : ndarray of bool, shape (m,)
        Edges that residuals may be routed along.
    absorb : callable, optional
        Makes up small residuals; without it every node takes what it can of its own.
    careful : callable, optional
        Makes up what it can of them before, and leaves alone what is at an end.

    Raises
    ------
    NoWitness
        The flow is far above the capacities.
    """
    point = ExactPoint(inst, u, r, w)
    if careful is not None:
        point.refine_inside(careful)
        if absorb is not None:
            point.refine_inside(absorb)
    elif absorb is None:
        point.refine()
    else:
        point.refine_with(absorb)
    _, component = components(inst.edges[active], inst.n)
    penalty = inst.penalty
    slack = inst.cap - penalty.dual_norm(u) if penalty.bounded else inst.cap
    Absorber(point, slack, active, component).run()
    _shrink(point, component)
    return ExactFlow(point.u, point.k, point.r, [point.k_r(t) for t in range(len(inst.terms))])


def _shrink(point: ExactPoint, component: IntArray) -> None:
    """Scale components whose flow is above a capacity by a dyadic theta < 1."""
    largest = _largest_factors(point, component)
    if (largest == 1).all():
        return
    bits = 60
    theta = np.floor(largest * 2.0**bits).astype(np.int64)
    if (theta <= 0).any():
        raise NoWitness("the flow is far above the capacities")
    factor = theta.astype(object)
    point.u *= factor[component[point.inst.edges[:, 0]]][:, None]
    for t, term in enumerate(point.inst.terms):
        each = factor[component[term.node]]
        point.r[t] = point.r[t] * (each if point.r[t].ndim == 1 else each[:, None])
    point.k += bits


def _largest_factors(point: ExactPoint, component: IntArray) -> FloatArray:
    """Return per component the factor <= 1 that brings its flow and its multipliers inside.

    Floats select what is close to its capacity; whether it is above is decided exactly. A
    multiplier beyond an end that is zero would have to shrink to nothing.
    """
    inst = point.inst
    out = np.ones(component.max(initial=0) + 1)
    if inst.penalty.bounded and len(inst.edges):
        lam, k_lam = integers.dyadic(np.array([float.fromhex(inst.plain["lam"])]))
        weights, k_weights = integers.dyadic(floats(inst.plain["weights"]))
        cap, k_cap = weights * lam[0], k_lam + k_weights
        power, powers = 2 if inst.penalty.q == 2 else 1, inst.penalty.powers

        def above(e: IntArray) -> Exact:
            flow, limit = point.u[e] * (1 << k_cap), cap[e] * (1 << point.k)
            if powers is not None:
                pairs = zip(flow.tolist(), limit.tolist(), strict=True)
                return np.array([not powers.is_within(*pair) for pair in pairs])
            flow = np.abs(flow) ** power
            norm = flow.max(axis=1) if inst.penalty.q == np.inf else flow.sum(axis=1)
            return norm > limit**power

        size = inst.penalty.dual_norm(integers.to_floats(point.u, point.k))
        _lower_where_above(out, size, inst.cap, above, component[inst.edges[:, 0]])
    for t, term in enumerate(inst.terms):
        if term.domain is None or len(term.node) == 0:
            continue
        k, (lo, hi) = point.k_r(t), term.domain.floats()
        r = integers.to_floats(point.r[t], k)
        each = np.broadcast_to(component[term.node].reshape(-1, *[1] * (r.ndim - 1)), r.shape)
        for size, limit, over in zip(
            (-r, r), (-lo, hi), term.domain.outside(point.r[t], k), strict=True
        ):
            _lower_where_above(
                out, size.ravel(), limit.ravel(), over.ravel().__getitem__, each.ravel()
            )
    return out


def _lower_where_above(
    out: FloatArray,
    size: FloatArray,
    limit: FloatArray,
    above: Callable[[IntArray], Exact],
    component: IntArray,
) -> None:
    """Lower `out` at the components of the entries whose exact size is above the limit."""
    margin = 2.0**-45  # covers the rounding of `size` many times over
    close = np.flatnonzero((size > 0) & (size >= limit * (1 - margin)))
    if len(close) == 0:
        return
    over = close[above(close).astype(bool)]
    factor = (1 - margin) * (limit[over] / size[over])
    np.minimum.at(out, component[over], np.minimum(factor, 1 - margin / 2))
