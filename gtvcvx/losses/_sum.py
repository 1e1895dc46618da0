"""Losses that are known by their plain data, and their sums."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gtvcvx.losses._base import BatchedLoss, Loss
from gtvcvx.losses._composite import BatchedComposite
from gtvcvx.losses._quadratic import QUADRATIC_KINDS, BatchedQuadratic
from gtvcvx.losses._terms import FIELDS, Term, merged

if TYPE_CHECKING:
    from gtvcvx.losses._stacked import StackedLoss


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
        """Quadratic sums make one batch, all others make another."""
        return PlainLoss, self.kinds <= QUADRATIC_KINDS

    @classmethod
    def batch(cls, losses: Sequence[PlainLoss], dim: int) -> BatchedLoss:
        """Join losses of dimension dim, all of them quadratic or none."""
        terms = [
            {**term, "node": np.full(len(term["node"]), i)}
            for i, loss in enumerate(losses)
            for term in loss.plain_terms(dim)
        ]
        joined = merged(terms, dim)
        if {term["kind"] for term in joined} <= QUADRATIC_KINDS:
            return BatchedQuadratic(joined, len(losses), dim)
        return BatchedComposite(joined, len(losses), dim)

    def everywhere(self, n_nodes: int, dim: int | None = None) -> StackedLoss:
        """Return the same loss at n_nodes nodes, as a stacked loss that others can be added to.

        Parameters
        ----------
        n_nodes : int
        dim : int, optional
            Dimension d; needed where the loss fits any.
        """
        from gtvcvx.losses._data import parts_of_terms
        from gtvcvx.losses._stacked import StackedLoss

        for name, value in (("n_nodes", n_nodes), ("dim", self.dim if dim is None else dim)):
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}: a positive integer is expected, got {value!r}")
        d = int(dim or self.dim or 0)
        if self.dim not in (None, d):
            raise ValueError(f"dim: {self.dim} is expected, got {d}")
        terms = []
        for term in self.plain_terms(d):
            rows = len(term["node"])
            fields = {
                name: np.tile(term[name], (n_nodes,) + (1,) * (term[name].ndim - 1))
                for name in FIELDS[term["kind"]]
            }
            node = np.repeat(np.arange(n_nodes), rows)
            terms.append({"kind": term["kind"], "node": node, **fields})
        return StackedLoss(parts_of_terms(terms, d), d).completed(n_nodes)


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
        return " + ".join(repr(loss) for loss in self.losses)


def _terms(loss: Loss, dim: int) -> list[Term]:
    if isinstance(loss, PlainLoss):
        return loss.plain_terms(dim)
    return type(loss).batch([loss], dim).terms(np.zeros(1, dtype=np.int64))
