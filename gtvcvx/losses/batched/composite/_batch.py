"""Losses of rows, regularizers and node constraints: whatever is not quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._lazy import cp
from gtvcvx._norms import norm, row_norm_2
from gtvcvx._per_thread import PerThread
from gtvcvx.losses.batched._base import BatchedLoss, DualDomain, RangeRows
from gtvcvx.losses.batched._doubt import Doubt
from gtvcvx.losses.batched._terms import SMOOTH_KINDS, Term, selected
from gtvcvx.losses.batched.composite import _cvxpy_model as model
from gtvcvx.losses.batched.composite._absorption import Absorption, doubts
from gtvcvx.losses.batched.composite._ascent import best_multipliers
from gtvcvx.losses.batched.composite._domain import bounded, dual_domain, firmness
from gtvcvx.losses.batched.composite._model import (
    Frame,
    QuadraticModel,
    RidgedModel,
    few_beside_ridges,
)
from gtvcvx.losses.batched.composite._multipliers import smooth_multipliers
from gtvcvx.losses.batched.composite._null_space import NullSpace
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.composite._proximal import ProximalPoints
from gtvcvx.losses.batched.composite._thin_domain import fits, of_free_rows, thin_domain
from gtvcvx.losses.batched.composite._whitening import Whitened
from gtvcvx.losses.node import _batch as compiled
from gtvcvx.losses.node import _models as models
from gtvcvx.losses.node._scalar import KINK, row_slope
from gtvcvx.losses.node._segments import images, weighted

EPS = float(np.finfo(np.float64).eps)
# Multipliers that miss s by less than this share of what adds up to s count as exact; the bound is
# lowered by what the rest may cost.
LEAK = 1e-10
# Steps to where kinks' multipliers are told, in the length of w over that of s.
LONG_STEP = 10.0


class Multipliers(NamedTuple):
    """Multipliers of k nodes for some s, see `gtvcvx.losses.batched.composite._ascent`."""

    z: FloatArray  # (k, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (k, d)
    nu: FloatArray  # (k, 1)
    leak: FloatArray  # (k,)
    size: FloatArray  # (k,)


class BatchedComposite(BatchedLoss):
    r"""Sums of row losses, points, ridge and l1 terms, boxes and simplices at k nodes.

    .. math:: L_i(w) = \sum_r f_r(x_r^T w) + \sum_j g_{ij}(w_j), \quad \sum_j w_j = T_i

    with f_r as in `gtvcvx.losses.node._scalar`; proximal points by
    `gtvcvx.losses.node._following`, conjugates by `gtvcvx.losses.batched.composite._ascent`.

    Parameters
    ----------
    terms : list of dict
        Plain data at the nodes 0, ..., k - 1, merged (`gtvcvx.losses.batched._terms.merged`).
    """

    precise = True

    def __init__(self, terms: Sequence[Term], n_nodes: int, dim: int) -> None:
        self._n_nodes, self.dim = n_nodes, dim
        self._terms = list(terms)
        self._parts = parts = Parts.of(self._terms, n_nodes, dim)
        self._constrained = parts.constrained
        self.modelled = self.smooth
        # Runs in other threads, for another lambda, follow points of their own.
        self._followed = PerThread(ProximalPoints, parts)

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return self._n_nodes

    @property
    def _proximal(self) -> ProximalPoints:
        return self._followed.own

    @property
    def smooth(self) -> bool:
        """Whether there are neither kinks nor constraints."""
        return {term["kind"] for term in self._terms} <= SMOOTH_KINDS

    def value(self, w: FloatArray) -> FloatArray:
        """Losses (k,), +inf outside the constraints."""
        parts = self._parts
        out = parts.separable_value(w)
        compiled.values(parts.X, parts.centred, parts.indptr, np.ascontiguousarray(w), out)
        return out

    def gradient(self, w: FloatArray) -> FloatArray:
        """Subgradients (k, d), those closest to zero at kinks; constraints contribute zero."""
        parts = self._parts
        c = parts.coordinates
        out = c["mu"] * w - c["linear"] + c["kappa"] * np.sign(w)
        compiled.gradients(parts.X, parts.rows, parts.indptr, np.ascontiguousarray(w), out)
        return out

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self._parts)

    @cached_property
    def _ridged(self) -> bool:
        return few_beside_ridges(self._parts)

    @cached_property
    def _whitened(self) -> Whitened:
        if self._ridged:
            return Whitened.beside_ridges(self._parts)
        lost = np.rint(self._null.dimensions).astype(np.int64)
        return Whitened.of(self._parts, self._frame, self.dim - lost)

    def model(
        self, w: FloatArray, last: BatchedLoss | None = None
    ) -> QuadraticModel | RidgedModel | None:
        """Return squared errors of the rows; None if there are kinks or constraints."""
        if not self.smooth:
            return None
        if self._ridged:
            return RidgedModel(self._parts, w, last if isinstance(last, RidgedModel) else None)
        known = last if isinstance(last, QuadraticModel) else None
        return QuadraticModel(self._parts, self._frame, w, known)

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """How far rows and points are above their tangents; the same of terms without kinks."""
        if not self.smooth:
            return super().rise(w, before)
        parts = self._parts
        out = 0.5 * np.sum(parts.coordinates["mu"] * (w - before) ** 2, axis=1)
        ends = np.ascontiguousarray(w), np.ascontiguousarray(before)
        models.rises(parts.X, parts.rows, parts.indptr, *ends, out)
        return out

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points (k, d)."""
        return self._proximal.of(v, tau).copy()

    @property
    def detours(self) -> float:
        """Work of `prox` so far beyond one pass over the nodes for each call, in such passes."""
        return self._proximal.detours

    def forget(self) -> None:
        """Let the next proximal points start at zero."""
        if (proximal := self._followed.made) is not None:  # which takes a while to make
            proximal.forget()

    def project_domain(self, w: FloatArray) -> FloatArray:
        """Return w_i, or its projection on the constraints where it violates them."""
        parts = self._parts
        if not self._constrained:
            return w
        out = np.clip(w, parts.coordinates["lower"], parts.coordinates["upper"])
        outside = np.flatnonzero(~parts.sums_right(out))
        if outside.size:
            here = self._parts.constraints(outside)
            out[outside] = ProximalPoints(here).of(w[outside], np.ones(len(outside)))
        return out

    def _multipliers(
        self,
        s: FloatArray,
        start: FloatArray,
        given: FloatArray | None = None,
        rough: bool = False,
        distances: bool = False,
    ) -> Multipliers:
        """Best multipliers for s, without its part along null directions; or rough ones.

        Where rows have kinks given multipliers (N,) stay, if they nearly give s; NaN is unknown.
        Leaks are distances from the domain where they are asked for; otherwise those off the
        domain, and the multipliers there, are only known to be no good.
        """
        parts = self._parts
        inside = np.ascontiguousarray(s - self._null.apply(s))
        if self.smooth:
            z, a, t, norms, left, off = smooth_multipliers(parts, self._whitened, inside, start)
            nu = np.zeros((len(z), 1))
            # Off the domain Newton's multipliers are rough ones already.
            nodes = np.flatnonzero(left | off if distances and not rough else left)
            if len(nodes):
                here, rows = parts.of_nodes(nodes)
                found, norms[nodes] = best_multipliers(
                    here, inside[nodes], start[nodes], None, rough
                )
                z[nodes], a[rows], t[nodes], nu[nodes], _ = found
        else:
            (z, a, t, nu, _), norms = best_multipliers(parts, inside, start, given, rough)
        size = compiled.sizes(parts.X, parts.rows, parts.indptr, inside, a)
        return Multipliers(z, a, t, nu, norms, size)

    @cached_property
    def _minimizer(self) -> FloatArray:
        zero = np.zeros((self.n_nodes, self.dim))
        return self.project_domain(self._multipliers(zero, zero).z)

    def minimizer(self) -> FloatArray:
        """Minimizers, or far out on the way to where the infimum is approached."""
        return self._minimizer.copy()

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Upper bounds on the conjugates, exact up to rounding; +inf off their domains."""
        parts = self._parts
        best = self._multipliers(s, self._minimizer, distances=bool(np.isfinite(atol).any()))
        value = compiled.conjugates(
            parts.rows, parts.indptr, parts.coordinates, parts.totals, best.a, best.t, best.nu
        )
        # What the multipliers miss of s_i pairs with points like the minimizers.
        value += 2.0 * best.leak * row_norm_2(self._minimizer)
        away = np.linalg.norm(self._null.apply(s), axis=1)
        exact = best.leak <= LEAK * best.size
        close = np.isfinite(atol) & (np.hypot(away, best.leak) <= atol)
        inside = close | (exact & (away <= np.maximum(atol, LEAK * best.size)))
        return np.where(inside, value - parts.constant, np.inf)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps, summed over rows and coordinates; +inf where s_i is off the domain.

        Those of given multipliers (Q,) of the generators, where rows have kinks.
        """
        gap, best = self._gap(w, s, multipliers)
        # What the multipliers miss of s_i pairs with the solution, which is close to w_i.
        return gap + 2.0 * best.leak * row_norm_2(w)

    def certain_gap(
        self, w: FloatArray, s: FloatArray, doubt: Doubt, multipliers: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return the same, and what it costs that multipliers give s_i only nearly."""
        gap, best = self._gap(w, s, multipliers)
        parts = self._parts
        summed = np.where(np.isnan(parts.totals), 0.0, best.nu[:, 0])[:, None]
        given = weighted(parts.indptr, best.a, parts.X) + best.t + summed
        around = doubts(parts, s, best.a, best.t) + doubt.injection
        cost = self._absorption.cost(w, best.a, best.t, s - given, around, doubt.reach)
        if cost.share > 0.0:
            level = doubt.variation() + float(np.sum(self.loose_gap(w)))
            return gap, cost.total(level)
        return gap, cost.total(0.0)

    @cached_property
    def _absorption(self) -> Absorption:
        return Absorption(self._parts)

    def _gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None
    ) -> tuple[FloatArray, Multipliers]:
        """Return the node gaps, and the multipliers that they are for."""
        given = None if multipliers is None else self._of_rows(multipliers, s)
        parts, best = self._parts, self._multipliers(s, w, given)
        gap = compiled.gaps(
            parts.X,
            parts.centred,
            parts.indptr,
            parts.coordinates,
            np.ascontiguousarray(w),
            best.a,
            best.t,
        )
        inside = (best.leak <= LEAK * best.size) & parts.sums_right(w)
        return np.where(inside, gap, np.inf), best

    def _slopes(self, w: FloatArray) -> FloatArray:
        parts = self._parts
        slope = row_slope(parts.rows, images(parts.X, parts.indptr, np.ascontiguousarray(w)))
        return np.clip(slope, parts.rows["low"], parts.rows["high"])

    def _cheap_multipliers(self, w: FloatArray, s: FloatArray) -> FloatArray:
        """Return slopes (N,) of rows at w (k, d); those of kinks at proximal points of w and s.

        At a solution these points are w, however long the step is; and slopes at kinks are any.
        """
        slopes, kinks = self._slopes(w), self._parts.rows["kind"] == KINK
        size, pull = norm(w), norm(s)
        if not kinks.any() or not (0.0 < size < np.inf and 0.0 < pull < np.inf):
            return slopes
        tau = LONG_STEP * size / pull
        self._proximal.of(w + tau * s, np.full(len(w), tau))
        return np.where(kinks, self._proximal.multipliers()[0], slopes)

    def shortest(self, w: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return shares (k,) that coordinates' own terms take of what multipliers leave of s.

        And the multipliers (N,) of the rows.
        """
        parts, a = self._parts, self._cheap_multipliers(w, s)
        share = np.empty(len(s))
        look()
        for at, rows, some in parts.in_pieces():
            rest, (low, high) = s[at] - weighted(some.indptr, a[rows], some.X), some.intervals
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(rest > high, high / rest, np.where(rest < low, low / rest, 1.0))
            # A little less: what is scaled is rounded.
            share[at] = (1.0 - 4.0 * EPS) * np.clip(own, 0.0, 1.0).min(axis=1, initial=1.0)
        return np.where(np.isnan(parts.totals), share, 0.0), a

    def short_gap(
        self, w: FloatArray, s: FloatArray, share: float, a: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the gaps of these multipliers, as they are."""
        parts, a = self._parts, share * a
        gap, doubtful = np.empty(len(s)), 0.0
        for at, rows, some in parts.in_pieces():
            own = a[rows]
            t = np.clip(share * s[at] - weighted(some.indptr, own, some.X), *some.intervals)
            here = np.ascontiguousarray(w[at])
            terms = some.X, some.centred, some.indptr, some.coordinates
            gap[at] = compiled.gaps(*terms, here, own, t)
            doubtful += float(np.sum(doubts(some, s[at], own, t)))
        return gap, doubtful

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Add up what the rows and coordinates are above their own least values."""
        parts = self._parts
        gap: FloatArray = compiled.gaps(
            parts.X,
            parts.centred,
            parts.indptr,
            parts.coordinates,
            np.ascontiguousarray(w),
            np.zeros(len(parts.rows)),
            np.zeros_like(w),
        )
        return gap if np.isfinite(gap).all() else super().loose_gap(w)

    @cached_property
    def _null(self) -> NullSpace:
        parts = self._parts
        touched = parts.touched | ~np.isnan(parts.totals)[:, None]
        return NullSpace.of(parts, np.ones(len(parts.rows), dtype=bool), touched)

    def null_projector(self) -> FloatArray | float:
        """Projectors on the directions along which the loss is constant."""
        return self._null.projector()

    def range_rows(self) -> RangeRows | None:
        """Return bases of what the rows span, where they are few and there is nothing else."""
        return self._null.beside

    @cached_property
    def _domain(self) -> tuple[DualDomain, BoolArray] | None:
        parts = self._parts
        return thin_domain(parts) if fits(parts) else dual_domain(parts)

    def domain(self) -> DualDomain | None:
        """Return the bounded rows, and the coordinates with an l1 term or one bound."""
        return None if self._domain is None else self._domain[0]

    def multipliers(self, s: FloatArray, w: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Multipliers of the generators, and the distance of w_i to where they leave an end."""
        assert self._domain is not None
        near = self._minimizer if w is None else self.project_domain(w)
        best = self._multipliers(s, near, rough=w is not None, distances=True)
        found, firm = firmness(self._parts, best.z if w is None else near, best.a, best.t)
        chosen = self._domain[1]
        return found[chosen], firm[chosen]

    def _of_rows(self, multipliers: FloatArray, s: FloatArray) -> FloatArray:
        """Multipliers (N,) of rows from those of the generators (Q,), NaN where these do not tell.

        Where few rows are free and all else is generators, what the others leave of s (k, d).
        """
        assert self._domain is not None
        rows, chosen = bounded(self._parts)[0], self._domain[1]
        of_bounded = np.full(len(chosen), np.nan)
        of_bounded[chosen] = multipliers
        out = np.full(len(rows), np.nan)
        out[rows] = of_bounded[: np.count_nonzero(rows)]
        if fits(self._parts) and chosen.all():
            t = of_bounded[np.count_nonzero(rows) :].reshape(s.shape)
            of_free_rows(self._parts, s - t, out)
        return out

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        return model.value_model(self._parts, w)

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate, with the multipliers of rows and coordinates."""
        return model.conjugate_model(self._parts, s)

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Return the terms that the losses were made of."""
        return [selected(term, np.asarray(nodes), copied=False) for term in self._terms]
