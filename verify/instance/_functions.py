"""Convex functions of one variable, entrywise on arrays: what a block h(B w) does to B w.

Every kind has a conjugate h*(r) on an interval of r that contains zero, and a Fenchel-Young gap
h(z) + h*(r) - r z >= 0 in a form without cancellation.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from scipy.special import expit, log_expit

from verify._arrays import BoolArray, FloatArray, IntArray

LOGARITHM = 8.0  # of p/q, roughly, where p is what has grown


class Function:
    """Base of the functions, all arrays of one shape.

    Attributes
    ----------
    y : ndarray
        As in h*(r) = r y + (a function that has its minimum or its vertex at r = 0).
    lo, hi : ndarray
        The interval of r, possibly infinite; lo <= 0 <= hi.
    bend : ndarray
        Second derivative of h* where that is constant, else zero.
    reach : float
        Changes of z up to this are small for a quadratic model of h.
    entropic : bool
        Whether h* has a term p ln(p).
    """

    reach = np.inf
    entropic = False

    def __init__(self, y: FloatArray, lo: FloatArray, hi: FloatArray) -> None:
        self.y, self.lo, self.hi = y, lo, hi
        self.bend = np.zeros(y.shape)

    @property
    def limited(self) -> BoolArray:
        """Entries whose multiplier is a variable of its own: no smooth function of z has it."""
        return np.zeros(self.y.shape, dtype=bool)

    @property
    def smooth(self) -> bool:
        """Whether h is differentiable everywhere."""
        return True

    def value(self, z: FloatArray) -> FloatArray:
        """Return h(z)."""
        raise NotImplementedError

    def slope(self, z: FloatArray) -> FloatArray:
        """Return a subgradient of h at z, the one closest to zero."""
        raise NotImplementedError

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return h'' at z, its typical size where z is None; zero at the limited entries."""
        raise NotImplementedError

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return h'' where the slope is r, inside the interval; infinite at a kink."""
        raise NotImplementedError

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return h(z) + h*(r) - r z."""
        raise NotImplementedError

    def growth(self, change: FloatArray) -> FloatArray:
        """Return weights, beside `stiffness`, of multipliers that may grow by as much from zero.

        Where h* has a term p ln(p) that costs no more than a logarithm times the change, however
        small p is: a model by the curvature 1/p of p = 1e-25 would cost 1e25 times its square.
        """
        return np.minimum(change, 0.01 * (self.hi - self.lo)) / LOGARITHM

    def kink_distance(self, z: FloatArray) -> FloatArray:
        """Return how far z is beyond the points where h' is inside the interval, signed."""
        return np.zeros(z.shape)

    def clip(
        self, r: FloatArray, margin: float = 0.0, own: FloatArray | float = np.inf
    ) -> FloatArray:
        """Return r moved into the interval, a share of its length away from the ends.

        Away from an end at zero, the share is of no more than `own`: the size that r has where it
        is not at that end. Doubles close to zero are as fine as they are small.
        """
        if margin == 0:
            return np.clip(r, self.lo, self.hi)
        both = np.isfinite(self.lo) & np.isfinite(self.hi)
        length = np.where(both, np.where(both, self.hi, 0.0) - np.where(both, self.lo, 0.0), 0.0)
        short = np.minimum(length, own)
        above = margin * np.where(self.lo == 0, short, length)
        below = margin * np.where(self.hi == 0, short, length)
        return np.clip(r, self.lo + above, self.hi - below)

    def among(self, rows: IntArray, shape: tuple[int, ...]) -> Self:
        """Return the function of some rows; its arrays broadcast to the shape."""
        out = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.ndim:
                setattr(out, name, np.broadcast_to(value, shape)[rows])
        return out

    def size(self) -> FloatArray:
        """Return the larger of the finite ends in absolute value."""
        ends = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (self.lo, self.hi))
        return np.maximum(*ends)


