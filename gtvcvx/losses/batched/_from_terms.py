"""From the plain data of losses back to losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.losses.batched._base import BatchedLoss
from gtvcvx.losses.batched._point import BatchedPoint
from gtvcvx.losses.batched._quadratic import BatchedQuadratic
from gtvcvx.losses.batched._ridged import BatchedRidged, ridged
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._terms import (
    BESIDE_MULTINOMIAL,
    MULTINOMIAL,
    QUADRATIC_KINDS,
    WEIGHT,
    Term,
    merged,
    row_counts,
    selected,
)

# Which batch a node belongs to: no loss, one mean of squares, one point without or with a weight,
# quadratic, anything else, with several classes, and quadratic with few rows and a ridge.
_ZERO, _SQUARED, _POINT, _WEIGHTED_POINT, _QUADRATIC, _COMPOSITE, _MULTINOMIAL, _RIDGED = range(8)


def parts_of_terms(terms: Sequence[Term], dim: int) -> list[tuple[IntArray, BatchedLoss]]:
    """Sum checked terms, and join nodes with losses of one form into batches."""
    terms = merged(terms, dim)
    forms = _forms(terms, dim)
    parts = []
    for form in range(_SQUARED, _RIDGED + 1):
        nodes = np.flatnonzero(forms == form)
        if not len(nodes):
            continue
        place = np.full(len(forms), -1)
        place[nodes] = np.arange(len(nodes))
        chosen = [t for t in (selected(term, place) for term in terms) if len(t["node"])]
        parts.append((nodes, _batch(form, chosen, len(nodes), dim)))
    return parts


def _forms(terms: Sequence[Term], dim: int) -> IntArray:
    """Return which batch each node belongs to, (n,) for the nodes up to the last one named."""
    forms = np.full(max((int(term["node"].max()) + 1 for term in terms), default=0), _ZERO)
    for term in terms:
        nodes, form = np.unique(term["node"]), _form(term)
        sums = np.maximum(np.maximum(forms[nodes], form), _QUADRATIC)
        forms[nodes] = np.where(forms[nodes] == _ZERO, form, sums)
    quadratic = [term for term in terms if term["kind"] in QUADRATIC_KINDS]
    forms[(forms == _QUADRATIC) & ridged(quadratic, len(forms), dim)] = _RIDGED
    return forms


def _form(term: Term) -> int:
    """Return which batch a node with such a term alone belongs to."""
    kind, weighted = term["kind"], WEIGHT in term
    if kind == MULTINOMIAL:
        return _MULTINOMIAL
    if kind not in QUADRATIC_KINDS:
        return _COMPOSITE
    if kind == "point":
        return _WEIGHTED_POINT if weighted else _POINT
    return _SQUARED if kind == "squared" and not weighted else _QUADRATIC


def _batch(form: int, terms: list[Term], n_nodes: int, dim: int) -> BatchedLoss:
    if form == _SQUARED:
        (term,) = terms
        indptr = np.concatenate([[0], np.cumsum(row_counts(term["node"], n_nodes))])
        return BatchedSquared(term["X"], term["y"], indptr)
    if form in (_POINT, _WEIGHTED_POINT):
        return BatchedPoint(terms[0]["a"], terms[0].get(WEIGHT))
    if form == _RIDGED:
        return BatchedRidged.of(terms, n_nodes, dim)
    if form == _QUADRATIC:
        return BatchedQuadratic(terms, n_nodes, dim)
    of = multinomial if form == _MULTINOMIAL else composite
    return of(terms, n_nodes, dim)


def composite(terms: Sequence[Term], n_nodes: int, dim: int) -> BatchedLoss:
    """Return the batch of sums of terms that are not quadratic, without several classes."""
    # Compiled: quadratic losses do without numba, which takes a third of a second to load.
    from gtvcvx.losses.batched.composite._batch import BatchedComposite

    return BatchedComposite(terms, n_nodes, dim)


def multinomial(terms: Sequence[Term], n_nodes: int, dim: int) -> BatchedLoss:
    """Return the batch of sums of terms with several classes.

    Raises
    ------
    TypeError
        A node has a term that cannot be added to one with several classes.
    """
    for term in terms:
        if term["kind"] not in BESIDE_MULTINOMIAL:
            raise TypeError(
                "losses: ridge terms and points alone can be added to MultinomialLogisticLoss, not "
                f"one of kind {term['kind']!r}"
            )
    # Compiled, as the other.
    from gtvcvx.losses.batched.multinomial._batch import BatchedMultinomial

    return BatchedMultinomial(terms, n_nodes, dim)
