"""The certificate's own dual problem through CVXPY: one multiplier per block.

    minimize    sum_k h_k*(r_k) + sum_e (lam A_e phi)*(u_e)
    subject to  sum_k B_k^T r_k + D^T u = 0        (multiplier: minus w)

is the dual (24) of [GTV] with the conjugate of each loss written through its blocks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from verify._arrays import FloatArray
from verify.certificates._forest import components
from verify.instance._blocks import Part
from verify.instance._constraints import Constraints
from verify.instance._functions import Exponential, Logistic, Multinomial, Piecewise, PseudoHuber
from verify.instance._instance import Instance
from verify.instance._penalties import QuadraticPenalty

HUGE = 1e6  # times the sum of all gradients: more than a flow can use


@dataclass
class DualSolution:
    """Flow u (m, d) and the point w (n, d) that the solver's multipliers give."""

    u: FloatArray
    w: FloatArray


def solve_dual(inst: Instance, **options: Any) -> DualSolution | None:
    """Solve the dual with Clarabel; None where the solver fails.

    Parameters
    ----------
    inst : Instance
        The problem.
    **options
        Passed on to `cvxpy.Problem.solve`.
    """
    objective: list[Any] = []
    constraints: list[Any] = []
    residual: Any = np.zeros((inst.n, inst.d))
    for part in inst.parts:
        r = cp.Variable(part.shape)
        residual = residual + _pull(part, r)
        cost, domain = _conjugate(part, r)
        objective += cost
        constraints += domain
    flow: Any = np.zeros((0, inst.d))
    if len(inst.edges):
        flow, cost, domain = _flow(inst)
        if not isinstance(flow, np.ndarray):
            residual = residual + inst.incidence.T @ flow
        objective += cost
        constraints += domain
    if isinstance(residual, np.ndarray):  # no edges and no losses: every w is optimal
        return DualSolution(flow, residual)
    conservation = residual == 0
    problem = cp.Problem(cp.Minimize(sum(objective, cp.Constant(0))), [conservation, *constraints])
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate solution is repaired and then proved
            problem.solve(**{"solver": cp.CLARABEL, **tight, **options})
    except cp.SolverError:
        return None
    u = flow if isinstance(flow, np.ndarray) else flow.value
    w = conservation.dual_value
    if u is None or w is None or not (np.isfinite(u).all() and np.isfinite(w).all()):
        return None
    return DualSolution(np.asarray(u, dtype=float), -np.asarray(w, dtype=float))


def _pull(part: Part, r: Any) -> Any:
    """Return B^T r per node as an expression (n, d)."""
    count = len(part.node)
    if part.x is not None:
        columns = (part.node[:, None] * part.d + np.arange(part.d)).ravel()
        rows = np.repeat(np.arange(count), part.d)
        shape = (count, part.n * part.d)
        matrix = sp.csr_array((part.x.ravel(), (rows, columns)), shape=shape)
        return cp.reshape(matrix.T @ r, (part.n, part.d), order="C")
    select = sp.csr_array((np.ones(count), (part.node, np.arange(count))), shape=(part.n, count))
    return select @ r