class Piecewise(Function):
    """h(z) = max over lo <= r <= hi of r (z - y) - r^2/(2c), so h*(r) = r y + r^2/(2c).

    c = inf leaves out the square: slopes lo left of y and hi right of it. An infinite slope makes
    a constraint. Where c is finite and the interval is the real line, h(z) = (c/2) (z - y)^2.
    """

    def __init__(self, y: FloatArray, c: FloatArray, lo: FloatArray, hi: FloatArray) -> None:
        super().__init__(y, lo, hi)
        self.c = c
        self.curved = np.isfinite(c) & (c > 0)
        with np.errstate(divide="ignore", over="ignore"):
            self.bend = np.where(self.curved, 1 / np.where(self.curved, c, 1.0), 0.0)

    @property
    def limited(self) -> BoolArray:
        """Entries with a finite end (those of an interval {0} are always zero)."""
        return np.isfinite(self.lo) | np.isfinite(self.hi) | ~self.curved

    @property
    def smooth(self) -> bool:
        """Whether every entry is curved: linear pieces have kinks."""
        return bool((self.curved | (self.lo == self.hi)).all())

    def slope(self, z: FloatArray) -> FloatArray:
        """Return c (z - y) moved into the interval; where c is infinite the end on z's side."""
        t = z - self.y
        with np.errstate(invalid="ignore", over="ignore"):
            side = np.where(t > 0, self.hi, np.where(t < 0, self.lo, 0.0))
            return np.where(np.isinf(self.c), side, self.clip(np.where(self.curved, self.c, 0) * t))

    def value(self, z: FloatArray) -> FloatArray:
        """Return h(z), infinite where a constraint is broken."""
        t, r = z - self.y, self.slope(z)
        with np.errstate(invalid="ignore", over="ignore"):
            curve = np.where(self.curved, self.bend / 2 * r * r, 0.0)
            return np.where(r == 0, 0.0, r * t - curve)

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return c where the interval is the real line."""
        return np.where(self.limited, 0.0, self.c)

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return c, whatever the slope."""
        return self.c

    def kink_distance(self, z: FloatArray) -> FloatArray:
        """Return z - y less what a quadratic takes."""
        t = z - self.y
        inside = self.bend * np.where(self.curved, self.slope(z), 0.0)
        return np.where(self.limited, t - inside, 0.0)

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return (s - r) e + (s - r)^2/(2c) with s the slope at z and e its kink distance."""
        with np.errstate(invalid="ignore", over="ignore"):
            off = self.slope(z) - r
            linear = np.where(off == 0, 0.0, off * self.kink_distance(z))
            return np.maximum(linear, 0) + self.bend / 2 * off * off


class Exponential(Function):
    """(1/m) (f(z) - y z): h' = p/m - y/m with p = f'(z), and h*(r) = f*(m r + y)/m."""

    reach = 1.0
    entropic = True

    def __init__(self, y: FloatArray, m: FloatArray, lo: FloatArray, hi: FloatArray) -> None:
        super().__init__(y, lo, hi)
        self.m = m


class Logistic(Exponential):
    """(1/m) (ln(1 + exp z) - y z), y in {0, 1}."""

    def value(self, z: FloatArray) -> FloatArray:
        """Return ln(1 + exp(z)) or ln(1 + exp(-z)), by the label, over m."""
        return np.logaddexp(0, (1 - 2 * self.y) * z) / self.m

    def slope(self, z: FloatArray) -> FloatArray:
        """Return (sigmoid(z) - y)/m, computed from the side that is small."""
        return (1 - 2 * self.y) * expit((1 - 2 * self.y) * z) / self.m

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return p (1 - p)/m, p = sigmoid(z)."""
        return 0.25 / self.m if z is None else expit(z) * expit(-z) / self.m

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return p (1 - p)/m, where |m r| is p or 1 - p."""
        t = np.abs(self.m * self.clip(r))
        return t * np.maximum(1 - t, 0) / self.m

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return KL(p || q)/m, p = m r + y and q = sigmoid(z)."""
        # With t = p or 1 - p on the side of the label, t is |m r| and never rounds to 0 or 1.
        t = np.abs(self.m * self.clip(r))
        wrong = (1 - 2 * self.y) * z
        return (_relative(t, log_expit(wrong)) + _relative(1 - t, log_expit(-wrong))) / self.m


