"""The oracle of certificates: P(w) from its formulas, and its minimum by CVXPY and Clarabel.

It shares no code with the checkers or the builder. Values at feasible points are upper bounds of
min P, so that a proved lower bound above one of them is false whatever the accuracy of the solver.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from fractions import Fraction as F
from typing import Any

import cvxpy as cp
import numpy as np
from _texts import Document, read

CLASSES = "multinomial"
ROWS = ("squared", "huber", "pseudohuber", "absolute", "quantile", "hinge", "logistic", "poisson")
FIELDS = ("X", "y", "delta", "level", "a", "mu", "kappa", "lower", "upper", "total")
Point = list[list[F]]


class Irrational(Exception):
    """A root, an exponential or a logarithm occurs."""


def rational_data(data: Document) -> Document:
    """Return the data of a document with rational numbers in place of texts."""
    penalty = dict(data["penalty"])
    penalty |= {key: read(penalty[key]) for key in ("Q", "p") if key in penalty}
    terms = [
        {key: read(value) if key in FIELDS else value for key, value in term.items()}
        for term in data["terms"]
    ]
    numbers = {key: read(data[key]) for key in ("weights", "lam")}
    return {**data, **numbers, "penalty": penalty, "terms": terms}


class Exact:
    """Functions of rational numbers, where they are rational."""

    number = F

    @staticmethod
    def sqrt(x: F) -> F:
        root = F(math.isqrt(x.numerator), math.isqrt(x.denominator))
        if root * root != x:
            raise Irrational
        return root

    @staticmethod
    def exp(x: F) -> F:
        raise Irrational

    softplus = exp


class Floating:
    """The same of floats."""

    number, sqrt, exp = float, math.sqrt, math.exp

    @staticmethod
    def softplus(x: float) -> float:
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def parts(data: Document, w: Point, real: Any = Floating) -> list[Any]:
    """Return the summands of P at a feasible w, floats or exact rational numbers."""
    n = real.number
    rows = [[n(x) for x in row] for row in w]
    found = [x for term in data["terms"] for x in _losses(term, rows, real)]
    for (i, j), weight in zip(data["edges"], data["weights"], strict=True):
        z = [a - b for a, b in zip(rows[i], rows[j], strict=True)]
        found.append(n(data["lam"]) * n(weight) * _phi(data["penalty"], z, real))
    return found


def _phi(penalty: Document, z: list[Any], real: Any) -> Any:
    kind = penalty["kind"]
    if kind == "pnorm":
        kind = {1: "l1", 2: "l2", "inf": "linf"}.get(penalty["p"] if len(z) > 1 else 1)
    if kind == "l1":
        return sum(map(abs, z))
    if kind == "linf":
        return max(map(abs, z))
    if kind == "quadratic":
        q = penalty["Q"]
        return sum(a * real.number(q[i][j]) * b for i, a in enumerate(z)
                   for j, b in enumerate(z)) / 2  # fmt: skip
    square = sum(x * x for x in z)
    return square / 2 if kind == "squared" else real.sqrt(square)


def _losses(term: Document, w: list[list[Any]], real: Any) -> list[Any]:
    kind, n, found = term["kind"], real.number, []
    count = Counter(term["node"])
    for k, i in enumerate(term["node"]):
        entry = {key: _numbers(term[key][k], n) for key in FIELDS if key in term}
        if kind in ROWS:
            z = sum(a * b for a, b in zip(entry["X"], w[i], strict=True))
            extra = entry.get("delta", entry.get("level"))
            found.append(_summand(kind, z, entry["y"], extra, real) / count[i])
        elif kind == CLASSES:
            found.append(_class_summand(entry, w[i], real) / count[i])
        elif kind == "point":
            found += [(x - a) ** 2 for x, a in zip(w[i], entry["a"], strict=True)]
        elif kind == "ridge":
            found += [m * x * x / 2 for x, m in zip(w[i], _wide(entry["mu"], w[i]), strict=True)]
        elif kind == "l1":
            kappa = _wide(entry["kappa"], w[i])
            found += [m * abs(x) for x, m in zip(w[i], kappa, strict=True)]
    return found


def _numbers(value: Any, n: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v, n) for v in value]
    return value if isinstance(value, str) else n(value)


def _wide(value: Any, row: list[Any]) -> list[Any]:
    return value if isinstance(value, list) else [value] * len(row)


def _class_summand(entry: dict[str, Any], w: list[Any], real: Any) -> Any:
    """Return ln(sum of exp z_k) - z_y, one class after the other."""
    K, y = len(w) // len(entry["X"]), int(entry["y"])
    z = [sum(a * b for a, b in zip(entry["X"], w[k::K], strict=True)) for k in range(K)]
    total = 0 * z[y]
    for k, x in enumerate(z):
        if k != y:
            total += real.softplus(x - z[y] - total)
    return total


def _summand(kind: str, z: Any, y: Any, extra: Any, real: Any) -> Any:
    t = z - y
    if kind == "squared" or (kind == "huber" and abs(t) <= extra):
        return t * t
    if kind == "huber":
        return 2 * extra * abs(t) - extra * extra
    if kind == "pseudohuber":
        return extra * (real.sqrt(extra * extra + t * t) - extra)
    if kind == "absolute":
        return abs(t)
    if kind == "quantile":
        return max(-extra * t, (1 - extra) * t)
    if kind == "hinge":
        return max(0 * z, 1 - y * z)
    return (real.softplus(z) if kind == "logistic" else real.exp(z)) - y * z


def feasible(data: Document, w: Point) -> bool:
    """Whether w keeps its boxes and simplices, exactly."""
    for term in data["terms"]:
        for k, i in enumerate(term["node"]):
            if term["kind"] == "simplex" and (min(w[i]) < 0 or sum(w[i]) != term["total"][k]):
                return False
            if term["kind"] == "box":
                ends = zip(w[i], term["lower"][k], term["upper"][k], strict=True)
                if any((a != "-inf" and x < a) or (b != "inf" and x > b) for x, a, b in ends):
                    return False
    return True


def semidefinite(q: list[list[F]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, by exact elimination."""
    rest = [list(row) for row in q]
    for k in range(len(rest)):
        pivot = rest[k][k]
        if pivot < 0 or (pivot == 0 and any(rest[k][k:])):
            return False
        for i in range(k + 1, len(rest)) if pivot else ():
            factor = rest[i][k] / pivot
            rest[i] = [a - factor * b for a, b in zip(rest[i], rest[k], strict=True)]
    return True


