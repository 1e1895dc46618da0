"""Sums of clients' losses: what methods with one model for several clients minimize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.programs import LocalLoss
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._from_terms import parts_of_terms
from gtvcvx.losses.batched._terms import FIELDS, Term, multiplied
from gtvcvx.problem import GTVProblem


class NotPlainError(ValueError):
    """A sum that the plain data of losses cannot say."""


def pooled_problem(net: Network, groups: IntArray, weights: FloatArray | None) -> GTVProblem:
    """Return min ``sum_i p_i L_i(c_q(i))``: one node for each group of clients, and no edge.

    Parameters
    ----------
    net : Network
    groups : ndarray of int, shape (n,)
        Group 0, ..., Q - 1 of each client.
    weights : ndarray, shape (n,), or None
        p_i; None for ones.

    Raises
    ------
    NotPlainError
        Saying why there is no such problem.
    """
    check_plain(net)
    weights = np.ones(net.n_clients) if weights is None else weights
    count = int(groups.max()) + 1
    terms: list[Term] = []
    for q in range(count):
        members = np.flatnonzero(groups == q)
        summed = _summed([net.models[i] for i in members], weights[members])
        terms += [{**term, "node": np.full(len(term["node"]), q)} for term in summed]
    losses = StackedLoss(parts_of_terms(terms, net.dim) if terms else [], net.dim)
    # There is no edge: neither the penalty nor lambda means anything.
    return GTVProblem(EmpiricalGraph(count, []), losses.completed(count), "squared", 1.0)


def summed_loss(net: Network, weights: FloatArray) -> LocalLoss:
    """Return ``sum_i p_i L_i``.

    Raises
    ------
    NotPlainError
        Saying why there is no such loss.
    """
    check_plain(net)
    return LocalLoss(_summed(net.models, weights), net.dim)


def star_problem(net: Network, lam: float, weights: FloatArray | None) -> GTVProblem:
    """Return min ``sum_i p_i (L_i(w_i) + (lam/2) ||w_i - c||^2)`` over a star with centre c.

    Parameters
    ----------
    net : Network
        A star.
    lam : float
    weights : ndarray, shape (n,), or None
        p_i up to a factor, which is chosen such that their mean is 1; None for ones.

    Raises
    ------
    NotPlainError
        Saying why there is no such problem.
    """
    if not net.convex:
        check_plain(net)
    if weights is None:
        return GTVProblem(net.graph, net.stacked(), "squared", lam)
    weights = weights / weights.mean()
    # Clients without data have the centre's vector, whatever the weight of their edge.
    drawn = np.where(weights > 0, weights, 1.0)
    graph = EmpiricalGraph(net.n_participants, net.graph.edges, drawn, nodes=net.graph.nodes)
    return GTVProblem(graph, scaled_losses(net, weights), "squared", lam)


def scaled_losses(net: Network, weights: FloatArray) -> StackedLoss:
    """Return ``p_i L_i`` for each client i."""
    check_plain(net)
    terms: list[Term] = []
    for i, (model, weight) in enumerate(zip(net.models, weights, strict=True)):
        own = _summed([model], np.array([weight]))
        terms += [{**term, "node": np.full(len(term["node"]), i)} for term in own]
    return StackedLoss(parts_of_terms(terms, net.dim) if terms else [], net.dim)


def check_plain(net: Network) -> None:
    """Refuse clients whose losses cannot be added up.

    Raises
    ------
    NotPlainError
    """
    for i, model in enumerate(net.models):
        if not isinstance(model, LocalLoss):
            raise NotPlainError(f"the model of {net.label(i)} is not convex")
        if model.given is not None or any(t["kind"] not in FIELDS for t in model.terms):
            raise NotPlainError(
                f"the loss of {net.label(i)} is known to CVXPY alone: nothing can be added to it"
            )


def _summed(losses: Sequence[LocalLoss], weights: FloatArray) -> list[Term]:
    """Return the terms of a weighted sum, at node 0."""
    out: list[Term] = []
    for loss, weight in zip(losses, weights, strict=True):
        factor = np.array([weight])
        out += loss.terms if weight == 1.0 else [multiplied(term, factor) for term in loss.terms]
    return [term for term in out if len(term["node"])]


def row_weights(net: Network) -> FloatArray:
    """Return the numbers of rows m_i (n,), as numbers; for clients without data 0.

    Raises
    ------
    ValueError
        Naming a client whose loss has no rows.
    """
    counts = np.array([float(getattr(model, "n_rows", 0)) for model in net.models])
    for i, model in enumerate(net.models):
        if not counts[i] and not getattr(model, "trivial", False):
            raise ValueError(f"weights: {net.label(i)}: 'rows' needs losses of rows, got {model!r}")
    if not counts.any():
        raise ValueError("weights: 'rows' needs a client with data, there is none")
    return counts
