"""Iterates of the node problems (`_node_multipliers`): multipliers, and the ends of intervals."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates._whitening import WhitePart
from verify.instance._blocks import Part

START = 0.01  # of the typical dual times primal size: the complementarity products to begin with
EPS = 1e-14  # of the typical curvature: what an anchor at w has, so that all systems are solvable
STIFFEST = 1e8  # times the typical curvature: no block follows a displacement more readily
# Where only that keeps multipliers from their place, ten times more readily in each round.
LOOSER = 0.1


class End:
    """Upper (sign 1) or lower (-1) ends of the intervals of one part, `where` they are finite.

    `slack` is the distance of r, and `multiplier` that of the constraint slack >= 0.
    """

    def __init__(self, sign: int, where: BoolArray, slack: FloatArray, product: FloatArray) -> None:
        self.sign, self.where = sign, where
        self.slack = np.where(where, slack, 1.0)
        self.multiplier = np.where(where, product / self.slack, 0.0)

    def aim(self, centre: FloatArray) -> None:
        """Aim at a complementarity product: set the multiplier that gives it."""
        self.central = np.where(self.where, centre / self.slack, 0.0)

    def set_direction(self, dr: FloatArray) -> None:
        """Set the directions that belong to a change of r."""
        self.d_slack = -self.sign * dr
        self.d_multiplier = self.central - self.multiplier * (1 + self.d_slack / self.slack)

    def among(self, rows: IntArray) -> Self:
        """Return the ends of some rows."""
        out = copy(self)
        out.where, out.slack, out.multiplier = (
            v[rows] for v in (self.where, self.slack, self.multiplier)
        )
        return out

    def longest_step(self, out: FloatArray) -> FloatArray:
        """Return `out` lowered to the longest steps that keep slack and multiplier positive."""
        pairs = (self.slack, self.d_slack), (self.multiplier, self.d_multiplier)
        for value, change in pairs:
            falls = self.where & (change < 0)
            longest = -0.99 * value / np.where(falls, change, -1.0)
            out = np.where(falls, np.minimum(out, longest), out)
        return out

    def advance(self, length: FloatArray) -> None:
        """Take the step."""
        self.slack = np.where(self.where, self.slack + length * self.d_slack, 1.0)
        self.multiplier = np.where(self.where, self.multiplier + length * self.d_multiplier, 0.0)


class Iterate:
    """The iterate of one part: r, and the ends of its interval.

    Parameters
    ----------
    plain : Part
    part : Part
        The same in coordinates of displacements.
    z : ndarray
        Images of the point.
    size : ndarray
        Typical sizes of multipliers.
    reach : ndarray, shape (n,)
        Typical gaps.

    Attributes
    ----------
    at : ndarray of int
        Which blocks of the part that there was to begin with are left.
    """

    def __init__(
        self, plain: Part, part: Part, z: FloatArray, size: FloatArray, reach: FloatArray
    ) -> None:
        self.plain, self.at = plain, np.arange(len(plain.node))
        self.part = part
        self.z = self.origin = z
        self.size = size
        self.anchor = EPS * np.square(size) / part.of_nodes(reach)
        f = part.function
        self.free = f.limited & (f.lo < f.hi)  # entries with an iterate of their own
        self.fixed = f.limited & ~self.free
        above, below = (self.free & np.isfinite(end) for end in (f.hi, f.lo))
        each = np.broadcast_to(part.of_nodes(reach), part.shape)
        self.soft = each / (STIFFEST * np.square(size))
        self.width = np.minimum(np.minimum(f.hi, size) - np.maximum(f.lo, -size), size)
        margin = np.where(above & below, 0.25, 1.0) * self.width
        inside = np.clip(f.slope(self.z), f.lo + margin, f.hi - margin)
        self.r = self._with_smooth(inside, self.z)
        product = START * each
        self.ends = (
            End(1, above, np.maximum(f.hi - self.r, margin), product),
            End(-1, below, np.maximum(self.r - f.lo, margin), product),
        )

    def among(self, nodes: BoolArray) -> Self:
        """Return the iterate of those nodes (n,) alone; it has to be turned."""
        rows = np.flatnonzero(nodes[self.plain.node])
        out = copy(self)
        out.plain = self.plain.among(nodes)
        for name in (
            "at",
            "z",
            "origin",
            "size",
            "free",
            "fixed",
            "soft",
            "anchor",
            "width",
            "r",
            "theta",
        ):
            setattr(out, name, getattr(self, name)[rows])
        out.ends = (self.ends[0].among(rows), self.ends[1].among(rows))
        return out

    def pulled(self, v: FloatArray) -> FloatArray:
        """Return what the multipliers add up to beside what the anchor takes."""
        moved = self.z - self.origin + self.part.push(v)
        return self.part.pull(self.r + self.anchor * moved)

    def move(self, v: FloatArray) -> None:
        """Let displacements count from where one of v leads."""
        self.z = self.z + self.part.push(v)

    def turn(self, frame: FloatArray) -> None:
        """Take other coordinates of displacements."""
        self.part = WhitePart(self.plain, frame)

    def _with_smooth(self, r: FloatArray, z: FloatArray) -> FloatArray:
        """Return r at the free entries, the slope at z at smooth ones, zero at the others."""
        return np.where(self.free, r, np.where(self.fixed, 0.0, self.part.function.slope(z)))

    def slope_left(self, v: FloatArray) -> FloatArray:
        """Return B (w + v) - (h*)'(r): what the multipliers of the ends have to add up to."""
        f = self.part.function
        return np.where(self.free, self.z + self.part.push(v) - f.y - f.bend * self.r, 0.0)

    def loosen(self, nodes: BoolArray) -> None:
        """Let the blocks of nodes (n,) follow displacements more readily."""
        self.soft = self.soft * self.part.of_nodes(np.where(nodes, LOOSER, 1.0))

    def linearize(self, v: FloatArray, centre: FloatArray) -> None:
        """Set theta and offset of  dr = theta (B dv + offset)."""
        f, (up, down) = self.part.function, self.ends
        each = np.broadcast_to(self.part.of_nodes(centre), self.part.shape)
        up.aim(each)
        down.aim(each)
        stiff = f.bend + up.multiplier / up.slack + down.multiplier / down.slack
        smooth = f.curvature(self.z + self.part.push(v))
        self.theta = np.where(self.free, 1 / (stiff + self.soft), smooth)
        self.offset = np.where(self.free, self.slope_left(v) - up.central + down.central, 0.0)

    def set_direction(self, step: FloatArray, dr: FloatArray | None = None) -> None:
        """Set the directions that belong to a displacement of w; dr, where it is known."""
        self.image = self.part.push(step)
        if dr is None:
            dr = self.theta * (self.image + self.offset)
        self.dr = np.where(self.free, dr, 0.0)
        for end in self.ends:
            end.set_direction(self.dr)

    def stretch(self) -> FloatArray:
        """Return how many times farther whole steps lead than curvatures tell."""
        out: FloatArray = np.abs(self.image) / self.part.function.reach
        return out

    def longest_step(self) -> FloatArray:
        """Return the longest step that each block allows."""
        out = 1 / np.maximum(self.stretch(), 1.0)
        for end in self.ends:
            out = end.longest_step(out)
        return out

    def advance(self, length: FloatArray, v: FloatArray) -> None:
        """Take the step."""
        each = self.part.of_nodes(length)
        self.r = self._with_smooth(self.r + each * self.dr, self.z + self.part.push(v))
        for end in self.ends:
            end.advance(each)
