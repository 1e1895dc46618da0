"""Constants of the repair of flows, with the reasons for their values."""

from __future__ import annotations

from dataclasses import dataclass

from gtvcvx.block_cholesky._plan import MOST_ENTRIES, MOST_MULTIPLICATIONS


@dataclass(frozen=True)
class Refinement:
    """Conjugate gradients, run again and again on what they have left."""

    # One run is not asked for more than this share of what there is; further digits come from
    # further runs, which rounding does not disturb.
    accuracy: float = 1e-6
    # A run aims below what is wanted by this factor: its own residual is not quite the true one.
    margin: float = 0.5
    # Three make eighteen digits; the others are for systems on which runs fall short.
    runs: int = 5


@dataclass(frozen=True)
class Alternation:
    """Over-relaxed alternating projections between flow conservation and the capacities."""

    sweeps: int
    # Share of what violates conservation that a projection on it may leave.
    accuracy: float
    # They aim this far inside the capacities, so that they get there in finitely many sweeps; it
    # costs the same share of the total variation in the bound.
    shrink: float = 1e-12
    # They converge for every factor below 2, and in fewer sweeps for a large one.
    relaxation: float = 1.9
    # Jumps below this share of the largest one count little when flow is changed.
    jump_share: float = 1e-2
    # They end as soon as what the capacities are exceeded by costs this share of the gap that is
    # asked for, once the whole flow is scaled: that is the share of the total variation.
    spare: float = 0.05


@dataclass(frozen=True)
class Anchoring:
    """The search for flows that are strictly feasible, and the step towards them."""

    # Margins that one is looked for with.
    margins: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
    # What counts as rounding where there is no anchor.
    rounding: float = 1e-12


@dataclass(frozen=True)
class GroundedAlternation(Alternation):
    """The same with the intervals of multipliers, which takes more sweeps."""

    # What was exceeded is aimed at with a margin of this share of the excess: it costs the bound
    # as little, and is met in a few dozen sweeps, where the last digits would take hundreds.
    overshoot: float = 0.01
    # What is left, relative to capacities and intervals, where there is no margin: rounding.
    close: float = 1e-13
    # A flow with this share of the margin it was looked for with is good enough.
    enough: float = 0.0
    # No margin grows beyond this: flows that exceed the capacities by far prove little anyway.
    most: float = 0.1
    # Sweeps go on while what is missing falls by this factor in so many of them.
    stride: int = 20
    fall: float = 0.5


@dataclass(frozen=True)
class CorrectionSettings:
    """Corrections of flows with all multipliers, by linear systems (`gtvcvx.duality._correction`).

    Where a constraint leaves little room, flows and multipliers change little.
    """

    # Steps, each with a factorization; two or three are the rule.
    rounds: int = 6
    # The first step takes this share of a whole interval, or capacity, for room everywhere: what
    # an interior-point method leaves over is small, and the system far from singular. The later
    # ones leave alone what has met an end.
    first_room: float = 1e-5
    least_room: float = 1e-11
    # No edge counts as more than so many times as loose, in a coordinate, as the loosest node's
    # rows: from 1e8 on, clusters that hardly anything flows into lost what they had to make up.
    loosest: float = 1e4
    # Where the gap of coordinates' own terms is so many times that of rows and edges, their
    # multipliers have taken what is missing of the balance, which others may take at no price.
    taken: float = 100.0
    # Edges with this share of their capacity left are loose: clusters that they join are balanced
    # along trees, where factors of the whole leave more than rounding.
    loose: float = 0.01
    # They are tried where the balance is not made up otherwise, or at the price of so many times
    # the gap that there was but for it.
    lost: float = 2.0
    # So many times, each without the edges that had to carry more than they have room for.
    forests: int = 4
    # From the second step on each has to leave this share, at most, of what is missing, or of the
    # gap: beside data in raw units all of them left the same, which was rounding.
    fall: float = 0.5
    # Where this share of the gap that is asked for is all there is, nothing is corrected: the rest
    # of that gap is for leaks, should solutions be larger than w.
    share: float = 0.1
    # Steps on what rounding has left of a step, with the same factors.
    refinements: int = 3
    # Added to the diagonal, of ones: what rounding makes of it, so that pivots stay positive.
    regularization: float = 1e-14
    # Where steps get nowhere they are made in twice the digits, up to so many multiplications: a
    # second or so. There less is added to the diagonal.
    most_sharp: float = 1e9
    sharp_regularization: float = 3e-25
    # Weight of the room beside the curvature of conjugates, as a share of the objective: how much
    # of the gap it may cost to stay away from the ends.
    barrier: float = 1e-9
    # At least that, where the objective is zero: squares of rooms stay in range.
    least_barrier: float = 1e-30
    # What may be missing of the balance at a node, relative to what adds up to it. It is paired
    # with points as large as any node's and counted as part of the gap. Where data are separable a
    # node takes no flow at all in some directions, and factors leave as much.
    leak: float = 1e-6
    # More than rounding may be missing only where the gap is at most this share of the losses at
    # zero: far from the optimum w does not tell how large solutions are. Where less is missing than
    # may be, so many times more, but no more than this.
    near: float = 1e-3
    nearest: float = 0.1
    # Where no more than that is missing, nothing is left to correct; nor where it costs no more
    # than this share of the gap.
    rounding: float = 1e-14
    negligible: float = 1e-2
    # What is missing is told more precisely where it costs more than this share of the gap. In raw
    # units rounding of sums alone may take light rows beside heavy ones out of their intervals.
    doubtful: float = 0.1
    # Of the blocks of all nodes and edges, and of a factorization: as many as our own
    # interior-point method takes on itself. Without corrections its multipliers were of no use
    # beside 10,000 nodes in raw units: a gap of 1 where the point was optimal.
    most_entries: int = MOST_ENTRIES
    most_multiplications: float = MOST_MULTIPLICATIONS


@dataclass(frozen=True)
class SecondTries:
    """When the flow of a first repair is not left at that."""

    # Scaling the whole flow is tried where the gap is larger than this share of the losses.
    gap: float = 1e-2
    # Where moving the flow to be feasible may have cost this share of the gap, another repair is
    # tried.
    moved: float = 0.1
    # Sums are told more precisely, which takes multipliers of their own, where what rounding may
    # have done is this share of the gap.
    rounding: float = 0.1
    # Where a repair comes next, only if so much of the objective is in doubt: that decided none
    # of 19 checks with less, but that of squares with weights of 1e30 (.3).
    lost: float = 0.1


REFINEMENT = Refinement()
# The compiled sweeps keep account of what is missing: the next projection makes up what one leaves.
COMPILED = Alternation(sweeps=10, accuracy=0.1)
GENERIC = Alternation(sweeps=10, accuracy=1e-3)
# Capacities and the intervals of multipliers together take more sweeps than capacities alone.
# Projections that leave a tenth lead as far in as many sweeps, and cost half.
GROUNDED = GroundedAlternation(sweeps=200, accuracy=0.1)
# Margins that are given: where there are narrow ones, what is missing may begin to fall late.
STEADY = GroundedAlternation(
    sweeps=200, accuracy=0.1, overshoot=0.0, stride=50, fall=0.8, enough=0.5
)
ANCHORING = Anchoring()
SECOND_TRIES = SecondTries()
CORRECTION = CorrectionSettings()
