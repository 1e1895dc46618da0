"""The rounds in which multipliers of nodes are found (`_node_multipliers`), and their systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._node_iterates import Iterate
from verify.certificates._whitening import graded_frames, row_squares
from verify.instance._batched import solve

ROUNDS = 80
TURN = 5  # rounds in the same coordinates
PATIENCE = 5  # rounds for the residual of the equations to halve,
CLIMB = 40  # and those whose steps were cut short: a rate may have to rise from e^-36 to one
SOLVED = 1e-13  # of what adds up: equations miss no more than rounding,
CHEAP = 1e-3  # nor more than this share of what the tolerance is the cost of

# What is known of how far each node is.
PROGRESS = ("v", "best", "stale", "length", "climbs", "cut")


class Rounds:
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

    KEPT: tuple[str, ...] = ("base", "given", *PROGRESS)

    def __init__(
        self, blocks: list[Iterate], frame: FloatArray, given: FloatArray, tolerance: float
    ) -> None:
        self.blocks, self.base, self.given, self.tolerance = blocks, frame, given, tolerance
        self._begin(*given.shape)
        self.target = np.einsum("njk,nj->nk", frame, given)
        self.enough = SOLVED * np.maximum(np.abs(self.target).max(axis=1), 1.0)

    def _begin(self, n: int, d: int) -> None:
        self.v = np.zeros((n, d))
        self.best, self.stale, self.length = np.full(n, np.inf), np.zeros(n), np.full(n, 0.5)
        self.climbs, self.cut = np.zeros(n), np.zeros(n, dtype=bool)

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
        for name in self.KEPT:
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
        # A rate far too small is raised e-fold a round, and until the last one nothing shows.
        climbing = self.cut & (self.climbs < CLIMB)
        self.climbs = self.climbs + climbing
        self.stale = np.where((missed < 0.5 * self.best) | climbing, 0, self.stale + 1)
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
        step = self._newton_step(centre, error)
        length, farthest = going.astype(np.float64), np.zeros(len(v))
        for b in blocks:
            b.part.least(length, b.longest_step())
            b.part.largest(farthest, b.stretch())
        self.cut = farthest > 1.0
        self.v = v + length[:, None] * step
        for b in blocks:
            b.advance(length, self.v)
        self.length = length
        return going

    def _newton_step(self, centre: FloatArray, error: FloatArray) -> FloatArray:
        """Set directions of all blocks; return the change of v that they belong to, (n, d).

        They solve the equations of all nodes to first order.
        """
        d = self.v.shape[1]
        matrix = np.zeros((*self.v.shape, d))
        for b in self.blocks:
            b.linearize(self.v, centre)
            matrix = matrix + b.part.hessian(b.theta + b.anchor)
            error = error - b.part.pull(b.theta * b.offset)
        rounding = 1e-15 * d * np.trace(matrix, axis1=1, axis2=2)  # must not make it singular
        matrix = matrix + np.where(rounding > 0, rounding, 1.0)[:, None, None] * np.eye(d)
        step = solve(matrix, error)
        for b in self.blocks:
            b.set_direction(step)
        return step


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
