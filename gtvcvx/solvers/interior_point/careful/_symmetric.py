"""Products of symmetric cones: nonnegative numbers and second-order cones, beside free rows.

Slacks s and multipliers z inside the cones have a scaling point (Nesterov and Todd 1997): a
symmetric matrix W with ``W z = inverse(W) s``, block by block. Rows of the zero cone have no slack,
and a multiplier that is free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.conic._form import Cone, located

EPS = float(np.finfo(np.float64).eps)
# Points are nudged inside second-order cones by this share of their length.
NUDGE = 1e-12

#: Cones that are known here.
SYMMETRIC = frozenset({"zero", "nonneg", "soc"})


class SymmetricCones:
    """Places of the rows of a product of cones, and what is done with them.

    Parameters
    ----------
    cones : sequence of Cone
        In the order of the rows; what is not of a `SYMMETRIC` kind is left alone.

    Attributes
    ----------
    size : int
        Number M of rows.
    free, signs : ndarray of int
        Rows of zero cones, and of nonnegative numbers.
    others : ndarray of int
        Rows of no symmetric cone; the unit, products and quotients are zero there.
    lengths : dict of int to ndarray of int
        For each number of rows, which rows second-order cones of so many have, (K, rows).
    degree : int
        Sum of the cones' barrier parameters.
    unit : ndarray, shape (M,)
        The product's identity, inside all cones.
    """

    def __init__(self, cones: Sequence[Cone]) -> None:
        free, signs, others = ([np.empty(0, np.int64)] for _ in range(3))
        lengths: dict[int, list[IntArray]] = {}
        for place, cone in located(cones):
            rows = np.arange(place.start, place.stop)
            if cone.kind == "zero":
                free.append(rows)
            elif cone.kind not in SYMMETRIC:
                others.append(rows)
            elif cone.kind == "nonneg" or cone.rows == 1:
                signs.append(rows)
            else:
                lengths.setdefault(cone.rows, []).append(rows)
        self.size = sum(cone.rows for cone in cones)
        self.free, self.signs = np.concatenate(free), np.concatenate(signs)
        self.others = np.concatenate(others)
        self.lengths = {rows: np.array(places) for rows, places in lengths.items()}
        self.degree = len(self.signs) + sum(len(at) for at in self.lengths.values())
        self.unit = np.zeros(self.size)
        self.unit[self.signs] = 1.0
        for at in self.lengths.values():
            self.unit[at[:, 0]] = 1.0

    def depth(self, x: FloatArray) -> float:
        """Return by how much of the unit x (M,) is inside; negative outside."""
        least = [float(x[self.signs].min(initial=np.inf))]
        least += [float((x[at[:, 0]] - _tail(x[at])).min()) for at in self.lengths.values()]
        return min(least)

    def inside(self, x: FloatArray) -> FloatArray:
        """Return x (M,), or x and as much of the unit as it takes to be inside by one."""
        x = x.copy()
        depth = self.depth(x)
        if depth <= 1e-8 * max(1.0, float(np.abs(x).max(initial=0.0))):
            x += (1.0 - depth) * self.unit
        return x

    def nudged(self, x: FloatArray) -> FloatArray:
        """Return x (M,), each cone's part moved inside by no more than rounding asks for."""
        x, least = x.copy(), EPS * float(np.abs(x).max(initial=0.0))
        x[self.signs] = np.maximum(x[self.signs], least)
        for at in self.lengths.values():
            x[at[:, 0]] = np.maximum(x[at[:, 0]], (1.0 + NUDGE) * _tail(x[at]) + least)
        return x

    def kept(self, x: FloatArray) -> FloatArray:
        """Return x (M,), inside all cones but for what steps are rounded by: inside."""
        x = x.copy()
        for at in self.lengths.values():
            x[at[:, 0]] = np.maximum(x[at[:, 0]], (1.0 + 8.0 * EPS) * _tail(x[at]))
        return x

    def product(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the Jordan product, zero at free rows."""
        out = np.zeros(self.size)
        out[self.signs] = x[self.signs] * y[self.signs]
        for at in self.lengths.values():
            a, b = x[at], y[at]
            block = a[:, :1] * b + b[:, :1] * a
            block[:, 0] = np.sum(a * b, axis=1)
            out[at] = block
        return out

    def quotient(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the q with ``product(x, q) = y``, zero at free rows."""
        out = np.zeros(self.size)
        out[self.signs] = y[self.signs] / x[self.signs]
        for at in self.lengths.values():
            a, b = x[at], y[at]
            first = (a[:, 0] * b[:, 0] - np.sum(a[:, 1:] * b[:, 1:], axis=1)) / _determinant(a)
            out[at[:, 0]] = first
            out[at[:, 1:]] = (b[:, 1:] - first[:, None] * a[:, 1:]) / a[:, :1]
        return out

    def longest(self, x: FloatArray, step: FloatArray) -> float:
        """Return the largest t with x + t step inside all cones, x being inside."""
        signs = step[self.signs]
        falls = signs < 0.0
        t = float(np.min(-x[self.signs][falls] / signs[falls], initial=np.inf))
        for at in self.lengths.values():
            t = min(t, float(_longest(x[at], step[at]).min()))
        return t


class Scaling:
    """The scaling point of slacks s and multipliers z (M,) inside the cones.

    Parameters
    ----------
    cones : SymmetricCones
    s, z : ndarray, shape (M,)
    """

    def __init__(self, cones: SymmetricCones, s: FloatArray, z: FloatArray) -> None:
        self._cones = cones
        self._diagonal = np.ones(cones.size)
        self._diagonal[cones.signs] = np.sqrt(s[cones.signs] / z[cones.signs])
        # W = size (2 v v^T - J)
        self._blocks = {rows: _block(s[at], z[at]) for rows, at in cones.lengths.items()}

    def times(self, x: FloatArray) -> FloatArray:
        """Return ``W x``; free rows stay as they are."""
        out = self._diagonal * x
        for rows, at in self._cones.lengths.items():
            size, v = self._blocks[rows]
            out[at] = size[:, None] * _reflected(v, x[at])
        return out

    def divided(self, x: FloatArray) -> FloatArray:
        """Return ``inverse(W) x``; free rows stay as they are."""
        out = x / self._diagonal
        for rows, at in self._cones.lengths.items():
            size, v = self._blocks[rows]
            out[at] = _reflected(_mirror(v), x[at]) / size[:, None]
        return out

    def reflections(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return inverse(W) in pieces, as (M,), (M,) and (K,).

        The diagonal of rows that are no second-order cone's; else the u, and for each cone, in the
        order of their rows, the size, of ``(2 u u^T - J) / size``.
        """
        cones, u = self._cones, np.zeros(self._cones.size)
        first, sizes = [np.empty(0, np.int64)], [np.empty(0)]
        for rows, at in cones.lengths.items():
            size, v = self._blocks[rows]
            u[at] = _mirror(v)
            first.append(at[:, 0])
            sizes.append(size)
        return 1.0 / self._diagonal, u, np.concatenate(sizes)[np.argsort(np.concatenate(first))]


def _tail(x: FloatArray) -> FloatArray:
    found: FloatArray = np.linalg.norm(x[:, 1:], axis=1)
    return found


def _mirror(x: FloatArray) -> FloatArray:
    """Return J x for each row: all but the first entry with the other sign."""
    return np.concatenate([x[:, :1], -x[:, 1:]], axis=1)


def _reflected(v: FloatArray, x: FloatArray) -> FloatArray:
    """Return ``(2 v v^T - J) x`` for each row."""
    found: FloatArray = 2.0 * v * np.sum(v * x, axis=1)[:, None] - _mirror(x)
    return found


def _determinant(x: FloatArray) -> FloatArray:
    """Return ``x_0^2 - |x_1|^2`` for each row, as a product."""
    tail = _tail(x)
    found: FloatArray = (x[:, 0] - tail) * (x[:, 0] + tail)
    return found


def _block(s: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (K,) sizes and (K, rows) vectors v of the scaling points, see Vandenberghe 2010."""
    of_s, of_z = _determinant(s), _determinant(z)
    s, z = s / np.sqrt(of_s)[:, None], z / np.sqrt(of_z)[:, None]
    middle = s + _mirror(z)
    middle /= np.sqrt(2.0 * (1.0 + np.sum(s * z, axis=1)))[:, None]
    v = middle
    v[:, 0] = 1.0 + np.hypot(1.0, _tail(middle))
    v /= np.sqrt(2.0 * v[:, :1])
    return (of_s / of_z) ** 0.25, v


def _longest(x: FloatArray, step: FloatArray) -> FloatArray:
    """Return for each row the first t > 0 at which it leaves its cone, infinity if it never does.

    The determinant at t is ``a t^2 + 2 b t + c``.
    """
    a, c = _determinant(step), _determinant(x)
    b = x[:, 0] * step[:, 0] - np.sum(x[:, 1:] * step[:, 1:], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - a * c)
        t = np.where(b < 0.0, c / (root - b), np.where(a < 0.0, (b + root) / -a, np.inf))
        t = np.where(np.isnan(t) | (t <= 0.0), np.inf, t)
        return np.minimum(t, np.where(step[:, 0] < 0.0, -x[:, 0] / step[:, 0], np.inf))
