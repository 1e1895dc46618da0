"""Multipliers of nodes in many dimensions with few rows (`_node_multipliers`), in pieces of nodes.

The same rounds in the same coordinates as the data: systems are diagonals and rows
(`_thin_system`), so that no matrix (d, d) is needed for a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify._deadline import look
from verify.certificates._coordinates import few_rows
from verify.certificates._node_iterates import EPS, Iterate
from verify.certificates._node_rounds import PROGRESS, SOLVED, Rounds
from verify.certificates._thin_system import ThinSystem, solved
from verify.certificates._whitening import sizes
from verify.instance._blocks import Part

ENTRIES = 1 << 18  # of nodes that are looked at together


def is_thin(parts: Sequence[Part], d: int) -> bool:
    """Say whether nodes have few rows in many dimensions, and no constraints among them."""
    return few_rows(parts, d) and not any(part.equation for part in parts)


def in_pieces(
    parts: list[Part],
    w: FloatArray,
    target: FloatArray,
    tolerance: float,
    expired: Callable[[], bool],
) -> list[FloatArray]:
    """Return multipliers as `node_multipliers` does."""
    n, d = w.shape
    found = [np.zeros(part.shape) for part in parts]
    size = max(ENTRIES // d, 1)
    for first in range(0, n, size):
        look()
        chosen = np.zeros(n, dtype=bool)
        chosen[first : first + size] = True
        some = [part.among(chosen) for part in parts]
        own = _multipliers(some, w[chosen], target[chosen], tolerance, expired)
        for part, r, out in zip(parts, own, found, strict=True):
            out[chosen[part.node]] = r
    return found


def _multipliers(
    parts: list[Part],
    w: FloatArray,
    target: FloatArray,
    tolerance: float,
    expired: Callable[[], bool],
) -> list[FloatArray]:
    images = [part.push(w) for part in parts]
    typical, gap = sizes(parts, images, target, w)
    blocks = [Iterate(p, p, z, t, gap) for p, z, t in zip(parts, images, typical, strict=True)]
    found = [np.zeros(part.shape) for part in parts]
    ThinRounds(blocks, target, tolerance).run(found, expired)
    _solve_rows(parts, found, target)
    _leave_to_squares(parts, found, target)
    return found


class ThinRounds(Rounds):
    """The rounds of some nodes.

    Parameters
    ----------
    blocks : list of Iterate
    target : ndarray, shape (n, d)
        What multipliers have to add up to.
    tolerance : float
    """

    KEPT = ("target", "anchor", "moved", "size", *PROGRESS)

    def __init__(self, blocks: list[Iterate], target: FloatArray, tolerance: float) -> None:
        self.blocks, self.target, self.tolerance = blocks, target, tolerance
        # One anchor for each coordinate, those of all blocks there.
        anchor = sum((b.part.hessian_diagonal(b.anchor) for b in blocks), 0.0 * target)
        self.anchor = np.maximum(anchor, EPS * anchor.max(axis=1, keepdims=True))
        self.anchor[self.anchor == 0.0] = 1.0
        for b in blocks:
            b.anchor = np.zeros_like(b.anchor)
        self.moved = np.zeros_like(target)
        self._begin(*target.shape)
        self.enough: FloatArray = np.full(len(target), SOLVED)
        self._measure([b.size for b in blocks])
        self._bring_together()

    def _measure(self, sizes_of_blocks: list[FloatArray]) -> None:
        """Measure what adds up, in each coordinate."""
        self.size = np.abs(self.target)
        for b, size in zip(self.blocks, sizes_of_blocks, strict=True):
            self.size = self.size + b.part.pull_sizes(np.where(np.isfinite(size), size, 0.0))
        self.size[self.size == 0.0] = 1.0

    def _bring_together(self) -> None:
        n, d = self.v.shape
        self.groups = ThinSystem([b.part for b in self.blocks], n, d).groups()

    def _narrow(self, going: BoolArray) -> None:
        self.moved = self.moved + self.v
        if going.all():
            return
        super()._narrow(going)
        for b in self.blocks:
            b.part = b.plain
        self._bring_together()

    def _turn(self) -> None:
        """Let displacements count from where they have led to."""
        self.v = np.zeros_like(self.v)
        self.enough = np.full(len(self.v), SOLVED)
        self._measure([np.abs(b.r) for b in self.blocks])
        self.best = self._missed(self._error())

    def _error(self) -> FloatArray:
        left = self.target - self.anchor * (self.moved + self.v)
        for b in self.blocks:
            left -= b.part.pull(b.r)
        return left

    def _missed(self, error: FloatArray) -> FloatArray:
        return np.asarray((np.abs(error) / self.size).max(axis=1))

    def _newton_step(self, centre: FloatArray, error: FloatArray) -> FloatArray:
        look()
        diagonal, rest = self.anchor, error
        weights, offsets = [np.zeros(0)], [np.zeros(0)]
        for b in self.blocks:
            b.linearize(self.v, centre)
            if b.part.x is None:
                diagonal = diagonal + b.part.hessian_diagonal(b.theta)
                rest = rest - b.part.pull(b.theta * b.offset)
            else:
                weights.append(b.theta)
                offsets.append(b.offset)
        taken, y = solved(
            self.groups, diagonal, np.concatenate(weights), rest, np.concatenate(offsets)
        )
        step, first = taken / diagonal, 0
        for b in self.blocks:
            dr = None
            if b.part.x is not None:
                last = first + len(b.r)
                dr, first = y[first:last], last
            b.set_direction(step, dr)
        return step


def _solve_rows(parts: list[Part], found: list[FloatArray], target: FloatArray) -> None:
    """Replace multipliers where a node has rows alone, which the equations then determine."""
    n, d = target.shape
    rows = [k for k, part in enumerate(parts) if part.x is not None]
    alone = np.ones(n, dtype=bool)
    for part in parts:
        if part.x is None:
            free = part.function.lo < part.function.hi
            alone &= part.per_node(np.broadcast_to(free, part.shape).astype(float)) == 0.0
    if not rows or not alone.any():
        return
    groups = ThinSystem(parts, n, d).groups()
    some = [(parts[k].function.lo < parts[k].function.hi) * 1e100 for k in rows]
    left, y = solved(groups, np.ones_like(target), np.concatenate(some), target)
    _, more = solved(groups, np.ones_like(target), np.concatenate(some), left)
    splits = np.split(y + more, np.cumsum([len(found[k]) for k in rows])[:-1])
    own = [parts[k].function.clip(v) for k, v in zip(rows, splits, strict=True)]
    left = target - sum((parts[k].pull(v) for k, v in zip(rows, own, strict=True)), 0.0 * target)
    before = target - sum((parts[k].pull(found[k]) for k in rows), 0.0 * target)
    enough = SOLVED * np.abs(target).max(axis=1)
    # Flows that nearly cancel leave their own rounding, which is more than enough of the sum.
    enough = np.maximum(enough, 0.5 * np.abs(before).max(axis=1))
    solves = alone & (np.abs(left).max(axis=1) <= enough)
    for k, v in zip(rows, own, strict=True):
        found[k] = np.where(parts[k].of_nodes(solves), v, found[k])


def _leave_to_squares(parts: list[Part], found: list[FloatArray], target: FloatArray) -> None:
    """Let multipliers without ends take what is left."""
    left = target - sum((p.pull(r) for p, r in zip(parts, found, strict=True)), 0.0 * target)
    for k, part in enumerate(parts):
        f = part.function
        free = np.isinf(f.lo) & np.isinf(f.hi)
        if part.x is None and np.any(free):
            units = 1.0 if part.units is None else part.units
            taken = np.where(free, left[part.node] * units, 0.0)
            found[k] = found[k] + taken
            left -= part.pull(taken)
