"""The losses of all nodes of a graph, grouped by kind so that every operation is batched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, integer_array
from gtvcvx._deadline import look
from gtvcvx._lazy import cp
from gtvcvx.losses.batched._base import (
    AffineProx,
    BatchedLoss,
    QuadraticForm,
    ScalarForm,
    ThinForm,
)
from gtvcvx.losses.batched._doubt import Doubt
from gtvcvx.losses.batched._factors import node_factors
from gtvcvx.losses.batched._from_terms import parts_of_terms
from gtvcvx.losses.batched._terms import FIELDS, Term, checked, merged, multiplied
from gtvcvx.losses.batched._thin import joined
from gtvcvx.losses.batched._zero import BatchedZero


class Repeatable(Protocol):
    """A loss of one node that can be that of all."""

    def everywhere(self, n_nodes: int, dim: int | None = None) -> StackedLoss:
        """Return the same loss at n_nodes nodes."""


class StackedLoss:
    """Losses of the n nodes of a graph, ``sum_i L_i(w_i)``, as batches of one kind each.

    Made by ``SquaredLoss.stack``, ``SquaredLoss.from_rows``, ``PointLoss.stack`` and so on, or
    from single losses by `GTVProblem`. Two of them can be added, node by node; a single loss such
    as ``Ridge(0.1)`` is added at every node, those without data included. They can be multiplied,
    ``2.0 * losses``, also by an array with a number for each node.

    Parameters
    ----------
    parts : list of (nodes (k,), BatchedLoss)
        Each node occurs at most once; nodes that do not occur have the zero loss.
    dim : int, optional
        Dimension d. Default: that of the parts.
    n_nodes : int, optional
        Number of nodes n, where it is known: the losses then fit graphs with n nodes only. Default:
        any number of nodes beyond those that occur.
    """

    def __init__(
        self,
        parts: Sequence[tuple[IntArray, BatchedLoss]],
        dim: int | None = None,
        n_nodes: int | None = None,
    ) -> None:
        dims = {batch.dim for _, batch in parts} | (set() if dim is None else {dim})
        if len(dims) != 1:
            raise ValueError(f"losses: one common dimension d is expected, got {sorted(dims)}")
        self.dim = dims.pop()
        if not isinstance(self.dim, (int, np.integer)) or self.dim < 1:
            raise ValueError(f"dim: a positive integer is expected, got {self.dim!r}")
        self.parts = [
            (integer_array(nodes, "losses").astype(np.int64), batch) for nodes, batch in parts
        ]
        named = _named_once(self.parts)
        self.n_named = int(named.max(initial=-1)) + 1
        self.n_nodes = n_nodes

    def of_graph(self, n_nodes: int) -> StackedLoss:
        """Return these losses, `completed`, for a graph with n_nodes nodes.

        Raises
        ------
        ValueError
            They name a node beyond, or they are those of another number of nodes: tables of rows
            may leave out the last nodes, but an array with a part for each node that is too short
            is one for another graph.
        """
        if self.n_nodes is not None and self.n_nodes < n_nodes:
            raise ValueError(
                f"losses: those of {self.n_nodes} nodes, but the graph has {n_nodes} nodes; if the "
                f"last ones are to have no loss, say so: losses.completed({n_nodes})"
            )
        return self.completed(n_nodes)

    def completed(self, n_nodes: int) -> StackedLoss:
        """Return these losses with the zero loss at each of the n_nodes that is not named yet.

        This is also how losses of fewer nodes are said to be meant for a larger graph.

        Raises
        ------
        ValueError
            They name a node beyond.
        """
        if self.n_named > n_nodes:
            raise ValueError(
                f"losses: node {self.n_named - 1} has a loss but the graph has {n_nodes} nodes"
            )
        if self.n_nodes == n_nodes and self._is_all(n_nodes):
            return self
        free = np.ones(n_nodes, dtype=bool)
        for nodes, _ in self.parts:
            free[nodes] = False
        rest = np.flatnonzero(free)
        if not len(rest):
            return self if self.n_nodes == n_nodes else StackedLoss(self.parts, self.dim, n_nodes)
        parts = [*self.parts, (rest, BatchedZero(len(rest), self.dim))]
        return StackedLoss(parts, self.dim, n_nodes)

    def _at(self, nodes: IntArray, n_nodes: int) -> IntArray | slice:
        """Return how rows of some nodes are chosen; those of all need not be copied."""
        return slice(None) if self._is_all(n_nodes) else nodes

    def _collect(
        self, shape: tuple[int, ...], of: Callable[[BatchedLoss, IntArray | slice], FloatArray]
    ) -> FloatArray:
        if self._is_all(shape[0]):  # rows of all nodes need not be copied
            return of(self.parts[0][1], slice(None))
        out = np.empty(shape)
        for nodes, batch in self.completed(shape[0]).parts:
            out[nodes] = of(batch, nodes)
        return out

    @cached_property
    def _in_order(self) -> bool:
        """Whether one batch has nodes 0, 1, ... and there is no other."""
        return len(self.parts) == 1 and np.array_equal(
            self.parts[0][0], np.arange(len(self.parts[0][0]))
        )

    def _is_all(self, n_nodes: int) -> bool:
        """Say whether one batch has all of so many nodes, in their order."""
        return self._in_order and len(self.parts[0][0]) == n_nodes

    @property
    def nodes_with_loss(self) -> IntArray:
        """Numbers of the nodes whose loss is not zero, in ascending order."""
        some = [nodes for nodes, batch in self.parts if not batch.trivial]
        return np.sort(np.concatenate([np.empty(0, np.int64), *some]))

    @property
    def smooth(self) -> bool:
        """Whether all losses are finite and have gradients everywhere."""
        return all(batch.smooth for _, batch in self.parts)

    @property
    def is_quadratic(self) -> bool:
        """Whether all losses are quadratic."""
        return all(batch.is_quadratic for _, batch in self.parts)

    @property
    def modelled(self) -> bool:
        """Whether all losses have quadratic models."""
        return all(batch.modelled for _, batch in self.parts)

    def quadratic(self, n_nodes: int) -> QuadraticForm | None:
        """Hessians (n, d, d) and linear terms (n, d), or None if some loss is not quadratic."""
        d = self.dim
        out = QuadraticForm(np.zeros((n_nodes, d, d)), np.zeros((n_nodes, d)))
        for nodes, batch in self.parts:
            part = batch.quadratic()
            if part is None:
                return None
            out.hessian[nodes], out.linear[nodes] = part
        return out

    def total_hessian(self) -> FloatArray | None:
        """Return the sum of all Hessians (d, d), or None if some loss is not quadratic."""
        total = np.zeros((self.dim, self.dim))
        for _, batch in self.parts:
            part = batch.total_hessian()
            if part is None:
                return None
            total += part
        return total

    def in_basis(self, basis: FloatArray) -> StackedLoss | None:
        """Return quadratic losses as functions of x, w = basis x; None if some are not."""
        parts = []
        for nodes, batch in self.parts:
            part = batch.in_basis(basis)
            if part is None:
                return None
            parts.append((nodes, part))
        return StackedLoss(parts, self.dim)

    def model(self, w: FloatArray, last: StackedLoss | None = None) -> StackedLoss | None:
        """Return quadratic models at w (n, d), see `BatchedLoss.model`; None if some have none."""
        parts = []
        for k, (nodes, batch) in enumerate(self.parts):
            part = batch.model(w[nodes], None if last is None else last.parts[k][1])
            if part is None:
                return None
            parts.append((nodes, part))
        return StackedLoss(parts, self.dim)

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """How far losses at w are above their tangents, (n,), see `BatchedLoss.rise`."""
        return self._collect((len(w),), lambda batch, at: batch.rise(w[at], before[at]))

    def scalar(self, n_nodes: int) -> ScalarForm | None:
        """Curvatures and linear terms (n, d) of the coordinates, or None if they are coupled."""
        shape = n_nodes, self.dim
        if self._is_all(n_nodes):
            return self.parts[0][1].scalar()
        out = ScalarForm(np.zeros(shape), np.zeros(shape))
        for nodes, batch in self.parts:
            part = batch.scalar()
            if part is None:
                return None
            out.curvature[nodes], out.linear[nodes] = part
        return out

    def thin(self, n_nodes: int) -> ThinForm | None:
        """Return diagonals and rows of n nodes; None where there are none, or they do not pay."""
        return joined(self.parts, n_nodes, self.dim)

    def value(self, w: FloatArray) -> FloatArray:
        """Losses L_i(w_i), shape (n,)."""
        return self._collect((len(w),), lambda batch, at: batch.value(w[at]))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients (n, d)."""
        return self._collect(w.shape, lambda batch, at: batch.gradient(w[at]))

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points (n, d) for step sizes tau (n,)."""
        return self._collect(v.shape, lambda batch, at: batch.prox(v[at], tau[at]))

    @property
    def detours(self) -> float:
        """Work of `prox` so far beyond what a call takes as a rule, in such calls."""
        work = sum(len(nodes) * batch.detours for nodes, batch in self.parts)
        return work / max(sum(len(nodes) for nodes, _ in self.parts), 1)

    def forget(self) -> None:
        """Forget what calls before have left, see `BatchedLoss.forget`."""
        for _, batch in self.parts:
            batch.forget()

    def affine_prox(self, tau: FloatArray) -> AffineProx | None:
        """Affine proximal operator of all nodes, or None if some node has none."""
        n, d = len(tau), self.dim
        found = []
        for nodes, batch in self.completed(n).parts:
            prox = batch.affine_prox(tau[nodes])
            if prox is None:  # before there is room for the others
                return None
            found.append((nodes, prox))
        matrix, offset = np.empty((n, d, d)), np.empty((n, d))
        for nodes, prox in found:
            matrix[nodes], offset[nodes] = prox
        return AffineProx(matrix, offset)

    def minimizer(self, n_nodes: int) -> FloatArray:
        """One minimizer of each loss, shape (n, d)."""
        return self._collect((n_nodes, self.dim), lambda batch, _: batch.minimizer())

    def project_domain(self, w: FloatArray) -> FloatArray:
        """Return the points (n, d) nearest to w_i at which L_i is finite; w itself where it is."""
        out = w
        for nodes, batch in self.parts:
            rows = w[nodes]
            near = batch.project_domain(rows)
            if near is not rows:
                out = out.copy() if out is w else out
                out[nodes] = near
        return out

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Conjugates L_i*(s_i), shape (n,); +inf farther than atol (n,) from the domain."""
        return self._collect((len(s),), lambda batch, at: batch.conjugate(s[at], atol[at]))

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps (n,), see `BatchedLoss.fenchel_gap`; multipliers of all parts' generators."""
        if multipliers is None:
            return self._collect((len(w),), lambda batch, at: batch.fenchel_gap(w[at], s[at]))
        out, first = np.zeros(len(w)), 0
        for at, batch in self.completed(len(w)).parts:
            domain = batch.domain()
            own = None
            if domain is not None:
                own = multipliers[first : first + len(domain.owner)]
                first += len(domain.owner)
            out[at] = batch.fenchel_gap(w[at], s[at], own)
        return out

    def certain_gap(
        self, w: FloatArray, s: FloatArray, doubt: Doubt, multipliers: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return node gaps (n,), and what rounding may add, see `BatchedLoss.certain_gap`."""
        out, first, more = np.zeros(len(w)), 0, 0.0
        for at, batch in self.completed(len(w)).parts:
            own = None
            if multipliers is not None and (domain := batch.domain()) is not None:
                own = multipliers[first : first + len(domain.owner)]
                first += len(domain.owner)
            out[at], part = batch.certain_gap(w[at], s[at], doubt.of(at), own)
            more += part
        return out, more

    def short_gap(self, w: FloatArray, s: FloatArray) -> tuple[float, FloatArray, float] | None:
        """Return a share that all losses take of s (n, d), beside multipliers at w, and its gaps.

        The nodes' gaps (n,), and the sum of what rounding leaves of s, in sizes of its entries.
        None where there is no share above zero, of those that are cheap to tell.
        """
        share, gaps, leaks, multipliers = 1.0, np.zeros(len(w)), 0.0, list[FloatArray]()
        for nodes, batch in self.parts:
            look()
            at = self._at(nodes, len(w))
            shares, a = batch.shortest(w[at], s[at])
            share = min(share, float(shares.min(initial=1.0)))
            multipliers.append(a)
        if not share > 0.0 or len(self.nodes_with_loss) < len(w):
            return None
        for (nodes, batch), a in zip(self.parts, multipliers, strict=True):
            look()
            at = self._at(nodes, len(w))
            gaps[nodes], leak = batch.short_gap(w[at], s[at], share, a)
            leaks += leak
        return share, gaps, leaks

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Upper bounds (n,) on ``L_i(w_i) - inf L_i``, see `BatchedLoss.loose_gap`."""
        return self._collect((len(w),), lambda batch, at: batch.loose_gap(w[at]))

    def scale_to_feasible(self, s: FloatArray) -> float:
        """Return the largest theta in [0, 1] with theta s_i in dom L_i*, for all parts."""
        return min((batch.scale_to_feasible(s[at]) for at, batch in self.parts), default=1.0)

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of ``sum_i L_i(w_i)`` for an expression of shape (n, d)."""
        return self._model(w, lambda batch, rows: batch.expression(rows))

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of ``sum_i L_i*(s_i)`` for an expression of shape (n, d)."""
        return self._model(s, lambda batch, rows: batch.conjugate_expression(rows))

    def _model(
        self,
        x: cp.Expression,
        of: Callable[[BatchedLoss, cp.Expression], tuple[cp.Expression, list[cp.Constraint]]],
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        costs, constraints = [cp.Constant(0.0)], []
        parts = self.completed(x.shape[0]).parts
        for nodes, batch in parts:
            in_order = np.array_equal(nodes, np.arange(x.shape[0]))
            cost, extra = of(batch, x if in_order else x[nodes, :])
            costs.append(cost)
            constraints += extra
        return sum(costs[1:], costs[0]), constraints

    def terms(self) -> list[dict[str, Any]]:
        """Plain data of all losses, see `GTVProblem.to_data`."""
        return [_copied(term) for term in self._merged()]

    def _merged(self) -> list[dict[str, Any]]:
        terms = [term for nodes, batch in self.parts for term in batch.terms(nodes)]
        return merged(terms, self.dim)

    @cached_property
    def plain(self) -> list[dict[str, Any]]:
        """What `terms` returns, made once, for whoever writes into none of its arrays."""
        return self._merged()

    def __repr__(self) -> str:
        n_losses = len(self.nodes_with_loss)
        return f"StackedLoss({n_losses} nodes with a loss, dim={self.dim})"

    def __add__(self, other: StackedLoss | Repeatable) -> StackedLoss:
        """Sum of the losses, node by node; a single loss is added at every node.

        Raises
        ------
        TypeError
            A node has a loss that cannot be added to: one that is not known by its data.
        ValueError
            The dimensions or the numbers of nodes differ, or nobody knows at how many nodes a
            single loss is to be.
        """
        if not isinstance(other, StackedLoss):
            return self + self._repeated(other) if hasattr(other, "everywhere") else NotImplemented
        if other.dim != self.dim:
            raise ValueError(f"losses: dimension {self.dim} is expected, got {other.dim}")
        known = self.n_nodes if other.n_nodes is None else other.n_nodes
        n = max(self.n_named, other.n_named) if known is None else known
        for losses in (self, other) if known is not None else ():
            losses.of_graph(n)  # refuses another number of nodes
        both = np.zeros(n, dtype=bool)
        both[np.intersect1d(self.nodes_with_loss, other.nodes_with_loss)] = True
        kept, terms = [], []
        for nodes, batch in (*self.parts, *other.parts):
            if batch.trivial:
                continue
            if both[nodes].any():
                terms += _summands(batch.terms(nodes), both)
            else:
                kept.append((nodes, batch))
        total = StackedLoss([*kept, *parts_of_terms(terms, self.dim)], self.dim)
        return total if known is None else total.completed(n)

    __radd__ = __add__

    def _repeated(self, loss: Repeatable) -> StackedLoss:
        """Return a single loss at all nodes of these."""
        if self.n_nodes is None:
            raise ValueError(
                "losses: a table does not say how many nodes there are, so that a single loss "
                "cannot be added at all of them; give n_nodes to from_rows, or say so: "
                "losses.completed(n)"
            )
        return loss.everywhere(self.n_nodes, self.dim)

    # Arrays of NumPy leave products with losses to the losses.
    __array_ufunc__ = None

    def __mul__(self, factor: ArrayLike) -> StackedLoss:
        """Return the losses times a number > 0, or times one number >= 0 a node, (n,).

        Constraints stay as they are. A node whose number is zero has no loss, but for these.

        Raises
        ------
        TypeError
            A loss written with CVXPY is multiplied by zero: its constraints are not known apart.
        ValueError
            The factor is not a finite number > 0, or not one number >= 0 a node.
        """
        factors = node_factors(factor, self.n_nodes, self.n_named)
        known = len(factors) if np.ndim(factor) else self.n_nodes
        parts, terms = [], []
        for nodes, batch in self.parts:
            own = batch.terms(nodes)
            if all(term["kind"] in FIELDS for term in own):
                found = (multiplied(term, factors) for term in own)
                terms += [term for term in found if len(term["node"])]
            else:
                parts.append((nodes, batch.multiplied(factors[nodes], nodes)))
        product = StackedLoss([*parts, *parts_of_terms(terms, self.dim)], self.dim)
        return product if known is None else product.completed(known)

    __rmul__ = __mul__


def _named_once(parts: Sequence[tuple[IntArray, BatchedLoss]]) -> IntArray:
    """Return the numbers of all nodes of the parts, each of which must have one loss."""
    for nodes, batch in parts:
        if nodes.shape != (batch.n_nodes,):
            raise ValueError("losses: a part needs one node number for each of its losses")
    named = np.concatenate([np.empty(0, np.int64), *(nodes for nodes, _ in parts)])
    if named.size and named.min() < 0:
        raise ValueError(f"losses: node number {int(named.min())} is negative")
    twice = np.flatnonzero(np.bincount(named) > 1)
    if twice.size:
        raise ValueError(f"losses: node {int(twice[0])} has two losses")
    return named


def _copied(term: Term) -> Term:
    return {key: value if isinstance(value, str) else value.copy() for key, value in term.items()}


def _summands(terms: list[Term], both: BoolArray) -> list[Term]:
    """Return terms that others are added to, at the nodes where both sums have a loss (n,)."""
    for term in terms:
        if term["kind"] not in FIELDS:
            node = int(term["node"][both[term["node"]]][0])
            raise TypeError(f"losses: nothing can be added to {term['name']} at node {node}")
    return terms


def stacked_terms(terms: Sequence[Term], dim: int, n_nodes: int | None) -> StackedLoss:
    """Return the losses of terms of rows, for n_nodes nodes where their number is known."""
    some = [term for term in terms if len(term["node"])]
    losses = StackedLoss(parts_of_terms(some, dim) if some else [], dim)
    return losses if n_nodes is None else losses.completed(n_nodes)


def stacked_from_terms(terms: Sequence[dict[str, Any]], dim: int) -> StackedLoss:
    """Rebuild the losses that `StackedLoss.terms` wrote down.

    Terms that name the same node are added up.

    Parameters
    ----------
    terms : sequence of dict
    dim : int
        Dimension d of the parameters.

    Raises
    ------
    ValueError
        A kind of term that is not known.
    """
    return StackedLoss(parts_of_terms([checked(term, dim) for term in terms], dim), dim)