def minimizer(data: Document) -> Point | None:
    """Return a nearly optimal feasible point, None where there is none or the solver fails."""
    penalty = data["penalty"]
    if penalty["kind"] == "quadratic" and not semidefinite(penalty["Q"]):
        return None
    w = cp.Variable((data["n_nodes"], data["dim"]))
    cost, bounds = [], []
    for term in data["terms"]:
        if term["node"]:
            _model(term, w, cost, bounds)
    if data["edges"]:
        head, tail = np.array(data["edges"]).T
        cap = np.array([float(data["lam"]) * float(a) for a in data["weights"]])
        cost.append(_variation(penalty, w[head] - w[tail], cap))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.hstack([0.0, *cost]))), bounds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    except (cp.SolverError, ValueError):
        return None
    if w.value is None or not np.isfinite(w.value).all():
        return None
    found = _projected(data, [[F(x) for x in row] for row in w.value.tolist()])
    return found if feasible(data, found) else None


def _projected(data: Document, w: Point) -> Point:
    """Move a point, which is feasible up to rounding, onto its boxes and simplices."""
    for term in data["terms"]:
        for k, i in enumerate(term["node"]):
            if term["kind"] == "box":
                ends = zip(w[i], term["lower"][k], term["upper"][k], strict=True)
                w[i] = [x if b == "inf" else min(x, b) for x, b in (
                    (x if a == "-inf" else max(x, a), b) for x, a, b in ends)]  # fmt: skip
            elif term["kind"] == "simplex":
                w[i] = [max(x, F(0)) for x in w[i]]
                top = w[i].index(max(w[i]))
                w[i][top] += term["total"][k] - sum(w[i])
    return w


