"""The independent side of the fuzz: objective and CVXPY model, written from the arrays alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from fuzz_instance import Extra, Instance, Rows

EPS = float(np.finfo(float).eps)


def value(instance: Instance, w: np.ndarray) -> tuple[float, float]:
    """Return the objective at w (n, d), and by how much rounding may change it.

    Two evaluations of x.w - y, or of a jump, differ by some last digits of what is subtracted.
    """
    terms, moved = [], [0.0]
    for rows in instance.rows:
        at, near = _row_values(rows, w)
        terms.append(at)
        moved.append(float(np.abs(near - at).sum()))
    terms += [_extra_values(extra, w[extra.node]) for extra in instance.extras]
    head, tail = w[instance.edges[:, 0]], w[instance.edges[:, 1]]
    digits = 8 * EPS * (np.abs(head) + np.abs(tail))
    size = np.abs(head - tail)
    costs = instance.lam * instance.weights
    # Norms of the sizes: for a matrix Q this is an estimate, as good as any.
    terms.append(costs * _penalty_values(instance.penalty, head - tail))
    grown = _penalty_values(instance.penalty, size + digits)
    moved.append(float((costs * np.abs(grown - _penalty_values(instance.penalty, size))).sum()))
    every = np.concatenate(terms)
    return float(every.sum()), sum(moved) + 1e-13 * float(np.abs(every).sum())


def _row_values(rows: Rows, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each row, and what it is where its residual has other last digits."""
    at, y, p = w[rows.node], rows.y, rows.parameter
    if rows.kind == "point":
        digits = 8 * EPS * (np.abs(y) + np.abs(at))
        return ((y - at) ** 2).sum(axis=1), ((np.abs(y - at) + digits) ** 2).sum(axis=1)
    if rows.kind == "multinomial":
        return _values_of_classes(rows, at)
    z = np.einsum("rd,rd->r", rows.X, at)
    digits = 8 * EPS * (np.abs(rows.X * at).sum(axis=1) + np.abs(y))
    if rows.kind == "custom":
        near = np.abs(z - y) + digits
        return tuple(np.sqrt(np.bincount(rows.node, r**2)) for r in (z - y, near))
    with np.errstate(over="ignore"):
        value, *near = (_SCALAR[rows.kind](z + s * digits, y, p) for s in (0, 1, -1))
    # The larger of both: at a kink one side may not change.
    further = np.where(np.abs(near[0] - value) > np.abs(near[1] - value), *near)
    return rows.share * value, rows.share * further


