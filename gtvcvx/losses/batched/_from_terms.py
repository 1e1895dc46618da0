"""From the plain data of losses back to losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import IntArray
from gtvcvx.losses.batched._base import BatchedLoss
from gtvcvx.losses.batched._point import BatchedPoint
from gtvcvx.losses.batched._quadratic import BatchedQuadratic
from gtvcvx.losses.batched._squared import BatchedSquared
from gtvcvx.losses.batched._terms import QUADRATIC_KINDS, Term, merged, row_counts, selected
from gtvcvx.losses.batched.composite._batch import BatchedComposite

# Which batch a node belongs to: no loss, one squared or point term, quadratic, anything else.
_ZERO, _SQUARED, _POINT, _QUADRATIC, _COMPOSITE = range(5)


def parts_of_terms(terms: Sequence[Term], dim: int) -> list[tuple[IntArray, BatchedLoss]]:
    """Sum checked terms, and join nodes with losses of one form into batches."""
    terms = merged(terms, dim)
    n = max((int(term["node"].max()) + 1 for term in terms), default=0)
    form = np.full(n, _ZERO)
    for term in terms:
        single = {"squared": _SQUARED, "point": _POINT}.get(term["kind"], _QUADRATIC)
        if term["kind"] not in QUADRATIC_KINDS:
            single = _COMPOSITE
        nodes = np.unique(term["node"])
        sums = np.maximum(np.maximum(form[nodes], single), _QUADRATIC)
        form[nodes] = np.where(form[nodes] == _ZERO, single, sums)
    parts = []
    for wanted in (_SQUARED, _POINT, _QUADRATIC, _COMPOSITE):
        nodes = np.flatnonzero(form == wanted)
        if not len(nodes):
            continue
        place = np.full(n, -1)
        place[nodes] = np.arange(len(nodes))
        chosen = [t for t in (selected(term, place) for term in terms) if len(t["node"])]
        parts.append((nodes, _batch(wanted, chosen, len(nodes), dim)))
    return parts


def _batch(form: int, terms: list[Term], n_nodes: int, dim: int) -> BatchedLoss:
    if form == _SQUARED:
        (term,) = terms
        indptr = np.concatenate([[0], np.cumsum(row_counts(term["node"], n_nodes))])
        return BatchedSquared(term["X"], term["y"], indptr)
    if form == _POINT:
        return BatchedPoint(terms[0]["a"])
    if form == _QUADRATIC:
        return BatchedQuadratic(terms, n_nodes, dim)
    return BatchedComposite(terms, n_nodes, dim)
