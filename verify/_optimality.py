"""Optimality conditions of a pair (w, u), per node and per edge, in floats.

With s_i = -(D^T u)_i the pair is optimal iff

    s_i in dL_i(w_i)                                  (stationarity, every node)
    ||u_e||_* <= lam A_e                              (capacity, every edge)
    <u_e, D_e> = lam A_e ||D_e||                      (alignment, every edge),    D_e = (D w)_e.

[GTV] (28) has the first two and, in place of the third, D_e = 0 where the flow is below capacity.
That follows from alignment but does not imply it: on a saturated edge D_e must also point along
the flow.  For a quadratic penalty the second and third read u_e = lam A_e Q D_e.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verify._data import Floats, Instance, as_table, load
from verify._penalties import QuadraticPenalty
from verify._terms import L1Term


@dataclass(frozen=True)
class OptimalityReport:
    """Residuals of the optimality conditions, all >= 0 and zero at a solution.

    Attributes
    ----------
    stationarity : (n,) largest entry of the distance of s_i to the subdifferential of L_i at w_i
    node_alignment : (n,) sum over the l1 terms of kappa ||w_i||_1 - <q_i, w_i>, with q_i the
        multiplier |q_ij| <= kappa that leaves the least stationarity residual
    capacity : (m,) excess of ||u_e||_* over lam A_e; for a quadratic penalty the largest entry of
        u_e - lam A_e Q D_e
    alignment : (m,) lam A_e phi(D_e) - <u_e, D_e>, zero for a quadratic penalty
    node_scale, edge_scale : (n,) and (m,) sizes that `stationarity` and `capacity` compare with
    value : P(w)
    """

    stationarity: Floats
    node_alignment: Floats
    capacity: Floats
    alignment: Floats
    node_scale: Floats
    edge_scale: Floats
    value: float

    def holds(self, tol: float = 1e-6) -> bool:
        """Whether every residual is within tol of its scale.

        Stationarity compares with max(1, node_scale), capacity with edge_scale, and alignment,
        which has the unit of the objective, with max(1, |P(w)|).
        """
        size = tol * max(1.0, abs(self.value))
        return bool(
            (self.stationarity <= tol * np.maximum(1, self.node_scale)).all()
            and (self.capacity <= tol * self.edge_scale).all()
            and (self.alignment <= size).all()
            and (self.node_alignment <= size).all()
        )


def optimality(problem: Any, w: Any, u: Any) -> OptimalityReport:
    """Return the residuals of the optimality conditions at (w, u).

    Parameters
    ----------
    problem : plain data (verify/SCHEMA.md) or an object with `to_data`
    w : (n, d)
    u : (m, d)

    Raises
    ------
    ValueError, TypeError
        Bad data, shapes, NaN or infinity; a loss that cannot be written down.
    """
    inst = load(problem)
    if inst.opaque:
        raise ValueError(f"problem: no subdifferential for the loss {inst.opaque[0]!r}")
    w = as_table(w, (inst.n, inst.d), "w")
    u = as_table(u, (len(inst.edges), inst.d), "u")
    need, node_scale, node_alignment = _nodes(inst, w, u)
    differences = inst.differences(w)
    penalty = inst.penalty
    if isinstance(penalty, QuadraticPenalty):
        wanted = inst.cap[:, None] * penalty.apply(differences)
        capacity = np.abs(u - wanted).max(axis=1)
        alignment = np.zeros(len(u))
        edge_scale = np.maximum(1.0, np.abs(wanted).max(axis=1))
    else:
        capacity = np.maximum(penalty.dual_norm(u) - inst.cap, 0)
        alignment = np.maximum(inst.edge_costs(w) - (u * differences).sum(axis=1), 0)
        edge_scale = inst.cap
    stationarity = np.abs(need).max(axis=1)
    return OptimalityReport(
        stationarity, node_alignment, capacity, alignment, node_scale, edge_scale, inst.value(w)
    )


def _nodes(inst: Instance, w: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (what is left of s_i after all terms, scale per node, alignment of l1 terms)."""
    need = -inst.divergence(u)
    scale = np.abs(need).max(axis=1)
    alignment = np.zeros(inst.n)
    for term in inst.terms:
        if not isinstance(term, L1Term):
            gradient = term.pull(term.witness(w))
            scale = np.maximum(scale, np.abs(gradient).max(axis=1))
            need = need - gradient
    for ground in inst.ground:
        q = ground.clip(need[ground.node])
        need = need - ground.pull(q)
        alignment += ground.gaps(q, w)
    return need, scale, alignment
