"""Losses of the catalogue by name, and beside each a twin that is written to be read.

``from _catalogue_cases import CASES, problem`` works in the test files of this folder and below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

import gtvcvx as gtv
from gtvcvx.losses import BatchedLoss, Loss

KINDS = (
    "squared",
    "logistic",
    "huber",
    "poisson",
    "absolute",
    "quantile",
    "hinge",
    "pseudohuber",
)
DELTA, LEVEL = 0.4, 0.8
_CLASSES: dict[str, Any] = {
    "squared": gtv.SquaredLoss,
    "logistic": gtv.LogisticLoss,
    "huber": lambda X, y: gtv.HuberLoss(X, y, DELTA),
    "pseudohuber": lambda X, y: gtv.PseudoHuberLoss(X, y, DELTA),
    "poisson": gtv.PoissonLoss,
    "absolute": gtv.AbsoluteLoss,
    "quantile": lambda X, y: gtv.QuantileLoss(X, y, LEVEL),
    "hinge": gtv.HingeLoss,
}


def psi(kind: str, z: float, y: float) -> float:
    """What a data point contributes, by the formula in the class's docstring."""
    r = z - y
    if kind == "squared":
        return r**2
    if kind == "logistic":
        return math.log(1.0 + math.exp(z)) - y * z
    if kind == "huber":
        return r**2 if abs(r) <= DELTA else 2.0 * DELTA * abs(r) - DELTA**2
    if kind == "pseudohuber":
        return DELTA**2 * (math.sqrt(1.0 + (r / DELTA) ** 2) - 1.0)
    if kind == "poisson":
        return math.exp(z) - y * z
    if kind == "absolute":
        return abs(r)
    if kind == "quantile":
        return max(LEVEL * -r, (LEVEL - 1.0) * -r)
    assert kind == "hinge"
    return max(0.0, 1.0 - y * z)


def psi_model(kind: str, z: cp.Expression, y: np.ndarray) -> cp.Expression:
    """The same for all data points of a node, in CVXPY."""
    m = len(y)
    return {
        "squared": lambda: cp.sum_squares(z - y) / m,
        "logistic": lambda: (cp.sum(cp.logistic(z)) - y @ z) / m,
        "huber": lambda: cp.sum(cp.huber(z - y, DELTA)) / m,
        "pseudohuber": lambda: sum(
            DELTA**2 * (cp.norm(cp.hstack([1.0, (z[r] - y[r]) / DELTA])) - 1.0) / m
            for r in range(m)
        ),
        "poisson": lambda: (cp.sum(cp.exp(z)) - y @ z) / m,
        "absolute": lambda: cp.norm1(z - y) / m,
        "quantile": lambda: cp.sum(cp.maximum(LEVEL * (y - z), (LEVEL - 1) * (y - z))) / m,
        "hinge": lambda: cp.sum(cp.pos(1 - cp.multiply(y, z))) / m,
    }[kind]()


