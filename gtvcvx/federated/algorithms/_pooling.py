"""Sums of clients' losses: what methods with one model for several clients minimize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.programs import LocalLoss
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._from_terms import parts_of_terms
from gtvcvx.losses.batched._terms import FIELDS, ROW_KINDS, Term
from gtvcvx.problem import GTVProblem

# c h(x.w - y) is h of the same rows times c, or times sqrt(c), with their widths delta.
_LINEAR, _QUADRATIC = ("absolute", "quantile"), ("squared", "huber", "pseudohuber")
# Relative difference of weights that are equal but for rounding.
_EQUAL = 1e-12


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
    """Return the terms of a weighted sum."""
    out: list[Term] = []
    fixed: dict[str, list[tuple[Term, float]]] = {}
    for loss, weight in zip(losses, weights, strict=True):
        for term in loss.terms:
            if weight == 1.0:
                out.append(term)
            elif term["kind"] in ROW_KINDS and term["kind"] not in (*_LINEAR, *_QUADRATIC):
                fixed.setdefault(term["kind"], []).append((term, float(weight)))
            elif weight > 0.0:
                out.append(_scaled(term, float(weight)))
    return out + [_joined(kind, terms) for kind, terms in fixed.items()]


def _scaled(term: Term, weight: float) -> Term:
    """Return a term times a weight."""
    kind = term["kind"]
    if kind == "point":
        return _point_as_rows(term, weight)
    scaled: dict[str, tuple[tuple[str, ...], float]] = {
        "ridge": (("mu",), weight),
        "l1": (("kappa",), weight),
        "absolute": (("X", "y"), weight),
        "quantile": (("X", "y"), weight),
    }
    scaled |= {name: (("X", "y", "delta"), float(np.sqrt(weight))) for name in _QUADRATIC}
    names, factor = scaled.get(kind, ((), 1.0))
    return {key: value * factor if key in names else value for key, value in term.items()}


def _point_as_rows(term: Term, weight: float) -> Term:
    """Return ``weight ||w - a||^2`` as the mean over d rows of squared errors."""
    (a,) = term["a"]
    d = len(a)
    factor = np.sqrt(d * weight)
    node = np.zeros(d, np.int64)
    return {"kind": "squared", "node": node, "X": factor * np.eye(d), "y": factor * a}


def _joined(kind: str, terms: Sequence[tuple[Term, float]]) -> Term:
    """Return a weighted sum of terms whose rows cannot be scaled: one mean over all rows.

    Raises
    ------
    NotPlainError
        Rows weigh differently, or not one over their number.
    """
    rows = np.array([len(term["node"]) for term, _ in terms])
    weights = np.array([weight for _, weight in terms])
    if not np.allclose(weights / rows * rows.sum(), 1.0, rtol=_EQUAL, atol=0.0):
        raise NotPlainError(f"a {kind} loss times a number is no {kind} loss")
    fields: dict[str, Any] = {
        name: np.concatenate([term[name] for term, _ in terms]) for name in FIELDS[kind]
    }
    return {"kind": kind, "node": np.zeros(int(rows.sum()), np.int64), **fields}


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
