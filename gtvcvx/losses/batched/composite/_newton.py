"""Best multipliers of smooth nodes for linear terms, by Newton's method in their own coordinates.

The supremum of ``<t, z> - F(z)`` is what the conjugate is. At any z Newton's step d gives
multipliers, too: slopes at z, and what curvatures times the change of the images add to them. They
add up to t exactly, as the step solves just that; where they are among the slopes, they bound the
conjugate from above, however far the step is from the end.

All nodes of a group take their steps together, and those that have arrived leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.losses.batched.composite._row_arrays import RowArrays
from gtvcvx.losses.batched.composite._whitening import WhiteNodes
from gtvcvx.losses.node._problem import EPS
from gtvcvx.losses.node._scalar import HUBER, PSEUDO_HUBER, SQUARED


@dataclass(frozen=True)
class NewtonSettings:
    """When steps are short, and when they have led far enough.

    Attributes
    ----------
    steps : int
        Most steps. Rates and odds next to zero change by the factor e in a step, and those that
        doubles can tell from zero are e^-36.
    reach, stretch : float
        A step changes no exponent by more than `reach` and so many times what it is, nor residuals
        of pseudo-Huber rows, in deltas: in the tails, curvatures say next to nothing.
    searches : int
        Most looks for the length of a step, where its slope is not piecewise linear.
    turned : float
        A step is short enough when the slope along it has not turned to more than this share.
    tails, floor : float
        Least curvatures of Huber rows in their tails, where they have none, and of other rows, as
        shares of the largest.
    rounding : float
        What is added to a Hessian, as a share of its trace, lest it be singular.
    exact : float
        The best multipliers are found when the step promises so small a share of what adds up to
        the value.
    leak : float
        Multipliers give t up to rounding when they miss so small a share of what adds up to it.
    outside : float
        Off the domain is what a direction tells from it by this share of what adds up to that;
        nearer to it, it may be rounding.
    """

    steps: int = 60
    reach: float = 10.0
    stretch: float = 2.0
    searches: int = 40
    turned: float = 0.5
    tails: float = 1e-7
    floor: float = 1e-17
    rounding: float = 4.0 * EPS
    exact: float = 1e-13
    leak: float = 32.0 * EPS
    outside: float = 1e-9


NEWTON = NewtonSettings()


class Ends(NamedTuple):
    """Where k nodes have ended."""

    z: FloatArray  # (k, r)
    a: FloatArray  # (k, m), among the slopes
    found: BoolArray  # (k,), whether a gives t up to rounding
    off: BoolArray  # (k,), whether t is proved to be off the domain


def maximize(
    group: WhiteNodes,
    rows: RowArrays,
    t: FloatArray,
    z: FloatArray,
    settings: NewtonSettings = NEWTON,
) -> Ends:
    """Maximize ``<t, z> - F(z)`` for slopes t (k, r), from points z (k, r)."""
    k = len(t)
    none = np.zeros(k, dtype=bool)
    ends = Ends(z.copy(), np.clip(0.0, rows.low, rows.high), none, none.copy())
    some = _Nodes(np.arange(k), group.X, rows, rows.spans, t, z, np.full(k, np.inf))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(settings.steps):
            look()
            step = some.step(settings)
            going = some.leave(step, ends, settings)
            if not going.any():
                break
            some = some.after(step, going, settings)
    return ends


class _Step(NamedTuple):
    """Newton's steps of k nodes."""

    d: FloatArray  # (k, r)
    image: FloatArray  # (k, m)
    change: FloatArray  # (k, m), of the images
    a: FloatArray  # (k, m), multipliers that give t
    along: FloatArray  # (k,), <t, d>
    promise: FloatArray  # (k,), slope along d
    size: FloatArray  # (k,), what adds up to the value, about


