"""CVXPY models of multinomial losses and of their conjugates, vectorized over all rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from gtvcvx._lazy import cp
from gtvcvx.losses.batched.multinomial._rows import Rows

Model: TypeAlias = "tuple[cp.Expression, list[cp.Constraint]]"


def value_model(rows: Rows, w: cp.Expression) -> Model:
    """CVXPY model of ``sum_i L_i(w_i)`` for an expression (k, d)."""
    K = rows.shape[2]
    scores = cp.reshape(rows.operator @ _flat(w), rows.own.shape, order="C")
    own = np.where(rows.own, rows.c[:, None], 0.0)
    cost = rows.c @ cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(own, scores))
    ridge = rows.mu.copy()
    for node, weight, a in rows.points:
        each = np.repeat(np.sqrt(weight)[:, None], a.shape[1], axis=1)
        cost += cp.sum_squares(cp.multiply(each, w[node, :] - a))
        ridge[node] -= 2.0 * weight[:, None]
    # Nothing but rounding is below zero.
    ridge = np.maximum(ridge, 0.0)
    if ridge.any():
        cost += cp.sum_squares(cp.multiply(np.sqrt(0.5 * np.repeat(ridge, K, axis=1)), w))
    return cost, []


def conjugate_model(rows: Rows, s: cp.Expression) -> Model:
    """CVXPY model of ``sum_i L_i*(s_i)`` for an expression (k, d).

    Its variables are the chances of the classes (N, K), and what the quadratics take.
    """
    K = rows.shape[2]
    chances = cp.Variable(rows.own.shape, name="chances")
    slopes = cp.multiply(np.repeat(rows.c[:, None], K, axis=1), chances - rows.own.astype(float))
    rest = _flat(s) - rows.operator.T.tocsr() @ _flat(slopes)
    cost = -rows.c @ cp.sum(cp.entr(chances), axis=1) - float(rows.constant.sum())
    constraints = [cp.sum(chances, axis=1) == 1.0]
    mu = np.repeat(rows.mu, K, axis=1).ravel()
    curved, flat = np.flatnonzero(mu > 0.0), np.flatnonzero(mu == 0.0)
    if curved.size:
        taken = rest[curved] + rows.linear.ravel()[curved]
        cost += cp.sum_squares(cp.multiply(np.sqrt(0.5 / mu[curved]), taken))
    if flat.size:
        constraints.append(rest[flat] == 0)
    return cost, constraints


def _flat(x: cp.Expression) -> cp.Expression:
    return cp.reshape(x, (x.shape[0] * x.shape[1],), order="C")
