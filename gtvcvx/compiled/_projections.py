"""Compiled sweep of alternating projections of flows; its NumPy twin is in the tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._arcs import Arcs
from gtvcvx.penalties import CompiledForm

_L2 = int(CompiledForm.L2)
_L1 = int(CompiledForm.L1)
_LINF = int(CompiledForm.LINF)

#: Penalties whose capacities the compiled sweep knows.
CODES = (_L2, _L1, _LINF)


@compiled(fastmath=FAST, allocates=False, inner=True)
def l1_threshold(z: FloatArray, cap: float) -> float:
    """Soft threshold of the projection on the l1 ball; it rises until no entry falls below it."""
    total = 0.0
    for k in range(len(z)):
        total += abs(z[k])
    if total <= cap:
        return 0.0
    threshold, active = (total - cap) / len(z), len(z)
    while True:
        total, count = 0.0, 0
        for k in range(len(z)):
            if abs(z[k]) > threshold:
                total += abs(z[k])
                count += 1
        if count >= active or count == 0:  # more: a tie, and rounding
            return threshold
        threshold, active = (total - cap) / count, count


class Flows(NamedTuple):
    """The two flows between which alternating projections go.

    Attributes
    ----------
    u : ndarray, shape (m, q)
        The one that the next sweep starts from.
    on : ndarray, shape (m, q)
        The one on flow conservation.
    missing : ndarray, shape (n, q)
        Demand less D^T u.
    """

    u: FloatArray
    on: FloatArray
    missing: FloatArray


class Limits(NamedTuple):
    """How much an edge may carry: ``dual_norm(u_e) <= capacities[e]``.

    Attributes
    ----------
    code : int
        The norm, one of CODES.
    capacities : ndarray, shape (m,)
    """

    code: int
    capacities: FloatArray


@compiled(fastmath=FAST)
def sweep(
    dims: Dims,
    arcs: Arcs,
    limits: Limits,
    flows: Flows,
    conductance: FloatArray,
    potential: FloatArray,
    relaxation: float,
) -> float:
    """Add the flow c_e (x_head - x_tail) of a potential x (n, q) to u (m, q), clip, over-relax.

    In place: `on` is u with that flow, and u becomes ``inside + relaxation (inside - on)``, where
    `inside` is `on` clipped to the capacities; what u changes is taken from `missing`. Returns the
    largest violation of the capacities by `on`, relative to them.
    """
    starts, tails = arcs.starts, arcs.tails
    code, capacities = limits.code, limits.capacities
    u, on, missing = flows.u, flows.on, flows.missing
    q = len(dims)
    largest = 0.0
    z = np.empty(q)
    for i in range(len(starts) - 1):
        for e in range(starts[i], starts[i + 1]):
            j, c, cap = tails[e], conductance[e], capacities[e]
            scale, threshold, norm = 1.0, 0.0, 0.0
            for k in range(q):
                z[k] = u[e, k] + c * (potential[i, k] - potential[j, k])
            if code == _L2:
                for k in range(q):
                    norm += z[k] * z[k]
                norm = np.sqrt(norm)
                if norm > cap:
                    scale = cap / norm
            elif code == _LINF:
                for k in range(q):
                    norm += abs(z[k])
                threshold = l1_threshold(z, cap)
            else:
                for k in range(q):
                    norm = max(norm, abs(z[k]))
            largest = max(largest, norm / cap - 1.0)
            for k in range(q):
                a = scale * z[k]
                if code == _LINF:
                    a = max(a - threshold, 0.0) + min(a + threshold, 0.0)
                elif code == _L1:
                    a = min(cap, max(-cap, a))
                on[e, k] = z[k]
                change = a + relaxation * (a - z[k]) - u[e, k]
                u[e, k] += change
                missing[i, k] -= change
                missing[j, k] += change
    return largest