class _Nodes(NamedTuple):
    """Nodes that are on their way."""

    number: IntArray  # (k,)
    X: FloatArray  # (k, m, r)
    rows: RowArrays
    spans: FloatArray  # (k, m), see `RowArrays.spans`
    t: FloatArray  # (k, r)
    z: FloatArray  # (k, r)
    least: FloatArray  # (k,), what steps have promised where multipliers were found

    def step(self, settings: NewtonSettings) -> _Step:
        """Return Newton's steps."""
        X, rows, t = self.X, self.rows, self.t
        image = _images(X, self.z)
        slope, curvature = rows.slopes(image)
        least = np.where(rows.kind == HUBER, settings.tails, settings.floor)
        steep = np.maximum(curvature, least * rows.c)
        rest = t - _sums(X, slope)
        H = (X * steep[:, :, None]).transpose(0, 2, 1) @ X
        # Far out, curvatures of several rows may be apart by more than doubles can hold.
        H += (settings.rounding * np.einsum("kjj->k", H))[:, None, None] * np.eye(H.shape[1])
        d, change = np.zeros_like(rest), np.zeros_like(image)
        for _ in range(2):  # the second time for what was added
            left = rest - _sums(X, steep * change)
            d += np.linalg.solve(H, left[:, :, None])[:, :, 0]
            change = _images(X, d)
        size = np.sum(np.abs(t * self.z), axis=1) + rows.c.sum(axis=1)
        size += np.sum(np.abs(slope) * (np.abs(image) + np.abs(rows.y)), axis=1)
        along, promise = np.sum(t * d, axis=1), np.sum(rest * d, axis=1)
        return _Step(d, image, change, slope + steep * change, along, promise, size)

    def leave(self, step: _Step, ends: Ends, settings: NewtonSettings) -> BoolArray:
        """Write what steps have found to the ends; say which nodes go on, (k,)."""
        a = np.clip(step.a, self.rows.low, self.rows.high)
        size = np.abs(self.t) + _sums(np.abs(self.X), np.maximum(np.abs(a), self.spans))
        leak = np.abs(self.t - _sums(self.X, a))
        given = (leak <= settings.leak * size.max(axis=1, keepdims=True)).all(axis=1)
        better = given & (step.promise < self.least)
        number = self.number[better]
        ends.a[number], ends.z[number], ends.found[number] = a[better], self.z[better], True
        self.least[better] = step.promise[better]
        off = self._outside(step, settings)
        ends.a[self.number[off]], ends.off[self.number[off]] = a[off], True
        arrived = given & (step.promise <= settings.exact * step.size)
        return ~off & ~arrived & np.isfinite(step.promise)

    def _outside(self, step: _Step, settings: NewtonSettings) -> BoolArray:
        """Say whose d tells t from the domain: <t, d> is above <s, d> for all s in it, (k,)."""
        end = np.where(step.change > 0.0, self.rows.high, self.rows.low)
        reach = np.where(step.change == 0.0, 0.0, end * step.change)
        along = self.t * step.d
        size = np.abs(along).sum(axis=1) + np.abs(reach).sum(axis=1)
        beyond: BoolArray = along.sum(axis=1) - reach.sum(axis=1) > settings.outside * size
        return beyond & np.isfinite(size)

    def at(self, some: BoolArray) -> _Nodes:
        """Return some of these nodes."""
        return _Nodes(
            self.number[some],
            self.X[some],
            self.rows.at(some),
            self.spans[some],
            self.t[some],
            self.z[some],
            self.least[some],
        )

    def after(self, step: _Step, going: BoolArray, settings: NewtonSettings) -> _Nodes:
        """Return those that go on, where their steps lead."""
        some = self.at(going)
        steps = _Step(*(field[going] for field in step))
        length = some._lengths(steps, settings)
        return some._replace(z=some.z + length[:, None] * steps.d)

    def _lengths(self, step: _Step, settings: NewtonSettings) -> FloatArray:
        """Return lengths (k,) at which the slope has mostly gone, and hardly turned."""
        broken = self.rows.piecewise_linear
        if broken.all():
            return self._ends_of_lines(step, settings)
        if not broken.any():
            return self._searched(step, settings)
        length = np.empty(len(broken))
        for some, lengths in ((broken, _Nodes._ends_of_lines), (~broken, _Nodes._searched)):
            length[some] = lengths(self.at(some), _Step(*(f[some] for f in step)), settings)
        return length

    def _slope_at(self, step: _Step, length: FloatArray) -> FloatArray:
        """Return what is left of the slope along steps at their lengths (k,)."""
        a, _ = self.rows.slopes(step.image + length[:, None] * step.change)
        left: FloatArray = step.along - np.sum(a * step.change, axis=1)
        return left

    def _ends_of_lines(self, step: _Step, settings: NewtonSettings) -> FloatArray:
        """Return the whole step's length where that will do, and else where the slope vanishes.

        Squared and Huber rows have a slope along the step that is linear between the lengths at
        which a row comes to its core or leaves it. In tails curvatures are not those of the rows,
        so that whole steps may lead a thousandth of the way.
        """
        length = np.ones(len(self.t))
        short = ~(np.abs(self._slope_at(step, length)) <= settings.turned * step.promise)
        if not short.any():
            return length
        rows, image, change = self.rows.at(short), step.image[short], step.change[short]
        fall = 2.0 * rows.c * change**2
        bends = (rows.kind == HUBER) & (change != 0.0)
        moves = np.where(bends, change, 1.0)
        middle = np.where(bends, (rows.y - image) / moves, 0.0)
        half = np.where(bends, rows.delta / np.abs(moves), np.inf)
        # Where rows come in and leave; what is behind counts from the start.
        at = np.maximum(np.concatenate([middle - half, middle + half], axis=1), 0.0)
        order = np.argsort(at, axis=1)
        falls = np.take_along_axis(np.concatenate([fall, -fall], axis=1), order, axis=1)
        at = np.take_along_axis(at, order, axis=1)
        falls = np.maximum(np.cumsum(falls, axis=1), 0.0)  # from here on
        finite = np.isfinite(at)
        widths = np.diff(np.where(finite, at, 0.0), axis=1)
        lost = np.cumsum(np.where(finite[:, 1:], falls[:, :-1] * widths, 0.0), axis=1)
        rest = step.promise[short, None] - np.pad(lost, ((0, 0), (1, 0)))  # at each of these ends
        # The last of them at which the slope has not gone; it falls on, or never vanishes.
        last = np.count_nonzero(finite & (rest > 0.0), axis=1)[:, None] - 1
        begin, left, falls = (np.take_along_axis(f, last, axis=1)[:, 0] for f in (at, rest, falls))
        end = begin + np.where(falls > 0.0, left / falls, 0.0)
        length[short] = np.where((end > 0.0) & np.isfinite(end), end, 1.0)
        return length

    def _searched(self, step: _Step, settings: NewtonSettings) -> FloatArray:
        """Return the same by secants, for all rows."""
        length = 1.0 / np.maximum(self._stretch(step, settings), 1.0)
        # What is known of the ends between which the slope vanishes.
        low, high = np.zeros_like(length), np.full_like(length, np.inf)
        before, after = step.promise.copy(), np.full_like(length, -np.inf)
        for _ in range(settings.searches):
            ahead = self._slope_at(step, length)
            turned = ~(ahead >= -settings.turned * step.promise)
            steep = (ahead > settings.turned * step.promise) & (high < np.inf)
            if not (turned | steep).any():
                break
            low, before = np.where(steep, length, low), np.where(steep, ahead, before)
            high, after = np.where(turned, length, high), np.where(turned, ahead, after)
            # The zero of the secant, where that is a number, and not too near either end.
            share = np.clip(np.nan_to_num(before / (before - after)), 0.1, 0.9)
            length = np.where(turned | steep, low + share * (high - low), length)
        return length

    def _stretch(self, step: _Step, settings: NewtonSettings) -> FloatArray:
        """Return how many times too far steps go, (k,)."""
        rows = self.rows
        unit = np.where(rows.kind == PSEUDO_HUBER, rows.delta, 1.0)
        far = settings.reach * unit + settings.stretch * np.abs(step.image - rows.y)
        tailed = (rows.kind != SQUARED) & (rows.kind != HUBER)
        largest: FloatArray = np.where(tailed, np.abs(step.change) / far, 0.0).max(axis=1)
        return largest


def _images(X: FloatArray, z: FloatArray) -> FloatArray:
    """Return <x_r, z_i> (k, m) for features (k, m, r)."""
    out: FloatArray = (X @ z[:, :, None])[:, :, 0]
    return out


def _sums(X: FloatArray, a: FloatArray) -> FloatArray:
    """Return sum_r a_r x_r (k, r) for features (k, m, r)."""
    out: FloatArray = (a[:, None, :] @ X)[:, 0, :]
    return out
