"""The loss of one node: what it offers, losses known by their plain data, and their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx.losses.batched._base import BatchedLoss
from gtvcvx.losses.batched._factors import positive_factor
from gtvcvx.losses.batched._from_terms import composite, multinomial, parts_of_terms
from gtvcvx.losses.batched._quadratic import BatchedQuadratic
from gtvcvx.losses.batched._stacked import StackedLoss
from gtvcvx.losses.batched._terms import (
    FIELDS,
    MULTINOMIAL,
    QUADRATIC_KINDS,
    Term,
    fields_of,
    merged,
    multiplied,
)
from verify._display import COLUMNS, clipped, few


class Loss(ABC):
    """Convex loss of one node. Subclasses hold the data and say how many of them form a batch.

    ``w``, ``s`` and ``v`` are vectors of length d here; anything else, NaN and infinity are refused
    by name (ValueError, TypeError).
    """

    dim: int | None  # d, or None where any dimension fits
    convex = True  # what federated systems ask of a local model

    @classmethod
    @abstractmethod
    def batch(cls, losses: Sequence[Any], dim: int) -> BatchedLoss:
        """Join losses of this class and of dimension dim, one per node, into a batch."""

    @property
    def kind(self) -> Hashable:
        """What losses have in common that are joined in one batch."""
        return type(self)

    def placed(self, node: str, dim: int) -> Loss:
        """Return the loss as it stands at a node, by whose name errors may call it."""
        return self

    def __add__(self, other: Loss) -> SumLoss:
        """Sum of two losses, regularizers or constraints of one node."""
        return SumLoss([self, other]) if isinstance(other, Loss) else NotImplemented

    # Numbers and arrays of NumPy leave products with losses to the losses.
    __array_ufunc__ = None

    def __mul__(self, factor: float) -> Loss:
        """Return the loss times a number > 0; constraints stay as they are.

        Raises
        ------
        TypeError, ValueError
            The factor is not a finite number > 0.
        """
        return self._times(positive_factor(factor))

    __rmul__ = __mul__

    def _times(self, factor: float) -> Loss:
        return MultipliedLoss(self, factor)

    def _alone(self, x: ArrayLike, name: str) -> tuple[BatchedLoss, FloatArray]:
        vector = finite_array(x, name, 1)
        if len(vector) != self.dim and (self.dim is not None or not len(vector)):
            expected = "d >= 1" if self.dim is None else self.dim
            raise ValueError(
                f"{name}: a vector of length {expected} is expected, got {len(vector)}"
            )
        return type(self).batch([self], len(vector)), vector[None, :]

    def value(self, w: ArrayLike) -> float:
        """Loss L(w)."""
        batch, row = self._alone(w, "w")
        return float(batch.value(row)[0])

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Gradient (or a subgradient) of L at w, shape (d,)."""
        batch, row = self._alone(w, "w")
        return batch.gradient(row)[0]

    def prox(self, v: ArrayLike, tau: float) -> FloatArray:
        """Proximal point ``argmin_z L(z) + ||z - v||^2 / (2 tau)``, shape (d,), for tau > 0."""
        batch, row = self._alone(v, "v")
        if not (np.isfinite(tau) and tau > 0):
            raise ValueError(f"tau: a positive finite number is expected, got {tau}")
        return batch.prox(row, np.array([float(tau)]))[0]

    def conjugate(self, s: ArrayLike, atol: float = 1e-9) -> float:
        """Conjugate L*(s); +inf if s is farther than atol >= 0 from its domain."""
        batch, row = self._alone(s, "s")
        if not atol >= 0:
            raise ValueError(f"atol: a number >= 0 is expected, got {atol}")
        return float(batch.conjugate(row, np.array([float(atol)]))[0])

    def everywhere(self, n_nodes: int, dim: int | None = None) -> StackedLoss:
        """Return the same loss at n_nodes nodes, as a stacked loss that others can be added to.

        Parameters
        ----------
        n_nodes : int
        dim : int, optional
            Dimension d; needed where the loss fits any.
        """
        for name, value in (("n_nodes", n_nodes), ("dim", self.dim if dim is None else dim)):
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}: a positive integer is expected, got {value!r}")
        d = int(dim or self.dim or 0)
        if self.dim not in (None, d):
            raise ValueError(f"dim: {self.dim} is expected, got {d}")
        return self._repeated(int(n_nodes), d).completed(n_nodes)

    def _repeated(self, n_nodes: int, dim: int) -> StackedLoss:
        """Return this loss at all nodes."""
        batch = type(self).batch([self] * n_nodes, dim)
        return StackedLoss([(np.arange(n_nodes), batch)], dim)


