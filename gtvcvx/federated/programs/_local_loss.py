"""One client's convex loss, cut out of the losses of all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.losses import Loss, StackedLoss
from gtvcvx.losses.batched._base import BatchedLoss
from gtvcvx.losses.batched._from_terms import parts_of_terms
from gtvcvx.losses.batched._terms import (
    MULTINOMIAL,
    ROW_KINDS,
    WEIGHT,
    Term,
    fields_of,
    terms_by_node,
)
from gtvcvx.losses.batched._zero import BatchedZero

# h'' at most, for rows of each kind: mean of h(x.w - y), or of h(x.w, y). No entry: no bound.
_CURVATURES = {
    "squared": 2.0,
    "huber": 2.0,
    "pseudohuber": 1.0,
    "logistic": 0.25,
    MULTINOMIAL: 0.5,
}


class LocalLoss:
    """The loss of one client, with its own data and nothing of anybody else.

    Parameters
    ----------
    terms : list of dict
        Plain data of the loss, as `GTVProblem.to_data` gives them, at node 0; none for a client
        without data.
    dim : int
        d.
    batch : BatchedLoss, optional
        The loss itself, one node, where plain data cannot say it.
    """

    convex = True

    def __init__(self, terms: Sequence[Term], dim: int, batch: BatchedLoss | None = None) -> None:
        self.terms, self.dim = list(terms), dim
        self.given = batch
        self._affine: dict[float, tuple[FloatArray, FloatArray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "dim": self.dim, "given": self.given, "_affine": {}}

    def __repr__(self) -> str:
        kinds = " + ".join(term["kind"] for term in self.terms) or "no data"
        return f"LocalLoss({kinds}, {self.n_rows} rows, d = {self.dim})"

    @cached_property
    def batch(self) -> BatchedLoss:
        """The loss as a batch of one node."""
        if self.given is not None:
            return self.given
        parts = parts_of_terms(self.terms, self.dim) if self.terms else []
        return parts[0][1] if parts else BatchedZero(1, self.dim)

    @cached_property
    def _quadratic(self) -> tuple[FloatArray, FloatArray] | None:
        form = self.batch.quadratic()
        return None if form is None else (form.hessian[0], form.linear[0])

    @property
    def trivial(self) -> bool:
        """Whether the client has no data."""
        return self.batch.trivial

    @property
    def smooth(self) -> bool:
        """Whether the loss is finite and has a gradient everywhere."""
        return self.batch.smooth

    @cached_property
    def n_rows(self) -> int:
        """Number of data points; a term that has no rows counts as one."""
        rows = [len(t["node"]) for t in self.terms if t["kind"] in (*ROW_KINDS, MULTINOMIAL)]
        points = [1 for t in self.terms if t["kind"] == "point"]
        return sum(rows) + sum(points)

    def value(self, w: FloatArray) -> float:
        """Return L(w)."""
        return float(self.batch.value(w[None, :])[0])

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient of L at w, or a subgradient."""
        if self._quadratic is None:
            return self.batch.gradient(w[None, :])[0]
        hessian, linear = self._quadratic
        return np.asarray(hessian @ w - linear)

    def prox(self, v: FloatArray, tau: float) -> FloatArray:
        """Return ``argmin_z L(z) + ||z - v||^2 / (2 tau)``."""
        if not self.batch.is_quadratic:
            return self.batch.prox(v[None, :], np.array([tau]))[0]
        if tau not in self._affine:
            affine = self.batch.affine_prox(np.array([tau]))
            if affine is None:
                return self.batch.prox(v[None, :], np.array([tau]))[0]
            # Algorithms keep to one or two weights.
            self._affine = {tau: (affine.matrix[0], affine.offset[0])}
        matrix, offset = self._affine[tau]
        return np.asarray(matrix @ v + offset)

    def minimizer(self) -> FloatArray:
        """Return one minimizer of L."""
        return self.batch.minimizer()[0]

    @cached_property
    def lipschitz(self) -> float:
        """Lipschitz constant of the gradient, from above; infinity where there is none."""
        if self._quadratic is not None:
            return max(float(np.linalg.eigvalsh(self._quadratic[0])[-1]), 0.0)
        return sum(_curvature(term) for term in self.terms) if self.terms else np.inf

    def quadratic_at(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return H and b of a quadratic model ``(1/2) z^T H z - b^T z`` of L with its slope at w.

        It is L itself where L is quadratic, up to a constant.

        Raises
        ------
        ValueError
            There is no such model.
        """
        form = self._quadratic
        if form is not None:
            return form
        model = self.batch.model(w[None, :])
        quadratic = None if model is None else model.quadratic()
        if quadratic is None:
            raise ValueError(f"{self!r} has no quadratic model")
        return quadratic.hessian[0], quadratic.linear[0]

    def sampled(self, rows: IntArray) -> LocalLoss:
        """Return the loss of some of the rows, repetitions included: their mean.

        Rows with weights keep them, times the share of the rows that are not taken, so that the
        loss of rows drawn at random is that of all on average.

        Raises
        ------
        ValueError
            The loss is not one of rows alone, but for terms that stay as they are.
        """
        rowwise = [term for term in self.terms if term["kind"] in (*ROW_KINDS, MULTINOMIAL)]
        if len(rowwise) != 1:
            raise ValueError("mini-batches need a loss of rows of one kind")
        (term,) = rowwise
        fields = {name: term[name][rows] for name in fields_of(term)}
        if WEIGHT in fields:
            fields[WEIGHT] = fields[WEIGHT] * (len(term["node"]) / len(rows))
        chosen = {"kind": term["kind"], "node": np.zeros(len(rows), np.int64), **fields}
        others = [other for other in self.terms if other is not term]
        return LocalLoss([chosen, *others], self.dim)


def _curvature(term: Term) -> float:
    """Lipschitz constant of the gradient of one term at node 0, from above."""
    kind = term["kind"]
    if kind in _CURVATURES:
        if WEIGHT in term:
            spread = np.linalg.norm(np.sqrt(term[WEIGHT])[:, None] * term["X"], 2) ** 2
        else:
            spread = np.linalg.norm(term["X"], 2) ** 2 / len(term["y"])
        return float(_CURVATURES[kind] * spread)
    if kind == "ridge":
        return float(np.max(term["mu"]))
    return 2.0 * float(np.max(term.get(WEIGHT, 1.0))) if kind == "point" else np.inf


def local_losses(losses: StackedLoss | Sequence[Loss], n: int, dim: int) -> list[LocalLoss]:
    """Return the loss of each of n clients by itself."""
    if not isinstance(losses, StackedLoss):
        return [_of_loss(loss, dim) for loss in losses]
    out = [LocalLoss([], dim) for _ in range(n)]
    for nodes, batch in losses.parts:
        written = batch.written()
        if written is not None:
            for i, function in zip(nodes, written, strict=True):
                out[i] = LocalLoss([], dim, type(batch)([function], [None]))  # type: ignore[call-arg]
        elif not batch.trivial:
            for loss, terms in zip(out, terms_by_node(batch.terms(nodes), n), strict=True):
                loss.terms += terms
    return out


def _of_loss(loss: Loss, dim: int) -> LocalLoss:
    batch = type(loss).batch([loss], dim)
    if batch.written() is not None:
        return LocalLoss([], dim, batch)
    return LocalLoss([] if batch.trivial else batch.terms(np.zeros(1, np.int64)), dim)


def stacked_locals(losses: Sequence[LocalLoss], dim: int) -> StackedLoss:
    """Join the losses of clients 0, 1, ... again: for observers, who see everybody's data."""
    parts: list[tuple[IntArray, BatchedLoss]] = []
    terms: list[Term] = []
    for i, loss in enumerate(losses):
        if loss.given is not None:
            parts.append((np.array([i]), loss.given))
        terms += [{**term, "node": np.full(len(term["node"]), i)} for term in loss.terms]
    return StackedLoss([*parts, *(parts_of_terms(terms, dim) if terms else [])], dim)
