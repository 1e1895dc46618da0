"""Corrections of a nearly feasible dual point: flow and multipliers together, all nodes at once.

A flow inside its capacities and multipliers inside their intervals may miss the balance

    (D^T u)_i + sum_k B_k^T r_k = 0        at every node i

by little. The least change that makes it up is found in a metric that leaves alone what is close to
an end (`_room`), by one sparse factorization (`_step`). What leaves its bounds is put back and
stays there in the next step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._room import edge_weights, interval_weights, limited
from verify.certificates._step import DualPoint, Metric, Step, balance
from verify.instance._blocks import Part
from verify.instance._instance import Instance

ROUNDS = 6  # steps, each with a factorization; two or three are the rule,
# more where decided rows grow into multipliers. Where a step asks one to leave its interval instead
# of growing into it, its room is so much less from then on.
GROWING_ROUNDS, LESS = 24, 0.3
# What is put back keeps this share of the interval or capacity away from the end, so that rounding
# has room in both directions. It costs as much of the gap at most.
MARGIN = 1e-12
# At least that share counts as room: ends stay where they are, but the system is not singular.
ROOM = 1e-9
# Where no more than rounding is missing, a part of it is less than the margin, whatever the room:
# then what is at its end may move a little too, and every node takes its own rounding.
POLISH = 1e-2
REFINEMENTS = 10  # steps with the same factors, while each
ENOUGH = 0.8  # leaves no more than this share
# Weight of the room beside the curvature, as a share of the objective: how much of the gap it may
# cost to stay away from the ends. At least that where the objective is zero.
BARRIER, LEAST_BARRIER = 1e-9, 1e-30
ROUNDED = 1e-14  # of what adds up at a node: no more than rounding is missing
# Of the most in its coordinate: a node where nearly nothing adds up misses nothing in this sense.
LEAST_SIZE = 1e-8


class Correction:
    """Corrections for one problem and one point.

    Parameters
    ----------
    inst : Instance
        The problem.
    parts : list of Part
        What its terms are sums of, without equations.
    w : ndarray, shape (n, d)
        The point.
    active : ndarray of bool, shape (m,)
        Edges whose flow may move.
    growing : bool
        Whether multipliers of decided rows, next to nothing, may become as large as the balance
        needs: that costs a logarithm, where a model by their curvature has them stay where they
        are.
    """

    def __init__(
        self,
        inst: Instance,
        parts: list[Part],
        w: FloatArray,
        active: BoolArray,
        growing: bool = False,
    ) -> None:
        self.inst, self.parts = inst, parts
        self.active: BoolArray = active & (inst.cap > 0)
        self.value = abs(inst.value(w))
        self._ends = abs(inst.incidence)
        self._rounds = GROWING_ROUNDS if growing else ROUNDS
        self._growth = [np.full(part.shape, float(growing)) for part in parts]

    def run(self, point: DualPoint, expired: Callable[[], bool]) -> DualPoint:
        """Return a dual point that is balanced up to rounding, or better balanced than before."""
        point = self._inside(point)
        for _ in range(self._rounds):
            missing = np.abs(balance(self.inst, self.parts, point))
            if (missing <= ROUNDED * self._size(point)).all() or expired():
                break
            change = self._change(point)
            if not change.finite:
                break
            moved = point.plus(change)
            point = self._inside(moved)
            for growth, r, inside in zip(self._growth, moved.r, point.r, strict=True):
                growth *= np.where(r == inside, 1.0, LESS)
        return point

    def polish(self, point: DualPoint) -> Step:
        """Return the map from what rounding misses at a point to changes that make it up."""
        return Step(self.inst, self.parts, self._metric(point, POLISH))

    def step(self, point: DualPoint) -> Step:
        """Return the map from what a point misses to changes that leave alone what is at an end."""
        return Step(self.inst, self.parts, self._metric(point, ROOM))

    def near(self, point: DualPoint, rest: FloatArray) -> Step:
        """Return the map where nothing need move by more than all of a rest (n, d).

        Whatever has room for that is alike, be it for a millionth of the gradients or for all of
        them: squares of such rooms, side by side, are lost in the rounding of the factors.
        """
        return Step(self.inst, self.parts, self._metric(point, MARGIN, rest))

    def _change(self, point: DualPoint) -> DualPoint:
        """Return the least change that makes up the balance of a point."""
        step = self.step(point)
        change = DualPoint(np.zeros_like(point.u), [np.zeros_like(r) for r in point.r])
        missing = np.inf
        for _ in range(REFINEMENTS):
            rest = balance(self.inst, self.parts, point.plus(change))
            left = float(np.abs(step.white(rest)).max(initial=0.0))
            if not left < ENOUGH * missing:
                break
            missing = left
            change = change.plus(step.response(rest))
        return change

    def _inside(self, point: DualPoint) -> DualPoint:
        """Put back what has left its bounds."""
        u = self.inst.penalty.clip(point.u, self.inst.cap * (1 - MARGIN))
        triples = zip(self.parts, point.r, self._own(point), strict=True)
        return DualPoint(u, [part.function.clip(r, MARGIN, own) for part, r, own in triples])

    def _own(self, point: DualPoint) -> list[FloatArray]:
        """Return what the multipliers of each part are where they alone take what is at the node.

        Where rows are decided, intervals are powers of ten longer: a share of them, for each row of
        a node, would be more than edges of small capacity take.
        """
        size = self._adding_up(point, [np.abs(r) for r in point.r])
        return [part.least_for(size) for part in self.parts]

    def _size(self, point: DualPoint) -> FloatArray:
        """Return the size (n, d) of what adds up at the nodes; intervals count whole."""
        pairs = zip(self.parts, point.r, strict=True)
        return self._adding_up(point, [np.maximum(np.abs(r), p.function.size()) for p, r in pairs])

    def _adding_up(self, point: DualPoint, multipliers: list[FloatArray]) -> FloatArray:
        """Return the size (n, d) of the flow and of multipliers of these sizes, at the nodes."""
        out = np.asarray(self._ends.T @ np.abs(point.u))
        for part, r in zip(self.parts, multipliers, strict=True):
            out += part.pull_sizes(r)
        return np.maximum(out, LEAST_SIZE * out.max(axis=0, initial=0.0))

    def _metric(self, point: DualPoint, least: float, given: FloatArray | None = None) -> Metric:
        """Return the weights at a point, where that share counts as room at least.

        Where a rest (n, d) of the balance is given, no more room counts than takes all of it.
        """
        inst = self.inst
        rest = np.abs(balance(inst, self.parts, point) if given is None else given)
        enough = None if given is None else rest.sum(axis=0)
        entries = point.u.size + sum(r.size for r in point.r) + 1
        barrier = max(BARRIER * self.value / entries, LEAST_BARRIER)
        rows, most = [], np.zeros(inst.d)
        lengths = self._own(point)
        for part, r, length, growth in zip(self.parts, point.r, lengths, self._growth, strict=True):
            # Coordinates have different units.
            typical = np.abs(r) + 1e-3 * np.abs(r).max(axis=0, initial=0.0)
            weights = interval_weights(part, r, typical, barrier, least, length)
            if part.function.entropic and growth.any():
                grown = growth * part.function.growth(part.least_for(rest))
                weights = np.where(weights > 0.0, np.maximum(weights, grown), weights)
            if enough is not None:
                taken = part.least_for(np.broadcast_to(enough, (inst.n, inst.d)))
                weights = np.minimum(weights, limited(taken, barrier))
            rows.append(weights)
            own = part.hessian_diagonal(rows[-1])
            most = np.maximum(most, own.max(axis=0, initial=0.0))
        # Beside edges that take all for nothing what the nodes take would be rounding.
        most = np.where(most > 0, most, np.inf)
        if enough is not None:
            most = np.minimum(most, limited(enough, barrier))
        edges = edge_weights(inst.penalty, point.u, self._reach(point), barrier, least, most)
        return Metric(np.where(self.active[:, None, None], edges, 0.0), rows)

    def _reach(self, point: DualPoint) -> FloatArray:
        """Return the capacities, or less where that is more than whatever can flow."""
        penalty, cap = self.inst.penalty, self.inst.cap
        if not penalty.bounded:
            return cap
        most = penalty.dual_norm(self._size(point)).max(initial=0.0)
        return np.minimum(cap, penalty.dual_norm(point.u) + most)