def _variation(penalty: Document, z: Any, cap: Any) -> Any:
    kind = penalty["kind"]
    if kind == "pnorm":
        kind = {1: "l1", 2: "l2", "inf": "linf"}[penalty["p"] if z.shape[1] > 1 else 1]
    if kind in ("l1", "l2", "linf"):
        return cap @ cp.norm(z, {"l1": 1, "l2": 2, "linf": np.inf}[kind], axis=1)
    root = np.eye(z.shape[1])
    if kind == "quadratic":
        values, vectors = np.linalg.eigh(np.array(penalty["Q"], dtype=float))
        root = vectors * np.sqrt(np.maximum(values, 0))
    return cp.sum_squares(cp.multiply(np.sqrt(cap / 2)[:, None], z @ root))


def _model(term: Document, w: Any, cost: list[Any], bounds: list[Any]) -> None:
    kind, at = term["kind"], w[np.array(term["node"])]
    entry = {
        key: np.array(_numbers(term[key], float), dtype=float) for key in FIELDS if key in term
    }
    for key in ("mu", "kappa"):
        if key in entry and entry[key].ndim == 1:
            entry[key] = np.repeat(entry[key][:, None], w.shape[1], axis=1)
    if kind in ROWS:
        count = Counter(term["node"])
        m = np.array([count[i] for i in term["node"]], dtype=float)
        z = cp.sum(cp.multiply(entry["X"], at), axis=1)
        cost.append((1 / m) @ _row_model(kind, z, entry))
    elif kind == CLASSES:
        count = Counter(term["node"])
        m = np.array([count[i] for i in term["node"]], dtype=float)
        K = w.shape[1] // entry["X"].shape[1]
        z = [cp.sum(cp.multiply(entry["X"], at[:, k::K]), axis=1) for k in range(K)]
        own = [(entry["y"] == k) / m for k in range(K)]
        cost.append((1 / m) @ cp.log_sum_exp(cp.vstack(z), axis=0))
        cost += [-a @ b for a, b in zip(own, z, strict=True)]
    elif kind == "point":
        cost.append(cp.sum_squares(at - entry["a"]))
    elif kind == "ridge":
        cost.append(cp.sum_squares(cp.multiply(np.sqrt(entry["mu"] / 2), at)))
    elif kind == "l1":
        cost.append(cp.sum(cp.multiply(entry["kappa"], cp.abs(at))))
    elif kind == "simplex":
        bounds.extend([at >= 0, cp.sum(at, axis=1) == entry["total"]])
    else:
        for name, sign in (("lower", -1), ("upper", 1)):
            where = np.nonzero(np.isfinite(entry[name]))
            if len(where[0]):
                bounds.append(sign * at[where] <= sign * entry[name][where])


def _row_model(kind: str, z: Any, entry: dict[str, Any]) -> Any:
    y = entry["y"]
    t = z - y
    if kind == "squared":
        return cp.square(t)
    if kind == "huber":
        return cp.multiply(entry["delta"] ** 2, cp.huber(cp.multiply(1 / entry["delta"], t), 1))
    if kind == "pseudohuber":
        one = cp.vstack([np.ones(len(y)), cp.multiply(1 / entry["delta"], t)])
        return cp.multiply(entry["delta"] ** 2, cp.norm(one, 2, axis=0) - 1)
    if kind == "absolute":
        return cp.abs(t)
    if kind == "quantile":
        q = entry["level"]
        return cp.maximum(cp.multiply(-q, t), cp.multiply(1 - q, t))
    if kind == "hinge":
        return cp.pos(1 - cp.multiply(y, z))
    return (cp.logistic(z) if kind == "logistic" else cp.exp(z)) - cp.multiply(y, z)
