"""Multipliers of the nodes' losses from flow conservation, all nodes at once.

Where a loss has a kink at w (an absolute value at zero, a hinge at its margin, a bound that is
reached) w does not say what its multiplier is; the flow that leaves the node does. Per node

    minimize    sum_k h_k*(r_k) - <r_k, B_k w>      subject to    sum_k B_k^T r_k = s_i

is solved by an infeasible primal-dual interior point method (Wright, "Primal-Dual Interior-Point
Methods", chapter 6), with the displacement v of w as the multiplier of the equations: smooth blocks
have r = h'(B (w + v)), and every finite end of an interval has a slack and a multiplier of its own.
An anchor, eps ||v||^2/2, keeps all systems solvable: where the equations have no solution they are
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
from verify.certificates._node_iterates import Iterate
from verify.certificates._whitening import WhitePart, frames, graded_frames, row_squares, sizes
from verify.instance._batched import solve
from verify.instance._blocks import Part

ROUNDS = 80
TURN = 5  # rounds in the same coordinates
PATIENCE = 5  # rounds for the residual of the equations to halve
SOLVED = 1e-13  # of what adds up: equations miss no more than rounding,
CHEAP = 1e-3  # nor more than this share of what the tolerance is the cost of


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
    blocks = [Iterate(parts[k], frame, images[k], typical[k], gap) for k in others]
    found = [np.zeros(part.shape) for part in parts]
    own = [found[k] for k in others]
    _Rounds(blocks, frame, target, tolerance).run(own, expired)
    _solve_determined([parts[k] for k in others], [typical[k] for k in others], own, frame, target)
    equations.left_to(parts, found, target)
    return found


class _Rounds:
    """The rounds of the nodes that need more, in coordinates of their own systems.

    At first typical multipliers are alike. Close to a solution curvatures differ by 1e18: what a
    ridge or an l1 term does where all rows are decided is lost in rounding beside rows at a kink,
    and v never comes back from where the first rounds have led. So displacements are told, from
    time to time, in coordinates in which the system of the last round is the identity.

    Parameters
    ----------
    blocks : list of Iterate
        In coordinates given by `frame`.
    frame : ndarray, shape (n, d, d)
    given : ndarray, shape (n, d)
        What multipliers have to add up to.
    tolerance : float
    """

    def __init__(
        self, blocks: list[Iterate], frame: FloatArray, given: FloatArray, tolerance: float
    ) -> None:
        n, d = given.shape
        self.blocks, self.base, self.given, self.tolerance = blocks, frame, given, tolerance
        self.v = np.zeros((n, d))
        self.best, self.stale, self.length = np.full(n, np.inf), np.zeros(n), np.full(n, 0.5)
        self.target = np.einsum("njk,nj->nk", frame, given)
        self.enough = SOLVED * np.maximum(np.abs(self.target).max(axis=1), 1.0)

    def run(self, found: list[FloatArray], expired: Callable[[], bool]) -> None:
        """Write multipliers into those found, one array for each block."""
        going = np.ones(len(self.v), dtype=bool)
        for number in range(1, ROUNDS + 1):
            going = self._round()
            if not going.any() or expired():
                break
            if number % TURN == 0:
                self._write(found)
                for b in self.blocks:
                    b.move(self.v)
                self._narrow(going)
                self._turn()
        self._write(found)

    def _write(self, found: list[FloatArray]) -> None:
        """Write down the multipliers of the nodes that are left."""
        for b, r in zip(self.blocks, found, strict=True):
            r[b.at] = b.part.function.clip(b.r)

    def _narrow(self, going: BoolArray) -> None:
        """Leave out nodes whose multipliers are found."""
        if going.all():
            return
        self.blocks = [b.among(going) for b in self.blocks]
        for name in ("base", "given", "v", "best", "stale", "length"):
            setattr(self, name, getattr(self, name)[going])

    def _turn(self) -> None:
        """Take coordinates in which the system of the last round is the identity."""
        weights = [b.theta + b.anchor for b in self.blocks]
        squares = row_squares([b.plain for b in self.blocks], weights)
        frame = graded_frames(squares, *self.v.shape, self.base)
        size = np.abs(self.given)
        for b in self.blocks:
            b.turn(frame)
            size += b.plain.pull_sizes(np.abs(b.r))
        self.v = np.zeros_like(self.v)
        self.target = np.einsum("njk,nj->nk", frame, self.given)
        size = np.einsum("njk,nj->nk", np.abs(frame), size).max(axis=1)
        # There a residual costs half its square.
        self.enough = np.minimum(SOLVED * size, CHEAP * np.sqrt(self.tolerance))
        self.best = self._missed(self._error())

    def _error(self) -> FloatArray:
        return self.target - sum((b.pulled(self.v) for b in self.blocks), 0 * self.target)

    def _missed(self, error: FloatArray) -> FloatArray:
        return np.asarray(np.abs(error).max(axis=1))

    def _round(self) -> BoolArray:
        """Take one step; say of which nodes (n,)."""
        blocks, v, tolerance = self.blocks, self.v, self.tolerance
        error = self._error()
        missed = self._missed(error)
        self.stale = np.where(missed < 0.5 * self.best, 0, self.stale + 1)
        self.best = np.minimum(missed, self.best)
        mean, least = _complementarity(blocks, len(v))
        hopeful = (missed > self.enough) & (self.stale < PATIENCE)
        held = _stationarity(blocks, v) > 10 * tolerance
        going = (mean > tolerance) | held | hopeful
        if not going.any():
            return going
        for b in blocks:
            b.loosen(held & (mean <= tolerance))
        # Short steps come from products of very different size: then even them out first.
        share = np.where(least > 0.05 * mean, 0.1, 0.5)
        centre = np.maximum(np.maximum(share, 1 - self.length) * mean, 0.3 * tolerance)
        step = _newton_step(blocks, v, centre, error)
        length = going.astype(np.float64)
        for b in blocks:
            b.set_direction(step)
            b.part.least(length, b.longest_step())
        self.v = v + length[:, None] * step
        for b in blocks:
            b.advance(length, self.v)
        self.length = length
        return going


def _solve_determined(
    parts: list[Part],
    sizes: list[FloatArray],
    found: list[FloatArray],
    frame: FloatArray,
    target: FloatArray,
) -> None:
    """Replace multipliers of nodes where the equations determine them, inside their intervals.

    Target (n, d) and blocks are in frames in which the squares of the blocks, times the typical
    sizes of their multipliers, are ones where they are not zero.
    """
    number = np.zeros(len(target))
    for part in parts:
        number += part.per_node((part.function.lo < part.function.hi).astype(np.float64))
    rank = (np.abs(frame).max(axis=1) > 0).sum(axis=1)
    only = (number == rank) & (number > 0)
    if not only.any():
        return
    white = [WhitePart(part, frame) for part in parts]
    target = np.einsum("njk,nj->nk", frame, target)

    def missed(r: list[FloatArray]) -> FloatArray:
        return target - sum((p.pull(v) for p, v in zip(white, r, strict=True)), 0 * target)

    own = [np.zeros(part.shape) for part in parts]
    for _ in range(2):  # the second time for the rounding of the first
        rest = missed(own)
        triples = zip(white, sizes, own, strict=True)
        own = [r + size**2 * part.push(rest) for part, size, r in triples]
    own = [part.function.clip(r) for part, r in zip(white, own, strict=True)]
    left = np.abs(missed(own)).max(axis=1)
    solved = only & (left <= SOLVED * np.abs(target).max(axis=1))
    for part, r, v in zip(white, found, own, strict=True):
        r[...] = np.where(part.of_nodes(solved), v, r)


def _newton_step(
    blocks: list[Iterate], v: FloatArray, centre: FloatArray, error: FloatArray
) -> FloatArray:
    """Return the change of v that solves the equations of all nodes to first order, (n, d)."""
    matrix = np.zeros((*v.shape, v.shape[1]))
    for b in blocks:
        b.linearize(v, centre)
        matrix = matrix + b.part.hessian(b.theta + b.anchor)
        error = error - b.part.pull(b.theta * b.offset)
    rounding = 1e-15 * v.shape[1] * np.trace(matrix, axis1=1, axis2=2)  # must not make it singular
    matrix = matrix + np.where(rounding > 0, rounding, 1.0)[:, None, None] * np.eye(v.shape[1])
    return solve(matrix, error)


def _complementarity(blocks: list[Iterate], n: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the least complementarity product per node, zero where there is none."""
    total, count, least = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for b in blocks:
        for end in b.ends:
            product = end.slack * end.multiplier
            total += b.part.per_node(product)
            count += b.part.per_node(end.where.astype(np.float64))
            b.part.least(least, np.where(end.where, product, np.inf))
    return total / np.maximum(count, 1), least


def _stationarity(blocks: list[Iterate], v: FloatArray) -> FloatArray:
    """Return the largest residual of stationarity per node, times the width it costs."""
    out = np.zeros(len(v))
    for b in blocks:
        held = sum(end.sign * end.multiplier for end in b.ends)
        b.part.largest(out, np.abs(b.slope_left(v) - held) * b.width)
    return out