def _conjugate(part: Part, r: Any) -> tuple[list[Any], list[Any]]:
    """Return (summands of h*(r), constraints of its domain)."""
    f = part.function
    if isinstance(f, Exponential):
        p = cp.multiply(f.m, r) + f.y
        entropy = cp.entr(p) + cp.entr(1 - p) if isinstance(f, Logistic) else cp.entr(p) + p
        return [-cp.sum(cp.multiply(1 / f.m, entropy))], []
    if isinstance(f, Multinomial):
        chances = cp.multiply(f.m, r) + f.y
        p = cp.reshape(chances, (len(f.m) // f.others, f.others), order="C")
        entropy = cp.sum(cp.entr(p), axis=1) + cp.entr(1 - cp.sum(p, axis=1))
        return [-(1 / f.m[:: f.others]) @ entropy], []
    if isinstance(f, PseudoHuber):
        height = cp.Variable(f.y.shape)
        length = cp.norm(cp.vstack([height, cp.multiply(f.m / f.delta, r)]), 2, axis=0)
        return [f.y @ r + (f.delta**2 / f.m) @ (1 - height)], [length <= 1]
    assert isinstance(f, Piecewise)
    cost, domain = [cp.sum(cp.multiply(f.y, r))], []
    if not part.equation and f.bend.any():
        cost.append(cp.sum_squares(cp.multiply(np.sqrt(f.bend / 2), r)))
    for end, sign in ((f.lo, -1), (f.hi, 1)):
        where = np.nonzero(np.isfinite(end))
        if len(where[0]):
            domain.append(sign * r[where] <= sign * end[where])
    return cost, domain


def _flow(inst: Instance) -> tuple[Any, list[Any], list[Any]]:
    """Return (flow expression (m, d), summands of its conjugate, capacity constraints).

    Edges whose capacity is nothing next to the gradients carry no flow, and capacities beyond any
    useful flow are dropped: both only spoil the scaling of the solver.
    """
    size = gradient_scale(inst)
    used = np.flatnonzero(inst.cap > 1e-14 * size)
    m = len(inst.edges)
    if len(used) == 0:
        return np.zeros((m, inst.d)), [], []
    cap = np.minimum(inst.cap[used], HUGE * max(size, float(np.median(inst.cap))))
    cap = np.minimum(cap, 1e100)
    place = sp.csr_array((np.ones(len(used)), (used, np.arange(len(used)))), shape=(m, len(used)))
    u = cp.Variable((len(used), inst.d))
    penalty = inst.penalty
    if isinstance(penalty, QuadraticPenalty):
        wide = np.repeat(1 / np.sqrt(2 * cap)[:, None], inst.d, axis=1)
        cost = [cp.sum_squares(cp.multiply(wide, u))]
        if penalty.matrix is None:
            return place @ u, cost, []
        values, vectors = np.linalg.eigh(penalty.matrix)
        root = vectors * np.sqrt(np.maximum(values, 0))  # Q = root root^T; flow = v root^T
        return place @ u @ root.T, cost, []
    tight = np.flatnonzero(inst.cap[used] <= HUGE * size)
    if len(tight) == 0:
        return place @ u, [], []
    if penalty.q == np.inf:
        return place @ u, [], [cp.abs(u[tight]) <= np.repeat(cap[tight][:, None], inst.d, axis=1)]
    if penalty.q in (1, 2):
        return place @ u, [], [cp.norm(u[tight], penalty.q, axis=1) <= cap[tight]]
    parts = cp.multiply(np.repeat(1 / cap[tight][:, None], inst.d, axis=1), cp.abs(u[tight]))
    return place @ u, [], [cp.sum(cp.power(parts, penalty.q), axis=1) <= 1]


def gradient_scale(inst: Instance) -> float:
    """Return the sum over blocks of |grad h| at w = 0, and of everything that a flow may add to it.

    That is all finite ends of multipliers, and what the bounds of boxes and simplices move w by.
    """
    constraints = Constraints(inst)
    zero, _ = constraints.moved(np.zeros((inst.n, inst.d)))
    ends = np.concatenate(
        [constraints.lower.ravel(), constraints.upper.ravel(), constraints.totals]
    )
    reach = np.full(zero.shape, np.abs(ends[np.isfinite(ends)]).max(initial=0.0))
    total = 0.0
    for part in inst.parts:
        f = part.function
        forces = [f.size(), f.clip(part.slope(zero))]
        if isinstance(f, Piecewise):
            forces += [f.curvature(None) * np.abs(part.push(reach))]
        weight = 1.0 if part.x is None else np.abs(part.x).sum(axis=1)
        total += sum(float((np.abs(force) * weight).sum()) for force in forces)
    return total


def consensus(inst: Instance, w: FloatArray) -> FloatArray:
    """Return w averaged over nodes that edges of huge capacity join.

    Across such an edge a difference of one rounding error costs more than everything else.
    """
    with np.errstate(over="ignore"):
        joined = inst.cap > HUGE * gradient_scale(inst)
    count, label = components(inst.edges[joined], inst.n)
    mean = np.zeros((count, inst.d))
    np.add.at(mean, label, w)
    mean /= np.bincount(label, minlength=count)[:, None]
    return mean[label]
