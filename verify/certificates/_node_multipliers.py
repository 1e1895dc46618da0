"""Multipliers of the nodes' losses from flow conservation, all nodes at once.

Where a loss has a kink at w (an absolute value at zero, a hinge at its margin, a bound that is
reached) w does not say what its multiplier is; the flow that leaves the node does. Per node

    minimize    sum_k h_k*(r_k) - <r_k, B_k w>      subject to    sum_k B_k^T r_k = s_i

is solved by an infeasible primal-dual interior point method (Wright, "Primal-Dual Interior-Point
Methods", chapter 6), with the displacement v of w as the multiplier of the equations: smooth blocks
have r = h'(B (w + v)), and every finite end of an interval has a slack and a multiplier of its own.
A term eps ||v||^2/2 keeps all systems solvable: where the equations have no solution they are
missed by as little as possible. Where blocks are constraints B w = y, no v leads off them, and what
the others leave of s_i is theirs (`_equations`). Where a node has no more blocks than directions,
the equations alone say what its multipliers are: of rows that are decided for good they may be
powers of ten larger than the slopes at w, which v would follow e-fold a round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._coordinates import column, coordinate_part, diagonal
from verify.certificates._equations import Equations
from verify.certificates._whitening import WhitePart, frames, row_squares, sizes
from verify.instance._batched import solve
from verify.instance._blocks import Part

ROUNDS = 80
START = 0.01  # of the typical dual times primal size: the complementarity products to begin with
PATIENCE = 5  # rounds for the residual of the equations to halve
EPS = 1e-14  # of the typical curvature: residual of the equations that a unit of v may leave
SOLVED = 1e-13  # of the target: equations miss no more than rounding
STIFFEST = 1e8  # times the typical curvature: no block follows a displacement more readily
# Where only that keeps multipliers from their place, ten times more readily in each round.
LOOSER = 0.1


def node_multipliers(
    parts: list[Part],
    w: FloatArray,
    target: FloatArray,
    tolerance: float,
    expired: Callable[[], bool] = lambda: False,
) -> list[FloatArray]:
    """Return multipliers per part with sum_k B_k^T r_k = target, of least total gap at w.

    Parameters
    ----------
    parts : list of Part
    w, target : ndarray, shape (n, d)
    tolerance : float
        Complementarity products, each the gap that a multiplier may leave at one end.
    expired : callable
        Whether the time is over.
    """
    n, d = w.shape
    if diagonal(parts, d):
        apart = [coordinate_part(part) for part in parts]
        columns = node_multipliers(apart, column(w), column(target), tolerance, expired)
        return [r.reshape(part.shape) for r, part in zip(columns, parts, strict=True)]
    images = [part.push(w) for part in parts]
    typical, gap = sizes(parts, images, target, w)
    others = [k for k, part in enumerate(parts) if not part.equation]
    squares = row_squares([parts[k] for k in others], [np.square(typical[k]) for k in others])
    equations = Equations(parts, n, d)
    frame = frames(squares, n, d, equations.along)
    eps = EPS / gap
    blocks = [_Iterate(WhitePart(parts[k], frame), images[k], typical[k], gap) for k in others]
    given, target = target, np.einsum("njk,nj->nk", frame, target)
    dual = np.maximum(np.abs(target).max(axis=1), 1.0)
    v = np.zeros_like(w)
    best, stale, length = np.full(n, np.inf), np.zeros(n), np.full(n, 0.5)
    for _ in range(ROUNDS):
        error = target - sum((b.part.pull(b.r) for b in blocks), eps[:, None] * v)
        missed = np.abs(error).max(axis=1)
        stale = np.where(missed < 0.5 * best, 0, stale + 1)
        best = np.minimum(missed, best)
        mean, least = _complementarity(blocks, n)
        hopeful = (missed > 1e-13 * dual) & (stale < PATIENCE)
        held = _stationarity(blocks, v) > 10 * tolerance
        going = (mean > tolerance) | held | hopeful
        if not going.any() or expired():
            break
        for b in blocks:
            b.loosen(held & (mean <= tolerance))
        # Short steps come from products of very different size: then even them out first.
        share = np.where(least > 0.05 * mean, 0.1, 0.5)
        centre = np.maximum(np.maximum(share, 1 - length) * mean, 0.3 * tolerance)
        step = _newton_step(blocks, v, centre, error, eps)
        length = going.astype(np.float64)
        for b in blocks:
            b.set_direction(step)
            b.part.least(length, b.longest_step())
        v = v + length[:, None] * step
        for b in blocks:
            b.advance(length, v)
    found = [np.zeros(part.shape) for part in parts]
    for k, b in zip(others, blocks, strict=True):
        found[k] = b.part.function.clip(b.r)
    _solve_determined(blocks, [found[k] for k in others], frame, target)
    equations.left_to(parts, found, given)
    return found


def _solve_determined(
    blocks: list[_Iterate], found: list[FloatArray], frame: FloatArray, target: FloatArray
) -> None:
    """Replace multipliers of nodes where the equations determine them, inside their intervals.

    Target (n, d) and blocks are in frames in which the squares of the blocks, times the typical
    sizes of their multipliers, are ones where they are not zero.
    """
    number = np.zeros(len(target))
    for b in blocks:
        number += b.part.per_node((b.part.function.lo < b.part.function.hi).astype(np.float64))
    rank = (np.abs(frame).max(axis=1) > 0).sum(axis=1)
    only = (number == rank) & (number > 0)
    if not only.any():
        return

    def missed(r: list[FloatArray]) -> FloatArray:
        return target - sum((b.part.pull(v) for b, v in zip(blocks, r, strict=True)), 0 * target)

    own = [np.zeros(b.part.shape) for b in blocks]
    for _ in range(2):  # the second time for the rounding of the first
        rest = missed(own)
        own = [r + b.size**2 * b.part.push(rest) for b, r in zip(blocks, own, strict=True)]
    own = [b.part.function.clip(r) for b, r in zip(blocks, own, strict=True)]
    left = np.abs(missed(own)).max(axis=1)
    solved = only & (left <= SOLVED * np.abs(target).max(axis=1))
    for b, r, v in zip(blocks, found, own, strict=True):
        r[...] = np.where(b.part.of_nodes(solved), v, r)


def _newton_step(
    blocks: list[_Iterate], v: FloatArray, centre: FloatArray, error: FloatArray, eps: FloatArray
) -> FloatArray:
    """Return the change of v that solves the equations of all nodes to first order, (n, d)."""
    matrix = eps[:, None, None] * np.eye(v.shape[1])
    for b in blocks:
        b.linearize(v, centre)
        matrix = matrix + b.part.hessian(b.theta)
        error = error - b.part.pull(b.theta * b.offset)
    rounding = 1e-15 * v.shape[1] * np.trace(matrix, axis1=1, axis2=2)  # must not make it singular
    matrix = matrix + rounding[:, None, None] * np.eye(v.shape[1])
    return solve(matrix, error)


def _complementarity(blocks: list[_Iterate], n: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the least complementarity product per node, zero where there is none."""
    total, count, least = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for b in blocks:
        for end in b.ends:
            product = end.slack * end.multiplier
            total += b.part.per_node(product)
            count += b.part.per_node(end.where.astype(np.float64))
            b.part.least(least, np.where(end.where, product, np.inf))
    return total / np.maximum(count, 1), least


