"""An instance of the fuzz as plain arrays, from which each model of it is made on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

import gtvcvx as gtv
from gtvcvx import losses

# What the parameter of a kind of loss is called where users write it.
PARAMETERS = {
    "huber": "delta", "pseudohuber": "delta", "quantile": "level", "multinomial": "n_classes"
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Data points of one kind of loss: the loss of a node is the mean over its rows.

    With weights it is the weighted mean, times a factor of the node.

    Rows of kind "multinomial" have p features and one of K classes each, d = p K.

    Two kinds are no means: "point", (y_r - w_i)^2 summed with a row of y for each node, and
    "custom", the norm ||X w - y||_2 of the rows of a node, which users write with CVXPY.
    """

    kind: str
    node: np.ndarray  # (N,), grouped by node
    X: np.ndarray  # (N, d); for points (N, 0), with classes (N, p)
    y: np.ndarray  # (N,); for points (N, d)
    parameter: float = np.nan
    weight: np.ndarray | None = None  # (N,), > 0
    factor: np.ndarray | None = None  # (N,), > 0, equal at the rows of a node

    def by_node(self) -> list[tuple[int, np.ndarray]]:
        """Return each node with the numbers of its rows."""
        nodes, first = np.unique(self.node, return_index=True)
        parts = np.split(np.arange(len(self.node)), first[1:])
        return [(int(i), rows) for i, rows in zip(nodes, parts, strict=True)]

    @property
    def share(self) -> np.ndarray:
        """What each row counts: one over the number of rows of its node, without weights, (N,)."""
        if self.weight is None or self.factor is None:
            return 1.0 / np.bincount(self.node)[self.node]
        return self.factor * self.weight / np.bincount(self.node, self.weight)[self.node]


@dataclass(frozen=True)
class Extra:
    """A regularizer or constraint of nodes: "ridge" (mu), "l1" (kappa), "box", "simplex"."""

    kind: str
    node: np.ndarray
    values: tuple[float, ...]


@dataclass(frozen=True)
class Instance:
    """An instance, and the words by which the report groups it."""

    name: str
    loss: str
    shape: str
    scale: str
    n: int
    dim: int
    edges: np.ndarray  # (m, 2)
    weights: np.ndarray  # (m,)
    penalty: str | tuple[str, Any]  # a name, ("pnorm", p), ("quadratic", Q) or ("custom", None)
    lam: float
    rows: list[Rows] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)

    @property
    def penalty_name(self) -> str:
        return self.penalty if isinstance(self.penalty, str) else self.penalty[0]

    @property
    def exact(self) -> bool:
        """Whether the exact kernel has rules for everything in it."""
        kinds = {rows.kind for rows in self.rows}
        return "custom" not in kinds and self.penalty_name != "custom"

    def problem(self) -> gtv.GTVProblem:
        """Return the instance as a user of gtvcvx writes it."""
        parts: dict[int, list[Any]] = {}
        for rows in self.rows:
            for i, at in rows.by_node():
                parts.setdefault(i, []).append(_loss(rows, at))
        for extra in self.extras:
            for i in extra.node:
                parts.setdefault(int(i), []).append(EXTRAS[extra.kind](*extra.values))
        given = [_sum(parts.get(i, [])) for i in range(self.n)]
        graph = gtv.EmpiricalGraph(self.n, self.edges, self.weights)
        return gtv.GTVProblem(graph, given, _penalty(self.penalty), self.lam)


def _sum(parts: list[Any]) -> Any:
    if not parts:
        return gtv.ZeroLoss()
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _custom(X: np.ndarray, y: np.ndarray) -> losses.CvxpyLoss:
    return losses.CvxpyLoss(lambda w: cp.norm(X @ w - y, 2), dim=X.shape[1])


_LOSSES: dict[str, Callable[..., Any]] = {
    "squared": gtv.SquaredLoss,
    "huber": losses.HuberLoss,
    "pseudohuber": losses.PseudoHuberLoss,
    "absolute": losses.AbsoluteLoss,
    "quantile": losses.QuantileLoss,
    "hinge": losses.HingeLoss,
    "logistic": losses.LogisticLoss,
    "poisson": losses.PoissonLoss,
    "multinomial": losses.MultinomialLogisticLoss,
    "custom": _custom,
}
EXTRAS: dict[str, Callable[..., Any]] = {
    "ridge": losses.Ridge,
    "l1": losses.L1,
    "box": losses.Box,
    "simplex": losses.Simplex,
}


def _loss(rows: Rows, at: np.ndarray) -> Any:
    """Return the loss of one node, whose rows have these numbers."""
    kind, X, y = rows.kind, rows.X[at], rows.y[at]
    if kind == "point":
        return losses.PointLoss(y[0])
    given: dict[str, Any] = {PARAMETERS[kind]: rows.parameter} if kind in PARAMETERS else {}
    if kind == "multinomial":
        given, y = {"n_classes": int(rows.parameter)}, y.astype(int)
    if rows.weight is None or rows.factor is None:
        return _LOSSES[kind](X, y, **given)
    return rows.factor[at[0]] * _LOSSES[kind](X, y, sample_weight=rows.weight[at], **given)


def _penalty(penalty: str | tuple[str, Any]) -> Any:
    if isinstance(penalty, str):
        return penalty
    kind, value = penalty
    if kind == "pnorm":
        return gtv.PNorm(value)
    if kind == "quadratic":
        return gtv.Quadratic(value)
    return gtv.CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True)
