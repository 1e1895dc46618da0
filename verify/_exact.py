"""From a float flow and float multipliers to exact ones.

Per connected component, in exact arithmetic: the conservation residual of the rounded (u, r)
(`_state`); its routing along a spanning tree of the edges with most slack and its absorption at
the root (`_absorb`); and one dyadic factor that moves the component into its capacities, which
keeps the homogeneous equations (here).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verify import _integers as integers
from verify._absorb import Absorber, NoWitness
from verify._data import Floats, Instance, Ints, floats
from verify._forest import components
from verify._integers import Exact
from verify._state import State
from verify._terms import L1Term

__all__ = ["ExactFlow", "NoWitness", "exact_flow"]


@dataclass
class ExactFlow:
    """u (m, d) in units 2^-k and r per term in units 2^-k_r[t]."""

    u: Exact
    k: int
    r: list[Exact]
    k_r: list[int]

    def floats(self) -> tuple[Floats, list[Floats]]:
        """Return (u, r) rounded to floats."""
        r = [integers.to_floats(v, k) for v, k in zip(self.r, self.k_r, strict=True)]
        return integers.to_floats(self.u, self.k), r


def exact_flow(
    inst: Instance, u: Floats, r: list[Floats], w: Floats, active: NDArray[np.bool_]
) -> ExactFlow:
    """Return an exactly feasible (u, r) next to the given floats.

    Parameters
    ----------
    inst : the problem
    u : (m, d) float flow, conserved up to rounding, zero on inactive edges
    r : float multipliers, one array per term
    w : (n, d) the point, for the curvature of the losses
    active : (m,) edges that residuals may be routed along

    Raises
    ------
    NoWitness
        A component cannot absorb its residual, or the flow is far above the capacities.
    """
    state = State(inst, u, r, w)
    state.refine()
    _, component = components(inst.edges[active], inst.n)
    penalty = inst.penalty
    slack = inst.cap - penalty.dual_norm(u) if penalty.bounded else inst.cap
    Absorber(state, slack, active, component).run()
    _shrink(state, component)
    return ExactFlow(state.u, state.k, state.r, [state.k_r(t) for t in range(len(inst.terms))])


def _shrink(state: State, component: Ints) -> None:
    """Scale components whose flow is above a capacity by a dyadic theta < 1."""
    excess = _excess(state, component)
    if not excess.any():
        return
    bits = 60
    theta = (1 << bits) - np.ceil(excess * 2.0**bits).astype(np.int64)
    if (theta <= 0).any():
        raise NoWitness("the flow is far above the capacities")
    factor = theta.astype(object)
    state.u *= factor[component[state.inst.edges[:, 0]]][:, None]
    for t, term in enumerate(state.inst.terms):
        each = factor[component[term.node]]
        state.r[t] = state.r[t] * (each if state.r[t].ndim == 1 else each[:, None])
    state.k += bits


def _excess(state: State, component: Ints) -> Floats:
    """Return per component how much its flow and its l1 multipliers must shrink.

    Floats select what is close to its capacity; whether it is above is decided exactly.
    """
    inst = state.inst
    out = np.zeros(component.max(initial=0) + 1)
    if inst.penalty.bounded and len(inst.edges):
        lam, k_lam = integers.dyadic(np.array([float.fromhex(inst.plain["lam"])]))
        weights, k_weights = integers.dyadic(floats(inst.plain["weights"]))
        cap, k_cap = weights * lam[0], k_lam + k_weights
        power = 2 if inst.penalty.q == 2 else 1

        def above(e: Ints) -> Exact:
            flow = np.abs(state.u[e] * (1 << k_cap)) ** power
            norm = flow.max(axis=1) if inst.penalty.q == np.inf else flow.sum(axis=1)
            return norm > (cap[e] * (1 << state.k)) ** power

        size = inst.penalty.dual_norm(integers.to_floats(state.u, state.k))
        _collect(out, size, inst.cap, above, component[inst.edges[:, 0]])
    for t, term in enumerate(inst.terms):
        if isinstance(term, L1Term) and len(term.node):
            norm = np.abs(state.r[t]).max(axis=1)
            kappa, k_kappa = integers.dyadic(term.kappa)
            over = norm * (1 << k_kappa) > kappa * (1 << state.k_r(t))
            size = integers.to_floats(norm, state.k_r(t))
            _collect(out, size, term.kappa, over.__getitem__, component[term.node])
    return out


def _collect(
    out: Floats, size: Floats, limit: Floats, above: Callable[[Ints], Exact], component: Ints
) -> None:
    """Raise `out` at the components of the entries whose exact size is above the limit."""
    margin = 2.0**-45  # covers the rounding of `size` many times over
    close = np.flatnonzero((size > 0) & (size >= limit * (1 - margin)))
    if len(close) == 0:
        return
    over = close[above(close).astype(bool)]
    need = 1 - (1 - margin) * (limit[over] / size[over])
    np.maximum.at(out, component[over], np.maximum(need, margin / 2))
