"""Optimality conditions of a pair (w, u), per node and per edge, in floats.

With s_i = -(D^T u)_i the pair is optimal iff

    s_i in dL_i(w_i)                                  (stationarity, every node)
    ||u_e||_* <= lam A_e                              (capacity, every edge)
    <u_e, D_e> = lam A_e ||D_e||                      (alignment, every edge),    D_e = (D w)_e.

[GTV] (28) has the first two and, in place of the third, D_e = 0 where the flow is below capacity.
That follows from alignment but does not imply it: on a saturated edge D_e must also point along
the flow. For a quadratic penalty the second and third read u_e = lam A_e Q D_e.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify._display import fitted, html_block, html_facts
from verify.certificates._node_multipliers import node_multipliers
from verify.certificates._repair import anchored
from verify.instance._constraints import Constraints
from verify.instance._instance import Instance, as_table, load
from verify.instance._penalties import QuadraticPenalty


@dataclass(frozen=True)
class OptimalityReport:
    """Residuals of the optimality conditions, all >= 0 and zero at a solution.

    Attributes
    ----------
    stationarity : ndarray, shape (n,)
        Largest entry of s_i minus the gradients of the differentiable terms at w_i minus the
        multipliers of the others, in their domains, that leave the least of it.
    node_alignment : ndarray, shape (n,)
        Sum over the blocks that are not differentiable (of absolute, quantile, hinge, l1, box,
        simplex) of h(B w_i) + h*(q) - <q, B w_i>, with q these multipliers: how far they are from
        being subgradients; kappa ||w_i||_1 - <q_i, w_i> for an l1 term.
    feasibility : ndarray, shape (n,)
        Largest violation of a bound or of the sum of a simplex by w_i.
    capacity : ndarray, shape (m,)
        How far ||u_e||_* is above lam A_e; for a quadratic penalty the largest entry of u_e - lam
        A_e Q D_e.
    alignment : ndarray, shape (m,)
        lam A_e phi(D_e) - <u_e, D_e>, zero for a quadratic penalty.
    node_scale, edge_scale : ndarray, shapes (n,) and (m,)
        Sizes that `stationarity` and `capacity` compare with.
    value : float
        P(w), or P at the nearest feasible point where w breaks a constraint.
    """

    stationarity: FloatArray
    node_alignment: FloatArray
    feasibility: FloatArray
    capacity: FloatArray
    alignment: FloatArray
    node_scale: FloatArray
    edge_scale: FloatArray
    value: float

    def _facts(self) -> list[tuple[str, str]]:
        """Return the largest residual of each kind."""
        names = ("stationarity", "node_alignment", "feasibility", "capacity", "alignment")
        largest = [(name, float(getattr(self, name).max(initial=0.0))) for name in names]
        verdict = "hold" if self.holds() else "do not hold"
        return [
            *((name, f"at most {value:.3e}") for name, value in largest),
            ("verdict", f"the conditions {verdict} within 1e-6 of their scales"),
        ]

    def __repr__(self) -> str:
        facts = [f"  {name:<15} {text}" for name, text in self._facts()]
        return fitted([f"OptimalityReport: value {self.value:.12g}", *facts])

    def _repr_html_(self) -> str:
        """Show the largest residual of each kind."""
        title = f"OptimalityReport: value {self.value:.12g}"
        return html_block(title, html_facts(self._facts()))

    def holds(self, tol: float = 1e-6) -> bool:
        """Whether every residual is within tol of its scale.

        Stationarity compares with max(1, node_scale), capacity with edge_scale, feasibility with 1,
        and alignment, which has the unit of the objective, with max(1, |P(w)|).
        """
        size = tol * max(1.0, abs(self.value))
        return bool(
            (self.stationarity <= tol * np.maximum(1, self.node_scale)).all()
            and (self.capacity <= tol * self.edge_scale).all()
            and (self.feasibility <= tol).all()
            and (self.alignment <= size).all()
            and (self.node_alignment <= size).all()
        )


def optimality(problem: Any, w: Any, u: Any) -> OptimalityReport:
    """Return the residuals of the optimality conditions at (w, u).

    Parameters
    ----------
    problem : object or mapping
        Plain data (verify/SCHEMA.md) or an object with `to_data`.
    w : array_like, shape (n, d)
    u : array_like, shape (m, d)

    Raises
    ------
    ValueError, TypeError
        Bad data, shapes, NaN or infinity; a loss or penalty that cannot be written down.
    """
    inst = load(problem)
    if inst.opaque:
        kind = "loss" if any(t["kind"] == "opaque" for t in inst.plain["terms"]) else "penalty"
        raise ValueError(f"problem: no subdifferential for the {kind} {inst.opaque[0]!r}")
    w = as_table(w, (inst.n, inst.d), "w")
    u = as_table(u, (len(inst.edges), inst.d), "u")
    constraints = Constraints(inst)
    feasibility = constraints.violation(w)
    w, _ = constraints.moved(w)
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
        stationarity,
        node_alignment,
        feasibility,
        capacity,
        alignment,
        node_scale,
        edge_scale,
        inst.value(w),
    )


def _nodes(
    inst: Instance, w: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (what is left of s_i after all terms, scale and alignment per node)."""
    need = -inst.divergence(u)
    scale = np.abs(need).max(axis=1)
    alignment = np.zeros(inst.n)
    kinked = []
    for part in anchored(inst, w):
        if part.equation or not part.function.smooth:
            kinked.append(part)
            continue
        gradient = part.pull(part.slope(w))
        scale = np.maximum(scale, np.abs(gradient).max(axis=1))
        need = need - gradient
    if kinked:
        count = sum(part.function.y.size for part in kinked)
        tolerance = 1e-14 * max(1.0, abs(inst.value(w))) / max(count, 1)
        for part, q in zip(kinked, node_multipliers(kinked, w, need, tolerance), strict=True):
            force = part.pull(q)
            scale = np.maximum(scale, np.abs(force).max(axis=1))
            need = need - force
            if not part.equation:
                alignment += part.gaps(q, w)
    return need, scale, alignment