class Poisson(Exponential):
    """(1/m) (exp(z) - y z), y >= 0."""

    def value(self, z: FloatArray) -> FloatArray:
        """Return (exp(z) - y z)/m."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.exp(z) - self.y * z) / self.m

    def slope(self, z: FloatArray) -> FloatArray:
        """Return (exp(z) - y)/m."""
        with np.errstate(over="ignore"):
            return (np.exp(z) - self.y) / self.m

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return exp(z)/m; a typical size is that at the minimum, y/m."""
        with np.errstate(over="ignore"):
            return (np.maximum(self.y, 1.0) if z is None else np.exp(z)) / self.m

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return p/m, p = m r + y."""
        return np.maximum(self.m * r + self.y, 0) / self.m

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return (p ln(p/q) - p + q)/m, p = m r + y and q = exp(z)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return _relative(np.maximum(self.m * r + self.y, 0), z) / self.m


class Multinomial(Function):
    """(1/m) (ln(1 + sum of exp(z_k)) - z_y) of `others` entries each, one row after the other.

    The entries are the scores of all classes but a reference class, less its score; z_y is that of
    the row's own class, zero where that is the reference. A multiplier is a chance over m, less 1/m
    at the row's own class. What a row has is shared out among its entries.

    Multipliers are within their intervals as far as that of the reference has room: the chance of
    that class is what the others leave of 1.
    """

    reach = 1.0
    entropic = True

    def __init__(self, m: FloatArray, others: int, own: FloatArray) -> None:
        super().__init__(own, -own / m, (1 - own) / m)
        self.m, self.others = m, others

    def _rows(self, v: FloatArray) -> FloatArray:
        return v.reshape(-1, self.others)

    def _logs(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return logarithms of the chances of all entries, and of the reference class."""
        rows = self._rows(z)
        most = np.maximum(rows.max(axis=1, keepdims=True, initial=0.0), 0.0)
        total = np.exp(-most) + np.exp(rows - most).sum(axis=1, keepdims=True)
        # Where no class is ahead, what the others add to one is not lost beside it.
        small = np.log1p(np.exp(np.minimum(rows, 0.0)).sum(axis=1, keepdims=True))
        size = np.where(most > 0.0, most + np.log(total), small)
        return rows - size, -size

    def value(self, z: FloatArray) -> FloatArray:
        """Return ln(1 + sum of exp(z)) over m, shared out evenly, less the row's own score."""
        reference = np.broadcast_to(self._logs(z)[1], self._rows(z).shape)
        return np.asarray((-reference.ravel() / self.others - self.y * z) / self.m)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return the chances over m, less 1/m at the row's own class."""
        return np.asarray((np.exp(self._logs(z)[0]).ravel() - self.y) / self.m)

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return p (1 - p)/m; a typical size is that of even chances."""
        even = 1 / (self.others + 1)
        p = np.full(len(self.m), even) if z is None else np.exp(self._logs(z)[0]).ravel()
        return np.asarray(p * (1 - p) / self.m)

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return p/m, p = m r + 1 or m r: as if the chance of the reference made room."""
        return np.maximum(self.m * r + self.y, 0) / self.m

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return (p ln(p/q) - p + q)/m of each class, that of the reference shared out evenly."""
        p = self._rows(np.clip(self.m * r + self.y, 0, 1))
        logs, own = self._logs(z)
        rest = np.maximum(1 - p.sum(axis=1, keepdims=True), 0)
        with np.errstate(over="ignore", invalid="ignore"):
            found = _relative(p, logs) + _relative(rest, own) / self.others
        return np.asarray(found.ravel() / self.m)


class PseudoHuber(Function):
    """(1/m) delta (sqrt(delta^2 + (z - y)^2) - delta), with h' between -delta/m and delta/m."""

    def __init__(
        self, y: FloatArray, m: FloatArray, delta: FloatArray, lo: FloatArray, hi: FloatArray
    ) -> None:
        super().__init__(y, lo, hi)
        self.m, self.delta = m, delta
        self.reach = float(delta.min(initial=np.inf))

    def value(self, z: FloatArray) -> FloatArray:
        """Return delta t^2 / (sqrt(delta^2 + t^2) + delta) / m, t = z - y."""
        t = z - self.y
        root = np.hypot(self.delta, t)
        with np.errstate(over="ignore"):
            return self.delta * t * (t / (root + self.delta)) / self.m

    def slope(self, z: FloatArray) -> FloatArray:
        """Return delta t / sqrt(delta^2 + t^2) / m."""
        t = z - self.y
        return self.clip(self.delta * (t / np.hypot(self.delta, t)) / self.m)

    def curvature(self, z: FloatArray | None) -> FloatArray:
        """Return (delta / sqrt(delta^2 + t^2))^3 / m; a typical size is that at the minimum."""
        if z is None:
            return 1 / self.m
        return (self.delta / np.hypot(self.delta, z - self.y)) ** 3 / self.m

    def stiffness(self, r: FloatArray) -> FloatArray:
        """Return (1 - (m r/delta)^2)^(3/2) / m."""
        turned = np.square(self.m * r / self.delta)
        return np.asarray(np.maximum(1 - turned, 0) ** 1.5 / self.m)

    def gaps(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return (delta/m) sqrt(delta^2 + t^2) (1 - cos of the angle between two directions).

        They are those of (delta, t) and of (sqrt(delta^2 - p^2), p), p = m r.
        """
        t, p = z - self.y, np.clip(self.m * r, -self.delta, self.delta)
        q, s = np.hypot(self.delta, t), np.sqrt((self.delta - p) * (self.delta + p))
        sine = (p - s * (t / self.delta)) / q
        cosine = (s + p * (t / self.delta)) / q
        off = np.where(cosine > 0, sine**2 / (1 + np.maximum(cosine, 0)), 1 - cosine)
        with np.errstate(over="ignore"):
            return self.delta * q * off / self.m


def _relative(p: FloatArray, log_q: FloatArray) -> FloatArray:
    """Return p ln(p/q) - p + q >= 0 for p >= 0, q > 0, stable where p is close to q.

    The logarithm of q is given: q itself may be zero, or infinite, in doubles.
    """
    q, positive = np.exp(log_q), p > 0
    safe = np.where(positive, p, 1.0)
    t = np.where(positive, (q - p) / safe, 0.0)
    series = t * t * (1 / 2 - t * (1 / 3 - t * (1 / 4 - t / 5)))
    phi = np.where(np.abs(t) < 1e-3, series, t - (log_q - np.log(safe)))
    return np.maximum(np.where(positive, safe * phi, q), 0)