def _stationarity(blocks: list[_Iterate], v: FloatArray) -> FloatArray:
    """Return the largest residual of stationarity per node, times the width it costs."""
    out = np.zeros(len(v))
    for b in blocks:
        held = sum(end.sign * end.multiplier for end in b.ends)
        b.part.largest(out, np.abs(b.slope_left(v) - held) * b.width)
    return out


class _End:
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


class _Iterate:
    """The iterate of one part: r, and the ends of its interval."""

    def __init__(self, part: Part, z: FloatArray, size: FloatArray, reach: FloatArray) -> None:
        self.part, self.z, self.size = part, z, size
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
            _End(1, above, np.maximum(f.hi - self.r, margin), product),
            _End(-1, below, np.maximum(self.r - f.lo, margin), product),
        )

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

    def set_direction(self, step: FloatArray) -> None:
        """Set the directions that belong to a displacement of w."""
        self.image = self.part.push(step)
        self.dr = np.where(self.free, self.theta * (self.image + self.offset), 0.0)
        for end in self.ends:
            end.set_direction(self.dr)

    def longest_step(self) -> FloatArray:
        """Return the longest step that each block allows."""
        out = 1 / np.maximum(np.abs(self.image) / self.part.function.reach, 1.0)
        for end in self.ends:
            out = end.longest_step(out)
        return out

    def advance(self, length: FloatArray, v: FloatArray) -> None:
        """Take the step."""
        each = self.part.of_nodes(length)
        self.r = self._with_smooth(self.r + each * self.dr, self.z + self.part.push(v))
        for end in self.ends:
            end.advance(each)