def _values_of_classes(rows: Rows, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of rows with a score for each class: log-losses of their own ones."""
    W = at.reshape(len(at), rows.X.shape[1], -1)
    z = np.einsum("rp,rpk->rk", rows.X, W)
    digits = 8 * EPS * np.einsum("rp,rpk->rk", np.abs(rows.X), np.abs(W))
    own = rows.y[:, None] == np.arange(z.shape[1])

    def value(z: np.ndarray) -> np.ndarray:
        return np.logaddexp.reduce(z - np.sum(z * own, axis=1, keepdims=True), axis=1)

    return rows.share * value(z), rows.share * value(z + np.where(own, -digits, digits))


def _huber(z: np.ndarray, y: np.ndarray, delta: float) -> np.ndarray:
    r = np.abs(z - y)
    return np.where(r <= delta, r**2, 2 * delta * r - delta**2)


_SCALAR: dict[str, Callable[..., np.ndarray]] = {
    "squared": lambda z, y, p: (z - y) ** 2,
    "huber": _huber,
    "pseudohuber": lambda z, y, p: (z - y) ** 2 / (1 + np.hypot(1, (z - y) / p)),
    "absolute": lambda z, y, p: np.abs(z - y),
    "quantile": lambda z, y, p: np.maximum(p * (y - z), (p - 1) * (y - z)),
    "hinge": lambda z, y, p: np.maximum(0.0, 1 - y * z),
    # Of labels 0 and 1; not log(1 + exp(z)) - y z, whose digits cancel where all is separated.
    "logistic": lambda z, y, p: np.logaddexp(0, (1 - 2 * y) * z),
    "poisson": lambda z, y, p: np.exp(z) - y * z,
}


def _extra_values(extra: Extra, w: np.ndarray) -> np.ndarray:
    if extra.kind == "ridge":
        return 0.5 * extra.values[0] * (w**2).sum(axis=1)
    return extra.values[0] * np.abs(w).sum(axis=1) if extra.kind == "l1" else np.zeros(1)


def _penalty_values(penalty: str | tuple[str, Any], v: np.ndarray) -> np.ndarray:
    if penalty == "squared":
        return 0.5 * (v**2).sum(axis=1)
    if isinstance(penalty, str):
        order = {"l1": 1, "l2": 2, "linf": np.inf}[penalty]
        return np.linalg.norm(v, order, axis=1)
    kind, parameter = penalty
    if kind == "quadratic":
        return 0.5 * np.einsum("ej,jk,ek->e", v, parameter, v)
    if kind == "pnorm":
        return np.linalg.norm(v, parameter, axis=1)
    return np.linalg.norm(v, axis=1) + 0.5 * np.abs(v).sum(axis=1)


def feasible(instance: Instance, w: np.ndarray) -> np.ndarray:
    """Return the point nearest to w where all constraints hold, but for rounding."""
    w = w.copy()
    for extra in instance.extras:
        if extra.kind == "box":
            w[extra.node] = np.clip(w[extra.node], *extra.values)
        elif extra.kind == "simplex":
            w[extra.node] = [_on_simplex(v, extra.values[0]) for v in w[extra.node]]
    return w


def _on_simplex(v: np.ndarray, total: float) -> np.ndarray:
    falling = np.sort(v)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(v) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.maximum(v - shift, 0.0)


def violation(instance: Instance, w: np.ndarray) -> float:
    """Return how far w is from where all constraints hold."""
    return float(np.abs(feasible(instance, w) - w).max())


def model(instance: Instance) -> tuple[cp.Problem, cp.Variable]:
    """Return the instance as somebody writes it in CVXPY, vectorized, and its variable (n, d)."""
    w = cp.Variable((instance.n, instance.dim))
    flat = cp.reshape(w, (instance.n * instance.dim,), order="C")
    costs = [_row_cost(rows, w, flat) for rows in instance.rows]
    constraints: list[cp.Constraint] = []
    for extra in instance.extras:
        cost, more = _extra_model(extra, w[extra.node, :])
        costs.append(cost)
        constraints += more
    if len(instance.edges):
        costs.append(instance.lam * _variation(instance, w))
    return cp.Problem(cp.Minimize(sum(costs)), constraints), w


def _row_cost(rows: Rows, w: cp.Variable, flat: cp.Expression) -> cp.Expression:
    if rows.kind == "point":
        return cp.sum_squares(w[rows.node, :] - rows.y)
    if rows.kind == "multinomial":
        return _cost_of_classes(rows, flat)
    n_rows, d = rows.X.shape
    columns = rows.node[:, None] * d + np.arange(d)
    starts = np.arange(0, n_rows * d + 1, d)
    operator = sp.csr_array((rows.X.ravel(), columns.ravel(), starts), (n_rows, flat.size))
    z, c, y, p = operator @ flat, rows.share, rows.y, rows.parameter
    if rows.kind == "custom":
        return sum(cp.norm((z - y)[rows.node == i], 2) for i in np.unique(rows.node))
    if rows.kind == "squared":
        return cp.sum_squares(cp.multiply(np.sqrt(c), z - y))
    return c @ _EXPRESSIONS[rows.kind](z, y, p)


def _cost_of_classes(rows: Rows, flat: cp.Expression) -> cp.Expression:
    (n_rows, p), K = rows.X.shape, int(rows.parameter)
    first = (rows.node[:, None] * p + np.arange(p)) * K
    columns = first[:, None, :] + np.arange(K)[:, None]
    values = np.broadcast_to(rows.X[:, None, :], columns.shape)
    starts = np.arange(0, values.size + 1, p)
    operator = sp.csr_array((values.ravel(), columns.ravel(), starts), (n_rows * K, flat.size))
    z = cp.reshape(operator @ flat, (n_rows, K), order="C")
    own = (rows.y[:, None] == np.arange(K)).astype(float)
    return rows.share @ (cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(own, z), axis=1))


_EXPRESSIONS: dict[str, Callable[..., cp.Expression]] = {
    "huber": lambda z, y, p: cp.huber(z - y, p),
    "pseudohuber": lambda z, y, p: (
        p**2 * (cp.norm(cp.vstack([np.ones(len(y)), (z - y) / p]), 2, axis=0) - 1)
    ),
    "absolute": lambda z, y, p: cp.abs(z - y),
    "quantile": lambda z, y, p: cp.maximum(p * (y - z), (p - 1) * (y - z)),
    "hinge": lambda z, y, p: cp.pos(1 - cp.multiply(y, z)),
    "logistic": lambda z, y, p: cp.logistic(z) - cp.multiply(y, z),
    "poisson": lambda z, y, p: cp.exp(z) - cp.multiply(y, z),
}


def _extra_model(extra: Extra, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
    if extra.kind == "ridge":
        return 0.5 * extra.values[0] * cp.sum_squares(w), []
    if extra.kind == "l1":
        return extra.values[0] * cp.sum(cp.abs(w)), []
    if extra.kind == "simplex":
        return cp.Constant(0.0), [w >= 0, cp.sum(w, axis=1) == extra.values[0]]
    lower, upper = extra.values
    return cp.Constant(0.0), [w >= lower, *([w <= upper] if np.isfinite(upper) else [])]


def _variation(instance: Instance, w: cp.Variable) -> cp.Expression:
    v, a, penalty = w[instance.edges[:, 0], :] - w[instance.edges[:, 1], :], instance.weights, ""
    if isinstance(instance.penalty, str):
        penalty = instance.penalty
    if penalty == "squared":
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(a)[:, None], v))
    if penalty:
        return a @ cp.norm(v, {"l1": 1, "l2": 2, "linf": "inf"}[penalty], axis=1)
    kind, parameter = instance.penalty
    if kind == "quadratic":
        values, vectors = np.linalg.eigh(parameter)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(a)[:, None], v @ root))
    if kind == "pnorm":
        # CVXPY has no rows of p-norms but for p = 2.
        return sum(a[e] * cp.pnorm(v[e, :], parameter) for e in range(len(a)))
    return a @ (cp.norm(v, 2, axis=1) + 0.5 * cp.norm(v, 1, axis=1))


@dataclass
class Answer:
    """What a conic solver made of the model, in CPU seconds."""

    status: str
    w: np.ndarray | None = None
    seconds: float = np.nan  # set-up and solution, of the solver itself
    modelling: float = np.nan  # what CVXPY takes before and after


def solve(built: tuple[cp.Problem, cp.Variable], solver: str, **options: Any) -> Answer:
    """Solve a model, with the times of CVXPY and of the solver apart; never raises."""
    problem, w = built
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, chain, inverse = problem.get_problem_data(solver, solver_opts={})
            handed = time.process_time()
            raw = chain.solve_via_data(problem, data, False, False, options)
            done = time.process_time()
            problem.unpack_results(raw, chain, inverse)
    except Exception as error:  # whatever goes wrong there: the next solver has its turn
        return Answer(f"failed: {type(error).__name__}: {error}"[:120])
    found = None if w.value is None or not np.isfinite(w.value).all() else np.asarray(w.value)
    modelling = handed - start + time.process_time() - done
    return Answer(str(problem.status), found, done - handed, modelling)
