"""How large solutions may be where no loss tells, by the data of all nodes together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.losses.batched._terms import Term
from gtvcvx.losses.node._scalar import DECIDED

#: Columns whose singular value, of one length each, is below this share of the largest one count as
#: dependent: rounding of decompositions.
DEPENDENT = 1e-13
#: What leaks may be worth at most, as a share of a gap, is not looked at any closer.
NEGLIGIBLE = 1e-3
#: Kinds of penalties that grow with the size of each coordinate of a jump.
MONOTONE = frozenset({"l1", "l2", "linf", "pnorm", "squared"})
# Entries that are decomposed between two looks at the clock.
PIECE = 1_000_000


@dataclass(frozen=True)
class Lengths:
    """How large solutions may be, by sums over all rows.

    Parameters
    ----------
    totals : ndarray, shape (3 + d,)
        Number of terms that fall without end, number of rows, sum of the squares of all targets,
        and of each feature.
    """

    totals: FloatArray

    @cached_property
    def _squares(self) -> FloatArray:
        """Sums of the squares of the features, (d,); infinite where there are none."""
        return np.where(self.totals[3:] > 0.0, self.totals[3:], np.inf)

    @cached_property
    def alone(self) -> FloatArray:
        """How large each coordinate would be if it had to make up the targets alone, (d,)."""
        return np.asarray(np.sqrt(self.totals[2] / self._squares))

    @property
    def units(self) -> FloatArray:
        """Units (d,) in which each column of all rows together has length one, or zero."""
        return np.where(self.totals[3:] > 0.0, np.sqrt(self.totals[3:]), 1.0)

    def together(self, upper: FloatArray) -> FloatArray:
        """How large each coordinate may be that alone, or with others, makes up targets, (d,).

        Upper is the `triangle` of all rows in `units`.
        """
        predictions = float(np.sqrt(self.totals[2]) + self._decided)
        return np.maximum(self.alone, predictions * pooled_lengths(upper, self.units))

    @property
    def _decided(self) -> float:
        """How long predictions are that decide all rows; zero where no loss falls without end."""
        return float(DECIDED * np.sqrt(self.totals[1])) if self.totals[0] else 0.0

    @cached_property
    def longest(self) -> FloatArray:
        """How long solutions may be where losses fall without end, (d,); zero where none does."""
        return np.asarray(self._decided / np.sqrt(self._squares))


def ends_of_sets(terms: Iterable[Term], shape: tuple[int, int], clipping: bool) -> FloatArray:
    """Return how large solutions are at most, (d,), by boxes and simplices; inf where none says so.

    Those of nodes without a loss are among the others', where clipping them shortens all jumps.

    Parameters
    ----------
    terms : iterable of dict
        Of all losses.
    shape : tuple of int
        Numbers of nodes and dimensions.
    clipping : bool
        Whether it does, by the penalty.
    """
    held, touched = np.full(shape, np.inf), np.full(shape[0], not clipping)
    for term in terms:
        node = term["node"]
        touched[node] = True
        if term["kind"] == "box":
            ends = np.maximum(np.abs(term["lower"]), np.abs(term["upper"]))
            held[node] = np.minimum(held[node], ends)
        elif term["kind"] == "simplex":
            held[node] = np.minimum(held[node], np.reshape(term["total"], (-1, 1)))
    held = held[touched]
    return held.max(axis=0) if len(held) else np.full(shape[1], np.inf)


def triangle(tables: Iterable[FloatArray], units: FloatArray) -> FloatArray:
    """Return the factor R (k, d), k <= d, of a QR decomposition of all rows, columns in units (d,).

    Rows of factors are rows again: those of parts stand for their rows.
    """
    upper, step = np.zeros((0, len(units))), max(PIECE // len(units), len(units))
    for X in tables:
        for start in range(0, len(X), step):
            look()
            stacked = np.concatenate([upper, X[start : start + step] / units])
            upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    return upper


def pooled_lengths(upper: FloatArray, units: FloatArray) -> FloatArray:
    """Return how large each coordinate may be, (d,), for predictions of all rows of length one.

    With all nodes at one point: nearly dependent columns, an intercept beside features far from
    zero, let coordinates be large that predict next to nothing. Those along which no row changes do
    not count, as any solution stays one along them. The rows are given by their `triangle`.
    """
    _, sigma, basis = np.linalg.svd(upper, full_matrices=False)
    some = sigma > DEPENDENT * sigma.max(initial=0.0)
    return np.asarray(np.linalg.norm(basis[some] / sigma[some, None], axis=0) / units)


def growth(before: FloatArray, after: FloatArray) -> float:
    """Return how many times as large lengths (d,) become at most; so do products with leaks."""
    some = after > before
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.max(after[some] / before[some], initial=1.0))
