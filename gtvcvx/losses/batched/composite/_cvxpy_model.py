"""CVXPY models of composite losses and of their conjugates, vectorized over all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx._lazy import cp, sp
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._scalar import HUBER, KINK, LOGISTIC, POISSON, PSEUDO_HUBER, SQUARED

Model: TypeAlias = "tuple[cp.Expression, list[cp.Constraint]]"


def value_model(parts: Parts, w: cp.Expression) -> Model:
    """CVXPY model of ``sum_i L_i(w_i)`` for an expression (k, d)."""
    c = parts.coordinates
    flat = cp.reshape(w, (w.shape[0] * w.shape[1],), order="C")
    costs: list[cp.Expression] = [cp.Constant(0.0)]
    for kind, of in _VALUES.items():
        at = np.flatnonzero(parts.rows["kind"] == kind)
        if at.size:
            costs.append(of(parts.operator[at] @ flat, parts.rows[at]))
    for node, a, weight in parts.points:
        away = w[node, :] - a
        plain = bool(np.all(weight == 1.0))
        costs.append(cp.sum_squares(away if plain else cp.multiply(np.sqrt(weight)[:, None], away)))
    if parts.ridge.any():
        costs.append(cp.sum_squares(cp.multiply(np.sqrt(0.5 * parts.ridge), w)))
    if c["kappa"].any():
        costs.append(cp.sum(cp.multiply(c["kappa"], cp.abs(w))))
    constraints: list[cp.Constraint] = []
    for bound, sign in ((c["lower"], -1.0), (c["upper"], 1.0)):
        at = np.flatnonzero(np.isfinite(bound.ravel()))
        if at.size:
            constraints.append(sign * flat[at] <= sign * bound.ravel()[at])
    summed = np.flatnonzero(~np.isnan(parts.totals))
    if summed.size:
        constraints.append(cp.sum(w[summed, :], axis=1) == parts.totals[summed])
    return sum(costs[1:], costs[0]), constraints


def _squared(z: cp.Expression, rows: Records) -> cp.Expression:
    return cp.sum_squares(cp.multiply(np.sqrt(rows["c"]), z - rows["y"]))


def _logistic(z: cp.Expression, rows: Records) -> cp.Expression:
    return rows["c"] @ cp.logistic(z) - (rows["c"] * rows["y"]) @ z


def _poisson(z: cp.Expression, rows: Records) -> cp.Expression:
    return rows["c"] @ cp.exp(z) - (rows["c"] * rows["y"]) @ z


def _huber(z: cp.Expression, rows: Records) -> cp.Expression:
    delta = rows["delta"]
    return (rows["c"] * delta**2) @ cp.huber(cp.multiply(1.0 / delta, z - rows["y"]))


def _pseudo_huber(z: cp.Expression, rows: Records) -> cp.Expression:
    """Lengths of (1, r / delta), a second-order cone a row."""
    delta, weight = rows["delta"], rows["c"] * rows["delta"] ** 2
    length = _length(cp.Constant(np.ones(len(rows))), cp.multiply(1.0 / delta, z - rows["y"]))
    return weight @ length - float(weight.sum())


def _length(x: cp.Expression, y: cp.Expression) -> cp.Expression:
    """Return the lengths of the vectors (x_r, y_r)."""
    return cp.norm(cp.vstack([x, y]), 2, axis=0)


def _kink(z: cp.Expression, rows: Records) -> cp.Expression:
    r = z - rows["y"]
    return cp.sum(cp.maximum(cp.multiply(rows["low"], r), cp.multiply(rows["high"], r)))


_VALUES: dict[int, Callable[[cp.Expression, Records], cp.Expression]] = {
    SQUARED: _squared,
    LOGISTIC: _logistic,
    POISSON: _poisson,
    HUBER: _huber,
    PSEUDO_HUBER: _pseudo_huber,
    KINK: _kink,
}


def conjugate_model(parts: Parts, s: cp.Expression) -> Model:
    """CVXPY model of ``sum_i L_i*(s_i)`` for an expression (k, d).

    Its variables are b (N,), the multipliers of the rows over their weights, and those of the
    coordinates: t of the ridge and point terms, v of the l1 terms, a pair for the bounds.
    """
    costs: list[cp.Expression] = [cp.Constant(-float(parts.constant.sum()))]
    constraints: list[cp.Constraint] = []
    rest = cp.reshape(s, (s.shape[0] * s.shape[1],), order="C")
    if len(parts.rows):
        # Scaled by the roots of the weights, which balances nodes of different size.
        root = np.sqrt(parts.rows["c"])
        b = cp.Variable(len(parts.rows), name="b")
        rest = rest - (parts.operator * root[:, None]).T.tocsr() @ b
        cost, domain = _row_conjugates(parts.rows, root, b)
        costs += cost
        constraints += domain
    cost, domain, rest = _coordinate_conjugates(parts, rest)
    return sum([*costs[1:], *cost], costs[0]), [*constraints, *domain, rest == 0]


def _row_conjugates(
    rows: Records, root: FloatArray, b: cp.Variable
) -> tuple[list[cp.Expression], list[cp.Constraint]]:
    """Costs and domains of multipliers ``a = root * b``."""
    costs: list[cp.Expression] = []
    constraints: list[cp.Constraint] = []
    for kind in (SQUARED, HUBER, KINK):
        at = np.flatnonzero(rows["kind"] == kind)
        if at.size:
            costs.append((root[at] * rows["y"][at]) @ b[at])
            if kind != KINK:
                costs.append(0.25 * cp.sum_squares(b[at]))
            if kind != SQUARED:
                constraints += [b[at] >= (rows["low"] / root)[at]]
                constraints += [b[at] <= (rows["high"] / root)[at]]
    at = np.flatnonzero(rows["kind"] == PSEUDO_HUBER)
    if at.size:
        cost, cone = _pseudo_huber_conjugate(rows[at], root[at], b[at])
        costs.append(cost)
        constraints.append(cone)
    for kind in (LOGISTIC, POISSON):
        at = np.flatnonzero(rows["kind"] == kind)
        if at.size:
            c = rows["c"][at]
            p = cp.multiply(1.0 / root[at], b[at]) + rows["y"][at]
            costs.append(-c @ cp.entr(p))
            costs.append(-c @ cp.entr(1.0 - p) if kind == LOGISTIC else -c @ p)
    return costs, constraints


def _pseudo_huber_conjugate(
    rows: Records, root: FloatArray, b: cp.Expression
) -> tuple[cp.Expression, cp.Constraint]:
    """Cost ``a y + c delta^2 (1 - sqrt(1 - p^2))`` where ``a = root * b = c delta p``; |p| <= 1."""
    weight = rows["c"] * rows["delta"] ** 2
    height = cp.Variable(len(rows), name="height")
    cone = _length(height, cp.multiply(1.0 / (root * rows["delta"]), b)) <= 1.0
    return (root * rows["y"]) @ b + float(weight.sum()) - weight @ height, cone


def _spread(at: IntArray, size: int) -> sp.csr_array:
    """Matrix (size, len(at)) that puts an entry at each of some places."""
    columns = np.arange(len(at))
    return sp.csr_array((np.ones(len(at)), (at, columns)), shape=(size, len(at)))


def _coordinate_conjugates(
    parts: Parts, rest: cp.Expression
) -> tuple[list[cp.Expression], list[cp.Constraint], cp.Expression]:
    """Costs and domains of the coordinates' multipliers, and what they leave of the rest."""
    c = parts.coordinates
    k, d = c.shape
    costs: list[cp.Expression] = []
    constraints: list[cp.Constraint] = []
    mu, linear, kappa = (c[name].ravel() for name in ("mu", "linear", "kappa"))
    curved, kinked = np.flatnonzero(mu > 0.0), np.flatnonzero(kappa > 0.0)
    if curved.size:
        t = cp.Variable(len(curved), name="t")
        root = np.sqrt(0.5 / mu[curved])
        costs.append(cp.sum_squares(cp.multiply(root, t + linear[curved])))
        rest = rest - _spread(curved, k * d) @ t
    if kinked.size:
        v = cp.Variable(len(kinked), name="v")
        constraints.append(cp.abs(v) <= kappa[kinked])
        rest = rest - _spread(kinked, k * d) @ v
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        bound = c[name].ravel()
        at = np.flatnonzero(np.isfinite(bound))
        if at.size:
            press = cp.Variable(len(at), name=name)
            constraints.append(press >= 0.0)
            costs.append((sign * bound[at]) @ press)
            rest = rest - sign * (_spread(at, k * d) @ press)
    summed = np.flatnonzero(~np.isnan(parts.totals))
    if summed.size:
        nu = cp.Variable(len(summed), name="nu")
        costs.append(parts.totals[summed] @ nu)
        rest = rest - sp.kron(_spread(summed, k), np.ones((d, 1)), format="csr") @ nu
    return costs, constraints, rest
