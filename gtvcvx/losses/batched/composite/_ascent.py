"""Best multipliers of many nodes for linear terms, by a method that always ends.

The proximal point method, applied to ``L_i - <s_i, .>``, finds the point where the supremum that
is ``L_i*(s_i)`` is attained, and the best multipliers with it: any others bound the conjugate from
above, which is what a lower bound on the primal needs. All nodes take their steps together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx._norms import row_norm_2
from gtvcvx.losses.batched.composite._continuation import kinks_at
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.composite._proximal import ProximalPoints
from gtvcvx.losses.node._batch import gaps, values
from gtvcvx.losses.node._conjugate import share
from gtvcvx.losses.node._problem import EPS
from gtvcvx.losses.node._scalar import KINK
from gtvcvx.losses.node._segments import weighted

# The first step size, relative to the inverse curvature, and its growth from step to step.
FIRST_STEP, GROWTH, LARGEST_STEP = 1e2, 1e2, 1e17
# What is left of s at such a share of what adds up to it need not be shared out.
SHARED = 8.0 * EPS
# Rounding may leave this share of what adds up to s, and then longer steps do not help.
STALLED = 1e-13
# A leak of this share of what adds up to s is rounding; it costs its product with the first point.
ROUNDING = 1e-12
# Multipliers whose sum is above the best by this share of what adds up to it are the best ones.
EXACT = 1e-13


class Found(NamedTuple):
    """Points and multipliers; those of node i add up to s_i minus leak_i."""

    z: FloatArray  # (k, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (k, d), of all of g, see `Parts.taken`
    nu: FloatArray  # (k, 1), of the sums
    leak: FloatArray  # (k, d)


class Shared(NamedTuple):
    """What sharing leaves."""

    left: FloatArray  # (k,), norms of the leaks
    scale: FloatArray  # (k,), sizes of what adds up to s


def best_multipliers(
    parts: Parts, s: FloatArray, start: FloatArray, given: FloatArray | None, rough: bool
) -> tuple[Found, FloatArray]:
    """Maximize ``<s_i, w> - L_i(w)`` from the start (k, d); return the leaks' norms (k,), too.

    Given multipliers (N,) stay where they nearly give s. They are not the best ones, but where
    there are kinks those are found slowly, and what a repaired flow has come with is nearly as
    good. A rough answer is what the first step gives: the slopes near the start.
    """
    k, d = s.shape
    low, high = parts.rows["low"], parts.rows["high"]
    a = np.clip(np.zeros(len(low)) if given is None else given, low, high)
    found = Found(start.copy(), a, np.zeros((k, d)), np.zeros((k, 1)), np.zeros((k, d)))
    norms, open_ = np.full(k, math.inf), np.ones(k, dtype=bool)
    if given is not None:
        norms = _complete(parts, s, found)
        open_ = norms == math.inf
    for _ in range(2):
        if not open_.any():
            break
        _maximize(parts, s, found, open_, rough)
        shared = _share(parts, s, found, open_, math.inf)
        norms[open_] = shared.left[open_]
        # Once more from zero, where it has led too far.
        open_ &= ~np.isfinite(found.z).all(axis=1) | ~np.isfinite(norms)
        _reset(parts, found, open_)
    found.z[open_], norms[open_] = start[open_], math.inf
    return found, norms


def _complete(parts: Parts, s: FloatArray, found: Found) -> FloatArray:
    """Complete given multipliers where they nearly give s; return the norms of the leaks (k,).

    They are infinite where that does not succeed, where there are no kinks, or some are unknown.
    Rows without ends are told by coordinates alone, which have kinks then.
    """
    k, unknown = len(s), np.isnan(found.a)
    endless = np.isinf(parts.rows["low"]) & np.isinf(parts.rows["high"])
    kinks = np.bincount(parts.owner[endless | (parts.rows["kind"] == KINK)], minlength=k) > 0
    known = kinks & (np.bincount(parts.owner[unknown], minlength=k) == 0)
    shared = _share(parts, s, found, known, SHARED)
    good = known & (shared.left <= ROUNDING * shared.scale)
    _reset(parts, found._replace(z=found.z.copy()), ~known)
    return np.where(good, shared.left, math.inf)


def _reset(parts: Parts, found: Found, nodes: BoolArray) -> None:
    """Start anew from zero, with multipliers inside their intervals."""
    rows = nodes[parts.owner]
    table = parts.rows[rows]
    found.z[nodes], found.t[nodes], found.nu[nodes] = 0.0, 0.0, 0.0
    found.a[rows] = np.clip(0.0, table["low"], table["high"])


def _share(parts: Parts, s: FloatArray, found: Found, nodes: BoolArray, goal: float) -> Shared:
    """Share the leaks of some nodes out down to a goal, see `gtvcvx.losses.node._conjugate`."""
    numbers = np.flatnonzero(nodes)
    shared = Shared(np.full(len(s), math.inf), np.zeros(len(s)))
    if len(numbers):
        share(
            numbers,
            parts.X,
            parts.rows,
            parts.indptr,
            parts.coordinates,
            parts.totals,
            s,
            *found[1:],
            *shared,
            goal,
            parts.nodes_a_look,
        )
    return shared


def _maximize(parts: Parts, s: FloatArray, found: Found, nodes: BoolArray, rough: bool) -> None:
    """Write the best points and multipliers of some nodes; `best_multipliers` has their leaks."""
    before = found._replace(z=found.z.copy(), a=found.a.copy(), nu=found.nu.copy())
    lengths = _first_lengths(parts)
    inside = _Ascent.of(parts, s, found, lengths).run(nodes, rough)
    outside = nodes & ~inside
    if rough or not outside.any():
        return
    # Off the domain steps of one length make the leak the distance from it.
    rows = outside[parts.owner]
    found.z[outside], found.nu[outside] = before.z[outside], before.nu[outside]
    found.a[rows] = before.a[rows]
    shortest = np.broadcast_to(lengths.min(axis=1, keepdims=True), lengths.shape)
    _Ascent.of(parts, s, found, shortest).run(outside, rough)


def _first_lengths(parts: Parts) -> FloatArray:
    """Return the first step sizes (k, d) by the curvatures: columns may differ in units."""
    curved = weighted(parts.indptr, parts.rows["c"], parts.X**2)
    curvature = parts.coordinates["mu"] + curved
    largest = curvature.max(axis=1, keepdims=True)
    # No curvature at all: any step will do.
    typical = np.where(curvature > 0.0, curvature, np.where(largest > 0.0, largest, 1.0))
    return FIRST_STEP / typical


@dataclass
class _Ascent:
    """The proximal point method at some nodes, and the best that it has come by.

    Attributes
    ----------
    found : Found
        Where it starts, and then the best.
    lengths : numpy.ndarray, shape (k, d)
        Of the next steps.
    first, reach, size : numpy.ndarray
        Where it started, (k, d); how far from zero that is, and what cancels in the value, (k,).
    """

    parts: Parts
    s: FloatArray
    found: Found
    lengths: FloatArray
    first: FloatArray
    reach: FloatArray
    size: FloatArray
    prox: ProximalPoints

    @staticmethod
    def of(parts: Parts, s: FloatArray, found: Found, lengths: FloatArray) -> _Ascent:
        """Begin at the points that are found, and at multipliers with which they are optimal."""
        first, size = found.z.copy(), np.zeros(len(s))
        values(parts.X, parts.centred, parts.indptr, first, size)
        size = np.abs(size) + np.abs(s * first).sum(axis=1)
        prox = ProximalPoints(parts)
        prox.points.z[:] = first
        prox.set_multipliers(*_guess(parts, found), found.nu[:, 0])
        reach = row_norm_2(first)
        return _Ascent(parts, s, found, lengths.copy(), first, reach, size, prox)

    def run(self, nodes: BoolArray, rough: bool) -> BoolArray:
        """Run at some nodes; say where multipliers miss no more of s than rounding."""
        k = len(nodes)
        trying, step = nodes.copy(), FIRST_STEP
        least_leak, least_gap = np.full(k, math.inf), np.full(k, math.inf)
        least_above, before = np.full(k, math.inf), np.full(k, math.inf)
        while step <= LARGEST_STEP and trying.any():
            moved = self._step(trying)
            trial = self._trial()
            shared = _share(self.parts, self.s, trial, trying, SHARED)
            cost, scale = np.where(trying, 2.0 * shared.left, 0.0) * self.reach, shared.scale
            left = np.where(shared.left <= ROUNDING * scale, 0.0, shared.left)
            gap = cost + self._gaps(self.first, trial)
            better = (left < least_leak) | ((left == least_leak) & (gap < least_gap))
            better &= trying
            self._take(trial, better)
            least_leak[better], least_gap[better] = left[better], gap[better]
            above = cost + self._gaps(trial.z, trial)
            # Off the domain the supremum is far out, and each step leads farther.
            farther = trying & ((left > 0.0) | (above <= least_above))
            self.found.z[farther] = trial.z[farther]
            least_above = np.where(farther, np.where(left == 0.0, above, math.inf), least_above)
            best = (left == 0.0) & (above <= EXACT * self.size)
            stalled = (moved > 0.3 * before) & (moved <= STALLED * scale)
            trying &= ~(best | stalled | (moved <= SHARED * scale))
            if rough:
                break
            before, step = moved, step * GROWTH
            self.lengths *= GROWTH
        return least_leak == 0.0

    def _step(self, nodes: BoolArray) -> FloatArray:
        """Take a proximal step at some nodes; return what the multipliers miss of s, (k,).

        It maximizes ``<s, z> - L(z) - sum_j (z_j - start_j)^2 / (2 lengths_j)``.
        """
        c, start = self.parts.coordinates, self.prox.points.z.copy()
        q = c["mu"] + 1.0 / self.lengths
        p = c["linear"] + self.s + start / self.lengths
        self.prox.minimize(q, p, nodes)
        moved: FloatArray = np.linalg.norm((self.prox.points.z - start) / self.lengths, axis=1)
        return moved

    def _trial(self) -> Found:
        """Multipliers at the step's end, and room for the rest."""
        a, nu = self.prox.multipliers()
        z = self.prox.points.z.copy()
        return Found(z, a, np.zeros_like(z), nu[:, None], np.zeros_like(z))

    def _gaps(self, w: FloatArray, at: Found) -> FloatArray:
        parts = self.parts
        gap: FloatArray = gaps(
            parts.X, parts.centred, parts.indptr, parts.coordinates, w, at.a, at.t
        )
        return gap

    def _take(self, trial: Found, nodes: BoolArray) -> None:
        rows = nodes[self.parts.owner]
        self.found.a[rows], self.found.nu[nodes] = trial.a[rows], trial.nu[nodes]


def _guess(parts: Parts, found: Found) -> tuple[FloatArray, FloatArray]:
    """Multipliers with which the points would be optimal, inside their intervals at the kinks."""
    kinks = kinks_at(parts.X, parts.rows, found.z[parts.owner])
    a = np.where(parts.rows["kind"] == KINK, kinks, found.a)
    return a, parts.coordinates["kappa"] * np.sign(found.z)