def targets(kind: str, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets that a kind of loss takes, for signals z."""
    noisy = z + 0.3 * rng.standard_normal(len(z))
    if kind == "logistic":
        return (noisy > 0).astype(float)
    if kind == "hinge":
        return np.where(noisy > 0, 1.0, -1.0)
    if kind == "poisson":
        return rng.poisson(np.exp(np.clip(z, -2.0, 1.5))).astype(float)
    return noisy


@dataclass
class Twin:
    """One node's loss from its formula."""

    dim: int
    rows: list[tuple[str, np.ndarray, np.ndarray]] = field(default_factory=list)
    point: np.ndarray | None = None
    ridge: Any = 0.0
    kappa: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    total: float | None = None

    def value(self, w):
        out = sum(
            sum(psi(kind, float(x @ w), t) for x, t in zip(X, y, strict=True)) / len(y)
            for kind, X, y in self.rows
        )
        if self.point is not None:
            out += sum((w - self.point) ** 2)
        out += sum(np.broadcast_to(self.ridge, self.dim) * w**2) / 2
        out += sum(np.broadcast_to(self.kappa, self.dim) * abs(w))
        return out

    def near(self, w):
        """A point of the domain."""
        if self.total is None:
            return np.clip(w, self.lower, self.upper)
        middle = self.total / self.dim
        beside = np.abs(w) * self.total / np.abs(w).sum() - middle
        over = np.max(beside / (np.broadcast_to(self.upper, self.dim) - middle))
        return middle + beside / max(1.0, 1.01 * over)

    def model(self, w):
        cost = sum(psi_model(kind, X @ w, y) for kind, X, y in self.rows) + cp.Constant(0.0)
        if self.point is not None:
            cost += cp.sum_squares(w - self.point)
        cost += cp.sum(cp.multiply(np.broadcast_to(self.ridge, self.dim) / 2, w**2))
        cost += cp.sum(cp.multiply(np.broadcast_to(self.kappa, self.dim), cp.abs(w)))
        constraints = []
        for bound, sign in ((self.lower, -1), (self.upper, 1)):
            bounds = np.broadcast_to(bound, self.dim)
            finite = np.flatnonzero(np.isfinite(bounds))
            if finite.size:
                constraints.append(sign * w[finite] <= sign * bounds[finite])
        if self.total is not None:
            constraints += [w >= 0, cp.sum(w) == self.total]
        return cost, constraints

    def loss(self) -> Loss:
        """The library's loss."""
        parts: list[Loss] = [_CLASSES[kind](X, y) for kind, X, y in self.rows]
        if self.point is not None:
            parts.append(gtv.PointLoss(self.point))
        if np.any(self.ridge):
            parts.append(gtv.Ridge(self.ridge))
        if np.any(self.kappa):
            parts.append(gtv.L1(self.kappa))
        if np.any(np.isfinite(self.lower)) or np.any(np.isfinite(self.upper)):
            parts.append(gtv.Box(self.lower, self.upper))
        if self.total is not None:
            parts.append(gtv.Simplex(self.total))
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out


@dataclass
class Case:
    """k losses: batched, single, and their twins."""

    losses: BatchedLoss
    singles: list[Loss]
    twins: list[Twin]

    @property
    def k(self):
        return len(self.twins)

    @property
    def d(self):
        return self.twins[0].dim

    def draw(self, rng):
        """Random feasible rows (k, d)."""
        return np.array([t.near(rng.standard_normal(self.d)) for t in self.twins])


def _rows(kinds, rng, d, counts, change=None):
    tables = []
    for kind, m in zip(kinds, counts, strict=True):
        X = rng.standard_normal((m, d))
        if change is not None:
            change(X)
        tables.append((kind, X, targets(kind, X @ rng.standard_normal(d), rng)))
    return tables


def _repeated(X):
    X[len(X) // 2 :] = X[: len(X) - len(X) // 2]


def _collinear(X):
    X[:, -1] = X[:, 0]


def _case(make, rng, k=4):
    twins = [make(rng) for _ in range(k)]
    singles = [twin.loss() for twin in twins]
    return Case(type(singles[0]).batch(singles, twins[0].dim), singles, twins)


def _plain(kind, d=3, rows=(4, 8), change=None, **terms):
    def make(rng):
        m = int(rng.integers(*rows))
        return Twin(d, _rows([kind], rng, d, [m], change), **terms)

    return lambda rng: _case(make, rng)


CASES = {
    **{kind: _plain(kind) for kind in KINDS if kind != "squared"},
    **{f"{kind}-few-rows": _plain(kind, 4, (1, 3)) for kind in KINDS if kind != "squared"},
    "logistic-ridge": _plain("logistic", ridge=0.1),
    "lasso": _plain("squared", kappa=0.2),
    "lasso-few-rows": _plain("squared", 4, (1, 3), kappa=np.array([0.0, 0.2, 0.3, 0.1])),
    "absolute-repeated": _plain("absolute", change=_repeated),
    "huber-collinear": _plain("huber", change=_collinear),
    "hinge-l1": _plain("hinge", kappa=0.1),
    "quantile-box": _plain("quantile", lower=np.array([-0.2, -np.inf, 0.0]), upper=0.5),
    "squared-nonnegative": _plain("squared", 4, (1, 3), lower=0.0),
    "huber-elastic-nonnegative": _plain("huber", ridge=0.1, kappa=0.1, lower=0.0),
    "pseudohuber-collinear": _plain("pseudohuber", change=_collinear),
    "pseudohuber-l1-box": _plain("pseudohuber", kappa=0.1, lower=-0.2, upper=0.5),
    "squared-simplex": _plain("squared", 4, (1, 3), total=1.5),
    "logistic-simplex-box": _plain("logistic", total=1.0, upper=0.6),
    "point-l1": lambda rng: _case(
        lambda rng: Twin(3, point=rng.standard_normal(3), kappa=0.5), rng
    ),
    "poisson-point-ridge": lambda rng: _case(
        lambda rng: Twin(
            2, _rows(["poisson"], rng, 2, [4]), point=rng.standard_normal(2), ridge=0.3
        ),
        rng,
    ),
    "mixed-rows": lambda rng: _case(
        lambda rng: Twin(3, _rows(["absolute", "logistic", "squared"], rng, 3, [2, 3, 1])), rng
    ),
    "l1-alone": lambda rng: _case(lambda rng: Twin(2, kappa=0.3), rng),
    "simplex-alone": lambda rng: _case(lambda rng: Twin(3, total=1.0), rng),
}


EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4))


def problem(name: str, penalty: str = "l2", lam: float = 0.1) -> gtv.GTVProblem:
    """Six nodes in a ring with a chord; two of them have no data."""
    rng = np.random.default_rng(3)
    case = CASES[name](rng)
    graph = gtv.EmpiricalGraph(6, EDGES, rng.uniform(0.5, 2.0, len(EDGES)))
    parts = [(np.array([0, 1, 3, 5]), case.losses)]
    return gtv.GTVProblem(graph, gtv.StackedLoss(parts), penalty, lam)
