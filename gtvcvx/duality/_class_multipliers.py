"""Multipliers of rows with a score for each of several classes, in corrections of flows.

The multipliers of a row are its slopes ``c (p - e_own)``, with p chances that add up to one. Near
chances p an entropy bends by 1 / p_k along each class, so that changes of chances which cost as
much as those of other multipliers (`gtvcvx.duality._room`) have weights D_k, and with the sum

    delta_k = -D_k (z_k - sum_j D_j z_j / sum_j D_j)

for potentials whose scores are z. Rows of scores less such means are rows like any others in the
systems of the balance, but for that they change with D.

Leaks that rounding left are made up for by other chances, as those of other rows are
(`gtvcvx.losses.batched.composite._absorption`): each class by itself, since slopes of a row that
add up to zero over the classes still do so.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._norms import EPS
from gtvcvx.losses.batched._doubt import SUM_ULPS
from gtvcvx.losses.batched.composite._least_multipliers import inverses
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._class_rows import ClassRows
from gtvcvx.losses.node._scalar import DECIDED


class Absorbed(NamedTuple):
    """What it costs that chances make up for leaks, and what they leave of these."""

    node: FloatArray  # (n,)
    rest: float  # of what they do not make up for, though they should
    leak: FloatArray  # (n, d)
    doubt: FloatArray  # (n, d)


class ClassMultipliers:
    """Chances (N, K) of rows as dual variables.

    Parameters
    ----------
    rows : ClassRows
    """

    def __init__(self, rows: ClassRows) -> None:
        self.rows, self._own = rows, rows.own
        self._c = rows.coefficients[:, None]

    def __len__(self) -> int:
        return len(self.rows)

    def chances(self, a: FloatArray, w: FloatArray) -> FloatArray:
        """Return the chances of slopes a (N K,); NaN stands for those at w (n, d)."""
        p = a.reshape(self._own.shape) / self._c + self._own
        unknown = np.isnan(p).any(axis=1, keepdims=True)
        if unknown.any():
            p = np.where(unknown, softmax.probabilities(self.rows.scores(w)), p)
        return self.inside(p)

    def inside(self, p: FloatArray) -> FloatArray:
        """Return chances >= 0 that add up to one; those of likeliest classes are what is left."""
        return softmax.completed(p, _largest(p))

    def slopes(self, p: FloatArray) -> FloatArray:
        """Return the slopes (N, K) of chances, as precise as these.

        Each has the accuracy of its own chance, however small, but that of the likeliest class.
        """
        return self._c * softmax.slopes(p - self._own, _largest(p))

    def pulled(self, p: FloatArray) -> FloatArray:
        """Return what the slopes of chances add up to at the nodes, (n, d)."""
        return self.rows.pulled(self.slopes(p))

    def sizes_pulled(self) -> FloatArray:
        """Return what slopes add up to at most, (n, d)."""
        return self.rows.sizes_pulled(np.broadcast_to(self._c, self._own.shape))

    def weights(self, p: FloatArray, barrier: float, least: float) -> FloatArray:
        """Return the weights D (N, K) of the chances' slopes beside a barrier.

        The room is the least share of a chance, at least.
        """
        a, room = self._c * p, self._c * np.maximum(p, least)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 / a + barrier / np.square(room)))

    def framed(self, weights: FloatArray) -> FloatArray:
        """Return the rows (N K, d) of scores less their means, which go with weights (N, K)."""
        return self.rows.centred(_shares(weights))

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return what these rows, times their weights, add to the diagonals, (n, d)."""
        others = _shares(weights) @ (1.0 - np.eye(weights.shape[1]))
        return self.rows.squares_pulled(weights * others)

    def response(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the changes (N, K) of the chances for potentials x (n, d)."""
        z = self.rows.scores(x)
        z = z - (_shares(weights) * z).sum(axis=1, keepdims=True)
        return softmax.slopes(-weights * z / self._c, _largest(weights))

    def gaps(self, w: FloatArray, p: FloatArray) -> FloatArray:
        """Return the gaps of w (n, d) against chances, added up at the nodes (n,)."""
        return self.rows.sums(self._c[:, 0] * softmax.divergences(p, self.rows.scores(w)))

    def doubts(self, p: FloatArray) -> FloatArray:
        """Return what rounding makes of what slopes add up to, (n, d)."""
        return SUM_ULPS * EPS * self.rows.sizes_pulled(np.abs(self.slopes(p)))

    @cached_property
    def _inverses(self) -> tuple[FloatArray, BoolArray]:
        """Least slopes, as shares of coefficients, that make up a unit: maps (N, p).

        And the nodes (n,) at which features have full rank, so that slopes add up to anything.
        """
        full = np.zeros(self.rows.n_nodes, bool)
        maps = np.empty((len(self), self.rows.n_features))
        for nodes, at, X in self.rows.alike():
            c = self._c[at]
            inverse, short = inverses(c * X)
            maps[at], full[nodes] = c * inverse, ~short
        return maps, full

    def absorbed(
        self, w: FloatArray, p: FloatArray, leak: FloatArray, doubt: FloatArray, reach: FloatArray
    ) -> Absorbed:
        """Return what leaks (n, d), each known up to a doubt (n, d) >= 0, cost at w (n, d).

        Where solutions may be as far as reach (n, d) chances below zero are paid with that.
        """
        rows, c = self.rows, self._c
        inverse, full = self._inverses
        even, evenly = rows.means(leak), rows.means(doubt)
        likeliest = _largest(p)
        change = softmax.slopes(rows.mapped(inverse, leak - even), likeliest)
        wide = rows.mapped(np.abs(inverse), doubt + evenly)
        made = rows.pulled(change)
        ends = p + (change - wide) / c, p + (change + wide) / c
        z = rows.scores(w)
        parts = [softmax.parts_of_divergences(np.maximum(end, 0.0), z) for end in ends]
        lost = np.maximum(np.maximum(*parts) - softmax.parts_of_divergences(p, z), 0.0)
        blurred = SUM_ULPS * EPS * rows.sizes_of_scores(np.abs(w))
        lost += np.abs(softmax.probabilities(z) - p) * blurred
        # As for other rows whose intervals end at zero.
        first = np.sum(np.where(likeliest, z, 0.0), axis=1, keepdims=True)
        far = DECIDED + 2.0 * np.abs(z - first)
        rest = float(np.sum(np.maximum(-c * ends[0], 0.0) * far))
        beyond = np.maximum(-c * ends[1], 0.0)
        if beyond.any():
            rest += 2.0 * float(np.sum(beyond * rows.sizes_of_scores(reach)))
        left = np.where(full[:, None], evenly, doubt)
        return Absorbed(rows.sums((c * lost).sum(axis=1)), rest, leak - made, left)


def _largest(x: FloatArray) -> BoolArray:
    """Return which number is the largest of each row, the first one of those."""
    return np.asarray(x.argmax(axis=1)[:, None] == np.arange(x.shape[1]))


def _shares(weights: FloatArray) -> FloatArray:
    return weights / weights.sum(axis=1, keepdims=True)