class PlainLoss(Loss):
    """A loss that is a sum of terms of plain data."""

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the terms, at node 0."""
        raise NotImplementedError

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Kinds of the terms."""
        return frozenset(str(term["kind"]) for term in self.plain_terms(self.dim or 1))

    @property
    def kind(self) -> Hashable:
        """Quadratic sums make one batch, those with several classes another, all others a third."""
        return PlainLoss, self.kinds <= QUADRATIC_KINDS, MULTINOMIAL in self.kinds

    @classmethod
    def batch(cls, losses: Sequence[PlainLoss], dim: int) -> BatchedLoss:
        """Join losses of dimension dim and of one `kind`."""
        terms = [
            {**term, "node": np.full(len(term["node"]), i)}
            for i, loss in enumerate(losses)
            for term in loss.plain_terms(dim)
        ]
        joined = merged(terms, dim)
        kinds = {term["kind"] for term in joined}
        if kinds <= QUADRATIC_KINDS:
            return BatchedQuadratic(joined, len(losses), dim)
        of = multinomial if MULTINOMIAL in kinds else composite
        return of(joined, len(losses), dim)

    def _repeated(self, n_nodes: int, dim: int) -> StackedLoss:
        terms = []
        for term in self.plain_terms(dim):
            rows = len(term["node"])
            fields = {
                name: np.tile(term[name], (n_nodes,) + (1,) * (term[name].ndim - 1))
                for name in fields_of(term)
            }
            node = np.repeat(np.arange(n_nodes), rows)
            terms.append({"kind": term["kind"], "node": node, **fields})
        return StackedLoss(parts_of_terms(terms, dim), dim)


class SumLoss(PlainLoss):
    """Sum of losses, regularizers and constraints of one node; written ``a + b``.

    Parameters
    ----------
    losses : sequence of Loss

    Raises
    ------
    TypeError
        A loss cannot be added up: one that is given as a function.
    ValueError
        Dimensions differ, or constraints contradict each other.
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.losses: list[Loss] = []
        for loss in losses:
            self.losses += loss.losses if isinstance(loss, SumLoss) else [loss]
        dims = {loss.dim for loss in self.losses if loss.dim is not None}
        if len(dims) > 1:
            raise ValueError(f"losses: one dimension d is expected, got {sorted(dims)}")
        self.dim = dims.pop() if dims else None
        for loss in self.losses:
            for term in _terms(loss, self.dim or 1):
                if term["kind"] not in FIELDS:
                    raise TypeError(
                        f"losses: nothing can be added to {loss!r}; write the sum into it"
                    )
        if self.dim is not None:
            self.batch([self], self.dim)

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the terms of all summands, at node 0."""
        return merged([term for loss in self.losses for term in _terms(loss, dim)], dim)

    def __repr__(self) -> str:
        parts = [repr(self.losses[k]) if k is not None else "..." for k in few(len(self.losses))]
        return clipped(" + ".join(parts), COLUMNS)


class MultipliedLoss(PlainLoss):
    """A loss of one node times a number; written ``factor * loss``.

    Parameters
    ----------
    loss : Loss
        Known by its plain data.
    factor : float
        > 0.
    """

    def __init__(self, loss: Loss, factor: float) -> None:
        self.loss, self.factor = loss, factor
        self.dim = loss.dim
        self.plain_terms(self.dim or 1)

    def _times(self, factor: float) -> Loss:
        return self.loss * (factor * self.factor)

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the terms of the loss with the factor in their weights, at node 0."""
        return [multiplied(term, np.array([self.factor])) for term in _terms(self.loss, dim)]

    def __repr__(self) -> str:
        several = isinstance(self.loss, SumLoss) and len(self.loss.losses) > 1
        inner = f"({self.loss!r})" if several else repr(self.loss)
        return clipped(f"{self.factor!r} * {inner}", COLUMNS)


def _terms(loss: Loss, dim: int) -> list[Term]:
    if isinstance(loss, PlainLoss):
        return loss.plain_terms(dim)
    return type(loss).batch([loss], dim).terms(np.zeros(1, dtype=np.int64))
