"""From the plain data of losses back to losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtvcvx._arrays import finite_array, integer_array
from gtvcvx.losses._base import BatchedLoss, IntArray
from gtvcvx.losses._point import BatchedPoint
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses._stacked import StackedLoss


def _squared(term: dict[str, Any]) -> StackedLoss:
    return SquaredLoss.from_rows(term["X"], term["y"], term["node"])


def _point(term: dict[str, Any]) -> StackedLoss:
    points = BatchedPoint(finite_array(term["a"], "a", 2))
    return StackedLoss([(integer_array(term["node"], "node"), points)])


_READERS: dict[str, Callable[[dict[str, Any]], StackedLoss]] = {
    "squared": _squared,
    "point": _point,
}


def stacked_from_terms(terms: Sequence[dict[str, Any]], dim: int) -> StackedLoss:
    """Rebuild the losses that `StackedLoss.terms` wrote down.

    Raises
    ------
    ValueError
        A kind of term that is not known.
    """
    parts: list[tuple[IntArray, BatchedLoss]] = []
    for term in terms:
        if term["kind"] not in _READERS:
            raise ValueError(f"terms: kind {term['kind']!r} is not one of {sorted(_READERS)}")
        parts += _READERS[term["kind"]](term).parts
    return StackedLoss(parts, dim)
